"""Connections of an event loop: one request is under way on each, and idle ones are kept. No redirects."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import cast

from mup.runtime.client.reply import BrokenError, RawResponse, ResponseReader
from mup.runtime.client.request import Address, TlsAddress, start_of_head
from mup.runtime.client.sockets import IDLE_SECONDS
from mup.tls import TlsFiles, caller_files, client_context, why_refused

__all__ = ["Line", "Lines"]

Receiver = Callable[[RawResponse | Exception], None]


class Line(asyncio.Protocol):
    """One connection.

    Args:
        address: Of the server.

    Attributes:
        address: Of the server.
        start: What `start_of_head` says of it.
        used: Whether it has carried a request before this one.
        over: Whether it cannot carry another request.
        since: When it became idle, in seconds of the monotonic clock.
    """

    __slots__ = ("_reader", "_receiver", "_transport", "address", "over", "since", "start", "used")

    def __init__(self, address: Address) -> None:
        self.address = address
        self.start = start_of_head(address)
        self.used = False
        self.over = False
        self.since = 0.0
        self._reader = ResponseReader()
        self._receiver: Receiver | None = None
        self._transport: asyncio.Transport | None = None

    def exchange(self, data: bytes, method: str, receiver: Receiver) -> None:
        """Send a whole request; the receiver is given the response, or why there is none."""
        assert self._transport is not None  # noqa: S101 - it is connected
        self._reader.expect(method)
        self._receiver = receiver
        self._transport.write(data)

    def close(self) -> None:
        """Close the connection; no receiver is told."""
        self._receiver = None
        self.over = True
        if self._transport is not None:
            self._transport.abort()

    # Events of the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        # A cast: the transports of uvloop are not subclasses of asyncio's.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Part of a response has come; or something nobody has asked for, which ends the connection."""
        if self._receiver is None:
            self.close()
            return
        try:
            response = self._reader.feed(data)
        except BrokenError as error:
            self._deliver(error)
            return
        if response is not None:
            self._reader.expect("")
            self.used = True
            self._deliver(response)

    def eof_received(self) -> None:
        """The server sends nothing more: that is the end of some bodies."""
        self.over = True
        if self._receiver is not None:
            self.data_received(b"")

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has ended."""
        self.over = True
        if self._receiver is None:
            return
        if exc is None:
            self.data_received(b"")
        else:
            why = f"no complete HTTP response came: {why_refused(exc) or exc}"
            self._deliver(BrokenError(why, empty=not self._reader.begun))

    def _deliver(self, outcome: RawResponse | Exception) -> None:
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            receiver(outcome)


@lru_cache(maxsize=8)
def _context(_known: TlsFiles) -> ssl.SSLContext:
    """Return how connections are made by those who find some files in the environment."""
    return client_context()


class Lines:
    """The connections of one event loop. Their number has no limit: it would be a queue no model knows of."""

    def __init__(self) -> None:
        self._idle: defaultdict[Address, list[Line]] = defaultdict(list)
        self._all: set[Line] = set()

    def take(self, address: Address) -> Line | None:
        """Return an idle connection to a server; None = there is none."""
        idle = self._idle.get(address)
        while idle:
            line = idle.pop()
            if not line.over and time.monotonic() - line.since < IDLE_SECONDS:
                return line
            self.close_line(line)
        return None

    async def connect(self, address: Address, seconds: float) -> Line:
        """Return a new connection.

        Raises:
            OSError: There is none within so many seconds.
            DeploymentError: A file of certificates cannot be used.
        """
        host, port = address
        encrypted = isinstance(address, TlsAddress)
        context = _context(caller_files()) if encrypted else None
        line = Line(address)
        self._all.add(line)
        try:
            async with asyncio.timeout(seconds):
                await asyncio.get_running_loop().create_connection(
                    lambda: line, host, port, ssl=context, server_hostname=host if encrypted else None
                )
        except BaseException:
            self.close_line(line)
            raise
        return line

    def give_back(self, line: Line, response: RawResponse) -> None:
        """Keep a connection whose response has been read, if it can be used again."""
        if response.keep and not line.over:
            line.since = time.monotonic()
            self._idle[line.address].append(line)
        else:
            self.close_line(line)

    def close_line(self, line: Line) -> None:
        """Close a connection."""
        self._all.discard(line)
        line.close()

    def forget(self, address: Address) -> None:
        """Close the idle connections to a server that has just closed another one under our hands."""
        for line in self._idle.pop(address, ()):
            self.close_line(line)

    def tidy(self, gone: Iterable[Address]) -> None:
        """Close the idle connections to servers that are gone, and forget those that others have closed."""
        for address in gone:
            self.forget(address)
        for address, idle in self._idle.items():
            for line in idle:
                if line.over:
                    self.close_line(line)
            self._idle[address] = [line for line in idle if not line.over]

    async def close(self) -> None:
        """Close every connection."""
        for line in self._all:
            line.close()
        self._all.clear()
        self._idle.clear()
        # Transports close in the next turn of the loop.
        await asyncio.sleep(0)
