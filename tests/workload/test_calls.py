"""Calls of clients against replicas that refuse, break off, or answer in unusual ways."""

from __future__ import annotations

import itertools
import socket
from collections.abc import Callable
from typing import Any

import pytest

from mup.project import Project
from mup.workload.driver import LoadDriver

pytestmark = [pytest.mark.services, pytest.mark.slow]

Make = Callable[[str], Project]
OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 1\r\n\r\n+"


def _calls(service: str) -> str:
    return f"""
async def scenario(self, comm):
    await comm.call("{service}", "/x/", {{"a": 1}})
    await comm.call("{service}", "/x/")
    await self.think(0.01)
"""


def _dead() -> str:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{unused.getsockname()[1]}"


def test_a_replica_that_refuses_is_replaced(
    system: Any, project: Make, raw_server: Any, register: Any
) -> None:
    """With one of two replicas dead, every call is answered by the other."""
    server = raw_server(lambda _: OK)
    register("Half", _dead(), server.url)
    with LoadDriver(project(_calls("Half")), system.registry_url) as driver:
        result = driver.run(4, 0.3)
    assert result.first_error == ""
    assert len(result.cycles) > 4


def test_calls_spread_evenly_over_replicas(
    system: Any, project: Make, raw_server: Any, register: Any
) -> None:
    """Each of two replicas gets half of the calls, not in turn."""
    order: list[int] = []
    servers = [raw_server(lambda _, i=i: (order.append(i), OK)[1]) for i in range(2)]
    register("Two", *(server.url for server in servers))
    with LoadDriver(project(_calls("Two")), system.registry_url) as driver:
        for seed in range(3, 23):  # as long as a busy machine needs for so many
            driver.run(1, 0.5, seed=seed)
            if len(order) > 200:
                break
    assert len(order) > 200
    assert 0.35 < sum(order) / len(order) < 0.65
    assert 0.3 < sum(a == b for a, b in itertools.pairwise(order)) / len(order) < 0.7


def test_a_kept_connection_closed_by_the_replica_is_no_error(
    system: Any, project: Make, raw_server: Any, register: Any
) -> None:
    """A replica that closes a connection when its second request arrives loses no call."""
    server = raw_server(lambda number: OK if number == 1 else b"", requests=2)
    register("Closing", server.url)
    with LoadDriver(project(_calls("Closing")), system.registry_url) as driver:
        result = driver.run(2, 0.3)
    assert result.first_error == ""
    # One of the two calls of a cycle is sent twice.
    assert len(server.heads) >= 3 * len(result.cycles) > 6


@pytest.mark.parametrize(
    ("name", "reply", "requests"),
    [
        pytest.param("NewOne", lambda _: b"", 1, id="on a new connection"),
        pytest.param(
            "Head", lambda n: OK if n == 1 else b"HTTP/1.1 200 OK\r\nContent-Le", 2, id="within the head"
        ),
        pytest.param("Body", lambda n: OK if n == 1 else OK[:-1], 2, id="within the body"),
    ],
)
def test_a_call_that_may_have_been_executed_is_not_repeated(
    system: Any,
    project: Make,
    raw_server: Any,
    register: Any,
    name: str,
    reply: Callable[[int], bytes],
    requests: int,
) -> None:
    """A connection that breaks at a moment when the replica has seen the request is an error."""
    server = raw_server(reply, requests)
    register(name, server.url)
    body = f"""
async def scenario(self, comm):
    if self.index == 0:
        await comm.call("{name}", "/first/", timeout=2)
        await comm.call("{name}", "/second/", timeout=2)
    await self.think(0.5)
"""
    with LoadDriver(project(body), system.registry_url) as driver:
        result = driver.run(1, 0.05)
    assert result.errors == 1
    assert "failed: " in result.first_error
    assert "\n" not in result.first_error
    assert [head.split()[1] for head in server.heads] == ["/first/", "/second/"][:requests]


def test_what_is_not_http_is_an_error(system: Any, project: Make, raw_server: Any, register: Any) -> None:
    """Another protocol at the port of a replica is reported on one line."""
    register("Other", raw_server(lambda _: b"220 mail.example.org ESMTP\r\n").url)
    with LoadDriver(project(_calls("Other")), system.registry_url) as driver:
        result = driver.run(1, 0.05)
    assert result.first_error.startswith("call of Other/x/ failed: ")
    assert "\n" not in result.first_error


def test_redirects_are_left_to_the_scenario_and_cookies_are_kept_per_user(
    system: Any, project: Make, raw_server: Any, register: Any
) -> None:
    """A redirect is an answer outside 2xx; its cookie goes along with the later calls of the same user."""
    reply = b"HTTP/1.1 302 Found\r\nLocation: /y/\r\nSet-Cookie: a=1\r\nContent-Length: 1\r\n\r\n+"
    server = raw_server(lambda _: reply)
    register("Moved", server.url)
    body = """
async def scenario(self, comm):
    from mup.errors import CallError
    try:
        await comm.call("Moved", "/x/", headers={"X-Own": "ü", "content-type": "a/b"})
    except CallError as error:
        assert error.status == 302
    await self.think(0.01)
"""
    with LoadDriver(project(body), system.registry_url) as driver:
        result = driver.run(2, 0.1)
    assert result.first_error == ""
    assert len(server.heads) > 2
    for head in server.heads:
        assert head.startswith("POST /x/ HTTP/1.1\r\n")
        assert "X-Own: ü\r\n" in head
        assert head.lower().count("content-type") == 1
    # The first call of each of the two users has none.
    assert sum("Cookie: a=1\r\n" not in head for head in server.heads) == 2


def test_a_waiting_coroutine_can_be_cancelled(system: Any, project: Make) -> None:
    """Giving up waiting neither ends the call nor disturbs others that wait for it."""
    body = """
async def answer(self, call):
    return await call

async def scenario(self, comm):
    call = comm.call("S", "/slow/", {"seconds": 0.1})
    other = asyncio.ensure_future(self.answer(call))
    try:
        await asyncio.wait_for(self.answer(call), 0.02)
    except TimeoutError:
        pass
    assert await other == {} == await call
    await self.think(0.01)
"""
    with LoadDriver(project(body), system.registry_url) as driver:
        result = driver.run(1, 0.2)
    assert result.first_error == ""
    assert result.cycles


def test_rounds_leave_nothing_open(system: Any, project: Make, capfd: Any) -> None:
    """Python's development mode finds no open socket or lost task, even with calls that are not waited for."""
    body = """
async def scenario(self, comm):
    comm.call("S", "/slow/", {"seconds": 2})
    await comm.call("S", "/echo/")
    comm.call("S", "/echo/")
    await self.think(0.02)
"""
    with LoadDriver(project(body), system.registry_url, env={"PYTHONDEVMODE": "1"}) as driver:
        for _ in range(2):
            assert driver.run(2, 0.1).first_error == ""
    assert capfd.readouterr().err == ""
