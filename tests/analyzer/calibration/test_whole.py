"""An endpoint that is not analysed is measured as a whole: its work, and how often it calls what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from test_calibrate import PAGE, WORK, application, milliseconds, write

from analyzer.calibration.calibrate import calibrate
from analyzer.calibration.observed import observe
from analyzer.calibration.rundir import Run
from analyzer.calibration.stop_rule import known_paths
from analyzer.static import Application, analyse
from mup.cli.models.whole_endpoints import whole_endpoints
from simulator import simulate

__all__ = ["application", "write"]  # fixtures

UNFOLLOWED = '        reply = comm.call("Back", "/job/", {})\n        comm.respond(reply.get())\n'


def test_whole_endpoint(write: Callable[..., Run], application: Application) -> None:
    """Of four pages three call, with 2 + 1 ms of work, 1 ms of sleep, 0.25 ms behind; the other works for 2 ms."""
    skipping = analyse(application.root, skip=[PAGE])
    found = calibrate(write(), skipping, name="whole", bootstrap=0)
    entry = found.model.task("Web").entry("/page/")
    local = {a.name: a for a in entry.activities}
    first = local[entry.start]
    assert milliseconds(first.demand) == pytest.approx((3 * 3 + 2) / 4)
    assert milliseconds(first.delay) == pytest.approx(3 / 4)
    behind = next(a for a in entry.activities if a.kind == "after")
    assert milliseconds(behind.demand) == pytest.approx(3 * 0.25 / 4)
    [loop] = [p for p in entry.precedences if p.fork == "loop"]
    [count] = loop.counts
    assert count is not None
    assert count.mean == pytest.approx(3 / 4)
    called = [call.entry for a in entry.activities for call in a.calls if call.task == "Back"]
    assert called == ["/job/"]
    assert whole_endpoints(found.model)[0].startswith(PAGE)
    assert [c.executions for c in found.coverage if c.label == PAGE] == [4]


def test_it_takes_as_long_as_when_it_is_analysed(write: Callable[..., Run], application: Application) -> None:
    """On average a page takes what it does in the model of its branches."""
    run = write()
    models = [
        calibrate(run, one, name="x", bootstrap=0).model
        for one in (application, analyse(application.root, skip=[PAGE]))
    ]
    analysed, whole = (
        simulate(
            replace(m, processors=(), tasks=tuple(replace(t, processor=None) for t in m.tasks)),
            horizon=3000,
            seed=1,
        )
        for m in models
    )
    assert whole.cycle.response_time.mean == pytest.approx(analysed.cycle.response_time.mean, rel=0.03)


def test_exploring_takes_any_execution_for_its_path(
    write: Callable[..., Run], application: Application
) -> None:
    """None of them is one that fits no path of the source."""
    skipping = analyse(application.root, skip=[WORK, PAGE])
    known = known_paths(skipping, "User")
    assert len(known[PAGE].texts) == 1
    for execution in observe(write()).executions:
        if execution.endpoint == PAGE:
            assert known[PAGE].taken(execution) == [0]


def test_errors_of_a_skipped_endpoint_are_gone(application: Application) -> None:
    """What cannot be analysed blocks no model if it is skipped; a name that does not exist is an error."""
    file = application.root / "services.py"
    file.write_text(file.read_text().replace(UNFOLLOWED, "        self.unknown(comm)\n        print(comm)\n"))
    assert analyse(application.root).errors
    found = analyse(application.root, skip=[PAGE])
    assert not found.errors
    assert [d.code for d in found.diagnostics] == ["MUP070"]
    wrong = analyse(application.root, skip=["Web/pag/"])
    assert "MUP071" in [d.code for d in wrong.errors]
    assert any("Web/page/" in d.hint for d in wrong.errors)
