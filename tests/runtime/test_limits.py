"""Limits of a replica: its refusals, and an end without losing accepted requests."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest
from deployments import Answer, System, ask, make_project, running, wait_for

from mup.errors import DeploymentError
from mup.runtime.deployment import launcher
from mup.runtime.deployment.launcher import Deployment
from mup.runtime.replica import ReplicaConfig

pytestmark = [pytest.mark.services, pytest.mark.slow]

SOURCE = """
import time
from mup import EP, MS
from mup.errors import CallError, CallTimeoutError

class Small(MS):
    queue_limit = 99

    @EP("/sleep/")
    def sleep(self, comm):
        time.sleep(float(comm.params["seconds"]))
        comm.respond(comm.params.get("tag"))

class Impatient(MS):
    pool_size = 3

    @EP("/ask/")
    def ask(self, comm):
        try:
            comm.call("Small", "/sleep/", {"seconds": 0, "tag": "late"}, timeout=0.3).get()
        except CallTimeoutError:
            comm.respond("gave up")

class Two(Small):
    replicas = 2
    pool_size = 2

class Caller(MS):
    pool_size = 2

    @EP("/relay/")
    def relay(self, comm):
        comm.respond(comm.call("Two", "/sleep/", {"seconds": 0.02, "tag": "here"}).get())

class Awaiting(MS):
    runtime = "async"
    pool_size = 2

    @EP("/relay/")
    async def relay(self, comm):
        answer = await comm.call("Two", "/sleep/", {"seconds": 0.02, "tag": "here"})
        comm.respond(answer)

class Wrong(Small):
    queue_limit = -1
