"""How does a scenario call services? ``Communication`` for clients: the same calls, but awaited."""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from mup.communication import DEFAULT_TIMEOUT, Communication, Headers
from mup.errors import (
    CallError,
    CallTimeoutError,
    CommunicationError,
    MupError,
    NoReplicaError,
    UnknownServiceError,
    UsageError,
)
from mup.events.ids import child_id
from mup.events.record import FAILED, Event
from mup.events.sites import SiteTable
from mup.events.writer import EventWriter
from mup.future import MupFuture
from mup.workload.http_client import Address, Connections, Reply, address_of, decode

__all__ = ["CallStats", "ClientCommunication", "ClientFuture", "EventLog", "Network"]

CACHE_SECONDS = 1.0
"""How long a list of replicas is used before it is asked for again."""
REGISTRY_SECONDS = 5.0


class EventLog:
    """The log of a client process, or none: then every method does nothing."""

    def __init__(self, writer: EventWriter | None, source: Path) -> None:
        self.writer = writer
        self._sites = SiteTable(writer, source) if writer is not None else None

    def site(self, kind: str, depth: int) -> int:
        """Return the site of the expression ``depth`` frames above the caller."""
        if self._sites is None:
            return 0
        return self._sites.of_frame(sys._getframe(depth + 1), "await" if kind == "await" else "call")  # noqa: SLF001

    def name(self, text: str) -> int:
        """Return the id of a name."""
        return self.writer.name(text) if self.writer is not None else 0


class CallStats:
    """Calls of one endpoint in the window: how many, how long (seconds, summed), how many failed."""

    __slots__ = ("count", "errors", "seconds")

    def __init__(self) -> None:
        self.count = 0
        self.errors = 0
        self.seconds = 0.0


class _Service:
    """What the registry last said about one service."""

    __slots__ = ("addresses", "asked", "endpoints")

    def __init__(self, addresses: list[Address], endpoints: dict[str, str]) -> None:
        self.addresses = addresses
        self.endpoints = endpoints
        self.asked = time.monotonic()


class Network:
    """What all clients of a process share: connections, replica lists, the log, figures per endpoint.

    Args:
        registry_url: Where the registry listens.
        log: Where events go.
        seed: Of the choice of replicas.

    Attributes:
        stats: Per endpoint (``A/epA/``), the calls begun between ``window_start`` and ``window_end``.
    """

    def __init__(self, registry_url: str, log: EventLog, seed: int) -> None:
        self.log = log
        self.connections = Connections()
        self.stats: dict[str, CallStats] = {}
        self.window_start = self.window_end = 0
        self._registry = address_of(registry_url)
        self._registry_url = registry_url
        self._services: dict[str, _Service] = {}
        self._asking: dict[str, asyncio.Task[_Service]] = {}
        self._random = random.Random(f"replicas {seed}")
        self._heads: dict[tuple[Address, str], bytes] = {}

    async def learn(self) -> None:
        """Ask for every service once, so that the first cycle finds what all others find.

        Raises:
            NoReplicaError: The registry does not answer.
        """
        answer = await self._get("/services", "the registry")
        await asyncio.gather(*(self.ask(name) for name, live in answer["services"].items() if live))

    def known(self, service: str) -> _Service | None:
        """Return the cached replicas, refreshing them in the background when they are old."""
        known = self._services.get(service)
        if known is None or not known.addresses:
            return None
        if time.monotonic() - known.asked > CACHE_SECONDS:
            self._ask(service)
        return known

    def pick(self, service: _Service) -> Address:
        """Return one replica, uniformly at random."""
        addresses = service.addresses
        return addresses[0] if len(addresses) == 1 else addresses[int(self._random.random() * len(addresses))]

    def drop(self, service: _Service, address: Address) -> None:
        """Forget a replica that refused a connection, until the registry is asked again."""
        service.addresses = [other for other in service.addresses if other != address]

    async def ask(self, service: str) -> _Service:
        """Return the live replicas of a service, asking the registry.

        Raises:
            UnknownServiceError: The registry has never heard of it.
            NoReplicaError: None of its replicas is alive, or the registry does not answer.
        """
        return await asyncio.shield(self._ask(service))

    def head(self, address: Address, path: str) -> bytes:
        """Return the unchanging first lines of a request."""
        head = self._heads.get((address, path))
        if head is None:
            head = _head("POST", address, path) + b"Content-Type: application/json\r\n"
            self._heads[address, path] = head
        return head

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
        answer = await self._get(f"/replicas?service={quote(service, safe='')}", service)
        addresses = [address_of(replica["url"]) for replica in answer["replicas"]]
        if not addresses:
            raise NoReplicaError(f"service {service!r} has no live replica")
        return _Service(addresses, answer["endpoints"])

    async def _get(self, path: str, where: str) -> dict[str, Any]:
        request = _head("GET", self._registry, path) + b"\r\n"
        try:
            reply = await self.connections.fetch(self._registry, request, REGISTRY_SECONDS)
            answer = decode(reply)
        except (OSError, ValueError) as error:
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
            raise UnknownServiceError(str(answer.get("error", f"{path} not found")))
        return answer


