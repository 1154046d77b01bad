"""Whole measurements of a trivial service: open and closed, void runs, repeats, and the command."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commands import completed

from mup.errors import ProjectError, UsageError
from mup.project import load_project
from mup.workload import measure
from mup.workload.arrivals import Arrivals
from mup.workload.http import HttpLoad
from mup.workload.measure import measure_load
from mup.workload.measurement import Measurement
from mup.workload.speed_history import read_history

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.usefixtures("short_probes")

FILES = {
    "mup.toml": '[project]\nclient = "workload:User"\n[services.S]\nclass = "service:S"\n',
    "service.py": """
import time
from mup import EP, MS, Communication

class S(MS):
    pool_size = 2
    port = 0

    @EP("/job/")
    def job(self, comm: Communication) -> None:
        time.sleep(0.01)
        comm.respond({})

    @EP("/idle/")
    def idle(self, comm: Communication) -> None:
        comm.respond({})
""",
    "workload.py": """
from mup import Client, Communication

class User(Client):
    async def scenario(self, comm: Communication) -> None:
        await self.think(0.02, "exponential")
        await comm.call("S", "/job/")
        await comm.call("S", "/idle/")
""",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with one service."""
    folder = tmp_path_factory.mktemp("trivial")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return folder


def _load(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mup", "load", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
@pytest.mark.services
def test_an_open_load_of_a_service(folder: Path) -> None:
    """Counts, rates, busy shares and both sides' response times belong together; the report says open."""
    found = measure_load(
        load_project(folder).with_any_ports(),
        duration=2.0,
        warmup=0.3,
        arrivals=Arrivals(rate=20.0, process="constant"),
    )
    assert found.kind == "open"
    assert found.clients is None
    assert found.cycles == 40, found.first_error
    assert found.service_response is not None
    assert found.response_time.mean >= found.service_response.mean > 0.01
    assert found.late_starts is not None
    job, idle = found.endpoints["S/job/"], found.endpoints["S/idle/"]
    assert job.response_time.mean >= 0.01
    assert idle.response_time.mean < job.response_time.mean
    assert found.calls["S/job/"].response_time.mean > job.response_time.mean
    assert job.throughput.mean == pytest.approx(20.0, rel=0.15)
    # At least 10 ms of each of two workers, 20 times a second.
    assert job.utilization.mean > 0.9 * 20 * 0.01 / 2
    utilization = found.utilization["S"]
    assert utilization is not None
    assert utilization == pytest.approx(job.utilization.mean + idle.utilization.mean)
    assert found.utilization_ci95["S"] is not None
    document = json.loads(json.dumps(found.to_json()))
    assert document["kind"] == "open"
    assert document["arrivals"] == {"process": "constant", "rate": 20.0, "to_rate": None, "trace": None}
    assert document["speed"]["before"]["cores"]
    assert document["lateness"]["start"]["p95"] >= 0


@pytest.mark.slow
@pytest.mark.services
def test_the_speed_of_every_window_is_remembered(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each repeat leaves a line in the history of the machine, all of one run, void or not."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = measure_load(
        load_project(folder).with_any_ports(), clients=1, duration=0.6, warmup=0.0, repeats=2, kind="validate"
    )
    records = read_history().records
    assert [r.kind for r in records] == ["validate", "validate"]
    assert len({r.run for r in records}) == 1
    for line, run in zip(records, found.runs, strict=True):
        assert line.probed == pytest.approx(run.speed.speed)
        assert line.monitored == (None if run.monitored is None else run.monitored.speed)
        assert line.stolen == run.stolen
        assert 0 < (line.utilization or 0) <= 1
        assert 0.5 < line.seconds < 2


@pytest.mark.slow
@pytest.mark.services
def test_void_runs_are_repeated_and_left_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is void is done again with its seed, and is in no figure; all of them are listed."""
    reasons = iter(["the machine was busy", "", ""])
    known: dict[int, str] = {}
    monkeypatch.setattr(
        measure._Outcome,
        "void",
        property(
            lambda self: known[id(self)] if id(self) in known else known.setdefault(id(self), next(reasons))
        ),
    )
    found = measure_load(
        load_project(folder).with_any_ports(),
        clients=1,
        duration=0.3,
        warmup=0.0,
        repeats=2,
        retries=1,
        seed=5,
    )
    assert [run.void for run in found.runs] == ["the machine was busy", "", ""]
    assert [run.seed for run in found.runs] == [5, 5, 6]
    assert found.repeats == 2
    assert found.void == ""
    assert found.cycles == found.runs[1].cycles + found.runs[2].cycles
    assert found.median_response_time == pytest.approx(sum(r.response_time for r in found.runs[1:]) / 2)
    assert "1 of 3 runs left out as void: the machine was busy" in found.warnings


@pytest.mark.slow
@pytest.mark.services
def test_repeats_stop_when_the_time_is_used_up(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A width that is not reached ends with the observed seconds, and figures of void runs alone are called void."""
    monkeypatch.setattr(measure._Outcome, "void", property(lambda _: "never steady"))
    found = measure_load(
        load_project(folder).with_any_ports(),
        clients=1,
        duration=0.3,
        warmup=0.0,
        until_width=0.0001,
        max_seconds=0.5,
    )
    assert len(found.runs) == 2
    assert found.repeats == 2
    assert found.void == "never steady"
    assert found.to_json()["void"] == "never steady"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"clients": 1, "arrivals": Arrivals(rate=1.0)}, "open or closed"),
        ({}, "clients must be >= 1, got 0"),
        ({"clients": 1, "retries": -1}, "retries must be >= 0, got -1"),
        ({"clients": 1, "until_width": 3.0}, "until_width must be a share between 0 and 1, got 3.0"),
        ({"clients": 9, "clients_from": 1, "until_width": 0.1}, "no mean that repeats could narrow down"),
        ({"clients": 0, "clients_from": 0}, "ramp from 0 to 0"),
    ],
)
def test_impossible_measurements(folder: Path, values: dict[str, Any], message: str) -> None:
    """Refused before anything starts."""
    with pytest.raises(UsageError, match=message):
        measure_load(load_project(folder), duration=1.0, **values)


