"""What does reading an attribute or item of an object do, when its class is known?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import libcst as cst

from analyzer.static.arguments import Arguments
from analyzer.static.evaluation import merge_results
from analyzer.static.names import Assigned, Binding, ClassInfo, FunctionInfo
from analyzer.static.state import Results, State, values_in
from analyzer.static.syntax import name_of
from analyzer.static.values import (
    NONE,
    UNKNOWN,
    ClassValue,
    Closure,
    EnumMember,
    FunctionValue,
    Instance,
    Marked,
    Method,
    ObjectRef,
    Partial,
    SharedObject,
    TupleValue,
    Value,
    alternatives,
)
from analyzer.static.values.containers import slots_of
from analyzer.static.values.objects import MadeObject
from analyzer.static.walk import Part

__all__ = ["Attributes"]

PROPERTIES = {"builtins.property", "functools.cached_property"}


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A class attribute that decides itself what reading and setting it does.

    Attributes:
        value: The object.
        getter: Its ``__get__``.
        sets: Whether it has a ``__set__``: then it comes before attributes of the object.
    """

    value: Value
    getter: FunctionInfo
    sets: bool


class Attributes(Part):
    """Finds attributes of classes, and runs what reading or calling objects runs."""

    def item_of_object(self, owner: MadeObject, key: Value, node: cst.CSTNode, state: State) -> Results:
        """Return what reading an item of an object does."""
        items = self.walk.expressions.items(owner, state)
        if items is not None:
            return [(state, TupleValue(items).at(key))]
        found = self.walk.names.method(owner.info, "__getitem__")
        if found is not None:
            return self.walk.functions.call_method(found, owner, (key,), node, state)
        return [(state, state.content_of([owner]))]

    def method_named(
        self, info: ClassInfo, names: Sequence[str], after: ClassInfo | None = None
    ) -> FunctionInfo | None:
        """Return the first of these methods that a class has; ``after`` starts behind a class."""
        found = (self.walk.names.method(info, name, after) for name in names)
        return next(filter(None, found), None)

    def property_of(self, info: ClassInfo, after: ClassInfo | None, name: str) -> FunctionInfo | None:
        """Return what reading an attribute runs; None if it is no property."""
        found = self.walk.names.method(info, name, after)
        return found if found and PROPERTIES & set(self.walk.lookups.decorators(found)) else None

    def descriptor(self, info: ClassInfo, after: ClassInfo | None, name: str) -> Descriptor | None:
        """Return the descriptor of the source tree that an attribute of a class is; None if it is none."""
        found = self._described(info, name, "__get__", after)
        return found and Descriptor(*found, self._described(info, name, "__set__", after) is not None)

    def _described(
        self, info: ClassInfo, name: str, hook: str, after: ClassInfo | None = None
    ) -> tuple[Value, FunctionInfo] | None:
        """Return the object that a class has as an attribute, and a method of it; None if it has no such."""
        match self.walk.names.attribute(info, name, after):
            case (owner, Assigned() as binding):
                kind = self._made_of(owner, binding)
                method = None if kind is None else self.walk.names.method(kind, hook)
                if method is not None:
                    return self.walk.lookups.constant(owner.module, binding, owner), method
        return None

    def _made_of(self, owner: ClassInfo, binding: Binding) -> ClassInfo | None:
        """Return the class that a class attribute is made of by a call."""
        match binding:
            case Assigned(value=cst.Call(func=func)):
                nested = owner.bindings.get(name_of(func))
                return (
                    nested if isinstance(nested, ClassInfo) else self.walk.names.class_of(owner.module, func)
                )
        return None

    def run_getter(
        self, descriptor: Descriptor, owner: MadeObject, node: cst.CSTNode, state: State
    ) -> Results:
        """Return what reading a descriptor does."""
        given = (owner, ClassValue(owner.info))
        return self.walk.functions.call_method(
            descriptor.getter, descriptor.value, given, node, state, follow=True
        )

    def setter(self, owner: ObjectRef, name: str) -> tuple[FunctionValue, tuple[Value, ...]] | None:
        """Return what setting a property or descriptor runs, and its arguments before the value."""
        for base in self.walk.names.line(owner.info):
            if name in base.setters:
                return FunctionValue(base.setters[name], owner), ()
        found = self._described(owner.info, name, "__set__")
        return found and (FunctionValue(found[1], found[0]), (owner,))

    def has_setters(self, info: ClassInfo) -> bool:
        """Return whether setting some attribute of an object runs code."""
        owners = self.walk.names.line(info)
        made = (self._made_of(owner, binding) for owner in owners for binding in owner.bindings.values())
        described = any(self.walk.names.method(kind, "__set__") for kind in made if kind is not None)
        return described or any(owner.setters for owner in owners)

    def set_by_name(
        self,
        owner: Value,
        name: Value,
        value: Value,
        node: cst.CSTNode,
        state: State,
        *,
        directly: bool = False,
    ) -> Results:
        """Return what ``setattr`` does, or one of the methods that do the same past the class."""
        states = self.walk.assignment.set_attribute(
            owner, name, value, state, node, "an attribute set by its name", directly=directly
        )
        return [(after, NONE) for after in states]

    def is_cached(self, getter: FunctionInfo) -> bool:
        """Return whether a property keeps what it returned first."""
        return "functools.cached_property" in self.walk.lookups.decorators(getter)

    def kept_before(self, start: State, ends: Sequence[State], node: cst.CSTNode) -> State | None:
        """Read cached properties before a loop that its iterations would be the first to read.

        That is the same if it does nothing but make the value, and makes the same one there. Otherwise the
        next iteration knows nothing of it.

        Returns:
            The state of the loop's begin; None if there is no such property.
        """
        found = start
        for number, content in start.heap.items():
            before = slots_of(content)
            after = [slots_of(end.heap[number]) for end in ends if end.heap[number] is not content]
            names = dict.fromkeys(name for slots in after for name in slots if name not in before)
            for name in names:
                kept = [(end, slots_of(end.heap[number]).get(name)) for end in ends]
                owner = _object_at(number, start)
                getter = None if owner is None else self.property_of(owner.info, None, name)
                if owner is None or getter is None or not self.is_cached(getter):
                    continue
                with self.walk.trying() as trial:
                    results = self.walk.functions.call_method(getter, owner, (), node, found)
                if len(results) != 1 or trial.raised or results[0][0].operations != start.operations:
                    continue
                ((made, value),) = results
                if any(made.heap[place] != kept_there for place, kept_there in found.heap.items()):
                    continue
                fresh = value.frozen(made, frozenset(), self.walk)
                if all(v is None or v.frozen(end, frozenset(), self.walk) == fresh for end, v in kept):
                    found = owner.with_attribute(name, value, made)
        return None if found is start else found

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
        found = self.walk.names.attribute(info, name, after)
        if isinstance(receiver, Instance) and after is None:
            own = self.walk.shared.of_service(info, name)
            if own is not None:
                return own
        if found is None:
            inherited = isinstance(receiver, MadeObject) and name in ("__init__", "__call__")
            if receiver is not None and inherited and self.walk.attaching.is_mark(info):
                return Method(receiver, name)
            if name == "__new__":
                return self.walk.enumerations.maker(info)
            inside_client = name == "think" and self.walk.names.derives_from(info, "Client")
            return Method(Instance(info), "think") if inside_client else UNKNOWN
        provider, binding = found
        if isinstance(binding, Assigned):
            if self.walk.enumerations.is_member(provider, name, binding):
                return self.walk.enumerations.member(info, name)
            names, shared = self.walk.names, isinstance(receiver, EnumMember | Instance | SharedObject | None)
            if (
                any(name in names.changes(x).attributes for x in (provider.module, self.walk.module))
                or (shared and (names.assigned_by_methods(info, name) or names.set_by_name(info)))
                or names.is_replaced(info, name)
            ):
                return self.walk.tables.of_class(provider, name, binding) or UNKNOWN
            return self._bound(self.walk.lookups.constant(provider.module, binding, provider), receiver)
        if not isinstance(binding, FunctionInfo):
            return binding.meaning() or UNKNOWN
        decorators = self.walk.lookups.decorators(binding)
        if "builtins.staticmethod" in decorators:
            return FunctionValue(binding)
        if "builtins.classmethod" in decorators:
            return FunctionValue(binding, ClassValue(info))
        if PROPERTIES & set(decorators):
            return UNKNOWN
        return self._bound(self.walk.decorators.read(binding), receiver)

    @staticmethod
    def _bound(value: Value, receiver: Value | None) -> Value:
        """Return a function that was found in a class as a method of the object."""
        match value:
            case _ if receiver is None or isinstance(receiver, ClassValue):
                return value
            case Marked(function=function):
                return Attributes._bound(function, receiver)
            case FunctionValue(info=info, bound=None):
                return FunctionValue(info, receiver)
            case Partial():
                return value.of_object(receiver)
            case Closure():
                return Partial(value, (receiver,))
        return value

    def call_object(
        self, owner: MadeObject, arguments: Arguments, node: cst.CSTNode, state: State
    ) -> Results:
        """Return what calling an object does."""
        found = self.walk.names.method(owner.info, "__call__")
        if found is None and self.walk.attaching.is_mark(owner.info):
            return self.walk.attaching.method_of_mark(owner, "__call__", arguments, node, state)
        if found is None:
            self.walk.calls.release(arguments.values, state, node, f"an object of {owner.info.qualname!r}")
            return [(self.walk.variables.forget_contents(arguments.values, state), UNKNOWN)]
        return merge_results(
            self.walk.functions.call_function(FunctionValue(found, owner), arguments, node, state)
        )


def _object_at(number: int, state: State) -> ObjectRef | None:
    """Return the object whose attributes are at a place of the heap; None if no variable or content is it."""
    held = chain(
        chain.from_iterable(frame.values() for frame in state.frames),
        chain.from_iterable(values_in(content) for content in state.heap.values()),
    )
    found = (one for value in held for one in alternatives(value) if one.place == number)
    return next((one for one in found if isinstance(one, ObjectRef)), None)
