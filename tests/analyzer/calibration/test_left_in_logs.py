"""A log says how many calls a loop has waited for before it was left, and how many it has left."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from walking_async import AsyncWorld, async_endpoint, async_world
from walking_models import calibrated, response

from analyzer.calibration.matching import match
from mup.lqn import Empirical

BODIES = {
    "break": """fs = [comm.query("db", "q", "c", {}) for w in comm.params["items"]]
        for number, f in enumerate(fs):
            await f
            if number == comm.params["last"]:
                break
        comm.respond(1)""",
    "return": """fs = {w: comm.query("db", "q", "c", {}) for w in comm.params["items"]}
        more = comm.query("db", "z", "c", {})
        for number, f in fs.items():
            await f
            if number == comm.params["last"]:
                comm.params["work"](1)
                await comm.query("db", "y", "c", {})
                comm.respond(0)
                await more
                return
        await more
        comm.respond(1)""",
}


def world(folder: Path, body: str) -> AsyncWorld:
    return async_world(folder, async_endpoint(f"{'        '}{body}"))


@pytest.mark.parametrize("name", BODIES)
def test_both_are_counted(tmp_path: Path, name: str) -> None:
    """Execution for execution, with up to 40 calls."""
    app = world(tmp_path, BODIES[name])
    try:
        assert [d.code for d in app.application.diagnostics if d.severity == "error"] == []
        wanted = [(width, last) for width in (0, 1, 2, 5, 40) for last in (0, 1, 3, 39, 60)]
        for width, last in wanted:
            app.request(items=range(width), last=last)
        _, plans = app.translated()
        found = match(plans, app.good(), waits=True)
        assert [u.reason for u in found.unmatched] == []
        for number, taken in enumerate(found.taken):
            operations = plans[number].path.operations
            for one in taken:
                width, last = wanted[app.good().index(one.execution)]
                counts = {e.loop[1]: len(e.bodies) for e in one.shape.loops if not e.loop[0]}
                by_kind = {operations[index].op: count for index, count in counts.items()}
                waited = min(width, last + 1)
                assert by_kind["fan-out"] == waited
                assert by_kind.get("loop", 0) == width - waited
    finally:
        app.close()


def test_waits_that_a_log_does_not_show(tmp_path: Path) -> None:
    """Then all calls count as waited for."""
    app = world(tmp_path, BODIES["break"])
    try:
        app.request(items=range(4), last=1)
        (execution,) = app.good()
        shown = replace(execution, steps=[step for step in execution.steps if step.op != "get"])
        _, plans = app.translated()
        (taken,) = (one for one in match(plans, [shown], waits=False).taken if one)
        assert sum(len(entry.bodies) for entry in taken[0].shape.loops) == 4
    finally:
        app.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", BODIES)
def test_times_of_one_user_come_back(tmp_path: Path, name: str) -> None:
    """The flow waits for the first calls alone, while all are under way."""
    app = world(tmp_path, BODIES[name])
    for number in range(300):
        app.request(items=range(12), last=(1, 3, 20)[number % 3])
    result = calibrated(app, tmp_path / "run")
    entry = result.model.task("A").entry("/a/")
    counts = {arc.fork: arc.counts[0] for arc in entry.precedences if arc.counts and len(arc.counts) == 1}
    assert isinstance(counts["loop"], Empirical)
    assert set(counts["loop"].values) == {8.0, 10.0}
    executions = app.good()
    measured = sum(e.done.time - e.begin.time for e in executions if e.done) * 1e-9 / len(executions)
    assert response(result.model) == pytest.approx(measured, rel=0.1)
