"""How do thousands of clients in one process talk HTTP at little CPU cost?

A client of our own on ``asyncio.Protocol``: the load generator shares its host with the system it measures,
and a general HTTP library costs several times the CPU per request. It also tells when the last byte of
a reply arrived, whatever the waiting coroutine is doing. It speaks what mup's fronts and registry answer:
HTTP/1.1 keep-alive, bodies with a length, chunked, or ended by the connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import msgspec

__all__ = ["Address", "Connections", "Reply", "address_of", "decode"]

Address = tuple[str, int]

MAX_HEAD = 64 * 1024
MAX_BODY = 256 * 1024 * 1024


class Reply:
    """What came back for one request.

    Attributes:
        status: HTTP status; 0 while there is none.
        headers: By lower-case name.
        body: Raw bytes.
        error: Why there is no reply, else None.
        unsent: The connection was closed by the peer before it can have read the request: safe to send again.
    """

    __slots__ = ("body", "error", "headers", "status", "unsent")

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body = b""
        self.error: OSError | None = None
        self.unsent = False


Finished = Callable[[Reply], None]
"""Called once, in the turn of the event loop in which the last byte arrived or the connection broke."""


def address_of(url: str) -> Address:
    """Return host and port of an ``http://`` URL."""
    parts = urlsplit(url)
    return parts.hostname or "127.0.0.1", parts.port or 80


def decode(reply: Reply) -> Any:
    """Return the body as its content type says: JSON value, text, or bytes; None if there is none.

    Raises:
        ValueError: The body is not what the content type promises.
    """
    kind = reply.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json" or kind.endswith("+json"):
        return msgspec.json.decode(reply.body) if reply.body else None
    if kind.startswith("text/"):
        return reply.body.decode("utf-8")
    return reply.body or None


class _Connection(asyncio.Protocol):
    """One connection; one request at a time."""

    def __init__(self, owner: Connections, address: Address) -> None:
        self._owner = owner
        self._address = address
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._reply: Reply | None = None
        self._finished: Finished | None = None
        # Of the body being read: bytes still missing; -1 = chunked, -2 = up to the end of the connection.
        self._missing: int | None = None
        self._served = 0

    @property
    def open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # a TCP transport is always a Transport

    def send(self, request: bytes, finished: Finished) -> None:
        assert self._transport is not None and self._finished is None  # noqa: S101, PT018 - one at a time
        self._reply = Reply()
        self._finished = finished
        self._missing = None
        self._transport.write(request)

    def abort(self) -> None:
        """Close, and forget the request under way."""
        self._finished = None
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        if self._finished is None:
            # Nobody asked.
            self.abort()
            return
        self._buffer += data
        try:
            self._parse()
        except (ValueError, IndexError) as error:
            self._fail(ConnectionError(f"malformed HTTP reply: {error}"))

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._owner.forget(self, self._address)
        if self._finished is None or self._reply is None:
            return
        if self._missing == -2:
            self._reply.body = bytes(self._buffer)
            self._done()
            return
        self._reply.unsent = self._served > 0 and not self._buffer and self._reply.status == 0
        self._fail(exc if isinstance(exc, OSError) else ConnectionResetError("the connection was closed"))

    def _parse(self) -> None:
        reply = self._reply
        assert reply is not None  # noqa: S101 - a request is under way
        while self._missing is None:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                if len(self._buffer) > MAX_HEAD:
                    raise ValueError(f"its header is longer than {MAX_HEAD} bytes")
                return
            head = self._buffer[:end].decode("latin-1").split("\r\n")
            del self._buffer[: end + 4]
            reply.status = _status(head[0])
            if reply.status >= 200:
                reply.headers = _headers(head[1:])
                self._missing = _body_length(reply)
        if self._missing >= 0:
            if len(self._buffer) < self._missing:
                return
            if len(self._buffer) > self._missing:
                raise ValueError("bytes after the end of the body")
            reply.body = bytes(self._buffer)
        elif self._missing == -1:
            body = _chunked(self._buffer)
            if body is None:
                self._check_size()
                return
            reply.body = body
        else:
            self._check_size()
            return
        self._done()

    def _check_size(self) -> None:
        if len(self._buffer) > MAX_BODY:
            raise ValueError(f"its body is longer than {MAX_BODY} bytes")

    def _done(self) -> None:
        reply, finished = self._reply, self._finished
        assert reply is not None and finished is not None  # noqa: S101, PT018
        self._reply = self._finished = None
        self._buffer.clear()
        self._served += 1
        if self._transport is not None:
            if reply.headers.get("connection", "").lower() == "close":
                self._transport.close()
            else:
                self._owner.keep(self, self._address)
        finished(reply)

    def _fail(self, error: OSError) -> None:
        reply, finished = self._reply, self._finished
        self.abort()
        if reply is not None and finished is not None:
            reply.error = error
            finished(reply)


