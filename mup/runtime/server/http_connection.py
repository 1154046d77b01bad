"""One connection to a front: bytes become requests, answers become bytes, in the same order.

The parser is ``httptools`` (llhttp, the one of Node.js). One request of a connection is in work at a time:
what a client sends ahead waits, and beyond a little of it the client has to wait too. There is no task and no
timer per request or connection; the server's sweep looks after those that take too long.

Words: a *deaf* connection ignores what comes in, because its last request cannot be read or must not be read
further. It *lingers* then: closed at once, the client's unread bytes would make the kernel reset the
connection, and the answer would be lost.

A client that sends nothing more may have gone, or wait for its answers: the same segment says either. Where
it matters the client is sent a ``100 Continue``, which those who listen have to ignore, and which the machine
of one that has gone answers with a reset. HTTP/1.0 has no such thing: there, the end of either side ends the
request.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

import httptools

from mup.runtime.server.http_head import WITHOUT_CONTENT, response_head
from mup.runtime.server.http_request import Application, HttpRequest

if TYPE_CHECKING:
    from mup.runtime.server.http_server import HttpServer

__all__ = ["HttpConnection"]

_log = logging.getLogger("mup.runtime")

LINGER_SECONDS = 10.0
"""How long a client may take to read a refusal while it still sends."""

MAX_LINE = 8190
"""Bytes of a request line or a header."""

MAX_HEAD = 65536
"""Bytes of a head or of trailers. Requests of browsers have a few KiB; it bounds what a client makes a
front keep."""
MAX_HEADERS = 128
"""Far more than browsers and proxies send; each costs a parsed pair of names and values."""

READ_AHEAD, READ_AHEAD_BYTES = 8, 65536
"""Requests, or bytes of a body, that are read while another request is in work."""

_JOINED = 65536
"""A body up to this size is copied behind its head, which is cheaper than to send two pieces."""

_CLOSE, _KEEP = "Connection: close\r\n", "Connection: keep-alive\r\n"
_SMALL = 65536
"""Bodies up to this size are not counted: their number is limited by that of connections."""

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class _Refusal(NamedTuple):
    """Why a request is not read further: see :meth:`Application.refuse`."""

    status: int
    kind: str
    problem: str


_NO_HTTP = _Refusal(400, "bad_http", "this is no HTTP request")
_NO_HOST = _Refusal(400, "bad_http", "a request needs one Host header")
_FRAMED_TWICE = _Refusal(400, "bad_http", "a body has to come as one chunked coding, and in HTTP/1.1")
_TOO_MANY = _Refusal(503, "bodies_full", "other requests have all the memory there is for bodies")
_EXPECTS = _Refusal(417, "bad_http", "nothing but 100-continue can be expected")
_CUT_OFF = _Refusal(400, "bad_http", "the request ended early")
_HEAD_TOO_LARGE = _Refusal(431, "header_too_large", "the request line or a header is too long")
_HEAD_TOO_SLOW = _Refusal(408, "header_too_slow", "the request did not come in time")


class _RefusedError(Exception):
    """Ends the parser's work on a request."""

    def __init__(self, refusal: _Refusal) -> None:
        super().__init__(refusal.problem)
        self.refusal = refusal


