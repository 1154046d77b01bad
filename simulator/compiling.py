"""How is a function compiled? One decorator, so that all engines agree on the details."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba

__all__ = ["compiled", "inlined"]

F = TypeVar("F", bound=Callable[..., Any])

_COMPILED = (
    "compiling",
    "engine_parts",
    "engine_servers",
    "engine_state",
    "interpreter",
    "program",
    "variates",
)
"""Modules whose functions or constants are compiled into others."""

_OPTIONS: dict[str, Any] = {"cache": True, "error_model": "numpy", "nogil": True, "_nrt": False}


def compiled(function: F) -> F:
    """Compile a function to machine code at its first call and keep the result on disk.

    - ``fastmath`` stays off: the same operations in the same order must give the same bits everywhere.
    - ``error_model="numpy"`` leaves out the check for division by zero.
    - ``_nrt=False``: compiled functions own no arrays, so nobody has to count references to them. That
      makes the interpreter faster; in return they cannot create arrays.
    """
    result: F = _fresh(numba.njit(**_OPTIONS)(function))
    return result


def inlined(function: F) -> F:
    """Compile a function into those that call it: for what is small and called millions of times a second."""
    result: F = _fresh(numba.njit(**_OPTIONS, forceinline=True)(function))
    return result


def _fresh(dispatcher: Any) -> Any:
    """Let what is kept on disk be valid only as long as no source that could be part of it has changed.

    Left to itself numba looks at the file of the function alone, not at what is compiled into it.
    """
    dispatcher._cache._cache_file._source_stamp = _stamp()  # noqa: SLF001 - there is no public way
    return dispatcher


@cache
def _stamp() -> tuple[tuple[int, int], ...]:
    files = [Path(__file__).with_name(f"{name}.py").stat() for name in _COMPILED]
    return tuple((file.st_mtime_ns, file.st_size) for file in files)
