"""How do requests get from the network to idle workers, and answers back? One event loop per replica.

Admission is first come first served: a request goes to an idle worker or to the end of one queue. A worker is
held from there until its endpoint method has returned, which may be long after the response.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast
from urllib.parse import unquote

import msgspec
from aiohttp import hdrs
from aiohttp.http_parser import RawRequestMessage
from aiohttp.streams import StreamReader
from aiohttp.web_exceptions import HTTPRequestEntityTooLarge
from aiohttp.web_protocol import RequestHandler
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response, StreamResponse
from aiohttp.web_server import Server
from multidict import CIMultiDict, istr

from mup.events.ids import new_id
from mup.events.record import QUEUED, Event
from mup.events.writer import EventWriter
from mup.routes import pick
from mup.runtime.refusals import failure, no_endpoint, wrong_method
from mup.runtime.tracing import trace_id, valid
from mup.runtime.wire import Answer, Done, FrameBuffer, FromWorker, Ready, Request, frame
from mup.runtime.worker import ServiceRun

if TYPE_CHECKING:
    from mup.runtime.static_files import StaticFiles

__all__ = ["MAX_BODY", "Front", "WorkerLink"]

MAX_BODY = 16 * 2**20
"""Bytes a request body may have when nobody says otherwise."""

_log = logging.getLogger("mup.runtime")
_decode = msgspec.msgpack.Decoder(FromWorker).decode

_REQUEST = istr("X-Mup-Request")
_TRACE = istr("X-Mup-Trace")
_DEADLINE = istr("X-Mup-Deadline")
_TRACEPARENT = istr("traceparent")


@dataclass(slots=True, eq=False)
class _Ticket:
    """A request on its way through the replica."""

    request: int
    data: bytes
    answer: asyncio.Future[Answer]


class WorkerLink(asyncio.Protocol):
    """The front's end of the socket pair to one worker.

    Attributes:
        number: Of the worker in the replica, from 0.
        pid: Process id of the worker.
        ready: Result: "" once the worker has been set up, else why it could not be.
        ticket: The request in work.
        lost: Whether the worker has gone.
    """

    def __init__(self, number: int, pid: int, loop: asyncio.AbstractEventLoop) -> None:
        self.number = number
        self.pid = pid
        self.ready: asyncio.Future[str] = loop.create_future()
        self.ticket: _Ticket | None = None
        self.lost = False
        self.started = time.monotonic()
        self.on_done: Callable[[WorkerLink, bool], None] = lambda _link, _failed: None
        self.on_lost: Callable[[WorkerLink], None] = lambda _link: None
        self._frames = FrameBuffer()
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember where to write."""
        # A cast: the transports of uvloop are not subclasses of asyncio's.
        self._transport = cast("asyncio.WriteTransport", transport)

    def data_received(self, data: bytes) -> None:
        """Act on what the worker says."""
        for content in self._frames.feed(data):
            message: Ready | Answer | Done = _decode(content)
            if isinstance(message, Answer):
                if self.ticket is not None and not self.ticket.answer.done():
                    self.ticket.answer.set_result(message)
            elif isinstance(message, Done):
                self.on_done(self, message.failed)
            elif not self.ready.done():
                self.ready.set_result(message.error)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - how it ended does not matter
        """The worker process has ended."""
        self.lost = True
        if not self.ready.done():
            self.ready.set_result("the worker process died during its setup")
        self.on_lost(self)

    def assign(self, ticket: _Ticket) -> None:
        """Hand a request to the worker."""
        assert self._transport is not None  # noqa: S101 - a link is used once it is connected
        self.ticket = ticket
        self._transport.write(ticket.data)

    def end(self) -> None:
        """Tell the worker to finish."""
        if self._transport is not None:
            self._transport.close()


