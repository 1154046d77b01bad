"""Paths with choices: executions are matched, and what they did on average comes back from the model."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import indent

import pytest
from test_matching import BODIES, ITEMS, LABEL, check
from test_random_programs import DEPTH, block
from walking import World, endpoint, world

from analyzer.calibration.calibrate import Calibration, calibrate
from analyzer.calibration.executions import Execution, SiteKey
from analyzer.calibration.matching import Recognizer, body_counts, match
from analyzer.calibration.rundir import PartInfo, RunInfo, Window, fingerprints, load_run
from analyzer.calibration.stop_rule import Knowledge, KnownPaths
from analyzer.static import analyse
from mup.events.record import CENSORED, Event
from mup.events.sites import Site
from mup.events.writer import EventWriter
from mup.lqn import Constant, Entry, Model, entry_label, model_from_json, model_to_json
from mup.lqn.drawing import draw
from mup.lqn.lqnx import load_lqnx, save_lqnx
from mup.lqn.visits import activity_visits, entry_requests
from simulator import simulate
from simulator.analytic import estimate

BRANCHES = 12
ODDS = [(n + 1) / (BRANCHES + 2) for n in range(BRANCHES)]
CALL = 'comm.call("B", "/b/").get()'
MANY = "".join(
    f'if comm.params["coin"]({odds}):\n    comm.params["work"]({n})\n    {CALL}\n    comm.params["work"](1)\n'
    for n, odds in enumerate(ODDS)
)


@pytest.fixture
def factored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Describe every endpoint with choices, however few paths it has."""
    monkeypatch.setattr("analyzer.static.execution.MAX_ENUMERATED", 0)


@pytest.mark.usefixtures("factored")
@pytest.mark.parametrize("waits", [True, False], ids=["waits", "no-waits"])
@pytest.mark.parametrize("name", BODIES)
def test_whatever_the_code_does_is_matched(tmp_path: Path, name: str, *, waits: bool) -> None:
    """Choices accept whatever real code with random decisions and failures does, step by step."""
    app = world(tmp_path, endpoint(BODIES[name]), fail=0.3 if waits else 0.0, waits=waits)
    for _ in range(3):
        for items in ITEMS:
            app.request(LABEL, items=items)
    _, plans = app.translated()
    found = match(plans[LABEL], app.of(LABEL))
    assert [u.reason for u in found.unmatched] == []
    assert found.matched == len(app.of(LABEL)) > 0
    check(found)


@pytest.mark.slow
@pytest.mark.usefixtures("factored")
@pytest.mark.parametrize("batch", range(3))
def test_random_endpoint_is_matched(tmp_path: Path, batch: int) -> None:
    """Every execution of random programs is explained by paths with choices; the model of them is sound."""
    explained = with_choices = 0
    for number in range(8):
        draw_ = random.Random(1000 + 100 * batch + number)
        futures = [f"f{depth} = None" for depth in range(DEPTH + 1)]
        source = endpoint("\n".join([*futures, *block(draw_), *block(draw_), "comm.respond(1)"]))
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "app.py").write_text(source, encoding="utf-8")
        application = analyse(folder)
        if application.errors or sum(p.size for p in application.endpoint(LABEL).paths) > 500:
            continue
        app = world(folder, source, fail=0.2, seed=number)
        for _ in range(30):
            app.request(LABEL, items=list(range(draw_.randrange(4))))
        _, plans = app.translated()
        found = match(plans[LABEL], app.of(LABEL))
        assert [u.reason for u in found.unmatched] == [], source
        check(found)
        explained += 1
        with_choices += any(plan.choices for plan in plans[LABEL])
    assert explained >= 3
    assert with_choices >= 2


def test_choices_do_not_slow_matching_down(tmp_path: Path) -> None:
    """100 choices of one helper in a row, none of which a log can tell from the others: linear, not 2 ** 100."""
    body = "def ask():\n    if comm.params['coin']():\n        comm.call('B', '/b/').get()\n"
    body += "ask()\n" * 100 + "comm.respond(1)"
    app = world(tmp_path, endpoint(body))
    for _ in range(3):
        app.request(LABEL)
    _, plans = app.translated()
    (plan,) = plans[LABEL]
    assert len(plan.choices) == 100
    good = app.of(LABEL)
    foreign = replace(good[0], steps=good[0].steps[:-1])
    started = time.process_time()
    found = match(plans[LABEL], [*good, foreign])
    assert time.process_time() - started < 1
    assert (found.matched, len(found.unmatched)) == (3, 1)
    # Each takes what it can get, so that the first ones have it all; the total is right.
    total = sum(numbers[0] for numbers in body_counts(found.taken[0], plan).values())
    assert total == sum(sum(s.op == "call" for s in e.steps) for e in good)


