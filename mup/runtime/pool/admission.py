"""Order in which waiting requests get a free worker: by arrival, or at random.

Random order is how processor sharing among threads is approximated by those who have no shares to give: mean
times are those of first come first served where requests are alike, but some wait much longer.
"""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from typing import Generic, Protocol, TypeVar

__all__ = ["InOrder", "InRandomOrder", "Waiting", "waiting_room"]

_T = TypeVar("_T", bound=Hashable)


class Waiting(Protocol[_T]):
    """The requests that wait for a worker of one replica; each can be in it once."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[_T]: ...

    def append(self, item: _T) -> None:
        """Let one more wait."""

    def appendleft(self, item: _T) -> None:
        """Let one wait again that was to be the next."""

    def popleft(self) -> _T:
        """Return the one that is next, removed; there must be one."""

    def remove(self, item: _T) -> None:
        """Forget one that waits: it is not served."""

    def clear(self) -> None:
        """Forget all of them."""


class InOrder(Generic[_T]):
    """First come first served."""

    def __init__(self) -> None:
        # Not a deque: when thousands of clients leave at once, each search in it would take that long.
        self._items: OrderedDict[_T, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[_T]:
        return iter(self._items)

    def append(self, item: _T) -> None:
        """Let one more wait."""
        self._items[item] = None

    def appendleft(self, item: _T) -> None:
        """Let one wait again that was to be the next."""
        self._items[item] = None
        self._items.move_to_end(item, last=False)

    def popleft(self) -> _T:
        """Return the one that waits longest, removed."""
        return self._items.popitem(last=False)[0]

    def remove(self, item: _T) -> None:
        """Forget one that waits."""
        del self._items[item]

    def clear(self) -> None:
        """Forget all of them."""
        self._items.clear()


class InRandomOrder(Generic[_T]):
    """Every waiting request is equally likely to be the next."""

    def __init__(self) -> None:
        self._items: list[_T] = []
        self._places: dict[_T, int] = {}

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[_T]:
        return iter(self._items)

    def append(self, item: _T) -> None:
        """Let one more wait."""
        self._places[item] = len(self._items)
        self._items.append(item)

    appendleft = append

    def popleft(self) -> _T:
        """Return any of them, removed."""
        chosen = self._items[random.randrange(len(self._items))]
        self.remove(chosen)
        return chosen

    def remove(self, item: _T) -> None:
        """Forget one that waits."""
        place, last = self._places.pop(item), self._items.pop()
        if place < len(self._items):
            # The order in the list has no meaning: the last item takes the place of the removed one.
            self._items[place] = last
            self._places[last] = place

    def clear(self) -> None:
        """Forget all of them."""
        self._items.clear()
        self._places.clear()


def waiting_room(admission: str) -> Waiting[_T]:
    """Return an empty queue for an order of ``mup.service.ADMISSIONS``."""
    return InRandomOrder() if admission == "random" else InOrder()
