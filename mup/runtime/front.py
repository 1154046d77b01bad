"""How do requests get from the network to idle workers, and answers back? One event loop per replica.

Admission is first come first served: a request goes to an idle worker or to the end of one queue. A worker is
held from there until its endpoint method has returned, which may be long after the response.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
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
from multidict import CIMultiDict, istr

from mup.events.ids import new_id
from mup.events.record import QUEUED, Event
from mup.events.writer import EventWriter
from mup.routes import pick
from mup.runtime.http_server import HttpServer
from mup.runtime.metrics import CONTENT_TYPE, FrontMetrics
from mup.runtime.refusals import failure, no_endpoint, wrong_method
from mup.runtime.service_log import CURRENT, InWork
from mup.runtime.tracing import trace_id, valid
from mup.runtime.wire import Answer, Done, FrameBuffer, FromWorker, LogOff, Request, Retried, frame
from mup.runtime.worker import ServiceRun

if TYPE_CHECKING:
    from mup.runtime.static_files import StaticFiles

__all__ = ["MAX_BODY", "Front", "Limits", "WorkerLink"]

MAX_BODY = 16 * 2**20
"""Bytes a request body may have when nobody says otherwise."""

QUIET_SECONDS, QUIET_LIMIT = 0.1, 0.5
"""A draining replica ends when nobody has asked for so long; at the latest after so long."""

REFUSED = istr("X-Mup-Refused")
"""Header of a response whose request has reached no worker."""

_log = logging.getLogger("mup.runtime")
_decode = msgspec.msgpack.Decoder(FromWorker).decode

_REQUEST = istr("X-Mup-Request")
_TRACE = istr("X-Mup-Trace")
_DEADLINE = istr("X-Mup-Deadline")
_TRACEPARENT = istr("traceparent")
_SAMPLED = istr("X-Mup-Sampled")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a replica accepts.

    Attributes:
        max_body: Bytes of a body.
        body_seconds: Time a body may take to arrive.
        queue: Requests that may wait for a worker.
    """

    max_body: int
    body_seconds: float
    queue: float


@dataclass(slots=True, eq=False)
class _Ticket:
    """A request on its way through the replica; times in seconds of the monotonic clock."""

    request: int
    data: bytes
    answer: asyncio.Future[Answer]
    deadline: float | None
    arrived: float


