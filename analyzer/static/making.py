"""How is an object of a class of the source tree made, and which fields does it begin with?"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import libcst as cst

from analyzer.static.arguments import Arguments
from analyzer.static.evaluation import merge_results
from analyzer.static.names import Assigned, ClassInfo, FunctionInfo, Names, build_class, mup_name
from analyzer.static.state import Results, State
from analyzer.static.syntax import applied, keywords, name_of, simple_statements
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
    of_kind,
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
    """A field of a data class, named tuple or the like; without a default value, that is unknown."""

    name: str
    default: Value
    factory: cst.BaseExpression | None
    owner: ClassInfo
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
            what = f"{info.qualname!r}, whose bases are not known"
            self.walk.calls.release(arguments.values, state, node, what)
            return [(self.walk.variables.forget_contents(arguments.values, state), UNKNOWN)]
        reference = ObjectRef(self.walk.allocate(), info)
        state = state.store(reference.number, self.initial(reference))
        return [(after, reference) for after, _ in self.initialised(reference, info, arguments, node, state)]

    def initialised(
        self, made: ObjectRef, kind: ClassInfo, arguments: Arguments, node: cst.CSTNode, state: State
    ) -> Results:
        """Return what the ``__init__`` does that a new object has from a class, its own or a base of it."""
        fields, code = self._made_from(kind), self.walk.names.method(kind, "__init__")
        if fields is not None:
            return self._filled(made, fields, arguments, node, state)
        if code is not None:
            callee = FunctionValue(code, made)
            return self.walk.functions.call_function(callee, arguments, node, state, follow=True)
        if self.walk.attaching.is_mark(kind):
            return self.walk.attaching.method_of_mark(made, "__init__", arguments, node, state)
        held = TupleValue(tuple(arguments.values))
        return [(made.with_attribute("args", held, state), NONE)]

    def is_data_class(self, info: ClassInfo) -> bool:
        """Return whether a decorator of a class makes its ``__init__`` of fields."""
        return bool(set(self.walk.names.class_decorators(info)) & DATA_CLASSES)

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
        assert type(node) is cst.ClassDef  # noqa: S101  (what was just written)
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
            match base:
                case External(name):
                    known = name in PLAIN_BASES | MODELS | NAMED_TUPLES or mup_name(base) == "EP"
                    if not known and not _is_exception(name):
                        return False
                case ClassInfo() if not self.is_plainly_declared(base):
                    return False
        return True

    def is_plainly_declared(self, info: ClassInfo) -> bool:
        """Return whether neither a metaclass nor a decorator of a class changes what its objects are."""
        kind = keywords(info.node.keywords).get("metaclass")
        if kind is not None and self.walk.names.external(info.module, kind) not in METACLASSES:
            return False
        return all(self._leaves_alone(info, one.decorator) for one in info.node.decorators)

    def _leaves_alone(self, info: ClassInfo, decorator: cst.BaseExpression) -> bool:
        """Return whether objects of a class are what they would be without a decorator of it.

        One of the source that returns the class may register it, or set attributes, which their names tell.
        """
        if self.walk.names.external(info.module, applied(decorator)) in CLASS_DECORATORS:
            return True
        if (info, decorator) not in self._decorated:
            self._decorated[info, decorator] = False  # the decorator may make such an object
            code = partial(self.walk.attaching.decorated, info, decorator)
            value = self.walk.attaching.run(Context(info.module), code)
            self._decorated[info, decorator] = value == ClassValue(info)
        return self._decorated[info, decorator]

    def initial(self, made: ObjectRef) -> tuple[tuple[Value, Value], ...]:
        """Return the attributes that start as the class's and may get a value of their own."""
        names, attributes, info = self.walk.names, self.walk.attributes, made.info
        assigned = names.attributes_assigned()
        everything = names.sets_anything() or bool(names.set_by_name(info))
        seen: set[str] = set()
        found: dict[str, Value] = {}
        for owner in names.line(info):
            for name, binding in owner.bindings.items():
                if name in seen or attributes.descriptor(info, None, name) is not None:
                    continue
                seen.add(name)
                changed = name in assigned or bool(names.assigned_by_methods(info, name))
                match binding:
                    case Assigned() if changed or (everything and not name.startswith("__")):
                        value = self.walk.lookups.constant(owner.module, binding, owner)
                        found[name] = UNKNOWN if names.is_replaced(info, name) else value
                    case FunctionInfo() if changed and not attributes.property_of(info, None, name):
                        # Another function may take the place of a method.
                        found[name] = attributes.class_attribute(info, None, name, made)
        return tuple((Slot(name), value) for name, value in found.items())

    def _fields(self, info: ClassInfo, initialised_by: ClassInfo | None) -> list[_Field] | None:
        """Return the fields of a class whose ``__init__`` is made from them; None for any other."""
        line = self.walk.names.line(info)
        if initialised_by is not None:
            line = line[: line.index(initialised_by)]
        outside = self.walk.names.outside(info)
        if not any(map(self.is_data_class, line)) and not (
            outside & (MODELS | NAMED_TUPLES) and initialised_by is None
        ):
            return None
        found: dict[str, _Field] = {}
        for base in reversed(self.walk.names.line(info)):
            found.update({f.name: f for f in self._own_fields(base, keyword_only=bool(outside & MODELS))})
        return list(found.values())

    def _made_from(self, info: ClassInfo) -> list[_Field] | None:
        """Return the fields that calling a class sets; None if its ``__init__`` does."""
        initialiser = self.walk.names.attribute(info, "__init__")
        return self._fields(info, initialiser[0] if initialiser else None)

    def tuple_items(self, info: ClassInfo, known: dict[str, Value]) -> tuple[Value, ...] | None:
        """Return the fields of a named tuple in order, given its attributes; None if it is none."""
        if not self.walk.names.outside(info) & NAMED_TUPLES:
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
        found, names = False, self.walk.names.class_decorators(info)
        for decorator, name in zip(info.node.decorators, names, strict=True):
            if name not in DATA_CLASSES:
                return False
            given = _given(decorator)
            found = (name in FROZEN or name_of(given.get("frozen")) == "True") and "eq" not in given
        plain = all(field.compared for field in self._fields(info, None) or ())
        return found and plain and len(self.walk.names.line(info)) == 1

    def field_names(self, info: ClassInfo) -> list[str]:
        """Return the attributes that positional patterns of a class are about."""
        match self.walk.names.attribute(info, "__match_args__"):
            case (owner, Assigned() as binding):
                value = self.walk.lookups.constant(owner.module, binding, owner)
                return [str(one.value) for one in of_kind(value.parts(), Const)]
        return [field.name for field in self._made_from(info) or () if not field.keyword_only]

    def _own_fields(self, info: ClassInfo, *, keyword_only: bool) -> Iterator[_Field]:
        keyword_only |= any(name_of(_given(one).get("kw_only")) == "True" for one in info.node.decorators)
        for statement in (one for line in info.node.body.body for one in simple_statements(line)):
            match statement:
                case cst.AnnAssign(target=cst.Name(value=name), annotation=cst.Annotation(annotation=said)):
                    base = said.value if type(said) is cst.Subscript else said
                    kind = self.walk.names.external(info.module, base)
                    if kind == "dataclasses.KW_ONLY":
                        keyword_only = True
                    elif kind != "typing.ClassVar":
                        yield self._field(info, name, statement.value, keyword_only)

    def _field(
        self, info: ClassInfo, name: str, value: cst.BaseExpression | None, keyword_only: bool
    ) -> _Field:
        given: Mapping[str, cst.BaseExpression | None] = {"default": value}
        match value:
            case cst.Call() if self.walk.names.external(info.module, value.func) in FIELDS:
                given = keywords(value.args)
        factory = None if "default" in given else given.get("default_factory", given.get("factory"))
        default = self.walk.lookups.constant(info.module, Assigned(given.get("default")), info)
        return _Field(name, default, factory, info, keyword_only, not given.keys() & COMPARING)

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
        results: Results = [(state, NONE)]
        for field in fields:
            following: Results = []
            for before, _ in results:
                values: Results = [(before, given.get(field.name, field.default))]
                if not fitting and field.name not in given:
                    values = [(before, UNKNOWN)]
                elif field.name not in given and field.factory is not None:
                    values = self._made(field, field.factory, node, before)
                following += [(reference.with_attribute(field.name, v, after), NONE) for after, v in values]
            results = merge_results(following)
        after_init = self.walk.names.method(info, "__post_init__")
        if after_init is None:
            return results
        return [
            result
            for after, _ in results
            for result in self.walk.functions.call_method(after_init, reference, (), node, after, follow=True)
        ]

    def _made(self, field: _Field, factory: cst.BaseExpression, node: cst.CSTNode, state: State) -> Results:
        """Return a new default value, which every object gets for itself where it is made: at a node."""
        module = field.owner.module
        match self.walk.names.dotted(module, factory):
            case ClassValue(info):
                return self.instantiate(info, Arguments((), ()), node, state)
        function = self.walk.lookups.constant(module, Assigned(factory), field.owner)
        if function.runs_source():
            return function.call(Arguments((), ()), node, state, self.walk)
        return [self.empty(self.walk.names.external(module, factory), state)]

    def empty(self, factory: str, state: State) -> tuple[State, Value]:
        """Return what a function of the library returns that makes an empty container."""
        number = self.walk.allocate()
        if factory in ("builtins.list", "builtins.set", "collections.deque"):
            return state.store(number, ()), ListRef(number)
        if factory in ("builtins.dict", "collections.OrderedDict"):
            return state.store(number, ()), DictRef(number)
        plain = {"builtins.int": 0, "builtins.str": "", "builtins.float": 0.0, "builtins.bool": False}
        return state, Const.of(plain[factory]) if factory in plain else UNKNOWN


def acting_decorators(names: Names, info: ClassInfo) -> Iterator[cst.Decorator]:
    """Yield the decorators of a class that may do anything to it, in the order in which they are applied."""
    for one in reversed(info.node.decorators):
        if names.external(info.module, applied(one.decorator)) not in CLASS_DECORATORS:
            yield one


def _given(decorator: cst.Decorator) -> dict[str, cst.BaseExpression]:
    """Return what a decorator is given by name."""
    match decorator.decorator:
        case cst.Call(args=arguments):
            return keywords(arguments)
    return {}


def _is_exception(name: str) -> bool:
    kind = getattr(builtins, name.removeprefix("builtins."), None)
    return (isinstance(kind, type) and issubclass(kind, BaseException)) or name.startswith("mup.errors.")
