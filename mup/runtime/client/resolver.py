"""Blocking questions to the registry, by the rules of `mup.runtime.client.registry`.

A question that is not answered in time stays open, and its answer is taken when the same is asked again.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Coroutine
from typing import Any, TypeVar

from mup.runtime.client.registry import FIRST_SECONDS, MOMENT, OPEN_SECONDS, Registry
from mup.runtime.client.replicas import Answer, ServiceEntry
from mup.runtime.client.reply import BrokenError
from mup.runtime.client.request import Address, RawRequest
from mup.runtime.client.sockets import Connection, ConnectionPool

__all__ = ["Resolver"]

T = TypeVar("T")


class Resolver(Registry):
    """Finds replicas and databases; every thread of a worker may ask. Arguments as for `Registry`."""

    _idle: ConnectionPool

    def find(self, service: str) -> ServiceEntry:
        """Return what is known of a service, asking the registry if that is nothing.

        Raises:
            UnknownServiceError: The registry has never heard of it.
            NoReplicaError: Nothing is known and the registry does not answer.
        """
        return self._services.get(service) or _done(self._service(service))

    def choose(self, name: str, refused: Collection[Address] = ()) -> Address:
        """Return a live replica of a service; see `Registry._choose`."""
        entry = self._services.get(name)
        if entry is not None and time.monotonic() < entry.fresh_until:
            address = self._replicas.pick(entry, refused)
            if address is not None:
                return address  # as most calls do
        return _done(self._choose(name, refused))

    def database(self, name: str) -> str:
        """Return the URI of a database; see `Registry._database`."""
        return _done(self._database(name))

    async def _confirmed(self, name: str) -> ServiceEntry:
        return await self._service(name)

    async def _pause(self, seconds: float) -> None:
        time.sleep(seconds)  # noqa: ASYNC251 - there is no loop

    async def _exchange(self, request: RawRequest, *, patient: bool) -> Answer:
        seconds = FIRST_SECONDS if patient else MOMENT
        # The thread that takes an open question is the only one to look after it.
        question: tuple[Connection, float] | None = self._open.pop(request.target, None)
        if question is not None:
            return self._receive(request, *question, seconds if patient else 0.0)
        try:
            return self._send(request, seconds, fresh=False)
        except TimeoutError:
            raise
        except (OSError, BrokenError):
            # What failed on a kept connection is repeated on a new one: the registry may have been restarted.
            return self._send(request, seconds, fresh=True)

    def _send(self, request: RawRequest, seconds: float, *, fresh: bool) -> Answer:
        connection = self._idle.take(self._address, seconds, fresh=fresh)
        try:
            connection.send(request, seconds)
        except BaseException:
            connection.close()
            raise
        return self._receive(request, connection, time.monotonic(), seconds)

    def _receive(self, request: RawRequest, connection: Connection, since: float, seconds: float) -> Answer:
        try:
            response = connection.receive(time.monotonic() + seconds)
        except BaseException as problem:
            if isinstance(problem, TimeoutError) and time.monotonic() - since < OPEN_SECONDS:
                self._open[request.target] = connection, since
            else:
                connection.close()
            raise
        self._idle.give_back(connection, response)
        return Answer.of(response)


def _done(work: Coroutine[Any, Any, T]) -> T:
    """Return what a coroutine returns whose steps block."""
    try:
        work.send(None)
    except StopIteration as end:
        found: T = end.value
        return found
    raise AssertionError("a step waits for an event loop")
