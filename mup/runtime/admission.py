"""Which of the waiting requests gets the next free worker? The one that waits longest, or any of them.

Random order is how processor sharing among threads is approximated by those who have no shares to give: mean
times are those of first come first served where requests are alike, but some wait much longer.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

__all__ = ["InOrder", "InRandomOrder", "Waiting", "waiting_room"]

_T = TypeVar("_T")


class Waiting(Protocol[_T]):
    """The requests that wait for a worker of one replica."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[_T]: ...

    def append(self, item: _T) -> None:
        """Let one more wait."""

    def popleft(self) -> _T:
        """Return the one that is next, removed; there must be one."""

    def clear(self) -> None:
        """Forget all of them."""


class InOrder(deque[_T]):
    """First come first served."""


class InRandomOrder(Generic[_T]):
    """Every waiting request is equally likely to be the next."""

    def __init__(self) -> None:
        self._items: list[_T] = []

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[_T]:
        return iter(self._items)

    def append(self, item: _T) -> None:
        """Let one more wait."""
        self._items.append(item)

    def popleft(self) -> _T:
        """Return any of them, removed."""
        items = self._items
        # Nobody's place matters: the last one takes that of the chosen one.
        chosen = random.randrange(len(items))
        items[chosen], items[-1] = items[-1], items[chosen]
        return items.pop()

    def clear(self) -> None:
        """Forget all of them."""
        self._items.clear()


def waiting_room(admission: str) -> Waiting[_T]:
    """Return an empty queue for an order of ``mup.service.ADMISSIONS``."""
    return InRandomOrder() if admission == "random" else InOrder()
