"""How are the likelihoods compiled? To machine code at the first call, kept on disk where possible."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba

from mup.compiled_cache import Stamp, note_sources, stamp_of

__all__ = ["compiled", "compiled_sums"]

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile a function of plain arrays and numbers."""
    return _compiled(function)


def compiled_sums(function: F) -> F:
    """Compile a function whose sums may be taken in any order: with vector instructions."""
    # Not all that "fast math" allows: numbers that are none, and infinite ones, keep their meaning.
    return _compiled(function, fastmath={"reassoc", "contract"})


def _compiled(function: F, **more: Any) -> F:
    options: dict[str, Any] = {"error_model": "numpy", "nogil": True, **more}
    try:
        result: F = numba.njit(**options, cache=True)(function)
    except RuntimeError:
        # Nowhere to keep it: neither the installation nor the user's cache directory can be written to.
        result = numba.njit(**options)(function)
    else:
        note_sources(result, _stamp())
    return result


@cache
def _stamp() -> Stamp:
    # Compiled functions of one module call those of others.
    return stamp_of(sorted(Path(__file__).parent.glob("*.py")))
