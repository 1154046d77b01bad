"""Executions with concurrent tasks are matched to the paths of their source, and their work is told apart."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import process_time

import pytest
from walking_async import AsyncWorld, async_endpoint, async_world

from analyzer.calibration.calibrate import calibrate
from analyzer.calibration.executions import Execution, Moment, Operation, Step
from analyzer.calibration.matching import Matched, match
from analyzer.calibration.rundir import PartInfo, RunInfo, Window, fingerprints, load_run
from analyzer.calibration.samples import _segment
from analyzer.calibration.task_times import gap_times
from analyzer.static import PathPlan
from mup.lqn import Constant
from mup.lqn.visits import activity_visits
from simulator import simulate

HELPERS = """
async def ask(comm, path):
    comm.params["work"](1)
    answer = await comm.call("B", path)
    comm.params["work"](2)
    return answer
async def twice(comm):
    await ask(comm, "/b/")
    await ask(comm, "/c/")
async def careful(comm):
    try:
        await comm.call("B", "/b/")
    except CallError:
        await comm.query("db", "q", "c", {})
async def each(comm):
    for w in comm.params["items"]:
        await comm.call("B", "/b/")
async def wait(future):
    return await future
"""

BODIES = {
    "gather of futures": """
        f, g, h = comm.call("B", "/b/"), comm.call("B", "/c/"), comm.query("db", "q", "c", {})
        await asyncio.gather(f, g, h)
    """,
    "gather of coroutines": "await asyncio.gather(ask(comm, '/b/'), twice(comm), careful(comm))",
    "many alike": "await asyncio.gather(*(twice(comm) for _ in range(6)))",
    "loops side by side": "await asyncio.gather(each(comm), each(comm), ask(comm, '/b/'))",
    "task beside the flow": """
        t = asyncio.create_task(twice(comm))
        await comm.call("B", "/b/")
        await ask(comm, "/c/")
        await t
    """,
    "one task fails": """
        try:
            await asyncio.gather(twice(comm), each(comm), comm.call("B", "/c/"))
        except CallError:
            await comm.query("db", "q", "c", {})
    """,
    "errors are results": "await asyncio.gather(twice(comm), careful(comm), return_exceptions=True)",
    "group": """
        try:
            async with asyncio.TaskGroup() as tg:
                for _ in range(2):
                    tg.create_task(twice(comm))
                await comm.call("B", "/b/")
        except* CallError:
            await comm.query("db", "q", "c", {})
    """,
    "timeout": """
        try:
            async with asyncio.timeout(7):
                await twice(comm)
                await asyncio.gather(twice(comm), ask(comm, '/b/'))
        except TimeoutError:
            await comm.query("db", "q", "c", {})
        except CallError:
            pass
    """,
    "wait for": """
        f = comm.call("B", "/b/")
        try:
            await asyncio.wait_for(f, 2)
        except (TimeoutError, CallError):
            await comm.call("B", "/c/")
        try:
            await asyncio.wait_for(twice(comm), timeout=4)
        except (TimeoutError, CallError):
            pass
    """,
    "never awaited": """
        asyncio.create_task(twice(comm))
        await comm.call("B", "/b/")
        await ask(comm, "/c/")
    """,
    "as completed": """
        for f in asyncio.as_completed([comm.call("B", "/b/"), comm.call("B", "/c/")]):
            await f
            await comm.call("B", "/b/")
        for t in asyncio.as_completed([twice(comm), ask(comm, "/b/")]):
            await t
    """,
    "call made before": """
        f = comm.call("B", "/b/")
        g = asyncio.gather(wait(f), twice(comm))
        await comm.call("B", "/c/")
        await g
    """,
    "cancelled": """
        t = asyncio.create_task(twice(comm))
        await ask(comm, "/c/")
        t.cancel()
        try:
            await t
        except (asyncio.CancelledError, CallError):
            pass
        await ask(comm, "/b/")
    """,
    "first of two": """
        ts = {asyncio.create_task(ask(comm, p)) for p in ("/b/", "/c/")}
        done, others = await asyncio.wait(ts, return_when=asyncio.FIRST_COMPLETED)
        for t in others:
            t.cancel()
        try:
            done.pop().result()
        except CallError:
            await comm.query("db", "q", "c", {})
        await ask(comm, "/b/")
    """,
    "first, and the others go on": """
        ts = [asyncio.create_task(ask(comm, p)) for p in ("/b/", "/c/", "/b/")]
        await asyncio.wait(ts, return_when=asyncio.FIRST_COMPLETED)
        await comm.call("B", "/c/")
        await asyncio.sleep(3)
    """,
    "first of any number": """
        ts = [asyncio.create_task(ask(comm, "/b/")) for w in (0, *comm.params["items"])]
        done, others = await asyncio.wait(ts, return_when=asyncio.FIRST_COMPLETED)
        for t in others:
            t.cancel()
        await ask(comm, "/c/")
    """,
    "made again if it takes long": """
        t = asyncio.create_task(ask(comm, "/b/"))
        try:
            await asyncio.wait_for(asyncio.shield(t), 3)
        except TimeoutError:
            u = asyncio.create_task(ask(comm, "/c/"))
            done, others = await asyncio.wait([t, u], return_when=asyncio.FIRST_COMPLETED)
            for v in others:
                v.cancel()
        await comm.query("db", "q", "c", {})
    """,
    "in a loop": """
        for w in comm.params["items"]:
            await asyncio.gather(ask(comm, "/b/"), twice(comm))
    """,
    "nested": """
        async def both(n):
            await asyncio.gather(ask(comm, "/b/"), twice(comm))
        await asyncio.gather(both(1), both(2))
    """,
    "shield and wait": """
        t = asyncio.create_task(twice(comm))
        await asyncio.shield(comm.call("B", "/b/"))
        done, _ = await asyncio.wait([t, asyncio.create_task(ask(comm, "/c/"))])
        assert len(done) == 2
    """,
}


@contextmanager
def running(folder: Path, source: str, **options: float) -> Iterator[AsyncWorld]:
    app = async_world(folder, source, **options)
    try:
        yield app
    finally:
        app.close()


def check(found: Matched) -> None:
    """Every step is the operation it was matched to, and every segment on the way lies in exactly one gap."""
    for matches, plan in zip(found.taken, found.plans, strict=True):
        parts = dict(plan.parts())
        for one in matches:
            shape = one.shape
            for step, (place, index) in zip(one.execution.steps, shape.steps, strict=True):
                operation = parts[place].operations[index]
                site = (operation.site.file, operation.site.function, operation.site.ordinal)
                assert (step.op, step.site in (site, None)) == (operation.op, True)
            assert len(shape.gaps) == len(shape.steps) + 1
            assert all(shape.gaps)
            if shape.spans and not shape.loops:
                keys = [key for gap in shape.gaps for key in gap]
                assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("name", BODIES)
def test_whatever_the_tasks_do_is_matched(tmp_path: Path, name: str) -> None:
    """Replies come in any order and some fail: every execution takes a path of the analysis."""
    source = async_endpoint(f"{'        '}{BODIES[name].strip()}\n        comm.respond(1)", helpers=HELPERS)
    with running(tmp_path, source, fail=0.1) as app:
        assert [d.code for d in app.application.diagnostics] == []
        for number in range(40):
            app.request(items=range(number % 4))
        _, plans = app.translated()
        found = match(plans, app.good(), waits=True)
        assert [u.reason for u in found.unmatched] == []
        assert found.matched >= 5
        check(found)


def test_steps_of_a_wrong_order_do_not_fit(tmp_path: Path) -> None:
    """What is done after all tasks have ended cannot come before one of their steps."""
    source = async_endpoint(
        "await asyncio.gather(ask(comm, '/b/'), twice(comm))\ncomm.respond(1)", helpers=HELPERS
    )
    with running(tmp_path, source) as app:
        steps = app.request().steps
        _, plans = app.translated()
        assert match(plans, app.good(), waits=True).unmatched == []
        for earlier in range(len(steps) - 1):
            steps.insert(earlier, steps.pop())
            (wrong,) = match(plans, app.good(), waits=True).unmatched
            assert "comm.respond" not in wrong.reason
            steps.append(steps.pop(earlier))


def segments(plan: PathPlan, found: Matched) -> dict[str, float]:
    """Return the milliseconds of local work in every gap, by the operation behind it."""
    (one,) = (m for matches in found.taken for m in matches)
    times: dict[str, float] = {}
    found_times = gap_times(one.execution, one.shape)
    for gap, ((_, index), (demand, delay)) in enumerate(zip(one.shape.spans, found_times, strict=True)):
        step = one.execution.steps[index] if index < len(one.execution.steps) else None
        name = "end" if step is None else f"{one.shape.steps[index]}"
        times[name] = round((demand + delay) * 1e3, 3)
        assert gap == index
    return times


def test_work_belongs_to_the_task_that_did_it(tmp_path: Path) -> None:
    """Each task's work is what lies between the end of its own wait and its next step."""
    body = """
        async def left():
            await comm.call("B", "/b/")
            comm.params["work"](7)
            comm.query("db", "left", "c", {})
            comm.params["work"](1)
        async def right():
            await comm.call("B", "/c/")
            comm.params["work"](30)
            comm.query("db", "right", "c", {})
        comm.params["work"](3)
        await asyncio.gather(left(), right())
        comm.params["work"](4)
        comm.respond(1)
    """
    for seed in range(8):
        folder = tmp_path / str(seed)
        folder.mkdir()
        with running(folder, async_endpoint(body), seed=seed) as app:
            app.request()
            _, plans = app.translated()
            found = match(plans, app.good(), waits=True)
            (one,) = (m for matches in found.taken for m in matches)
            times = segments(plans[0], found)
            where = {
                app.executions[0].operations[s.seq].dest: f"{key}"
                for s, key in zip(one.execution.steps, one.shape.steps, strict=True)
                if s.op in ("call", "query")
            }
            assert times[where["B/b/"]] == 3
            assert times[where["B/c/"]] == 0
            assert times[where["db.left"]] == 7
            # If both replies were there, the end of the other's work cannot be told from the begin of this.
            assert times[where["db.right"]] in (30, 31)
            respond = f"{one.shape.steps[-1]}"
            # The last of the two tasks ends; what it did then is in the same gap.
            assert times[respond] in (4, 5)


