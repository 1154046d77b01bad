"""The pool of a running service grows and shrinks under load without losing a request."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pymongo
import pytest
from deployments import Answer, System, make_project, running, wait_for
from mongods import OwnMongod
from steady_load import load

from analyzer.calibration.rundir import PartInfo, RunInfo, load_run
from mup.cli.main import main
from mup.errors import LogError
from mup.events.reader import read_log
from mup.events.record import Event
from mup.project import DatabaseConfig
from mup.workload.figures import Window
from mup.workload.occupancy import worker_seconds

pytestmark = [pytest.mark.services, pytest.mark.slow]

SOURCE = """
import asyncio
import os
import time
from pathlib import Path

from mup import EP, MS, Communication

class Processes(MS):
    runtime = "process"
    pool_size = 2

    def setup(self):
        if os.path.exists("one-more-worker"):
            try:
                os.rename("one-more-worker", "no-more-workers")
            except FileNotFoundError:
                pass  # a neighbour was faster
            else:
                time.sleep(0.5)
                return
        if os.path.exists("no-more-workers"):
            raise ValueError("there is no room")

    def teardown(self):
        with open(f"{self.service_name}-teardowns", "a") as file:
            file.write("x")

    @EP("/hold/")
    def hold(self, comm: Communication) -> None:
        while not os.path.exists(comm.params["until"]):
            time.sleep(0.005)
        comm.respond("held")

    @EP("/quick/")
    def quick(self, comm: Communication) -> None:
        time.sleep(0.002)
        comm.respond("quick")

    @EP("/read/")
    def read(self, comm: Communication) -> None:
        rows = comm.query("db", "read", "things", {}).get()
        while not os.path.exists(comm.params["until"]):
            time.sleep(0.005)
        comm.respond(len(rows))

class Threads(Processes):
    runtime = "thread"
    hold = EP("/hold/")(Processes.hold)
    quick = EP("/quick/")(Processes.quick)
    read = EP("/read/")(Processes.read)

class Loop(MS):
    runtime = "async"
    pool_size = 2

    @EP("/hold/")
    async def hold(self, comm: Communication) -> None:
        while not os.path.exists(comm.params["until"]):
            await asyncio.sleep(0.005)
        comm.respond("held")

    @EP("/quick/")
    async def quick(self, comm: Communication) -> None:
        await asyncio.sleep(0.002)
        comm.respond("quick")
"""

ALL = pytest.mark.parametrize("service", ["Processes", "Threads", "Loop"])
JSON = {"Content_Type": "application/json"}


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """A service of each runtime, in a folder of its own."""
    folder = tmp_path_factory.mktemp("pools")
    before = Path.cwd()
    os.chdir(folder)  # services see it: marks and teardowns are files in it
    try:
        with running(make_project(folder, SOURCE, "Processes", "Threads", "Loop")) as system:
            yield system
    finally:
        os.chdir(before)


def resize(system: System, service: str, size: Any, **headers: str) -> Answer:
    return system.ask(service, "/mup/pool", json.dumps({"pool_size": size}).encode(), **{**JSON, **headers})


def has(system: System, service: str, token: str = "", **expected: int) -> bool:
    """Whether a replica's status says so; ``workers`` is their number."""
    status = system.status(service, token)
    status["workers"] = len(status["workers"])
    return all(status[name] == value for name, value in expected.items())


@ALL
def test_the_queue_drains_when_the_pool_grows(system: System, service: str, tmp_path: Path) -> None:
    """Six requests, two workers: four wait. With six workers, none does."""
    release = tmp_path / "go"
    pending = [system.begin(service, f"/hold/?until={release}") for _ in range(6)]
    wait_for(lambda: has(system, service, busy=2, queued=4), 30)
    answer = resize(system, service, 6)
    assert (answer.status, answer.body["pool_size"], answer.body["retiring"]) == (200, 6, 0)
    wait_for(lambda: has(system, service, busy=6, queued=0, workers=6), 30)
    assert b"mup_pool_size" in (metrics := system.ask(service, "/mup/metrics").raw)
    assert f'mup_pool_size{{service="{service}",replica="0"}} 6' in metrics.decode()
    release.touch()
    assert all(future.result(30).raw == b"held" for future in pending)
    assert resize(system, service, 2).status == 200
    wait_for(lambda: has(system, service, workers=2, retiring=0), 30)