class Front:
    """Queue, workers and HTTP server of one replica.

    Args:
        run: What the replica serves.
        pool_size: Number of workers.
        writer: Event log of the front, or None.
        max_body: Bytes a request body may have.
        static: Files to serve, or None.

    Attributes:
        workers: The ones that are set up, by number.
        draining: Whether the replica is about to stop: it finishes what it has and wants nothing new.
        url, pid: What ``/mup/status`` says of this replica.
    """

    def __init__(
        self,
        run: ServiceRun,
        pool_size: int,
        writer: EventWriter | None,
        max_body: int,
        static: StaticFiles | None = None,
    ) -> None:
        self._run = run
        self._static = static
        self._pool_size = pool_size
        self._writer = writer
        self._max_body = max_body
        self._loop = asyncio.get_running_loop()
        self._names = {
            key: writer.name(f"{run.service}{key}") if writer else 0 for key in run.dispatch.endpoints
        }
        self._find = run.dispatch.routes.find
        # The worker used last has the warmest caches: a stack, not a queue.
        self._idle: list[WorkerLink] = []
        self._waiting: deque[_Ticket] = deque()
        self._busy = 0
        self._served = 0
        self._errors = 0
        self._drained = asyncio.Event()
        self.draining = False
        self.workers: dict[int, WorkerLink] = {}
        self.url = ""
        self.pid = 0

    def server(self) -> Server:
        """Return the protocol factory for the listening socket."""
        return Server(self._handle, request_factory=self._make_request, access_log=None)

    def add(self, link: WorkerLink) -> None:
        """Put a worker that is ready to work."""
        self.workers[link.number] = link
        link.on_done = self._done
        self._next(link)

    def remove(self, link: WorkerLink, reason: str) -> None:
        """Forget a worker that has died; the request in its hands fails."""
        self._errors += link.ticket is not None
        if self.workers.get(link.number) is link:
            del self.workers[link.number]
        if link in self._idle:
            self._idle.remove(link)
        if link.ticket is not None:
            self._busy -= 1
            if not link.ticket.answer.done():
                link.ticket.answer.set_result(self._failure(502, f"the worker {reason}"))
            link.ticket = None
        self._check_drained()

    def status(self) -> dict[str, object]:
        """Return who serves here, and what is going on."""
        return {
            "service": self._run.service,
            "replica": self._run.replica,
            "pid": self.pid,
            "url": self.url,
            "workers": [self.workers[number].pid for number in sorted(self.workers)],
            "pool_size": self._pool_size,
            "busy": self._busy,
            "queued": len(self._waiting),
            "served": self._served,
            "errors": self._errors,
        }

    async def drained(self, seconds: float) -> None:
        """Wait until no request is queued or in work, but no longer than this."""
        self._check_drained()
        try:
            await asyncio.wait_for(self._drained.wait(), seconds)
        except TimeoutError:
            left = self._busy + len(self._waiting)
            _log.warning("%d requests were still in work after %g s", left, seconds)
        for ticket in self._waiting:
            if not ticket.answer.done():
                ticket.answer.set_result(self._failure(503, "the replica is stopping"))
        self._waiting.clear()

    def _make_request(
        self,
        message: RawRequestMessage,
        payload: StreamReader,
        protocol: RequestHandler,
        writer: object,
        task: asyncio.Task[None],
    ) -> BaseRequest:
        return BaseRequest(
            message,
            payload,
            protocol,
            writer,  # type: ignore[arg-type] # aiohttp's abstract writer, passed through
            task,
            self._loop,
            client_max_size=self._max_body,
        )

    async def _handle(self, request: BaseRequest) -> StreamResponse:
        path, _, query = request.raw_path.partition("?")
        found = self._find(path)
        if found is None:
            return self._other(request.method, unquote(path))
        methods, values = found
        route = pick(methods, request.method)
        if route is None:
            return self._response(wrong_method(self._run.service, path, methods))
        key = route.key
        body = b""
        if request.body_exists:
            if hdrs.EXPECT in request.headers and request.transport is not None:
                # Clients with large bodies wait for this a second or more before they send them anyway.
                request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            try:
                body = await request.read()
            except HTTPRequestEntityTooLarge:
                return self._response(
                    self._failure(413, f"the body has more than {self._max_body} bytes", key)
                )
        headers = request.headers
        ticket = _Ticket(_hex(headers.get(_REQUEST)), b"", self._loop.create_future())
        traceparent = headers.get(_TRACEPARENT, "")
        if traceparent:
            traceparent = valid(traceparent)
        trace = _hex(headers.get(_TRACE), trace_id(traceparent) if traceparent else 0)
        if self._writer is not None:
            flags = 0 if self._idle else QUEUED
            inside = self._busy + len(self._waiting) + 1
            self._writer.write(
                Event.ARRIVE, ticket.request, trace, seq=inside, name=self._names[key], flags=flags
            )
        ticket.data = frame(
            Request(
                ticket.request,
                trace,
                key,
                query,
                list(request.raw_headers),
                body,
                _deadline(headers.get(_DEADLINE)),
                request.method,
                values,
                traceparent,
            )
        )
        if self._idle:
            self._busy += 1
            self._idle.pop().assign(ticket)
        else:
            self._waiting.append(ticket)
        return self._response(await ticket.answer)

    def _other(self, method: str, path: str) -> StreamResponse:
        """Answer what is no endpoint."""
        if path == "/healthz":
            return self._response(_json({"status": "ok"}))
        if path == "/readyz":
            state = "draining" if self.draining else "ready" if self.workers else "no worker"
            return self._response(_json({"status": state}, 200 if state == "ready" else 503))
        if path == "/mup/status":
            return self._response(_json(self.status()))
        if path == "/mup/openapi.json":
            # Loaded when somebody asks: a running service seldom needs it.
            from mup.runtime.openapi import document  # noqa: PLC0415

            run = self._run
            return self._response(_json(document(run.service, run.kind, run.dispatch)))
        if self._static is not None and self._static.covers(path):
            if method not in ("GET", "HEAD"):
                return self._response(wrong_method(self._run.service, path, ["GET"]))
            return self._static.response(path) or self._response(
                self._failure(404, f"no file {path!r}", path)
            )
        return self._response(no_endpoint(self._run.service, self._run.dispatch, path))

    def _done(self, link: WorkerLink, failed: bool) -> None:
        self._served += 1
        self._errors += failed
        self._busy -= 1
        link.ticket = None
        self._next(link)

    def _next(self, link: WorkerLink) -> None:
        """Give a free worker the request that waits longest, or let it rest."""
        if self._waiting:
            self._busy += 1
            link.assign(self._waiting.popleft())
        else:
            self._idle.append(link)
            self._check_drained()

    def _check_drained(self) -> None:
        if self._busy == 0 and not self._waiting:
            self._drained.set()
        else:
            self._drained.clear()

    def _failure(self, status: int, message: str, path: str = "") -> Answer:
        return failure(self._run.service, status, message, path)

    @staticmethod
    def _response(answer: Answer) -> Response:
        headers = CIMultiDict(answer.headers)
        for cookie in answer.cookies:
            headers.add(hdrs.SET_COOKIE, cookie)
        return Response(status=answer.status, headers=headers, body=answer.body)


def _json(data: object, status: int = 200) -> Answer:
    return Answer(status, {hdrs.CONTENT_TYPE: "application/json"}, msgspec.json.encode(data))


def _hex(text: str | None, other: int = 0) -> int:
    """Return the id in a header; the other one, or a new one, if there is none, or it is none."""
    if text is None:
        return other or new_id()
    try:
        number = int(text, 16)
    except ValueError:
        return new_id()
    return number if 0 < number < 2**64 else new_id()


def _deadline(text: str | None) -> float | None:
    """Return the time on the monotonic clock that so many milliseconds from now are."""
    if text is None:
        return None
    try:
        return time.monotonic() + float(text) / 1000
    except ValueError:
        return None
