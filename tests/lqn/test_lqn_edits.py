"""What-if edits change exactly what they say, and refuse what makes no sense."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from mup.errors import ModelError, UncalibratedError, UsageError
from mup.lqn import (
    Activity,
    Call,
    Constant,
    Distribution,
    Empirical,
    Entry,
    Exponential,
    Gamma,
    Geometric,
    Hyperexponential,
    Lognormal,
    Migration,
    Model,
    Precedence,
    Processor,
    Task,
    TruncatedNormal,
    Uniform,
)
from mup.lqn.edits import (
    with_admission,
    with_arrivals,
    with_clients,
    with_cores,
    with_faster_machines,
    with_placement,
    with_pool,
    with_replicas,
    with_speed,
    with_think,
)
from mup.lqn.model import LOCK
from mup.lqn.routing_edits import with_count, with_probability
from mup.lqn.time_edits import with_time
from mup.lqn.visits import activity_visits

ZERO = Constant(0.0)


def _activity(name: str, **fields: object) -> Activity:
    return Activity(name=name, **{"demand": ZERO, "delay": ZERO, **fields})  # type: ignore[arg-type]


def _model(*more: Task) -> Model:
    body = Entry(
        name="cycle",
        start="look",
        activities=(
            _activity("look", kind="think", delay=Uniform(0.0, 0.2)),
            _activity("go", calls=(Call(task="A", entry="/a/"),)),
            _activity("often", kind="think", delay=Exponential(0.4)),
            _activity("rarely"),
        ),
        precedences=(
            Precedence(pre=("look",), post=("go",)),
            Precedence(pre=("go",), post=("often", "rarely"), fork="or", probabilities=(0.75, 0.25)),
        ),
    )
    serve = Entry(name="/a/", start="w", activities=(_activity("w", demand=Exponential(0.1)),))
    return Model(
        name="shop",
        processors=(Processor(name="host", cores=2), Processor(name="cloud", discipline="infinite")),
        tasks=(
            Task(name="Reader", role="reference", entries=(body,)),
            Task(name="A", threads=5, processor="host", entries=(serve,)),
            Task(
                name="db",
                role="database",
                threads=math.inf,
                entries=(Entry(name="q", start="w", activities=serve.activities),),
            ),
            *more,
        ),
    )


def test_edits_leave_the_original_alone() -> None:
    """A what-if returns a new model; everything it does not name stays."""
    model = _model()
    assert with_clients(model, 8).task("Reader").threads == 8
    assert with_pool(model, "A", 7).task("A").threads == 7
    assert with_pool(model, "db", 3).task("db").threads == 3
    assert with_pool(model, "A", math.inf).task("A").threads == math.inf
    assert with_replicas(model, "A", 2).task("A").replicas == 2
    assert with_cores(model, "host", 4).processor("host").cores == 4
    assert with_speed(model, "host", 1.5).processor("host").speed == 1.5
    assert model == _model()
    assert with_pool(model, "A", 5) == model


def test_faster_machines_take_their_parts_along() -> None:
    """Machines get faster by the factor; a part of one keeps its own, which counts on top of that."""
    model = _model()
    host = replace(model.processor("host"), speed=1.5)
    inner = Processor(name="inner", cores=1, speed=0.5, parent="host")
    model = replace(model.with_processor(host), processors=(*model.with_processor(host).processors, inner))
    faster = with_faster_machines(model, 1.2)
    assert faster.processor("host").speed == pytest.approx(1.8)
    assert faster.processor("cloud").speed == pytest.approx(1.2)
    assert faster.processor("inner").speed == 0.5


def test_an_infinite_processor_can_get_cores() -> None:
    """A processor that had a core for every thread becomes a processor-sharing one."""
    changed = with_cores(_model(), "cloud", 2).processor("cloud")
    assert (changed.cores, changed.discipline) == (2, "ps")


def test_think_time_is_scaled_as_a_whole() -> None:
    """All think steps keep their shape; their mean per cycle becomes what was asked for."""
    model = with_think(_model(), 0.8)  # was 0.1 + 0.75 * 0.4 = 0.4
    entry = model.task("Reader").entries[0]
    assert entry.activity("look").delay == Uniform(0.0, 0.4)
    assert entry.activity("often").delay == Exponential(0.8)
    assert entry.activity("go").delay == ZERO
    visits = activity_visits(entry)
    assert sum(visits[a.name] * a.delay.mean for a in entry.activities if a.delay) == pytest.approx(0.8)
    gone = with_think(_model(), 0).task("Reader").entries[0]
    assert sum(a.delay.mean for a in gone.activities if a.delay) == 0


@pytest.mark.parametrize(
    "shape",
    [
        Constant(0.2),
        Uniform(0.0, 0.2),
        Gamma(0.2, 0.5),
        Lognormal(0.2, 2.0),
        TruncatedNormal(0.2, 0.1),
        Hyperexponential((0.1, 0.9), (1.0, 0.1)),
        Empirical((0.1, 0.3)),
    ],
    ids=lambda shape: shape.family,
)
def test_a_time_of_any_shape_can_be_taken_away(shape: Distribution) -> None:
    """Most families have no member of mean 0."""
    thinking = _activity("a", kind="think", delay=shape, demand=shape)
    model = _model(Task(name="User", entries=(Entry(name="x", start="a", activities=(thinking,)),)))
    model = model.with_task(replace(model.task("Reader"), think=shape))
    assert with_think(model, 0).task("Reader").think == ZERO
    assert with_time(model, "demand", "User.x:a", 0).task("User").entries[0].activities[0].demand == ZERO


def test_clients_that_never_thought_get_an_exponential_think_time() -> None:
    """There is nothing to scale, so the think time comes before each cycle."""
    body = Entry(name="c", start="go", activities=(_activity("go", delay=Exponential(1.0)),))
    eager = Model(name="m", tasks=(Task(name="U", role="reference", entries=(body,)),))
    assert with_think(eager, 0.5).task("U").think == Exponential(0.5)
    assert with_think(eager, 0).task("U").think is None


def test_several_reference_tasks_must_be_named() -> None:
    """Which clients are meant is not guessed."""
    other = Task(
        name="Writer", role="reference", entries=(Entry(name="c", start="w", activities=(_activity("w"),)),)
    )
    model = _model(other)
    with pytest.raises(UsageError, match="2 reference tasks"):
        with_clients(model, 3)
    changed = with_clients(model, 3, "Writer")
    assert (changed.task("Writer").threads, changed.task("Reader").threads) == (3, 1)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda m: with_clients(m, 0), "clients must be a whole number >= 1, got 0"),
        (lambda m: with_clients(m, -2), "got -2"),
        (lambda m: with_clients(m, 1.5), "got 1.5"),
        (lambda m: with_clients(m, True), "got True"),
        (lambda m: with_clients(m, 2, "Raeder"), "did you mean 'Reader'"),
        (lambda m: with_pool(m, "A", 0), "pool of 'A' must be"),
        (lambda m: with_pool(m, "a", 2), "did you mean 'A'"),
        (lambda m: with_pool(m, "Reader", 2), "stands for clients and has no pool"),
        (lambda m: with_pool(m, "A", math.nan), "got nan"),
        (lambda m: with_replicas(m, "A", math.inf), "got inf"),
        (lambda m: with_replicas(m, "Reader", 2), "has no replicas"),
        (lambda m: with_cores(m, "hsot", 2), "did you mean 'host'"),
        (lambda m: with_cores(m, "host", 0), "cores of 'host'"),
        (lambda m: with_speed(m, "host", 0), "factor > 0, got 0"),
        (lambda m: with_speed(m, "host", math.inf), "got inf"),
        (lambda m: with_faster_machines(m, -1), "factor > 0, got -1"),
        (lambda m: with_think(m, -0.1), "think time must be"),
        (lambda m: with_arrivals(m, 0), "number per second > 0, got 0"),
        (lambda m: with_arrivals(m, math.inf), "got inf"),
        (lambda m: with_arrivals(m, 5, "Raeder"), "did you mean 'Reader'"),
        (lambda m: with_arrivals(m, 5, "A/a/"), "nothing arrives at 'A/a/' from outside"),
        (lambda m: with_clients(with_arrivals(m, 5), 3), "'Reader' has no clients"),
        (lambda m: with_think(with_arrivals(m, 5), 1), "all requests arrive from outside"),
        (lambda m: with_placement(m, "A", "clod"), "did you mean 'cloud'"),
        (lambda m: with_placement(m, "a", "cloud"), "did you mean 'A'"),
        (lambda m: with_probability(m, "Reader.cycle:often", 1.1), "between 0 and 1, got 1.1"),
        (lambda m: with_probability(m, "Reader.cycle:look", 0.5), "not the start of a branch"),
        (lambda m: with_probability(m, "Reader.cycle:offen", 0.5), "did you mean 'often'"),
        (lambda m: with_probability(m, "Reader.cycel:often", 0.5), "did you mean 'Reader.cycle'"),
        (lambda m: with_probability(m, "often", 0.5), "is spelt TASK/entry:ACTIVITY"),
        (lambda m: with_count(m, "Reader.cycle:go->A/a/", 1.5), "a whole number, got 1.5"),
        (lambda m: with_count(m, "Reader.cycle:go->A/a/", -1), "number >= 0, got -1"),
        (lambda m: with_count(m, "Reader.cycle:go->A/b/", 2), "does not call 'A/b/'; did you mean 'A/a/'"),
        (lambda m: with_count(m, "Reader.cycle:go", 2), "is spelt TASK/entry:ACTIVITY->TARGET"),
    ],
)
def test_senseless_edits_are_refused(edit: Callable[[Model], Model], message: str) -> None:
    """Zero, negative, fractional and unknown values are named in one message."""
    with pytest.raises(UsageError) as caught:
        edit(_model())
    assert message in str(caught.value)


def test_clients_become_an_open_source() -> None:
    """Arrivals replace clients and their think time; setting them again keeps the shape of the intervals."""
    thinking = replace(_model(), tasks=(replace(_model().tasks[0], think=Constant(1.0)), *_model().tasks[1:]))
    model = with_arrivals(thinking, 20)
    task = model.task("Reader")
    assert (task.threads, task.think, task.is_open) == (math.inf, None, True)
    assert task.entries[0].arrivals == Exponential(0.05)
    assert task.entries[0].activities == _model().task("Reader").entries[0].activities
    bursty = model.with_task(replace(task, entries=(replace(task.entries[0], arrivals=Gamma(0.1, 4.0)),)))
    assert with_arrivals(bursty, 5, "Reader").task("Reader").entries[0].arrivals == Gamma(0.2, 4.0)


@pytest.mark.parametrize("name", ["A/a/", "A//a/", "A./a/"])
def test_arrivals_of_an_entry_are_named_like_it(name: str) -> None:
    """An entry that requests reach from outside is a source of its own beside the clients."""
    a = _model().task("A")
    model = _model().with_task(replace(a, entries=(replace(a.entries[0], arrivals=Exponential(1.0)),)))
    with pytest.raises(UsageError, match="2 sources of load"):
        with_arrivals(model, 4)
    changed = with_arrivals(model, 4, name)
    assert changed.task("A").entries[0].arrivals == Exponential(0.25)
    assert changed.task("A").threads == 5
    assert not changed.task("Reader").is_open


def test_tasks_move_between_processors() -> None:
    """A task can go to any processor of the model, or to none."""
    assert with_placement(_model(), "A", "cloud").task("A").processor == "cloud"
    assert with_placement(_model(), "db", "host").task("db").processor == "host"
    for nowhere in (None, "none", "inf"):
        assert with_placement(_model(), "A", nowhere).task("A").processor is None


def _odds(model: Model) -> tuple[float, ...] | None:
    return model.task("Reader").entries[0].precedences[1].probabilities


def _with_odds(odds: tuple[float, ...] | None) -> Model:
    task = _model().task("Reader")
    entry = task.entries[0]
    more = ("often", "rarely", "never")[: len(odds) if odds else 3]
    fork = Precedence(pre=("go",), post=more, fork="or", probabilities=odds)
    activities = (*entry.activities, _activity("never")) if "never" in more else entry.activities
    entry = replace(entry, activities=activities, precedences=(entry.precedences[0], fork))
    return _model().with_task(replace(task, entries=(entry,)))


def test_other_branches_share_the_rest_as_before() -> None:
    """One probability is set, the ratio of the others stays."""
    model = with_probability(_with_odds((0.5, 0.4, 0.1)), "Reader/cycle:often", 0.75)
    assert _odds(model) == pytest.approx((0.75, 0.2, 0.05))
    assert _odds(with_probability(model, "Reader.cycle:often", 1)) == (1, 0, 0)
    assert _odds(with_probability(_with_odds((1.0, 0.0)), "Reader.cycle:rarely", 0.3)) == (0.7, 0.3)
    assert _odds(with_probability(_with_odds((1.0, 0.0)), "Reader.cycle:often", 0.9)) == pytest.approx(
        (0.9, 0.1)
    )
    for unknown in ((1.0, 0.0, 0.0), None):
        with pytest.raises(UsageError, match="how they share the rest is unknown"):
            with_probability(_with_odds(unknown), "Reader.cycle:often", 0.5)


def test_counts_of_calls_keep_their_family() -> None:
    """A geometric count stays geometric with any mean; others become constant."""

    def model(count: Geometric | Empirical | None) -> Model:
        task = _model().task("Reader")
        entry = task.entries[0]
        go = _activity("go", calls=(Call(task="A", entry="/a/", count=count, kind="send"),))
        entry = replace(entry, activities=tuple(go if a.name == "go" else a for a in entry.activities))
        return _model().with_task(replace(task, entries=(entry,)))

    def call(model: Model) -> Call:
        return model.task("Reader").entries[0].activity("go").calls[0]

    assert call(with_count(model(Geometric(1.0)), "Reader.cycle:go->A/a/", 2.5)).count == Geometric(2.5)
    assert call(with_count(model(Empirical((0.0, 3.0))), "Reader.cycle:go->A", 2)).count == Constant(2)
    assert call(with_count(model(None), "Reader.cycle:go->A//a/", 0)).count == Constant(0)
    assert call(with_count(model(None), "Reader.cycle:go->A/a/", 2)).kind == "send"


def test_edits_keep_the_rules_of_special_processors_and_pools() -> None:
    """Disciplines, migration and parents survive edits; what would break a rule is refused by name."""
    base = _model()
    special = (
        Processor(name="numa", cores=4, discipline="cores", migration=Migration(wake=0.5)),
        Processor(name="gil", parent="host"),
        Processor(name="urgent", cores=2, discipline="pp"),
    )
    take, give = (
        Entry(name=n, start="w", activities=(_activity("w"),), token=t)  # type: ignore[arg-type]
        for n, t in (("take", "acquire"), ("give", "release"))
    )
    base = replace(
        base,
        processors=(*base.processors, *special),
        tasks=(
            *base.tasks,
            Task(name="lock", entries=(take, give)),
            Task(
                name="shared",
                entries=tuple(Entry(name=t, start="w", activities=(_activity("w"),), token=t) for t in LOCK),
            ),
        ),
    )
    numa = with_cores(base, "numa", 8).processor("numa")
    assert (numa.cores, numa.discipline, numa.migration) == (8, "cores", Migration(wake=0.5))
    assert with_speed(base, "gil", 2).processor("gil").parent == "host"
    assert with_cores(base, "urgent", 1).processor("urgent").discipline == "pp"
    assert with_pool(base, "lock", 3).task("lock").threads == 3
    assert with_pool(base, "shared", 3).task("shared").threads == 3
    edits: list[Callable[[], object]] = [
        lambda: with_cores(base, "numa", math.inf),
        lambda: with_cores(base, "gil", math.inf),
        lambda: with_cores(base, "host", math.inf) and with_pool(base, "lock", math.inf),
        lambda: with_replicas(base, "lock", 2),
        lambda: with_replicas(base, "shared", 2),
        lambda: with_admission(base, "shared", "random"),
    ]
    for edit in edits:
        with pytest.raises(ModelError, match=r"finitely many|no replicas|an order of its own"):
            edit()


def test_visits_follow_probabilities_forks_and_joins() -> None:
    """OR multiplies, AND copies, a merge adds, a join waits for its rarest branch."""
    names = ("s", "x", "y", "m", "f", "g", "j")
    entry = Entry(
        name="e", start="s", activities=tuple(_activity(n) for n in names),
        precedences=(
            Precedence(pre=("s",), post=("x", "y"), fork="or", probabilities=(0.3, 0.7)),
            Precedence(pre=("x", "y"), post=("m",), join="or"),
            Precedence(pre=("m",), post=("f", "g"), fork="and"),
            Precedence(pre=("f", "g"), post=("j",), join="and"),
        ),
    )  # fmt: skip
    assert activity_visits(entry) == pytest.approx(dict(zip(names, (1, 0.3, 0.7, 1, 1, 1, 1), strict=True)))


def test_visits_need_the_probabilities_they_can_reach() -> None:
    """Unknown probabilities are refused only where they matter."""
    arcs = (
        Precedence(pre=("s",), post=("x", "y"), fork="or", probabilities=(0.0, 1.0)),
        Precedence(pre=("x",), post=("a", "b"), fork="or"),
    )
    entry = Entry(
        name="e",
        start="s",
        activities=tuple(_activity(n) for n in ("s", "x", "y", "a", "b")),
        precedences=arcs,
    )
    assert activity_visits(entry)["a"] == 0
    unknown = replace(entry, precedences=(replace(arcs[0], probabilities=(0.5, 0.5)), arcs[1]))
    with pytest.raises(UncalibratedError, match="never measured"):
        activity_visits(unknown)
