"""How does a front tell one server something every second? On its event loop, over a connection it keeps.

The client of event loops is for many servers and many requests at a time, and takes half as long to load as
everything else a replica needs.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from mup.runtime.client.reply import BrokenError, RawResponse, ResponseReader
from mup.runtime.client.request import RawRequest, TlsAddress, address_of, encoded, start_of_head
from mup.tls import client_context

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping

__all__ = ["KeptConnection"]

_SECONDS = 2.0
"""What a request may take, with everything."""
_CONNECT_SECONDS = 1.0
"""A connection that does not come about is soon given up: TCP itself waits longer and longer before it sends
its first packet again (1 s, 2 s, 4 s), although the network may be back."""


class KeptConnection:
    """Requests to one server, one after the other; no redirects.

    Args:
        url: Of the server; with ``https``, whom it trusts and what it presents is as the environment says.

    Raises:
        CommunicationError: That is no address.
        DeploymentError: A file of certificates cannot be used.
    """

    def __init__(self, url: str) -> None:
        self._address = address_of(url)
        self._tls = client_context() if isinstance(self._address, TlsAddress) else None
        self._start = start_of_head(self._address)
        self._line: _Line | None = None

    async def post(self, path: str, headers: Mapping[str, str], body: bytes) -> RawResponse:
        """Send a request and return the response.

        Raises:
            OSError: The server cannot be reached, or does not respond in time.
            BrokenError: The connection broke, or what came is not HTTP.
            CommunicationError: A header would change the meaning of the request.
        """
        data = encoded(RawRequest("POST", path, headers, body), self._start)
        try:
            async with asyncio.timeout(_SECONDS):
                if self._line is not None and self._line.over:
                    self.close()
                if self._line is None:
                    self._line = await self._connect()
                response = await self._line.exchange(data)
        except BaseException:
            # What comes late must not be taken for the answer to the next request.
            self.close()
            raise
        if not response.keep:
            self.close()
        return response

    def close(self) -> None:
        """Close the connection."""
        if self._line is not None:
            self._line.transport.abort()
            self._line = None

    async def _connect(self) -> _Line:
        loop = asyncio.get_running_loop()
        line = _Line(loop)
        connecting = loop.create_connection(lambda: line, *self._address)
        await asyncio.wait_for(connecting, _CONNECT_SECONDS)
        if self._tls is not None:
            await self._encrypt(line, self._tls)
        return line

    async def _encrypt(self, line: _Line, tls: ssl.SSLContext) -> None:
        plain = line.transport
        try:
            loop = asyncio.get_running_loop()
            transport = await loop.start_tls(plain, line, tls, server_hostname=self._address[0])
        except BaseException:
            plain.abort()
            raise
        line.transport = cast("asyncio.Transport", transport)


class _Line(asyncio.Protocol):
    """One connection.

    Attributes:
        transport: Its end here.
        over: Whether it cannot carry another request.
    """

    transport: asyncio.Transport

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.over = False
        self._loop = loop
        self._reader = ResponseReader()
        self._answer: asyncio.Future[RawResponse] | None = None

    async def exchange(self, data: bytes) -> RawResponse:
        """Send a request and return the response; raises as `KeptConnection.post` does."""
        self._reader.expect("POST")
        answer: asyncio.Future[RawResponse] = self._loop.create_future()
        self._answer = answer
        self.transport.write(data)
        try:
            return await answer
        finally:
            self._answer = None

    # Events of the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        # A cast: the transports of uvloop are not subclasses of asyncio's.
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Part of a response has come; or something nobody has asked for, which ends the connection."""
        self._feed(data)

    def eof_received(self) -> None:
        """The server sends nothing more."""
        self._feed(b"")

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has ended."""
        self.over = True
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(exc or BrokenError("the connection was closed without a response"))

    def _feed(self, data: bytes) -> None:
        answer = self._answer
        self.over = self.over or answer is None or not data
        if answer is None or answer.done():
            return
        try:
            response = self._reader.feed(data)
        except BrokenError as error:
            answer.set_exception(error)
        else:
            if response is not None:
                answer.set_result(response)
