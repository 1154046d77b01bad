"""Call compiled functions from Python, by the kinds that their annotations say.

Functions with these decorators are compiled when mup is installed, or by the first command that needs them:

- ``compiled``: Python calls it; its arguments say of which kind they are (``mup.native.shapes``);
- ``compiled_sums``: the same, and sums in it may be taken in any order, with vector instructions;
- ``internal``: only compiled functions call it;
- ``inlined``: it becomes part of the compiled functions that call it, as what they do millions of times a
  second should.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import weakref
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from mup.native.libraries import LIBRARIES, Library

__all__ = ["called", "compiled", "compiled_sums", "held", "inlined", "internal"]

F = TypeVar("F", bound=Callable[..., Any])

_NUMBERS: Final[dict[str, Any]] = {
    "i64": ctypes.c_int64,
    "u64": ctypes.c_uint64,
    "f64": ctypes.c_double,
    "bool": ctypes.c_int64,
    "nothing": None,
}

_ORDER: Final = "<" if sys.byteorder == "little" else ">"
_ELEMENTS: Final = {"i32": "i4", "u32": "u4", "i64": "i8", "u64": "u8", "f64": "f8"}


def compiled(function: F) -> F:
    """Let calls of a function be those of its machine code."""
    bound: list[Callable[..., Any]] = []

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        if not bound:
            bound.append(_bound(function))
        return bound[0](*arguments)

    return call  # type: ignore[return-value]


compiled_sums = compiled


def internal(function: F) -> F:
    """Mark a function that only compiled functions call."""
    return function


def inlined(function: F) -> F:
    """Mark a function that is to become part of the compiled functions that call it."""
    return function


R = TypeVar("R")


class _Held:
    """A record that is passed again and again: what compiled code knows it by is found out once."""

    __slots__ = ("block", "record")

    def __init__(self, record: Any) -> None:
        self.record, self.block = record, None


def held(record: R) -> R:
    """Return a record for compiled functions alone, which is quicker to pass more than once.

    Its arrays must not be exchanged, nor change their size.
    """
    return _Held(record)  # type: ignore[return-value]


def _library(module: str) -> Library:
    return next(library for library in LIBRARIES if module in library.modules)


def _bound(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return what calls a function's machine code."""
    from mup.native.loading import loaded  # noqa: PLC0415 - a program that calls nothing loads nothing

    return called(f"{function.__module__}.{function.__name__}", *loaded(_library(function.__module__)))


def called(name: str, library: ctypes.CDLL, manifest: Mapping[str, Any]) -> Callable[..., Any]:
    """Return what calls a function of a library.

    Args:
        name: With its module's.
        library: Where its machine code is.
        manifest: What the functions of the library take and return.
    """
    spec = manifest[name]
    code = getattr(library, spec["symbol"])
    code.argtypes = [_NUMBERS[kind] if isinstance(kind, str) else ctypes.c_void_p for kind in spec["takes"]]
    finish: Callable[[Any], Any] | None = None
    if isinstance(spec["returns"], str):
        code.restype = _NUMBERS[spec["returns"]]
        finish = bool if spec["returns"] == "bool" else None
    else:
        parts = spec["returns"]["parts"]
        fields = [(f"e{i}", _NUMBERS[part]) for i, part in enumerate(parts)]
        code.restype = type("Results", (ctypes.Structure,), {"_fields_": fields})
        names = [field for field, _ in fields]
        if len(names) == 2:
            finish = _pair
        else:

            def finish(result: Any) -> tuple[Any, ...]:
                return tuple(getattr(result, one) for one in names)

    places = [
        (at, _describer(name, at, kind)) for at, kind in enumerate(spec["takes"]) if not isinstance(kind, str)
    ]

    def call(*arguments: Any) -> Any:
        passed, alive = list(arguments), []
        for at, describe in places:
            block = describe(passed[at])
            alive.append(block)
            passed[at] = ctypes.addressof(block)
        result = code(*passed)
        return result if finish is None else finish(result)

    def direct(*arguments: Any) -> Any:
        return finish(code(*arguments))  # type: ignore[misc]

    if not places:
        return code if finish is None else direct
    return call


def _pair(result: Any) -> tuple[Any, Any]:
    return result.e0, result.e1


def _describer(name: str, at: int, kind: Any) -> Callable[[Any], Any]:
    """Return what turns an argument into the numbers that compiled code knows it by."""
    if "element" in kind:
        return _array_describer(f"{name}: argument {at + 1}", kind)
    slots = _slots(kind)

    def describe(record: Any) -> Any:
        if type(record) is not _Held:
            record = _Held(record)
        if record.block is None:
            numbers: list[int] = []
            _flatten(f"{name}: argument {at + 1}", kind, record.record, numbers)
            record.block = (ctypes.c_int64 * slots)(*numbers)
        return record.block

    return describe


def _slots(kind: Any) -> int:
    if "element" in kind:
        return 1 + len(kind["shape"])
    return sum(_slots(field) for _, field in kind["fields"])


def _flatten(where: str, kind: Any, record: Any, numbers: list[int]) -> None:
    """Append the addresses and lengths of all arrays of a record, in the order of its fields."""
    for value, (name, field) in zip(record, kind["fields"], strict=True):
        if "element" in field:
            _append(where, name, field, value, numbers)
        else:
            _flatten(where, field, value, numbers)


def _append(where: str, name: str, kind: Any, array: Any, numbers: list[int]) -> None:
    shape, known = array.shape, kind["shape"]
    fits = len(shape) == len(known) and all(k is None or k == n for k, n in zip(known, shape, strict=True))
    element = kind["element"]
    if not fits or array.dtype.str != _ORDER + _ELEMENTS[element] or not array.flags.c_contiguous:
        lengths = ", ".join("any" if k is None else str(k) for k in known)
        raise TypeError(
            f"{where}{f', {name}' if name else ''}: compiled code takes arrays of {element} "
            f"in C order, of shape ({lengths}), not {array.dtype.name} {shape}"
        )
    numbers.append(array.__array_interface__["data"][0])
    numbers.extend(shape)


def _array_describer(where: str, kind: Any) -> Callable[[Any], Any]:
    slots = _slots(kind)
    # Some functions are called with the same array again and again.
    last: list[tuple[Callable[[], Any], Any]] = [(lambda: None, None)]

    def describe(array: Any) -> Any:
        known, block = last[0]
        if known() is array:
            return block
        numbers: list[int] = []
        _append(where, "", kind, array, numbers)
        block = (ctypes.c_int64 * slots)(*numbers)
        last[0] = (weakref.ref(array), block)
        return block

    return describe
