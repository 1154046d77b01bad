"""How does a blocking worker make a call again? While it waits for the answer: nothing else could.

A call nobody asks for is therefore not repeated.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from mup.errors import CallTimeoutError, CommunicationError
from mup.events.record import FAILED, Event, attempt_flag
from mup.runtime.client.blocking import CallFuture, Operation
from mup.runtime.client.retries import Failure, Retries, failure_of_answer, failure_of_error
from mup.runtime.client.sockets import Connection, ConnectionPool

__all__ = ["RetriedCallFuture"]


class RetriedCallFuture(CallFuture):
    """A call under way that may be made again.

    Args:
        operation: The whole call: what is logged and how long it may take.
        send: Sends attempt number so and so, counted from 0, of which the operation is given.
        pool: Where connections go afterwards.
        retries: Decides.
        service: Name of the service called.
        idempotent: Whether executing the call twice does no harm.
    """

    def __init__(
        self,
        operation: Operation,
        send: Callable[..., Connection],
        pool: ConnectionPool,
        retries: Retries,
        *,
        service: str,
        idempotent: bool,
    ) -> None:
        self._send_attempt = send
        self._retries = retries
        self._service = service
        self._idempotent = idempotent
        self._number = 0
        # When the next attempt is due; None = one is under way, or it was the last.
        self._due: float | None = None
        self._whole = operation
        retries.called(service)
        first = self._operation_of(0)
        try:
            super().__init__(first, partial(send, first, 0), pool)
        except CommunicationError as error:
            self._error = error
            self._due = self._next_due()
            if self._due is None:
                raise
            first.log(Event.CONTACT_DEST, FAILED)
            first.log(Event.COMM_FINISH, FAILED)
        self._operation = operation

    def _receive(self, timeout: float | None) -> int:
        """Read the response of this attempt or of further ones; return the flags of the wait.

        Raises:
            CallTimeoutError: ``timeout`` is over, but not the deadline: the response may still come.
        """
        patience = None if timeout is None else time.monotonic() + timeout
        flags = 0
        while True:
            if self._due is not None:
                self._pause(self._due, patience)
                self._begin()
            if self._connection is not None:
                left = None if patience is None else patience - time.monotonic()
                flags = super()._receive(left)
            self._due = self._next_due()
            if self._due is None:
                return flags

    def _pause(self, due: float, patience: float | None) -> None:
        until = due if patience is None else min(due, patience)
        time.sleep(max(0.0, until - time.monotonic()))
        if until < due:
            raise CallTimeoutError(f"{self._whole.name}: no answer in time; it will be called again")

    def _begin(self) -> None:
        """Make the next attempt."""
        self._number += 1
        self._attempt = attempt = self._operation_of(self._number)
        self._send = partial(self._send_attempt, attempt, self._number)
        attempt.log(Event.COMM_START)
        try:
            self._connection = self._send()
        except CommunicationError as error:
            attempt.log(Event.CONTACT_DEST, FAILED)
            attempt.log(Event.COMM_FINISH, FAILED)
            self._error = error
        else:
            attempt.log(Event.CONTACT_DEST)
            self._sent = time.monotonic()

    def _next_due(self) -> float | None:
        """Return when to try again after what has come of this attempt, and forget that; None = never."""
        failure = self._failure()
        if failure is None:
            return None
        now = time.monotonic()
        pause = self._retries.pause(
            failure,
            name=self._whole.name,
            service=self._service,
            attempt=self._number,
            left=self._whole.deadline - now,
            idempotent=self._idempotent,
        )
        if pause is None:
            return None
        self._response = self._error = None
        self._lost = False
        return now + pause

    def _failure(self) -> Failure | None:
        if self._error is not None:
            return failure_of_error(self._error, lost=self._lost)
        if self._response is None:
            return None
        return failure_of_answer(self._response.status, self._response.headers.get("retry-after"))

    def _operation_of(self, number: int) -> Operation:
        """Return one attempt as an operation of its own, with a deadline of its own."""
        whole = self._whole
        deadline = self._retries.limit(whole.deadline, time.monotonic(), idempotent=self._idempotent)
        mark = attempt_flag(number)

        def log(event: Event, flags: int = 0) -> None:
            whole.log(event, flags | mark)

        return Operation(log, whole.site_of_caller, whole.name, deadline)
