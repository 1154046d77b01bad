"""Idle connections kept for later, per server, the last used first."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterable
from typing import Generic, TypeVar

from mup.runtime.client.reply import RawResponse, ResponseReader
from mup.runtime.client.request import Address, start_of_head

__all__ = ["Idle", "Kept"]

IDLE_SECONDS = 60.0
"""How long an idle connection is kept: longer than users usually think, shorter than servers usually wait."""


class Kept:
    """A connection of either shell, which carries one request at a time.

    Args:
        address: Of the server.

    Attributes:
        address: Of the server.
        start: What `start_of_head` says of it.
        used: Whether it has carried a request before this one.
        since: When it became idle, in seconds of the monotonic clock.
    """

    def __init__(self, address: Address) -> None:
        self.address = address
        self.start = start_of_head(address)
        self.used = False
        self.since = 0.0
        self._reader = ResponseReader()

    @property
    @abstractmethod
    def over(self) -> bool:
        """Whether it cannot carry another request: it was closed, or has received unexpected bytes."""

    @abstractmethod
    def close(self) -> None:
        """Close it."""


C = TypeVar("C", bound=Kept)


class Idle(Generic[C]):
    """Idle connections; safe for use by several threads."""

    def __init__(self) -> None:
        self._idle: defaultdict[Address, list[C]] = defaultdict(list)

    def take_idle(self, address: Address) -> C | None:
        """Return a connection that is not in use; None = there is none."""
        idle = self._idle.get(address)
        while idle:
            try:
                connection = idle.pop()
            except IndexError:
                break  # another thread has taken it
            if time.monotonic() - connection.since < IDLE_SECONDS and not connection.over:
                return connection
            connection.close()
        return None

    def give_back(self, connection: C, response: RawResponse) -> None:
        """Keep a connection whose response has been read, if it can be used again."""
        if response.keep:
            connection.since = time.monotonic()
            self._idle[connection.address].append(connection)
        else:
            connection.close()

    def forget(self, address: Address) -> None:
        """Close the idle connections to a server that has just closed another one under our hands."""
        for connection in self._idle.pop(address, []):
            connection.close()

    def tidy(self, gone: Iterable[Address]) -> None:
        """Close the idle connections to servers that are gone, and those that other servers have closed."""
        for address in gone:
            self.forget(address)
        for idle in list(self._idle.values()):
            for _ in range(len(idle)):
                try:
                    connection = idle.pop(0)
                except IndexError:
                    break  # another thread has taken it
                if connection.over:
                    connection.close()
                else:
                    idle.append(connection)

    def close_idle(self) -> None:
        """Close all of them."""
        for address in list(self._idle):
            self.forget(address)
