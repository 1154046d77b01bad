"""How are calls made from an event loop? ``Communication`` for clients: the same calls, but awaited.

Each call is a task of its own on one aiohttp session that all clients of the process share. Its events:

- ``commStart``: ``call`` was invoked;
- ``contactDest``: a replica was chosen and the request handed to aiohttp, which writes it in the next turns
  of the event loop. Still within ``call``, hence before ``waitStart``, unless the registry has to be asked
  first. What aiohttp does, opening a connection included, is part of the exchange;
- ``waitStart``, ``waitEnd``: around the ``await``;
- ``commFinish``: the body has been read completely, or the call has failed. Until then the call goes on
  whatever the scenario does.

A replica that refuses is replaced by another one, a kept connection that was closed by a fresh one; that logs
nothing more. What `mup.runtime.retried_awaits` makes again is an attempt with records of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import inspect
import logging
import os
import random
import sys
import time
from array import array
from collections.abc import Coroutine, Generator, Mapping
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote
from weakref import WeakSet

import aiohttp
from aiohttp.connector import Connection
from yarl import URL

from mup.communication import DEFAULT_TIMEOUT, Communication, Cookie, Headers
from mup.errors import (
    BrokenCallError,
    CallError,
    CallTimeoutError,
    CommunicationError,
    MupError,
    NoReplicaError,
    UnknownServiceError,
    UsageError,
    did_you_mean,
)
from mup.events.ids import child_id
from mup.events.record import FAILED, Event, attempt_flag
from mup.events.sites import SiteTable
from mup.events.writer import EventWriter
from mup.future import MupFuture, Response
from mup.routes import WITHOUT_BODY, CallRoutes
from mup.runtime.client.reply import call_error, decode_body
from mup.runtime.client.request import address_of, call_headers, call_path, call_seconds, worded
from mup.runtime.header_rules import header_text
from mup.runtime.kept_cookies import KeptCookies
from mup.runtime.run_token import find_token
from mup.tls import TLS_CA, TLS_CERT, client_context, why_refused

if TYPE_CHECKING:
    from mup.runtime.client.retries import Retries

__all__ = [
    "CallStats",
    "Caller",
    "ClientCommunication",
    "ClientFuture",
    "EventLog",
    "Network",
]

_log = logging.getLogger("mup.runtime")

CACHE_SECONDS = 1.0
"""How long a list of replicas is used before it is asked for again, unless somebody says otherwise."""
REGISTRY_SECONDS = 5.0
MOST_LEFT_OUT = 1000
"""Replicas that cannot be called and are told of."""
MOMENT = 0.1
"""Seconds a call waits for the registry that could go on with what it knows."""
_NOBODY_THERE = {errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ETIMEDOUT}
_COROUTINE = inspect.CO_COROUTINE | inspect.CO_ITERABLE_COROUTINE | inspect.CO_ASYNC_GENERATOR
_JSON = {"Content-Type": "application/json"}
KEEPALIVE_SECONDS = 60.0
"""How long an idle connection is kept: longer than users usually think, shorter than servers usually wait."""


class EventLog:
    """The log of a client process, or none: then every method does nothing.

    Args:
        writer: Where records go.
        source: Folder that sites are named relative to.
        sample: One in so many executions is logged.
    """

    def __init__(self, writer: EventWriter | None, source: Path, sample: int = 1) -> None:
        self.writer = writer
        self._sample = sample
        self._sites = SiteTable(writer, source) if writer is not None else None

    def site(self, kind: str, depth: int) -> int:
        """Return the site of the expression ``depth`` frames above the caller."""
        if self._sites is None:
            return 0
        return self._sites.of_frame(sys._getframe(depth + 1), "await" if kind == "await" else "call")  # noqa: SLF001

    def waiting_site(self, depth: int) -> int:
        """Return the site of the ``await`` that waits ``depth`` frames above the caller.

        Coroutines of asyncio in between (``wait_for``) are passed over. 0 if a task that asyncio has made
        waits (``gather``): nothing tells where it comes from.
        """
        if self._sites is None:
            return 0
        frame = sys._getframe(depth + 1)  # noqa: SLF001
        while frame.f_globals.get("__name__", "").partition(".")[0] == "asyncio":
            outer = frame.f_back
            if outer is None or not outer.f_code.co_flags & _COROUTINE:
                return 0
            frame = outer
        return self._sites.of_frame(frame, "await")

    def name(self, text: str) -> int:
        """Return the id of a name."""
        return self.writer.name(text) if self.writer is not None else 0

    def chosen(self) -> bool:
        """Return whether a new execution is logged: drawn at random, as the front of a service does."""
        return self._sample == 1 or random.random() * self._sample < 1


class CallStats:
    """Calls of one endpoint in the window: when the answered ones began (ns), their seconds; failures."""

    __slots__ = ("errors", "seconds", "starts")

    def __init__(self) -> None:
        self.starts = array("q")
        self.seconds = array("d")
        self.errors = 0


class _Service:
    """Where one service is: what the registry last said, or a base URL outside of mup."""

    __slots__ = ("addresses", "asked", "external", "routes")

    def __init__(self, addresses: list[str], routes: CallRoutes, *, external: bool = False) -> None:
        self.addresses = addresses
        self.routes = routes
        self.external = external
        self.asked = time.monotonic()


class Network:
    """What all clients of a process share: HTTP session, replica lists, the log, figures per endpoint.

    To be created on the event loop it is used on, and closed.

    Args:
        registry_url: Where the registry listens; "" = there is none. Of one with TLS, replicas without are
            left out.
        log: Where events go.
        seed: Of the choice of replicas.
        externals: Base URLs of services outside of mup, by name; they are not asked for.
        cache: Seconds a list of replicas is used before it is asked for again; 0 = every call asks.
        connect_seconds: How long a call tries to connect to one replica before it goes to another one; None =
            as long as the call may take: under load, whom nobody accepts yet has to wait.

    Attributes:
        asks_always: Whether every call asks.
        session: Keeps connections.
        fresh_session: Opens a new one for each request.
        stats: Per endpoint (``A/epA/``), the calls begun between ``window_start`` and ``window_end``.
        future: Kind of the calls.
        retries: Decides which calls are made again, if their kind asks.
    """

    def __init__(
        self,
        registry_url: str,
        log: EventLog,
        seed: int,
        externals: Mapping[str, str],
        cache: float = CACHE_SECONDS,
        connect_seconds: float | None = None,
    ) -> None:
        self.log = log
        self._cache = cache
        self.asks_always = cache == 0
        self.session = _session(connect_seconds)
        self.fresh_session = _session(connect_seconds, force_close=True)
        self.stats: dict[str, CallStats] = {}
        self.window_start = self.window_end = 0
        self._registry_url = registry_url.rstrip("/")
        self._encrypted = self._registry_url.startswith("https:")
        # URLs that were left out, so that each is told of once.
        self._left_out: set[str] = set()
        self._services: dict[str, _Service] = {}
        self._externals = {
            name: _Service([url.rstrip("/")], CallRoutes({}), external=True)
            for name, url in externals.items()
        }
        self._asking: dict[str, asyncio.Task[_Service]] = {}
        self._random = random.Random(f"replicas {seed}")
        self._calls: set[asyncio.Task[None]] = set()
        self.future: type[ClientFuture] = ClientFuture
        self.retries: Retries | None = None

    async def learn(self) -> None:
        """Ask for every service once, so that the first cycle finds what all others find.

        Raises:
            NoReplicaError: The registry does not answer.
        """
        if not self._registry_url:
            return
        after: str | None = ""
        while after is not None:
            page = f"?after={quote(after, safe='')}" if after else ""
            answer = await self._get(f"/services{page}", "the registry")
            await asyncio.gather(*(self.ask(name) for name, live in answer["services"].items() if live))
            after = answer.get("next")

    def known(self, service: str) -> _Service | None:
        """Return the cached replicas, refreshing them in the background when they are old."""
        known = self._services.get(service)
        if known is None or not known.addresses:
            return self._externals.get(service)
        if time.monotonic() - known.asked > self._cache:
            self._ask(service)
        return known

    def is_external(self, service: str) -> bool:
        """Return whether a name is that of a service outside of mup."""
        return service in self._externals

    async def find(self, service: str) -> _Service:
        """Return the replicas of a service for one call.

        Raises:
            UnknownServiceError: The registry has never heard of it.
            NoReplicaError: None is alive, or nothing is known and the registry does not answer.
        """
        known = self.known(service)
        if known is None:
            return await self.ask(service)
        if self.asks_always and not known.external:
            # While the registry is silent, what it said last is better than nothing.
            with contextlib.suppress(NoReplicaError, TimeoutError):
                async with asyncio.timeout(MOMENT):
                    return await self.ask(service)
        return known

    def pick(self, service: _Service) -> str:
        """Return the URL of one replica, uniformly at random."""
        addresses = service.addresses
        return addresses[0] if len(addresses) == 1 else addresses[int(self._random.random() * len(addresses))]

    def drop(self, service: str, address: str) -> None:
        """Forget a replica that refused a connection, until the registry is asked again."""
        known = self._services.get(service)
        if known is not None:
            known.addresses = [other for other in known.addresses if other != address]

    async def ask(self, service: str) -> _Service:
        """Return the live replicas of a service, asking the registry.

        Raises:
            UnknownServiceError: The registry has never heard of it.
            NoReplicaError: None of its replicas is alive, or the registry does not answer.
        """
        return await asyncio.shield(self._ask(service))

    def start(self, call: Coroutine[Any, Any, None]) -> None:
        """Let a call run until it is complete, even if nobody waits for it."""
        task = asyncio.create_task(call)
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)

    async def close(self) -> None:
        """Give up what is under way and close every connection."""
        tasks = [*self._calls, *self._asking.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.session.close()
        await self.fresh_session.close()

    def _ask(self, service: str) -> asyncio.Task[_Service]:
        """One question about a service at a time, however many clients wait for the answer."""
        task = self._asking.get(service)
        if task is None:
            task = self._asking[service] = asyncio.ensure_future(self._fetch(service))
            task.add_done_callback(lambda done: self._asked(service, done))
        return task

    def _asked(self, service: str, task: asyncio.Task[_Service]) -> None:
        del self._asking[service]
        if task.cancelled():
            return
        if task.exception() is None:
            self._services[service] = task.result()
        elif (known := self._services.get(service)) is not None:
            # The registry is down or restarting: the last list is better than none.
            known.asked = time.monotonic()

    async def _fetch(self, service: str) -> _Service:
        if not self._registry_url:
            raise UnknownServiceError(
                f"unknown service {service!r}", hint=did_you_mean(service, sorted(self._externals))
            )
        answer = await self._get(f"/replicas?service={quote(service, safe='')}", service)
        addresses, why = self._usable(service, [replica["url"] for replica in answer["replicas"]])
        known = self._services.get(service)
        if not addresses:
            if known is not None and not answer["learning"]:
                # Not a registry that is down or new: it knows that they are gone.
                known.addresses = []
            raise NoReplicaError(f"service {service!r} has no live replica" + (f" ({why})" if why else ""))
        same = known is not None and known.routes.endpoints == answer["endpoints"]
        return _Service(addresses, known.routes if known and same else CallRoutes(answer["endpoints"]))

    def _usable(self, service: str, urls: list[str]) -> tuple[list[str], str]:
        """Return the URLs that may be called, and why the last one of the others may not."""
        usable, why = [], ""
        for url in urls:
            try:
                address_of(url, encrypted=self._encrypted)
            except CommunicationError as error:
                why = error.message
                if url not in self._left_out and len(self._left_out) < MOST_LEFT_OUT:
                    self._left_out.add(url)
                    _log.warning("a replica of %r is left out: %s", service, why)
            else:
                usable.append(url.rstrip("/"))
        return usable, why

    async def _get(self, path: str, where: str) -> dict[str, Any]:
        timeout = aiohttp.ClientTimeout(total=REGISTRY_SECONDS)
        token = find_token(self._registry_url)
        headers = {"Authorization": f"Bearer {token}"} if token else None
        try:
            async with self.session.get(
                URL(self._registry_url + path, encoded=True),
                headers=headers,
                timeout=timeout,
                allow_redirects=False,
            ) as reply:
                answer = decode_body(await reply.read(), reply.headers.get("Content-Type", ""))
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise NoReplicaError(
                f"the registry at {self._registry_url} does not answer: {_reason(error)}",
                where=where,
                hint="is the project running? start it with 'mup run'",
            ) from error
        if not isinstance(answer, dict) or reply.status not in (200, 404):
            raise NoReplicaError(
                f"{self._registry_url} does not answer like a registry: status {reply.status}", where=where
            )
        if reply.status == 404:
            # A registry that has just started need not know everybody yet.
            kind = NoReplicaError if answer.get("learning") else UnknownServiceError
            raise kind(str(answer.get("error", f"{path} not found")))
        return answer


class ClientCommunication(Communication):
    """The calls of one client; one object per client, one execution (cycle) at a time.

    Args:
        network: Shared by all clients.
        patience: Timeout of calls that name none, in seconds.

    Attributes:
        request, trace: Ids of the current execution.
        calls: Calls begun in the current execution.
        sampled: Whether the current execution is logged, with everything it causes.
    """

    def __init__(self, network: Network, patience: float = DEFAULT_TIMEOUT) -> None:
        self.network = network
        self._patience = patience
        self.request = 0
        self.trace = 0
        self.calls = 0
        self.sampled = True
        self._kept_cookies = KeptCookies()

    @property
    def writer(self) -> EventWriter | None:
        """Log of the current execution; None = it is not logged."""
        return self.network.log.writer if self.sampled else None

    @property
    def params(self) -> dict[str, Any]:
        """Empty: nobody has asked a client anything."""
        return {}

    @property
    def headers(self) -> Headers:
        """Empty."""
        return Headers()

    @property
    def cookies(self) -> Mapping[str, str]:
        """Empty."""
        return {}

    @property
    def body(self) -> bytes:
        """Empty."""
        return b""

    def begin(self, request: int, trace: int, *, sampled: bool = True) -> None:
        """Start a new execution."""
        self.sampled = sampled
        self.request = request
        self.trace = trace
        self.calls = 0

    def call(
        self,
        dest_ms: str,
        path: str,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        method: str = "",
        idempotent: bool | None = None,  # noqa: ARG002 - clients measure: they repeat nothing
    ) -> ClientFuture:
        """Call an endpoint and return at once; ``await`` what it returns. See `Communication.call`.

        Cookies the service has set for this client go along, unless ``headers`` has a ``Cookie``.
        """
        self.calls += 1
        complete = call_headers(headers, external=self.network.is_external(dest_ms))
        kept = self._kept_cookies.header(dest_ms)
        if kept is not None and not any(name.lower() == "cookie" for name in complete):
            complete["Cookie"] = kept
        seconds = call_seconds(timeout, self._patience)
        return ClientFuture(
            self, dest_ms, path, params, complete, seconds, method, cookies=self._kept_cookies
        )

    def send(
        self,
        dest: str,
        method: str,
        path: str,
        body: bytes,
        headers: Mapping[str, str],
        timeout: float | None = None,
    ) -> ClientFuture:
        """Send any HTTP request to a service outside of mup; ``await`` gives the body undecoded."""
        self.calls += 1
        return ClientFuture(self, dest, path, body, headers, timeout, method, decoded=False)

    def query(
        self,
        db_name: str,
        qry_name: str,  # noqa: ARG002
        coll_name: str,  # noqa: ARG002
        qry_txt: str | bytes | Mapping[str, Any],  # noqa: ARG002
    ) -> MupFuture:
        """Refuse: clients stand outside the system."""
        raise UsageError(
            f"a client cannot query database {db_name!r}", hint="call a service that does the query"
        )

    def respond(
        self,
        body: Any = None,  # noqa: ARG002
        status: int = 200,  # noqa: ARG002
        headers: Mapping[str, str] | None = None,  # noqa: ARG002
        cookies: Mapping[str, str | Cookie] | None = None,  # noqa: ARG002
    ) -> None:
        """Refuse: nobody has asked a client anything."""
        raise UsageError("a client has no request to respond to")


class Caller(Protocol):
    """What a call wants to know of the execution it belongs to.

    Attributes:
        network: Sends it.
        request, trace: Ids of the execution.
        calls: Number of this call in it.
        sampled: Whether the execution is logged, with everything it causes.
        writer: Its log; None = it is not logged.
    """

    network: Network
    request: int
    trace: int
    calls: int
    sampled: bool

    @property
    def writer(self) -> EventWriter | None:
        """See above."""


class ClientFuture(MupFuture):
    """A call under way; ``await`` gives the decoded body, or raises what went wrong."""

    __slots__ = (
        "_answer",
        "_asked_method",
        "_body",
        "_contacted",
        "_cookies",
        "_deadline",
        "_decoded",
        "_dest",
        "_done",
        "_error",
        "_external",
        "_headers",
        "_idempotent",
        "_key",
        "_lost",
        "_method",
        "_name",
        "_network",
        "_number",
        "_params",
        "_path",
        "_reply",
        "_request",
        "_retry_after",
        "_sampled",
        "_seconds",
        "_sent_as",
        "_seq",
        "_site",
        "_start",
        "_target",
        "_trace",
        "_until",
        "_waiters",
        "_writer",
    )

    def __init__(
        self,
        owner: Caller,
        dest: str,
        path: str,
        params: Mapping[str, Any] | bytes | None,
        headers: Mapping[str, str],
        timeout: float | None,
        method: str,
        *,
        decoded: bool = True,
        cookies: KeptCookies | None = None,
        idempotent: bool | None = None,
    ) -> None:
        self._network = owner.network
        self._request = owner.request
        self._trace = owner.trace
        self._seq = self._sent_as = owner.calls
        self._number = 0
        self._idempotent = idempotent
        self._lost = False
        self._retry_after: str | None = None
        # Status and headers of the last reply.
        self._reply: tuple[int, Mapping[str, str]] | None = None
        self._sampled = owner.sampled
        self._writer = owner.writer
        self._dest = dest
        self._path = path
        self._params = params
        self._headers = headers
        self._asked_method = method
        # What these are is known when the service is: see `_resolve`.
        self._method = method or "POST"
        self._target = self._key = path.partition("?")[0]
        self._body = b""
        self._external = False
        self._decoded = decoded
        self._cookies = cookies
        self._answer: Any = None
        self._error: MupError | None = None
        self._contacted = False
        self._done = False
        self._waiters: list[asyncio.Future[None]] = []
        self._seconds = call_seconds(timeout, DEFAULT_TIMEOUT)
        self._deadline = self._until = asyncio.get_running_loop().time() + self._seconds
        network = self._network
        service = network.known(dest)
        if service is not None:
            self._resolve(service)
        self._name = network.log.name(self._label)
        self._start = time.monotonic_ns()
        self._site = 0
        if self._writer is not None:
            # Above this: `call`, and above that, the scenario.
            self._site = network.log.site("call", 2)
            self._log(Event.COMM_START, site=self._site, now=self._start)
        address = None
        if service is not None and (self._external or not network.asks_always):
            address = network.pick(service)
            self._log_contact()
        network.start(self._run(address))

    @property
    def _label(self) -> str:
        """``B/epB/``: what the log and the model call the endpoint; ``GET shop/items`` outside of mup."""
        name = f"{self._dest}{self._key}"
        return f"{self._method} {name}" if self._external else name

    def get(self, timeout: float | None = None, *, check: bool = True) -> Any:  # noqa: ARG002
        """Return what has been awaited; before that, refuse: blocking would stop everybody else."""
        if not self._done:
            raise UsageError(
                f"an event loop must not block on a call of {self._label}", hint="write 'await' first"
            )
        if self._error is not None and (check or self._reply is None):
            raise self._error
        if check or self._reply is None:
            return self._answer
        body = self._error.body if isinstance(self._error, CallError) else self._answer
        status, headers = self._reply
        return Response(status, {name.lower(): _readable(value) for name, value in headers.items()}, body)

    def __await__(self) -> Generator[Any, None, Any]:
        """Wait for the reply. Not a generator itself, so that the frame above is the one that awaits."""
        site = self._network.log.waiting_site(1) if self._writer is not None else 0
        return self._wait(site).__await__()

    async def _wait(self, site: int) -> Any:
        writer = self._writer
        if writer is not None:
            writer.write(Event.WAIT_START, self._request, self._trace, self._seq, site, self._name)
        if not self._done:
            # One per waiting coroutine: whoever is cancelled disturbs no other.
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter
        if writer is not None:
            flags = FAILED if self._error is not None else 0
            writer.write(Event.WAIT_END, self._request, self._trace, self._seq, site, self._name, flags)
        if self._error is not None:
            raise self._error
        return self._answer

    def _resolve(self, service: _Service) -> None:
        """Find out what to send, and what the log calls it.

        Raises:
            CommunicationError: The params do not fit the path, or it is not known which method is meant.
        """
        path, method, params = self._path, self._asked_method, self._params
        self._external = service.external
        if service.external:
            verb, space, rest = path.partition(" ")
            if space and verb.isalpha() and verb.isupper():
                method, path = verb, rest
            if not path.startswith("/"):
                path = f"/{path}"
        # A name nobody has is sent as a path: the service answers 404 with what it has.
        route = service.routes.find(call_path(path), method)
        self._key = route.key
        if isinstance(params, bytes):
            self._method, self._target, self._body = method or "POST", path, params
        else:
            words = worded(route, path, params, method, external=self._external)
            self._method, self._target, self._body = words.method, words.target, words.body or b""

    async def _run(self, address: str | None) -> None:
        """Do the whole call and finish with what came of it.

        Args:
            address: URL of the replica to call; None = to be asked for.
        """
        self._finish(*await self._attempt(address))

    async def _attempt(self, address: str | None) -> tuple[Any, MupError | None]:
        """Return the answer, or what went wrong: a mistake in the caller's code, too."""
        self._lost = False
        self._retry_after = self._reply = None
        timeout = asyncio.timeout_at(self._until)
        try:
            async with timeout:
                return await self._attempts(address), None
        except MupError as error:
            return None, error
        except Exception as error:  # noqa: BLE001 - whatever aiohttp raises: nobody may wait for ever
            return None, self._failure(error, expired=timeout.expired())

    async def _attempts(self, address: str | None) -> Any:
        """Return the decoded body; try elsewhere where the request cannot have been executed.

        Raises:
            CommunicationError: No replica, an error status, or a reply that cannot be decoded.
            aiohttp.ClientError: No reply.
        """
        network = self._network
        session = network.session
        tried: set[str] = set()
        while True:
            if address is None:
                address = await self._locate()
            connection = _ConnectionState()
            try:
                return await self._exchange(session, address, connection)
            except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
                if isinstance(error, aiohttp.ClientConnectorError) and error.errno not in _NOBODY_THERE:
                    raise
                network.drop(self._dest, address)
                if address in tried:
                    who = address if self._external else f"no replica of {self._dest!r}"
                    verb = "refuses" if self._external else "accepts"
                    raise NoReplicaError(f"{who} {verb} connections: {_reason(error)}") from error
                tried.add(address)
            except _ServesNobodyError:
                network.drop(self._dest, address)
                if address in tried:
                    raise
                tried.add(address)
            except aiohttp.ClientConnectionError as error:
                # The replica closed a kept connection just as it was about to be used. aiohttp itself
                # tries again for idempotent methods only.
                if not connection.stale(error):
                    raise
                session = network.fresh_session
            address = None

    async def _locate(self) -> str:
        """Choose a replica; ask the registry if none is known."""
        network = self._network
        service = await network.find(self._dest)
        if not self._contacted:
            self._resolve(service)
            self._name = network.log.name(self._label)
            self._log_contact()
        return network.pick(service)

    async def _exchange(
        self, session: aiohttp.ClientSession, address: str, connection: _ConnectionState
    ) -> Any:
        remaining = max(self._until - asyncio.get_running_loop().time(), 0.001)
        if self._external:
            headers = {"Accept": "*/*", "User-Agent": "mup", **_content_type(self._body), **self._headers}
        else:
            headers = {
                **({} if self._method in WITHOUT_BODY else _JSON),
                **self._headers,
                "X-Mup-Request": f"{child_id(self._request, self._sent_as):016x}",
                "X-Mup-Trace": f"{self._trace:016x}",
                "X-Mup-Deadline": str(int(remaining * 1000)),
            }
            if not self._sampled:
                headers["X-Mup-Sampled"] = "0"
        _CONNECTION.set(connection)
        async with session.request(
            self._method,
            _url(address, self._target),
            data=self._body or None,
            headers=headers,
            allow_redirects=False,
        ) as reply:
            connection.replied = True
            raw = await reply.read()
        if self._cookies is not None and "Set-Cookie" in reply.headers:
            self._cookies.keep(self._dest, reply.headers.getall("Set-Cookie"))
        try:
            body: Any = decode_body(raw, reply.headers.get("Content-Type", "")) if self._decoded else raw
        except ValueError as error:
            raise CommunicationError(f"the reply of {self._label} cannot be decoded: {error}") from error
        self._reply = reply.status, reply.headers
        if 200 <= reply.status < 300:
            return body
        self._retry_after = reply.headers.get("Retry-After")
        failure = call_error(self._label, reply.status, body)
        if reply.status == 503 and reply.headers.get("X-Mup-Refused") in ("draining", "no_worker"):
            raise _ServesNobodyError(failure.message, status=503, body=body)
        raise failure

    def _failure(self, error: Exception, *, expired: bool) -> CommunicationError:
        self._lost = expired or not isinstance(error, aiohttp.ClientConnectorError)
        if expired:
            return CallTimeoutError(f"{self._label} did not answer within {self._seconds:.3g} s")
        if isinstance(error, aiohttp.ClientConnectorError):
            return NoReplicaError(f"cannot connect to {self._dest!r}: {_reason(error)}")
        return BrokenCallError(f"call of {self._label} failed: {_reason(error)}")

    def _finish(self, answer: Any, error: MupError | None) -> None:
        now = time.monotonic_ns()
        self._done = True
        self._answer = answer
        self._error = error
        network = self._network
        if self._writer is not None:
            self._log_finish(error, now)
        if network.window_start <= self._start < network.window_end:
            stats = network.stats.setdefault(self._label, CallStats())
            if error is None:
                stats.starts.append(self._start)
                stats.seconds.append((now - self._start) * 1e-9)
            else:
                stats.errors += 1
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _log_contact(self, flags: int = 0) -> None:
        self._contacted = True
        self._log(Event.CONTACT_DEST, flags)

    def _log_finish(self, error: MupError | None, now: int) -> None:
        # A status outside 2xx is an answer like any other: only a missing one is a failed exchange.
        failed = error is not None and not isinstance(error, CallError)
        if not self._contacted:
            self._log_contact(FAILED)
        self._log(Event.COMM_FINISH, FAILED if failed else 0, now=now)

    def _log(self, event: Event, flags: int = 0, site: int = 0, now: int | None = None) -> None:
        writer = self._writer
        if writer is not None:
            flags |= attempt_flag(self._number)
            writer.write(event, self._request, self._trace, self._seq, site, self._name, flags, time=now)


