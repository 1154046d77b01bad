"""The translator example, end to end: real services, a real database, real load."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commands import completed

from mup.errors import NoReplicaError, UsageError
from mup.events.reader import read_log
from mup.events.record import Event
from mup.project import Project, load_project
from mup.runtime.deployment.launcher import Deployment
from mup.workload.measure import Measurement, measure_load

pytestmark = [pytest.mark.services, pytest.mark.slow, pytest.mark.usefixtures("short_probes")]

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "translator"
LITTLE_WORK = {"MUP_A_CPU_MS": "1", "MUP_B_CPU_MS": "1", "MUP_B_WAIT_MS": "5"}


@pytest.fixture(scope="module")
def project() -> Project:
    """The example with little work, on free ports."""
    loaded = load_project(EXAMPLE).with_any_ports()
    return replace(loaded, services=tuple(replace(s, env=LITTLE_WORK) for s in loaded.services))


@pytest.fixture(scope="module")
def deployment(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    with Deployment(project, log_dir=tmp_path_factory.mktemp("log")) as running:
        yield running


def _post(deployment: Deployment, params: dict[str, Any]) -> tuple[int, Any]:
    url = next(r.url for r in deployment.replicas() if r.service == "A")
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=10)
    try:
        connection.request("POST", "/epA/", json.dumps(params), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def test_a_known_word_is_translated(deployment: Deployment) -> None:
    """The dictionary's text comes back, as B writes it."""
    assert _post(deployment, {"word": "bando"}) == (200, {"word": "bando", "translation": "Odnab"})


def test_an_unknown_word_is_not_found(deployment: Deployment) -> None:
    """The path without B."""
    status, body = _post(deployment, {"word": "qwerty"})
    assert status == 404
    assert "qwerty" in body["error"]


def test_a_request_without_a_word_is_refused(deployment: Deployment) -> None:
    """The path the workload never takes."""
    assert _post(deployment, {})[0] == 400


def test_the_database_and_its_process_are_known(deployment: Deployment) -> None:
    """The embedded database is a process of the deployment, so that its CPU time can be charged."""
    assert {p.service: p.role for p in deployment.processes()}["db"] == "database"


def test_the_example_on_a_real_mongodb(mongod: Any, project: Project) -> None:
    """The same project runs on a real MongoDB by its URI alone."""
    with Deployment(project.with_database_uri("db", mongod.uri)) as running:
        assert _post(running, {"word": "bando"})[1]["translation"] == "Odnab"
        pids = {p.service: p.pid for p in running.processes()}
        assert pids["db"] == mongod.pid


@pytest.fixture(scope="module")
def measured(project: Project, tmp_path_factory: pytest.TempPathFactory) -> tuple[Measurement, Path]:
    """Four clients for two and a half seconds, and the log of it."""
    folder = tmp_path_factory.mktemp("load")
    return measure_load(project, clients=4, duration=2.5, warmup=0.5, log_dir=folder), folder


def test_measured_figures_are_consistent(measured: tuple[Measurement, Path]) -> None:
    """Little's law and the utilization law hold among the figures of one run."""
    figures, _ = measured
    assert figures.errors == 0, figures.first_error
    rate, response = figures.throughput.mean, figures.response_time
    assert response.mean > 0.006
    assert response.p50 <= response.p90 <= response.p95 <= response.p99
    assert rate * (response.mean + 0.1) == pytest.approx(4, rel=0.35)
    # B is held for at least its 1 ms of work and 5 ms of waiting, by 95 % of the cycles, in 2 workers.
    assert figures.utilization["B"] is not None
    assert figures.utilization["B"] > 0.9 * rate * 0.95 * 0.006 / 2
    assert figures.utilization["A"] is not None
    assert 0 < figures.utilization["A"] < 1
    assert figures.cpu.seconds["A.worker"] > 0.9 * rate * 2.5 * 0.001
    assert {"A.front", "B.front", "B.worker", "client", "db.database", "registry"} <= set(figures.cpu.seconds)
    assert 0 < figures.cpu.host_utilization <= 1.05


