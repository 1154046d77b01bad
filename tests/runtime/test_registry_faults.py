"""Calls go on when the registry is killed, stopped or started again."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from deployments import SOURCE, System, ask, make_project, running, wait_for
from steady_load import load

pytestmark = [pytest.mark.services, pytest.mark.slow]


@contextmanager
def running_shop(folder: Path) -> Iterator[System]:
    """A caller and two replicas it calls; all of the caller's workers know them."""
    with running(make_project(folder, SOURCE, "Pair", "Caller"), pools={"Caller": 2}) as system:
        calls = [system.begin("Caller", "/join/") for _ in range(2)]
        assert all(call.result(10).status == 200 for call in calls)
        yield system


def registry_pid(system: System) -> int:
    (pid,) = [p.pid for p in system.deployment.processes() if p.role == "registry"]
    return pid


def listed(system: System, service: str) -> int:
    """Return how many replicas the registry lists; 0 while it does not answer or know."""
    try:
        answer = ask(system.deployment.registry_url, f"/replicas?service={service}")
    except OSError:
        return 0
    return len(answer.body["replicas"]) if answer.status == 200 else 0


def refuses(url: str) -> bool:
    """Whether a URL has no listener."""
    try:
        ask(url, "/healthz")
    except ConnectionRefusedError:
        return True
    except OSError:
        pass
    return False


def test_registry_killed_under_load(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Calls go on with the lists they have; the registry is restarted and knows every replica within 2 s."""
    with running_shop(tmp_path / "shop") as shop:
        with load(lambda: shop.ask("Caller", "/spread/"), users=2) as users:
            users.await_answers(3)
            time.sleep(1.0)  # a registry that dies within its first second is not restarted
            os.kill(registry_pid(shop), signal.SIGKILL)
            # Longer than any list is fresh: every worker has asked in vain.
            down = time.monotonic()
            wait_for(lambda: time.monotonic() > down + 1.5)
            users.await_answers(5)
            events = shop.deployment.supervise()
            back = time.monotonic()
            wait_for(lambda: listed(shop, "Pair") == 2 and listed(shop, "Caller") == 1)
            assert time.monotonic() - back < 2.0
            users.await_answers(5)
        assert users.bad() == []
        assert "SIGKILL" in events[0]
        assert "was restarted" in events[1]
        assert len(set(users.seen[-1][2].body)) == 2, "both replicas are called"
        log = capfd.readouterr().err
        # Once per outage and process, and once when it is over.
        assert 1 <= log.count("does not answer") <= 5
        assert "answers again" in log or "knows this replica again" in log


@pytest.mark.repeats
def test_registry_stopped_under_load(tmp_path: Path) -> None:
    """A registry that hangs for 5 s delays no call for long, and has forgotten no replica when it goes on."""
    with running_shop(tmp_path / "shop") as shop:
        pid = registry_pid(shop)
        with load(lambda: shop.ask("Caller", "/spread/"), users=2) as users:
            users.await_answers(5)
            normal = users.slowest()
            stopped = time.monotonic()
            os.kill(pid, signal.SIGSTOP)
            wait_for(lambda: time.monotonic() > stopped + 5.0, 10)
            os.kill(pid, signal.SIGCONT)
            assert listed(shop, "Pair") == 2
            users.await_answers(5)
        assert users.bad() == []
        assert users.slowest(stopped) < normal + 2.0
        assert len(users.since(stopped)) > 5


def test_two_deployments_share_a_registry(tmp_path: Path) -> None:
    """Replicas started elsewhere join, are called, and are gone when they stop; numbers and logs differ."""
    with running_shop(tmp_path / "shop") as shop:
        project = make_project(tmp_path / "elsewhere", SOURCE, "Pair", "Caller")
        options = {"services": ["Pair"], "registry": shop.deployment.registry_url, "first_replica": 2}
        with running(project, **options) as more:
            assert [(r.service, r.replica) for r in more.deployment.replicas()] == [("Pair", 2), ("Pair", 3)]
            assert listed(shop, "Pair") == 4
            wait_for(lambda: len(set(shop.ask("Caller", "/spread/").body)) == 4)
            assert not [p for p in more.deployment.processes() if p.role == "registry"]
        assert sorted(f.name for f in more.logs.glob("*.front.mlog")) == [
            "Pair.2.front.mlog",
            "Pair.3.front.mlog",
        ]
        assert listed(shop, "Pair") == 2
        assert len(set(shop.ask("Caller", "/spread/").body)) == 2


def test_a_replica_leaves_the_registry_to_its_successor(tmp_path: Path) -> None:
    """A replica whose address a successor has registered does not take it back while it still runs."""
    with running(make_project(tmp_path, SOURCE, "Pair"), replicas={"Pair": 1}) as system:
        registry = system.deployment.registry_url

        def pids() -> list[int]:
            return [replica["pid"] for replica in ask(registry, "/replicas?service=Pair").body["replicas"]]

        (replica,) = system.deployment.replicas()
        assert pids() == [replica.pid]
        successor = {
            "service": "Pair",
            "replica": 0,
            "url": system.url("Pair"),
            "pid": os.getpid(),
            "endpoints": {},
        }
        json_body = {"Content_Type": "application/json"}
        answer = ask(registry, "/register", json.dumps(successor).encode(), **json_body)
        assert answer.status == 200
        registered = time.monotonic()
        # The replica shows life every second: it has learned that it is not known any more.
        wait_for(lambda: time.monotonic() > registered + 1.5)
        assert pids() == [os.getpid()]
        # Without a successor it is known again.
        gone = ask(registry, "/deregister", json.dumps({"id": answer.body["id"]}).encode(), **json_body)
        assert gone.body == {"removed": True}
        wait_for(lambda: pids() == [replica.pid])


def test_replica_killed_under_load(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Only requests in the hands of a replica that is killed fail; from then on the other one gets all."""
    with running_shop(tmp_path / "shop") as shop:
        (victim,) = [r for r in shop.deployment.replicas() if r.service == "Pair" and r.replica == 1]
        with load(lambda: shop.ask("Caller", "/spread/"), users=1) as users:
            users.await_answers(4)
            os.kill(victim.pid, signal.SIGKILL)
            # A process that dies still accepts connections for a moment.
            wait_for(lambda: refuses(victim.url))
            dead = time.monotonic()
            users.await_answers(5, 20)
        assert users.bad(dead) == []
        assert len(users.bad()) <= 2
        assert all(
            "Pair/pid/ failed: no complete HTTP response" in answer.body["error"] for answer in users.bad()
        )
        assert "cannot be reached" in capfd.readouterr().err
