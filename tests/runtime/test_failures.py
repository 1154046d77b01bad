"""Every failure ends in a clear error at the caller and a line in the log, never in a hang."""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import time
from pathlib import Path

import pytest
from deployments import SOURCE, System, ask, make_project, running, wait_for

from mup.project import Project

pytestmark = [pytest.mark.services, pytest.mark.slow]


@pytest.mark.parametrize(
    ("path", "status", "says"),
    [
        pytest.param("/boom/", 500, "ValueError: no such luck", id="exception"),
        pytest.param("/silent/", 500, "'/silent/' returned without respond()", id="no-respond"),
        pytest.param("/unsendable/", 500, "cannot be sent as JSON", id="unsendable"),
        pytest.param("/exit/", 500, "SystemExit: 3", id="sys-exit"),
        pytest.param("/die/", 502, "ended with status 7", id="worker-dies"),
        pytest.param("/bom/", 404, "did you mean '/boom/'", id="unknown-endpoint"),
        pytest.param("/chained", 404, "did you mean '/chain/'", id="endpoint-name-as-path"),
        pytest.param("/uncaught/", 500, "Caller/boom/ answered 500: ValueError: no such luck", id="callee-fails"),
    ],
)  # fmt: skip
def test_error_at_the_caller(system: System, path: str, status: int, says: str) -> None:
    """A failing endpoint answers with its status, what went wrong and where, and no traceback."""
    answer = system.ask("Caller", path)
    assert answer.status == status
    assert says in answer.body["error"]
    assert answer.body["service"] == "Caller"
    assert "Traceback" not in answer.body["error"]
    # Nothing is stuck: all workers are there again.
    wait_for(lambda: len(system.status("Caller")["workers"]) == 4)
    system.settle("Caller")


