"""How does an endpoint in a worker process see its request and reach others?"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import parse_qsl, quote

import msgspec

from mup.communication import DEFAULT_TIMEOUT, Communication, Headers
from mup.errors import CommunicationError, MupError
from mup.events.ids import child_id
from mup.events.record import FAILED, Event
from mup.events.sites import SiteTable
from mup.events.writer import EventWriter
from mup.future import MupFuture
from mup.runtime.calls import CallFuture, Operation, QueryFuture, connect_and_send
from mup.runtime.http_client import ConnectionPool, RawRequest
from mup.runtime.resolver import Resolver
from mup.runtime.wire import Answer, FromWorker, Request

if TYPE_CHECKING:
    from mup.databases.runner import QueryRunner

__all__ = ["BadRequestError", "Channel", "WorkerCommunication", "WorkerTools"]

_encode = msgspec.json.Encoder().encode
_SAFE_IN_PATH = "/:@!$&'()*+,;=-._~%?"
_OF_THE_CONNECTION = frozenset({"content-length", "transfer-encoding", "connection"})
"""Headers that say how a message is sent; users pass on others' but do not choose these."""


class Channel(Protocol):
    """Where answers go."""

    def send(self, message: FromWorker) -> None:
        """Send one message."""


class BadRequestError(Exception):
    """What the client sent cannot be decoded; becomes a response with status 400."""


class EventLog:
    """The records of one worker; does nothing without a writer.

    Attributes:
        writer: Where the records go; None = nowhere.
        write: ``EventWriter.write``, or nothing.
    """

    def __init__(self, writer: EventWriter | None, source: Path) -> None:
        self.writer = writer
        self.write: Callable[..., None] = writer.write if writer else _write_nothing
        self._sites = SiteTable(writer, source) if writer else None

    def name(self, text: str) -> int:
        """Return the id of a name."""
        return self.writer.name(text) if self.writer else 0

    def site(self, frame: FrameType) -> int:
        """Return the site of the call that ``frame`` is executing."""
        return self._sites.of_frame(frame, "call") if self._sites else 0

    def stamp(self) -> tuple[int, int]:
        """Return the time and the CPU time of now, for a record to be written later."""
        return (time.monotonic_ns(), time.thread_time_ns()) if self.writer else (0, 0)


def _write_nothing(*_: object) -> None:
    pass


@dataclass(slots=True)
class WorkerTools:
    """What the requests of one worker share.

    Attributes:
        service: Name of the service.
        log: Of the requests that are logged.
        silent: Of the others.
        resolver: Knows where others are.
        pool: Connections to them.
        queries: Runs queries; None before the first one.
    """

    service: str
    log: EventLog
    silent: EventLog
    resolver: Resolver
    pool: ConnectionPool
    queries: QueryRunner | None = None

    def query_runner(self) -> QueryRunner:
        """Return the runner of queries, loading the database drivers at the first query."""
        if self.queries is None:
            from mup.databases.runner import QueryRunner  # noqa: PLC0415

            self.queries = QueryRunner(self.resolver.database)
        return self.queries


