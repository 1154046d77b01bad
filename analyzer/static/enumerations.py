"""Members of an enumeration."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from analyzer.static.annotations import FLAGS
from analyzer.static.names import Assigned, ClassInfo
from analyzer.static.values import UNKNOWN, Const, EnumMember, Value, join
from analyzer.static.walk import Part

__all__ = ["Enumerations"]

ENUMERATIONS = {"Enum", "StrEnum", "IntEnum", "Flag", "IntFlag"}

TEXTUAL = {"enum.StrEnum", "enum.IntEnum", "enum.IntFlag", "builtins.str", "builtins.int"}

PRINTING = {"enum.StrEnum", "enum.IntEnum", "enum.IntFlag"}


class Enumerations(Part):
    """Knows the members of enumerations."""

    def is_enumeration(self, info: ClassInfo) -> bool:
        """Return whether a class is an enumeration."""
        return any(one.removeprefix("enum.") in ENUMERATIONS for one in self.walk.names.outside(info))

    def members(self, info: ClassInfo) -> tuple[EnumMember, ...] | None:
        """Return the members of an enumeration in order; None for any other class."""
        if not self.is_enumeration(info):
            return None
        found = [
            self.member(info, name)
            for owner in reversed(self.walk.names.line(info))
            for name, binding in owner.bindings.items()
            if isinstance(binding, Assigned) and not name.startswith("_")
        ]
        # A second name for a value is no member of its own.
        return tuple(dict.fromkeys(found))

    def member(self, info: ClassInfo, name: str) -> EnumMember:
        """Return the member that a name of an enumeration stands for."""
        owner, binding = self.walk.names.attribute(info, name) or (info, Assigned(None))
        assert isinstance(binding, Assigned)  # noqa: S101  (what the callers have seen)
        outside = self.walk.names.outside(info)
        value = self.walk.lookups.constant(owner.module, binding, owner)
        match binding.value:
            case cst.Call(func=func) if self.walk.names.external(owner.module, func) == "enum.auto":
                value = Const.of(name.lower()) if "enum.StrEnum" in outside else UNKNOWN
        if isinstance(value, Const):
            names = (
                first
                for first, other in owner.bindings.items()
                if isinstance(other, Assigned)
                and self.walk.lookups.constant(owner.module, other, owner) == value
                and not first.startswith("_")
            )
            name = next(names, name)
        # Whether members of `class X(str, Enum)` print as text depends on the version of Python.
        prints = bool(outside & PRINTING)
        return EnumMember(info, name, value, textual=bool(outside & TEXTUAL), prints_as_value=prints)

    def member_of_value(self, info: ClassInfo, given: Sequence[Value]) -> Value:
        """Return what calling an enumeration returns."""
        members = self.members(info) or ()
        if len(given) != 1 or not members:
            return UNKNOWN
        match given[0]:
            case Const():
                return next((member for member in members if member.value == given[0]), UNKNOWN)
            case EnumMember(info=kind) if kind is info:
                return given[0]
        # Any of them, or an error; members of a flag may be combined.
        outside = self.walk.names.outside(info)
        return UNKNOWN if outside & FLAGS or given[0].tracked() else join(members)
