"""Rounds of several clients say how much processor time requests need on a busy machine."""

from __future__ import annotations

from pathlib import Path

import pytest
from calibration_logs import LogFile

from analyzer.calibration.calibrate import calibrate
from analyzer.calibration.explore import ExploreSettings, explore
from analyzer.calibration.rounds import BURST_PER_CORE, usual_burst
from analyzer.calibration.rundir import (
    PartInfo,
    ProcessUse,
    Run,
    RunInfo,
    Window,
    fingerprints,
    load_info,
    load_run,
)
from analyzer.static import Application, analyse, analyse_project
from mup.events.record import Event
from mup.lqn import LoadDependence, Model
from mup.project import load_project
from mup.workload.machine import this_machine
from mup.workload.speed import Speed

SOURCE = """\
from mup import EP, MS


def work():
    pass


class S(MS):
    runtime = "{runtime}"

    @EP("/long/")
    {define} long(self, comm):
        work()
        comm.respond(1)

    @EP("/short/")
    {define} short(self, comm):
        comm.respond(1)
"""
WORKER, FRONT = 7, 8
LONG, SHORT = 4.0, 1.0
"""Milliseconds of processor time of a request that the log of one user sees."""
OUTSIDE = 0.5
"""Milliseconds of the worker's processor time per request outside of it."""


def application(folder: Path, runtime: str = "async") -> Application:
    """Return a service of two endpoints."""
    folder.mkdir()
    define = "async def" if runtime == "async" else "def"
    (folder / "services.py").write_text(SOURCE.format(runtime=runtime, define=define))
    return analyse(folder)


def logged(
    folder: Path, application: Application, *, busy: float = 0.75, number: int = 160, share: float = 0.5
) -> Run:
    """Write cold, hot and burst rounds.

    Args:
        folder: Of the run.
        application: What runs.
        busy: Processor time of the worker in bursts, relative to what the same requests need in hot rounds.
        number: Requests of a burst.
        share: Of them to the long endpoint.
    """
    folder.mkdir()
    site = {
        name: application.endpoint(f"S/{name}/").paths[0].operations[0].site for name in ("long", "short")
    }
    log = LogFile(folder / "S.0.w0.mlog", service="S")
    windows, request = [], 0
    for position, phase in enumerate(["cold", "hot", "burst"] * 3):
        start = 2000.0 * position
        count = {"cold": 20, "hot": 60, "burst": number}[phase]
        used = 0.0
        for k in range(count):
            request += 1
            long = k < count * (share if phase == "burst" else 0.5)
            name, seen = ("long", LONG) if long else ("short", SHORT)
            used += seen + OUTSIDE
            if phase == "burst":
                # The loop works for others in between: what the clock of its thread says is too long.
                seen *= 3
            t = start + k * 1000.0 / count
            log.add(Event.BEGIN, request, t, cpu=0, name=f"S/{name}/")
            log.add(Event.END, request, t + seen, cpu=seen, name=f"S/{name}/", site=site[name])
            log.add(Event.DONE, request, t + seen, cpu=seen, name=f"S/{name}/")
        factor = {"cold": 1.2, "hot": 1.0, "burst": busy}[phase]
        windows.append(
            Window(
                round(start * 1e6),
                round((start + 1000.0) * 1e6),
                phase=phase,  # type: ignore[arg-type]
                cpu={str(WORKER): factor * used / 1e3, str(FRONT): 0.0},
            )
        )
    log.close()
    processes = [
        ProcessUse(role="worker", service="S", pid=WORKER),
        ProcessUse(role="front", service="S", pid=FRONT),
    ]
    parts = [PartInfo(windows=windows, processes=processes)]
    RunInfo(project="s", cores=2, parts=parts, fingerprints=fingerprints(application)).save(folder)
    return load_run(folder)


def busy_demands(model: Model) -> dict[str, float]:
    """Return the demand of each entry in bursts, in ms."""
    task = model.task("S")
    dependence = task.load_dependence
    assert dependence is not None
    found = {}
    for entry in task.entries:
        (activity, *_) = entry.activities
        assert activity.demand is not None
        extra = dependence.demands.get(f"{entry.name}:{activity.name}", (0.0,) * len(dependence.rates))
        found[entry.name] = round(1e3 * (activity.demand.mean + extra[-1]), 3)
    return found


@pytest.mark.parametrize("share", [0.5, 0.25])
def test_in_bursts_the_clock_of_the_process_counts(tmp_path: Path, share: float) -> None:
    """Demands shrink as its processor time does, whatever endpoints the requests of a burst are for."""
    found = application(tmp_path / "source")
    model = calibrate(logged(tmp_path / "run", found, share=share), found, name="s").model
    expected = {"/long/": 0.75 * (LONG + OUTSIDE), "/short/": 0.75 * (SHORT + OUTSIDE)}
    assert busy_demands(model) == pytest.approx(expected, abs=0.002)


