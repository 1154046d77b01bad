"""Sleep of threads, fronts, clients and cores in the reference engine."""

from __future__ import annotations

from math import inf

__all__ = ["Levels", "Rest"]


class Rest:
    """How long places have slept: one by one, or all together while none is taken.

    Args:
        one_by_one: Each place sleeps by itself; of the idle ones the last that was taken is taken first.
    """

    def __init__(self, *, one_by_one: bool) -> None:
        self._one_by_one = one_by_one
        self._taken = 0
        self._since = [] if one_by_one else [-inf]

    def take(self, now: float) -> float:
        """A place is taken; return how long it had slept (0 if they sleep together, and others are taken)."""
        self._taken += 1
        if self._one_by_one:
            return now - self._since.pop() if self._since else inf
        return now - self._since[0] if self._taken == 1 else 0.0

    def give(self, now: float) -> None:
        """Note that a place is free again and was not waited for."""
        self._taken -= 1
        if self._one_by_one:
            self._since.append(now)
        elif self._taken == 0:
            self._since[0] = now


class Levels:
    """How long ago as few cores were busy as are now, and one more before."""

    def __init__(self, cores: float) -> None:
        self._cores = cores
        self._busy = 0
        self._falls: dict[int, float] = {}

    def set(self, busy: float, now: float) -> None:
        """So many cores are busy from now on."""
        for level in range(int(busy), self._busy):
            self._falls[level] = now
        self._busy = int(busy)

    def slept(self, now: float, otherwise: float) -> float:
        """Return how long the core has slept that work gets which begins now."""
        if self._cores == inf:
            return otherwise
        return now - self._falls.get(self._busy, -inf) if self._busy < self._cores else 0.0
