"""How wide fan-outs were, and what their copies did, is read from the log."""

from __future__ import annotations

from pathlib import Path

import pytest
from walking_async import AsyncWorld, async_endpoint, async_world
from walking_models import calibrated, response

from analyzer.calibration.calibrate import Calibration
from analyzer.calibration.matching import loop_counts, match
from mup.lqn import Empirical
from mup.lqn.routing_edits import with_width
from mup.lqn.visits import activity_visits

HELPERS = """
async def ask(comm, path):
    comm.params["work"](1)
    answer = await comm.call("B", path)
    comm.params["work"](2)
    return answer
async def twice(comm):
    await ask(comm, "/b/")
    await ask(comm, "/c/")
async def look(comm):
    comm.params["work"](1)
    await comm.query("db", "q", "c", {})
    comm.params["work"](2)
async def either(comm):
    await ask(comm, "/b/" if comm.params["coin"]() else "/c/")
"""
BODIES = {
    "calls": 'await asyncio.gather(*[comm.call("B", "/b/") for w in comm.params["items"]])',
    "coroutines": 'await asyncio.gather(*[ask(comm, "/b/") for w in comm.params["items"]])',
    "longer ones": 'await asyncio.gather(*[twice(comm) for w in comm.params["items"]])',
    "of two kinds": 'await asyncio.gather(*[either(comm) for w in comm.params["items"]])',
    "generator": 'await asyncio.gather(*(twice(comm) for w in comm.params["items"]))',
    "tasks": """ts = [asyncio.create_task(ask(comm, "/b/")) for w in comm.params["items"]]
        await comm.call("B", "/c/")
        for t in ts:
            await t""",
    "one by one": """fs = [comm.call("B", "/b/") for w in comm.params["items"]]
        for f in fs:
            comm.params["work"](2)
            await f""",
    "group": """async with asyncio.TaskGroup() as group:
            for w in comm.params["items"]:
                group.create_task(ask(comm, "/b/"))""",
    "in a loop": """for w in comm.params["items"]:
            await asyncio.gather(*[comm.call("B", "/b/") for v in comm.params["items"]])""",
    "failing": """try:
            await asyncio.gather(*[twice(comm) for w in comm.params["items"]])
        except CallError:
            await comm.query("db", "q", "c", {})""",
}
WIDTHS = (0, 1, 3, 8)
TIMED = {
    "calls": 'await asyncio.gather(*[comm.query("db", "q", "c", {}) for w in comm.params["items"]])',
    "coroutines": 'await asyncio.gather(*[look(comm) for w in comm.params["items"]])',
    "one by one": """fs = [comm.query("db", "q", "c", {}) for w in comm.params["items"]]
        for f in fs:
            await f
            comm.params["work"](0.1)""",
    "in a dict": """fs = {w: comm.query("db", "q", "c", {}) for w in comm.params["items"]}
        for f in fs.values():
            await f""",
    "by key": """items = comm.params["items"]
        fs = {w: comm.query("db", "q", "c", {}) for w in items}
        rows = [await fs[w] for w in items]""",
    "errors as results": """await asyncio.gather(
            *[comm.query("db", "q", "c", {}) for w in comm.params["items"]], return_exceptions=True)""",
    "tasks whose errors are results": """await asyncio.gather(
            *[look(comm) for w in comm.params["items"]], return_exceptions=True)""",
}


def world(folder: Path, body: str, **options: float) -> AsyncWorld:
    return async_world(folder, async_endpoint(f"{body}\n        comm.respond(1)", helpers=HELPERS), **options)


@pytest.mark.parametrize("name", BODIES)
def test_widths_are_counted(tmp_path: Path, name: str) -> None:
    """Whatever the order of the answers, every copy is found, and each has what it did."""
    app = world(tmp_path, f"{'        '}{BODIES[name]}", fail=0.1 if name == "failing" else 0.0)
    try:
        assert [d.code for d in app.application.diagnostics if d.severity == "error"] == []
        for number in range(24):
            app.request(items=range(WIDTHS[number % 4]))
        _, plans = app.translated()
        found = match(plans, app.good(), waits=True)
        assert [u.reason for u in found.unmatched] == []
        widths = {n for taken in found.taken for counts in loop_counts(taken).values() for n in counts}
        assert widths == set(WIDTHS)
        for taken in found.taken:
            for one in taken:
                assert all(one.shape.gaps)
    finally:
        app.close()


PAIRS = {
    "tasks that begin late": """await asyncio.gather(*[late(comm) for w in comm.params["items"]])
        await asyncio.gather(*[comm.call("B", "/b/") for w in comm.params["others"]])""",
    "errors as results": """await asyncio.gather(*[ask(comm, "/b/") for w in comm.params["items"]],
            return_exceptions=True)
        await asyncio.gather(*[late(comm) for w in comm.params["others"]])""",
    "beside each other": """fs = [comm.call("B", "/b/") for w in comm.params["items"]]
        gs = [comm.call("B", "/b/") for w in comm.params["others"]]
        for f in fs:
            await f
        for g in gs:
            await g""",
}
LATE = """
async def late(comm):
    await asyncio.sleep(0.02 if comm.params["coin"]() else 0)
    await comm.call("B", "/c/")
"""


