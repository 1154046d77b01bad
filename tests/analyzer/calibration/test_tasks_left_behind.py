"""Tasks of an event loop that go on after their endpoint has ended are measured to their end."""

from __future__ import annotations

from pathlib import Path

from analyzer.calibration.calibrate import Calibration, calibrate
from analyzer.calibration.executions import collect
from analyzer.calibration.rundir import PartInfo, RunInfo, Window, fingerprints, load_run
from analyzer.static import Application, analyse
from mup.events.ids import child_id
from mup.events.reader import read_log
from mup.events.record import Event
from mup.events.writer import EventWriter

SOURCE = """\
import asyncio
from mup import EP, MS

kept = set()

class A(MS):
    runtime = "async"

    async def audit(self, comm):
        await comm.call("B", "/b/", {})

    @EP("/a/")
    async def a(self, comm):
        task = asyncio.create_task(self.audit(comm))
        kept.add(task)
        task.add_done_callback(kept.discard)
        comm.respond(1)

class B(MS):
    @EP("/b/")
    def b(self, comm):
        comm.respond(1)
"""
FRONT, BACK = "A/a/", "B/b/"
EXECUTIONS = 4
MS = 1_000_000


def application(tmp_path: Path) -> Application:
    source = tmp_path / "source"
    source.mkdir()
    (source / "services.py").write_text(SOURCE)
    found = analyse(source)
    assert not found.errors
    return found


def logged(run: Path, app: Application) -> None:
    """The endpoint answers after 1 ms; then its task calls for 5 ms, and takes 2 ms of processor time for it."""
    path = app.endpoint(FRONT).paths[0]
    task, respond = path.operations
    call, get = task.bodies[0].operations
    header = {"role": "worker", "replica": 0, "worker": 0, "pid": 1}
    a = EventWriter(run / "A.0.w0.mlog", {**header, "service": "A", "runtime": "async"})
    b = EventWriter(run / "B.0.w0.mlog", {**header, "service": "B"})
    for k in range(EXECUTIONS):
        one, start = 10 + k, 100 * k

        def add(
            event: Event, at: float, cpu: float, site: object = None, name: str = FRONT, seq: int = 0
        ) -> None:
            number = 0 if site is None else a.site(site)  # type: ignore[arg-type]
            times = {"time": round((start + at) * MS), "cpu": round((start + cpu) * MS)}  # noqa: B023
            a.write(event, one, 1, seq=seq, site=number, name=a.name(name), **times)  # noqa: B023

        add(Event.BEGIN, 0, 0)
        add(Event.END, 1, 1, respond.site)
        add(Event.DONE, 1, 1)
        add(Event.COMM_START, 1.5, 1.5, call.site, BACK, 1)
        add(Event.WAIT_START, 2, 2, get.site, BACK, 1)
        add(Event.CONTACT_DEST, 2.5, 2.5, None, BACK, 1)
        add(Event.COMM_FINISH, 6.5, 3, None, BACK, 1)
        add(Event.WAIT_END, 6.5, 3, get.site, BACK, 1)
        child = child_id(one, 1)
        site = b.site(app.endpoint(BACK).paths[0].operations[0].site)  # type: ignore[arg-type]
        for event, at in ((Event.BEGIN, 3), (Event.END, 6), (Event.DONE, 6)):
            moment = round((start + at) * MS)
            where = site if event is Event.END else 0
            b.write(event, child, 1, site=where, name=b.name(BACK), time=moment, cpu=moment)
    a.close()
    b.close()


def calibrated(tmp_path: Path) -> Calibration:
    app, run = application(tmp_path), tmp_path / "run"
    run.mkdir()
    logged(run, app)
    info = RunInfo(project="x", fingerprints=fingerprints(app), parts=[PartInfo(windows=[Window(-1, 10**9)])])
    info.save(run)
    return calibrate(load_run(run), app, name="x")


def test_what_a_task_does_after_the_endpoint_is_part_of_the_execution(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    logged(run, application(tmp_path))
    executions = collect([read_log(run / "A.0.w0.mlog")])
    assert len(executions) == EXECUTIONS
    for one in executions:
        assert [step.op for step in one.steps] == ["respond", "call", "get"]
        assert one.done is not None
        assert one.done.time < one.steps[-1].resume.time


def test_a_model_with_such_a_task_has_all_its_numbers(tmp_path: Path) -> None:
    """Nothing is left to be measured, and the path with the whole task is the one that was taken."""
    result = calibrated(tmp_path)
    assert not result.uncovered
    assert not [warning for warning in result.warnings if "never measured" in warning]
    entry = result.model.task("A").entry("/a/")
    for activity in entry.activities:
        assert activity.demand is not None, activity.name
        assert activity.delay is not None, activity.name