def cpu_at(execution: Execution, moment: float) -> int:
    """Return the processor time, in ns, that the flow had used: all but the time it waited."""
    waited = sum(
        min(s.resume.time, moment) - s.start.time
        for s in execution.steps
        if s.start.time < moment and s.op == "get"
    )
    return round(moment - execution.begin.time - waited)


def write_logs(app: World, folder: Path) -> None:
    """Write what was walked through as the logs of a run."""
    folder.mkdir()
    for service in {e.service for e in app.executions}:
        header = {"role": "worker", "service": service, "replica": 0, "worker": 0, "pid": 1}
        writer = EventWriter(folder / f"{service}.0.w0.mlog", header)
        for execution in (e for e in app.executions if e.service == service):
            write_execution(writer, execution)
        writer.close()


def write_execution(writer: EventWriter, execution: Execution) -> None:
    def add(
        event: Event,
        moment: int,
        *,
        site: SiteKey | None = None,
        seq: int = 0,
        name: str = "",
        flags: int = 0,
    ) -> None:
        known = 0 if site is None else writer.site(Site(*site, 1, 1))
        cpu = cpu_at(execution, moment)
        writer.write(
            event,
            execution.request,
            1,
            seq=seq,
            site=known,
            name=writer.name(name),
            flags=flags,
            time=moment,
            cpu=cpu,
        )

    label = execution.endpoint
    add(Event.BEGIN, execution.begin.time, name=label)
    for step in execution.steps:
        if step.op == "respond":
            add(Event.END, step.start.time, site=step.site, name=label)
            continue
        operation = execution.operations[step.seq]
        if step.op == "get":
            assert operation.finish is not None
            add(Event.WAIT_START, step.start.time, site=step.site, seq=step.seq)
            late = CENSORED if operation.finish.time < step.start.time else 0
            add(Event.COMM_FINISH, operation.finish.time, seq=step.seq, flags=late)
            add(Event.WAIT_END, step.resume.time, seq=step.seq)
        else:
            add(Event.COMM_START, step.start.time, site=step.site, seq=step.seq, name=operation.dest)
            add(Event.CONTACT_DEST, step.resume.time, seq=step.seq, name=operation.dest)
    assert execution.done is not None
    add(Event.DONE, execution.done.time, name=label)


