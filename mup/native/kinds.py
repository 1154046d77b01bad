"""Kinds of values in compiled code: numbers, arrays of them, records of arrays, and pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

__all__ = [
    "BOOL",
    "F64",
    "I64",
    "NOTHING",
    "U64",
    "Array",
    "Kind",
    "Record",
    "Scalar",
    "Tuple",
    "described",
    "merged",
]


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number, a truth value, or nothing at all."""

    name: str

    @property
    def c(self) -> str:
        """Its type in C."""
        return _C[self.name]


@dataclass(frozen=True, slots=True)
class Array:
    """An array in C order.

    Attributes:
        element: Kind of its elements as they lie in memory.
        shape: Lengths that are known beforehand; None where they are not.
    """

    element: str
    shape: tuple[int | None, ...]

    @property
    def c(self) -> str:
        """Its type in C."""
        return f"{self.element}_{len(self.shape)}"

    @property
    def loaded(self) -> Scalar:
        """What an element is once it has been read."""
        return {"f64": F64, "u64": U64}.get(self.element, I64)


@dataclass(frozen=True, slots=True)
class Record:
    """Named fields: a ``NamedTuple`` of arrays, or of such records. Passed by reference."""

    name: str
    fields: tuple[tuple[str, Kind], ...]

    @property
    def c(self) -> str:
        """Its type in C."""
        return f"const {self.name} *"

    def field(self, name: str) -> Kind | None:
        """Return the kind of a field."""
        return dict(self.fields).get(name)


@dataclass(frozen=True, slots=True)
class Tuple:
    """What a function with several results returns."""

    parts: tuple[Kind, ...]

    @property
    def c(self) -> str:
        """Its type in C."""
        return "of_" + "_".join(p.name if isinstance(p, Scalar) else p.c for p in self.parts)


Kind = Scalar | Array | Record | Tuple

I64: Final = Scalar("i64")
U64: Final = Scalar("u64")
F64: Final = Scalar("f64")
BOOL: Final = Scalar("bool")
NOTHING: Final = Scalar("nothing")

_C: Final = {
    "i32": "int32_t",
    "u32": "uint32_t",
    "i64": "int64_t",
    "u64": "uint64_t",
    "f64": "double",
    "bool": "int64_t",
    "nothing": "void",
}
ELEMENTS: Final = ("i32", "u32", "i64", "u64", "f64")


def merged(a: Kind, b: Kind) -> Kind | None:
    """Return the kind that holds values of both, as Python's arithmetic would; None if there is none."""
    if a == b:
        return a
    if isinstance(a, Array) and isinstance(b, Array):
        if a.element != b.element or len(a.shape) != len(b.shape):
            return None
        return Array(a.element, tuple(x if x == y else None for x, y in zip(a.shape, b.shape, strict=True)))
    if isinstance(a, Tuple) and isinstance(b, Tuple) and len(a.parts) == len(b.parts):
        parts = [merged(x, y) for x, y in zip(a.parts, b.parts, strict=True)]
        return None if None in parts else Tuple(tuple(p for p in parts if p is not None))
    order = (BOOL, I64, F64)
    if a in order and b in order:
        return max(a, b, key=order.index)
    return None


def described(kind: Kind) -> Any:
    """Return a kind as JSON."""
    if isinstance(kind, Scalar):
        return kind.name
    if isinstance(kind, Array):
        return {"element": kind.element, "shape": list(kind.shape)}
    if isinstance(kind, Record):
        return {"record": kind.name, "fields": [[n, described(k)] for n, k in kind.fields]}
    return {"parts": [described(p) for p in kind.parts]}