class WorkerLink(asyncio.Protocol):
    """The front's end of the socket pair to one worker.

    Attributes:
        number: Of the worker in the replica, from 0.
        pid: Process id of the worker.
        ready: Result: "" once the worker has been set up, else why it could not be.
        ticket: The request in work.
        lost: Whether the worker has gone.
        log_off: Whether its event log cannot be written.
    """

    def __init__(self, number: int, pid: int, loop: asyncio.AbstractEventLoop) -> None:
        self.number = number
        self.pid = pid
        self.ready: asyncio.Future[str] = loop.create_future()
        self.ticket: _Ticket | None = None
        self.lost = False
        self.log_off = False
        self.started = time.monotonic()
        self.on_done: Callable[[WorkerLink, bool], None] = lambda _link, _failed: None
        self.on_lost: Callable[[WorkerLink], None] = lambda _link: None
        self.on_retried: Callable[[Retried], None] = lambda _retried: None
        self._frames = FrameBuffer()
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember where to write."""
        # A cast: the transports of uvloop are not subclasses of asyncio's.
        self._transport = cast("asyncio.WriteTransport", transport)

    def data_received(self, data: bytes) -> None:
        """Act on what the worker says."""
        for content in self._frames.feed(data):
            message: FromWorker = _decode(content)
            if isinstance(message, Answer):
                if self.ticket is not None and not self.ticket.answer.done():
                    self.ticket.answer.set_result(message)
            elif isinstance(message, Done):
                self.on_done(self, message.failed)
            elif isinstance(message, LogOff):
                self.log_off = True
            elif isinstance(message, Retried):
                self.on_retried(message)
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
        limits: On requests.
        static: Files to serve, or None.

    Attributes:
        workers: The ones that are set up, by number.
        draining: Whether the replica is about to stop: it finishes what it has and wants nothing new.
        listed: Whether the registry has been told of the replica, and not yet that it leaves.
        url, pid: What ``/mup/status`` says of this replica.
    """

    def __init__(
        self,
        run: ServiceRun,
        pool_size: int,
        writer: EventWriter | None,
        limits: Limits,
        static: StaticFiles | None = None,
    ) -> None:
        self._run = run
        self._static = static
        self._pool_size = pool_size
        self._writer = writer
        self._limits = limits
        self._metrics = FrontMetrics(run.dispatch.endpoints)
        # Asked once: the level does not change, and every request would ask.
        self._tell_requests = _log.isEnabledFor(logging.DEBUG)
        self._sample = run.log.sample if writer else 1
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
        self._turned_away = 0.0
        self.draining = False
        self.listed = False
        self.workers: dict[int, WorkerLink] = {}
        self.url = ""
        self.pid = 0

    def server(self) -> HttpServer:
        """Return the protocol factory for the listening socket."""
        return HttpServer(self._handle, self._make_request, partial(self._metrics.refused, ""))

    def add(self, link: WorkerLink) -> None:
        """Put a worker that is ready to work."""
        self.workers[link.number] = link
        link.on_done = self._done
        link.on_retried = self._metrics.retried
        self._next(link)

    def remove(self, link: WorkerLink, reason: str) -> None:
        """Forget a worker that has died; the request in its hands fails."""
        self._errors += link.ticket is not None
        if reason != "has ended":
            self._metrics.error("worker_died")
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

    async def quiet(self) -> None:
        """Wait until callers have learned that the replica stops: closing a connection might lose a request.

        Callers that keep a list of replicas ask the registry once a second; each learns at its first try.
        """
        now = self._turned_away = time.monotonic()
        end = now + QUIET_LIMIT
        while now < min(end, self._turned_away + QUIET_SECONDS):
            # No event to wait for: the point is that nothing happens.
            await asyncio.sleep(QUIET_SECONDS)
            now = time.monotonic()

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
            client_max_size=self._limits.max_body,
        )

    async def _handle(self, request: BaseRequest) -> StreamResponse:
        path, _, query = request.raw_path.partition("?")
        found = self._find(path)
        if found is None:
            return self._other(request.method, unquote(path))
        methods, values = found
        route = pick(methods, request.method)
        if route is None:
            return self._refusal("wrong_method", wrong_method(self._run.service, path, methods))
        key = route.key
        if self.draining:
            return self._draining(key)
        body = b""
        if request.body_exists:
            if hdrs.EXPECT in request.headers and request.transport is not None:
                # Clients with large bodies wait for this a second or more before they send them anyway.
                request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            try:
                body = await self._read(request)
            except HTTPRequestEntityTooLarge:
                problem = f"the body has more than {self._limits.max_body} bytes"
                return self._refusal("body_too_large", self._failure(413, problem, key), key)
            except TimeoutError:
                problem = f"the body did not come within {self._limits.body_seconds:g} s"
                return self._refusal("body_too_slow", self._failure(408, problem, key), key, close=True)
        if not self._idle and len(self._waiting) >= self._limits.queue:
            problem = f"{len(self._waiting)} requests are waiting already"
            return self._refusal("queue_full", self._failure(503, problem, key), key)
        headers = request.headers
        arrived = time.monotonic()
        deadline = _deadline(headers.get(_DEADLINE), arrived)
        answer_to_come: asyncio.Future[Answer] = self._loop.create_future()
        ticket = _Ticket(_hex(headers.get(_REQUEST)), b"", answer_to_come, deadline, arrived)
        traceparent = headers.get(_TRACEPARENT, "")
        if traceparent:
            traceparent = valid(traceparent)
        trace = _hex(headers.get(_TRACE), trace_id(traceparent) if traceparent else 0)
        sampled = headers.get(_SAMPLED) != "0"
        if sampled and self._sample > 1 and _REQUEST not in headers:
            # The first service of a chain decides. At random: every n-th one would see one side of a client
            # that alternates.
            sampled = random.random() * self._sample < 1
        if sampled and self._writer is not None:
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
                deadline,
                sampled,
                request.method,
                values,
                traceparent,
            )
        )
        if self._idle:
            self._assign(self._idle.pop(), ticket)
        else:
            self._waiting.append(ticket)
        answer = await answer_to_come
        seconds = time.monotonic() - arrived
        self._metrics.answered(key, answer.status, seconds)
        if self._tell_requests:
            self._tell(ticket, trace, key, answer.status, seconds)
        return self._response(answer)

    async def _read(self, request: BaseRequest) -> bytes:
        """Return the body of a request.

        Raises:
            HTTPRequestEntityTooLarge: It is longer than it may be.
            TimeoutError: It does not come.
        """
        if request.content.is_eof():
            return await request.read()
        async with asyncio.timeout(self._limits.body_seconds):
            return await request.read()

    def _other(self, method: str, path: str) -> StreamResponse:
        """Answer what is no endpoint."""
        if path == "/healthz":
            return self._response(_json({"status": "ok"}))
        if path == "/readyz":
            return self._response(self._readiness())
        if path == "/mup/status":
            return self._response(_json(self.status()))
        if path == "/mup/metrics":
            return Response(body=self._exposition(), headers={hdrs.CONTENT_TYPE: CONTENT_TYPE})
        if path == "/mup/openapi.json":
            # Loaded when somebody asks: a running service seldom needs it.
            from mup.runtime.openapi import document  # noqa: PLC0415

            run = self._run
            return self._response(_json(document(run.service, run.kind, run.dispatch)))
        if self._static is not None and self._static.covers(path):
            if self.draining:
                return self._draining(path)
            if method not in ("GET", "HEAD"):
                return self._refusal("wrong_method", wrong_method(self._run.service, path, ["GET"]))
            return self._static.response(path) or self._refusal(
                "no_file", self._failure(404, f"no file {path!r}", path)
            )
        return self._refusal("no_endpoint", no_endpoint(self._run.service, self._run.dispatch, path))

    def _readiness(self) -> Answer:
        """Say whether this replica should get requests, and if not, why not."""
        if self.draining:
            state, reason = "draining", "the replica is stopping: it finishes what it has"
        elif not self.workers:
            state, reason = "no worker", f"none of {self._pool_size} workers runs; see the log of the service"
        elif not self.listed:
            state, reason = "not registered", "callers do not find the replica in the registry"
        else:
            return _json({"status": "ready"})
        return _json({"status": state, "reason": reason}, 503)

    def _done(self, link: WorkerLink, failed: bool) -> None:
        self._served += 1
        if failed:
            self._errors += 1
            self._metrics.error("endpoint_failed")
        self._busy -= 1
        link.ticket = None
        self._next(link)

    def _next(self, link: WorkerLink) -> None:
        """Give a free worker the request that waits longest, or let it rest."""
        while self._waiting:
            ticket = self._waiting.popleft()
            now = time.monotonic()
            if ticket.deadline is not None and ticket.deadline <= now:
                # Its caller has given up: work for nobody would delay those who still wait.
                self._metrics.error("deadline_passed")
                problem = f"the deadline passed after {now - ticket.arrived:.3g} s in the queue"
                ticket.answer.set_result(self._failure(504, problem))
                continue
            self._metrics.queued.observe(now - ticket.arrived)
            self._assign(link, ticket)
            return
        self._idle.append(link)
        self._check_drained()

    def _assign(self, link: WorkerLink, ticket: _Ticket) -> None:
        self._busy += 1
        self._metrics.assigned += 1
        link.assign(ticket)

    def _exposition(self) -> bytes:
        """Return the metrics of this replica."""
        front_log_off = self._writer is not None and self._writer.problem != ""
        gauges = {
            "in_flight": self._busy + len(self._waiting),
            "queue_length": len(self._waiting),
            "pool_size": self._pool_size,
            "workers": len(self.workers),
            "workers_busy": self._busy,
            "event_logs_off": front_log_off + sum(link.log_off for link in self.workers.values()),
        }
        labels = {"service": self._run.service, "replica": self._run.replica}
        return self._metrics.exposition(labels, gauges, {link.pid for link in self.workers.values()})

    def _tell(self, ticket: _Ticket, trace: int, key: str, status: int, seconds: float) -> None:
        """Log one line about a request that was answered."""
        token = CURRENT.set(InWork(key, ticket.request, trace))
        fields = {"status": status, "seconds": round(seconds, 6)}
        _log.debug("%d after %.1f ms", status, seconds * 1e3, extra={"fields": fields})
        CURRENT.reset(token)

    def _check_drained(self) -> None:
        if self._busy == 0 and not self._waiting:
            self._drained.set()
        else:
            self._drained.clear()

    def _failure(self, status: int, message: str, path: str = "") -> Answer:
        return failure(self._run.service, status, message, path)

    def _draining(self, key: str) -> Response:
        """Answer a request that comes too late; its caller may ask another replica: nothing has been done."""
        self._turned_away = time.monotonic()
        answer = self._failure(503, "the replica is stopping", key)
        return self._refusal("draining", answer, key, close=True)

    def _refusal(self, kind: str, answer: Answer, key: str = "", *, close: bool = False) -> Response:
        """Answer a request that reaches no worker, and count it for an endpoint ("" = none)."""
        self._metrics.refused(key, answer.status, kind)
        response = self._response(answer)
        if answer.status == 503:
            response.headers[hdrs.RETRY_AFTER] = "1"
            response.headers[REFUSED] = kind
        if close:
            response.force_close()
        return response

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


def _deadline(text: str | None, now: float) -> float | None:
    """Return the time on the monotonic clock that so many milliseconds from now are."""
    if text is None:
        return None
    try:
        return now + float(text) / 1000
    except ValueError:
        return None