class HttpConnection(asyncio.Protocol):
    """The server's end of one connection.

    Args:
        server: Whose connection it is.
        application: Answers the requests.
    """

    __slots__ = (
        "_application",
        "_begun",
        "_body",
        "_counted",
        "_current",
        "_deaf",
        "_drained",
        "_ended",
        "_full",
        "_going",
        "_headers",
        "_held",
        "_lingers",
        "_parser",
        "_paused",
        "_pending",
        "_piece",
        "_refusal",
        "_request",
        "_server",
        "_since",
        "_size",
        "_stalled",
        "_transport",
        "_unsent",
        "_url",
    )

    def __init__(self, server: HttpServer, application: Application) -> None:
        self._server = server
        self._application = application
        self._parser = httptools.HttpRequestParser(self)
        # What is being received.
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._request: HttpRequest | None = None  # from the end of its head to its own end
        self._begun = False  # its body is wanted
        self._body: list[bytes] = []
        self._size = 0
        self._counted = 0  # bytes of it that the server counts
        self._piece = 0  # size of the bytes being parsed
        self._stalled = 0  # bytes since the piece in which a head has begun or a body has gone on
        # What has been received.
        self._pending: deque[HttpRequest] = deque()
        self._refusal: _Refusal | None = None  # of the last of them
        self._current: HttpRequest | None = None
        self._held = 0  # bytes of their bodies that the server counts
        self._going = False
        # The connection.
        self._since = 0.0  # when the phase it is in has begun
        self._deaf = False
        self._lingers = False
        self._ended = False  # the client sends nothing more
        self._paused = False  # we do not read
        self._full = False  # the client does not read
        self._unsent = 0
        self._drained: asyncio.Future[None] | None = None

    @property
    def remote(self) -> str:
        """Address of the client."""
        return str(self._transport.get_extra_info("peername"))

    @property
    def peer(self) -> str:
        """IP address of the client; "" if there is none."""
        name = self._transport.get_extra_info("peername")
        return str(name[0]) if name else ""

    @property
    def busy(self) -> bool:
        """Whether an answer is due."""
        return self._current is not None or bool(self._pending)

    # Events of the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        # A cast: the transports of uvloop are not subclasses of asyncio's.
        self._transport = cast("asyncio.Transport", transport)
        sock = transport.get_extra_info("socket")
        if sock is not None:
            # A client whose machine is gone while its request is in work.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._server.opened(self)
        self._since = self._server.now

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - how it ended does not matter
        """The client has gone; a request in work goes on, its answer is dropped."""
        self._server.closed(self)
        self._server.bodies -= self._held + self._counted
        self._held = self._counted = 0
        self._deaf = True
        current, self._current = self._current, None
        self._pending.clear()
        self._request = None
        self._full = False
        self._wake(ConnectionResetError("the client has gone"))
        if current is not None and current.on_gone is not None:
            current.on_gone()

    def data_received(self, data: bytes) -> None:
        """Parse, and start what can be started."""
        if self._deaf:
            return
        self._piece = len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._ignore_upgrade(data[upgrade.args[0] :])
        except httptools.HttpParserError as error:
            self._cannot_read(error)
        if self._pending and self._current is None:
            self._go_on()
        # Most of the time all of one request has come.
        if self._request is not None or self._url or self._pending:
            self._look_ahead()

    def eof_received(self) -> bool:
        """The client sends nothing more; it may still read. Return whether the connection stays open."""
        self._ended = True
        # A deaf one has nothing to refuse: what lingers is over; an answer that is due is still sent.
        if not self._deaf and (self._request is not None or self._url):
            self._refuse(_CUT_OFF)
            self._go_on()
        if self._awaited:
            if self._parser.get_http_version() == "1.1":
                # It has not been sent a head yet.
                self._transport.write(_CONTINUE)
            else:
                # RFC 1945, 1.3: a connection that either side closes ends the request.
                self._transport.abort()
        return self._stays_open()

    @property
    def _awaited(self) -> bool:
        """Whether a callback waits for the client to disconnect."""
        return self._current is not None and self._current.on_gone is not None

    @property
    def deserted(self) -> bool:
        """Whether the client is known to have gone."""
        if self._transport.is_closing() or not self._ended:
            return self._transport.is_closing()
        # Nothing is read any more, so the event loop does not learn of a reset.
        sock = self._transport.get_extra_info("socket")
        return bool(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))

    def _stays_open(self) -> bool:
        # A connection with TLS cannot be half open.
        return self.busy and not self._server.encrypted

    def pause_writing(self) -> None:
        """The client does not read fast enough."""
        self._full = True
        self._unsent = 0

    def resume_writing(self) -> None:
        """The client has read most of what was sent."""
        self._full = False
        self._wake(None)
        if self._pending and self._current is None:
            self._go_on()

    # Events of the parser.

    def on_url(self, url: bytes) -> None:
        """A piece of the target."""
        if not self._url:
            self._stalled = -self._piece
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; or a trailer of a chunked body, which is not used."""
        if self._request is None:
            self._headers.append((name.lower(), value.rstrip(b" \t")))

    def on_headers_complete(self) -> None:
        """Make the request.

        Raises:
            _RefusedError: It is none, or too large.
        """
        headers, url = self._headers, self._url
        # Not negative: the head began in an earlier piece.
        if len(headers) > MAX_HEADERS or self._piece > MAX_LINE or self._stalled >= 0:
            _check_sizes(url, headers)
        self._url, self._headers, self._stalled = b"", [], -self._piece
        parser = self._parser
        keep = parser.should_keep_alive()
        fields = dict(headers)
        path, _, query = _target(url).partition("?")
        self._request = HttpRequest(self, parser.get_method().decode(), path, query, headers, fields, keep)
        if not keep or len(fields) < len(headers) or b"host" not in fields or b"connection" in fields:
            self._check_head(headers)
        if b"transfer-encoding" in fields:
            self._check_codings(headers)
        if b"expect" in fields:
            self._check_expectations(headers)

    def on_body(self, data: bytes) -> None:
        """A piece of the body.

        Raises:
            _RefusedError: It is longer than it may be.
        """
        self._size += len(data)
        if self._size > self._server.max_body:
            raise _RefusedError(self._too_large())
        if self._size > _SMALL:
            self._server.bodies += self._size - self._counted
            self._counted = self._size
            if self._server.bodies > self._server.max_bodies:
                raise _RefusedError(_TOO_MANY)
        self._stalled = -self._piece
        self._body.append(data)

    def on_message_complete(self) -> None:
        """The request waits for its turn."""
        request = self._request
        assert request is not None  # noqa: S101 - its head was complete
        if self._body:
            request.body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
            self._body = []
            self._size = 0
            self._held += self._counted
            self._counted = 0
        self._request = None
        self._begun = False
        self._pending.append(request)

    # Receiving: what is seldom.

    def _check_head(self, headers: list[tuple[bytes, bytes]]) -> None:
        hosts = sum(name == b"host" for name, _ in headers)
        version = self._parser.get_http_version()
        if version not in ("1.0", "1.1"):
            raise _RefusedError(_NO_HTTP)
        if hosts > 1 or (hosts == 0 and version != "1.0"):
            raise _RefusedError(_NO_HOST)

    def _check_codings(self, headers: list[tuple[bytes, bytes]]) -> None:
        """Refuse a body that a proxy before us may have read otherwise (RFC 9112, 6.1)."""
        codings = [value.lower() for name, value in headers if name == b"transfer-encoding"]
        # The parser removes the chunks, but no coding below them.
        if codings != [b"chunked"] or self._parser.get_http_version() == "1.0":
            raise _RefusedError(_FRAMED_TWICE)

    def _check_expectations(self, headers: list[tuple[bytes, bytes]]) -> None:
        """Refuse expectations other than ``100-continue`` (RFC 9110, 10.1.1)."""
        wanted = {value.lower() for name, value in headers if name == b"expect"}
        if wanted != {b"100-continue"} and self._parser.get_http_version() != "1.0":
            raise _RefusedError(_EXPECTS)

    def _too_large(self) -> _Refusal:
        return _Refusal(413, "body_too_large", f"the body has more than {self._server.max_body} bytes")

    def _cannot_read(self, error: httptools.HttpParserError) -> None:
        """Refuse what the parser, or we within it, did not want."""
        reason = error.__context__  # what a callback has raised
        if isinstance(reason, _RefusedError):
            self._refuse(reason.refusal)
        elif reason is None or isinstance(reason, httptools.HttpParserError | httptools.HttpParserUpgrade):
            _log.debug("cannot read a request of %s: %s", self.remote, error)
            self._refuse(_NO_HTTP)
        else:
            raise error

    def _refuse(self, refusal: _Refusal) -> None:
        """Answer what is being received with an error, after what was received before; then close."""
        request = self._request or HttpRequest(self, "", "", "", [], {}, keep_alive=False)
        self._let_go(request)
        self._refusal = refusal

    def _let_go(self, request: HttpRequest) -> None:
        """Read no further: this request is the last one."""
        request.keep_alive = False
        self._deaf = True
        self._request = None
        self._url = b""
        self._body.clear()
        self._server.bodies -= self._counted
        self._size = self._counted = 0
        self._pending.append(request)
        self._resume()

    def _ignore_upgrade(self, rest: bytes) -> None:
        """Read a request that asks for another protocol as one that does not: its body may follow.

        Args:
            rest: What came behind its head.
        """
        # A loop: many such requests may have come at once.
        while True:
            request = self._pending.pop()
            if request.method == "CONNECT":
                self._request = request
                self._refuse(_NO_HTTP)
                return
            rest = self._without_upgrade(request) + rest
            self._parser = httptools.HttpRequestParser(self)
            try:
                self._parser.feed_data(rest)
            except httptools.HttpParserUpgrade as upgrade:
                rest = rest[upgrade.args[0] :]
            except httptools.HttpParserError as error:
                self._cannot_read(error)
                return
            else:
                return

    def _without_upgrade(self, request: HttpRequest) -> bytes:
        target = f"{request.path}?{request.query}" if request.query else request.path
        lines = [f"{request.method} {target} HTTP/{self._parser.get_http_version()}".encode()]
        lines += [name + b": " + value for name, value in request.headers if name != b"upgrade"]
        return b"\r\n".join([*lines, b"", b""])

    def _look_ahead(self) -> None:
        """Part of a request has come, or one before it is in work: wait, but not for too much."""
        if self._request is not None or self._url:
            self._stalled += self._piece
            if self._url and not self._stalled:
                self._since = self._server.loop.time()
            if self._stalled > MAX_HEAD:
                self._refuse(_HEAD_TOO_LARGE)
                self._go_on()
                return
        if self.busy:
            if len(self._pending) >= READ_AHEAD or self._size > READ_AHEAD_BYTES:
                self._pause()
        elif self._request is not None and not self._begun:
            self._begin_body(self._request)

    def _begin_body(self, request: HttpRequest) -> None:
        """Let a body come whose request is next; or answer without it."""
        self._begun = True
        self._since = self._server.loop.time()
        length = request.fields.get(b"content-length", b"")
        if length and int(length) > self._server.max_body:
            self._refuse(self._too_large())
        elif length and int(length) > max(_SMALL, self._server.max_bodies - self._server.bodies):
            # What has come of it by now is next to nothing.
            self._refuse(_TOO_MANY)
        elif not self._application.wants_body(request):
            self._let_go(request)
        elif request.fields.get(b"expect", b"").lower() == b"100-continue" and not self._size:
            # Clients with large bodies wait for this a second or more before they send them anyway.
            self._transport.write(_CONTINUE)
        if self._pending:
            self._go_on()

    def _pause(self) -> None:
        if not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def _resume(self) -> None:
        if self._paused:
            self._paused = False
            self._transport.resume_reading()

    # Answering.

    def _go_on(self) -> None:
        """Handle what waits, one after the other. A loop: answers that are ready at once must not nest."""
        if self._going:
            return
        self._going = True
        while self._pending and self._current is None and not self._full:
            request = self._current = self._pending.popleft()
            self._handle(request)
        self._going = False
        if self._current is None and not self._pending:
            self._rest()

    def _handle(self, request: HttpRequest) -> None:
        refusal = None if self._pending else self._refusal
        try:
            if refusal is None:
                self._application.handle(request)
            else:
                self._application.refuse(request, refusal.status, refusal.kind, refusal.problem)
        except Exception:  # noqa: BLE001 - whatever it is: the client waits, and so do the requests behind this one
            _log.exception("a request could not be handled")
            request.keep_alive = False
            request.respond(500)

    def _rest(self) -> None:
        """Everything that has come is answered."""
        if self._lingers or self._transport.is_closing():
            return
        if self._ended:
            self._transport.close()
            return
        self._resume()
        if self._request is not None and not self._begun:
            self._begin_body(self._request)

    def respond(
        self,
        request: HttpRequest,
        status: int,
        headers: Mapping[str, str],
        body: bytes,
        cookies: Sequence[str],
    ) -> None:
        """Send a whole answer; see :meth:`HttpRequest.respond`."""
        if request is not self._current:
            return
        head = self._head(request, status, headers, cookies, len(body))
        if not body or request.method == "HEAD" or status in WITHOUT_CONTENT:
            self._transport.write(head)
        elif len(body) <= _JOINED:
            self._transport.write(head + body)
        else:
            self._transport.writelines((head, body))
        self._finished(request)

    def start(self, request: HttpRequest, status: int, headers: Mapping[str, str], length: int) -> None:
        """Send a head; see :meth:`HttpRequest.start`."""
        if request is self._current:
            self._transport.write(self._head(request, status, headers, (), length))

    async def send(self, request: HttpRequest, data: bytes) -> None:
        """Send a piece of a body; see :meth:`HttpRequest.send`."""
        if self._full and request is self._current:
            self._drained = self._server.loop.create_future()
            await self._drained
        if request is not self._current:
            raise ConnectionResetError("the client has gone")
        self._transport.write(data)

    def finish(self, request: HttpRequest) -> None:
        """A body is complete; see :meth:`HttpRequest.finish`."""
        if request is self._current:
            self._finished(request)

    def abort(self, request: HttpRequest) -> None:
        """Break the connection; see :meth:`HttpRequest.abort`."""
        if request is self._current:
            self._transport.abort()

    def _head(
        self,
        request: HttpRequest,
        status: int,
        headers: Mapping[str, str],
        cookies: Sequence[str],
        length: int,
    ) -> bytes:
        connection = ""
        if not request.keep_alive:
            connection = _CLOSE
        elif b"connection" in request.fields:
            connection = _KEEP  # clients of HTTP/1.0 must be told
        return response_head(status, headers, cookies, length, connection, self._server.date)

    def _finished(self, request: HttpRequest) -> None:
        """A request is answered: the next one, or the end."""
        self._current = None
        self._since = self._server.now
        if self._held and len(request.body) > _SMALL:
            self._held -= len(request.body)
            self._server.bodies -= len(request.body)
        if not request.keep_alive:
            self._pending.clear()
            self._end()
        elif not self._going and (self._pending or self._paused or self._ended or self._request is not None):
            self._go_on()

    def _end(self) -> None:
        if self._deaf and not self._ended and not self._lingers:
            self._lingers = True
            self._since = self._server.loop.time()
            if self._transport.can_write_eof():
                self._transport.write_eof()
        else:
            self._deaf = True
            self._transport.close()

    def _wake(self, error: Exception | None) -> None:
        """Let who waits to send go on."""
        waiting, self._drained = self._drained, None
        if waiting is None or waiting.done():
            return
        if error is None:
            waiting.set_result(None)
        else:
            waiting.set_exception(error)

    # What the server does.

    def sweep(self, now: float) -> None:
        """Act if something has taken too long."""
        quiet = now - self._since
        if self._full:
            self._check_reader(now)
        elif self.busy:
            if self._ended and self._awaited and self.deserted:
                self._transport.abort()
        elif self._lingers:
            if quiet > LINGER_SECONDS:
                self._transport.abort()
        elif self._request is not None:
            if quiet > self._server.body_seconds:
                problem = f"the body did not come within {self._server.body_seconds:g} s"
                self._refuse(_Refusal(408, "body_too_slow", problem))
                self._go_on()
        elif quiet > self._server.idle_seconds:
            if self._url:
                self._refuse(_HEAD_TOO_SLOW)
                self._go_on()
            else:
                self._transport.close()

    def _check_reader(self, now: float) -> None:
        """Give up a client that has taken nothing for long."""
        unsent = self._transport.get_write_buffer_size()
        if unsent != self._unsent:
            self._unsent, self._since = unsent, now
        elif now - self._since > self._server.idle_seconds:
            self._transport.abort()

    def close_when_idle(self) -> None:
        """Close the connection; the answer that is due is sent first, and no other one."""
        if self._current is not None:
            self._current.keep_alive = False
        else:
            self._deaf = True
            self._transport.close()

    def break_off(self) -> None:
        """Close the connection now."""
        self._transport.abort()


def _check_sizes(url: bytes, headers: list[tuple[bytes, bytes]]) -> None:
    if (
        len(headers) > MAX_HEADERS
        or len(url) > MAX_LINE
        or any(len(name) + len(value) > MAX_LINE for name, value in headers)
        or sum(len(name) + len(value) for name, value in headers) > MAX_HEAD
    ):
        raise _RefusedError(_HEAD_TOO_LARGE)


def _target(url: bytes) -> str:
    """Return path and query of a request's target.

    Raises:
        _RefusedError: It is no text.
    """
    try:
        target = url.decode()
    except UnicodeDecodeError:
        raise _RefusedError(_NO_HTTP) from None
    if target.startswith("/"):
        return target
    # What proxies are asked for: a whole URL.
    scheme, found, rest = target.partition("://")
    if not found or scheme.lower() not in ("http", "https"):
        return target
    authority, slash, path = rest.partition("/")
    return f"/{path}" if slash else f"/?{authority.partition('?')[2]}"