def test_exception_is_logged_with_its_request(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The service's log has one block with request id and traceback; a second respond does too."""
    with running(make_project(tmp_path, SOURCE, "Caller")) as system:
        system.ask("Caller", "/boom/", X_Mup_Request="00000000000000ab")
        assert system.ask("Caller", "/twice/").raw == b"first"
        system.settle("Caller")
    log = capfd.readouterr().err
    assert "ERROR Caller/boom/ failed [/boom/ 00000000000000ab]" in log
    assert 'raise ValueError("no such luck")' in log
    assert "respond() was called twice" in log


def test_bad_json(system: System) -> None:
    """A body that is not the JSON it claims to be is the client's fault."""
    answer = system.ask("Caller", "/echo/", b'{"a": ', Content_Type="application/json")
    assert answer.status == 400
    assert "not JSON" in answer.body["error"]


def test_body_too_large(system: System) -> None:
    """A body beyond the limit is refused."""
    answer = system.ask("Caller", "/echo/", b"x" * (16 * 2**20 + 1))
    assert answer.status == 413
    assert "16777216 bytes" in answer.body["error"]


@pytest.mark.parametrize("status", [400, 404, 500])
def test_call_error_carries_status_and_body(system: System, status: int) -> None:
    """A status outside 2xx raises CallError at the caller."""
    answer = system.ask("Caller", f"/failing/?status={status}").body
    assert answer["status"] == status
    assert answer["body"] == {"asked": True}
    assert f"One/status/ answered {status}" in answer["text"]


def test_unchecked_get_returns_the_response(system: System) -> None:
    """With check=False any status is a result."""
    assert system.ask("Caller", "/unchecked/").body == [404, False, {"asked": True}, "application/json"]


def test_call_times_out(system: System) -> None:
    """A call ends at its timeout, not when the callee does."""
    answer = system.ask("Caller", "/slow/").body
    assert 0.2 <= answer["took"] < 0.5
    assert re.search(r"One/count/: no answer within 0\.[12]\d* s", answer["text"])
    system.settle("One")


def test_impatient_get_can_be_repeated(system: System) -> None:
    """A get that times out leaves the call running."""
    assert system.ask("Caller", "/impatient/").raw == b"late"


def test_headers_cannot_smuggle(system: System) -> None:
    """A header with a line break is refused where the call is made."""
    assert "cannot be sent: 'X-A' and its value" in system.ask("Caller", "/smuggle/").raw.decode()


def test_unknown_service_suggests_a_name(system: System) -> None:
    """The registry knows what was meant."""
    answer = system.ask("Caller", "/unknown/").raw.decode()
    assert "unknown service 'Onee'" in answer
    assert "did you mean 'One'" in answer


def test_unknown_database(system: System) -> None:
    """A query on a database that is not registered fails by name."""
    kind, text = system.ask("Caller", "/database/").body
    assert kind == "UnknownDatabaseError"
    assert "'nowhere'" in text


def test_client_that_goes_away(system: System) -> None:
    """A client that closes its connection, or sends rubbish, harms no other."""
    url = system.url("One")
    address = ("127.0.0.1", int(url.rpartition(":")[2]))
    before = system.ask("One", "/count/").body["number"]
    with socket.create_connection(address) as client:
        client.sendall(b"GET /count/?seconds=0.1 HTTP/1.1\r\nHost: x\r\n\r\n")
        wait_for(lambda: system.status("One")["busy"] == 1)
    with socket.create_connection(address) as client:
        client.sendall(b"POST /count/ HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nabc")
    with socket.create_connection(address) as client:
        client.sendall(b"\x16\x03\x01 not HTTP at all\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.")
    system.settle("One")
    assert system.ask("One", "/count/").body["number"] == before + 2


@pytest.fixture
def pair(tmp_path: Path) -> Project:
    """A project of the two-replica service and a caller."""
    return make_project(tmp_path, SOURCE, "Pair", "Caller")


def test_killed_worker_is_replaced(tmp_path: Path) -> None:
    """A worker killed with -9 fails its request with 502 and nothing else."""
    with running(make_project(tmp_path, SOURCE, "One")) as system:
        (pid,) = system.status("One")["workers"]
        hit = system.begin("One", "/count/?seconds=5")
        wait_for(lambda: system.status("One")["busy"] == 1)
        queued = system.begin("One", "/count/")
        wait_for(lambda: system.status("One")["queued"] == 1)
        os.kill(pid, signal.SIGKILL)
        answer = hit.result(3)
        assert answer.status == 502
        assert "killed by SIGKILL" in answer.body["error"]
        assert queued.result(5).body["number"] == 1
        assert system.status("One")["workers"] != [pid]
        assert system.status("One")["errors"] == 1


def test_killed_front_takes_its_workers_along_and_is_restarted(pair: Project) -> None:
    """The kill -9 of a front ends its workers; calls go to the other replica; supervision restarts it."""
    with running(pair) as system:
        system.ask("Caller", "/spread/")
        (front,) = [r.pid for r in system.deployment.replicas() if r.service == "Pair" and r.replica == 1]
        workers = ask(system.url("Pair", 1), "/mup/status").body["workers"]
        os.kill(front, signal.SIGKILL)
        # The registry still lists the dead replica; connections to it are refused.
        wait_for(lambda: not running_process(front))
        pids = system.ask("Caller", "/spread/").body
        assert len(pids) == 60
        assert front not in pids
        wait_for(lambda: not any(running_process(pid) for pid in workers))
        assert not system.deployment.alive()
        time.sleep(1.0)
        events = system.deployment.supervise()
        assert "Pair.1" in events[0]
        assert "SIGKILL" in events[0]
        assert "was restarted" in events[1]
        wait_for(lambda: len(set(system.ask("Caller", "/spread/").body)) == 2)


def test_no_live_replica(pair: Project) -> None:
    """When every replica is dead, the caller gets a clear error at once."""
    with running(pair, replicas={"Pair": 1}) as system:
        (front,) = [r.pid for r in system.deployment.replicas() if r.service == "Pair"]
        os.kill(front, signal.SIGKILL)
        # Until then its socket may take a connection and reset it: that call was broken, not refused.
        wait_for(lambda: not running_process(front))
        started = time.monotonic()
        answer = system.ask("Caller", "/join/")
        assert answer.status == 503
        assert "'Pair' has no live replica" in answer.body["error"]
        assert time.monotonic() - started < 1


def test_stopped_replica_is_not_chosen(pair: Project) -> None:
    """SIGTERM drains: the request in work is answered, and the registry forgets the replica."""
    with running(pair) as system:
        (front,) = [r.pid for r in system.deployment.replicas() if r.service == "Pair" and r.replica == 0]
        hit = system.begin("Pair", "/count/?seconds=0.5")
        wait_for(lambda: system.status("Pair")["busy"] == 1)
        os.kill(front, signal.SIGTERM)
        assert hit.result(3).status == 200
        wait_for(lambda: not running_process(front))
        listed = ask(system.deployment.registry_url, "/replicas?service=Pair").body["replicas"]
        assert [r["replica"] for r in listed] == [1]


def test_draining_replica_is_not_ready(tmp_path: Path) -> None:
    """While a replica finishes what it has, connections that are open already learn that it wants no more."""
    with running(make_project(tmp_path, SOURCE, "One")) as system:
        connection = http.client.HTTPConnection(system.url("One").removeprefix("http://"), timeout=5)

        def ready() -> int:
            connection.request("GET", "/readyz")
            response = connection.getresponse()
            response.read()
            return response.status

        assert ready() == 200
        hit = system.begin("One", "/count/?seconds=0.5")
        wait_for(lambda: system.status("One")["busy"] == 1)
        (front,) = [r.pid for r in system.deployment.replicas()]
        os.kill(front, signal.SIGTERM)
        wait_for(lambda: ready() == 503)
        connection.close()
        assert hit.result(3).status == 200


def test_registry_outage_is_survived(pair: Project) -> None:
    """Warm callers keep calling while the registry is down."""
    with running(pair) as system:
        system.ask("Caller", "/join/")
        (registry,) = [p.pid for p in system.deployment.processes() if p.role == "registry"]
        os.kill(registry, signal.SIGKILL)
        time.sleep(1.1)  # the cached list is no longer fresh
        # Only the worker that made the first call has a list: ask until it is its turn (last used first).
        assert system.ask("Caller", "/join/").body == [True, True]


def running_process(pid: int) -> bool:
    """Whether a process exists and is no zombie; one with threads left still holds its sockets."""
    process = Path(f"/proc/{pid}")
    try:
        threads = len(list((process / "task").iterdir()))
        return threads > 1 or "State:\tZ" not in (process / "status").read_text()
    except OSError:
        return False
