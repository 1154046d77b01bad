"""The front of a replica: one event loop brings requests to idle workers, and answers back.

A request goes to an idle worker or into one queue, from which workers take it first come first served or, if
the service says so, in random order. A worker is held from there until its endpoint method has returned,
which may be long after the response.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import unquote

import msgspec

from mup.errors import DeploymentError
from mup.events.ids import new_id
from mup.events.record import LEFT_BECAUSE, QUEUED, Event
from mup.events.writer import EventWriter
from mup.routes import pick
from mup.runtime.endpoint.refusals import failure, identified, no_endpoint, wrong_method
from mup.runtime.pool.admin import POOL_PATH, barred, change_pool, refusal
from mup.runtime.pool.admission import Waiting, waiting_room
from mup.runtime.pool.metrics import CONTENT_TYPE, FrontMetrics
from mup.runtime.pool.watchdog import BUSY_SECONDS, Watchdog
from mup.runtime.process.pinning import core_of
from mup.runtime.process.service_log import CURRENT, InWork
from mup.runtime.protocol.tracing import trace_id, valid
from mup.runtime.protocol.wire import (
    Answer,
    Done,
    FrameBuffer,
    FromWorker,
    LogOff,
    Request,
    Retried,
    cancel,
    frame,
)
from mup.runtime.server.http_request import HttpRequest
from mup.runtime.worker.tray import AT_ONCE, MANY, ROOM, SHORT, Tray
from mup.runtime.worker.worker import ServiceRun

if TYPE_CHECKING:
    from mup.runtime.server.static_files import StaticFiles

__all__ = ["MAX_BODIES", "MAX_BODY", "Front", "Limits", "WorkerLink"]

MAX_BODY = 16 * 2**20
"""Bytes a request body may have unless it is set otherwise."""

MAX_BODIES = 64 * 2**20
"""Bytes all request bodies in memory may have together unless it is set otherwise."""

QUIET_SECONDS, QUIET_LIMIT = 0.1, 0.5
"""A draining replica ends when no request has come for so long; at the latest after so long."""

HOT_SECONDS = 0.001
"""How long after a worker has got a request it is about to look for the next one, if requests are short."""

BACKLOG_SECONDS = 0.0005
"""What may lie on the tray, as work for each worker that is not idle, while another one rests."""

TRAY_SECONDS = 0.002
"""How long requests may lie on the tray without a worker taking any of them, or while one rests."""

LOST_SECONDS = 1.0
"""How long after the death of a worker another one may take to say what it has taken from the tray."""

REFUSED = "X-Mup-Refused"
"""Header of a response whose request has reached no worker."""

CPU_AGE = 1_000_000
"""Nanoseconds the processor time in the record of an arrival may be old: asking takes as long as all else."""

_ARRIVE = Event.ARRIVE

_STOPPING = "the replica is stopping"
_DESERTED = "no worker runs: see the log of the service"

_log = logging.getLogger("mup.runtime")
_decode = msgspec.msgpack.Decoder(FromWorker).decode

_REQUEST = b"x-mup-request"
_TRACE = b"x-mup-trace"
_DEADLINE = b"x-mup-deadline"
_TRACEPARENT = b"traceparent"
_SAMPLED = b"x-mup-sampled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a replica accepts.

    Attributes:
        max_body: Bytes of a body.
        body_seconds: Time a body may take to arrive.
        queue: Requests that may wait for a worker.
        bodies: Bytes of all bodies that are in memory at once.
        request_seconds: Time a worker may have one request; None = as long as it takes.
        busy_seconds: Time after which all workers being busy means not to be ready; 0 = never.
    """

    max_body: int
    body_seconds: float
    queue: float
    bodies: float = math.inf
    request_seconds: float | None = None
    busy_seconds: float = BUSY_SECONDS


class _Ticket(msgspec.Struct, eq=False):
    """A request on its way through the replica; times in seconds of the monotonic clock.

    Attributes:
        http: The request; None once it has been answered.
        key: Of the endpoint.
        request: Id of the execution.
        trace: Id of the client cycle behind it.
        data: What the worker is told.
        deadline: When the answer is not waited for any more.
        arrived: When all of it had been read.
        sampled: Whether it is in event logs, if there are any.
        number: On the tray, or when it was there.
    """

    # A struct, for that is made in a fraction of the time an object with an __init__ takes.
    http: HttpRequest | None
    key: str
    request: int
    trace: int
    data: bytes
    deadline: float | None
    arrived: float
    sampled: bool
    number: int = 0


