"""Members of an enumeration.

Their names and values are constants of the class. What else they have is made of the value where the class is
defined: by ``__new__``, by ``__init__``, or as fields of a data class that is mixed in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import libcst as cst

from analyzer.static.annotations import FLAGS
from analyzer.static.arguments import Arguments
from analyzer.static.diagnostics import Diagnostics
from analyzer.static.making import PLAIN_BASES
from analyzer.static.names import Assigned, Binding, ClassInfo
from analyzer.static.state import Results, State
from analyzer.static.syntax import last_name
from analyzer.static.values import (
    UNKNOWN,
    ClassValue,
    Const,
    EnumMember,
    External,
    Function,
    Lost,
    MapValue,
    ObjectRef,
    OneOf,
    Slot,
    TupleValue,
    Unknown,
    Value,
    from_python,
    join,
)
from analyzer.static.values.namespaces import texts_of
from analyzer.static.values.objects import MadeObject
from analyzer.static.walk import Context, Part, TooManyPathsError, Walk, changed

__all__ = ["Enumerations"]

ENUMERATIONS = {"Enum", "StrEnum", "IntEnum", "Flag", "IntFlag"}

TEXTUAL = {"enum.StrEnum", "enum.IntEnum", "enum.IntFlag", "builtins.str", "builtins.int"}

PRINTING = {"enum.StrEnum", "enum.IntEnum", "enum.IntFlag"}

NUMBERS = {"enum.IntEnum", "enum.IntFlag", "builtins.int"}

DATA = "<data>"
"""Attribute of a member that is a text or number: which one; no Python name looks like it."""

VALUE = "_value_"

GIVEN = (DATA, VALUE, "_name_", "name", "value")
"""Attributes that a member has for itself anyway."""


class _Made(NamedTuple):
    """What is known of a member.

    Attributes:
        value: Its value, which is also the text or number it can be used like.
        key: What calling the class finds it by.
        own: The attributes it has besides; None if they are not known.
    """

    value: Value
    key: Value
    own: Mapping[str, Value] | None


class Enumerations(Part):
    """Knows the members of enumerations."""

    def __init__(self, walk: Walk) -> None:
        super().__init__(walk)
        self._made: dict[tuple[ClassInfo, str, bool], _Made] = {}
        self._making: tuple[ClassInfo, ...] = ()

    def is_enumeration(self, info: ClassInfo) -> bool:
        """Return whether a class is an enumeration."""
        return any(one.removeprefix("enum.") in ENUMERATIONS for one in self.walk.names.outside(info))

    def members(self, info: ClassInfo) -> tuple[EnumMember, ...] | None:
        """Return the members of an enumeration in order; None of any other class, or while they are made."""
        named = self._by_name(info)
        if named is None:
            return None
        # A second name for a value is no member of its own, and neither is a combination of flags.
        flags = bool(self.walk.names.outside(info) & FLAGS)
        return tuple(one for one in dict.fromkeys(named.values()) if not (flags and _is_combined(one.value)))

    def _by_name(self, info: ClassInfo) -> dict[str, EnumMember] | None:
        """Return the members of an enumeration by all of their names, likewise."""
        if info in self._making or not self.is_enumeration(info):
            return None
        return {
            name: self.member(info, name)
            for owner in reversed(self.walk.names.line(info))
            for name, binding in owner.bindings.items()
            if self.is_member(owner, name, binding)
        }

    def is_member(self, owner: ClassInfo, name: str, binding: Binding) -> bool:
        """Return whether what the body of a class binds is a member: functions are none."""
        if not isinstance(binding, Assigned) or _is_reserved(name) or not self.is_enumeration(owner):
            return False
        if _called(owner, binding.value, self.walk) == "enum.nonmember" or name in self._ignored(owner):
            return False
        return not isinstance(self.walk.lookups.constant(owner.module, binding, owner), Function)

    def _ignored(self, owner: ClassInfo) -> Sequence[str]:
        """Return the names in the body of an enumeration that it says are those of no members."""
        match owner.bindings.get("_ignore_"):
            case Assigned() as binding:
                said = self.walk.lookups.constant(owner.module, binding, owner)
                return said.text.split() if said.text else [one.text or "" for one in said.parts()]
        return ()

    def mapping(self, info: ClassInfo) -> Value:
        """Return the members of an enumeration by all of their names: its ``__members__``."""
        named = self._by_name(info)
        return UNKNOWN if named is None else MapValue(tuple((Const.of(n), one) for n, one in named.items()))

    def item(self, info: ClassInfo, name: Value) -> Value:
        """Return the member that has a name, any of them if that is not known."""
        named, texts = self._by_name(info) or {}, texts_of(name)
        found = [one for known, one in named.items() if texts is None or known in texts]
        return join(found) if found else UNKNOWN

    def member(self, info: ClassInfo, name: str) -> EnumMember:
        """Return the member that a name of an enumeration stands for."""
        owner, _ = self.walk.names.attribute(info, name) or (info, None)
        key = self._made_of(info, name).key.as_key()
        for first, binding in owner.bindings.items() if key is not None else ():
            if self.is_member(owner, first, binding) and self._made_of(info, first).key.as_key() == key:
                name = first
                break
        outside = self.walk.names.outside(info)
        # Whether members of `class X(str, Enum)` print as text depends on the version of Python.
        prints, value = bool(outside & PRINTING), self._made_of(info, name).value
        return EnumMember(info, name, value, textual=bool(outside & TEXTUAL), prints_as_value=prints)

    def member_of_value(self, info: ClassInfo, given: Sequence[Value]) -> Value:
        """Return what calling an enumeration returns."""
        members = tuple((self._by_name(info) or {}).values())
        if len(given) != 1 or not members:
            return UNKNOWN
        match given[0]:
            case EnumMember(info=kind) if kind is info:
                return given[0]
        wanted = given[0].as_key()
        for member in members if wanted is not None else ():
            if self._made_of(info, member.name).key.as_key() == wanted:
                return member
        # Any of them, or an error; members of a flag may be combined.
        other = wanted is not None and self.walk.names.method(info, "_missing_") is None
        unknown = other or self.walk.names.outside(info) & FLAGS or given[0].tracked()
        return UNKNOWN if unknown else join(members)

    def own(self, member: EnumMember, name: str) -> Value | None:
        """Return an attribute that a member got when it was made; None if it got none of this name."""
        own = self._made_of(member.info, member.name).own
        if own is None:
            found = self.walk.names.attribute(member.info, name)
            return None if found and not isinstance(found[1], Assigned) else UNKNOWN
        value = own.get(name)
        if value is None or self.walk.shared.is_made_once(member.info, name, value, ("__new__",)):
            return value
        return UNKNOWN

    # How members are made.

    def _made_of(self, info: ClassInfo, name: str) -> _Made:
        """Return what a name of an enumeration stands for."""
        place = (info, name, self.walk.attaching.active)
        if place not in self._made:
            self._made[place] = _Made(UNKNOWN, UNKNOWN, {})  # while it is made
            with changed(self, _making=(*self._making, info)):
                self._made[place] = self._new(info, name)
        return self._made[place]

    def _new(self, info: ClassInfo, name: str) -> _Made:
        owner, binding = self.walk.names.attribute(info, name) or (info, None)
        if not isinstance(binding, Assigned) or binding.value is None:
            return _Made(UNKNOWN, UNKNOWN, {})
        plain = self.walk.lookups.constant(owner.module, binding, owner)
        if _called(owner, binding.value, self.walk) == "enum.auto":
            usual = self.walk.names.method(info, "_generate_next_value_") is None
            lower = usual and "enum.StrEnum" in self.walk.names.outside(info)
            plain = Const.of(name.lower()) if lower else UNKNOWN
        code = self._initialiser(info), self.walk.names.method(info, "__new__")
        if code == (None, None):
            given = self._given(binding.value, plain, State(({},))) or ()
            value = self._data(info, given) if self.walk.names.outside(info) & TEXTUAL else plain
            return _Made(value, value, {})
        context = Context(owner.module, owner=owner, captured=tuple(owner.captured.items()))
        with self.walk.unhurried(), self.walk.apart(context, Diagnostics()):
            try:
                made = list(self._walked(info, name, plain, binding.value)) if self._is_followed(info) else []
            except (TooManyPathsError, RecursionError):
                made = []
        if not made:
            known = UNKNOWN if code[1] is not None else plain
            return _Made(known, known, None)
        owned = [one.own or {} for one in made]
        names = set[str]().union(*owned) - set(GIVEN)
        own = {one: join(each.get(one, UNKNOWN) for each in owned) for one in names}
        return _Made(join(one.value for one in made), join(one.key for one in made), own)

    def _walked(self, info: ClassInfo, name: str, plain: Value, node: cst.BaseExpression) -> list[_Made]:
        """Walk what makes a member, and return what it may be; nothing if that is not followed."""
        found: list[_Made] = []
        new = self.walk.names.method(info, "__new__")
        for before, value in self.walk.expressions.evaluate(node, State(({},))):
            given = self._given(node, plain if value.is_unknown else value, before)
            if given is None:
                return []
            results = self.new(info, (), before)
            if new is not None:
                of = ClassValue(info)
                results = self.walk.functions.call_method(new, of, given, node, before, follow=True)
            for state, member in results:
                if not isinstance(member, ObjectRef) or member.info is not info:
                    return []
                found += self._initialised(member, name, plain, given, node, state)
        return found

    def _given(self, node: cst.BaseExpression, value: Value, state: State) -> tuple[Value, ...] | None:
        """Return what makes a member of a value: the items of a tuple, else itself; None = not known."""
        match node, value:
            case cst.Tuple(), TupleValue():
                return value.values
            case _, MadeObject():
                return value.items(state, self.walk) or (value,)
            case cst.Call(func=function), _ if last_name(function) == "auto":
                return (value,)
            case _, TupleValue() | OneOf() | Unknown() | Lost():
                return None
        return (value,)

    def _initialised(
        self,
        member: ObjectRef,
        name: str,
        plain: Value,
        given: tuple[Value, ...],
        node: cst.BaseExpression,
        state: State,
    ) -> Iterator[_Made]:
        """Yield what a new member may be after its ``__init__``, if it has one."""
        names, kind = self.walk.names, self._initialiser(member.info)
        value, data = self._values(member, plain, given, node, state)
        # Records are equal if they are made of the same.
        key = TupleValue(given) if isinstance(value, MadeObject) else value
        own = {VALUE: value, "value": value, "_name_": Const.of(name), "name": Const.of(name)}
        code = None if kind is None else names.method(kind, "__init__")
        if code in names.assigned_by_methods(member.info, VALUE):
            del own["value"]
        for attribute, one in own.items():
            state = member.with_attribute(attribute, one, state)
        results: Results = [(state, UNKNOWN)]
        if kind is not None:
            results = self.walk.making.initialised(member, kind, Arguments.of(*given), node, state)
        for after, _ in results:
            known = member.attributes(after.heap)
            frozen = {one: self.walk.lookups.freeze(value, after) for one, value in known.items()}
            last = frozen.get(VALUE, UNKNOWN)
            # What it is as a text or number is not always its value.
            yield _Made(last if data in (None, last) else UNKNOWN, key, frozen)

    def _values(
        self,
        member: ObjectRef,
        plain: Value,
        given: tuple[Value, ...],
        node: cst.BaseExpression,
        state: State,
    ) -> tuple[Value, Value | None]:
        """Return the value a new member begins with, and the text or number it is; None if it is none."""
        known, info, kind = member.attributes(state.heap), member.info, self._initialiser(member.info)
        data = known.get(DATA)
        if self.walk.names.method(info, "__new__") is not None:
            mixed = any("__new__" in one.bindings for one in self._mixed(info))
            usual = UNKNOWN if mixed else plain if data is None else data
            return self.walk.lookups.freeze(known.get(VALUE, usual), state), data
        if self.walk.names.outside(info) & TEXTUAL:
            data = self._data(info, given)
            return data, data
        if kind is not None and not self.is_enumeration(kind) and self.walk.making.is_data_class(kind):
            made = self.walk.making.instantiate(kind, Arguments.of(*given), node, state)
            return join(self.walk.lookups.freeze(value, after) for after, value in made), None
        return plain, None

    def _mixed(self, info: ClassInfo) -> list[ClassInfo]:
        """Return the classes of the source that are mixed into an enumeration."""
        return [one for one in self.walk.names.line(info) if not self.is_enumeration(one)]

    def _data(self, info: ClassInfo, given: Sequence[Value]) -> Value:
        """Return the text or number that a member is which is made of these values."""
        if len(given) != 1:
            return UNKNOWN
        return made_of(int if self.walk.names.outside(info) & NUMBERS else str, given[0])

    def new(self, info: ClassInfo, given: Sequence[Value], state: State, kind: type | None = None) -> Results:
        """Return what ``__new__`` of a built-in class does: it makes a member without attributes.

        Args:
            info: The enumeration.
            given: What it is given besides.
            state: The state before.
            kind: Of which text or number the member is one.
        """
        member = ObjectRef(self.walk.allocate(), info)
        data = () if kind is None else ((Slot(DATA), made_of(kind, *given[:1])),)
        return [(state.store(member.number, data), member)]

    def maker(self, info: ClassInfo) -> Value:
        """Return the ``__new__`` that an enumeration has from a class outside of the source tree."""
        mixed = sorted(self.walk.names.outside(info) & {"builtins.int", "builtins.str"})
        return External(f"{mixed[0]}.__new__") if mixed and self.is_enumeration(info) else UNKNOWN

    def is_being_made(self, info: ClassInfo) -> bool:
        """Return whether a member of a class is being made."""
        return info in self._making

    def _initialiser(self, info: ClassInfo) -> ClassInfo | None:
        """Return the class whose ``__init__``, or whose fields, members begin with."""
        for one in self.walk.names.line(info):
            if "__init__" in one.bindings or self.walk.making.is_data_class(one):
                return one
        return None

    def _is_followed(self, info: ClassInfo) -> bool:
        """Return whether everything that happens when a member is made is known."""
        names = self.walk.names
        if self.walk.attributes.method_named(info, ("__getattribute__", "__setattr__")) is not None:
            return False
        known = {f"enum.{name}" for name in (*ENUMERATIONS, "ReprEnum")} | TEXTUAL | PLAIN_BASES
        plain = all(map(self.walk.making.is_plainly_declared, names.line(info)))
        return plain and names.outside(info) <= known


def _called(info: ClassInfo, node: cst.BaseExpression | None, walk: Walk) -> str:
    """Return what an expression in the body of a class calls outside the source tree; "" if nothing."""
    return walk.names.external(info.module, node.func) if type(node) is cst.Call else ""


def made_of(kind: type, value: Value = UNKNOWN) -> Value:
    """Return the text or number that is made of a value."""
    if not isinstance(value, Const) or value.kind is kind:
        return value
    try:
        return from_python(kind(value.value))
    except (TypeError, ValueError, OverflowError):
        return UNKNOWN


def _is_reserved(name: str) -> bool:
    """Return whether a name in the body of an enumeration is that of no member."""
    return name.startswith("__") or (name.startswith("_") and name.endswith("_"))


def _is_combined(value: Value) -> bool:
    """Return whether the value of a flag has not just one bit."""
    _, number = value.python()
    return isinstance(number, int) and number.bit_count() != 1
