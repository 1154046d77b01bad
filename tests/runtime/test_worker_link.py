"""A request of the front for a worker that has died a moment ago."""

from __future__ import annotations

import asyncio
import socket

import pytest

from mup.runtime.pool.front import WorkerLink, _Ticket
from mup.runtime.process.loops import new_event_loop


@pytest.mark.parametrize("new_loop", [new_event_loop, asyncio.new_event_loop], ids=["uvloop", "asyncio"])
def test_a_request_for_a_worker_that_has_just_died_waits_for_its_end(new_loop: object) -> None:
    """Its two sockets end one after the other: between that, the request is in work, and nothing is raised."""

    async def assign() -> None:
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        link = WorkerLink(0, 1, loop)
        link.requests, _ = await loop.create_unix_connection(asyncio.Protocol, sock=ours)
        theirs.close()
        while not link.requests.is_closing():  # noqa: ASYNC110 - its end comes from the transport
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.01)
        ticket = _Ticket(None, "/x/", 1, 2, b"request", None, 0.0, sampled=False)
        link.assign(ticket, 1.0)
        assert (link.ticket, link.since, link.lost) == (ticket, 1.0, False)

    with asyncio.Runner(loop_factory=new_loop) as runner:  # type: ignore[arg-type]
        runner.run(assign())