def test_two_of_three_paths_are_observed(measured: tuple[Measurement, Path]) -> None:
    """Some executions of A end without calling B; all have query and response in their log."""
    _, folder = measured
    seen: dict[int, list[tuple[int, str]]] = {}
    for path in folder.glob("A.0.w*.mlog"):
        log = read_log(path)
        for record in log.records:
            event, name = int(record["event"]), log.names.get(int(record["name"]), "")
            seen.setdefault(int(record["request"]), []).append((event, name))
    complete = [steps for steps in seen.values() if any(event == Event.DONE for event, _ in steps)]
    kinds = {tuple(name for event, name in steps if event == Event.COMM_START) for steps in complete}
    assert kinds == {("db.qry", "B/epB/"), ("db.qry",)}


def test_pools_and_replicas_change_the_deployment(project: Project) -> None:
    """A what-if can be tried for real."""
    figures = measure_load(
        project, clients=2, duration=0.5, warmup=0.2, pools={"B": 1}, replicas={"A": 2}, repeats=2
    )
    assert figures.errors == 0, figures.first_error
    # A run that the machine disturbed is in no figure.
    assert len(figures.runs) == 2
    assert figures.window_seconds == pytest.approx(0.5 * figures.repeats)


def test_attach_measures_a_running_system(project: Project, deployment: Deployment) -> None:
    """Nothing is started, and what cannot be known is None."""
    figures = measure_load(project, clients=2, duration=0.5, warmup=0.1, attach=deployment.registry_url)
    assert figures.errors == 0, figures.first_error
    assert figures.utilization == {"A": None, "B": None}
    assert set(figures.cpu.seconds) == {"client", "monitor"}
    with pytest.raises(UsageError, match="running system"):
        measure_load(project, clients=2, duration=0.5, attach=deployment.registry_url, pools={"B": 1})


def test_attach_to_nothing(project: Project) -> None:
    """The address is named."""
    with pytest.raises(NoReplicaError, match=r"http://127\.0\.0\.1:9"):
        measure_load(project, clients=1, duration=0.5, warmup=0.0, attach="http://127.0.0.1:9")


@pytest.mark.parametrize("attach", ["foo", "", "localhost:9099", "ftp://a", "http://", "http://a:99999"])
def test_attach_to_what_is_no_url(project: Project, attach: str) -> None:
    """One message says what a URL looks like and what was given."""
    with pytest.raises(UsageError, match=rf"such as http://127\.0\.0\.1:9099, got {attach!r}"):
        measure_load(project, clients=1, duration=0.5, attach=attach)


@pytest.mark.parametrize("folder", ["/proc/x", "/proc", "/dev/null/x"])
def test_logs_that_cannot_be_written(project: Project, folder: str) -> None:
    """The folder is named before anything is started."""
    with pytest.raises(UsageError, match="cannot write logs") as caught:
        measure_load(project, clients=1, duration=0.5, log_dir=Path(folder))
    assert caught.value.where == folder