@pytest.mark.slow
@pytest.mark.services
def test_the_command_drives_any_http_service(system: Any) -> None:
    """Without any project: figures per URL; what services would log is not there."""
    done = _load(
        *(
            "--http",
            f"{system.server_url}/echo/",
            "--http-method",
            "POST",
            "--body",
            "{}",
            "--arrivals",
            "40",
        ),
        *("--duration", "0.5", "--warmup", "0", "--json"),
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["kind"] == "open"
    assert document["cycles"] > 5
    (label,) = document["calls"]
    assert label == f"POST {system.server_url.removeprefix('http://')}/echo/"
    assert document["endpoints"] == {}


@pytest.mark.slow
@pytest.mark.services
def test_the_command_states_open_or_closed_and_shows_a_ramp(folder: Path) -> None:
    """People read what kind of load it was; a load that changes is shown second by second."""
    done = _load(str(folder), "--clients", "4", "--ramp", "1:4", "--duration", "2", "--warmup", "0")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("closed load, 1 to 4 clients, 2.0 s measured")
    assert "starts/s" in done.stdout
    assert "S/idle/" in done.stdout
    assert "the load was not steady" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "which load?"),
        (("--clients", "1", "--arrivals", "2"), "one of: --clients, --arrivals"),
        (("--arrivals", "0"), "must be > 0 per second, got 0.0"),
        (("--ramp", "1"), "--ramp: must be FROM:TO, got '1'"),
        (("--ramp", "inf:1"), "got 'inf:1'"),
        (("--ramp", "1:9", "--clients", "5"), "one of them --clients 5"),
        (("--ramp", "1:9", "--arrivals", "5"), "must begin or end with --arrivals 5"),
        (("--arrival-times", "/nowhere.csv"), "cannot read times"),
        (("--clients", "1", "--external", "x"), "--external: must be NAME=URL, got 'x'"),
        (("--clients", "1", "--external", "x=ftp://y"), "url: must be a URL"),
        (("--clients", "1", "--external", "S=http://y"), "'S' is a service of the project already"),
        (("--clients", "1", "--body", "x"), "need --http"),
        (("--clients", "1", "--http", "nonsense"), "must be a URL such as"),
        (("--clients", "1", "--http", "http://h/", "--header", "x"), "--header: must be NAME:VALUE, got 'x'"),
        (("--clients", "1", "--http", "http://h/", "--think", "x"), "--think: must be seconds or @FILE"),
        (("--clients", "1", "--http", "http://h/", "--attach", "http://h"), "--http drives no project"),
    ],
)
def test_impossible_options(folder: Path, words: tuple[str, ...], message: str) -> None:
    """One message that names the value, exit 2, nothing started."""
    done = completed("load", str(folder), *words, "--json")
    assert done.returncode == 2
    assert message in json.loads(done.stdout)["error"]["message"]
    assert "Traceback" not in done.stderr


