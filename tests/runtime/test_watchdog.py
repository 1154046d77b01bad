"""Requests that take too long, and the state of a replica that cannot serve."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from deployments import Answer, System, make_project, running, wait_for
from prometheus_client.parser import text_string_to_metric_families as parse

from mup.errors import ProjectError
from mup.events.reader import log_files, read_log
from mup.events.record import Event
from mup.project import load_project

pytestmark = pytest.mark.slow

SOURCE = '''
import asyncio
import time
from typing import Annotated

import msgspec

from mup import EP, MS, Communication

Word = Annotated[str, msgspec.Meta(pattern="^(a+)+$")]


class Processes(MS):
    pool_size = 4

    @EP("/check/")
    def check(self, comm: Communication, word: Word) -> None:
        """Its pattern takes ages where it does not fit."""
        comm.respond("fits")

    @EP("/sleep/")
    def sleep(self, comm: Communication, seconds: float) -> None:
        time.sleep(seconds)
        comm.respond("slept")


class Threads(Processes):
    runtime = "thread"

    @EP("/check/")
    def check(self, comm: Communication, word: Word) -> None:
        comm.respond("fits")

    @EP("/sleep/")
    def sleep(self, comm: Communication, seconds: float) -> None:
        time.sleep(seconds)
        comm.respond("slept")


class Loop(MS):
    runtime = "async"
    pool_size = 4

    @EP("/check/")
    async def check(self, comm: Communication, word: Word) -> None:
        comm.respond("fits")

    @EP("/sleep/")
    async def sleep(self, comm: Communication, seconds: float) -> None:
        await asyncio.sleep(seconds)
        comm.respond("slept")
'''

SERVICES = ["Processes", "Threads", "Loop"]
STUCK = "/check/?word=" + "a" * 40 + "!"


def values(system: System, service: str, name: str) -> dict[str, float]:
    """Return the samples of a metric by its kind or status, or by nothing."""
    text = system.ask(service, "/mup/metrics").raw.decode()
    return {
        sample.labels.get("kind", sample.labels.get("status", "")): sample.value
        for family in parse(text)
        for sample in family.samples
        if sample.name == name
    }


def ready(system: System, service: str) -> Answer:
    """Return what a load balancer is told."""
    return system.ask(service, "/readyz")


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """A service of every kind, each with a limit of a second."""
    project = make_project(
        tmp_path_factory.mktemp("limited"), SOURCE, *SERVICES, request_limit=1.0, busy_limit=0.5
    )
    with running(project) as system:
        yield system


@pytest.mark.services
@pytest.mark.parametrize("service", SERVICES)
def test_workers_that_are_stuck(limited: System, service: str) -> None:
    """Clients get 504, a load balancer is told meanwhile, and all are served again afterwards."""
    before = set(limited.status(service)["workers"])

    def all_new(pids: list[int]) -> bool:
        return len(pids) == 4 and not before & set(pids)

    asked = [limited.begin(service, STUCK) for _ in range(4)]
    told = wait_for(lambda: (a := ready(limited, service)).status == 503 and a)
    assert told.body["status"] == "stuck"
    assert "all 4 workers have been busy with the same requests" in told.body["reason"]
    assert values(limited, service, "mup_workers_stuck") == {"": 4}
    assert 0.5 < values(limited, service, "mup_busy_longest_seconds")[""] < 10
    answers = [one.result() for one in asked]
    assert [a.status for a in answers] == [504] * 4
    assert {a.body["error"] for a in answers} == {"the request has been in work for longer than 1 s"}
    assert len({a.headers["x-request-id"] for a in answers}) == 4
    wait_for(lambda: ready(limited, service).status == 200, 15)
    wait_for(lambda: all_new(limited.status(service)["workers"]), 15)
    assert limited.ask(service, "/check/?word=aaa").raw == b"fits"
    assert values(limited, service, "mup_errors_total") == {"request_limit": 4}
    assert values(limited, service, "mup_requests_total")["504"] == 4
    assert values(limited, service, "mup_workers_stuck") == {"": 0}


@pytest.mark.services
def test_others_are_not_disturbed(limited: System) -> None:
    """Requests of the other workers go on; those that wait are served by the successor."""
    served = [limited.begin("Processes", "/sleep/?seconds=0.9") for _ in range(3)]
    wait_for(lambda: limited.status("Processes")["busy"] == 3)
    stuck = limited.begin("Processes", STUCK)
    wait_for(lambda: limited.status("Processes")["busy"] == 4)
    served += [limited.begin("Processes", "/sleep/?seconds=0.3") for _ in range(6)]
    assert [one.result().status for one in served] == [200] * 9
    assert stuck.result().status == 504
    wait_for(lambda: len(limited.status("Processes")["workers"]) == 4)


@pytest.mark.services
@pytest.mark.parametrize("service", ["Threads", "Loop"])
def test_a_process_with_workers_left_goes_on(limited: System, service: str) -> None:
    """A task is cancelled and its worker free at once; a thread is held until it ends by itself."""
    pids = limited.status(service)["workers"]
    slow = limited.begin(service, "/sleep/?seconds=3")
    wait_for(lambda: limited.status(service)["busy"] == 1)
    begun = time.monotonic()
    assert slow.result().status == 504
    assert limited.ask(service, "/sleep/?seconds=0.1").raw == b"slept"
    if service == "Loop":
        wait_for(lambda: limited.status(service)["busy"] == 0, 1.0)
    else:
        assert limited.status(service)["busy"] == 1
        wait_for(lambda: limited.status(service)["busy"] == 0)
        assert time.monotonic() - begun > 1.5
    assert limited.status(service)["workers"] == pids


@pytest.mark.services
def test_logs_of_a_worker_that_was_stuck(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The event log has an arrival and no end of the request, and all of others; the log says where it was."""
    with running(make_project(tmp_path, SOURCE, "Processes", request_limit=0.5, pool_size=1)) as system:
        assert system.ask("Processes", "/check/?word=a").status == 200
        time.sleep(1.5)  # what has been logged is on disk when a worker was idle for a second
        answer = system.ask("Processes", STUCK)
        assert answer.status == 504
        wait_for(lambda: system.status("Processes")["workers"])
        assert system.ask("Processes", "/check/?word=a").status == 200
    logs = [read_log(paths) for paths in log_files(system.logs)]
    assert not any(log.truncated for log in logs)
    count = {
        event: sum(int((log.records["event"] == event).sum()) for log in logs)
        for event in (Event.ARRIVE, Event.DONE)
    }
    assert count == {Event.ARRIVE: 3, Event.DONE: 2}
    said = capfd.readouterr().err
    assert f"longer than 0.5 s: its worker is replaced [/check/ {answer.headers['x-request-id']}" in said
    assert "arguments.py" in said


@pytest.mark.services
def test_without_a_limit_readiness_tells(tmp_path: Path) -> None:
    """Nothing is ended, but a load balancer is told for as long as it lasts."""
    with running(make_project(tmp_path, SOURCE, "Processes", busy_limit=0.3, pool_size=2)) as system:
        asked = [system.begin("Processes", "/sleep/?seconds=1.5") for _ in range(2)]
        told = wait_for(lambda: (a := ready(system, "Processes")).status == 503 and a)
        assert told.body["status"] == "stuck"
        assert [one.result().status for one in asked] == [200, 200]
        assert ready(system, "Processes").status == 200


def test_settings(tmp_path: Path) -> None:
    """They are seconds; the limit on requests is off unless it is set."""
    file = tmp_path / "mup.toml"
    service = '[services.A]\nclass = "a:A"\n'
    file.write_text(service + "request_limit = 2.5\nbusy_limit = 0\n")
    assert (load_project(file).services[0].request_limit, load_project(file).services[0].busy_limit) == (
        2.5,
        0,
    )
    file.write_text(service + "request_limit = 0\nbusy_limit = -1\n")
    with pytest.raises(ProjectError, match=r"(?s)request_limit: must be a number > 0.*busy_limit: .* >= 0"):
        load_project(file)
