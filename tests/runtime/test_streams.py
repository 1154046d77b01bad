"""Connections of an event loop: what becomes of a request on one that ends at a bad moment?"""

from __future__ import annotations

import asyncio

import pytest

from mup.runtime.client.reply import BrokenError
from mup.runtime.client.request import RawRequest
from mup.runtime.client.streams import Lines


def test_a_connection_that_has_ended_is_told_at_once() -> None:
    """A server may close a connection before the first request on it is written: its end is not told twice."""

    async def ask() -> None:
        server = await asyncio.start_server(lambda _, writer: writer.transport.abort(), "127.0.0.1", 0)
        lines = Lines()
        async with server:
            host, port = server.sockets[0].getsockname()
            line = await lines.connect((host, port), 5.0)
            while not line.over:  # noqa: ASYNC110 - its end comes from the transport
                await asyncio.sleep(0.01)
            with pytest.raises(BrokenError, match="the connection has ended"):
                await asyncio.wait_for(line.ask(RawRequest("GET", "/")), 5.0)
        await lines.close()

    asyncio.run(ask())