def calibrated(app: World, folder: Path) -> Calibration:
    write_logs(app, folder)
    span = max(e.done.time for e in app.executions if e.done) + 1
    # An execution belongs to the window it begins in.
    windows = [Window(n * span // 10, span) for n in range(10)]
    RunInfo(project="x", fingerprints=fingerprints(app.application), parts=[PartInfo(windows=windows)]).save(
        folder
    )
    return calibrate(load_run(folder), app.application, name="x", bootstrap=5)


def requested(model: Model) -> Model:
    """Return the model with a request to the endpoint from time to time."""
    task = model.task("A")
    entry = replace(task.entry("/a/"), arrivals=Constant(10.0))
    return model.with_task(replace(task, entries=(entry,)))


def entries(model: Model) -> list[tuple[str, Entry]]:
    return [(task.name, entry) for task in model.tasks for entry in task.entries]


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> tuple[World, Calibration]:
    """An endpoint with 4096 ways, beside a call that is awaited behind them, walked through 300 times."""
    body = f'f = comm.call("B", "/c/")\n{MANY}if comm.params["never"]:\n    comm.query("db", "q", "c", {{}}).get()\n'
    body += 'f.get()\nif comm.params["coin"](0.1):\n    comm.respond(0)\n    return\n'
    body += 'if comm.params["coin"](0.7):\n    comm.call("B", "/b/")\n    comm.respond(1)\nelse:\n    comm.respond(2)\n'
    body += 'comm.params["work"](2)'
    app = world(tmp_path_factory.mktemp("shop"), endpoint(body))
    for _ in range(300):
        app.request(LABEL, never=False)
    return app, calibrated(app, app.root / "run")


def test_probabilities_come_back(shop: tuple[World, Calibration]) -> None:
    """Each branch has the probability with which it was taken, and calls are as frequent as they were."""
    app, result = shop
    entry = result.model.task("A").entry("/a/")
    executions = app.of(LABEL)
    visits = activity_visits(entry)
    lines: Counter[int] = Counter()
    for execution in executions:
        lines.update(site_line(app, s.site) for s in execution.steps if s.op == "call")
    for line, number in lines.items():
        own = sum(visits[a.name] for a in entry.activities if a.kind == "communication" and a.line == line)
        assert own == pytest.approx(number / len(executions)), line
    calls = sum(sum(s.op == "call" for s in e.steps) for e in executions)
    assert sum(entry_requests(entry)["B", path] for path in ("/b/", "/c/")) == pytest.approx(
        calls / len(executions)
    )


def site_line(app: World, site: tuple[str, str, int] | None) -> int:
    """Return the line of a call site."""
    paths = app.application.endpoint(LABEL).paths
    return next(
        o.site.line for p in paths for o in p.walk() if (o.site.file, o.site.function, o.site.ordinal) == site
    )


def test_what_was_never_taken_is_told(shop: tuple[World, Calibration]) -> None:
    """A body that was not taken has probability 0 and is named; bodies count as paths."""
    app, result = shop
    (query,) = [
        o.site.line for p in app.application.endpoint(LABEL).paths[:1] for o in p.walk() if o.op == "query"
    ]
    own = [text for text in result.uncovered if text.startswith(LABEL)]
    assert own.count(f"A/a/: choice ({query - 1}) [query db.q ({query}), get ({query})]") == 2
    (coverage,) = [c for c in result.coverage if c.label == LABEL]
    # Early or not; before that 12 branches and the query; behind it the choice of the response.
    assert coverage.paths == 2 * (1 + 2 * (BRANCHES + 1)) + 2
    assert coverage.observed == coverage.paths - len(own)


def test_mean_response_time_comes_back(shop: tuple[World, Calibration]) -> None:
    """One request at a time takes as long in the model as it did; all engines say so."""
    app, result = shop
    expected = mean([(e.end.time - e.begin.time) * 1e-9 for e in app.of(LABEL) if e.end])
    model = requested(result.model)
    simulated = simulate(model, horizon=100_000, seed=1).entries[LABEL].response_time
    assert simulated is not None
    assert simulated.mean == pytest.approx(expected, rel=0.02)
    assert estimate(model).entries[LABEL][1] == pytest.approx(expected, rel=0.02)
    slow, fast = (
        simulate(model, horizon=500, seed=1, engine=engine).entries[LABEL].response_time
        for engine in ("reference", "compiled")
    )
    assert slow is not None
    assert fast is not None
    assert slow.mean == pytest.approx(fast.mean)


def test_model_with_choices_travels(shop: tuple[World, Calibration], tmp_path: Path) -> None:
    """Files keep it, as JSON and as lqnx, and it can be drawn."""
    _, result = shop
    model = requested(result.model)
    assert model_from_json(model_to_json(result.model)) == result.model
    save_lqnx(model, tmp_path / "x.lqnx", approximate=True)
    again = load_lqnx(tmp_path / "x.lqnx")
    merges = [sum(p.join == "or" for _, e in entries(m) for p in e.precedences) for m in (model, again)]
    assert merges[0] == merges[1] > BRANCHES
    assert "</svg>" in draw(model)


def test_listed_paths_and_choices_say_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as branches do not depend on each other, it makes no difference to means."""
    body = "".join(MANY.splitlines(keepends=True)[: 4 * 4])
    body += 'if comm.params["coin"](0.7):\n    comm.respond(1)\nelse:\n    comm.respond(2)\ncomm.params["work"](2)'
    models = []
    for limit in (64, 0):
        monkeypatch.setattr("analyzer.static.execution.MAX_ENUMERATED", limit)
        folder = tmp_path / str(limit)
        folder.mkdir()
        app = world(folder, endpoint(body))
        for _ in range(200):
            app.request(LABEL)
        models.append(requested(calibrated(app, folder / "run").model))
    listed, chosen = (model.task("A").entry("/a/") for model in models)
    assert len(listed.paths) == 2**5
    assert len(chosen.paths) == 1
    assert entry_requests(chosen) == pytest.approx(
        {key: number for key, number in entry_requests(listed).items() if key[0] != "Net"}
        | {key: number for key, number in entry_requests(chosen).items() if key[0] == "Net"}
    )
    one, other = (estimate(model).entries[LABEL][1] for model in models)
    assert one == pytest.approx(other, rel=0.01)


@pytest.mark.slow
def test_tree_of_early_returns(tmp_path: Path) -> None:
    """Forty ways out: every execution is matched, each way out has its share, and the mean comes back."""
    body = "".join(
        f'if comm.params["coin"]():\n    {CALL}\nif comm.params["coin"](0.05):\n    comm.respond({n})\n    return\n'
        for n in range(40)
    )
    app = world(tmp_path, endpoint(body + "comm.respond(1)"))
    for _ in range(300):
        app.request(LABEL)
    result = calibrated(app, tmp_path / "run")
    entry = result.model.task("A").entry("/a/")
    assert len(entry.paths) == 1
    visits = activity_visits(entry)
    executions = app.of(LABEL)
    lines = Counter(site_line(app, e.steps[-1].site) for e in executions)
    for line, number in lines.items():
        own = sum(visits[a.name] for a in entry.activities if a.kind == "after" and a.line == line)
        assert own == pytest.approx(number / len(executions)), line
    expected = mean([(e.end.time - e.begin.time) * 1e-9 for e in executions if e.end])
    assert estimate(requested(result.model)).entries[LABEL][1] == pytest.approx(expected, rel=0.02)


def test_exploration_counts_bodies(tmp_path: Path) -> None:
    """Bodies of choices are seen like paths, and named."""
    app = world(tmp_path, endpoint(f"{MANY}comm.respond(1)"))
    for _ in range(5):
        app.request(LABEL)
    known = KnownPaths(app.application.endpoint(LABEL).paths)
    assert len(known.texts) == len(set(known.texts)) == 1 + 2 * BRANCHES
    assert known.texts[1].startswith("choice (")
    for execution in app.of(LABEL):
        taken = known.taken(execution)
        assert taken[0] == 0
        assert len(taken) == 1 + BRANCHES
        calls = sum(s.op == "call" for s in execution.steps)
        assert sum("call" in known.texts[number] for number in taken[1:]) == calls
    knowledge = Knowledge(app.application, "User")
    span = max(e.done.time for e in app.executions if e.done) + 1
    knowledge.add(app.executions, {0: Window(0, span)})
    state = knowledge.state([0], [])
    uses = state.paths[LABEL]
    assert uses[0].executions == 5
    assert [uses[n].executions + uses[n + 1].executions for n in range(1, len(uses), 2)] == [5] * BRANCHES
    assert state.seen < state.total


def test_recognizer_tells_what_fits_nothing(tmp_path: Path) -> None:
    """An execution of other code takes no path."""
    app = world(tmp_path, endpoint(f"{MANY}comm.respond(1)"))
    app.request(LABEL)
    (good,) = app.of(LABEL)
    recognizer = Recognizer(app.application.endpoint(LABEL).paths)
    assert recognizer.taken(good) is not None
    assert recognizer.taken(replace(good, steps=good.steps[:-1])) is None


VARIED = (
    'class A(MS):\n    @EP("/a/")\n    def a(self, comm):\n'
    '        comm.call("B", "/b/", {"often": 0.9}).get()\n        comm.call("B", "/b/", {"often": 0.1}).get()\n'
    "        comm.respond(1)\n"
    'class B(MS):\n    @EP("/b/")\n    def b(self, comm):\n'
    + indent(
        "".join(
            f'if comm.params["coin"](0.5):\n    comm.query("db", "q{n}", "c", {{}}).get()\n' for n in range(8)
        ),
        " " * 8,
    )
    + '        if comm.params["coin"](comm.params["often"]):\n            comm.query("db", "often", "c", {}).get()\n'
    "        comm.respond(1)\n"
)


def test_variants_per_calling_site(tmp_path: Path) -> None:
    """Callers that differ in one choice of nine have variants of their own, with the probabilities they saw."""
    app = world(tmp_path, "from mup import EP, MS\n" + VARIED)
    for _ in range(100):
        app.request(LABEL)
    result = calibrated(app, tmp_path / "run")
    often = {
        entry_label("B", e.name): entry_requests(e)["db", "often"] for e in result.model.task("B").entries
    }
    assert sorted(often) == ["B/b/", "B/b/@2"]
    assert sorted(often.values()) == pytest.approx([0.1, 0.9], abs=0.1)
    assert mean([entry_requests(e)["db", "q3"] for e in result.model.task("B").entries]) == pytest.approx(
        0.5, abs=0.1
    )
