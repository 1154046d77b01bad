"""How are the likelihoods compiled? To machine code at the first call, kept on disk where possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

__all__ = ["compiled"]

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile a function of plain arrays and numbers."""
    options: dict[str, Any] = {"error_model": "numpy", "nogil": True}
    try:
        result: F = numba.njit(**options, cache=True)(function)
    except RuntimeError:
        # Nowhere to keep it: neither the installation nor the user's cache directory can be written to.
        result = numba.njit(**options)(function)
    return result