def _mup(*words: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mup", *words],
        cwd=ROOT,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_command_prints_one_document() -> None:
    """`mup load --json` has the documented keys, alone on stdout."""
    done = completed(
        "load",
        str(EXAMPLE),
        "--clients",
        "2",
        "--duration",
        "1",
        "--warmup",
        "0.3",
        "--pool",
        "B=3",
        "--json",
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["clients"] == 2
    assert document["errors"] == 0
    assert set(document["response_time"]) == {"mean", "ci95", "p50", "p90", "p95", "p95_ci95", "p99"}
    assert set(document["throughput"]) == {"mean", "ci95"}
    assert 0 < document["tasks"]["B"]["utilization"] < 1


def test_the_command_shows_units() -> None:
    """The table for people has units, and progress stays off stdout."""
    done = completed("load", str(EXAMPLE), "--clients", "1", "--duration", "0.5", "--warmup", "0.1")
    assert done.returncode == 0, done.stderr
    for text in ("response time, mean", "ms", "cycles/s", "utilization of A"):
        assert text in done.stdout
    assert done.stdout.startswith("closed load, 1 client, 0.5 s measured")
    assert "starting" not in done.stdout


def test_no_figures_without_a_cycle(tmp_path: Path) -> None:
    """A run in which everything failed shows the error and the counts, and no zeros."""
    shutil.copytree(EXAMPLE, tmp_path / "project")
    workload = tmp_path / "project" / "workload.py"
    workload.write_text(workload.read_text().replace('comm.call("A"', 'comm.call("Nobody"'))
    # A service that is not known yet is waited for, 3 s.
    done = _mup("load", str(tmp_path / "project"), "--clients", "1", "--duration", "4", "--warmup", "0.1")
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("closed load, 1 client, 4.0 s measured\n")
    assert re.search(r"no cycle succeeded, \d+ failed\n$", done.stdout)
    assert "failed, the first with: unknown service 'Nobody'" in done.stderr


def test_a_worker_that_cannot_set_up() -> None:
    """The service's own message reaches the user, and nothing is measured."""
    done = _mup(
        *("load", str(EXAMPLE), "--clients", "1", "--duration", "0.5", "--warmup", "0.1", "--json"),
        env={"MUP_B_WAIT_MS": "nonsense"},
    )
    assert done.returncode == 2
    assert "nonsense" in done.stderr + json.loads(done.stdout)["error"]["message"]


def test_interrupted_it_leaves_nothing() -> None:
    """Ctrl-C in the middle of a run stops the services, the database and the load driver."""
    with subprocess.Popen(
        [sys.executable, "-m", "mup", "load", str(EXAMPLE), "--clients", "2", "--duration", "60"],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as command:
        family: list[int] = []
        deadline = time.monotonic() + 20
        # Registry, database, two fronts, seven workers, and the load driver; then some load.
        while len(family) < 12 and time.monotonic() < deadline:
            time.sleep(0.1)
            family = _session(command.pid)
        assert len(family) >= 12
        time.sleep(0.5)
        os.killpg(command.pid, signal.SIGINT)
        assert command.wait(timeout=20) == 130
    assert _session(command.pid) == []


def _session(leader: int) -> list[int]:
    """Return the processes started by the leader of a session and their children."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == leader and fields[0] != "Z" and int(folder.name) != leader:
            found.append(int(folder.name))
    return found


FAILING = {
    "mup.toml": '[project]\nclient = "workload:User"\n[services.S]\nclass = "service:S"\n',
    "service.py": """
from mup import EP, MS, Communication

class S(MS):
    pool_size = 1
    port = 0

    @EP("/job/")
    def work(self, comm: Communication) -> None:
        comm.respond({"error": "out of order"}, status=503)
""",
    "workload.py": """
from mup import Client, Communication

class User(Client):
    async def scenario(self, comm: Communication) -> None:
        await comm.call("S", "/job/")
""",
}


def test_too_many_failed_cycles_are_exit_1(tmp_path: Path) -> None:
    """The run happened, and the answer is no: the failures are counted and the first one is quoted."""
    for name, text in FAILING.items():
        (tmp_path / name).write_text(text)
    done = _mup("load", str(tmp_path), "--clients", "1", "--duration", "0.5", "--warmup", "0", "--json")
    assert done.returncode == 1, done.stderr
    document = json.loads(done.stdout)
    assert document["errors"] > 0
    assert document["cycles"] == 0
    assert "S/job/ answered 503: out of order" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--clients", "0"), "clients must be >= 1, got 0"),
        (("--clients", "-3"), "clients must be >= 1, got -3"),
        (("--clients", "2", "--duration", "0"), "duration must be > 0"),
        (("--clients", "2", "--pool", "C=2"), "no service 'C'"),
        (("--clients", "2", "--pool", "B=0"), "whole number N >= 1"),
        (("--clients", "2", "--replicas", "B"), "NAME=N"),
        (("--clients", "2", "--attach", "http://127.0.0.1:9", "--log", "x"), "writes its logs where"),
    ],
)
def test_bad_options_are_one_message(words: tuple[str, ...], message: str) -> None:
    """Impossible loads end with exit 2 and one message, as JSON under --json."""
    done = completed("load", str(EXAMPLE), *words, "--json")
    assert done.returncode == 2
    assert message in json.loads(done.stdout)["error"]["message"]
    assert "Traceback" not in done.stderr