@ALL
def test_workers_that_go_finish_what_they_have(system: System, service: str, tmp_path: Path) -> None:
    """With two requests in work, one of two workers leaves only when its own is answered; the next one waits."""
    release = tmp_path / "go"
    pending = [system.begin(service, f"/hold/?until={release}") for _ in range(2)]
    wait_for(lambda: has(system, service, busy=2), 30)
    answer = resize(system, service, 1)
    assert (answer.status, answer.body["pool_size"], answer.body["retiring"]) == (200, 1, 1)
    third = system.begin(service, f"/hold/?until={release}")
    wait_for(lambda: has(system, service, busy=2, queued=1, workers=2), 30)
    release.touch()
    assert all(future.result(30).raw == b"held" for future in [*pending, third])
    wait_for(lambda: has(system, service, workers=1, retiring=0, busy=0), 30)
    assert resize(system, service, 2).status == 200
    assert has(system, service, workers=2)


@ALL
def test_no_request_is_lost_while_the_pool_changes(system: System, service: str) -> None:
    """Sizes go up and down under load; every request is answered, by as many workers as there should be."""
    with load(lambda: system.ask(service, "/quick/"), users=4) as users:
        for size in (5, 1, 3, 8, 2):
            users.await_answers(15)
            assert resize(system, service, size).body["pool_size"] == size
        users.await_answers(15)
    assert users.bad() == []
    wait_for(lambda: has(system, service, workers=2, retiring=0, busy=0, queued=0), 30)
    answers = [system.begin(service, "/quick/") for _ in range(8)]
    assert all(answer.result(30).raw == b"quick" for answer in answers)


@pytest.mark.parametrize("service", ["Processes", "Threads"])
def test_workers_that_go_tear_down(system: System, service: str) -> None:
    """Each of them, once; and a worker process is gone then."""
    mark = Path(f"{service}-teardowns")
    before = len(mark.read_text()) if mark.exists() else 0
    assert resize(system, service, 4).status == 200
    pids = set(system.status(service)["workers"])
    assert resize(system, service, 2).status == 200
    wait_for(lambda: mark.exists() and len(mark.read_text()) == before + 2, 30)
    if service == "Processes":
        stay = set(system.status(service)["workers"])
        wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids - stay), 30)


@pytest.mark.parametrize("service", ["Processes", "Threads"])
@pytest.mark.parametrize("hurdle", ["no-more-workers", "one-more-worker"])
def test_a_setup_that_fails_leaves_the_pool_as_it_was(system: System, service: str, hurdle: str) -> None:
    """The answer says why, and the workers there were go on, also if one fails while another is being set up."""
    Path(hurdle).touch()
    try:
        answer = resize(system, service, 4)
    finally:
        Path("no-more-workers").unlink()
    assert (answer.status, "there is no room" in answer.body["error"]) == (503, True)
    wait_for(lambda: has(system, service, pool_size=2, workers=2), 30)
    assert system.ask(service, "/quick/").raw == b"quick"


@pytest.mark.parametrize("service", ["Processes", "Threads"])
def test_a_worker_that_dies_is_replaced_at_the_new_size(system: System, service: str) -> None:
    """Also those that came later; a process of threads comes back with as many as there should be."""
    assert resize(system, service, 3).status == 200
    victim = system.status(service)["workers"][-1]
    os.kill(victim, signal.SIGKILL)
    wait_for(lambda: victim not in system.status(service)["workers"], 30)
    wait_for(lambda: has(system, service, workers=3), 30)
    assert resize(system, service, 2).status == 200
    wait_for(lambda: has(system, service, workers=2, retiring=0), 30)


@pytest.mark.parametrize(
    ("body", "headers", "status", "says"),
    [
        pytest.param(b'{"pool_size": 0}', JSON, 400, "pool_size", id="none"),
        pytest.param(b'{"pool_size": 2000}', JSON, 400, "<= 1024", id="too-many"),
        pytest.param(b'{"pool": 3}', JSON, 400, "pool", id="other-field"),
        pytest.param(b"four", JSON, 400, "Input data", id="no-json"),
        pytest.param(b" " * 5000, JSON, 413, "1024 bytes", id="long"),
        pytest.param(
            b'{"pool_size": 3}', {"Content_Type": "text/plain"}, 415, "application/json", id="web-page"
        ),
        pytest.param(None, {}, 405, "POST", id="get"),
    ],
)
def test_requests_that_are_wrong(
    system: System, body: bytes | None, headers: dict[str, str], status: int, says: str
) -> None:
    """They are answered with what is wrong, and nothing changes."""
    answer = system.ask("Loop", "/mup/pool", body, **headers)
    assert (answer.status, says in answer.body["error"]) == (status, True), answer.body
    assert has(system, "Loop", pool_size=2, workers=2)


