"""A replica serves on, and answers correctly, whatever clients do on their connections."""

from __future__ import annotations

import random
import re
import resource
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from faults.hostile import ECHO, Crowd, announce, connect, exchange, fuzz, status_of, upload
from faults.system import System, ask, wait_for, write_project

from mup.runtime.protocol.run_token import find_token
from mup.workload.limits import allow_many_files

pytestmark = pytest.mark.services

HALF = b"POST /echo/ HTTP/1.1\r\nHost: shop\r\nX-Slow: "


@pytest.fixture(scope="module")
def echo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """One replica; in the end nothing of it is left, and its log has no word of an error."""
    with System(write_project(tmp_path_factory.mktemp("hostile") / "echo", ["Echo"])) as system:
        workers = system.status("Echo")["workers"]
        yield system
        assert system.status("Echo")["workers"] == workers, "no worker had to be replaced"
        system.stop()
        assert system.left_over() == []
        assert "Traceback" not in system.log_text()
        assert "ERROR" not in system.log_text()


@pytest.fixture
def url(echo: System) -> Iterator[str]:
    """Where the replica listens; it keeps no descriptor of a test, and serves afterwards."""
    (url,) = echo.first_urls("Echo")
    pid = echo.status("Echo")["pid"]
    before = descriptors(pid)
    yield url
    wait_for(lambda: descriptors(pid) <= before + 1, "connections to be closed")
    assert ask(url, "/echo/") == (200, {"bytes": 0})


def descriptors(pid: int) -> int:
    """Return how many files and connections a process has open."""
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


@pytest.mark.parametrize("seed", [1, 2])
def test_malformed_requests(url: str, seed: int) -> None:
    """500 mutilated requests per seed are refused or served; none hangs, none is the server's error."""
    statuses, wrong = fuzz(url, seed, 500)
    assert wrong == []
    assert statuses[400] > 50
    assert statuses[200] > 20


def test_rubbish_behind_an_upgrade(url: str) -> None:
    """A request for another protocol is served as one without; what follows it and is none is refused."""
    upgrade = b"GET /echo/ HTTP/1.1\r\nHost: shop\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"
    answer = exchange(url, upgrade + b"rub:bish\r\n\r\n")
    assert re.findall(rb"HTTP/1.1 (\d+)", answer) == [b"200", b"400"]


def test_malformed_requests_to_the_registry(echo: System) -> None:
    """They neither end it nor make it forget a replica; a wrong registration is refused."""
    before = echo.registry_pid(), echo.replicas("Echo")
    for path in (b"/register", b"/heartbeat", b"/replicas?service=Echo"):
        statuses, wrong = fuzz(echo.registry, 3, 150, path, find_token(echo.registry))
        assert wrong == []
        assert statuses[400] > 20
    assert (echo.registry_pid(), echo.replicas("Echo")) == before


def test_slow_clients(url: str) -> None:
    """Clients that send a header byte by byte delay no others, and are served when they are done."""
    with Crowd(url, 200) as slow:
        assert slow.send(HALF) == 200
        for _ in range(5):
            assert slow.send(b"x") == 200
            assert ask(url, "/echo/")[0] == 200
        slow.send(b"\r\nContent-Length: 2\r\n\r\n")
        assert ask(url, "/echo/")[0] == 200
        slow.send(b"{}")
        assert slow.statuses() == {200: 200}


def test_half_closed_clients(url: str) -> None:
    """A client that has closed its sending half still gets its answers; one that did so too early is told."""
    assert exchange(url, ECHO * 3).count(b'{"bytes":12}') == 3
    assert status_of(exchange(url, ECHO[:-3])) == 400


def test_clients_that_leave(url: str) -> None:
    """Connections that break anywhere, with or without a reset, cost nothing."""
    chance = random.Random(5)
    for number in range(200):
        with connect(url) as client:
            client.sendall(ECHO[: chance.randrange(len(ECHO))])
            if number % 2:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    assert ask(url, "/echo/")[0] == 200


def test_bodies_of_100_megabytes(echo: System, url: str) -> None:
    """They are refused when they are announced, or when the limit is reached; they take no memory."""
    size = 100 * 2**20

    def memory() -> int:
        return sum(process.memory for process in echo.processes())

    before = memory()
    assert announce(url, size).startswith(b"HTTP/1.1 413 ")
    for chunked in (False, True):
        answer, _ = upload(url, size, chunked=chunked)
        assert status_of(answer) == 413
    refused = 'mup_requests_total{endpoint="/echo/",status="413"}'
    assert wait_for(lambda: echo.metrics("Echo").get(refused) == 3, "three refusals")
    assert memory() - before < 64 * 1024


def test_2000_idle_connections(url: str) -> None:
    """They disturb no others, and are as good as new when they are used."""
    allow_many_files()
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < 2200:
        pytest.skip("this machine does not allow a process 2200 open files")
    with Crowd(url, 2000) as idle:
        assert ask(url, "/echo/")[0] == 200
        idle.send(ECHO)
        assert idle.statuses() == {200: 2000}


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="limits of other processes are Linux's")
def test_no_descriptor_left(echo: System, url: str) -> None:
    """A front at its limit of open files serves those it has accepted, and all when some have gone."""
    pid = echo.status("Echo")["pid"]
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    try:
        with Crowd(url, 1) as inside:
            wait_for(lambda: descriptors(pid), "the connection")
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (descriptors(pid) + 10, limits[1]))
            with Crowd(url, 50):
                inside.send(ECHO)
                assert inside.statuses() == {200: 1}
        wait_for(lambda: status_of(exchange(url, ECHO.replace(b"POST", b"PUT"))) >= 0, "the front to accept")
        assert ask(url, "/echo/")[0] == 200
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
