"""HTTP interface of the registry for replicas and clients, one handler per path.

Every answer is a JSON object; a refused request gets a status of 4xx, 503 or 507 and ``{"error": ...}``.
Web pages of strangers are refused by what `mup.runtime.protocol.origin` looks at, and by the content type
they would need their reader's consent for.
"""

from __future__ import annotations

import asyncio
import hmac
import re
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypeVar
from urllib.parse import unquote, urlsplit

import msgspec
from aiohttp import hdrs
from aiohttp.http_parser import RawRequestMessage
from aiohttp.streams import StreamReader
from aiohttp.web_exceptions import HTTPRequestEntityTooLarge
from aiohttp.web_protocol import RequestHandler, RequestPayloadError
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response
from aiohttp.web_server import Server

from mup.addresses import is_loopback
from mup.databases.address import has_credentials, server_of
from mup.errors import did_you_mean
from mup.names import name_problem
from mup.runtime.pool.metrics import CONTENT_TYPE
from mup.runtime.protocol.origin import KnownHosts
from mup.runtime.protocol.run_token import is_run_token
from mup_registry.directory import (
    Directory,
    FullError,
    Instance,
    ListeningClock,
    ReplacedError,
    Service,
    TakenError,
)
from mup_registry.metrics import metrics, targets
from mup_registry.protocol import RegistryProtocols
from mup_registry.reach import Reach

__all__ = ["RegistryServer"]

MAX_BODY = 256 * 1024
"""Bytes a registration may have: hundreds of endpoints."""
KNOWN_SECONDS = 2.0
"""After which replicas that live, and show it every second, have registered with a registry that has just
started."""
BODY_SECONDS = 10.0
"""Time its body may take to arrive."""
PAGE = 2_000
"""Replicas and services together that a page of a listing has, unless one service alone has more."""
_FOR_MACHINE = frozenset({"/mup/metrics", "/mup/targets"})
"""What this machine may read without a token that was invented for one run: Prometheus is not told of it."""

_T = TypeVar("_T")
_Handler = Callable[[BaseRequest], Awaitable[Response]]
_JSON = "application/json"

# Names reach terminals and logs: `_Registration` is checked for characters that mean something there.
_Name = Annotated[str, msgspec.Meta(max_length=200)]
_Address = Annotated[str, msgspec.Meta(max_length=1000)]
_Url = Annotated[str, msgspec.Meta(max_length=300)]


class _Registration(msgspec.Struct, forbid_unknown_fields=True):
    service: _Name
    url: _Url
    replica: Annotated[int, msgspec.Meta(ge=0, lt=2**31)] = 0
    pid: Annotated[int, msgspec.Meta(ge=0, lt=2**31)] = 0
    endpoints: dict[_Name, _Address] = {}
    again: bool = False


class _Reference(msgspec.Struct, forbid_unknown_fields=True):
    id: _Name


class _Database(msgspec.Struct, forbid_unknown_fields=True):
    name: _Name
    uri: _Address


class _DatabaseName(msgspec.Struct, forbid_unknown_fields=True):
    name: _Name


