"""What do objects of the source tree's own classes do: repositories, contexts, data classes, enumerations?

An object that is made while a request runs keeps its attributes in the heap of the state, so it may hold the
``Communication`` object and futures. An object that all requests share - a module constant, an attribute
that ``setup`` gives a service - is what it was when it was made; an attribute that anything else assigns is
unknown.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from analyzer.static.arguments import Arguments
from analyzer.static.diagnostics import Diagnostics
from analyzer.static.evaluation import Evaluation, TooManyPathsError, is_transparent, merge_results
from analyzer.static.names import Assigned, ClassInfo, FunctionInfo
from analyzer.static.source import Module
from analyzer.static.state import Flow, Results, State
from analyzer.static.values import (
    NONE,
    UNKNOWN,
    ClassValue,
    Closure,
    Const,
    DictRef,
    EnumMember,
    External,
    FunctionValue,
    Instance,
    ListRef,
    MapValue,
    Method,
    ObjectRef,
    Partial,
    SharedObject,
    Slot,
    TupleValue,
    Value,
    alternatives,
    join,
)
from analyzer.static.variables import Context

__all__ = ["Objects"]

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

ENUMERATIONS = {"Enum", "StrEnum", "IntEnum", "Flag", "IntFlag"}
TEXTUAL = {"enum.StrEnum", "enum.IntEnum", "enum.IntFlag", "builtins.str", "builtins.int"}
PRINTING = {"enum.StrEnum", "enum.IntEnum", "enum.IntFlag"}

DATA_CLASSES = {
    "dataclasses.dataclass",
    "attr.define",
    "attr.frozen",
    "attr.s",
    "attrs.define",
    "attrs.frozen",
}
FIELDS = {"dataclasses.field", "attr.field", "attrs.field", "attr.ib", "pydantic.Field"}
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
PROPERTIES = {"builtins.property", "functools.cached_property"}
METACLASSES = {"abc.ABCMeta", "enum.EnumMeta", "enum.EnumType"}

OPERATORS = (
    *(
        "__add__",
        "__radd__",
        "__sub__",
        "__mul__",
        "__truediv__",
        "__mod__",
        "__or__",
        "__and__",
        "__lshift__",
    ),
    *("__rshift__", "__matmul__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__contains__"),
    *("__iadd__", "__isub__", "__imul__", "__iand__", "__ior__"),
    *("__neg__", "__invert__", "__str__", "__repr__", "__format__"),
)

MAKING = {"__init__", "__post_init__", "setup"}
"""Methods that run once, before the object is used."""


@dataclass(frozen=True, slots=True)
class _Field:
    """A field of a data class, named tuple or the like."""

    name: str
    default: Value | None
    factory: cst.BaseExpression | None
    module: Module
    keyword_only: bool


class Objects(Evaluation):
    """Makes objects, reads and sets their attributes."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self._shared: dict[ClassInfo, dict[str, Value]] = {}
        self._services: dict[int, ClassInfo] = {}
        self._decorated: dict[FunctionInfo, Value | None] = {}

    # Making.

    def instantiate(self, info: ClassInfo, arguments: Arguments, node: cst.CSTNode, state: State) -> Results:
        """Return what calling a class does."""
        if self._is_enumeration(info):
            return [(state, self._member_of_value(info, arguments.positional()))]
        outside = {base.name for base in self.names.mro(info) if isinstance(base, External)}
        if outside & TYPED_DICTS and arguments.plain and not arguments.positional():
            return [self.new_dict(arguments.keywords(), state)]
        if not self._is_followed(info):
            self.release(arguments.values, state, node, f"{info.qualname!r}, whose bases are not known")
            return [(self.forget_contents(arguments.values, state), UNKNOWN)]
        reference = ObjectRef(self.allocate(), info)
        state = state.store(reference.number, self._initial(info))
        initialiser = self.names.attribute(info, "__init__")
        fields = self._fields(info, initialiser[0] if initialiser else None)
        if fields is not None:
            results = self._filled(reference, fields, arguments, node, state)
        elif initialiser is not None and isinstance(initialiser[1], FunctionInfo):
            callee = FunctionValue(initialiser[1], reference)
            results = self.call_function(callee, arguments, node, state, follow=True)
        else:
            held = TupleValue(tuple(arguments.values))
            results = [(reference.with_attribute("args", held, state), NONE)]
        return [(after, reference) for after, _ in results]

    def new_dict(self, items: Iterable[tuple[str, Value]], state: State) -> tuple[State, Value]:
        """Return the state with a new dict whose keys are texts."""
        number = self.allocate()
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
        info = ClassInfo(self.module, node, name)
        self.names.declare(info, [External("typing.NamedTuple" if ordered else "pydantic.BaseModel")])
        return info

    def _is_followed(self, info: ClassInfo) -> bool:
        """Return whether everything that happens when such an object is made is known."""
        if self.names.attribute(info, "__new__") is not None:
            return False
        for base in self.names.mro(info):
            if isinstance(base, External):
                if base.name not in PLAIN_BASES | MODELS | NAMED_TUPLES and not _is_exception(base):
                    return False
            elif not self._plainly_declared(base):
                return False
        return True

    def _plainly_declared(self, info: ClassInfo) -> bool:
        for keyword in info.node.keywords:
            name = self.names.dotted(info.module, keyword.value)
            if keyword.keyword and keyword.keyword.value == "metaclass" and _name(name) not in METACLASSES:
                return False
        return all(name in CLASS_DECORATORS for name in self._class_decorators(info))

    def _class_decorators(self, info: ClassInfo) -> Iterator[str]:
        for decorator in info.node.decorators:
            target = decorator.decorator
            yield _name(
                self.names.dotted(info.module, target.func if isinstance(target, cst.Call) else target)
            )

    def _initial(self, info: ClassInfo) -> tuple[tuple[Value, Value], ...]:
        """Return the attributes that start as the class's and may get a value of their own."""
        found: dict[str, Value] = {}
        for owner in self.names.mro(info):
            if isinstance(owner, ClassInfo):
                for name, binding in owner.bindings.items():
                    changed = name in self.names.attributes_assigned()
                    if isinstance(binding, Assigned) and (
                        changed or self.names.assigned_by_methods(info, name)
                    ):
                        found.setdefault(name, self.constant(owner.module, binding, owner))
        return tuple((Slot(name), value) for name, value in found.items())

    # Data classes.

    def _fields(self, info: ClassInfo, initialised_by: ClassInfo | None) -> list[_Field] | None:
        """Return the fields of a class whose ``__init__`` is made from them; None for any other."""
        line = self.names.mro(info)
        if initialised_by is not None:
            line = line[: line.index(initialised_by)]
        outside = {base.name for base in self.names.mro(info) if isinstance(base, External)}
        generated = any(
            set(self._class_decorators(base)) & DATA_CLASSES for base in line if isinstance(base, ClassInfo)
        )
        if not generated and not (outside & (MODELS | NAMED_TUPLES) and initialised_by is None):
            return None
        found: dict[str, _Field] = {}
        for base in reversed(self.names.mro(info)):
            if isinstance(base, ClassInfo):
                found.update({f.name: f for f in self._own_fields(base, keyword_only=bool(outside & MODELS))})
        return list(found.values())

    def is_named_tuple(self, info: ClassInfo) -> bool:
        """Return whether objects of a class are tuples of their fields."""
        return any(isinstance(base, External) and base.name in NAMED_TUPLES for base in self.names.mro(info))

    def field_names(self, info: ClassInfo) -> list[str]:
        """Return the attributes that positional patterns of a class are about."""
        found = self.names.attribute(info, "__match_args__")
        if found is not None and isinstance(found[1], Assigned):
            value = self.constant(found[0].module, found[1], found[0])
            return [str(v.value) for v in value.parts() if isinstance(v, Const)]
        initialiser = self.names.attribute(info, "__init__")
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
                    kind = _name(self.names.dotted(info.module, base))
                    if kind == "dataclasses.KW_ONLY":
                        keyword_only = True
                    elif kind != "typing.ClassVar":
                        yield self._field(info, statement.target.value, statement.value, keyword_only)

    def _field(
        self, info: ClassInfo, name: str, value: cst.BaseExpression | None, keyword_only: bool
    ) -> _Field:
        if isinstance(value, cst.Call) and _name(self.names.dotted(info.module, value.func)) in FIELDS:
            given = {a.keyword.value: a.value for a in value.args if a.keyword is not None}
            factory = given.get("default_factory", given.get("factory"))
            if "default" not in given:
                return _Field(name, None if factory is None else UNKNOWN, factory, info.module, keyword_only)
            value = given["default"]
        default = None if value is None else self.constant(info.module, Assigned(value), info)
        return _Field(name, default, None, info.module, keyword_only)

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
            self.release(arguments.values, state, node, f"{info.qualname!r} in a way not followed")
        for field in fields:
            value = given.get(field.name, field.default or UNKNOWN)
            if not fitting and field.name not in given:
                value = UNKNOWN
            elif field.name not in given and field.factory is not None:
                state, value = self._made(field, state)
            state = reference.with_attribute(field.name, value, state)
        after_init = self.method_named(info, ("__post_init__",))
        if after_init is None:
            return [(state, NONE)]
        return self.call_method(after_init, reference, (), node, state, follow=True)

    def _made(self, field: _Field, state: State) -> tuple[State, Value]:
        """Return a new default value: the one every object gets for itself."""
        factory = field.factory
        made = self.names.dotted(field.module, factory) if factory is not None else UNKNOWN
        if isinstance(made, ClassValue) and factory is not None:
            results = self.instantiate(made.info, Arguments((), ()), factory, state)
            return results[0] if results else (state, UNKNOWN)
        known = _name(made)
        return self.empty(known, state)

    def empty(self, factory: str, state: State) -> tuple[State, Value]:
        """Return what a function of the library returns that makes an empty container."""
        number = self.allocate()
        if factory in ("builtins.list", "builtins.set", "collections.deque"):
            return state.store(number, ()), ListRef(number)
        if factory in ("builtins.dict", "collections.OrderedDict"):
            return state.store(number, ()), DictRef(number)
        plain = {"builtins.int": 0, "builtins.str": "", "builtins.float": 0.0, "builtins.bool": False}
        return state, Const.of(plain[factory]) if factory in plain else UNKNOWN

    # Enumerations.

    def _is_enumeration(self, info: ClassInfo) -> bool:
        return any(
            isinstance(base, External) and base.name.removeprefix("enum.") in ENUMERATIONS
            for base in self.names.mro(info)
        )

    def members(self, info: ClassInfo) -> tuple[EnumMember, ...] | None:
        """Return the members of an enumeration in order; None for any other class."""
        if not self._is_enumeration(info):
            return None
        found = [
            self._member(info, name)
            for owner in reversed(self.names.mro(info))
            if isinstance(owner, ClassInfo)
            for name, binding in owner.bindings.items()
            if isinstance(binding, Assigned) and not name.startswith("_")
        ]
        # A second name for a value is no member of its own.
        return tuple(dict.fromkeys(found))

    def _member(self, info: ClassInfo, name: str) -> EnumMember:
        owner, binding = self.names.attribute(info, name) or (info, Assigned(None))
        assert isinstance(binding, Assigned)  # noqa: S101  (what the callers have seen)
        outside = {base.name for base in self.names.mro(info) if isinstance(base, External)}
        value = self.constant(owner.module, binding, owner)
        if isinstance(binding.value, cst.Call) and _name(
            self.names.dotted(owner.module, binding.value.func)
        ) == ("enum.auto"):
            value = Const.of(name.lower()) if "enum.StrEnum" in outside else UNKNOWN
        if isinstance(value, Const):
            for first, other in owner.bindings.items():
                same = isinstance(other, Assigned) and self.constant(owner.module, other, owner) == value
                if same and not first.startswith("_"):
                    name = first
                    break
        # Whether members of `class X(str, Enum)` print as text depends on the version of Python.
        prints = bool(outside & PRINTING)
        return EnumMember(info, name, value, textual=bool(outside & TEXTUAL), prints_as_value=prints)

    def _member_of_value(self, info: ClassInfo, given: Sequence[Value]) -> Value:
        if len(given) == 1 and isinstance(given[0], Const):
            for member in self.members(info) or ():
                if member.value == given[0]:
                    return member
        return UNKNOWN

    # Operators.

    def item_of_object(
        self, owner: ObjectRef | SharedObject, key: Value, node: cst.CSTNode, state: State
    ) -> Results:
        """Return what reading an item of an object does."""
        items = self.items(owner, state)
        if items is not None:
            return [(state, TupleValue(items).at(key))]
        found = self.method_named(owner.info, ("__getitem__",))
        if found is not None:
            return self.call_method(found, owner, (key,), node, state)
        return [(state, state.content_of([owner]))]

    def iterables(self, node: cst.BaseExpression, state: State) -> Results:
        """Evaluate what a loop is over; objects of known classes say what that is."""
        results: Results = []
        for after, value in self.evaluate(node, state):
            for one in alternatives(value):
                found = None
                if isinstance(one, ObjectRef | SharedObject):
                    found = self.method_named(one.info, ("__iter__",))
                if found is None:
                    results.append((after, one))
                else:
                    results += self.call_method(found, one, (), node, after)
        for after, value in results:
            for one in alternatives(value):
                if isinstance(one, ObjectRef) and self.items(one, after) is None and after.holds_tracked(one):
                    self.report(
                        "MUP030",
                        f"{one.info.qualname!r} communicates and iterates over itself: not analysed yet",
                        node,
                        "make __iter__ a generator",
                    )
        return merge_results(results)

    def asked(self, value: Value, methods: Sequence[str], node: cst.CSTNode, state: State) -> Results:
        """Return what asking a value through the first of these methods it has does, if that communicates."""
        results: Results = []
        for one in alternatives(value):
            found = None
            if isinstance(one, ObjectRef) and state.holds_tracked(one):
                found = self.method_named(one.info, methods)
            if found is None:
                results.append((state, one))
            else:
                results += self.call_method(found, one, (), node, state)
        return [(state, value)] if all(after is state for after, _ in results) else results

    def operated(self, values: Iterable[Value], node: cst.CSTNode, state: State) -> None:
        """Report operators that run code which communicates."""
        for value in values:
            for one in alternatives(value):
                if (
                    isinstance(one, ObjectRef)
                    and state.holds_tracked(one)
                    and self.method_named(one.info, OPERATORS) is not None
                ):
                    self.report(
                        "MUP030",
                        f"an operator of {one.info.qualname!r}, whose objects communicate,"
                        " is not analysed yet",
                        node,
                        "call a method instead",
                    )

    # Attributes.

    def method_named(self, info: ClassInfo, names: Sequence[str]) -> FunctionInfo | None:
        """Return the first of these methods that a class has."""
        found = (self.names.attribute(info, name) for name in names)
        return next((f[1] for f in found if f is not None and isinstance(f[1], FunctionInfo)), None)

    def property_of(self, info: ClassInfo, after: ClassInfo | None, name: str) -> FunctionInfo | None:
        """Return what reading an attribute runs; None if it is no property."""
        found = self.names.attribute(info, name, after)
        if found is None or not isinstance(found[1], FunctionInfo):
            return None
        return found[1] if PROPERTIES & set(self.decorators(found[1])) else None

    def is_cached(self, getter: FunctionInfo) -> bool:
        """Return whether a property keeps what it returned first."""
        return "functools.cached_property" in self.decorators(getter)

    def class_attribute(
        self, info: ClassInfo, after: ClassInfo | None, name: str, receiver: Value | None
    ) -> Value:
        """Return an attribute that comes from a class or its bases.

        Args:
            info: The class of the object, or the class itself.
            after: Only look at the bases behind this one (``super()``).
            name: Name of the attribute.
            receiver: The object; None if the attribute is read from the class.
        """
        found = self.names.attribute(info, name, after)
        if isinstance(receiver, Instance) and after is None:
            own = self._of_service(info, name)
            if own is not None:
                return own
        if found is None:
            inside_client = name == "think" and self.names.derives_from(info, "Client")
            return Method(Instance(info), "think") if inside_client else UNKNOWN
        provider, binding = found
        if isinstance(binding, Assigned):
            if self._is_enumeration(info) and not name.startswith("_"):
                return self._member(info, name)
            changed = any(name in self.names.changes(x).attributes for x in (provider.module, self.module))
            if isinstance(receiver, Instance | SharedObject | None):
                changed = changed or bool(self.names.assigned_by_methods(info, name))
            value = UNKNOWN if changed else self.constant(provider.module, binding, provider)
            return self._bound(value, receiver)
        if not isinstance(binding, FunctionInfo):
            return self.names.binding_value(binding) or UNKNOWN
        decorators = self.decorators(binding)
        if "builtins.staticmethod" in decorators:
            return FunctionValue(binding)
        if "builtins.classmethod" in decorators:
            return FunctionValue(binding, ClassValue(info))
        if PROPERTIES & set(decorators):
            return UNKNOWN
        wrapped = self.decorated(binding)
        if wrapped is not None:
            return self._bound(wrapped, receiver)
        return FunctionValue(binding, None if isinstance(receiver, ClassValue) else receiver)

    @staticmethod
    def _bound(value: Value, receiver: Value | None) -> Value:
        """Return a function that was found in a class as a method of the object."""
        if receiver is None or isinstance(receiver, ClassValue):
            return value
        if isinstance(value, FunctionValue) and value.bound is None:
            return FunctionValue(value.info, receiver)
        return Partial(value, (receiver,)) if isinstance(value, Closure) else value

    def assign_attribute(self, target: cst.Attribute, value: Value, state: State, node: cst.CSTNode) -> State:
        """Return the state after ``target = value``."""
        name = target.attr.value
        for after, owner in self.evaluate(target.value, state)[:1]:
            state = after
            objects = alternatives(owner)
            for one in objects:
                setter = self._setter(one, name)
                if setter is not None:
                    state = self._run_setter(FunctionValue(setter, one), value, state, node)
                elif isinstance(one, ObjectRef) and not self.names.attribute(one.info, "__setattr__"):
                    state = self._store(one, name, value, state, certain=len(objects) == 1)
                else:
                    self.release([value], state, node, f"the attribute '{self.code(target)}'")
                    state = self.forget_contents([value], state)
        return state

    def _store(self, owner: ObjectRef, name: str, value: Value, state: State, *, certain: bool) -> State:
        if isinstance(state.heap[owner.number], Value):
            return state.store(owner.number, state.content_of([owner, value]))
        if not certain:
            value = join([owner.attributes(state.heap).get(name, UNKNOWN), value])
        return owner.with_attribute(name, value, state)

    def _setter(self, owner: Value, name: str) -> FunctionInfo | None:
        if isinstance(owner, ObjectRef):
            for base in self.names.mro(owner.info):
                if isinstance(base, ClassInfo) and name in base.setters:
                    return base.setters[name]
        return None

    def _run_setter(self, setter: FunctionValue, value: Value, state: State, node: cst.CSTNode) -> State:
        results = self.call_function(setter, Arguments.of(value), node, state, follow=True)
        return results[0][0] if results else state

    # What all requests share.

    def _of_service(self, info: ClassInfo, name: str) -> Value | None:
        """Return an attribute that the service or client got before its first request."""
        methods = self.names.assigned_by_methods(info, name)
        if not methods:
            return None
        shared = self._made_by_setup(info) if _only_making(methods) else {}
        value = shared.get(name)
        return UNKNOWN if value is None or not self.is_made_once(info, name, value) else value

    def _made_by_setup(self, info: ClassInfo) -> dict[str, Value]:
        if info not in self._shared:
            self._shared[info] = {}
            self._shared[info] = self._run_setup(info)
        return self._shared[info]

    def _run_setup(self, info: ClassInfo) -> dict[str, Value]:
        """Walk ``__init__`` and ``setup``; what they report is not about any request."""
        me = ObjectRef(self.allocate(), info)
        self._services[me.number] = info
        states = [State((), heap={me.number: self._initial(info)})]
        try:
            for name in ("__init__", "setup"):
                found = self.names.attribute(info, name)
                if found is not None and isinstance(found[1], FunctionInfo):
                    states = self._run_alone(found[1], me, states)
        except TooManyPathsError:
            return {}
        frozen: dict[str, list[Value]] = {}
        for state in states:
            for name, value in me.attributes(state.heap).items():
                frozen.setdefault(name, []).append(self.freeze(value, state))
        return {name: join(values) for name, values in frozen.items()}

    def _run_alone(self, function: FunctionInfo, me: ObjectRef, states: Sequence[State]) -> list[State]:
        flows: list[Flow] = []
        with self.apart(Context(function.module, function), Diagnostics()):
            frame = self.first_frame(function, (me,))
            for state in states:
                flows += self.run_body(function, State((frame,), heap=state.heap))
        return [State((), heap=f.state.heap) for f in flows if f.kind in ("next", "return")]

    def is_made_once(self, info: ClassInfo, name: str, value: Value) -> bool:
        """Return whether nothing but ``__init__`` and ``setup`` gives this attribute a value."""
        if not _only_making(self.names.assigned_by_methods(info, name)):
            return False
        if name in self.names.attributes_assigned():
            return False
        if isinstance(value, TupleValue | MapValue):
            # A container that starts empty is there to be filled.
            return bool(value.parts()) and name not in self.names.attributes_changed()
        return True

    def freeze(self, value: Value, state: State) -> Value:
        """Return a value that needs no heap."""
        return value.frozen(state, frozenset(), self)

    def is_service(self, number: int) -> bool:
        """Return whether an object is the service or client itself, while it is set up."""
        return number in self._services

    # Decorators of the source tree.

    def decorated(self, function: FunctionInfo) -> Value | None:
        """Return what a function's decorators make of it; None if they leave it alone or are not known."""
        if function not in self._decorated:
            self._decorated[function] = None
            self._decorated[function] = self._decorate(function)
        return self._decorated[function]

    def _decorate(self, function: FunctionInfo) -> Value | None:
        assert isinstance(function.node, cst.FunctionDef | cst.Lambda)  # noqa: S101
        if isinstance(function.node, cst.Lambda):
            return None
        names = self.decorators(function)
        own = [
            (decorator, name)
            for decorator, name in zip(function.node.decorators, names, strict=True)
            if not is_transparent(name)
        ]
        if not own:
            return None
        value: Value = FunctionValue(function)
        try:
            for decorator, _ in reversed(own):
                with self.apart(Context(function.module), Diagnostics()):
                    states = self.evaluate(decorator.decorator, State(({},)))
                    results = [
                        (s, v)
                        for state, wrapper in states
                        for s, v in self._applied(wrapper, value, decorator, state)
                    ]
                value = join(self.freeze(v, s) for s, v in results) if results else UNKNOWN
        except TooManyPathsError:
            return None
        return value if isinstance(value, FunctionValue | Closure | Partial | SharedObject) else None

    def _applied(self, wrapper: Value, function: Value, node: cst.CSTNode, state: State) -> Results:
        if isinstance(wrapper, FunctionValue | Closure):
            return self.call_function(wrapper, Arguments.of(function), node, state, follow=True)
        if isinstance(wrapper, ClassValue):
            return self.instantiate(wrapper.info, Arguments.of(function), node, state)
        return [(state, UNKNOWN)]

    # Calling.

    def call_object(
        self, owner: ObjectRef | SharedObject, arguments: Arguments, node: cst.CSTNode, state: State
    ) -> Results:
        """Return what calling an object does."""
        found = self.method_named(owner.info, ("__call__",))
        if found is None:
            self.release(arguments.values, state, node, f"an object of {owner.info.qualname!r}")
            return [(self.forget_contents(arguments.values, state), UNKNOWN)]
        return merge_results(self.call_function(FunctionValue(found, owner), arguments, node, state))


def _is_switched_on(argument: cst.Arg, name: str) -> bool:
    """Return whether an argument is ``name=True``."""
    keyword, value = argument.keyword, argument.value
    named = keyword is not None and keyword.value == name
    return named and isinstance(value, cst.Name) and value.value == "True"


def _only_making(methods: Sequence[FunctionInfo]) -> bool:
    return all(method.qualname.rsplit(".", 1)[-1] in MAKING for method in methods)


def _name(value: Value) -> str:
    return value.name if isinstance(value, External) else ""


def _is_exception(base: External) -> bool:
    kind = getattr(builtins, base.name.removeprefix("builtins."), None)
    return (isinstance(kind, type) and issubclass(kind, BaseException)) or base.name.startswith("mup.errors.")