class ClientCommunication(Communication):
    """The calls of one client; one object per client, one execution (cycle) at a time.

    Attributes:
        request, trace: Ids of the current execution.
        calls: Calls begun in the current execution.
    """

    def __init__(self, network: Network) -> None:
        self.network = network
        self.request = 0
        self.trace = 0
        self.calls = 0

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

    def begin(self, request: int, trace: int) -> None:
        """Start a new execution."""
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
    ) -> ClientFuture:
        """Call an endpoint and return at once; ``await`` what it returns. See `Communication.call`."""
        self.calls += 1
        return ClientFuture(self, dest_ms, path, _body(params), _lines(headers), timeout)

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

    def respond(self, body: Any = None, status: int = 200, headers: Mapping[str, str] | None = None) -> None:  # noqa: ARG002
        """Refuse: nobody has asked a client anything."""
        raise UsageError("a client has no request to respond to")


class ClientFuture(MupFuture):
    """A call under way; ``await`` gives the decoded body, or raises what went wrong."""

    __slots__ = (
        "_answer",
        "_body",
        "_connection",
        "_dest",
        "_done",
        "_error",
        "_lines",
        "_name",
        "_network",
        "_path",
        "_request",
        "_seq",
        "_start",
        "_task",
        "_timer",
        "_trace",
        "_tries",
        "_waiter",
    )

    def __init__(  # noqa: PLR0917 - made in one place
        self,
        owner: ClientCommunication,
        dest: str,
        path: str,
        body: bytes,
        lines: bytes,
        timeout: float | None,
    ) -> None:
        self._network = owner.network
        self._request = owner.request
        self._trace = owner.trace
        self._seq = owner.calls
        self._dest = dest
        self._path = path
        self._body = body
        self._lines = lines
        self._answer: Any = None
        self._error: CommunicationError | None = None
        self._done = False
        self._waiter: asyncio.Future[None] | None = None
        self._connection: Any = None
        self._task: asyncio.Task[None] | None = None
        self._tries = 0
        seconds = DEFAULT_TIMEOUT if timeout is None else timeout
        if not seconds > 0:
            raise UsageError(f"timeout must be > 0 seconds, got {timeout!r}")
        network = self._network
        service = network.known(dest)
        if service is not None and not path.startswith("/"):
            self._path = service.endpoints.get(path, path)
        self._name = network.log.name(self._label)
        self._start = time.monotonic_ns()
        if network.log.writer is not None:
            # Above this: `call`, and above that, the scenario.
            site = network.log.site("call", 2)
            network.log.writer.write(
                Event.COMM_START, self._request, self._trace, self._seq, site, self._name, time=self._start
            )
        self._timer = asyncio.get_running_loop().call_later(seconds, self._expire, seconds)
        address = None if service is None else network.pick(service)
        connection = None if address is None else network.connections.idle(address)
        if connection is not None and address is not None and self._path.startswith("/"):
            self._send(connection, address)
        else:
            self._task = asyncio.ensure_future(self._connect())

    @property
    def _label(self) -> str:
        """``B/epB/``: what the log and the model call the endpoint."""
        return f"{self._dest}{self._path.partition('?')[0]}"

    def get(self, timeout: float | None = None, *, check: bool = True) -> Any:  # noqa: ARG002
        """Refuse: blocking would stop every client of this process."""
        raise UsageError(
            f"a client must not block on its call of {self._label}", hint="write 'await' instead"
        )

    def __await__(self) -> Generator[Any, None, Any]:
        """Wait for the reply. Not a generator itself, so that the frame above is the one that awaits."""
        log = self._network.log
        site = log.site("await", 1) if log.writer is not None else 0
        return self._wait(site).__await__()

    async def _wait(self, site: int) -> Any:
        writer = self._network.log.writer
        if writer is not None:
            writer.write(Event.WAIT_START, self._request, self._trace, self._seq, site, self._name)
        if not self._done:
            if self._waiter is None or self._waiter.cancelled():
                self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        if writer is not None:
            flags = FAILED if self._error is not None else 0
            writer.write(Event.WAIT_END, self._request, self._trace, self._seq, site, self._name, flags)
        if self._error is not None:
            raise self._error
        return self._answer

    async def _connect(self) -> None:
        """Find a replica and open a connection to it; a replica that refuses is replaced once."""
        network = self._network
        try:
            while True:
                service = network.known(self._dest) or await network.ask(self._dest)
                if not self._path.startswith("/"):
                    # A name nobody has is sent as a path: the service answers 404 with what it has.
                    self._path = service.endpoints.get(self._path, f"/{self._path}")
                    self._name = network.log.name(self._label)
                address = network.pick(service)
                try:
                    connection = network.connections.idle(address) or await network.connections.fresh(address)
                except ConnectionRefusedError as error:
                    network.drop(service, address)
                    self._tries += 1
                    if self._tries > 1:
                        raise NoReplicaError(
                            f"no replica of {self._dest!r} accepts connections: {_reason(error)}"
                        ) from error
                    continue
                break
        except CommunicationError as error:
            self._finish(None, error)
        except OSError as error:
            self._finish(None, CommunicationError(f"cannot connect to {self._dest!r}: {_reason(error)}"))
        else:
            if self._done:
                # Timed out meanwhile.
                network.connections.keep(connection, address)
            else:
                self._send(connection, address)

    def _send(self, connection: Any, address: Address) -> None:
        remaining = max(self._timer.when() - asyncio.get_running_loop().time(), 0.001)
        ids = b"X-Mup-Request: %016x\r\nX-Mup-Trace: %016x\r\nX-Mup-Deadline: %d\r\n" % (
            child_id(self._request, self._seq),
            self._trace,
            remaining * 1000,
        )
        length = b"Content-Length: %d\r\n\r\n" % len(self._body)
        head = self._network.head(address, self._path)
        request = b"".join((head, ids, self._lines, length, self._body))
        self._connection = connection
        connection.send(request, self._received)
        writer = self._network.log.writer
        if writer is not None:
            writer.write(Event.CONTACT_DEST, self._request, self._trace, self._seq, 0, self._name)

    def _received(self, reply: Reply) -> None:
        self._connection = None
        if reply.error is not None:
            if reply.unsent and self._tries < 2:
                # The replica closed an idle connection just as we were about to use it.
                self._tries += 1
                self._task = asyncio.ensure_future(self._connect())
                return
            self._finish(None, CommunicationError(f"call of {self._label} failed: {_reason(reply.error)}"))
            return
        try:
            body = decode(reply)
        except ValueError as error:
            self._finish(None, CommunicationError(f"the reply of {self._label} cannot be decoded: {error}"))
            return
        if 200 <= reply.status < 300:
            self._finish(body, None)
            return
        reason = body.get("error", body) if isinstance(body, dict) else body
        message = f"{self._label} answered {reply.status}: {reason}"
        self._finish(None, CallError(message, status=reply.status, body=body))

    def _expire(self, seconds: float) -> None:
        if self._connection is not None:
            self._connection.abort()
            self._connection = None
        self._finish(None, CallTimeoutError(f"{self._label} did not answer within {seconds:g} s"))

    def _finish(self, answer: Any, error: CommunicationError | None) -> None:
        if self._done:
            return
        now = time.monotonic_ns()
        self._done = True
        self._timer.cancel()
        self._answer = answer
        self._error = error
        network = self._network
        # A status outside 2xx is an answer like any other: only a missing one is a failed exchange.
        failed = error is not None and not isinstance(error, CallError)
        if network.log.writer is not None:
            flags = FAILED if failed else 0
            network.log.writer.write(
                Event.COMM_FINISH, self._request, self._trace, self._seq, 0, self._name, flags, time=now
            )
        if network.window_start <= self._start < network.window_end:
            stats = network.stats.setdefault(self._label, CallStats())
            if error is None:
                stats.count += 1
                stats.seconds += (now - self._start) * 1e-9
            else:
                stats.errors += 1
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def _head(method: str, address: Address, path: str) -> bytes:
    # "%" stays: the path may be encoded already.
    target = quote(path, safe="/?&=%:@!$'()*+,;~-._")
    return f"{method} {target} HTTP/1.1\r\nHost: {address[0]}:{address[1]}\r\n".encode("ascii")


def _body(params: Mapping[str, Any] | None) -> bytes:
    try:
        return msgspec.json.encode(params) if params else b""
    except (TypeError, ValueError) as error:
        raise MupError(f"the parameters of a call must be JSON: {error}") from error


def _lines(headers: Mapping[str, str] | None) -> bytes:
    if not headers:
        return b""
    for name, value in headers.items():
        if not name or any(c in f"{name}{value}" for c in "\r\n") or ":" in name:
            raise UsageError(f"a header cannot be {name!r}: {value!r}")
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode("latin-1", "replace")


def _reason(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