class RegistryServer:
    """The registry behind HTTP.

    Handlers and a dictionary instead of aiohttp's application: thousands of heartbeats per second go through
    here, and routes, middlewares and the like would be most of their cost.

    Args:
        directory: Its state.
        token: What every request but ``/healthz`` must bring as ``Authorization: Bearer``; "" = nothing.
        hosts: The names by which the registry is called.
        reach: Which addresses may be registered; None = as for a registry on loopback.
        tls: Whether the registry is encrypted: then everything it lists is.

    Attributes:
        tick: Seconds between two readings of the clock at most, by requests or by :meth:`now`.
    """

    def __init__(
        self,
        directory: Directory,
        token: str = "",
        *,
        hosts: KnownHosts | None = None,
        reach: Reach | None = None,
        tls: bool = False,
    ) -> None:
        self._directory = directory
        self._token = f"Bearer {token}".encode() if token else b""
        self._for_machine = _FOR_MACHINE if is_run_token(token) else frozenset()
        self._hosts = hosts or KnownHosts()
        self._reach = reach or Reach(self._hosts, (), local=True)
        self._tls = tls
        # Replicas show life three times per expiry: one gap must not eat more than one of these times.
        self.tick = min(0.25, directory.expiry / 12)
        self._clock = ListeningClock(2 * self.tick, time.monotonic())
        self._requests: Counter[tuple[str, int]] = Counter()
        self._callers_refused = 0
        self._handlers: dict[tuple[str, str], _Handler] = {
            ("GET", "/healthz"): self._health,
            ("POST", "/register"): self._register,
            ("POST", "/heartbeat"): self._heartbeat,
            ("POST", "/deregister"): self._deregister,
            ("GET", "/resolve"): self._resolve,
            ("GET", "/replicas"): self._replicas,
            ("GET", "/services"): self._services,
            ("GET", "/databases"): self._databases,
            ("POST", "/databases"): self._add_database,
            ("DELETE", "/databases"): self._remove_database,
            ("GET", "/mup/metrics"): self._metrics,
            ("GET", "/mup/targets"): self._targets,
        }
        self._paths = {path for _, path in self._handlers}

    def server(self) -> Server:
        """Return the protocol factory for a listening socket."""
        return RegistryProtocols(self._handle, request_factory=_make_request)

    def caller_refused(self) -> None:
        """Count a caller whose certificate is missing or wrong."""
        self._callers_refused += 1

    def now(self) -> float:
        """Return the time of the directory."""
        return self._clock.read(time.monotonic())

    async def _handle(self, request: BaseRequest) -> Response:
        response = await self._answer(request)
        # Unknown paths share a label, so that clients cannot invent them.
        path = request.path if request.path in self._paths else ""
        self._requests[path, response.status] += 1
        return response

    async def _answer(self, request: BaseRequest) -> Response:
        path = request.path
        try:
            if path != "/healthz":
                self._check_origin(request)
                if self._token:
                    self._check_token(request)
            handler = self._handlers.get((request.method, path))
            if handler is None:
                status, what = (405, "method not allowed") if path in self._paths else (404, "not found")
                raise _Refused(status, f"{request.method} {path}: {what}")
            return await handler(request)
        except _Refused as error:
            return _answer({"error": error.message, **error.more}, error.status)
        except FullError as error:
            return _answer({"error": str(error)}, 507)

    def _check_origin(self, request: BaseRequest) -> None:
        get = request.headers.get
        problem = self._hosts.stranger(get(hdrs.HOST, ""), get(hdrs.ORIGIN, ""), get("Sec-Fetch-Site", ""))
        if problem:
            raise _Refused(403, problem)

    def _check_token(self, request: BaseRequest) -> None:
        if (
            request.path in self._for_machine
            and request.method == "GET"
            and is_loopback(request.remote or "?")
        ):
            return
        shown = request.headers.get(hdrs.AUTHORIZATION, "").encode("utf-8", "surrogateescape")
        if not hmac.compare_digest(shown, self._token):
            problem = "does not have this token" if shown else "wants a token (MUP_REGISTRY_TOKEN)"
            if self._for_machine and not shown:
                problem = (
                    "wants the token of its run, which commands of mup find by themselves:"
                    " 'mup run' says where it is (or MUP_REGISTRY_TOKEN)"
                )
            raise _Refused(401, f"the registry {problem}")

    async def _health(self, _: BaseRequest) -> Response:
        return _answer({"status": "ok"})

    async def _register(self, request: BaseRequest) -> Response:
        data = await _read(request, _Registration)
        problem = name_problem(data.service)
        if problem:
            raise _Refused(400, f"service: {problem}")
        if not _is_base_url(data.url):
            raise _Refused(400, f"url: must be like http://host:port, got {data.url!r}")
        self._check_reach(data.url)
        for name, path in data.endpoints.items():
            if not path.startswith("/") or not (name + path).isprintable():
                raise _Refused(400, f"endpoints: the path of {name!r} must start with '/', got {path!r}")
        try:
            instance = self._directory.register(
                service=data.service,
                replica=data.replica,
                url=data.url.rstrip("/"),
                pid=data.pid,
                endpoints=data.endpoints,
                now=self.now(),
                again=data.again,
            )
        except ReplacedError as error:
            raise _Refused(410, f"url: {error}") from error
        except TakenError as error:
            raise _Refused(409, f"url: {error}", expiry=self._directory.expiry) from error
        return _answer({"id": instance.id, "expiry": self._directory.expiry})

    def _check_reach(self, url: str) -> None:
        """Refuse an address that callers must not send anything to."""
        parts = urlsplit(url)
        if self._tls and parts.scheme != "https":
            raise _Refused(
                400,
                f"url: everything here is encrypted, and {url!r} is not: a replica starts with tls.cert and"
                " tls.key, and registers an https:// address",
            )
        if why := self._reach.problem(parts.hostname or ""):
            raise _Refused(
                400, f"url: {why}; [registry] allow in mup.toml lists what may be registered anyway"
            )

    async def _heartbeat(self, request: BaseRequest) -> Response:
        data = await _read(request, _Reference)
        if not self._directory.heartbeat(data.id, self.now()):
            raise _Refused(404, f"unknown instance {data.id!r}; register again")
        return _answer({})

    async def _deregister(self, request: BaseRequest) -> Response:
        data = await _read(request, _Reference)
        return _answer({"removed": self._directory.deregister(data.id, self.now())})

    async def _resolve(self, request: BaseRequest) -> Response:
        name, _ = self._service_of(request)
        instance = self._directory.resolve(name, self.now())
        if instance is None:
            raise _Refused(503, f"service {name!r} has no live replica")
        return _answer(instance.describe())

    async def _replicas(self, request: BaseRequest) -> Response:
        name, service = self._service_of(request)
        tag, body = self._list(name, service)
        if request.headers.get(hdrs.IF_NONE_MATCH) == tag:
            return Response(status=304, headers={hdrs.ETAG: tag})
        return Response(body=body, headers={hdrs.ETAG: tag}, content_type=_JSON)

    def _list(self, name: str, service: Service) -> tuple[str, bytes]:
        """Return tag and body of the list of a service's replicas; one tag never stands for two bodies."""
        learning = self._directory.learning(self.now())
        tag = f'"{self._directory.run}.{service.version}{".learning" if learning else ""}"'
        if service.listed[0] != tag:
            body = msgspec.json.encode(
                {
                    "service": name,
                    "replicas": [instance.describe() for instance in service.live()],
                    "endpoints": service.endpoints,
                    "learning": learning,
                }
            )
            service.listed = tag, body
        return service.listed

    async def _services(self, request: BaseRequest) -> Response:
        page, after = self._page(request)
        services = {name: [instance.describe() for instance in live] for name, live in page.items()}
        return _answer({"services": services, "next": after})

    def _page(self, request: BaseRequest) -> tuple[dict[str, list[Instance]], str | None]:
        """Return a page of services, those behind ``?after=NAME``, and what the next one is after."""
        listed = self._directory.live(self.now())
        names = list(listed)
        page: dict[str, list[Instance]] = {}
        room = PAGE
        for name in names[bisect_right(names, request.query.get("after", "")) :]:
            room -= 1 + len(listed[name])
            if page and room < 0:
                return page, next(reversed(page))
            page[name] = listed[name]
        return page, None

    async def _databases(self, request: BaseRequest) -> Response:
        databases = self._directory.databases
        name = request.query.get("name")
        if name is None:
            return _answer({"databases": databases})
        if name not in databases:
            raise _Refused(404, f"unknown database {name[:200]!r}; {did_you_mean(name, list(databases))}")
        return _answer({"name": name, "uri": databases[name]})

    async def _add_database(self, request: BaseRequest) -> Response:
        data = await _read(request, _Database)
        # The URI itself is in no message: it may be one that should not have come here.
        problem = name_problem(data.name)
        if problem:
            raise _Refused(400, f"name: {problem}")
        if "://" not in data.uri or not data.uri.isprintable():
            raise _Refused(400, f"a database needs a uri with a scheme, got that of {data.name!r}")
        if has_credentials(data.uri):
            raise _Refused(
                400,
                f"the uri of database {data.name!r} has credentials, which every client could read here; "
                "give them to a service in its environment",
            )
        for host in _hosts_of(data.uri):
            if why := self._reach.odd(host):
                raise _Refused(400, f"the uri of database {data.name!r}: {why}; [registry] allow in mup.toml")
        self._directory.add_database(data.name, data.uri)
        return _answer({})

    async def _remove_database(self, request: BaseRequest) -> Response:
        data = await _read(request, _DatabaseName)
        return _answer({"removed": self._directory.databases.pop(data.name, None) is not None})

    async def _metrics(self, _: BaseRequest) -> Response:
        live, databases = self._directory.live(self.now()), len(self._directory.databases)
        body = metrics(live, databases, self._requests, self._callers_refused)
        return Response(body=body, headers={hdrs.CONTENT_TYPE: CONTENT_TYPE})

    async def _targets(self, _: BaseRequest) -> Response:
        return Response(body=targets(self._directory.live(self.now())), content_type=_JSON)

    def _service_of(self, request: BaseRequest) -> tuple[str, Service]:
        name = request.query.get("service", "")
        if not name:
            raise _Refused(400, f"{request.path}: the query needs ?service=NAME")
        service = self._directory.service(name, self.now())
        if service is None:
            known = list(self._directory.services)
            learning = self.now() < KNOWN_SECONDS
            problem = f"unknown service {name[:200]!r}; {did_you_mean(name, known)}"
            raise _Refused(404, problem, learning=learning)
        return name, service


