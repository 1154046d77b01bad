"""What happens between a blocking ``call`` or ``query`` and its ``get``?

A call is sent when it is made and read when it is asked for, on a connection of its own: calls run in
parallel without any thread. The price is that the arrival of a reply is only seen in ``get``; a reply that
was there before is marked *censored*, because its age is not known.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mup.errors import BrokenCallError, CallTimeoutError, CommunicationError
from mup.events.record import CENSORED, FAILED, Event
from mup.future import MupFuture, Response
from mup.runtime.client.reply import BrokenError, RawResponse, call_error, decode_body
from mup.runtime.client.request import Address, RawRequest
from mup.runtime.client.resolver import Resolver
from mup.runtime.client.sockets import Connection, ConnectionPool

if TYPE_CHECKING:
    from mup.databases.runner import QueryHandle

__all__ = ["CONNECT_SECONDS", "CallFuture", "Operation", "QueryFuture", "connect_and_send"]

_RETRY_SECONDS = 0.05
"""A kept connection that ends this soon after the request, without a byte, was closed while it was idle."""

CONNECT_SECONDS = 2.0
"""How long a call tries to connect to one replica. A machine that is gone does not even refuse."""

_log = logging.getLogger("mup.runtime")
_REFUSED = "x-mup-refused"
_ELSEWHERE = ("draining", "no_worker")
"""Why a replica refuses what another one may serve at once."""

Log = Callable[..., None]


@dataclass(slots=True)
class Operation:
    """One remote operation of an execution, as far as the event log is concerned.

    Attributes:
        log: Writes a record of this operation: ``log(event, flags=0, site=None)``.
        site_of_caller: Returns the site of the code that called the caller of the given depth.
        name: Destination: ``B/epB/`` or ``db.qry``.
        deadline: Seconds of the monotonic clock.
    """

    log: Log
    site_of_caller: Callable[[Any], int]
    name: str
    deadline: float

    def remaining(self) -> float:
        """Return the seconds until the deadline.

        Raises:
            CallTimeoutError: There are none.
        """
        seconds = self.deadline - time.monotonic()
        if seconds <= 0:
            raise CallTimeoutError(f"no time left for {self.name}: its deadline has passed")
        return seconds


def connect_and_send(
    operation: Operation,
    service: str,
    request_with: Callable[[float], RawRequest],
    resolver: Resolver,
    pool: ConnectionPool,
    first: Address | None = None,
    without: Address | None = None,
) -> Connection:
    """Send a request to a random live replica; one that cannot be reached is replaced by another at once.

    That repeats nothing: a request that could not be sent has not been executed.

    Args:
        operation: What is logged and how long it may take.
        service: Name of the service called.
        request_with: Returns the request to send with so many seconds left.
        resolver: Knows the replicas.
        pool: Connections to use.
        first: Replica to try first; None = any.
        without: Replica that has refused the request already.

    Raises:
        UnknownServiceError: No such service.
        NoReplicaError: No live replica accepted the request.
        CallTimeoutError: The deadline has passed.
    """
    refused: list[Address] = [] if without is None else [without]
    while True:
        address = first if first and not refused else resolver.choose(service, refused)
        try:
            return _send_to(address, operation, request_with, pool)
        except OSError as error:
            host, port = address
            if isinstance(error, TimeoutError) and operation.deadline <= time.monotonic():
                raise CallTimeoutError(f"{operation.name}: no connection to {host}:{port} in time") from error
            _log.warning("%s: %s:%d cannot be reached: %s", operation.name, host, port, error)
            resolver.drop(service, address)
            refused.append(address)


def _send_to(
    address: Address,
    operation: Operation,
    request_with: Callable[[float], RawRequest],
    pool: ConnectionPool,
) -> Connection:
    """Send a request on a kept connection, or on a fresh one if the server has just closed it.

    Raises:
        OSError: The server cannot be reached.
        CallTimeoutError: The deadline has passed.
        CommunicationError: The request cannot be sent to anybody.
    """
    for fresh in (False, True):
        seconds = operation.remaining()
        connection = pool.take(address, min(seconds, CONNECT_SECONDS), fresh=fresh)
        try:
            connection.send(request_with(seconds), seconds)
            return connection
        except BaseException as error:
            connection.close()
            # A request that could not even be sent has not been executed: safe to repeat.
            broke = isinstance(error, OSError) and not isinstance(error, TimeoutError)
            if not (broke and connection.used):
                raise
    raise ConnectionResetError("the connection broke while the request was sent")


class CallFuture(MupFuture):
    """A call under way on a connection of its own.

    Args:
        operation: What is logged and how long it may take.
        send: ``connect_and_send``, except for its last two arguments.
        pool: Where the connection goes afterwards.
    """

    def __init__(
        self,
        operation: Operation,
        send: Callable[..., Connection],
        pool: ConnectionPool,
    ) -> None:
        self._operation = self._attempt = operation
        self._send = send
        self._pool = pool
        self._connection: Connection | None = None
        self._response: Response | None = None
        self._error: CommunicationError | None = None
        self._lost = False
        self._connection = send()
        operation.log(Event.CONTACT_DEST)
        self._sent = time.monotonic()

    def get(self, timeout: float | None = None, *, check: bool = True) -> Any:
        """Wait for the response; see :meth:`MupFuture.get`."""
        operation = self._operation
        site = operation.site_of_caller(sys._getframe(1))  # noqa: SLF001 - the only way to see who waits
        operation.log(Event.WAIT_START, 0, site)
        flags = FAILED
        try:
            if self._response is None and self._error is None:
                flags |= self._receive(timeout)
            else:
                flags |= CENSORED
            if self._error is not None:
                raise self._error
            assert self._response is not None  # noqa: S101 - without an error there is a response
            if check and not self._response.ok:
                raise call_error(operation.name, self._response.status, self._response.body)
            flags &= ~FAILED
        finally:
            operation.log(Event.WAIT_END, flags, site)
        return self._response.body if check else self._response

    def abandon(self) -> None:
        """Nobody will ask for the response any more."""
        if self._connection is not None:
            self._pool.abandon(self._connection, self._operation.deadline)
            self._connection = None
            self._error = CommunicationError(
                f"{self._operation.name}: the endpoint that made this call has ended; nobody listens any more"
            )

    def _receive(self, timeout: float | None) -> int:
        """Read the response, or learn that there will be none; return the flags of the wait.

        Raises:
            CallTimeoutError: ``timeout`` is over, but not the deadline: the response may still come.
        """
        assert self._connection is not None  # noqa: S101 - by the caller
        operation = self._attempt
        flags = CENSORED if self._connection.readable() else 0
        limit = operation.deadline if timeout is None else min(operation.deadline, time.monotonic() + timeout)
        try:
            raw = self._elsewhere(self._read(limit), limit)
        except TimeoutError:
            waited = time.monotonic() - self._sent
            error = CallTimeoutError(f"{operation.name}: no answer within {waited:.3g} s")
            if limit < operation.deadline:
                raise error from None
            self._lost = True
            self._fail(error)
        except BrokenError as problem:
            self._lost = True
            self._fail(BrokenCallError(f"{operation.name}: {problem}"))
        except CommunicationError as problem:
            self._fail(problem)
        else:
            operation.log(Event.COMM_FINISH, flags)
            self._pool.give_back(self._connection, raw)
            self._connection = None
            self._finish(raw)
        return flags

    def _read(self, limit: float) -> RawResponse:
        assert self._connection is not None  # noqa: S101 - by the caller
        connection = self._connection
        try:
            return connection.receive(limit)
        except BrokenError as problem:
            soon = time.monotonic() - self._sent < _RETRY_SECONDS
            if not (connection.used and problem.empty and soon):
                raise
        # The request crossed the server's decision to close an idle connection: it was not executed.
        connection.close()
        self._pool.forget(connection.address)
        self._connection = self._send(first=connection.address)
        return self._connection.receive(limit)

    def _elsewhere(self, raw: RawResponse, limit: float) -> RawResponse:
        """Return the response of another replica if this one serves nobody and has not done anything."""
        if raw.status != 503 or raw.headers.get(_REFUSED) not in _ELSEWHERE:
            return raw
        assert self._connection is not None  # noqa: S101 - the response came on it
        address = self._connection.address
        self._pool.forget(address)
        # A replica that was reloaded has a successor on its port, which new connections reach.
        for place in ({"without": address}, {"first": address}):
            try:
                other = self._send(**place)
            except (CommunicationError, OSError):
                continue
            self._connection.close()
            self._connection = other
            return other.receive(limit)
        return raw  # there is no other one

    def _fail(self, error: CommunicationError) -> None:
        self._attempt.log(Event.COMM_FINISH, FAILED)
        self._error = error
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _finish(self, raw: RawResponse) -> None:
        try:
            self._response = Response(
                raw.status, raw.headers, decode_body(raw.body, raw.headers.get("content-type", ""))
            )
        except ValueError as problem:
            self._error = CommunicationError(f"{self._operation.name}: the body of the response: {problem}")


class QueryFuture(MupFuture):
    """A query under way on an auxiliary thread."""

    def __init__(self, operation: Operation, handle: QueryHandle) -> None:
        self._operation = operation
        self._handle = handle

    def get(self, timeout: float | None = None, *, check: bool = True) -> Any:  # noqa: ARG002 - as for calls
        """Wait for the documents; see :meth:`MupFuture.get`."""
        operation = self._operation
        site = operation.site_of_caller(sys._getframe(1))  # noqa: SLF001 - the only way to see who waits
        operation.log(Event.WAIT_START, 0, site)
        flags = FAILED
        try:
            seconds = max(operation.deadline - time.monotonic(), 0.0)
            documents = self._handle.wait(seconds if timeout is None else min(timeout, seconds))
            flags = 0
        finally:
            operation.log(Event.WAIT_END, flags, site)
        return documents
