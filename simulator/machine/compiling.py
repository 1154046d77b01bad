"""How is a function compiled? One decorator, so that all engines agree on the details."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba

from mup.compiled_cache import Stamp, note_sources, stamp_of

__all__ = ["compiled", "inlined", "internal"]

F = TypeVar("F", bound=Callable[..., Any])

_COMPILED = (
    "machine/compiling",
    "machine/compiled/accounts",
    "machine/compiled/interpreter",
    "machine/compiled/parts",
    "machine/compiled/servers",
    "machine/compiled/sleep",
    "machine/compiled/state",
    "machine/compiled/sticky",
    "machine/setups",
    "machine/variates",
    "networks/fluid",
    "networks/inlined_fluid",
    "networks/inlined_process",
    "networks/simulation",
    "program/instructions",
    "program/tables",
)
"""Modules whose functions or constants are compiled into others."""

_SIMULATOR = Path(__file__).parents[1]
_COMMON: dict[str, Any] = {"error_model": "numpy", "_nrt": False}
_OPTIONS: dict[str, Any] = {**_COMMON, "nogil": True}
_INTERNAL: dict[str, Any] = {**_COMMON, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def compiled(function: F) -> F:
    """Compile a function to machine code at its first call and keep the result on disk.

    - ``fastmath`` stays off: the same operations in the same order must give the same bits everywhere.
    - ``error_model="numpy"`` leaves out the check for division by zero.
    - ``_nrt=False``: compiled functions own no arrays, so nobody has to count references to them. That
      makes the interpreter faster; in return they cannot create arrays.
    """
    try:
        result: F = numba.njit(**_OPTIONS, cache=True)(function)
    except RuntimeError:
        # Nowhere to keep it: neither the installation nor the user's cache directory can be written to.
        result = numba.njit(**_OPTIONS)(function)
    else:
        note_sources(result, _stamp())
    return result


def internal(function: F) -> F:
    """Compile a function that only compiled functions call: quicker to compile, unknown to Python."""
    result: F = numba.njit(**_INTERNAL)(function)
    return result


def inlined(function: F) -> F:
    """Compile a function into the compiled ones that call it: for what they do millions of times a second."""
    result: F = numba.njit(**_INTERNAL, forceinline=True)(function)
    return result


@cache
def _stamp() -> Stamp:
    return stamp_of(_SIMULATOR / f"{name}.py" for name in _COMPILED)
