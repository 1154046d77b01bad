"""How does a blocking worker send a request now and read its response later?

The standard library's ``http.client`` writes the requests and reads the responses, one under way on each
connection. Added here is what it does not have: a request leaves in one segment, a deadline holds for a
response as a whole, a response that is late can be received later, and connections are kept. No redirects,
no compression.
"""

from __future__ import annotations

import os
import select
import socket
import ssl
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from http.client import HTTPConnection, HTTPException, HTTPResponse, IncompleteRead, InvalidURL
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from mup.errors import CommunicationError
from mup.tls import TLS_CA, client_context

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

__all__ = ["BrokenError", "Connection", "ConnectionPool", "RawRequest", "RawResponse", "address_of"]

_PIECE = 65536
_SHORTEST = 1e-3
"""Seconds a timeout has at least: 0 would mean not to wait for what is there already."""

Address = tuple[str, int]


class TlsAddress(tuple[str, int]):
    """Host and port of a server that speaks TLS."""

    __slots__ = ()


class BrokenError(Exception):
    """The connection broke, or what came is not HTTP.

    Attributes:
        empty: Not a single byte of the response had arrived.
    """

    def __init__(self, message: str, *, empty: bool = False) -> None:
        super().__init__(message)
        self.empty = empty


@dataclass(frozen=True, slots=True)
class RawRequest:
    """Method, target (path and query, quoted), headers, and the body if there is one."""

    method: str
    target: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RawResponse:
    """Status, headers by lower-case name, body, and whether the connection can be used again."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    keep: bool


def address_of(url: str) -> Address:
    """Return host and port of an ``http://`` URL, or of an ``https://`` one as a `TlsAddress`.

    Raises:
        CommunicationError: It is none.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        port = 0
    if parts.scheme not in ("http", "https") or not host.isprintable() or not host or " " in host or not port:
        raise CommunicationError(f"not an http:// or https:// address: {url!r}")
    return TlsAddress((host, port)) if parts.scheme == "https" else (host, port)


class _Stream(socket.socket):
    """A connected socket: one deadline for all reads, and a response can be read from its start again.

    Attributes:
        received: What has come of the response under way.
        ended: Whether the server has closed the connection.
    """

    @classmethod
    def of(cls, connected: socket.socket) -> _Stream:
        """Return a connected socket as a stream."""
        stream = cls(fileno=connected.detach())
        stream.start()
        return stream

    def start(self) -> None:
        """Get ready for the first response."""
        self.received = bytearray()
        self.ended = False
        self._position = 0
        self._deadline = 0.0

    def rewind(self, deadline: float) -> None:
        """Read from the first byte of the response again, until the deadline."""
        self._position = 0
        self._deadline = deadline

    def recv_into(self, buffer: WriteableBuffer, nbytes: int | None = 0, flags: int = 0) -> int:
        """Receive what ``http.client`` asks for; its files read with nothing else."""
        view = memoryview(buffer)
        if known := self.received[self._position : self._position + len(view)]:
            self._position += len(known)
            view[: len(known)] = known
            return len(known)
        # A timeout per read would never end with a server that sends a byte now and then.
        seconds = self._deadline - time.monotonic()
        if seconds <= 0:
            raise TimeoutError("timed out")
        self.settimeout(seconds)
        count = super().recv_into(buffer, nbytes or len(view), flags)
        self.received += view[:count]
        self._position += count
        self.ended = count == 0
        return count


class _TlsStream(_Stream, ssl.SSLSocket):
    """The same, encrypted. ``ssl`` makes them itself, without a constructor."""


@lru_cache(maxsize=8)
def _tls(ca: str) -> ssl.SSLContext:
    """Return how connections to those are made whom the certificates of a file vouch for."""
    context = client_context(ca)
    context.sslsocket_class = _TlsStream
    return context


def _encrypted(connected: socket.socket, host: str, ca: str) -> _Stream:
    """Return a connected socket as a stream, after shaking hands."""
    context = _tls(ca or os.environ.get(TLS_CA, ""))
    stream = cast("_TlsStream", context.wrap_socket(connected, server_hostname=host))
    stream.start()
    return stream


