"""What do modules, classes and objects of the source tree do?

The rules of Python's object model - descriptors, ``super()``, data classes - are the evaluator's business;
here each kind says which of them concern it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from analyzer.static.values.constants import Const
from analyzer.static.values.containers import ANY_ATTRIBUTE, MAYBE, Slot, slots_of
from analyzer.static.values.copies import if_known, rows_of
from analyzer.static.values.namespaces import Namespace
from analyzer.static.values.value import LOST, UNKNOWN, Atom, Method, Opaque, Value, join

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import libcst as cst

    from analyzer.static.arguments import Arguments
    from analyzer.static.names import ClassInfo, FunctionInfo
    from analyzer.static.source import Module
    from analyzer.static.state import Heap, Results, State
    from analyzer.static.values.escape import Escape
    from analyzer.static.walk import Walk

__all__ = ["ClassValue", "EnumMember", "Instance", "ModuleValue", "ObjectRef", "Received", "SharedObject"]
__all__ += ["Super"]

NOTES = (ANY_ATTRIBUTE.name, MAYBE)
"""What names of slots begin with that are no attributes."""

SETTING = ("__setattr__", "__delattr__")
"""Methods that every object has, which set attributes."""


@dataclass(frozen=True, slots=True)
class ModuleValue(Atom):
    """An imported module of the source tree."""

    never_none: ClassVar[bool] = True

    module: Module

    def attribute(self, name: str, node: cst.CSTNode, state: State, run: Walk) -> Value | None:
        """Return an attribute."""
        return run.lookups.member(self, name)


@dataclass(frozen=True, slots=True)
class ClassValue(Atom):
    """A class of the source tree."""

    never_none: ClassVar[bool] = True
    always_true: ClassVar[bool] = True

    info: ClassInfo

    def as_key(self) -> Value | None:
        """Return what tells it from other keys of a dict."""
        return self

    def call(self, arguments: Arguments, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what calling it does: it makes an object."""
        return run.making.instantiate(self.info, arguments, node, state)

    def attribute(self, name: str, node: cst.CSTNode, state: State, run: Walk) -> Value | None:
        """Return an attribute."""
        if name in ("__name__", "__qualname__"):
            return Const.of(self.class_name if name == "__name__" else self.info.qualname)
        if name == "__members__":
            return run.enumerations.mapping(self.info)
        return run.annotated.attribute(
            self.info, name, run.attributes.class_attribute(self.info, None, name, None)
        )

    @property
    def class_name(self) -> str:
        """Its name."""
        return self.info.node.name.value

    def has_instance(self, constant: object) -> bool | None:
        """Return whether a constant is an instance of it."""
        return False

    def has_object(self, info: ClassInfo, run: Walk) -> bool | None:
        """Return whether objects of a class of the source tree are instances of it."""
        return self.info in run.names.mro(info)

    def runs_source(self) -> bool:
        """Return whether calling it runs code of the source tree."""
        return True

    def items(self, state: State, run: Walk) -> tuple[Value, ...] | None:
        """Return what iterating over it yields: the members of an enumeration."""
        return run.enumerations.members(self.info)

    def item(self, key: Value, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what reading an item does: a member of an enumeration, by its name."""
        return [(state, run.enumerations.item(self.info, key))]


class _Object(Atom):
    """Family of the objects of a class of the source tree, which each kind says on its own."""

    __slots__ = ()

    never_none: ClassVar[bool] = True

    info: ClassInfo

    def attribute(self, name: str, node: cst.CSTNode, state: State, run: Walk) -> Value | None:
        """Return an attribute."""
        return ClassValue(self.info) if name == "__class__" else self.other(name, state, run)

    def other(self, name: str, state: State, run: Walk) -> Value:
        """Return an attribute that is not its class: what its class has."""
        return run.attributes.class_attribute(self.info, None, name, self)

    def read(self, name: str, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what reading an attribute does: a property runs."""
        getter = run.attributes.property_of(self.info, None, name)
        if getter is None:
            return Opaque.read(self, name, node, state, run)
        return run.functions.call_method(getter, self, (), node, state)


@dataclass(frozen=True, slots=True)
class Instance(_Object):
    """The object the analysed method belongs to: ``self`` of a service or client."""

    always_true: ClassVar[bool] = True

    info: ClassInfo

    def other(self, name: str, state: State, run: Walk) -> Value:
        """Return an attribute that is not its class."""
        return run.annotated.attribute(self.info, name, _Object.other(self, name, state, run))

    def method(self, name: str, arguments: Arguments, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what calling a method of the framework does: a user thinks."""
        call = run.calls.call_of(Method(self, name), node, state)
        return [(state, UNKNOWN)] if call is None else run.operations.think(arguments, call, state)

    def communicates(self, state: State, run: Walk) -> bool:
        """Return whether a function that gets it can communicate: only a client's method (think)."""
        return run.role == "client"


class MadeObject(_Object):
    """Family of the objects that code of the source tree has made: it is known what they have."""

    __slots__ = ()

    def call(self, arguments: Arguments, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what calling it does."""
        return run.attributes.call_object(self, arguments, node, state)

    def item(self, key: Value, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what reading an item does."""
        return run.attributes.item_of_object(self, key, node, state)

    def instance_of(self, kind: Value, run: Walk) -> bool | None:
        """Return what ``isinstance`` says."""
        return kind.has_object(self.info, run)

    def attributes(self, heap: Heap) -> dict[str, Value]:
        """Return the attributes that are known."""
        return {}

    def items(self, state: State, run: Walk) -> tuple[Value, ...] | None:
        """Return what iterating over it yields: the fields of a named tuple."""
        return run.making.tuple_items(self.info, self.attributes(state.heap))


@dataclass(frozen=True, slots=True)
class ObjectRef(MadeObject):
    """An object of a class of the source tree, whose attributes are in the heap by ``Slot``."""

    number: int
    info: ClassInfo

    @property
    def place(self) -> int | None:
        """Where its attributes are in the heap."""
        return self.number

    def frozen(self, state: State, seen: frozenset[int], run: Walk) -> Value:
        """Return a value that needs no heap."""
        if run.shared.is_service(self.number):
            return Instance(self.info)
        content = state.heap[self.number]
        if rows_of(content) is None or self.number in seen:
            return UNKNOWN
        inner = seen | {self.number}
        kept = {name: value.frozen(state, inner, run) for name, value in slots_of(content).items()}
        run.attaching.copied |= run.attaching.is_filling(self)
        key, filled = run.making.key_of(self.info, kept), run.tables.filled(self.info, kept)
        return SharedObject(self.info, tuple(kept.items()), key, filled)

    def awaited(self, node: cst.Call | cst.Await, state: State, run: Walk) -> Results:
        """Return what ``await`` of it does: what its ``__await__`` says is not followed."""
        run.waiting.interruptible(state)
        found = run.names.method(self.info, "__await__")
        if found is not None and state.holds_tracked(self):
            run.overloading.unfollowed_method(found, node)
        return [(state, UNKNOWN if found is not None else self)]

    def own_method(self, names: Sequence[str], run: Walk) -> FunctionInfo | None:
        """Return the first of these methods that is code of its class."""
        return run.attributes.method_named(self.info, names)

    def attributes(self, heap: Heap) -> dict[str, Value]:
        """Return the attributes that are known."""
        slots = slots_of(heap[self.number])
        return {name: value for name, value in slots.items() if not name.startswith(NOTES)}

    def any_attribute(self, heap: Heap) -> Value | None:
        """Return what attributes may be that are not known; None if these are the class's."""
        return if_known(heap[self.number], lambda rows: dict(rows).get(ANY_ATTRIBUTE))

    def with_attribute(self, name: str, value: Value, state: State) -> State:
        """Return the state with one attribute set; of attributes that are not known what they may be is."""
        content = rows_of(state.heap[self.number])
        if content is None:
            return state.store(self.number, state.content_of([self, value]))
        kept = (pair for pair in content if pair[0] not in (Slot(name), Slot(MAYBE + name)))
        return state.store(self.number, (*kept, (Slot(name), value)))

    def with_any_attribute(self, value: Value, state: State) -> State:
        """Return the state with some attribute set, whichever."""
        content = rows_of(state.heap[self.number])
        if content is None:
            return state.store(self.number, state.content_of([self, value]))
        rows = {key: join([before, value]) for key, before in content}
        return state.store(
            self.number, tuple({**rows, ANY_ATTRIBUTE: rows.get(ANY_ATTRIBUTE, value)}.items())
        )

    def has(self, name: str, state: State, run: Walk) -> bool | None:
        """Return whether it has an attribute without the help of ``__getattr__``; None = perhaps."""
        if run.names.attribute(self.info, name) is not None:
            return True
        if name in self.attributes(state.heap):
            return True if self.always_has(name, state) else None
        return False if self.any_attribute(state.heap) is None else None

    def always_has(self, name: str, state: State) -> bool:
        """Return whether it has an attribute on all ways that led here, if it has it on some."""
        return MAYBE + name not in slots_of(state.heap[self.number])

    def other(self, name: str, state: State, run: Walk) -> Value:
        """Return an attribute that is not its class."""
        if name == "__dict__":
            return Namespace(self)
        if name in SETTING and run.names.attribute(self.info, name) is None:
            return Method(self, name)
        value = self.attributes(state.heap).get(name)
        if value is None:
            value = run.attributes.class_attribute(self.info, None, name, self)
            any_other = self.any_attribute(state.heap)
            if any_other is not None and not value.of_class:
                value = join([value, any_other])
        return run.annotated.attribute(self.info, name, value)

    def method(self, name: str, arguments: Arguments, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what calling a method does that its class has from elsewhere."""
        given = [*arguments.positional(), UNKNOWN, UNKNOWN]
        if name in SETTING:
            return run.attributes.set_by_name(self, given[0], given[1], node, state, directly=True)
        if run.attaching.is_mark(self.info):
            return run.attaching.method_of_mark(self, name, arguments, node, state)
        return Opaque.method(self, name, arguments, node, state, run)

    def read(self, name: str, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what reading an attribute does: a property, descriptor or ``__getattr__`` runs."""
        described = run.attributes.descriptor(self.info, None, name)
        if described is not None and (described.sets or name not in self.attributes(state.heap)):
            return run.attributes.run_getter(described, self, node, state)
        getter = run.attributes.property_of(self.info, None, name)
        if getter is not None:
            known = self.attributes(state.heap).get(name) if run.attributes.is_cached(getter) else None
            if known is not None and self.always_has(name, state):
                run.may_fail(state, "local")  # as the first reading, which a loop may not have come to
                return [(state, known)]
            results = run.functions.call_method(getter, self, (), node, state)
            if not run.attributes.is_cached(getter):
                return results
            found = [(self.with_attribute(name, value, after), value) for after, value in results]
            return found if known is None else [*found, (state, known)]
        if not self.has(name, state, run):
            dynamic = run.names.method(self.info, "__getattr__")
            if dynamic is not None:
                found = run.functions.call_method(dynamic, self, (Const.of(name),), node, state, follow=True)
                if self.any_attribute(state.heap) is not None or name in self.attributes(state.heap):
                    found += Opaque.read(self, name, node, state, run)
                return found
        return Opaque.read(self, name, node, state, run)

    def extended(self, operator: str, more: Value, state: State, run: Walk) -> State | None:
        """Return the state after an augmented assignment: whatever it has may be something else."""
        return state.store(self.number, state.content_of([self, more]))

    def escape(self, state: State, run: Walk) -> Escape | None:
        """Return why it must not leave."""
        what = f"an object of {self.info.qualname!r} that communicates"
        remedy = "call its methods here, or in a function of this source tree"
        found = ("MUP041", what, ", where its use cannot be seen", remedy)
        return found if state.holds_tracked(self) else None


@dataclass(frozen=True, slots=True)
class SharedObject(MadeObject):
    """An object that all requests share: a module or class constant, or an attribute of the service.

    Attributes:
        info: Its class.
        own: Its attributes as they were when it was made.
        key: What tells it from other keys of a dict, if its class says that and what it has is known.
        filled: Containers that only imports fill, and that hold what these put into them.
    """

    info: ClassInfo
    own: tuple[tuple[str, Value], ...]
    key: Value | None = None
    filled: frozenset[str] = frozenset()

    def attributes(self, heap: Heap) -> dict[str, Value]:
        """Return the attributes that are known."""
        return dict(self.own)

    def as_key(self) -> Value | None:
        """Return what tells it from other keys of a dict."""
        return self.key

    def own_method(self, names: Sequence[str], run: Walk) -> FunctionInfo | None:
        """Return the first of these methods that is code of its class."""
        return run.attributes.method_named(self.info, names)

    def other(self, name: str, state: State, run: Walk) -> Value:
        """Return an attribute that is not its class: unknown if anything but its making may set it."""
        own = dict(self.own)
        value = own.get(name)
        if value is None:
            value = run.attributes.class_attribute(self.info, None, name, self)
            if ANY_ATTRIBUTE.name in own and not value.of_class:
                value = UNKNOWN
        elif not run.shared.is_made_once(self.info, name, value, filled=name in self.filled):
            value = UNKNOWN
        return run.annotated.attribute(self.info, name, value)

    def read(self, name: str, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what reading an attribute does: a property or descriptor runs."""
        described = run.attributes.descriptor(self.info, None, name)
        if described is not None and (described.sets or name not in dict(self.own)):
            return run.attributes.run_getter(described, self, node, state)
        return _Object.read(self, name, node, state, run)

    def method(self, name: str, arguments: Arguments, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what calling a method does that its class has from the framework: it is an ``EP``."""
        if not run.attaching.is_mark(self.info):
            return Opaque.method(self, name, arguments, node, state, run)
        return run.attaching.method_of_mark(self, name, arguments, node, state)


@dataclass(frozen=True, slots=True)
class Received(_Object):
    """An object of this class that the framework has made of a request: its attributes are not known."""

    info: ClassInfo

    def other(self, name: str, state: State, run: Walk) -> Value:
        """Return an attribute that is not its class: a method, or what a field says it can be."""
        value = _Object.other(self, name, state, run)
        return run.annotated.attribute(self.info, name, value if value.of_class else UNKNOWN)

    def instance_of(self, kind: Value, run: Walk) -> bool | None:
        """Return what ``isinstance`` says."""
        return kind.has_object(self.info, run)


@dataclass(frozen=True, slots=True)
class EnumMember(MadeObject):
    """A member of an enumeration of the source tree.

    Attributes:
        textual: Whether it can be used like its value, as members of a ``StrEnum`` can.
        prints_as_value: Whether it is also printed like its value.
    """

    info: ClassInfo
    name: str
    value: Value
    textual: bool
    prints_as_value: bool

    def python(self) -> tuple[bool, Any]:
        """Return what Python has."""
        return self.value.python() if self.textual else (False, None)

    def printed(self) -> tuple[bool, Any]:
        """Return what formatting it gives: only some print as their value."""
        return self.value.python() if self.textual and self.prints_as_value else (False, None)

    def as_text(self) -> Value:
        """Return what it is where a text is expected."""
        return self.value if self.textual else self

    def as_key(self) -> Value | None:
        """Return what tells it from other keys of a dict: a textual one is the same as its value."""
        return self.value.as_key() if self.textual else self

    def same(self, other: Value) -> bool | None:
        """Return whether it is certainly the same as another."""
        if isinstance(other, EnumMember) and other.info is self.info:
            return self.name == other.name
        return Value.same(self, other)

    def other(self, name: str, state: State, run: Walk) -> Value:
        """Return an attribute that is not its class."""
        if name in ("value", "_value_"):
            return self.value
        if name in ("name", "_name_"):
            return Const.of(self.name)
        own = run.enumerations.own(self, name)
        value = MadeObject.other(self, name, state, run) if own is None else own
        return run.annotated.attribute(self.info, name, value)


@dataclass(frozen=True, slots=True)
class Super(Opaque):
    """``super()``: attributes of ``info``'s bases behind ``after``, bound to ``receiver``."""

    info: ClassInfo
    after: ClassInfo
    receiver: Value

    def parts(self) -> tuple[Value, ...]:
        """Return the values it is made of."""
        return (self.receiver,)

    def map(self, change: Callable[[Value], Value]) -> Value:
        """Return the value with each of its parts replaced: it is about one object."""
        receiver = change(self.receiver)
        return self if receiver == self.receiver else LOST if self.tracked() else UNKNOWN

    def attribute(self, name: str, node: cst.CSTNode, state: State, run: Walk) -> Value | None:
        """Return an attribute."""
        known = name not in SETTING or run.names.attribute(self.info, name, self.after) is not None
        if not known and isinstance(self.receiver, ObjectRef):
            return Method(self.receiver, name)
        value = run.attributes.class_attribute(self.info, self.after, name, self.receiver)
        return run.annotated.attribute(self.info, name, value)

    def read(self, name: str, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what reading an attribute does: a property runs."""
        getter = run.attributes.property_of(self.info, self.after, name)
        if getter is None:
            return Opaque.read(self, name, node, state, run)
        return run.functions.call_method(getter, self.receiver, (), node, state)
