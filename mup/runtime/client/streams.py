"""Connections of an event loop: one request is under way on each, and idle ones are kept. No redirects."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast
from weakref import WeakSet

from mup.runtime.client.idle import Idle, Kept
from mup.runtime.client.reply import BrokenError, RawResponse
from mup.runtime.client.request import Address, RawRequest, TlsAddress, encoded
from mup.tls import caller_context, why_refused

__all__ = ["Line", "Lines"]

Receiver = Callable[[RawResponse | Exception], None]


class Line(Kept, asyncio.Protocol):
    """One connection.

    Args:
        address: Of the server.
    """

    over = False

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        self._receiver: Receiver | None = None
        self._transport: asyncio.Transport | None = None

    def exchange(self, data: bytes, method: str, receiver: Receiver) -> None:
        """Send a whole request; the receiver is given the response, or why there is none."""
        assert self._transport is not None  # noqa: S101 - it is connected
        self._reader.expect(method)
        self._receiver = receiver
        if self.over:
            # It has ended since it was made; nothing will happen on it any more.
            ended = BrokenError("no complete HTTP response came: the connection has ended", empty=True)
            asyncio.get_running_loop().call_soon(self._deliver, ended)
            return
        self._transport.write(data)

    async def ask(self, request: RawRequest) -> RawResponse:
        """Send a request and return the response; the connection is closed if there is none.

        Raises:
            BrokenError: The connection broke, or what came is not HTTP.
            CommunicationError: A header would change the meaning of the request.
        """
        done: asyncio.Future[RawResponse] = asyncio.get_running_loop().create_future()

        def receive(outcome: RawResponse | Exception) -> None:
            if done.done():
                return  # cancelled; who waited has not had its turn yet to close the connection
            if isinstance(outcome, Exception):
                done.set_exception(outcome)
            else:
                done.set_result(outcome)

        try:
            self.exchange(encoded(request, self.start), request.method, receive)
            return await done
        except BaseException:
            # What comes late must not be taken for the answer to the next request.
            self.close()
            raise

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
        """Take part of a response; anything that was not asked for ends the connection."""
        if self._receiver is None:
            self.close()
            return
        try:
            response = self._reader.feed(data)
        except BrokenError as error:
            self._deliver(error)
            return
        if response is not None:
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
            broken = BrokenError(why, empty=not self._reader.begun)
            broken.__cause__ = exc
            self._deliver(broken)

    def _deliver(self, outcome: RawResponse | Exception) -> None:
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            receiver(outcome)


class Lines(Idle[Line]):
    """The connections of one event loop. Their number has no limit: it would be a queue no model knows of."""

    def __init__(self) -> None:
        super().__init__()
        # Those that have ended vanish from it by themselves.
        self._all: WeakSet[Line] = WeakSet()

    async def connect(self, address: Address, seconds: float) -> Line:
        """Return a new connection.

        Raises:
            OSError: There is none within so many seconds.
            DeploymentError: A file of certificates cannot be used.
        """
        host, port = address
        context = caller_context() if isinstance(address, TlsAddress) else None
        name = None if context is None else host
        line = Line(address)
        self._all.add(line)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(seconds):
                await loop.create_connection(lambda: line, host, port, ssl=context, server_hostname=name)
        except BaseException:
            line.close()
            raise
        return line

    async def close(self) -> None:
        """Close every connection."""
        for line in list(self._all):
            line.close()
        # Transports close in the next turn of the loop.
        await asyncio.sleep(0)
