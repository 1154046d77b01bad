"""How does a worker that blocks make a call? It sends in ``call``, and reads, waits and repeats in ``get``.

Each call has a connection of its own: calls run in parallel without any thread. The price is that the arrival
of a reply is only seen in ``get``; a reply that was there before is marked *censored*, because its age is not
known. A call nobody asks for is not made again.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from mup.errors import CallTimeoutError, CommunicationError
from mup.events.record import CENSORED, FAILED, Event
from mup.future import MupFuture
from mup.runtime.client.events import Operation
from mup.runtime.client.exchange import CONNECT_SECONDS, Call, Choose, Pause, Send, StaleError, Step
from mup.runtime.client.reply import BrokenError, RawResponse, call_error
from mup.runtime.client.resolver import Resolver
from mup.runtime.client.sockets import Connection, ConnectionPool

if TYPE_CHECKING:
    from mup.databases.runner import QueryHandle

__all__ = ["CallFuture", "QueryFuture"]


class CallFuture(MupFuture):
    """A call under way.

    Args:
        call: What is to be done.
        resolver: Knows the replicas.
        pool: Connections to them.

    Raises:
        CommunicationError: The request could not be sent.
    """

    def __init__(self, call: Call, resolver: Resolver, pool: ConnectionPool) -> None:
        self._call = call
        self._resolver = resolver
        self._pool = pool
        self._connection: Connection | None = None
        self._steps = call.steps()
        # What the call waits for; None = it is over.
        self._step: Step | None = None
        self._go()
        if self._step is None and call.error is not None:
            raise call.error

    def get(self, timeout: float | None = None, *, check: bool = True) -> Any:
        """Wait for the response; see :meth:`MupFuture.get`."""
        call = self._call
        operation = call.operation
        site = operation.events.site(sys._getframe(1))  # noqa: SLF001 - the only way to see who waits
        operation.wait(Event.WAIT_START, 0, site)
        flags = FAILED
        try:
            flags |= CENSORED if self._step is None else self._wait(timeout)
            if call.error is not None:
                raise call.error
            response = call.response
            assert response is not None  # noqa: S101 - without an error there is a response
            if check and not response.ok:
                raise call_error(operation.name, response.status, response.body)
            flags &= ~FAILED
        finally:
            operation.wait(Event.WAIT_END, flags, site)
        return response.body if check else response

    def abandon(self) -> None:
        """Nobody will ask for the response any more."""
        if self._step is not None:
            self._step = None
            name = self._call.operation.name
            self._call.error = CommunicationError(
                f"{name}: the endpoint that made this call has ended; nobody listens any more"
            )
        if self._connection is not None:
            self._pool.abandon(self._connection, self._call.operation.deadline)
            self._connection = None

    def _go(self, value: RawResponse | None = None, error: Exception | None = None) -> None:
        """Go on to where the call waits for something, or is over."""
        steps = self._steps
        try:
            step = steps.send(value) if error is None else steps.throw(error)
            while True:
                try:
                    if type(step) is Send:
                        result: Any = self._send(step)
                    elif type(step) is Choose:
                        result = self._resolver.choose(self._call.service, step.refused)
                    else:
                        break
                except (CommunicationError, OSError) as problem:
                    step = steps.throw(problem)
                else:
                    step = steps.send(result)
            self._step = step
        except StopIteration:
            self._step = None

    def _send(self, step: Send) -> bool:
        """Send the request; return whether the connection was a kept one.

        Raises:
            OSError: The server cannot be reached.
        """
        call = self._call
        message = call.message
        assert message is not None  # noqa: S101 - a worker that blocks knows what it says
        seconds = call.until - time.monotonic()
        connection = self._pool.take(step.address, min(seconds, CONNECT_SECONDS), fresh=step.fresh)
        try:
            connection.send_data(call.data(connection.start), message.method, seconds)
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
        operation.wait(Event.WAIT_START, 0, site)
        flags = FAILED
        try:
            seconds = max(operation.deadline - time.monotonic(), 0.0)
            documents = self._handle.wait(seconds if timeout is None else min(timeout, seconds))
            flags = 0
        finally:
            operation.wait(Event.WAIT_END, flags, site)
        return documents