"""


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """One worker; two places in its queue, as the project says, whatever the class does."""
    with running(
        make_project(tmp_path_factory.mktemp("limits"), SOURCE, "Small", "Impatient", queue_limit=2)
    ) as system:
        yield system


def errors(system: System, kind: str) -> float:
    """Return how often a problem was counted."""
    text = system.ask("Small", "/mup/metrics").raw.decode()
    (found,) = [x for x in text.splitlines() if x.startswith("mup_errors_total") and kind in x] or ["x 0"]
    return float(found.rpartition(" ")[2])


def test_full_queue(small: System) -> None:
    """Beyond the limit a request gets 503 and when to come back; those inside are served."""
    inside = [small.begin("Small", "/sleep/?seconds=0.3&tag=x")]
    wait_for(lambda: small.status("Small")["busy"] == 1)
    inside += [small.begin("Small", "/sleep/?seconds=0&tag=x") for _ in range(2)]
    wait_for(lambda: small.status("Small")["queued"] == 2)
    refused = small.ask("Small", "/sleep/?seconds=0")
    assert refused.status == 503
    assert refused.headers["retry-after"] == "1"
    assert "2 requests are waiting" in refused.body["error"]
    assert [answer.result().status for answer in inside] == [200, 200, 200]
    small.settle("Small")
    assert small.ask("Small", "/sleep/?seconds=0").status == 200
    assert errors(small, "queue_full") == 1


def test_queued_request_is_dropped_at_its_deadline(small: System) -> None:
    """No worker serves a caller that has given up; those that still wait are served."""
    served = small.status("Small")["served"]
    long = small.begin("Small", "/sleep/?seconds=0.8")
    wait_for(lambda: small.status("Small")["busy"] == 1)
    assert small.ask("Impatient", "/ask/").raw == b"gave up"
    assert small.status("Small")["queued"] == 1
    patient = small.begin("Small", "/sleep/?seconds=0&tag=patient")
    assert long.result().status == 200
    assert patient.result().raw == b"patient"
    small.settle("Small")
    assert small.status("Small")["served"] == served + 2
    assert errors(small, "deadline_passed") == 1


def test_deadline_in_the_queue_is_504(small: System) -> None:
    """A caller that listens on is told why nothing was done."""
    long = small.begin("Small", "/sleep/?seconds=0.4")
    wait_for(lambda: small.status("Small")["busy"] == 1)
    late = small.ask("Small", "/sleep/?seconds=0", X_Mup_Deadline="50")
    assert late.status == 504
    assert "deadline passed" in late.body["error"]
    assert long.result().status == 200


@pytest.mark.parametrize(
    ("head", "status"),
    [
        pytest.param(b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 431, id="long-path"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 9000 + b"\r\n\r\n", 431, id="long-header"),
        pytest.param(
            b"GET / HTTP/1.1\r\nHost: x\r\n" + b"".join(b"X-%d: 1\r\n" % i for i in range(200)) + b"\r\n",
            431,
            id="many-headers",
        ),
        pytest.param(b"hello\r\n\r\n", 400, id="no-http"),
        pytest.param(b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n", 400, id="bad-length"),
    ],
)
def test_heads_that_cannot_be_read(
    small: System, head: bytes, status: int, capfd: pytest.CaptureFixture[str]
) -> None:
    """They get a status, the connection is closed, and the log of the service stays as it was."""
    parts = urlsplit(small.url("Small"))
    with socket.create_connection((parts.hostname, parts.port), timeout=10) as connection:
        connection.sendall(head)
        answer = b""
        while data := connection.recv(65536):
            answer += data
    assert answer.startswith((b"HTTP/1.1 %d " % status, b"HTTP/1.0 %d " % status))
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]
    assert "Traceback" not in capfd.readouterr().err
    assert small.ask("Small", "/sleep/?seconds=0").status == 200


@contextmanager
def replica(
    folder: Path, registry: str, **config: Any
) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """Start one replica without the launcher."""
    (folder / "shop.py").write_text(SOURCE)
    told = {"service": "Small", "target": "shop:Small", "source": str(folder), "registry": registry, **config}
    words = [sys.executable, "-m", "mup.runtime.replica", json.dumps(told)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process, json.loads(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


def test_body_that_does_not_come(small: System, tmp_path: Path) -> None:
    """A body that stays away gets 408; it has occupied no worker."""
    with replica(tmp_path, small.deployment.registry_url, body_timeout=0.2) as (_, ready):
        parts = urlsplit(ready["url"])
        with socket.create_connection((parts.hostname, parts.port), timeout=10) as connection:
            connection.sendall(b"POST /sleep/ HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc")
            assert connection.recv(65536).startswith(b"HTTP/1.1 408 ")
        assert ask(ready["url"], "/mup/status").body["served"] == 0


def test_limits_of_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Size and time of bodies are as mup.toml says, and so is the time requests in work get at the end."""
    # So that waiting for the limits takes no longer than a test may.
    monkeypatch.setattr(launcher, "STOP_SECONDS", 0.5)
    monkeypatch.setattr(launcher, "DRAIN_SECONDS", 0.0)
    project = make_project(tmp_path, SOURCE, "Small", max_body=100, body_timeout=0.2, drain=8.0)
    with running(project) as system:
        assert system.ask("Small", "/sleep/?seconds=0", b"x" * 101).status == 413
        parts = urlsplit(system.url("Small"))
        with socket.create_connection((parts.hostname, parts.port), timeout=10) as connection:
            connection.sendall(b"POST /sleep/ HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc")
            assert connection.recv(65536).startswith(b"HTTP/1.1 408 ")
        inside = system.begin("Small", "/sleep/?seconds=1.5&tag=a")
        wait_for(lambda: system.status("Small")["busy"] == 1)
        system.deployment.stop()
        assert inside.result().status == 200


def test_the_launcher_knows_how_long_replicas_drain() -> None:
    """It must not kill what still has time."""
    told = {"service": "A", "target": "a:A", "source": ".", "registry": "http://x"}
    assert msgspec.convert(told, ReplicaConfig).drain == launcher.DRAIN_SECONDS