class _Refused(Exception):  # noqa: N818 - it becomes an answer, not a failure of the registry
    def __init__(self, status: int, message: str, **more: Any) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.more = more


def _make_request(
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
        asyncio.get_running_loop(),
        client_max_size=MAX_BODY,
    )


async def _read(request: BaseRequest, kind: type[_T]) -> _T:
    if request.content_type != _JSON:
        # Whatever else a page can send without being asked whether it may.
        raise _Refused(415, f"{request.path} wants {_JSON}")
    try:
        return msgspec.json.decode(await _body(request), type=kind)
    except msgspec.DecodeError as error:
        raise _Refused(400, f"{request.path}: {error}") from error
    except HTTPRequestEntityTooLarge as error:
        raise _Refused(413, f"{request.path}: the body has more than {MAX_BODY} bytes") from error
    except (ConnectionError, RequestPayloadError) as error:
        # An everyday matter, no error of the registry.
        raise _Refused(400, f"{request.path}: the body ended early") from error
    except TimeoutError as error:
        problem = f"the body did not come within {BODY_SECONDS:g} s"
        raise _Refused(408, f"{request.path}: {problem}") from error


async def _body(request: BaseRequest) -> bytes:
    """Return the body of a request.

    Raises:
        TimeoutError: It does not come.
    """
    if request.content.is_eof():
        return await request.read()
    async with asyncio.timeout(BODY_SECONDS):
        return await request.read()


def _is_base_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    return (
        parts.scheme in ("http", "https")
        and bool(parts.hostname)
        and port != 0
        and "@" not in parts.netloc
        and not parts.query
        and not parts.fragment
        and url.isprintable()
        and " " not in url
    )


def _hosts_of(uri: str) -> list[str]:
    """Return the hosts in the URI of a database, which may be several."""
    hosts = []
    for server in server_of(uri).split(","):
        text = unquote(server)
        hosts.append(text[1:].partition("]")[0] if text.startswith("[") else re.sub(r":\d*$", "", text))
    return hosts


def _answer(data: dict[str, Any], status: int = 200) -> Response:
    return Response(body=msgspec.json.encode(data), status=status, content_type=_JSON)