def test_gathered_waits_are_over_when_the_last_one_is() -> None:
    """Waiting for the slowest of several is never taken for work."""
    at = [Moment(round(ms * 1e6), -1) for ms in range(31)]
    execution = Execution(1, "A/a/", "client", "U", 0, at[0])
    for seq, end in ((1, 20), (2, 5), (3, 7)):
        execution.operations[seq] = Operation(seq, "B/b/", at[0], at[0], at[end])
        execution.steps.append(Step("get", None, seq, at[1], at[end]))
    execution.done = at[23]
    assert _segment(execution, 1) == _segment(execution, 2) == (0.0, 0.0)
    assert _segment(execution, 3) == (pytest.approx(0.003), 0.0)


@pytest.mark.slow
def test_many_tasks_are_matched_in_time(tmp_path: Path) -> None:
    """A hundred tasks that do the same are told apart in well under a second."""
    source = async_endpoint(
        "await asyncio.gather(*[twice(comm) for _ in range(100)])\ncomm.respond(1)", helpers=HELPERS
    )
    with running(tmp_path, source) as app:
        app.request()
        _, plans = app.translated()
        begin = process_time()
        found = match(plans, app.good(), waits=True)
        took = process_time() - begin
        assert found.matched == 1
        assert took < 2


PARALLEL = """
async def left():
    await comm.query("db", "left", "c", {})
    comm.params["work"](2)
    await comm.query("db", "more", "c", {})
async def right():
    comm.params["work"](1)
    await comm.query("db", "right", "c", {})
    if comm.params["coin"](0.4):
        comm.params["work"](3)
        await comm.query("db", "right", "c", {})
    comm.params["work"](3)
comm.params["work"](1)
await asyncio.gather(left(), right())
comm.params["work"](4)
comm.respond(1)
"""


