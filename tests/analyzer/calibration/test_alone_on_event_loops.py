"""Times of executions that overlap others on the event loop of their replica, as copies of a fan-out do."""

from __future__ import annotations

from pathlib import Path

import pytest
from calibration_logs import PAUSING, LogFile

from analyzer.calibration.alone import ENOUGH, alone, timed
from analyzer.calibration.calibrate import calibrate
from analyzer.calibration.rundir import PartInfo, ProcessUse, Run, RunInfo, Window, fingerprints, load_run
from analyzer.static import Application, analyse
from mup.events.record import Event
from mup.lqn import Activity

WORK, PAUSE = 1.0, 5.0
"""Milliseconds of each request."""


@pytest.fixture
def application(tmp_path: Path) -> Application:
    """A service that pauses."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "services.py").write_text(PAUSING)
    return analyse(source)


def logged(folder: Path, application: Application, single: int, pairs: int) -> Run:
    """Write requests that are alone, and pairs of them at once: each holds the other's work, too."""
    folder.mkdir()
    site = application.endpoint("S/e/").paths[0].operations[0].site
    log = LogFile(folder / "S.0.w0.mlog", service="S")
    request = 0
    for number in range(single + pairs):
        start = 20.0 * number
        together = 1 if number < single else 2
        for _ in range(together):
            request += 1
            log.add(Event.BEGIN, request, start, cpu=0, name="S/e/")
        for which in range(together):
            one, used = request - together + 1 + which, together * WORK
            end = start + PAUSE + used
            log.add(Event.END, one, end, cpu=used, name="S/e/", site=site)
            log.add(Event.DONE, one, end, cpu=used, name="S/e/")
    log.close()
    seconds = 20.0 * (single + pairs)
    window = Window(0, round(seconds * 1e6), phase="hot", cpu={"7": 0.0})
    uses = [ProcessUse(role="front", service="S", pid=7)]
    parts = [PartInfo(windows=[window], processes=uses)]
    RunInfo(project="s", cores=2, parts=parts, fingerprints=fingerprints(application)).save(folder)
    return load_run(folder)


def times(run: Run, application: Application) -> tuple[float, float]:
    """Return demand and delay of the work before the response, in milliseconds."""
    model = calibrate(run, application, name="s").model
    work: Activity = model.task("S").entry("/e/").activities[0]
    assert work.demand is not None
    assert work.delay is not None
    return 1e3 * work.demand.mean, 1e3 * work.delay.mean


def test_those_that_are_alone_tell_the_times(tmp_path: Path, application: Application) -> None:
    """A fan-out of one user overlaps itself; lists of a single item are enough to know one copy."""
    run = logged(tmp_path / "run", application, single=ENOUGH, pairs=100)
    assert times(run, application) == pytest.approx((WORK, PAUSE), rel=0.02)


def test_where_they_are_too_few_work_counts_once(tmp_path: Path, application: Application) -> None:
    """All count then: each holds the other's work, and both together no more than was done."""
    run = logged(tmp_path / "run", application, single=ENOUGH - 10, pairs=90)
    assert times(run, application)[0] == pytest.approx(WORK, rel=0.02)


def test_requests_that_touch_are_alone() -> None:
    """One that begins when another ends overlaps nothing; replicas have loops of their own."""
    assert timed([1, 2, 3], {1, 2}) is None
    requests = list(range(3 * ENOUGH))
    assert timed(requests, set(requests[:ENOUGH])) == frozenset(requests[:ENOUGH])
    assert timed(requests, set(requests)) is None
    assert alone([], "S") == frozenset()
