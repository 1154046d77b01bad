"""How is a function compiled? One decorator, so that all engines agree on the details."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

__all__ = ["compiled", "inlined"]

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS: dict[str, Any] = {"cache": True, "error_model": "numpy", "nogil": True, "_nrt": False}


def compiled(function: F) -> F:
    """Compile a function to machine code at its first call and keep the result on disk.

    - ``fastmath`` stays off: the same operations in the same order must give the same bits everywhere.
    - ``error_model="numpy"`` leaves out the check for division by zero.
    - ``_nrt=False``: compiled functions own no arrays, so nobody has to count references to them. That
      makes the interpreter faster; in return they cannot create arrays.
    """
    result: F = numba.njit(**_OPTIONS)(function)
    return result


def inlined(function: F) -> F:
    """Compile a function into those that call it: for what is small and called millions of times a second."""
    result: F = numba.njit(**_OPTIONS, forceinline=True)(function)
    return result
