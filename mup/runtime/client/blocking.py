"""Calls of a blocking worker: sent in ``call``; read, waited for and repeated in ``get``.

Each call has a connection of its own: calls run in parallel without any thread. The price is that the arrival
of a reply is only seen in ``get``; a reply that was there before is marked *censored*, because its age is not
known. A call whose result is not asked for is not repeated.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from mup.errors import CallTimeoutError, CommunicationError
from mup.events.record import CENSORED
from mup.future import MupFuture
from mup.runtime.client.events import Operation, Waiting
from mup.runtime.client.exchange import (
    CONNECT_SECONDS,
    WAITS,
    Call,
    CallUnderWay,
    Choose,
    Locate,
    Pause,
    Send,
    StaleError,
    Step,
)
from mup.runtime.client.reply import BrokenError
from mup.runtime.client.resolver import Resolver
from mup.runtime.client.sockets import Connection, ConnectionPool

if TYPE_CHECKING:
    from mup.databases.runner import QueryHandle

__all__ = ["CallFuture", "QueryFuture"]


class CallFuture(CallUnderWay):
    """A call of a worker that blocks.

    Args:
        call: What is to be done.
        resolver: Knows the replicas.
        pool: Connections to them.

    Raises:
        UsageError: It cannot be sent, or does not fit the endpoint.
        CommunicationError: The request could not be sent.
    """

    def __init__(self, call: Call, resolver: Resolver, pool: ConnectionPool) -> None:
        self._resolver = resolver
        self._pool = pool
        self._connection: Connection | None = None
        # Why nothing is known of the service.
        self._problem: CommunicationError | None = None
        service = None
        try:
            # Before the call is logged: by the name its endpoint has.
            service = resolver.find(call.service)
        except CommunicationError as problem:
            self._problem = problem
        super().__init__(call, service)

    def get(self, timeout: float | None = None, *, check: bool = True) -> Any:
        """Wait for the response; see :meth:`MupFuture.get`."""
        operation = self._call.operation
        site = operation.events.site(sys._getframe(1))  # noqa: SLF001 - the only way to see who waits
        with Waiting(operation, site) as wait:
            wait.flags = CENSORED if self._step is None else self._wait(timeout)
            return self._call.result(check=check)

    def abandon(self) -> None:
        """Give up the response: it will not be asked for any more."""
        if self._step is not None:
            self._step = None
            name = self._call.operation.name
            self._call.error = CommunicationError(
                f"{name}: the endpoint that made this call has ended, so the response is not received"
            )
        if self._connection is not None:
            self._pool.abandon(self._connection, self._call.operation.deadline)
            self._connection = None

    def _do(self, step: Step) -> Any:
        if isinstance(step, Send):
            return self._send(step)
        if isinstance(step, Choose):
            return self._resolver.choose(self._call.service, step.refused)
        if isinstance(step, Locate):
            if self._problem is not None:
                problem, self._problem = self._problem, None
                raise problem
            self._call.say(self._resolver.find(self._call.service))
            return None
        return WAITS

    def _send(self, step: Send) -> bool:
        """Send the request; return whether the connection was a kept one.

        Raises:
            OSError: The server cannot be reached.
        """
        call = self._call
        seconds = call.until - time.monotonic()
        connection = self._pool.take(step.address, min(seconds, CONNECT_SECONDS), fresh=step.fresh)
        try:
            connection.send_data(*call.data(connection.start), seconds)
        except BaseException as error:
            connection.close()
            if connection.used and isinstance(error, OSError) and not isinstance(error, TimeoutError):
                raise StaleError from error
            raise
        self._connection = connection
        return connection.used

    def _wait(self, timeout: float | None) -> int:
        """Wait until the call is over; return the flags of the wait.

        Raises:
            CallTimeoutError: ``timeout`` is over, but not the deadline: the response may still come.
        """
        patience = None if timeout is None else time.monotonic() + timeout
        flags = 0
        while self._step is not None:
            if isinstance(self._step, Pause):
                self._pause(self._step.until, patience)
                self._go()
            else:
                flags = self._receive(patience)
        return flags

    def _receive(self, patience: float | None) -> int:
        call, connection = self._call, self._connection
        assert connection is not None  # noqa: S101 - the request has been sent
        call.flags = flags = CENSORED if connection.readable() else 0
        limit = call.until if patience is None else min(call.until, patience)
        try:
            raw = connection.receive(limit)
        except (TimeoutError, BrokenError) as problem:
            if isinstance(problem, TimeoutError) and limit < call.until:
                waited = time.monotonic() - call.sent
                raise CallTimeoutError(f"{call.operation.name}: no answer within {waited:.3g} s") from None
            connection.close()
            self._connection = None
            self._go(error=problem)
        else:
            self._pool.give_back(connection, raw)
            self._connection = None
            self._go(raw)
        return flags

    def _pause(self, due: float, patience: float | None) -> None:
        until = due if patience is None else min(due, patience)
        time.sleep(max(0.0, until - time.monotonic()))
        if until < due:
            raise CallTimeoutError(f"{self._call.operation.name}: no answer in time; it will be called again")


class QueryFuture(MupFuture):
    """A query under way on an auxiliary thread."""

    def __init__(self, operation: Operation, handle: QueryHandle) -> None:
        self._operation = operation
        self._handle = handle

    def get(self, timeout: float | None = None, *, check: bool = True) -> Any:  # noqa: ARG002 - as for calls
        """Wait for the documents; see :meth:`MupFuture.get`."""
        operation = self._operation
        site = operation.events.site(sys._getframe(1))  # noqa: SLF001 - the only way to see who waits
        with Waiting(operation, site):
            seconds = max(operation.deadline - time.monotonic(), 0.0)
            return self._handle.wait(seconds if timeout is None else min(timeout, seconds))
