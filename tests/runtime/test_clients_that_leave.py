"""A waiting request whose client leaves is dropped, with every runtime, and counted."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner
from deployments import System, make_project, running, wait_for
from prometheus_client.parser import text_string_to_metric_families as parse

from analyzer.calibration.executions import collect
from analyzer.learning.visits import visits_of_logs
from mup.cli.main import cli
from mup.events.reader import Log, log_files, read_log
from mup.events.record import LEFT_BECAUSE, Event

pytestmark = [pytest.mark.services, pytest.mark.slow]

SOURCE = """
import asyncio
import os
import time

from mup import EP, MS, Communication

class Processes(MS):
    @EP("/serve/")
    def serve(self, comm: Communication) -> None:
        while "until" in comm.params and not os.path.exists(comm.params["until"]):
            time.sleep(0.005)
        comm.respond("served")

class Threads(Processes):
    runtime = "thread"
    admission = "random"
    serve = EP("/serve/")(Processes.serve)

class Loop(MS):
    runtime = "async"

    @EP("/serve/")
    async def serve(self, comm: Communication) -> None:
        while "until" in comm.params and not os.path.exists(comm.params["until"]):
            await asyncio.sleep(0.005)
        comm.respond("served")

class Caller(MS):
    @EP("/forget/")
    def forget(self, comm: Communication) -> None:
        comm.call("Processes", "/serve/")
        comm.respond(os.getpid())
"""

SERVICES = ("Processes", "Threads", "Loop")
RESET = b"\1\0\0\0\0\0\0\0"
CLOSED, WITH_RESET, PATIENT, HALF_CLOSED, CALL = range(0xA1, 0xA6)
"""Ids of the requests behind the one that keeps the only worker, but for what makes them those of a service."""


def number(service: str, request: int) -> int:
    """Return the id of a request to a service."""
    return request + 0x1000 * SERVICES.index(service)


class Clients:
    """Those of one service with one worker.

    Args:
        system: Where it runs.
        service: Its name.
    """

    def __init__(self, system: System, service: str) -> None:
        self._system = system
        self._service = service
        parts = urlsplit(system.url(service))
        self._address = (parts.hostname or "", parts.port or 0)

    def ask(self, request: int, header: str = "") -> socket.socket:
        """Send a request, and wait until it is queued behind those before it."""
        queued = self.queued
        client = socket.create_connection(self._address, timeout=60)
        head = f"GET /serve/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Mup-Request: {number(self._service, request):x}\r\n"
        client.sendall(f"{head}{header}\r\n".encode())
        self.wait_for(queued + 1)
        return client

    @property
    def queued(self) -> int:
        """How many requests wait."""
        return int(self._system.status(self._service)["queued"])

    def wait_for(self, queued: int) -> None:
        """Wait until so many requests wait."""
        wait_for(lambda: self.queued == queued, 30)


def metric(system: System, service: str, name: str, **labels: str) -> float:
    """Return the value of a line of a replica's metrics; 0 if there is none."""
    families = parse(system.ask(service, "/mup/metrics").raw.decode())
    found = [
        s.value for f in families for s in f.samples if s.name == name and labels.items() <= s.labels.items()
    ]
    return found[0] if found else 0.0


def read(client: socket.socket) -> bytes:
    """Receive up to the end of the connection."""
    received = b""
    while data := client.recv(65536):
        received += data
    client.close()
    return received


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """A service of each runtime, and one that calls."""
    project = make_project(tmp_path_factory.mktemp("leaving"), SOURCE, *SERVICES, "Caller")
    with running(project) as system:
        yield system


def some_leave(system: System, service: str, over: Path) -> None:
    """Have a service serve four requests; two more leave."""
    first = system.begin(service, f"/serve/?until={over}")
    wait_for(lambda: system.status(service)["busy"] == 1, 30)
    clients = Clients(system, service)
    closed, reset = clients.ask(CLOSED), clients.ask(WITH_RESET)
    patient, half = clients.ask(PATIENT), clients.ask(HALF_CLOSED)
    call = clients.ask(CALL, "X-Mup-Deadline: 60000\r\n")
    half.shutdown(socket.SHUT_WR)
    reset.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    for leaving in (closed, reset, call):
        leaving.close()
    clients.wait_for(3)
    assert system.status(service)["busy"] == 1
    over.touch()
    assert first.result(30).raw == b"served"
    for waiting in (patient, half):
        answer = read(waiting).removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200 ")
    system.settle(service)


def _has(file: Path, records: int) -> bool:
    return len(read_log(file).records) == records