@pytest.mark.slow
def test_mean_response_time_comes_back(tmp_path: Path) -> None:
    """One request at a time takes as long in the model as it did in the log, and uses as much processor time."""
    with running(tmp_path, async_endpoint(PARALLEL)) as app:
        for _ in range(400):
            app.request()
        app.write_log(tmp_path / "run")
        span = round(app.loop.now * 1e6) + 1
        windows = [Window(n * span // 10, (n + 1) * span // 10) for n in range(10)]
        parts = [PartInfo(windows=windows)]
        RunInfo(project="x", fingerprints=fingerprints(app.application), parts=parts).save(tmp_path / "run")
        result = calibrate(load_run(tmp_path / "run"), app.application, name="x", bootstrap=5)
        executions = app.good()
    task = result.model.task("A")
    entry = task.entry("/a/")
    visits = activity_visits(entry)
    demand = sum(visits[a.name] * a.demand.mean for a in entry.activities if visits[a.name] and a.demand)
    assert demand == pytest.approx(app.worked / len(executions) * 1e-3, rel=0.005)
    model = result.model.with_task(replace(task, entries=(replace(entry, arrivals=Constant(10.0)),)))
    predicted = simulate(model, horizon=10_000, seed=1, engine="reference").entries["A/a/"].response_time
    measured = sum(e.done.time - e.begin.time for e in executions if e.done) * 1e-9 / len(executions)
    assert predicted is not None
    # A reply that comes while another task computes is noticed later, which counts as time of its query.
    assert measured < predicted.mean < 1.08 * measured


RACE = """
async def left():
    await comm.query("db", "left", "c", {})
    comm.params["work"](1)
async def right():
    await comm.query("db", "right", "c", {})
    comm.params["work"](2)
comm.params["work"](1)
ts = [asyncio.create_task(left()), asyncio.create_task(right())]
done, others = await asyncio.wait(ts, return_when=asyncio.FIRST_COMPLETED)
for t in others:
    t.cancel()
comm.params["work"](4)
comm.respond(1)
await asyncio.sleep(20)  # until all that was asked for has been answered, which a log shows
"""


@pytest.mark.slow
@pytest.mark.parametrize("width", [2, 3])
def test_mean_response_time_of_a_race_comes_back(tmp_path: Path, width: int) -> None:
    """The flow waits for the first answer only, whichever that is, and no waiting is taken for work."""
    many = "[asyncio.create_task(right()) for _ in comm.params['items']]"
    body = (
        RACE
        if width == 2
        else RACE.replace("[asyncio.create_task(left()), asyncio.create_task(right())]", many)
    )
    with running(tmp_path, async_endpoint(body)) as app:
        assert app.application.errors == ()
        for _ in range(400):
            app.request(items=range(width))
        app.write_log(tmp_path / "run")
        span = round(app.loop.now * 1e6) + 1
        windows = [Window(n * span // 10, (n + 1) * span // 10) for n in range(10)]
        parts = [PartInfo(windows=windows)]
        RunInfo(project="x", fingerprints=fingerprints(app.application), parts=parts).save(tmp_path / "run")
        result = calibrate(load_run(tmp_path / "run"), app.application, name="x", bootstrap=5)
        executions = app.good()
    assert not [warning for warning in result.warnings if "first of several" in warning]
    task = result.model.task("A")
    entry = replace(task.entry("/a/"), arrivals=Constant(10.0))
    model = result.model.with_task(replace(task, entries=(entry,)))
    predicted = simulate(model, horizon=10_000, seed=1, engine="reference").entries["A/a/"].response_time
    measured = sum(e.steps[-1].start.time - e.begin.time for e in executions) * 1e-9 / len(executions)
    assert predicted is not None
    assert predicted.mean == pytest.approx(measured, rel=0.08)


def test_a_task_that_was_stopped_before_it_asked_is_said(tmp_path: Path) -> None:
    """The model lets it ask always: what a log shows otherwise is a warning."""
    body = """
        gate = asyncio.Event()
        async def left():
            await comm.query("db", "left", "c", {})
        async def right():
            await gate.wait()
            await comm.query("db", "right", "c", {})
        ts = [asyncio.create_task(left()), asyncio.create_task(right())]
        done, others = await asyncio.wait(ts, return_when=asyncio.FIRST_COMPLETED)
        for t in others:
            t.cancel()
        comm.respond(1)
    """
    with running(tmp_path, async_endpoint(body)) as app:
        assert app.application.errors == ()
        for _ in range(20):
            app.request()
        app.write_log(tmp_path / "run")
        parts = [PartInfo(windows=[Window(0, round(app.loop.now * 1e6) + 1)])]
        RunInfo(project="x", fingerprints=fingerprints(app.application), parts=parts).save(tmp_path / "run")
        result = calibrate(load_run(tmp_path / "run"), app.application, name="x")
    (warning,) = [warning for warning in result.warnings if "first of several" in warning]
    assert "db.right was asked in 0 of 20 executions" in warning


STATEMENTS = (
    'await comm.call("B", "/b/")',
    'await comm.query("db", "q", "c", {})',
    'comm.call("B", "/c/")',
    'comm.params["work"](1)',
    "await asyncio.sleep(2)",
    'await asyncio.gather(comm.call("B", "/b/"), comm.call("B", "/c/"))',
    'x = [await f for f in [comm.call("B", "/b/"), comm.call("B", "/c/")]]',
    'for f in asyncio.as_completed([comm.call("B", "/b/"), comm.call("B", "/c/")]): await f',
    "await asyncio.wait([asyncio.create_task(one(comm, p)) for p in ('/b/', '/c/')], return_when='FIRST_COMPLETED')",
)
TASKS = (
    "await {0}",
    "await asyncio.gather({0}, {1})",
    'await asyncio.gather({0}, comm.call("B", "/b/"), {1})',
    "await asyncio.gather({0}, {1}, return_exceptions=True)",
    "await asyncio.wait_for({0}, 4)",
    "asyncio.create_task({0})",
    "t{2} = asyncio.create_task({0})",
    "t{2} = asyncio.gather({0}, {1})",
)
DEPTH = 2


def indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def block(draw: random.Random, depth: int, helpers: list[str]) -> list[str]:
    """Return the lines of a random block that may run these helpers."""
    lines: list[str] = []
    for _ in range(draw.randrange(1, 4 if depth == 0 else 3)):
        kind = draw.random()
        if kind < 0.3 or depth == DEPTH:
            lines.append(draw.choice(STATEMENTS))
        elif kind < 0.6 and helpers:
            ran = [f"{draw.choice(helpers)}(comm)" for _ in range(2)]
            lines.append(draw.choice(TASKS).format(*ran, depth))
        elif kind < 0.68:
            lines.append(f"if t{depth} is not None: await t{depth}")
        elif kind < 0.78:
            lines += ['if comm.params["coin"]():', *indented(block(draw, depth + 1, helpers))]
        elif kind < 0.84:
            head = draw.choice(('for w in comm.params["items"]:', "for w in (1, 2):"))
            lines += [head, *indented(block(draw, depth + 1, helpers))]
        else:
            body = block(draw, depth + 1, helpers)
            if draw.random() < 0.3:
                body = ["async with asyncio.timeout(5):", *indented(body)]
            elif helpers and draw.random() < 0.4:
                started = [f"tg.create_task({draw.choice(helpers)}(comm))" for _ in range(2)]
                body = ["async with asyncio.TaskGroup() as tg:", *indented([*started, *body])]
            handler = draw.choice(
                ("except CallError:", "except TimeoutError:", "except Exception:", "except MupError:")
            )
            lines += ["try:", *indented(body), handler, *indented(block(draw, depth + 1, helpers))]
    return lines


def program(draw: random.Random) -> str:
    """Return the source of a random endpoint with asynchronous helpers."""
    none = [f"t{depth} = None" for depth in range(DEPTH + 1)]
    helpers: list[str] = []
    text = ["async def one(comm, path):", "    await comm.call('B', path)"]
    for number in range(2):
        text += [f"async def h{number}(comm):", *indented([*none, *block(draw, 1, helpers)])]
        helpers.append(f"h{number}")
    body = [*none, *block(draw, 0, helpers), "comm.respond(1)"]
    return async_endpoint("\n".join(body), helpers="\n".join(text) + "\n")


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(4))
def test_random_asynchronous_endpoint_is_matched(
    tmp_path: Path, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs that are refused with a diagnostic are skipped; of the others every execution is explained.

    In every second batch all branches are choices.
    """
    # Programs with very many paths are given up early.
    monkeypatch.setattr("analyzer.static.tasks.MAX_EFFORT", 600)
    if batch % 2:
        monkeypatch.setattr("analyzer.static.execution.MAX_ENUMERATED", 0)
    explained = with_tasks = 0
    for number in range(8):
        source = program(random.Random(1000 * batch + number))
        folder = tmp_path / str(number)
        folder.mkdir()
        with running(folder, source, fail=0.2, seed=number) as app:
            if app.application.errors or sum(p.size for p in app.application.endpoint("A/a/").paths) > 60:
                continue
            for size in range(20):
                app.request(items=range(size % 4))
            _, plans = app.translated()
            found = match(plans, app.good(), waits=True)
            assert [u.reason for u in found.unmatched] == [], source
            check(found)
            explained += 1
            with_tasks += any(plan.tasks for plan in plans)
    assert explained >= 4
    assert with_tasks >= 2
