"""How does a blocking worker send a request now and read its response later?

A small HTTP/1.1 client on plain sockets: keep-alive connections, one request under way on each. Its peers are
fronts and registries of mup and whatever proxies stand between them, so it speaks what those speak:
Content-Length, chunked, or until close; no redirects, no compression.
"""

from __future__ import annotations

import select
import socket
import time
from collections import defaultdict
from collections.abc import Mapping
from urllib.parse import urlsplit

from mup.errors import CommunicationError

__all__ = ["BrokenError", "Connection", "ConnectionPool", "RawResponse", "address_of", "build_request"]

_CHUNK = 65536
_HEAD_LIMIT = 65536

Address = tuple[str, int]


class BrokenError(Exception):
    """The connection broke, or what came is not HTTP.

    Attributes:
        empty: Not a single byte of the response had arrived.
    """

    def __init__(self, message: str, *, empty: bool = False) -> None:
        super().__init__(message)
        self.empty = empty


class RawResponse:
    """Status, headers by lower-case name, body, and whether the connection can be used again."""

    __slots__ = ("body", "headers", "keep", "status")

    def __init__(self, status: int, headers: dict[str, str], body: bytes, *, keep: bool) -> None:
        self.status = status
        self.headers = headers
        self.body = body
        self.keep = keep


def address_of(url: str) -> Address:
    """Return host and port of an ``http://`` URL.

    Raises:
        CommunicationError: It is none.
    """
    parts = urlsplit(url)
    try:
        port = parts.port or 80
    except ValueError:
        port = 0
    if parts.scheme != "http" or not parts.hostname or not port:
        raise CommunicationError(f"not an http:// address: {url!r}")
    return parts.hostname, port


def build_request(
    method: str, target: str, host: str, headers: Mapping[str, str], body: bytes | None
) -> bytes:
    """Return a whole request as one piece, so that it leaves in one segment where it can.

    Raises:
        CommunicationError: A header or the target would change the meaning of the request.
    """
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    for line in lines:
        if "\r" in line or "\n" in line or "\0" in line:
            raise CommunicationError(f"a header cannot contain line breaks: {line!r}")
    try:
        head = "\r\n".join(lines).encode("latin-1")
    except UnicodeEncodeError as error:
        raise CommunicationError(f"a header cannot contain {error.object[error.start]!r}") from error
    return head + b"\r\n\r\n" + (body or b"")


class Connection:
    """One connection to a server.

    Attributes:
        address: Of the server.
        used: Whether it has carried a request before this one.
    """

    __slots__ = ("_buffer", "_poll", "_sock", "address", "used")

    def __init__(self, address: Address, timeout: float) -> None:
        self._sock = socket.create_connection(address, timeout)
        self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._poll = select.poll()
        self._poll.register(self._sock, select.POLLIN)
        self._buffer = bytearray()
        self.address = address
        self.used = False

    def readable(self) -> bool:
        """Whether something has arrived: a response, or the end of the connection."""
        return bool(self._buffer) or bool(self._poll.poll(0))

    def send(self, data: bytes, timeout: float) -> None:
        """Send a whole request.

        Raises:
            OSError: The connection broke, or it took longer than ``timeout`` seconds.
        """
        self._sock.settimeout(max(timeout, 1e-3))
        self._sock.sendall(data)

    def receive(self, deadline: float) -> RawResponse:
        """Read the response to the request that was sent.

        Args:
            deadline: Seconds of the monotonic clock.

        Raises:
            TimeoutError: Its head has not arrived; it may be received later.
            BrokenError: The connection broke, or what came is not HTTP.
        """
        while True:
            head = self._until(b"\r\n\r\n", deadline)
            status, headers, http_1_0 = _parse_head(head)
            if status >= 200:
                break  # skip "100 Continue" and the like
        keep = "close" not in headers.get("connection", "keep-alive").lower() and not http_1_0
        try:
            body, delimited = self._body(status, headers, deadline)
        except TimeoutError:
            # The head is gone from the buffer: this response cannot be taken up again.
            raise BrokenError("the response stopped in its middle") from None
        self.used = True
        keep = keep and delimited
        return RawResponse(status, headers, body, keep=keep and not self._buffer)

    def close(self) -> None:
        """Close the connection."""
        self._sock.close()

    def _body(self, status: int, headers: Mapping[str, str], deadline: float) -> tuple[bytes, bool]:
        """Return the body, and whether it had an end of its own."""
        if status in {204, 304}:
            return b"", True
        if "chunked" in headers.get("transfer-encoding", "").lower():
            return self._chunks(deadline), True
        if "content-length" in headers:
            length = headers["content-length"]
            if not length.isdecimal():
                raise BrokenError(f"the response has a Content-Length of {length!r}")
            return self._exactly(int(length), deadline), True
        return self._rest(deadline), False

    def _more(self, deadline: float, *, end_is_fine: bool = False) -> bool:
        """Receive something into the buffer; False = the stream has ended."""
        self._sock.settimeout(max(deadline - time.monotonic(), 1e-3))
        try:
            data = self._sock.recv(_CHUNK)
        except TimeoutError:
            raise
        except OSError as error:
            raise BrokenError(error.strerror or str(error), empty=not self._buffer) from error
        if not data and not end_is_fine:
            raise BrokenError("the connection was closed before the response", empty=not self._buffer)
        self._buffer += data
        return bool(data)

    def _until(self, mark: bytes, deadline: float) -> bytes:
        buffer = self._buffer
        while (end := buffer.find(mark)) < 0:
            if len(buffer) > _HEAD_LIMIT:
                raise BrokenError("what came is not HTTP")
            self._more(deadline)
        data = bytes(buffer[:end])
        del buffer[: end + len(mark)]
        return data

    def _exactly(self, length: int, deadline: float) -> bytes:
        buffer = self._buffer
        while len(buffer) < length:
            self._more(deadline)
        data = bytes(buffer[:length])
        del buffer[:length]
        return data

    def _chunks(self, deadline: float) -> bytes:
        parts = []
        while True:
            line = self._until(b"\r\n", deadline).partition(b";")[0]
            try:
                length = int(line, 16)
            except ValueError:
                raise BrokenError(f"the response has a chunk of length {line!r}") from None
            if not length:
                break
            parts.append(self._exactly(length, deadline))
            self._until(b"\r\n", deadline)
        while self._until(b"\r\n", deadline):
            pass  # trailers
        return b"".join(parts)

    def _rest(self, deadline: float) -> bytes:
        while self._more(deadline, end_is_fine=True):
            pass
        data = bytes(self._buffer)
        self._buffer.clear()
        return data