class Connections:
    """Keep-alive connections of this process, without a limit: a limit would be a queue no model knows of.

    To be used on the event loop it was created on.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._idle: dict[Address, list[_Connection]] = {}
        self._all: set[_Connection] = set()

    def idle(self, address: Address) -> _Connection | None:
        """Return a connection that can be used at once, the one used last first; None if there is none."""
        stack = self._idle.get(address)
        while stack:
            connection = stack.pop()
            if connection.open:
                return connection
        return None

    async def fresh(self, address: Address) -> _Connection:
        """Open a new connection.

        Raises:
            OSError: The peer refuses, or the system allows no more connections.
        """
        _, connection = await self._loop.create_connection(lambda: _Connection(self, address), *address)
        self._all.add(connection)
        return connection

    async def fetch(self, address: Address, request: bytes, timeout: float) -> Reply:  # noqa: ASYNC109
        """Send one request and wait for its reply.

        Raises:
            OSError: No connection, no reply in time, or it broke.
        """
        answer: asyncio.Future[Reply] = self._loop.create_future()

        def finished(reply: Reply) -> None:
            if not answer.done():
                answer.set_result(reply)

        connection = self.idle(address) or await self.fresh(address)
        connection.send(request, finished)
        try:
            reply = await asyncio.wait_for(answer, timeout)
        except BaseException:
            connection.abort()
            raise
        if reply.error is not None:
            raise reply.error
        return reply

    def keep(self, connection: _Connection, address: Address) -> None:
        """Take back a connection whose reply is complete."""
        self._idle.setdefault(address, []).append(connection)

    def forget(self, connection: _Connection, address: Address) -> None:
        """Drop a closed connection."""
        self._all.discard(connection)
        stack = self._idle.get(address)
        if stack and connection in stack:
            stack.remove(connection)

    def close(self) -> None:
        """Close every connection."""
        for connection in list(self._all):
            connection.abort()
        self._idle.clear()


def _status(line: str) -> int:
    version, _, rest = line.partition(" ")
    if not version.startswith("HTTP/1."):
        raise ValueError(f"it starts with {line[:40]!r}")
    return int(rest[:3])


def _headers(lines: list[str]) -> dict[str, str]:
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    return headers


def _body_length(reply: Reply) -> int:
    """Return the bytes of the body, -1 if it is chunked, -2 if the end of the connection ends it."""
    if reply.status in (204, 304):
        return 0
    if "chunked" in reply.headers.get("transfer-encoding", "").lower():
        return -1
    length = reply.headers.get("content-length")
    if length is None:
        return -2
    if not length.isdigit() or int(length) > MAX_BODY:
        raise ValueError(f"content-length {length!r}")
    return int(length)


def _chunked(data: bytearray) -> bytes | None:
    """Return the body in a buffer of chunks; None while it is not complete."""
    body = bytearray()
    position = 0
    while True:
        end = data.find(b"\r\n", position)
        if end < 0:
            return None
        size = int(data[position:end].partition(b";")[0], 16)
        position = end + 2
        if size == 0:
            # Trailers, if any, end with an empty line.
            complete = data.startswith(b"\r\n", position) or data.find(b"\r\n\r\n", position) >= 0
            return bytes(body) if complete else None
        if len(data) < position + size + 2:
            return None
        body += data[position : position + size]
        position += size + 2