def test_a_trace_that_ends_within_the_warmup(folder: Path, tmp_path: Path) -> None:
    """There is nothing left to measure, and the message says so."""
    (tmp_path / "trace").write_text("0\n1\n2\n")
    done = completed("load", str(folder), "--arrival-times", str(tmp_path / "trace"))
    assert done.returncode == 2
    assert "the trace ends after 2 s, within the warm-up of 3 s" in done.stderr


def test_projects_name_services_outside_of_mup(folder: Path, tmp_path: Path) -> None:
    """They are read from mup.toml; a name twice and a URL that is none are refused; they alone make a project."""
    text = (folder / "mup.toml").read_text()
    (tmp_path / "mup.toml").write_text(text + '[external.shop]\nurl = "http://127.0.0.1:1"\n')
    assert load_project(tmp_path).externals == {"shop": "http://127.0.0.1:1"}
    (tmp_path / "mup.toml").write_text('[external.shop]\nurl = "https://shop.example/v1"\n')
    assert load_project(tmp_path).services == ()
    (tmp_path / "mup.toml").write_text(
        text + '[external.S]\nurl = "http://127.0.0.1:1"\n[external.x]\nurl = "x"\n'
    )
    with pytest.raises(ProjectError, match=r"'S' is a service.*\n.*url: must be a URL"):
        load_project(tmp_path)


@pytest.mark.parametrize("url", ["ftp://x/", "http://", "http://h:99999/", "x"])
def test_urls_that_are_none(url: str) -> None:
    """The message names it."""
    with pytest.raises(UsageError, match="must be a URL such as"):
        HttpLoad(urls=(url,))


def test_a_generator_that_does_not_keep_up_is_named() -> None:
    """Much CPU, late thinks and late arrivals each give a warning with its figure."""
    measured = _measurement()
    assert measured.warnings == ()
    busy = replace(measured, cpu=replace(measured.cpu, client_utilization=0.9))
    assert "the load driver used 90% of a core" in busy.warnings[0]
    assert measured.late_thinks is not None
    late = replace(measured, late_thinks=replace(measured.late_thinks, p95=0.05))
    assert "think times of 100.0 ms took up to 50.0 ms too long" in late.warnings[0]
    open_load = replace(
        measured, arrivals=Arrivals(rate=10.0), late_starts=replace(measured.late_thinks, p95=0.03)
    )
    assert "arrivals were up to 30.0 ms late" in open_load.warnings[0]


@pytest.mark.parametrize(
    ("busy", "stolen", "says"),
    [
        pytest.param(1.0, 0.0, "", id="quiet"),
        pytest.param(2.25, 0.0, "warm-up included, other programs used 6.2% of the machine (limit 2%)", id="used"),
        pytest.param(1.0, 1.5, "warm-up included, the hypervisor withheld 7.5% of the machine (limit 2%)", id="stolen"),
    ],
)  # fmt: skip
def test_disturbances_of_the_warm_up_count(
    monkeypatch: pytest.MonkeyPatch, busy: float, stolen: float, says: str
) -> None:
    """10 s of warm-up, in which we use 1 s of the only core, and 10 s of window with half a second of ours."""
    from mup.workload import cpu

    time, host, ours = 0.0, (0.0, 0.0), 0.0
    monkeypatch.setattr(cpu, "_host_seconds", lambda: host)
    monkeypatch.setattr(cpu.time, "monotonic", lambda: time)
    monkeypatch.setattr(cpu.os, "cpu_count", lambda: 1)
    monkeypatch.setattr(measure, "process_cpu_seconds", lambda pid: ours)
    watch = measure._Watch({1: "service.worker"})
    watch.start()
    time, host, ours = 10.0, (busy, stolen), 1.0
    watch.open()
    time, host, ours = 20.0, (busy + 0.5, stolen), 1.5
    watch.close()
    assert watch.disturbed(attached=False) == says
    assert watch.ours == 0.5


def _measurement() -> Measurement:
    from mup.workload.engine import Settings
    from mup.workload.result import Cycle, LoadResult
    from mup.workload.speed import Bracket, Speed

    result = LoadResult(
        clients=1,
        seed=0,
        start_ns=0,
        end_ns=10 * 10**9,
        cycles=tuple(Cycle(k * 10**8, 0.11, 0.1) for k in range(100)),
        completions=tuple(range(100)),
        errors=0,
        first_error="",
        cpu_seconds=0.0,
        think_lateness=(0.0005,) * 100,
        think_wanted=0.1,
    )
    watch = measure._Watch({})
    speed = Speed((100.0,))
    outcome = measure._Outcome(result, watch, Bracket(speed, speed), None, attached=True)
    return measure._summary([], [outcome], Settings(clients=1, duration=10.0, warmup=0.0))