def _parse_head(head: bytes) -> tuple[int, dict[str, str], bool]:
    first, *rest = head.decode("latin-1").split("\r\n")
    version, _, status = first.partition(" ")
    if not version.startswith("HTTP/1.") or not status[:3].isdecimal():
        raise BrokenError("what came is not HTTP")
    headers = {}
    for line in rest:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    return int(status[:3]), headers, version == "HTTP/1.0"


class ConnectionPool:
    """Idle connections of one process, and the ones whose response nobody will read.

    A caller that does not wait for an answer must not cut the connection either: the callee has to finish
    what it was asked to do, and the connection is worth keeping. ``abandon`` takes such connections, ``reap``
    empties them when their answer has come. Safe for use by several threads.
    """

    def __init__(self) -> None:
        self._idle: defaultdict[Address, list[Connection]] = defaultdict(list)
        self._abandoned: list[tuple[Connection, float]] = []

    @property
    def abandoned(self) -> int:
        """Connections with an answer under way that nobody waits for."""
        return len(self._abandoned)

    def take(self, address: Address, timeout: float, *, fresh: bool = False) -> Connection:
        """Return a connection nobody else uses: an idle one unless ``fresh``, else a new one.

        Raises:
            OSError: The server cannot be reached.
        """
        idle = self._idle[address]
        while idle and not fresh:
            connection = idle.pop()
            if not connection.readable():
                return connection
            connection.close()  # the server has closed it meanwhile
        return Connection(address, timeout)

    def give_back(self, connection: Connection, response: RawResponse) -> None:
        """Keep a connection whose response has been read, if it can be used again."""
        if response.keep:
            self._idle[connection.address].append(connection)
        else:
            connection.close()

    def abandon(self, connection: Connection, deadline: float) -> None:
        """Take a connection whose response will not be asked for; it is closed at the deadline."""
        self._abandoned.append((connection, deadline))

    def reap(self) -> None:
        """Read the responses that have come on abandoned connections."""
        now = time.monotonic()
        waiting = []
        for connection, deadline in self._abandoned:
            if connection.readable():
                try:
                    self.give_back(connection, connection.receive(now + 1.0))
                except (BrokenError, TimeoutError):
                    connection.close()
            elif now > deadline:
                connection.close()
            else:
                waiting.append((connection, deadline))
        self._abandoned = waiting

    def close(self) -> None:
        """Close every connection."""
        for idle in self._idle.values():
            for connection in idle:
                connection.close()
        for connection, _ in self._abandoned:
            connection.close()
        self._idle.clear()
        self._abandoned.clear()
