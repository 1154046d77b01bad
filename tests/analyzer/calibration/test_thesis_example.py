"""The worked example of Garbi's thesis, chapter 5: Fig. 23's source and Table 2's log give Fig. 25's numbers."""

from pathlib import Path

import pytest
from calibration_logs import write_log

from analyzer.calibration.calibrate import Calibration, calibrate
from analyzer.calibration.rundir import RunInfo, fingerprints, load_run
from analyzer.static import Application, analyse
from mup.events.ids import child_id
from mup.events.record import Event
from mup.events.sites import Site
from mup.lqn import Constant, Task

# The thesis numbers the lines of a pseudolanguage. To have the same numbers, A's statements share a
# logical line with its `def`, imports come last (the source is only read), and B has a file of its own.
SOURCE_A = """\
class A(MS):
    pool_size = 5
    @EP("/epA/")
    def ep_a(self, comm): bfuture = comm.call("B", "/epB/", comm.params); \\
        bstr = bfuture.get(); \\
        dq = comm.query("db", "qry", "tr", {"_id": comm.params["word"]}); \\
        qstr = dq.get(); \\
        ans = bstr + "=>" + qstr[0]; \\
        comm.respond(ans)

from mup import EP, MS
"""
SOURCE_B = """\
from mup import EP, MS







class B(MS):
    pool_size = 2

    @EP("/epB/")
    def ep_b(self, comm):
        hw = "hello" + "world"
        comm.respond(hw)
"""
REQUEST = 77


def site(application: Application, label: str, op: str, index: int = 0) -> Site:
    operations = application.endpoint(label).paths[0].operations
    return [o.site for o in operations if o.op == op][index]


@pytest.fixture
def calibration(tmp_path: Path) -> Calibration:
    source, run = tmp_path / "source", tmp_path / "run"
    source.mkdir()
    run.mkdir()
    (source / "a.py").write_text(SOURCE_A)
    (source / "b.py").write_text(SOURCE_B)
    application = analyse(source)
    assert not application.errors
    call, query = site(application, "A/epA/", "call"), site(application, "A/epA/", "query")
    a, b, db = "A/epA/", "B/epB/", "db.qry"
    write_log(
        run / "A.0.w0.mlog",
        REQUEST,
        [
            (Event.BEGIN, 68, a, None, 0),
            (Event.COMM_START, 68, b, call, 1),
            (Event.CONTACT_DEST, 74, b, call, 1),
            (Event.COMM_FINISH, 88, b, call, 1),
            (Event.COMM_START, 88, db, query, 2),
            (Event.CONTACT_DEST, 95, db, query, 2),
            (Event.COMM_FINISH, 107, db, query, 2),
            (Event.END, 111, a, site(application, a, "respond"), 0),
        ],
        service="A",
    )
    write_log(
        run / "B.0.w0.mlog",
        child_id(REQUEST, 1),
        [(Event.BEGIN, 77, b, None, 0), (Event.END, 86, b, site(application, b, "respond"), 0)],
        service="B",
    )
    RunInfo(project="translator", fingerprints=fingerprints(application)).save(run)
    return calibrate(load_run(run), application, name="translator")


def seconds(task: Task, entry: str, activity: str) -> float:
    found = task.entry(entry).activity(activity)
    assert found.demand is not None
    assert found.delay is not None
    return found.demand.mean + found.delay.mean


def test_table_2_gives_the_numbers_of_figure_25(calibration: Calibration) -> None:
    """Without `arrive` and CPU clocks, `begin` and wall time take their place."""
    model = calibration.model
    a, b, net, db = (model.task(n) for n in ("A", "B", "Net", "db"))
    milliseconds = {
        "reg_4": seconds(a, "/epA/", "reg_4"),
        "exchange_4": seconds(net, "exchange_4@A/epA/", "exchange_4@A/epA/"),
        "reg_6": seconds(a, "/epA/", "reg_6"),
        "qry": seconds(db, "qry", "qry"),
        "comp_8": seconds(a, "/epA/", "comp_8"),
        "comp_14": seconds(b, "/epB/", "comp_14"),
    }
    expected = {"reg_4": 6, "exchange_4": 5, "reg_6": 7, "qry": 12, "comp_8": 4, "comp_14": 9}
    assert {k: v * 1e3 for k, v in milliseconds.items()} == pytest.approx(expected)


def test_nothing_else_takes_time(calibration: Calibration) -> None:
    """The whole of A's execution (43 ms) is explained once: 6+5+9 + 7+12 + 4."""
    total = sum(
        (activity.demand or Constant(0)).mean + (activity.delay or Constant(0)).mean
        for _, _, activity in calibration.model.walk()
    )
    assert total == pytest.approx(0.043)


def test_sizes_pools_and_coverage_are_those_of_the_figure(calibration: Calibration) -> None:
    """A has 5 threads, B has 2, Net and db are infinite; both endpoints have one path and it was seen."""
    threads = {task.name: task.threads for task in calibration.model.tasks}
    assert threads == {"A": 5, "B": 2, "Net": float("inf"), "db": float("inf")}
    assert (calibration.observed, calibration.paths) == (2, 2)