class WorkerLink(asyncio.Protocol):
    """The front's end of the line to one worker; the protocol of what the worker says.

    Attributes:
        number: Of the worker in the replica, from 0.
        pid: Process id of the worker.
        ready: Result: "" once the worker has been set up, else why it could not be.
        fate: How its process has ended, if a neighbour has told already.
        ticket: The request in work.
        lost: Whether the worker has gone.
        retiring: Whether it gets no further request and ends with the one it has.
        log_off: Whether its event log cannot be written.
        since: When it got the request in work, in seconds of the monotonic clock.
        overdue: Whether that request has been in work for longer than it may.
        count: How many requests it has got.
        requests: Where to write to the worker.
    """

    def __init__(self, number: int, pid: int, loop: asyncio.AbstractEventLoop) -> None:
        self.number = number
        self.pid = pid
        self.ready: asyncio.Future[str] = loop.create_future()
        self.fate = ""
        self.ticket: _Ticket | None = None
        self.lost = False
        self.retiring = False
        self.log_off = False
        self.since = 0.0
        self.overdue = False
        self.count = 0
        self.requests: asyncio.WriteTransport | None = None
        self.started = time.monotonic()
        self.on_answer: Callable[[_Ticket, Answer], None] = lambda _ticket, _answer: None
        self.on_done: Callable[[WorkerLink, Answer | Done], None] = lambda _link, _message: None
        self.on_lost: Callable[[WorkerLink], None] = lambda _link: None
        self.on_retried: Callable[[Retried], None] = lambda _retried: None
        self._frames = FrameBuffer()
        self._transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember what to close."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Act on what the worker says."""
        for content in self._frames.feed(data):
            message: FromWorker = _decode(content)
            if isinstance(message, Answer):
                if self.ticket is not None:
                    self.on_answer(self.ticket, message)
                if message.done:
                    self.on_done(self, message)
            elif isinstance(message, Done):
                self.on_done(self, message)
            elif isinstance(message, LogOff):
                self.log_off = message.off
            elif isinstance(message, Retried):
                self.on_retried(message)
            elif not self.ready.done():
                self.ready.set_result(message.error)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - how it ended does not matter
        """The worker process has ended."""
        self.lost = True
        if not self.ready.done():
            self.ready.set_result("the worker process died during its setup")
        if self.requests is not None:
            self.requests.close()
        self.on_lost(self)

    def assign(self, ticket: _Ticket, now: float) -> None:
        """Hand a request to the worker."""
        assert self.requests is not None  # noqa: S101 - a link is used once it is connected
        assert self.ticket is None  # noqa: S101 - a worker has one request at a time
        self.has(ticket, now)
        # Else the worker has just died: the end of its answers, which comes next, decides about the request.
        if not self.requests.is_closing():
            self.requests.write(ticket.data)

    def has(self, ticket: _Ticket, now: float) -> None:
        """Note which request is in work."""
        self.ticket = ticket
        self.since = now
        self.count += 1

    def cancel(self) -> None:
        """Tell an event loop to give up the request in work."""
        if self.requests is not None and not self.requests.is_closing():
            self.requests.write(cancel(self.count))

    def end(self) -> None:
        """Tell the worker to finish."""
        for transport in (self.requests, self._transport):
            if transport is not None:
                transport.close()


