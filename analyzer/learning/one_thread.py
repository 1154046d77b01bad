"""Linear algebra of learning on one thread.

Its matrices are small or thin. BLAS would share their products among all cores, and its threads wait for the
next one busily: that takes processor time from others and gains none.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from threadpoolctl import threadpool_limits

__all__ = ["on_one_thread"]

P = ParamSpec("P")
R = TypeVar("R")


def on_one_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Let BLAS use one thread while the function runs, and as many as before afterwards."""

    @functools.wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        with threadpool_limits(limits=1, user_api="blas"):
            return function(*args, **kwargs)

    return limited