def test_drain(small: System, tmp_path: Path) -> None:
    """After SIGTERM: not in the registry, not ready, new requests refused, old ones answered, exit 0."""
    registry = small.deployment.registry_url
    with replica(tmp_path, registry, service="Draining") as (process, ready):
        url = ready["url"]
        parts = urlsplit(url)
        kept = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=10)
        kept.request("GET", "/readyz")
        response = kept.getresponse()
        assert (response.status, json.loads(response.read())["status"]) == (200, "ready")
        with ThreadPoolExecutor(2) as threads:
            inside: list[Future[Answer]] = [
                threads.submit(ask, url, "/sleep/?seconds=1&tag=a") for _ in range(2)
            ]
            wait_for(lambda: ask(url, "/mup/status").body["queued"] == 1)
            process.send_signal(signal.SIGTERM)
            wait_for(lambda: not ask(registry, "/replicas?service=Draining").body["replicas"])
            wait_for(lambda: not _accepts(parts.hostname or "", parts.port or 0))
            kept.request("GET", "/readyz")
            response = kept.getresponse()
            assert (response.status, json.loads(response.read())["status"]) == (503, "draining")
            kept.request("GET", "/sleep/?seconds=0")
            response = kept.getresponse()
            assert response.status == 503
            assert response.headers["Retry-After"] == "1"
            assert response.headers["Connection"] == "close"
            assert [request.result().status for request in inside] == [200, 200]
        started = time.monotonic()
        assert process.wait(10) == 0
        assert time.monotonic() - started < 4


def _accepts(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=5).close()
    except OSError:
        return False
    return True


@pytest.mark.parametrize("caller", ["Caller", "Awaiting"])
def test_callers_go_elsewhere_while_a_replica_drains(tmp_path: Path, caller: str) -> None:
    """Stopping one of two replicas under load costs no caller an answer."""
    with running(make_project(tmp_path, SOURCE, "Two", caller)) as system:
        (pid,) = [r.pid for r in system.deployment.replicas() if r.service == "Two" and r.replica == 1]
        # Both workers of the caller keep connections to both replicas.
        for _ in range(20):
            system.ask(caller, "/relay/")
        answers = []
        with ThreadPoolExecutor(2) as threads:
            for number in range(60):
                if number == 20:
                    os.kill(pid, signal.SIGTERM)
                answers += threads.map(lambda _: system.ask(caller, "/relay/"), range(2))
        assert {answer.status for answer in answers} == {200}


@pytest.mark.parametrize("caller", ["Caller", "Awaiting"])
def test_callers_go_to_the_successor_on_the_same_port(tmp_path: Path, caller: str) -> None:
    """Reloading a service whose port is fixed costs no caller an answer."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    project = make_project(tmp_path, SOURCE, "Two", caller)
    two, other = project.services
    project = replace(project, services=(replace(two, port=port, replicas=1), other))
    with running(project, reloading=True) as system, ThreadPoolExecutor(2) as threads:
        # Both workers of the caller keep connections to the replica that goes.
        for _ in range(20):
            system.ask(caller, "/relay/")
        reload = threads.submit(system.deployment.reload, "Two")
        answers = []
        while not reload.done():
            answers.append(system.ask(caller, "/relay/"))
        reload.result()
        answers.append(system.ask(caller, "/relay/"))
        assert {answer.status for answer in answers} == {200}


@pytest.mark.parametrize("caller", ["Caller", "Awaiting"])
def test_callers_keep_no_connection_to_replicas_that_are_gone(tmp_path: Path, caller: str) -> None:
    """However often a service is replaced by one at another port, a worker that calls it now and then has one."""
    project = make_project(tmp_path, SOURCE, "Two", caller)
    with running(project, replicas={"Two": 1}, pools={caller: 1}, reloading=True) as system:
        (pid,) = system.status(caller)["workers"]
        assert system.ask(caller, "/relay/").status == 200
        before = sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
        for _ in range(3):
            system.deployment.reload("Two")
            time.sleep(1.1)  # the list of replicas is old
            assert system.ask(caller, "/relay/").status == 200
        wait_for(lambda: sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir()) <= before)


def test_wrong_queue_limit(tmp_path: Path) -> None:
    """A limit below zero is refused at start, by name."""
    with pytest.raises(DeploymentError, match="queue_limit must be a whole number >= 0 or None, got -1"):
        Deployment(make_project(tmp_path, SOURCE, "Wrong")).start()