class Front:
    """Queue and workers of one replica: the application behind its HTTP server.

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
        resize: Changes the number of workers; raises a `DeploymentError` if that is impossible.
        replace: Ends a process whose workers are all overdue, and says why; it is then replaced.
        tray: Where workers take requests from by themselves; None = nowhere.
        watchdog: Looks after requests that take too long.
    """

    # Invariants, whenever no method of the front is running:
    #
    # - A request inside is in exactly one place: it waits (`_waiting`), lies on the tray or was taken from it
    #   by a worker that has not said so yet (`_lying`), or is the `ticket` of a link. In `_lost` are requests
    #   that have been answered 502 although a worker may still have taken them.
    # - `_busy` is the number of links with a ticket.
    # - An idle link has no ticket, is set up, and does not retire. Requests may lie on the tray beside it,
    #   for a worker that is about to be free (`_worth_waking`): until the next look at most.
    # - The client of a request that waits has got no answer (`http` is not None).
    # - While anything is in `_lying`, exactly one look at the tray is scheduled (`_look`): nothing lies there
    #   for ever, even if all workers die.

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
        shared = run.runtime != "process" and run.pinned
        self._core = core_of(run.position, run.replica) if shared else None
        self._cpu, self._cpu_at = 0, 0
        self._names = {
            key: writer.name(f"{run.service}{key}") if writer else 0 for key in run.dispatch.endpoints
        }
        self._find = run.dispatch.routes.find
        # The worker used last has the warmest caches: a stack, not a queue.
        self._idle: list[WorkerLink] = []
        self._waiting: Waiting[_Ticket] = waiting_room(run.admission)
        # Those that were put on the tray, and that no worker has said it has, by number.
        self._lying: dict[int, _Ticket] = {}
        self._last = 0  # number given
        self._short = 0  # how sure it is that requests take little time
        self._mean = 0.0  # seconds the last ones have taken
        # What comes at once for several workers of an event loop wakes it once.
        self._together = run.runtime == "async"
        self._look: asyncio.TimerHandle | None = None  # at what lies on the tray
        self._taken = False  # since the last look
        self._handed = 0.0  # when a worker has got a request last
        self._lost: dict[int, _Ticket] = {}
        self._leaving: set[WorkerLink] = set()  # which are to take nothing any more
        self._busy = 0
        self._served = 0
        self._errors = 0
        self._drained = asyncio.Event()
        self._turned_away = 0.0
        # There is no worker, and none can be started.
        self._deserted = False
        self.draining = False
        self.listed = False
        self.workers: dict[int, WorkerLink] = {}
        self.url = ""
        self.pid = 0
        self.resize: Callable[[int], Awaitable[None]] = _of_fixed_size
        self._changes: set[asyncio.Task[None]] = set()
        self.replace: Callable[[int, str], None] = _without_replacing
        self.tray: Tray | None = None
        limit = None if run.debug is not None else limits.request_seconds
        self.watchdog = Watchdog(self.workers, limit, limits.busy_seconds, self._overdue, self._stuck)

    def add(self, link: WorkerLink) -> None:
        """Put a worker that is ready to work."""
        self.workers[link.number] = link
        self._deserted = False
        link.on_answer = self._answer
        link.on_done = self._done
        link.on_retried = self._metrics.retried
        self._next(link)

    def retire(self, link: WorkerLink) -> None:
        """Give a worker no further request, and end it when it has none."""
        link.retiring = True
        self._leaving.add(link)
        self._take_all_back()
        if link in self._idle:
            self._idle.remove(link)
            link.end()
        self._share_out()

    def resized(self, pool_size: int) -> None:
        """Note how many workers there should be from now on."""
        self._pool_size = pool_size
        if self._writer is not None:
            self._writer.write(Event.POOL, 0, 0, seq=pool_size)

    def remove(self, link: WorkerLink, reason: str) -> None:
        """Forget a worker that has died; the request in its hands fails."""
        self._errors += link.ticket is not None
        if reason != "has ended" and not link.overdue:
            self._metrics.error("worker_died")
        if self.workers.get(link.number) is link:
            del self.workers[link.number]
        if link in self._idle:
            self._idle.remove(link)
        self._leaving.discard(link)
        if link.ticket is not None:
            self._busy -= 1
            self._fail(link.ticket, self._failure(502, f"the worker {reason}"))
            link.ticket = None
        if self._lying:
            self._take_all_back()
            if self._lying:
                # It may have taken one and had no time to say so; others may be about to.
                asyncio.get_running_loop().call_later(LOST_SECONDS, self._lose, [*self._lying], reason)
            self._share_out()
        self._check_drained()

    def cannot_replace(self) -> None:
        """Refuse what waits, and what comes, until there is a worker again, which may take any time."""
        if not any(not link.retiring for link in self.workers.values()):
            self._deserted = True
            self._turn_away_all("no_worker", _DESERTED)

    def caller_refused(self) -> None:
        """Count a caller whose certificate is missing or wrong."""
        self._metrics.error("certificate_refused")

    def no_descriptor(self) -> None:
        """Count a second in which connections could not be accepted."""
        self._metrics.error("no_descriptor")

    def status(self) -> dict[str, object]:
        """Return who serves here, and what is going on."""
        return {
            "service": self._run.service,
            "replica": self._run.replica,
            "pid": self.pid,
            "url": self.url,
            "workers": [self.workers[number].pid for number in sorted(self.workers)],
            "pool_size": self._pool_size,
            "core": self._core,
            "retiring": sum(link.retiring for link in self.workers.values()),
            "busy": self._busy + min(len(self._lying), len(self._idle)),
            "queued": self._queued,
            "served": self._served,
            "errors": self._errors,
        }

    async def drained(self, seconds: float) -> None:
        """Wait until no request is queued or in work, but no longer than this."""
        self._check_drained()
        try:
            await asyncio.wait_for(self._drained.wait(), seconds)
        except TimeoutError:
            left = self._busy + len(self._lying) + len(self._waiting)
            _log.warning("%d requests were still in work after %g s", left, seconds)
        self._turn_away_all("draining", _STOPPING)
        for link in self.workers.values():
            if link.ticket is not None:
                # It may have done something already.
                self._fail(link.ticket, self._failure(502, "the replica has stopped meanwhile"))
        for ticket in self._lying.values():
            # A worker has taken it.
            self._fail(ticket, self._failure(502, "the replica has stopped meanwhile"))

    def _turn_away_all(self, kind: str, problem: str) -> None:
        """Refuse the requests that wait."""
        self._take_all_back()
        for ticket in self._waiting:
            self._left(ticket, kind)
            self._fail(ticket, self._unavailable(kind, problem, ticket.key))
        self._waiting.clear()
        self._check_drained()

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

    def handle(self, request: HttpRequest) -> None:
        """Answer a request, or have it answered by a worker; see :class:`Application`."""
        found = self._find(request.path)
        if found is None:
            self._other(request, unquote(request.path))
            return
        methods, values = found
        route = pick(methods, request.method)
        if route is None:
            self._refusal(request, "wrong_method", wrong_method(self._run.service, request.path, methods))
            return
        # What lies on the tray may have a worker that rests.
        key, waits = route.key, len(self._idle) <= len(self._lying)
        if self.draining:
            self._draining(request, key)
            return
        if waits and (self._deserted or self._queued >= self._limits.queue):
            kind, problem = "no_worker", _DESERTED
            if not self._deserted:
                kind, problem = "queue_full", f"{self._queued} requests are waiting already"
            self._refusal(request, kind, self._unavailable(kind, problem, key), key)
            return
        fields = request.fields
        arrived = time.monotonic()
        traceparent = valid(fields[_TRACEPARENT].decode("latin-1")) if _TRACEPARENT in fields else ""
        execution = _id(fields[_REQUEST]) if _REQUEST in fields else new_id()
        if _TRACE in fields:
            trace = _id(fields[_TRACE])
        else:
            trace = (trace_id(traceparent) if traceparent else 0) or new_id()
        deadline = None
        if _DEADLINE in fields and not self._run.debug:
            deadline = _deadline(fields[_DEADLINE], arrived)
        sampled = fields.get(_SAMPLED) != b"0"
        if sampled and self._sample > 1 and _REQUEST not in fields:
            # The first service of a chain decides. At random: every n-th one would see one side of a client
            # that alternates.
            sampled = random.random() * self._sample < 1
        if sampled and self._writer is not None:
            inside = self._busy + len(self._lying) + len(self._waiting) + 1
            flags = QUEUED if waits else 0
            now = time.monotonic_ns()
            if now - self._cpu_at > CPU_AGE:
                self._cpu_at, self._cpu = now, time.thread_time_ns()
            self._writer.write(_ARRIVE, execution, trace, inside, 0, self._names[key], flags, now, self._cpu)
        data = frame(
            Request(
                execution,
                trace,
                key,
                request.query,
                request.headers,
                request.body,
                deadline,
                sampled,
                request.method,
                values,
                traceparent,
            )
        )
        ticket = _Ticket(request, key, execution, trace, data, deadline, arrived, sampled)
        wakes = bool(self._idle) and self._worth_waking(arrived)
        if wakes and not self._lying:
            self._assign(self._idle.pop(), ticket, arrived)
            return
        if _DEADLINE not in fields:
            # A caller that sent a deadline need not keep its connection: a call that it does not wait for is
            # executed all the same.
            request.on_gone = partial(self._gone, ticket)
        if self._waiting or not self._put(ticket):
            self._waiting.append(ticket)
            wakes = bool(self._idle)
        if wakes:
            self._next(self._idle.pop())

    def wants_body(self, request: HttpRequest) -> bool:
        """Whether a body that is still to come may reach a worker; see :class:`Application`."""
        if request.path == POOL_PATH:
            return refusal(request, self._run.registry_token, self._run.hosts) is None
        found = self._find(request.path)
        return found is not None and pick(found[0], request.method) is not None and not self.draining

    def refuse(self, request: HttpRequest, status: int, kind: str, problem: str) -> None:
        """Answer a request that cannot be read; see :class:`Application`."""
        found = self._find(request.path) if request.path else None
        route = pick(found[0], request.method) if found is not None else None
        key = "" if route is None else route.key
        if kind == "bodies_full":
            answer = self._unavailable(kind, problem, key)
        else:
            answer = self._failure(status, problem, key)
        self._refusal(request, kind, answer, key)

    def _other(self, request: HttpRequest, path: str) -> None:
        """Answer what is no endpoint."""
        if path == "/healthz":
            self._send(request, _json({"status": "ok"}))
        elif path == "/readyz":
            self._send(request, self._readiness())
        elif path.startswith("/mup/") and (
            answer := barred(request, self._run.registry_token, self._run.hosts)
        ):
            self._refusal(request, "unauthorized", answer)
        elif path == "/mup/status":
            self._send(request, _json(self.status()))
        elif path == "/mup/metrics":
            request.respond(200, {"Content-Type": CONTENT_TYPE}, self._exposition())
        elif path == POOL_PATH:
            task = asyncio.get_running_loop().create_task(self._change_pool(request))
            self._changes.add(task)
            task.add_done_callback(self._changes.discard)
        elif path == "/mup/openapi.json":
            # Loaded on demand: a running service seldom needs it.
            from mup.runtime.endpoint.openapi import document  # noqa: PLC0415

            run = self._run
            self._send(request, _json(document(run.service, run.kind, run.dispatch)))
        elif self._static is not None and self._static.covers(path):
            self._file(self._static, request, path)
        else:
            self._refusal(request, "no_endpoint", no_endpoint(self._run.service, self._run.dispatch, path))

    async def _change_pool(self, request: HttpRequest) -> None:
        answer = await change_pool(request, self._run.registry_token, self._run.hosts, self.resize)
        self._send(request, _json(self.status()) if answer.status == 200 else answer)

    def _file(self, static: StaticFiles, request: HttpRequest, path: str) -> None:
        """Answer with a file."""
        if self.draining:
            self._draining(request, path)
        elif request.method not in ("GET", "HEAD"):
            self._refusal(request, "wrong_method", wrong_method(self._run.service, path, ["GET"]))
        elif not static.send(request, path):
            self._refusal(request, "no_file", self._failure(404, f"no file {path!r}", path))

    def _answer(self, ticket: _Ticket, answer: Answer) -> None:
        """Send the answer to a request, unless it has one."""
        request, ticket.http = ticket.http, None
        if request is None:
            return
        request.respond(answer.status, answer.headers, answer.body, answer.cookies)
        seconds = time.monotonic() - ticket.arrived
        self._metrics.answered(ticket.key, answer.status, seconds)
        if self._tell_requests:
            self._tell(ticket, str(answer.status), seconds, status=answer.status)

    def _readiness(self) -> Answer:
        """Say whether this replica should get requests, and if not, why not."""
        if self.draining:
            state, reason = "draining", "the replica is stopping: it finishes what it has"
        elif not self.workers:
            state, reason = "no worker", f"none of {self._pool_size} workers runs; see the log of the service"
        elif reason := self.watchdog.why_not_ready():
            state = "stuck"
        elif not self.listed:
            state, reason = "not registered", "callers do not find the replica in the registry"
        else:
            return _json({"status": "ready"})
        return _json({"status": state, "reason": reason}, 503)

    def _done(self, link: WorkerLink, message: Answer | Done) -> None:
        self._served += 1
        if message.seconds < SHORT:
            self._short = min(self._short + 1, 2 * MANY)
            self._mean += (message.seconds - self._mean) / MANY
        else:
            self._short = max(self._short - AT_ONCE, 0)
            self._mean += (SHORT - self._mean) / MANY
        if message.failed:
            self._errors += 1
            self._metrics.error("endpoint_failed")
        self._busy -= 1
        link.ticket = None
        if message.taken:
            link.overdue = False
            self._has_taken(link, message.taken)
        elif link.overdue:
            self._done_late(link)
        else:
            self._free(link)

    def _done_late(self, link: WorkerLink) -> None:
        """Go on with a worker whose request was given up."""
        if self._run.runtime == "process":
            # It is about to be killed: what it got now would be lost.
            self._check_drained()
        else:
            link.overdue = False
            self._free(link)

    def _free(self, link: WorkerLink) -> None:
        """Go on with a worker that has nothing to do."""
        if link.retiring:
            self._check_drained()
            link.end()
        else:
            self._next(link)

    def _next(self, link: WorkerLink) -> None:
        """Give a free worker the request that is next, or let it rest."""
        while True:
            if self._lying:
                self._take_back()
            if not self._waiting:
                break
            ticket = self._waiting.popleft()
            now = time.monotonic()
            if not self._wanted(ticket, now):
                continue
            self._metrics.queued.observe(now - ticket.arrived)
            self._assign(link, ticket, now)
            self._fill()
            return
        self._idle.append(link)
        if self.draining:
            self._check_drained()

    def _wanted(self, ticket: _Ticket, now: float) -> bool:
        """Return whether the answer is still waited for, of the request that is the next one."""
        request = ticket.http
        if request is not None and request.on_gone is not None:
            if request.deserted:
                self._drop(ticket, request)
                return False
            request.on_gone = None
        if ticket.deadline is not None and ticket.deadline <= now:
            # Its caller has given up: work in vain would delay the callers that still wait.
            self._left(ticket, "deadline_passed")
            problem = f"the deadline passed after {now - ticket.arrived:.3g} s in the queue"
            self._fail(ticket, self._failure(504, problem))
            return False
        return True

    # The tray.

    @property
    def _queued(self) -> int:
        """How many requests wait for a worker to end another one."""
        return max(len(self._waiting) + len(self._lying) - len(self._idle), 0)

    def _worth_waking(self, now: float) -> bool:
        """Return whether a request is for a worker that rests, not for one that is about to be free."""
        if self._short < MANY or not self._busy or self._together or now - self._handed > HOT_SECONDS:
            return True
        return (len(self._lying) + 1) * self._mean > self._busy * BACKLOG_SECONDS

    def _put(self, ticket: _Ticket) -> bool:
        """Put a request on the tray if requests are short; return whether it lies there."""
        if self._short < MANY or len(self._lying) >= ROOM or self._leaving or self.tray is None:
            return False
        number = self._last % 0xFFFFFFFF + 1
        if not self.tray.put(number, ticket.data):
            return False
        self._last = ticket.number = number
        self._lying[number] = ticket
        if self._look is None:
            self._taken = False
            self._look = asyncio.get_running_loop().call_later(TRAY_SECONDS, self._look_at_tray)
        return True

    def _fill(self) -> None:
        """Put requests that wait on the tray."""
        while self._waiting and self._short >= MANY and len(self._lying) < ROOM:
            ticket = self._waiting.popleft()
            request = ticket.http
            gone = request.on_gone if request is not None else None
            if not self._wanted(ticket, time.monotonic()):
                continue
            if request is not None:
                request.on_gone = gone
            if not self._put(ticket):
                self._waiting.appendleft(ticket)
                return

    def _has_taken(self, link: WorkerLink, number: int) -> None:
        """A worker goes on with a request that lay on the tray."""
        ticket = self._lying.pop(number, None) or self._lost.pop(number)
        if ticket.http is not None:
            ticket.http.on_gone = None
        if not self._lying and self.tray is not None:
            self.tray.emptied()
        now = time.monotonic()
        self._metrics.queued.observe(now - ticket.arrived)
        self._metrics.assigned += 1
        self._busy += 1
        self._taken = True
        self._handed = now
        link.has(ticket, now)
        if self._waiting:
            self._fill()

    def _take_back(self) -> bool:
        """Let the oldest request of the tray wait here again; return False if no worker has left one."""
        number = self.tray.take_back() if self.tray is not None else 0
        if not number:
            return False
        self._waiting.appendleft(self._lying.pop(number))
        return True

    def _take_all_back(self) -> None:
        """Let what lies on the tray wait here again; what stays has been taken by workers."""
        if not self._lying or self.tray is None:
            return
        numbers = list(iter(self.tray.take_back, 0))
        self.tray.emptied()
        for number in reversed(numbers):
            self._waiting.appendleft(self._lying.pop(number))

    def _share_out(self) -> None:
        """Give requests that wait to workers that rest."""
        while self._waiting and self._idle:
            self._next(self._idle.pop())

    def _look_at_tray(self) -> None:
        """Be sure that nothing lies there for long: then it belongs to workers that rest, or waits here."""
        self._look = None
        if not self._lying:
            return
        if not self._taken:
            self._short = 0
            self._take_all_back()
            self._share_out()
        elif self._idle and time.monotonic() - next(iter(self._lying.values())).arrived > TRAY_SECONDS:
            self._take_all_back()
            self._share_out()
            self._fill()
        if self._lying:
            self._taken = False
            # What has been filled in just now may have scheduled a look already.
            if self._look is None:
                self._look = asyncio.get_running_loop().call_later(TRAY_SECONDS, self._look_at_tray)

    def _lose(self, numbers: list[int], reason: str) -> None:
        """Give up what was taken by a worker that has died before it could say so."""
        for number in numbers:
            ticket = self._lying.pop(number, None)
            if ticket is not None:
                self._errors += 1
                self._lost[number] = ticket
                self._fail(ticket, self._failure(502, f"the worker {reason}"))
        self._check_drained()

    def _gone(self, ticket: _Ticket) -> None:
        """The client of a request that waits has closed its connection."""
        request = ticket.http
        if request is None:
            return
        self._take_all_back()
        if ticket.number not in self._lying:  # else a worker has taken it
            self._waiting.remove(ticket)
            self._drop(ticket, request)
        self._share_out()
        self._fill()
        self._check_drained()

    def _drop(self, ticket: _Ticket, request: HttpRequest) -> None:
        """Drop a request whose client has gone: there is no connection to answer on."""
        ticket.http = request.on_gone = None
        request.abort()
        self._left(ticket, "client_gone")
        if self._tell_requests:
            self._tell(ticket, "the client has gone", time.monotonic() - ticket.arrived)

    def _left(self, ticket: _Ticket, kind: str) -> None:
        """Count a request that leaves the queue without having had a worker, and log why."""
        self._metrics.error(kind)
        if ticket.sampled and self._writer is not None:
            why, name = LEFT_BECAUSE.index(kind) + 1, self._names[ticket.key]
            self._writer.write(Event.LEFT, ticket.request, ticket.trace, seq=why, name=name)

    def _assign(self, link: WorkerLink, ticket: _Ticket, now: float) -> None:
        self._busy += 1
        self._metrics.assigned += 1
        self._handed = now
        link.assign(ticket, now)

    def _overdue(self, link: WorkerLink) -> None:
        """Answer the request of a worker that has had it for too long, and free the worker if that can be."""
        ticket, runtime = link.ticket, self._run.runtime
        assert ticket is not None  # noqa: S101 - by the watchdog
        self._metrics.error("request_limit")
        problem = f"the request has been in work for longer than {self._limits.request_seconds:g} s"
        remedy = {"process": "its worker is replaced", "async": "it is cancelled"}
        token = CURRENT.set(InWork(ticket.key, ticket.request, ticket.trace))
        _log.warning("%s: %s", problem, remedy.get(runtime, "its thread cannot be ended and is held"))
        CURRENT.reset(token)
        self._fail(ticket, self._failure(504, problem, ticket.key))
        if runtime == "process":
            self.replace(link.pid, "is stuck")
        elif runtime == "async":
            link.cancel()

    def _stuck(self, pid: int) -> None:
        """Replace a process none of whose workers does anything but what took too long."""
        self.replace(pid, "cannot serve any more")

    def _exposition(self) -> bytes:
        """Return the metrics of this replica."""
        front_log_off = self._writer is not None and self._writer.problem != ""
        gauges = {
            "in_flight": self._busy + len(self._lying) + len(self._waiting),
            "queue_length": self._queued,
            "pool_size": self._pool_size,
            "workers": sum(not link.retiring for link in self.workers.values()),
            "workers_busy": self._busy + min(len(self._lying), len(self._idle)),
            "workers_stuck": self.watchdog.long_busy(),
            "busy_longest_seconds": self.watchdog.longest(),
            "event_logs_off": front_log_off + sum(link.log_off for link in self.workers.values()),
        }
        labels = {"service": self._run.service, "replica": self._run.replica}
        return self._metrics.exposition(labels, gauges, {link.pid for link in self.workers.values()})

    @staticmethod
    def _tell(ticket: _Ticket, outcome: str, seconds: float, **fields: object) -> None:
        """Log one line about a request that is over."""
        token = CURRENT.set(InWork(ticket.key, ticket.request, ticket.trace))
        fields["seconds"] = round(seconds, 6)
        _log.debug("%s after %.1f ms", outcome, seconds * 1e3, extra={"fields": fields})
        CURRENT.reset(token)

    def _check_drained(self) -> None:
        if self._busy == 0 and not self._lying and not self._waiting:
            self._drained.set()
        else:
            self._drained.clear()

    def _failure(self, status: int, message: str, path: str = "") -> Answer:
        return failure(self._run.service, status, message, path)

    def _unavailable(self, kind: str, problem: str, path: str) -> Answer:
        """Return the answer to a request that no worker gets to see, and that may be sent again."""
        answer = self._failure(503, problem, path)
        answer.headers.update({"Retry-After": "1", REFUSED: kind})
        return answer

    def _draining(self, request: HttpRequest, key: str) -> None:
        """Answer a request that comes too late; its caller may ask another replica: nothing has been done."""
        self._turned_away = time.monotonic()
        request.keep_alive = False
        self._refusal(request, "draining", self._unavailable("draining", _STOPPING, key), key)

    def _refusal(self, request: HttpRequest, kind: str, answer: Answer, key: str = "") -> None:
        """Answer a request that reaches no worker, and count it for an endpoint ("" = none)."""
        self._metrics.refused(key, answer.status, kind)
        number = _id(request.fields[_REQUEST]) if _REQUEST in request.fields else new_id()
        self._send(request, identified(answer, number, production=self._run.production))

    def _fail(self, ticket: _Ticket, answer: Answer) -> None:
        """Answer a request with an error, unless it has an answer."""
        if ticket.http is not None:
            self._answer(ticket, identified(answer, ticket.request, production=self._run.production))

    @staticmethod
    def _send(request: HttpRequest, answer: Answer) -> None:
        request.respond(answer.status, answer.headers, answer.body, answer.cookies)


def _without_replacing(_pid: int, _why: str) -> None:
    pass


async def _of_fixed_size(_: int) -> None:
    raise DeploymentError("the pool of this replica cannot change")


def _json(data: object, status: int = 200) -> Answer:
    return Answer(status, {"Content-Type": "application/json"}, msgspec.json.encode(data))


def _id(text: bytes) -> int:
    """Return the id in a header; a new one if it is none."""
    try:
        number = int(text, 16)
    except ValueError:
        return new_id()
    return number if 0 < number < 2**64 else new_id()


def _deadline(text: bytes, now: float) -> float | None:
    """Return the time on the monotonic clock that so many milliseconds from now are; None if it is none."""
    try:
        return now + float(text) / 1000
    except ValueError:
        return None
