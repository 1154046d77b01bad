"""Do what-if edits change exactly what they say, and refuse what makes no sense?"""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from mup.errors import UncalibratedError, UsageError
from mup.lqn import Activity, Call, Constant, Entry, Exponential, Model, Precedence, Processor, Task, Uniform
from mup.lqn.edits import with_clients, with_cores, with_pool, with_replicas, with_speed, with_think
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


def test_an_infinite_processor_can_get_cores() -> None:
    """A processor that had a core for everybody becomes a processor-sharing one."""
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
        (lambda m: with_think(m, -0.1), "think time must be"),
    ],
)
def test_senseless_edits_are_refused(edit: Callable[[Model], Model], message: str) -> None:
    """Zero, negative, fractional and unknown values are named in one message."""
    with pytest.raises(UsageError) as caught:
        edit(_model())
    assert message in str(caught.value)


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
    from dataclasses import replace

    unknown = replace(entry, precedences=(replace(arcs[0], probabilities=(0.5, 0.5)), arcs[1]))
    with pytest.raises(UncalibratedError, match="never measured"):
        activity_visits(unknown)