class WorkerCommunication(Communication):
    """One request in a worker.

    Args:
        request: As the front sent it.
        endpoint: ``A/epA/``.
        tools: Of the worker.
        channel: Where the answer goes.

    Attributes:
        responded: Whether the request has been answered.
    """

    def __init__(self, request: Request, endpoint: str, tools: WorkerTools, channel: Channel) -> None:
        self._request = request
        self._tools = tools
        self._channel = channel
        self._log = tools.log if request.sampled else tools.silent
        self._endpoint = self._log.name(endpoint)
        self._seq = 0
        self._calls: list[CallFuture] = []
        self._headers: Headers | None = None
        self._cookies: Mapping[str, str] | None = None
        self._params: dict[str, Any] | None = None
        self.responded = False

    @property
    def headers(self) -> Headers:
        """Headers of the request."""
        if self._headers is None:
            self._headers = Headers(
                (name.decode("latin-1"), value.decode("utf-8", "surrogateescape"))
                for name, value in self._request.headers
            )
        return self._headers

    @property
    def cookies(self) -> Mapping[str, str]:
        """Cookies of the request."""
        if self._cookies is None:
            # Imported here: few endpoints look at cookies.
            from http.cookies import CookieError, SimpleCookie  # noqa: PLC0415

            try:
                self._cookies = {
                    name: morsel.value
                    for name, morsel in SimpleCookie(self.headers.get("cookie", "")).items()
                }
            except CookieError:
                self._cookies = {}
        return self._cookies

    @property
    def body(self) -> bytes:
        """Body of the request, undecoded."""
        return self._request.body

    @property
    def params(self) -> dict[str, Any]:
        """Query string and body, merged."""
        if self._params is None:
            self._params = self._decode_params()
        return self._params

    def call(
        self,
        dest_ms: str,
        path: str,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> MupFuture:
        """Call an endpoint of a service; see :meth:`Communication.call`."""
        tools = self._tools
        site = self._log.site(sys._getframe(1))  # noqa: SLF001 - the only way to see who calls
        self._seq += 1
        seq = self._seq
        path = tools.resolver.path_of(dest_ms, path)
        operation = self._operation(seq, site, f"{dest_ms}{path.partition('?')[0]}", timeout)
        operation.log(Event.COMM_START, 0)
        try:
            target = quote(path, safe=_SAFE_IN_PATH)
            body = _encode_params(params)
            request_with = partial(self._call_request, seq, target, dict(headers or {}), body)
            send = partial(connect_and_send, operation, dest_ms, request_with, tools.resolver, tools.pool)
            future = CallFuture(operation, send, tools.pool)
        except BaseException:
            # Every commStart has its contactDest and commFinish, so that readers need no special case.
            operation.log(Event.CONTACT_DEST, FAILED)
            operation.log(Event.COMM_FINISH, FAILED)
            raise
        operation.log(Event.CONTACT_DEST, 0)
        self._calls.append(future)
        return future

    def query(
        self, db_name: str, qry_name: str, coll_name: str, qry_txt: str | bytes | Mapping[str, Any]
    ) -> MupFuture:
        """Query a database; see :meth:`Communication.query`."""
        tools = self._tools
        site = self._log.site(sys._getframe(1))  # noqa: SLF001 - the only way to see who calls
        self._seq += 1
        operation = self._operation(self._seq, site, f"{db_name}.{qry_name}", None)
        operation.log(Event.COMM_START, 0)

        def log(event: Event, failed: bool) -> None:
            operation.log(event, FAILED if failed else 0)

        try:
            handle = tools.query_runner().submit(db_name, coll_name, qry_txt, log)
        except BaseException:
            operation.log(Event.CONTACT_DEST, FAILED)
            operation.log(Event.COMM_FINISH, FAILED)
            raise
        return QueryFuture(operation, handle)

    def respond(self, body: Any = None, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        """Answer the request; see :meth:`Communication.respond`."""
        site = self._log.site(sys._getframe(1))  # noqa: SLF001 - the only way to see who responds
        if self.responded:
            raise MupError("respond() was called twice for one request", hint="the first response stands")
        self._answer(body, status, headers, site)

    def fail(self, status: int, message: str) -> None:
        """Answer with an error the endpoint did not choose itself, unless it has answered."""
        if not self.responded:
            path = self._request.path
            body = {"error": message, "service": self._tools.service, "endpoint": path}
            self._answer(body, status, None, site=0)

    def write(self, event: Event, flags: int = 0) -> None:
        """Log an event of the whole execution."""
        request = self._request
        self._log.write(event, request.request, request.trace, 0, 0, self._endpoint, flags)

    def check_params(self) -> None:
        """Decode the body now, if there is one.

        Raises:
            BadRequestError: It is not what its content type says.
        """
        if self.body:
            self._params = self._decode_params()

    def close(self) -> None:
        """The endpoint has returned: nobody will ask for what has not been asked for."""
        for future in self._calls:
            future.abandon()

    def _answer(self, body: Any, status: int, headers: Mapping[str, str] | None, site: int) -> None:
        log, request = self._log, self._request
        # Stamped now but written later: a body that cannot be sent is no end yet.
        stamp = log.stamp()
        answer = Answer(_checked_status(status), *_encoded(body, headers))
        flags = FAILED if status >= 500 else 0
        log.write(Event.END, request.request, request.trace, 0, site, self._endpoint, flags, *stamp)
        self._channel.send(answer)
        self.responded = True

    def _operation(self, seq: int, site: int, name: str, timeout: float | None) -> Operation:
        request = self._request
        if timeout is not None and timeout <= 0:
            raise CommunicationError(f"timeout must be > 0 seconds, got {timeout!r}")
        deadline = time.monotonic() + (DEFAULT_TIMEOUT if timeout is None else timeout)
        if request.deadline is not None:
            deadline = min(deadline, request.deadline)
        name_id = self._log.name(name)
        write = self._log.write

        def log(event: Event, flags: int = 0, at: int = site) -> None:
            write(event, request.request, request.trace, seq, at, name_id, flags)

        return Operation(log, self._log.site, name, deadline)

    def _call_request(
        self, seq: int, target: str, headers: dict[str, str], body: bytes, seconds: float
    ) -> RawRequest:
        complete = {
            "X-Mup-Request": f"{child_id(self._request.request, seq):016x}",
            "X-Mup-Trace": f"{self._request.trace:016x}",
            "X-Mup-Deadline": f"{seconds * 1000:.0f}",
            **{name: value for name, value in headers.items() if name.lower() not in _OF_THE_CONNECTION},
        }
        if not self._request.sampled:
            complete["X-Mup-Sampled"] = "0"
        if not any(name.lower() == "content-type" for name in headers):
            complete["Content-Type"] = "application/json"
        return RawRequest("POST", target, complete, body)

    def _decode_params(self) -> dict[str, Any]:
        params: dict[str, Any] = dict(parse_qsl(self._request.query, keep_blank_values=True))
        if not self.body:
            return params
        kind = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == "application/json" or kind.endswith("+json"):
            try:
                decoded = msgspec.json.decode(self.body)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise BadRequestError(f"the body is not JSON: {error}") from error
            if isinstance(decoded, dict):
                params.update(decoded)
        elif kind == "application/x-www-form-urlencoded":
            try:
                params.update(parse_qsl(self.body.decode(), keep_blank_values=True))
            except ValueError as error:
                raise BadRequestError(f"the body is no form: {error}") from error
        return params


def _encode_params(params: Any) -> bytes:
    try:
        return _encode({} if params is None else params)
    except (TypeError, ValueError, msgspec.MsgspecError) as error:
        raise CommunicationError(f"the params cannot be sent as JSON: {error}") from error


def _checked_status(status: Any) -> int:
    if isinstance(status, bool) or not isinstance(status, int) or not 200 <= status <= 599:
        raise MupError(f"status must be a whole number between 200 and 599, got {status!r}")
    return status


def _encoded(body: Any, headers: Mapping[str, str] | None) -> tuple[dict[str, str], bytes]:
    """Return headers and body as they are sent."""
    if isinstance(body, str):
        kind, data = "text/plain; charset=utf-8", body.encode()
    elif isinstance(body, bytes | bytearray | memoryview):
        kind, data = "application/octet-stream", bytes(body)
    else:
        try:
            kind, data = "application/json", _encode(body)
        except (TypeError, ValueError, msgspec.MsgspecError) as error:
            raise MupError(f"the body cannot be sent as JSON: {error}") from error
    complete = {"Content-Type": kind}
    for name, value in (headers or {}).items():
        if not isinstance(value, str) or any(c in name + value for c in "\r\n\0"):
            raise MupError(f"header {name!r} must be a text without line breaks, got {value!r}")
        if name.lower() == "content-type":
            complete["Content-Type"] = value
        elif name.lower() not in _OF_THE_CONNECTION:
            complete[name] = value
    return complete, data
