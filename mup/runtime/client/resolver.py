"""How does a worker that blocks ask the registry? The rules are those of `mup.runtime.client.registry`.

A question that is not answered in time stays open, and its answer is taken when somebody asks the same again.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import Any

from mup.errors import CommunicationError
from mup.runtime.client.registry import OPEN_SECONDS, Ask, Asking, Registry, T
from mup.runtime.client.replicas import CACHE_SECONDS, Answer, ServiceEntry
from mup.runtime.client.reply import BrokenError, RawResponse
from mup.runtime.client.request import Address
from mup.runtime.client.sockets import Connection, ConnectionPool

__all__ = ["Resolver"]


class Resolver(Registry):
    """Finds replicas and databases; every thread of a worker may ask. Arguments as for `Registry`."""

    def __init__(
        self,
        registry: str,
        pool: ConnectionPool,
        *,
        ttl: float = CACHE_SECONDS,
        token: str = "",
        databases: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(registry, pool, ttl=ttl, token=token, databases=databases)
        self._pool = pool

    def find(self, service: str) -> ServiceEntry:
        """Return what is known of a service, asking the registry if that is nothing.

        Raises:
            UnknownServiceError: The registry has never heard of it.
            NoReplicaError: Nothing is known and the registry does not answer.
        """
        return self._services.get(service) or self._carry_out(self._service(service))

    def choose(self, name: str, refused: Collection[Address] = ()) -> Address:
        """Return a live replica of a service, uniformly at random.

        Args:
            name: Of the service.
            refused: Replicas not to choose: they did not accept a connection just now.

        Raises:
            UnknownServiceError: The registry has never heard of it.
            NoReplicaError: There is none, or nothing is known and the registry does not answer.
        """
        entry = self._services.get(name)
        if entry is None or time.monotonic() >= entry.fresh_until:
            entry = self._carry_out(self._service(name))
        address = self._replicas.pick(entry, refused)
        return address or self._replicas.last(name, self._carry_out(self._service(name)), refused)

    def database(self, name: str) -> str:
        """Return the URI of a database; raises as `Registry._database` does."""
        return self._carry_out(self._database(name))

    def _carry_out(self, asking: Asking[T]) -> T:
        """Do what the rules say."""
        try:
            step = next(asking)
            while True:
                value: Any = None
                try:
                    if isinstance(step, Ask):
                        value = self._answer(step)
                    else:
                        time.sleep(max(0.0, step.until - time.monotonic()))
                except (OSError, BrokenError, CommunicationError) as problem:
                    step = asking.throw(problem)
                else:
                    step = asking.send(value)
        except StopIteration as end:
            found: T = end.value
            return found

    def _answer(self, ask: Ask) -> Answer:
        # The thread that takes an open question is the only one to look after it.
        question: tuple[Connection, float] | None = self._open.pop(ask.target, None)
        if question is not None:
            connection, asked = question
            return Answer.of(self._receive(ask, connection, asked, ask.seconds if ask.patient else 0.0))
        try:
            return Answer.of(self._send(ask, fresh=False))
        except TimeoutError:
            raise
        except (OSError, BrokenError):
            # What failed on a kept connection is repeated on a new one: the registry may have been restarted.
            return Answer.of(self._send(ask, fresh=True))

    def _send(self, ask: Ask, *, fresh: bool) -> RawResponse:
        connection = self._pool.take(self._address, ask.seconds, fresh=fresh)
        try:
            connection.send(ask.request, ask.seconds)
        except BaseException:
            connection.close()
            raise
        return self._receive(ask, connection, time.monotonic(), ask.seconds)

    def _receive(self, ask: Ask, connection: Connection, asked: float, seconds: float) -> RawResponse:
        try:
            response = connection.receive(time.monotonic() + seconds)
        except TimeoutError:
            if time.monotonic() - asked < OPEN_SECONDS:
                self._open[ask.target] = connection, asked
            else:
                connection.close()
            raise
        except BaseException:
            connection.close()
            raise
        self._pool.give_back(connection, response)
        return response
