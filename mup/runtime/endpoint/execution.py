"""Execution of an endpoint's method: its begin and end are logged, its errors answered."""

from __future__ import annotations

import logging
from asyncio import CancelledError
from types import TracebackType

from mup.errors import CommunicationError, MupError
from mup.events.record import FAILED, Event
from mup.runtime.endpoint.content import BadRequestError
from mup.runtime.endpoint.served_request import ServedRequest
from mup.runtime.process.service_log import CURRENT, InWork, text_of
from mup.runtime.protocol.wire import Request

__all__ = ["Execution", "describe"]

_log = logging.getLogger("mup.runtime")
# Looked up once: an attribute of an enumeration takes as long as half a record.
_BEGIN, _DONE = Event.BEGIN, Event.DONE


class Execution:
    """A context manager: the body of the ``with`` calls the method, and log lines have the request's ids.

    Args:
        service: Name of the service.
        request: Being served.
        comm: What the method gets.

    Attributes:
        failed: Whether it ended with an error; known afterwards.
    """

    __slots__ = ("_comm", "_context", "_request", "_service", "failed")

    def __init__(self, service: str, request: Request, comm: ServedRequest) -> None:
        self._service = service
        self._request = request
        self._comm = comm
        self.failed = False

    def __enter__(self) -> None:
        request = self._request
        self._comm.write(_BEGIN)
        self._context = CURRENT.set(InWork(request.key, request.request, request.trace))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        try:
            return self._end(error)
        finally:
            CURRENT.reset(self._context)

    def _end(self, error: BaseException | None) -> bool:
        """Log and answer how the method has ended; return whether that is all about its error."""
        comm = self._comm
        if error is None and not comm.responded:
            error = MupError(f"endpoint {self._request.key!r} returned without respond()")
        if error is not None:
            # Requests are never cancelled: the endpoint has waited for something that was.
            if not isinstance(error, Exception | SystemExit | CancelledError):
                return False  # the end of the process
            self.failed = True
            comm.write(Event.ERROR, FAILED)
            self._answer(error)
        comm.write(_DONE, FAILED if self.failed else 0)
        return True

    def _answer(self, error: BaseException) -> None:
        if isinstance(error, BadRequestError):
            # Part of it may be what the client sent: no line breaks of its own in the log of a test either.
            reason = "".join(c if c.isprintable() else "?" for c in str(error))
            _log.warning("bad request: %s", reason)
            field = {"field": _sendable(error.field)} if error.field else {}
            self._comm.fail(error.status, _sendable(str(error)), about_input=True, **field)
            return
        _log.error("%s%s failed", self._service, self._request.key, exc_info=error)
        status = error.answer if isinstance(error, CommunicationError) else 500
        self._comm.fail(status, describe(error))


def describe(error: BaseException) -> str:
    """Return what a client is told of an exception."""
    text = text_of(error)
    return _sendable(text if isinstance(error, MupError) else f"{type(error).__name__}: {text}")


def _sendable(text: str) -> str:
    """Return a text that can be sent: part of it may be bytes of a client that are none."""
    return text.encode(errors="replace").decode()
