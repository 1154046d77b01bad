"""How is an object of a class of the source tree made, and which fields does it begin with?"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import libcst as cst

from analyzer.static.arguments import Arguments
from analyzer.static.names import Assigned, Binding, ClassInfo, FunctionInfo, build_class, mup_name
from analyzer.static.source import Module
from analyzer.static.state import Results, State
from analyzer.static.syntax import applied, name_of
from analyzer.static.values import (
    NONE,
    UNKNOWN,
    ClassValue,
    Const,
    DictRef,
    External,
    FunctionValue,
    ListRef,
    ObjectRef,
    SharedObject,
    Slot,
    TupleValue,
    Value,
)
from analyzer.static.walk import Context, Part, Walk

__all__ = ["Making"]

PLAIN_BASES = {
    "builtins.object",
    "abc.ABC",
    "contextlib.AbstractAsyncContextManager",
    "contextlib.AbstractContextManager",
    "typing.Generic",
    "typing.Protocol",
    "typing_extensions.Protocol",
}
"""Bases outside the source tree that change nothing about how an object is made or what it has."""

DATA_CLASSES = {
    "dataclasses.dataclass",
    "attr.define",
    "attr.frozen",
    "attr.s",
    "attrs.define",
    "attrs.frozen",
}

FROZEN = {"attr.frozen", "attrs.frozen"}

FIELDS = {"dataclasses.field", "attr.field", "attrs.field", "attr.ib", "pydantic.Field"}

COMPARING = {"compare", "eq", "hash"}
"""What fields say that do not count, or not as they are, where objects are compared."""

MODELS = {"pydantic.BaseModel"}

NAMED_TUPLES = {"typing.NamedTuple"}

TYPED_DICTS = {"typing.TypedDict", "typing_extensions.TypedDict"}

CLASS_DECORATORS = {
    "functools.total_ordering",
    "typing.final",
    "typing.runtime_checkable",
    "enum.unique",
    *DATA_CLASSES,
}

UNFOLLOWED = ("__new__", "__getattribute__")
"""Methods that may do anything where an object is made or read."""

METACLASSES = {"abc.ABCMeta", "enum.EnumMeta", "enum.EnumType"}


@dataclass(frozen=True, slots=True)
class _Field:
    """A field of a data class, named tuple or the like."""

    name: str
    default: Value | None
    factory: cst.BaseExpression | None
    module: Module
    keyword_only: bool
    compared: bool = True


class Making(Part):
    """Makes objects."""

    def __init__(self, walk: Walk) -> None:
        super().__init__(walk)
        self._tuple_fields: dict[ClassInfo, list[str]] = {}
        self._decorated: dict[tuple[ClassInfo, cst.BaseExpression], bool] = {}

    def instantiate(self, info: ClassInfo, arguments: Arguments, node: cst.CSTNode, state: State) -> Results:
        """Return what calling a class does."""
        if self.walk.enumerations.is_enumeration(info):
            return [(state, self.walk.enumerations.member_of_value(info, arguments.positional()))]
        outside = self.walk.names.outside(info)
        if outside & TYPED_DICTS and arguments.plain and not arguments.positional():
            return [self.new_dict(arguments.keywords(), state)]
        if not self._is_followed(info):
            self.walk.calls.release(
                arguments.values, state, node, f"{info.qualname!r}, whose bases are not known"
            )
            return [(self.walk.variables.forget_contents(arguments.values, state), UNKNOWN)]
        reference = ObjectRef(self.walk.allocate(), info)
        state = state.store(reference.number, self.initial(reference))
        initialiser = self.walk.names.attribute(info, "__init__")
        fields = self._fields(info, initialiser[0] if initialiser else None)
        if fields is not None:
            results = self._filled(reference, fields, arguments, node, state)
        elif initialiser is not None and isinstance(initialiser[1], FunctionInfo):
            callee = FunctionValue(initialiser[1], reference)
            results = self.walk.functions.call_function(callee, arguments, node, state, follow=True)
        elif self.walk.attaching.is_mark(info):
            results = self.walk.attaching.method_of_mark(reference, "__init__", arguments, node, state)
        else:
            held = TupleValue(tuple(arguments.values))
            results = [(reference.with_attribute("args", held, state), NONE)]
        return [(after, reference) for after, _ in results]

    def new_dict(self, items: Iterable[tuple[str, Value]], state: State) -> tuple[State, Value]:
        """Return the state with a new dict whose keys are texts."""
        number = self.walk.allocate()
        return state.store(number, tuple((Const.of(key), value) for key, value in items)), DictRef(number)

    def namespace(self, name: str, fields: Sequence[str], *, ordered: bool) -> ClassInfo:
        """Return a class that the library makes, not a ``class`` statement.

        Args:
            name: Of the class.
            fields: Attributes its objects are made with.
            ordered: Whether its objects are tuples of them.
        """
        lines = "".join(f"    {field}: object\n" for field in fields) or "    pass\n"
        node = cst.parse_statement(f"class {name}:\n{lines}")
        assert isinstance(node, cst.ClassDef)  # noqa: S101  (what was just written)
        info = ClassInfo(self.walk.module, node, name)
        self.walk.names.declare(info, [External("typing.NamedTuple" if ordered else "pydantic.BaseModel")])
        return info

    def local_class(self, node: cst.ClassDef, state: State) -> tuple[State, Value]:
        """Return the state after a function has made a class, and the class; only services are followed."""
        info = build_class(self.walk.module, node, self.walk.qualname)
        if node.decorators or not self.walk.names.derives_from(info, "MS"):
            return state, UNKNOWN
        around = self.walk.variables.visible(state)
        info.captured.update({n: self.walk.lookups.freeze(v, state) for n, v in around.items()})
        return self.walk.attaching.defined(info, state), ClassValue(info)

    def _is_followed(self, info: ClassInfo) -> bool:
        """Return whether everything that happens when such an object is made, or read, is known."""
        if any(self.walk.names.attribute(info, name) is not None for name in UNFOLLOWED):
            return False
        for base in self.walk.names.mro(info):
            if isinstance(base, External):
                known = base.name in PLAIN_BASES | MODELS | NAMED_TUPLES or mup_name(base) == "EP"
                if not known and not _is_exception(base):
                    return False
            elif not self._plainly_declared(base):
                return False
        return True

    def _plainly_declared(self, info: ClassInfo) -> bool:
        for keyword in info.node.keywords:
            name = self.walk.names.dotted(info.module, keyword.value)
            if (
                keyword.keyword
                and keyword.keyword.value == "metaclass"
                and external_name(name) not in METACLASSES
            ):
                return False
        return all(self._leaves_alone(info, one.decorator) for one in info.node.decorators)

    def _leaves_alone(self, info: ClassInfo, decorator: cst.BaseExpression) -> bool:
        """Return whether objects of a class are what they would be without a decorator of it.

        One of the source that returns the class may register it, or set attributes, which their names tell.
        """
        if external_name(self.walk.names.dotted(info.module, applied(decorator))) in CLASS_DECORATORS:
            return True
        if (info, decorator) not in self._decorated:
            self._decorated[info, decorator] = False  # the decorator may make such an object
            code = partial(self.walk.attaching.decorated, info, decorator)
            value = self.walk.attaching.run(Context(info.module), code)
            self._decorated[info, decorator] = value == ClassValue(info)
        return self._decorated[info, decorator]

    def _class_decorators(self, info: ClassInfo) -> Iterator[str]:
        for decorator in info.node.decorators:
            yield external_name(self.walk.names.dotted(info.module, applied(decorator.decorator)))

    def initial(self, made: ObjectRef) -> tuple[tuple[Value, Value], ...]:
        """Return the attributes that start as the class's and may get a value of their own."""
        names, info = self.walk.names, made.info
        assigned = names.attributes_assigned()
        everything = names.sets_anything() or bool(names.set_by_name(info))
        seen: set[str] = set()
        found: dict[str, Value] = {}
        for owner in names.line(info):
            for name, binding in owner.bindings.items():
                if name in seen or self.walk.attributes.descriptor(info, None, name) is not None:
                    continue
                seen.add(name)
                changed = name in assigned or bool(names.assigned_by_methods(info, name))
                if isinstance(binding, Assigned) and (changed or (everything and not name.startswith("__"))):
                    value = self.walk.lookups.constant(owner.module, binding, owner)
                    found[name] = UNKNOWN if names.is_replaced(info, name) else value
                elif changed and self._is_method(info, name, binding):
                    # Another function may take the place of a method.
                    found[name] = self.walk.attributes.class_attribute(info, None, name, made)
        return tuple((Slot(name), value) for name, value in found.items())

    def _fields(self, info: ClassInfo, initialised_by: ClassInfo | None) -> list[_Field] | None:
        """Return the fields of a class whose ``__init__`` is made from them; None for any other."""
        line = self.walk.names.line(info)
        if initialised_by is not None:
            line = line[: line.index(initialised_by)]
        outside = self.walk.names.outside(info)
        generated = any(set(self._class_decorators(base)) & DATA_CLASSES for base in line)
        if not generated and not (outside & (MODELS | NAMED_TUPLES) and initialised_by is None):
            return None
        found: dict[str, _Field] = {}
        for base in reversed(self.walk.names.line(info)):
            found.update({f.name: f for f in self._own_fields(base, keyword_only=bool(outside & MODELS))})
        return list(found.values())

    def is_named_tuple(self, info: ClassInfo) -> bool:
        """Return whether objects of a class are tuples of their fields."""
        return bool(self.walk.names.outside(info) & NAMED_TUPLES)

    def _is_method(self, info: ClassInfo, name: str, binding: Binding) -> bool:
        """Return whether a name of a class is a function that reading an attribute returns."""
        return isinstance(binding, FunctionInfo) and (
            self.walk.attributes.property_of(info, None, name) is None
        )

    def tuple_items(self, info: ClassInfo, known: dict[str, Value]) -> tuple[Value, ...] | None:
        """Return the fields of a named tuple in order, given its attributes; None if it is none."""
        if not self.is_named_tuple(info):
            return None
        if info not in self._tuple_fields:
            self._tuple_fields[info] = [field.name for field in self._fields(info, None) or ()]
        names = self._tuple_fields[info]
        return tuple(known[name] for name in names) if all(name in known for name in names) else None

    def key_of(self, info: ClassInfo, known: dict[str, Value]) -> Value | None:
        """Return what tells a record from other keys of a dict, given its attributes.

        None if it is none, or what it equals is not known. Named tuples equal tuples of their fields, data
        classes that are frozen those of the same class with the same fields.
        """
        if any(self.walk.names.attribute(info, name) is not None for name in ("__eq__", "__hash__")):
            return None
        items = self.tuple_items(info, known)
        if items is not None:
            return TupleValue(items).as_key()
        if not self._is_frozen_record(info):
            return None
        names = [field.name for field in self._fields(info, None) or ()]
        keys = [(name, known[name].as_key()) for name in names if name in known]
        whole = tuple((name, key) for name, key in keys if key is not None)
        return SharedObject(info, whole) if len(whole) == len(names) else None

    def _is_frozen_record(self, info: ClassInfo) -> bool:
        """Return whether objects of a data class are compared by all of their fields, which never change."""
        found = False
        for decorator in info.node.decorators:
            name = external_name(self.walk.names.dotted(info.module, applied(decorator.decorator)))
            if name not in DATA_CLASSES:
                return False
            arguments = decorator.decorator.args if isinstance(decorator.decorator, cst.Call) else ()
            frozen = name in FROZEN or any(_is_switched_on(argument, "frozen") for argument in arguments)
            compares = not any(argument.keyword and argument.keyword.value == "eq" for argument in arguments)
            found = frozen and compares
        plain = all(field.compared for field in self._fields(info, None) or ())
        return found and plain and len(self.walk.names.line(info)) == 1

    def field_names(self, info: ClassInfo) -> list[str]:
        """Return the attributes that positional patterns of a class are about."""
        found = self.walk.names.attribute(info, "__match_args__")
        if found is not None and isinstance(found[1], Assigned):
            value = self.walk.lookups.constant(found[0].module, found[1], found[0])
            return [str(v.value) for v in value.parts() if isinstance(v, Const)]
        initialiser = self.walk.names.attribute(info, "__init__")
        fields = self._fields(info, initialiser[0] if initialiser else None) or ()
        return [field.name for field in fields if not field.keyword_only]

    def _own_fields(self, info: ClassInfo, *, keyword_only: bool) -> Iterator[_Field]:
        for decorator in info.node.decorators:
            arguments = decorator.decorator.args if isinstance(decorator.decorator, cst.Call) else ()
            keyword_only |= any(_is_switched_on(argument, "kw_only") for argument in arguments)
        for line in info.node.body.body:
            for statement in line.body if isinstance(line, cst.SimpleStatementLine) else ():
                if isinstance(statement, cst.AnnAssign) and isinstance(statement.target, cst.Name):
                    annotation = statement.annotation.annotation
                    base = annotation.value if isinstance(annotation, cst.Subscript) else annotation
                    kind = external_name(self.walk.names.dotted(info.module, base))
                    if kind == "dataclasses.KW_ONLY":
                        keyword_only = True
                    elif kind != "typing.ClassVar":
                        yield self._field(info, statement.target.value, statement.value, keyword_only)

    def _field(
        self, info: ClassInfo, name: str, value: cst.BaseExpression | None, keyword_only: bool
    ) -> _Field:
        compared = True
        if (
            isinstance(value, cst.Call)
            and external_name(self.walk.names.dotted(info.module, value.func)) in FIELDS
        ):
            given = {a.keyword.value: a.value for a in value.args if a.keyword is not None}
            factory = given.get("default_factory", given.get("factory"))
            compared = not given.keys() & COMPARING
            if "default" not in given:
                unset = None if factory is None else UNKNOWN
                return _Field(name, unset, factory, info.module, keyword_only, compared)
            value = given["default"]
        default = None if value is None else self.walk.lookups.constant(info.module, Assigned(value), info)
        return _Field(name, default, None, info.module, keyword_only, compared)

    def _filled(
        self,
        reference: ObjectRef,
        fields: Sequence[_Field],
        arguments: Arguments,
        node: cst.CSTNode,
        state: State,
    ) -> Results:
        """Return what a generated ``__init__`` does."""
        info = reference.info
        positional = [f for f in fields if not f.keyword_only]
        given = dict(zip((f.name for f in positional), arguments.positional(), strict=False))
        given |= {name: value for name, value in arguments.keywords() if any(f.name == name for f in fields)}
        fitting = arguments.plain and len(given) == len(arguments.values)
        if not fitting:
            self.walk.calls.release(arguments.values, state, node, f"{info.qualname!r} in a way not followed")
        for field in fields:
            value = given.get(field.name, field.default or UNKNOWN)
            if not fitting and field.name not in given:
                value = UNKNOWN
            elif field.name not in given and field.factory is not None:
                state, value = self._made(field, state)
            state = reference.with_attribute(field.name, value, state)
        after_init = self.walk.attributes.method_named(info, ("__post_init__",))
        if after_init is None:
            return [(state, NONE)]
        return self.walk.functions.call_method(after_init, reference, (), node, state, follow=True)

    def _made(self, field: _Field, state: State) -> tuple[State, Value]:
        """Return a new default value: the one every object gets for itself."""
        factory = field.factory
        made = self.walk.names.dotted(field.module, factory) if factory is not None else UNKNOWN
        if isinstance(made, ClassValue) and factory is not None:
            results = self.instantiate(made.info, Arguments((), ()), factory, state)
            return results[0] if results else (state, UNKNOWN)
        known = external_name(made)
        return self.empty(known, state)

    def empty(self, factory: str, state: State) -> tuple[State, Value]:
        """Return what a function of the library returns that makes an empty container."""
        number = self.walk.allocate()
        if factory in ("builtins.list", "builtins.set", "collections.deque"):
            return state.store(number, ()), ListRef(number)
        if factory in ("builtins.dict", "collections.OrderedDict"):
            return state.store(number, ()), DictRef(number)
        plain = {"builtins.int": 0, "builtins.str": "", "builtins.float": 0.0, "builtins.bool": False}
        return state, Const.of(plain[factory]) if factory in plain else UNKNOWN


def _is_switched_on(argument: cst.Arg, name: str) -> bool:
    """Return whether an argument is ``name=True``."""
    keyword, value = argument.keyword, argument.value
    named = keyword is not None and keyword.value == name
    return named and name_of(value) == "True"


def external_name(value: Value) -> str:
    """Return the name of something outside the source tree, "" of anything else."""
    return value.name if isinstance(value, External) else ""


def _is_exception(base: External) -> bool:
    kind = getattr(builtins, base.name.removeprefix("builtins."), None)
    return (isinstance(kind, type) and issubclass(kind, BaseException)) or base.name.startswith("mup.errors.")