class _WholeResponse(HTTPResponse):
    """A response that has begun when all of it is there.

    ``getresponse`` may be repeated when ``begin`` has failed: so nothing is lost by a timeout.
    """

    def __init__(self, sock: _Stream, *args: Any, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        self._stream = sock
        self.content = b""

    def begin(self) -> None:
        """Read status, headers and body."""
        super().begin()
        if self._stream.ended:
            # The library takes the end of the connection for the end of the headers.
            raise HTTPException("the connection was closed within the headers")
        if self.status < 200:
            raise HTTPException(f"unexpected status {self.status}")
        length = self.headers.get("content-length")
        if length is not None and self.length is None and not self.chunked:
            raise HTTPException(f"Content-Length is {length!r}")
        # In pieces: memory is taken for what comes, not for what is announced.
        pieces = []
        while piece := self.read(_PIECE):
            pieces.append(piece)
        self.content = b"".join(pieces)
        if self.length:
            raise IncompleteRead(self.content, self.length)


class _Http(HTTPConnection):
    """The library's connection, on a :class:`_Stream`; what it sends is put together first."""

    response_class = _WholeResponse
    auto_open = 0

    def __init__(self, address: Address, timeout: float, ca: str) -> None:
        super().__init__(*address, timeout=timeout)
        self._ca = ca if isinstance(address, TlsAddress) else None
        self.pieces: list[bytes] = []

    def connect(self) -> None:
        """Connect; small segments leave at once."""
        super().connect()
        if self._ca is None:
            self.sock = _Stream.of(self.sock)
        else:
            self.sock = _encrypted(self.sock, self.host, self._ca)

    def send(self, data: Any) -> None:
        """Keep head or body of a request: two segments would wake the server twice."""
        self.pieces.append(data)


class Connection:
    """One connection to a server.

    Args:
        address: Of the server.
        timeout: Seconds it may take to connect.
        ca: File of the certificates to trust, if the server speaks TLS; "" = as the environment says.

    Attributes:
        address: Of the server.
        used: Whether it has carried a request before this one.
    """

    __slots__ = ("_http", "_poll", "_stream", "address", "used")

    def __init__(self, address: Address, timeout: float, ca: str = "") -> None:
        self._http = _Http(address, timeout, ca)
        self._http.connect()
        self._stream = cast("_Stream", self._http.sock)
        self._poll = select.poll()
        self._poll.register(self._stream, select.POLLIN)
        self.address = address
        self.used = False

    def readable(self) -> bool:
        """Whether something has arrived: a response, or the end of the connection."""
        return bool(self._stream.received) or bool(self._poll.poll(0))

    def send(self, request: RawRequest, timeout: float) -> None:
        """Send a whole request.

        Raises:
            CommunicationError: A header or the target would change the meaning of the request.
            OSError: The connection broke, or it took longer than ``timeout`` seconds.
        """
        http = self._http
        try:
            http.request(request.method, request.target, request.body, request.headers)
        except (ValueError, TypeError, InvalidURL) as error:
            raise CommunicationError(f"a header or the path cannot be sent: {error}") from error
        data = b"".join(http.pieces)
        http.pieces.clear()
        self._stream.settimeout(max(timeout, _SHORTEST))
        self._stream.sendall(data)

    def receive(self, deadline: float) -> RawResponse:
        """Read the response to the request that was sent.

        Args:
            deadline: Seconds of the monotonic clock.

        Raises:
            TimeoutError: Not all of it has arrived; it may be received later.
            BrokenError: The connection broke, or what came is not HTTP.
        """
        stream = self._stream
        stream.rewind(max(deadline, time.monotonic() + _SHORTEST))
        try:
            response = cast("_WholeResponse", self._http.getresponse())
        except TimeoutError:
            raise
        except (OSError, HTTPException, ValueError) as error:
            raise BrokenError(
                f"no complete HTTP response came: {error!r:.200}", empty=not stream.received
            ) from error
        stream.received.clear()
        self.used = True
        return RawResponse(
            status=response.status,
            headers={name.lower(): value.strip() for name, value in response.headers.items()},
            body=response.content,
            keep=not response.will_close and not stream.ended,
        )

    def close(self) -> None:
        """Close the connection."""
        self._http.close()


class ConnectionPool:
    """Idle connections of one process, and the ones whose response nobody will read.

    A caller that does not wait for an answer must not cut the connection either: the callee has to finish
    what it was asked to do, and the connection is worth keeping. ``abandon`` takes such connections, ``reap``
    empties them when their answer has come. Safe for use by several threads.

    Args:
        ca: As for `Connection`.
    """

    def __init__(self, ca: str = "") -> None:
        self._ca = ca
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
        return Connection(address, timeout, self._ca)

    def forget(self, address: Address) -> None:
        """Close the idle connections to a server that has just closed another one under our hands."""
        for connection in self._idle.pop(address, []):
            connection.close()

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