@pytest.fixture(scope="module")
def logs(system: System, tmp_path_factory: pytest.TempPathFactory) -> list[Log]:
    """Their logs: of requests behind one that keeps the only worker, three wait to the end and two do not.

    The two leave while the worker is taken, and are gone from the queue before it is free.
    """
    for service in SERVICES:
        some_leave(system, service, tmp_path_factory.mktemp("over") / service)
    for service in SERVICES:
        # An idle process makes its records visible by itself: begin, end and done of the four that were served;
        # six arrivals, and the two that have left.
        for process, records in (("w0", 12), ("front", 8)):
            file = system.logs / f"{service}.0.{process}.mlog"
            wait_for(partial(_has, file, records), 30)
    return [read_log(files) for files in log_files(system.logs)]


@pytest.mark.usefixtures("logs")
@pytest.mark.parametrize("service", SERVICES)
def test_metrics_count_who_left(system: System, service: str) -> None:
    """As an error of its own kind; they were not answered, and no worker had them."""
    assert metric(system, service, "mup_errors_total", kind="client_gone") == 2
    assert metric(system, service, "mup_errors_total", kind="endpoint_failed") == 0
    assert metric(system, service, "mup_requests_total", endpoint="/serve/") == 4
    assert metric(system, service, "mup_queue_seconds_count") == 4
    assert system.status(service)["served"] == 4


@pytest.mark.parametrize("service", SERVICES)
def test_log_says_who_left_the_queue(logs: list[Log], service: str) -> None:
    """The front logs that they left, and why; no worker has begun with them."""
    (front,) = (log for log in logs if (log.header["service"], log.header["role"]) == (service, "front"))
    left = front.records[front.records["event"] == Event.LEFT]
    assert sorted(left["request"].tolist()) == [number(service, CLOSED), number(service, WITH_RESET)]
    assert {LEFT_BECAUSE[why - 1] for why in left["seq"].tolist()} == {"client_gone"}
    assert {front.names[name] for name in left["name"].tolist()} == {f"{service}/serve/"}
    executed = {e.request for e in collect(logs) if e.service == service}
    assert {number(service, request) for request in (PATIENT, HALF_CLOSED, CALL)} < executed
    assert len(executed) == 4


@pytest.mark.usefixtures("logs")
def test_tools_know_who_left(system: System) -> None:
    """Executions are those that had a worker; queue lengths go down again."""
    front = str(system.logs / "Loop.0.front.mlog")
    said = CliRunner().invoke(cli, ["log", front, "--details"]).output
    assert "4  Loop/serve/" in said
    assert "2  had no worker: client_gone" in said
    lines = CliRunner().invoke(cli, ["log", front, "--jsonl"]).output
    assert lines.count('"event":"left"') == lines.count('"reason":"client_gone"') == 2
    visits = visits_of_logs(system.logs)[1]
    assert all(len(visits[service]) == 6 for service in SERVICES)
    assert max(end for service in SERVICES for _, end in visits[service]) < 3600


@pytest.mark.parametrize("service", SERVICES)
def test_who_has_just_left_is_not_served(system: System, tmp_path: Path, service: str) -> None:
    """A worker that becomes free an instant later finds out that no request is there."""
    served = system.status(service)["served"]
    first = system.begin(service, f"/serve/?until={tmp_path / 'over'}")
    wait_for(lambda: system.status(service)["busy"] == 1, 30)
    clients = Clients(system, service)
    before = metric(system, service, "mup_errors_total", kind="client_gone")
    for client in [clients.ask(0xB0 + n) for n in range(20)]:
        client.close()
    (tmp_path / "over").touch()
    first.result(30)
    system.settle(service)
    gone = metric(system, service, "mup_errors_total", kind="client_gone") - before
    assert gone + system.status(service)["served"] - served == 21
    # The front may hear of the worker before it hears of the first one that has left.
    assert gone >= 19


def test_calls_of_a_worker_that_ends_are_executed(system: System, tmp_path: Path) -> None:
    """Their caller did not mean to wait: what it wanted is done, though its connections are closed."""
    served = system.status("Processes")["served"]
    first = system.begin("Processes", f"/serve/?until={tmp_path / 'over'}")
    wait_for(lambda: system.status("Processes")["busy"] == 1, 30)
    caller = int(system.ask("Caller", "/forget/").raw)
    system.settle("Caller")
    os.kill(caller, signal.SIGKILL)
    wait_for(lambda: caller not in system.status("Caller")["workers"], 30)
    (tmp_path / "over").touch()
    first.result(30)
    system.settle("Processes")
    assert system.status("Processes")["served"] == served + 2