def test_beyond_a_burst_nothing_is_extrapolated(tmp_path: Path) -> None:
    """The machine was busy: at any higher rate the demands are those of the burst."""
    found = application(tmp_path / "source", "process")
    dependence = calibrate(logged(tmp_path / "run", found), found, name="s").model.task("S").load_dependence
    assert dependence is not None
    assert dependence.above == 1.0
    # With more workers than one user keeps busy, the rate of one of them in a burst is not known.
    assert not dependence.by_thread
    (values, *_) = dependence.demands.values()
    assert dependence.at(values, 1e6) == pytest.approx(values[-1])


def test_a_burst_that_is_hardly_busier_tells_nothing(tmp_path: Path) -> None:
    """Rates too close to each other would turn chance into a dependence."""
    found = application(tmp_path / "source")
    run = logged(tmp_path / "run", found, number=70)
    dependence = calibrate(run, found, name="s").model.task("S").load_dependence
    assert dependence is not None
    assert len(dependence.rates) == 2
    assert dependence.above == LoadDependence(rates=(1.0, 2.0)).above


def test_bursts_usually_have_some_clients_for_each_core() -> None:
    """Enough to keep the machine busy although some of them wait."""
    assert usual_burst() == BURST_PER_CORE * this_machine().cores


FRAGILE = """\
import time
from mup import EP, MS, Client, Communication

class A(MS):
    runtime = "thread"
    pool_size = 4
    busy = 0

    @EP("/x/")
    def x(self, comm: Communication) -> None:
        A.busy += 1
        try:
            time.sleep(0.002)
            if A.busy > 1:
                raise RuntimeError("one at a time")
        finally:
            A.busy -= 1
        comm.respond(1)

class User(Client):
    async def scenario(self, comm: Communication) -> None:
        await comm.call("A", "/x/", {})
"""
TOML = """\
[project]
client = "services:User"
[registry]
port = 0
[services.A]
class = "services:A"
"""


@pytest.mark.services
def test_services_that_stand_one_user_only_are_explored_without_bursts(tmp_path: Path) -> None:
    """Their failures are no reason to refuse the run: the round is void and says why, and no other follows."""
    (tmp_path / "services.py").write_text(FRAGILE)
    (tmp_path / "mup.toml").write_text(TOML)
    project = load_project(tmp_path)
    settings = ExploreSettings(
        max_seconds=1.2,
        round_seconds=0.3,
        warmup_seconds=0.2,
        idle_seconds=0.0,
        burst=4,
        foreign_limit=1.0,
    )
    directory = explore(
        project, analyse_project(project), settings, probe=lambda: Speed((1000.0, 1000.0)), monitor=False
    )
    info = load_info(directory)
    assert info.complete
    assert {w.phase for w in info.windows} == {"hot"}
    (burst,) = [v for part in info.parts for v in part.void if v.window.phase == "burst"]
    assert "so many clients make cycles fail" in burst.reason
    assert "one at a time" in burst.reason


BRANCHED = """\
from mup import EP, MS


class S(MS):
    @EP("/e/")
    def e(self, comm):
        if comm.params.get("late"):
            comm.respond(1)
        else:
            comm.respond(2)
"""


def test_a_path_that_only_several_users_took_is_not_covered(tmp_path: Path) -> None:
    """What they do to each other is no choice of the source: such a path has no probability, and is reported."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "services.py").write_text(BRANCHED)
    found = analyse(source)
    sites = [path.operations[0].site for path in found.endpoint("S/e/").paths]
    run = tmp_path / "run"
    run.mkdir()
    log = LogFile(run / "S.0.w0.mlog", service="S")
    windows, request = [], 0
    for position, phase in enumerate(["cold", "hot", "burst"] * 3):
        start, count = 2000.0 * position, {"cold": 20, "hot": 60, "burst": 160}[phase]
        for k in range(count):
            request += 1
            t = start + k * 1000.0 / count
            site = sites[phase == "burst" and k % 2]
            log.add(Event.BEGIN, request, t, cpu=0, name="S/e/")
            log.add(Event.END, request, t + 1, cpu=1, name="S/e/", site=site)
            log.add(Event.DONE, request, t + 1, cpu=1, name="S/e/")
        ends = round((start + 1000.0) * 1e6)
        windows.append(Window(round(start * 1e6), ends, phase=phase, cpu={str(WORKER): count / 1e3}))  # type: ignore[arg-type]
    log.close()
    parts = [PartInfo(windows=windows, processes=[ProcessUse(role="worker", service="S", pid=WORKER)])]
    RunInfo(project="s", cores=2, parts=parts, fingerprints=fingerprints(found)).save(run)
    calibration = calibrate(load_run(run), found, name="s")
    (entry,) = calibration.model.task("S").entries
    assert [p.probabilities for p in entry.precedences if p.fork == "or"] == [(1.0, 0.0)]
    assert (calibration.observed, calibration.paths) == (1, 2)
    assert len(calibration.uncovered) == 1
