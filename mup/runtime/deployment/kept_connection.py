"""Messages of a front to one server every second, on its event loop, over a kept connection."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from mup.runtime.client.request import RawRequest, TlsAddress, address_of
from mup.runtime.client.streams import Line, Lines
from mup.tls import caller_context

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mup.runtime.client.reply import RawResponse

__all__ = ["KeptConnection"]

_SECONDS = 2.0
"""What a request may take, with everything."""
_CONNECT_SECONDS = 1.0
"""A connection that does not come about is soon given up: TCP itself waits longer and longer before it sends
its first packet again (1 s, 2 s, 4 s), although the network may be back."""


class KeptConnection:
    """Requests to one server, one after the other; no redirects.

    Args:
        url: Of the server; with ``https``, certificates are those the environment names.

    Raises:
        CommunicationError: That is no address.
        DeploymentError: A file of certificates cannot be used.
    """

    def __init__(self, url: str) -> None:
        self._address = address_of(url)
        if isinstance(self._address, TlsAddress):
            caller_context()  # what is wrong with the files is said at once
        self._lines = Lines()
        self._line: Line | None = None

    async def post(self, path: str, headers: Mapping[str, str], body: bytes) -> RawResponse:
        """Send a request and return the response.

        Raises:
            OSError: The server cannot be reached, or does not respond in time.
            BrokenError: The connection broke, or what came is not HTTP.
            CommunicationError: A header would change the meaning of the request.
        """
        request = RawRequest("POST", path, headers, body)
        async with asyncio.timeout(_SECONDS):
            if self._line is None or self._line.over:
                self._line = await self._lines.connect(self._address, _CONNECT_SECONDS)
            response = await self._line.ask(request)
        if not response.keep:
            self._line.close()
        return response

    def close(self) -> None:
        """Close the connection."""
        if self._line is not None:
            self._line.close()