def test_the_command_line_changes_all_replicas(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the token; without it, replicas refuse, and so does the registry."""
    monkeypatch.setenv("MUP_REGISTRY_TOKEN", "sesame")
    project = make_project(tmp_path, SOURCE, "Processes")
    with running(project, replicas={"Processes": 2}) as system:
        url = system.deployment.registry_url

        def pool(*words: str) -> tuple[int, str]:
            with pytest.raises(SystemExit) as ended:
                main(["pool", *words, "--registry", url])
            out, err = capsys.readouterr()
            return int(ended.value.code or 0), out + err

        code, text = pool("Processes", "3")
        assert (code, text.splitlines()) == (0, ["Processes.0: 3 workers", "Processes.1: 3 workers"])
        assert pool("Processes", "2", "--json")[0] == 0
        statuses = [r.url for r in system.deployment.replicas()]
        assert len(statuses) == 2
        assert has(system, "Processes", "sesame", pool_size=2)
        assert "did you mean 'Processes'" in pool("Proceses", "3")[1]
        assert pool("Processes", "0")[0] == 2
        refused = resize(system, "Processes", 5)
        assert (refused.status, "token" in refused.body["error"]) == (401, True)
        assert resize(system, "Processes", 5, Authorization="Bearer sesam").status == 401
        monkeypatch.setenv("MUP_REGISTRY_TOKEN", "wrong")
        assert "does not have this token" in pool("Processes", "5")[1]
        assert has(system, "Processes", "sesame", pool_size=2)


def test_connections_to_databases_follow_the_pool(tmp_path: Path, mongod: OwnMongod) -> None:
    """A worker that goes takes its connections along."""
    project = make_project(tmp_path, SOURCE, "Processes", "Threads")
    config = DatabaseConfig(name="db", uri=mongod.uri, database="pools")
    client: pymongo.MongoClient[dict[str, Any]] = pymongo.MongoClient(mongod.uri)

    def connections() -> int:
        return int(client.admin.command("serverStatus")["connections"]["current"])

    with client, running(replace(project, databases=(config,))) as system:
        for service in ("Processes", "Threads"):
            before = connections()
            assert resize(system, service, 6).status == 200
            # Who rested last is asked first: all six have to be busy at once to be asked at all.
            release = tmp_path / service
            held = [system.begin(service, f"/read/?until={release}") for _ in range(6)]
            wait_for(lambda name=service: has(system, name, busy=6), 30)  # type: ignore[misc]
            wait_for(lambda low=before: connections() >= low + 6, 30)  # type: ignore[misc]
            release.touch()
            assert all(answer.result(30).status == 200 for answer in held)
            grown = connections()
            assert resize(system, service, 1).status == 200
            wait_for(lambda high=grown: connections() <= high - 5, 30)  # type: ignore[misc]


def test_the_log_says_when_and_how_many(tmp_path: Path) -> None:
    """The front's log has the size at its start and every change; the capacity of a window follows from it."""
    with running(make_project(tmp_path / "shop", SOURCE, "Processes")) as system:
        for size in (5, 3):
            assert resize(system, "Processes", size).status == 200
    log = read_log(system.logs / "Processes.0.front.mlog")
    changes = log.records[log.records["event"] == Event.POOL]
    assert (log.header["pool_size"], changes["seq"].tolist()) == (2, [5, 3])
    first, second = changes["time"].tolist()
    begun = log.header["clock"]["monotonic_ns"]
    window = Window(begun, second + 1_000_000_000)
    expected = (first - begun) * 2 + (second - first) * 5 + 1_000_000_000 * 3
    assert np.isclose(worker_seconds(log, window).sum(), expected / 1e9)
    RunInfo(project="shop", parts=[PartInfo()]).save(system.logs)
    with pytest.raises(LogError, match="the pool of 'Processes' was given another size during the run"):
        load_run(system.logs)
