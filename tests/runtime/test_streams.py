"""Connections of an event loop: requests on one that ends at a bad moment."""

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


def test_an_answer_to_a_question_that_has_just_been_cancelled_is_dropped() -> None:
    """It comes before the one who asked has had its turn to close the connection: no error of the event loop."""
    errors: list[object] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        # Never: the test plays the answer at the moment it is about.
        await reader.read()
        writer.close()

    async def ask() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        lines = Lines()
        async with server:
            host, port = server.sockets[0].getsockname()
            line = await lines.connect((host, port), 5.0)
            asking = asyncio.create_task(line.ask(RawRequest("GET", "/")))
            await asyncio.sleep(0.01)
            asking.cancel()
            line.data_received(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            with pytest.raises(asyncio.CancelledError):
                await asking
            assert line.over
            await lines.close()

    asyncio.run(ask())
    assert errors == []