class _ServesNobodyError(CallError):
    """The replica is about to stop or has no worker, and has not done anything: another one may be asked."""


class _ConnectionState:
    """What one attempt of a call knows of its connection.

    Attributes:
        reused: It had been kept from an earlier request.
        replied: The head of the reply has arrived.
    """

    __slots__ = ("replied", "reused")

    def __init__(self) -> None:
        self.reused = False
        self.replied = False

    def stale(self, error: aiohttp.ClientConnectionError) -> bool:
        """Return whether the peer closed the connection while it was idle, so that it has read nothing."""
        # The message is an object where the connection ended within the head of a reply.
        begun = isinstance(error, aiohttp.ServerDisconnectedError) and not isinstance(error.message, str)
        return self.reused and not self.replied and not begun


# Calls are tasks of their own: each sees its own value.
_CONNECTION: ContextVar[_ConnectionState | None] = ContextVar("_CONNECTION", default=None)


class _Connector(aiohttp.TCPConnector):
    """Tells a call whether its connection is a kept one; aiohttp's tracing would cost time."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._seen: WeakSet[asyncio.BaseProtocol] = WeakSet()

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Any],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's
    ) -> Connection:
        connection = await super().connect(req, traces, timeout)
        protocol = connection.protocol
        state = _CONNECTION.get()
        if protocol is not None and state is not None:
            state.reused = protocol in self._seen
            if not state.reused:
                self._seen.add(protocol)
        return connection


def _session(connect_seconds: float | None, *, force_close: bool = False) -> aiohttp.ClientSession:
    """Return a session without limits and memory: a limit would be a queue no model knows of."""
    return aiohttp.ClientSession(
        connector=_Connector(
            limit=0,
            force_close=force_close,
            keepalive_timeout=None if force_close else KEEPALIVE_SECONDS,
            # Else aiohttp's own: the certificates of the system.
            ssl=client_context() if TLS_CA in os.environ or TLS_CERT in os.environ else True,
        ),
        cookie_jar=aiohttp.DummyCookieJar(),
        skip_auto_headers=("Accept", "Accept-Encoding", "User-Agent"),
        # Every call has its own timeout, which also bounds asking the registry.
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=connect_seconds),
    )


@lru_cache(maxsize=4096)
def _url(address: str, path: str) -> URL:
    return URL(address + path, encoded=True)


def _readable(value: str) -> str:
    """Return a header as everywhere else; aiohttp lets bytes that are no text stand for themselves."""
    return value if value.isascii() else header_text(value.encode("utf-8", "surrogateescape"))


def _content_type(body: bytes) -> Mapping[str, str]:
    return _JSON if body else {}


def _reason(error: BaseException) -> str:
    """Return one line."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the connection was closed"
    text = error.message if isinstance(error, aiohttp.ClientResponseError) else ""
    text = (
        text or why_refused(error) or getattr(error, "strerror", None) or str(error) or type(error).__name__
    )
    return " ".join(text.split())
