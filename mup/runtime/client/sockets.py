"""Connections of a blocking worker: a request is sent now, its response read later.

One request is under way on each connection. It leaves in one segment, a deadline holds for a response as a
whole, and a response that is late can be received later: what has come of it is kept. No redirects, no
compression.
"""

from __future__ import annotations

import select
import socket
import ssl
import time

from mup.runtime.client.idle import Idle, Kept
from mup.runtime.client.reply import BrokenError, RawResponse
from mup.runtime.client.request import Address, RawRequest, TlsAddress, encoded
from mup.tls import TlsFiles, caller_context, why_refused

__all__ = ["Connection", "ConnectionPool"]

_PIECE = 65536
_SHORTEST = 1e-3
"""Seconds a timeout has at least: 0 would mean not to wait for what is there already."""
_NOT_NOW = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
"""What a socket raises that would have to wait."""


def _connected(address: Address, timeout: float, tls: TlsFiles | None) -> socket.socket:
    """Return a new connection whose small segments leave at once."""
    sock = socket.create_connection(address, timeout)
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if not isinstance(address, TlsAddress):
            return sock
        return caller_context(tls).wrap_socket(sock, server_hostname=address[0])
    except BaseException:
        sock.close()
        raise


class Connection(Kept):
    """One connection to a server.

    Args:
        address: Of the server.
        timeout: Seconds it may take to connect.
        tls: The certificates to trust and to show if the server speaks TLS; None = as the environment says.
    """

    def __init__(self, address: Address, timeout: float, tls: TlsFiles | None = None) -> None:
        super().__init__(address)
        self._sock = _connected(address, timeout, tls)
        # Deadlines are kept by waiting until the socket is ready.
        self._sock.setblocking(False)
        self._input = select.poll()
        self._input.register(self._sock, select.POLLIN)

    def readable(self) -> bool:
        """Whether something has arrived: a response, or the end of the connection."""
        return self._reader.begun or bool(self._input.poll(0))

    @property
    def over(self) -> bool:
        """Whether an idle connection cannot carry another request."""
        return self.readable()

    def send(self, request: RawRequest, timeout: float) -> None:
        """Send a whole request.

        Raises:
            CommunicationError: A header or the target would change the meaning of the request.
            OSError: The connection broke, or it took longer than ``timeout`` seconds.
        """
        self.send_data(encoded(request, self.start), request.method, timeout)

    def send_data(self, data: bytes, method: str, timeout: float) -> None:
        """Send the bytes of a whole request with some method; raises ``OSError`` as :meth:`send` does."""
        self._reader.expect(method)
        deadline = time.monotonic() + max(timeout, _SHORTEST)
        rest: bytes | memoryview = data
        while rest:
            try:
                sent = self._sock.send(rest)
                if sent == len(rest):
                    return  # as nearly every request, without a view of it
                rest = memoryview(rest)[sent:]
            except _NOT_NOW:
                output = select.poll()
                output.register(self._sock, select.POLLOUT)
                left = deadline - time.monotonic()
                if left <= 0 or not output.poll(left * 1000):
                    raise TimeoutError("timed out") from None

    def receive(self, deadline: float) -> RawResponse:
        """Read the response to the request that was sent.

        Args:
            deadline: Seconds of the monotonic clock.

        Raises:
            TimeoutError: Not all of it has arrived; it may be received later.
            BrokenError: The connection broke, or what came is not HTTP.
        """
        reader = self._reader
        shortest = _SHORTEST
        response = None
        while response is None:
            # What has come in time is read, however late it is asked for.
            left = max(deadline - time.monotonic(), shortest)
            if not self._input.poll(left * 1000):
                raise TimeoutError("timed out")
            shortest = 0.0
            try:
                data = self._sock.recv(_PIECE)
            except _NOT_NOW:
                continue  # it was not for us, or not all of it
            except OSError as error:
                raise BrokenError(
                    f"no complete HTTP response came: {why_refused(error) or error}", empty=not reader.begun
                ) from error
            response = reader.feed(data)
        self.used = True
        return response

    def ask(self, request: RawRequest, seconds: float) -> RawResponse:
        """Send a request and return the response; the connection is closed if there is none.

        Raises:
            OSError: The connection broke, or it took longer than so many seconds.
            BrokenError: The connection broke, or what came is not HTTP.
            CommunicationError: As :meth:`send` says.
        """
        deadline = time.monotonic() + seconds
        try:
            self.send(request, seconds)
            return self.receive(deadline)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection."""
        self._sock.close()


class ConnectionPool(Idle["Connection"]):
    """Idle connections of one process, and the ones whose response will not be read.

    A caller that does not wait for an answer must not cut the connection either: the callee has to finish
    what it was asked to do, and the connection is worth keeping. ``abandon`` takes such connections, ``reap``
    empties them when their answer has come. Safe for use by several threads.

    Args:
        tls: As for `Connection`.
    """

    def __init__(self, tls: TlsFiles | None = None) -> None:
        super().__init__()
        self._tls = tls
        self._abandoned: list[tuple[Connection, float]] = []

    @property
    def abandoned(self) -> int:
        """Connections with an answer under way that is not waited for."""
        return len(self._abandoned)

    def take(self, address: Address, timeout: float, *, fresh: bool = False) -> Connection:
        """Return a connection that is not in use: an idle one unless ``fresh``, else a new one.

        Raises:
            OSError: The server cannot be reached.
        """
        kept = None if fresh else self.take_idle(address)
        return kept or Connection(address, timeout, self._tls)

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
        self.close_idle()
        for connection, _ in self._abandoned:
            connection.close()
        self._abandoned.clear()