@pytest.mark.parametrize("name", PAIRS)
def test_each_of_two_has_its_own_width(tmp_path: Path, name: str) -> None:
    """Execution for execution."""
    source = async_endpoint(f"{'        '}{PAIRS[name]}\n        comm.respond(1)", helpers=HELPERS + LATE)
    app = async_world(tmp_path, source)
    try:
        assert [d.code for d in app.application.diagnostics if d.severity == "error"] == []
        wanted = [(number * 5 % 7, number * 3 % 4) for number in range(28)]
        for items, others in wanted:
            app.request(items=range(items), others=range(others))
        _, plans = app.translated()
        found = match(plans, app.good(), waits=True)
        (taken,) = found.taken
        counted = [tuple(len(loop.bodies) for loop in one.shape.loops) for one in taken]
        assert counted == wanted
    finally:
        app.close()


def test_rounds_in_a_loop_have_their_own_widths(tmp_path: Path) -> None:
    """Those without any copies do nothing, which no log shows."""
    body = """for width in comm.params["items"]:
            fs = [comm.call("B", "/b/") for w in range(width)]
            for f in fs:
                await f"""
    app = world(tmp_path, f"{'        '}{body}")
    try:
        wanted = [[(number * k) % 5 for k in range(1, number % 6)] for number in range(30)]
        for widths in wanted:
            app.request(items=widths)
        _, plans = app.translated()
        (taken,) = match(plans, app.good(), waits=True).taken
        counted = [[len(loop.bodies) for loop in one.shape.loops if loop.loop[0]] for one in taken]
        assert counted == [[width for width in widths if width] for widths in wanted]
    finally:
        app.close()


def explored(folder: Path, body: str, requests: int = 200) -> tuple[Calibration, AsyncWorld]:
    app = world(folder, f"{'        '}{body}")
    for number in range(requests):
        app.request(items=range(WIDTHS[number % 4]))
    return calibrated(app, folder / "run"), app


@pytest.mark.slow
@pytest.mark.parametrize("name", TIMED)
def test_calibrated_model_has_the_width_and_the_times(tmp_path: Path, name: str) -> None:
    """Processor time and response time of one user come back, and a wider fan-out takes longer."""
    result, app = explored(tmp_path, TIMED[name])
    task = result.model.task("A")
    entry = task.entry("/a/")
    (fan,) = [arc for arc in entry.precedences if arc.fork == "fan-out"]
    assert isinstance(fan.counts[0], Empirical)
    assert fan.counts[0].mean == pytest.approx(3.0, rel=0.1)  # some requests lie between windows
    assert set(fan.counts[0].values) == {0.0, 1.0, 3.0, 8.0}
    executions = app.good()
    visits = activity_visits(entry)
    demand = sum(visits[a.name] * a.demand.mean for a in entry.activities if visits[a.name] and a.demand)
    assert demand == pytest.approx(app.worked / len(executions) * 1e-3, rel=0.1, abs=1e-6)
    measured = sum(e.done.time - e.begin.time for e in executions if e.done) * 1e-9 / len(executions)
    assert response(result.model) == pytest.approx(measured, rel=0.15)
    wider = with_width(result.model, f"A/a/:{fan.bodies[0]}", "constant(12)")
    assert response(wider) > 1.2 * measured


ROUNDS = {
    "coroutines": """for w in comm.params["items"]:
            await asyncio.gather(*[look(comm) for v in range(3 if comm.params["coin"]() else 5)])
            if comm.params["coin"](0.1):
                await look(comm)
                break""",
    "calls": """for w in comm.params["items"]:
            fs = [comm.query("db", "q", "c", {}) for v in range(3 if comm.params["coin"]() else 5)]
            for f in fs:
                await f
            if comm.params["coin"](0.1):
                break""",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ROUNDS)
def test_times_of_rounds_come_back(tmp_path: Path, name: str) -> None:
    """Each round of a loop has its own copies, also where other code makes the same calls one by one."""
    result, app = explored(tmp_path, ROUNDS[name], requests=300)
    assert [warning for warning in result.warnings if "path" in warning] == []
    entry = result.model.task("A").entry("/a/")
    counts = [arc.counts[0] for arc in entry.precedences if arc.fork == "fan-out"]
    assert any(isinstance(one, Empirical) and set(one.values) == {3.0, 5.0} for one in counts)
    executions = app.good()
    measured = sum(e.done.time - e.begin.time for e in executions if e.done) * 1e-9 / len(executions)
    assert response(result.model) == pytest.approx(measured, rel=0.15)


@pytest.mark.slow
def test_work_behind_the_waits_of_a_round_belongs_to_its_copies(tmp_path: Path) -> None:
    """It shows in no step of theirs, and is over when the next round begins, not when the endpoint ends."""
    body = """for w in comm.params["items"]:
            await asyncio.gather(*[look(comm) for v in range(4)])"""
    result, app = explored(tmp_path, body, requests=300)
    executions = app.good()
    measured = sum(e.done.time - e.begin.time for e in executions if e.done) * 1e-9 / len(executions)
    assert response(result.model) == pytest.approx(measured, rel=0.08)
