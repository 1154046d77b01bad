"""Operations that are not waited for, and branches that differ only in whether they wait."""

from pathlib import Path

import numpy as np
import pytest
from calibration_logs import LogFile

from analyzer.calibration.calibrate import Calibration, calibrate
from analyzer.calibration.executions import Execution, Moment, Operation
from analyzer.calibration.framework import framework_work
from analyzer.calibration.observed import Observed
from analyzer.calibration.rundir import Part, PartInfo, ProcessUse, RunInfo, Window, fingerprints, load_run
from analyzer.static import Application, analyse
from mup.events.ids import child_id
from mup.events.record import Event

SOURCE = """\
from mup import EP, MS

class A(MS):
    @EP("/maybe/")
    def maybe(self, comm):
        f = comm.call("B", "/b/", {})
        if comm.params:
            f.get()
        comm.respond(1)

    @EP("/log/")
    def log(self, comm):
        comm.query("db", "audit/log", "events", {})
        comm.respond(1)

class B(MS):
    @EP("/b/")
    def b(self, comm):
        comm.respond(1)
"""
MAYBE, LOG, BACK, AUDIT = "A/maybe/", "A/log/", "B/b/", "db.audit/log"
EXECUTIONS = 4


def application(tmp_path: Path) -> Application:
    source = tmp_path / "source"
    source.mkdir()
    (source / "services.py").write_text(SOURCE)
    found = analyse(source)
    assert not found.errors
    return found


def calibrated(tmp_path: Path) -> Calibration:
    """Calibrate from executions that never wait; the query ends 5 ms after its endpoint."""
    app, run = application(tmp_path), tmp_path / "run"
    run.mkdir()
    a, b = LogFile(run / "A.0.w0.mlog", service="A"), LogFile(run / "B.0.w0.mlog", service="B")
    call, respond = (app.endpoint(MAYBE).paths[1].operations[i].site for i in (0, -1))
    query, answer = (app.endpoint(LOG).paths[0].operations[i].site for i in (0, -1))
    for k in range(EXECUTIONS):
        t, one, two = 100.0 * k, 10 + k, 50 + k
        a.add(Event.BEGIN, one, t, cpu=0, name=MAYBE)
        a.add(Event.COMM_START, one, t + 1, cpu=1, name=BACK, site=call, seq=1)
        a.add(Event.CONTACT_DEST, one, t + 1.5, cpu=1.5, name=BACK, seq=1)
        a.add(Event.END, one, t + 2, cpu=2, name=MAYBE, site=respond)
        a.add(Event.DONE, one, t + 2, cpu=2, name=MAYBE)
        child = child_id(one, 1)
        b.add(Event.BEGIN, child, t + 2, cpu=0, name=BACK)
        b.add(Event.END, child, t + 5, cpu=3, name=BACK, site=app.endpoint(BACK).paths[0].operations[0].site)
        b.add(Event.DONE, child, t + 5, cpu=3, name=BACK)
        a.add(Event.BEGIN, two, t + 20, cpu=0, name=LOG)
        a.add(Event.COMM_START, two, t + 20, cpu=0, name=AUDIT, site=query, seq=1)
        a.add(Event.CONTACT_DEST, two, t + 20.5, cpu=0, name=AUDIT, seq=1)
        a.add(Event.END, two, t + 21, cpu=1, name=LOG, site=answer)
        a.add(Event.DONE, two, t + 21, cpu=1, name=LOG)
        a.add(Event.COMM_FINISH, two, t + 26.5, cpu=0.25, name=AUDIT, seq=1)
    a.close()
    b.close()
    info = RunInfo(project="x", fingerprints=fingerprints(app), parts=[PartInfo(windows=[Window(-1, 10**9)])])
    info.save(run)
    return calibrate(load_run(run), app, name="x")


def milliseconds(result: Calibration, entry: str, activity: str) -> tuple[float, float]:
    found = result.model.task("A").entry(entry).activity(activity)
    assert found.demand is not None
    assert found.delay is not None
    return found.demand.mean * 1e3, found.delay.mean * 1e3


def test_a_call_that_is_not_waited_for_is_calibrated(tmp_path: Path) -> None:
    """Its sending was seen, so the model can be simulated; that its network time is unknown is said."""
    result = calibrated(tmp_path)
    entry = result.model.task("A").entry("/maybe/")
    taken = next(p for p in entry.paths if not any(o["op"] == "get" for o in p["operations"]))
    assert milliseconds(result, "/maybe/", taken["registry"]["0"]) == (0.5, 0.0)
    assert any("its reply is not waited for" in w for w in result.warnings)


def test_paths_that_differ_in_waiting_are_told_apart(tmp_path: Path) -> None:
    """No run waited: the waiting path has probability 0 and is reported as never seen."""
    result = calibrated(tmp_path)
    choice = next(p for p in result.model.task("A").entry("/maybe/").precedences if p.fork == "or")
    assert choice.probabilities is not None
    assert sorted(choice.probabilities) == [0.0, 1.0]
    assert [text for text in result.uncovered if "get" in text]


def test_a_query_that_outlives_its_endpoint_counts_in_full(tmp_path: Path) -> None:
    """Its end is logged after `done`, and a slash in its name does not make it a call."""
    result = calibrated(tmp_path)
    query = result.model.task("db").entry("audit/log").activities[0]
    assert query.delay is not None
    assert round(query.delay.mean * 1e3, 6) == 6 - 0.25


def test_databases_in_one_server_share_its_time() -> None:
    """One process behind two names is counted once."""
    window = Window(0, 10**9, cpu={"7": 0.03})
    info = PartInfo(
        windows=[window],
        processes=[ProcessUse(role="database", service=name, pid=7) for name in ("one", "two")],
    )
    queries = {
        seq: Operation(seq, dest, Moment(0, 0), Moment(0, 0), Moment(1, 0))
        for seq, dest in enumerate(["one.q", "one.q", "two.q"])
    }
    execution = Execution(1, LOG, "worker", "A", 0, Moment(0, 0), operations=queries)
    part = Part(Path(), info, ())
    observed = Observed((window,), (part,), (execution,), {1: 0}, {1: execution}, np.ones(1))
    work = framework_work(observed)
    assert [work.database(name, np.ones(1)) for name in ("one", "two")] == pytest.approx([0.01, 0.01])
