"""All that lqnx cannot express is named, and the rest is written correctly."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from lqnx_samples import there_and_back

from mup.errors import ModelError
from mup.lqn import (
    Activity,
    Call,
    Constant,
    Empirical,
    Entry,
    Erlang,
    Exponential,
    Front,
    Gamma,
    Geometric,
    Lognormal,
    Migration,
    Model,
    Pareto,
    Precedence,
    Processor,
    Task,
    Turns,
)
from mup.lqn.lqnx import model_to_lqnx, save_lqnx

ZERO = Constant(0.0)


def work(name: str, *calls: Call, mean: float = 1.0) -> Activity:
    return Activity(name=name, demand=Exponential(mean) if mean else ZERO, delay=ZERO, calls=calls)


def single(name: str, activity: Activity) -> Entry:
    return Entry(name=name, start=activity.name, activities=(activity,))


def model(**changes: object) -> Model:
    """Clients, a service with an endpoint, and a database; the service can be changed."""
    call = Call(task="A", entry="/a/")
    query = Call(task="db", entry="q")
    service = Task(name="A", processor="host", entries=(single("/a/", work("a", query, query)),))
    return Model(
        name="m",
        processors=(Processor(name="host", cores=2),),
        tasks=(
            Task(name="U", role="reference", threads=4, entries=(single("u", work("u", call)),)),
            replace(service, **changes),  # type: ignore[arg-type]
            Task(name="db", threads=math.inf, entries=(single("q", work("q")),)),
        ),
    )


def with_activity(**changes: object) -> Model:
    activity = replace(work("a"), **changes)  # type: ignore[arg-type]
    return model(entries=(single("/a/", activity),))


def test_calls_after_the_work_become_an_activity_of_their_own() -> None:
    """Work followed by calls is a chain of two in lqnx, with the same demands and calls."""
    entry = there_and_back(model()).task("A").entry("/a/")
    assert [(a.name, a.demand) for a in entry.activities] == [("a", Exponential(1.0)), ("a_call1", ZERO)]
    assert [c.count for c in entry.activities[1].calls] == [Constant(1), Constant(1)]
    assert not entry.activities[1].replies, "the reply leaves at the end, which needs no mark"


def test_geometric_calls_in_a_row_stay_in_order() -> None:
    """Each geometric call is an activity of its own, or lqnx would mix them."""
    calls = (Call(task="db", entry="q", count=Geometric(2.0)),) * 2
    entry = there_and_back(model(entries=(single("/a/", work("a", *calls)),))).task("A").entry("/a/")
    assert [len(a.calls) for a in entry.activities] == [0, 1, 1]


def test_tasks_without_processor_get_an_infinite_one() -> None:
    """Unlimited cores are an infinite processor of the task's name, and a note says so."""
    found = there_and_back(model())
    assert found.processor("db").discipline == "infinite"
    assert any("'db' has no processor" in note for note in model_to_lqnx(model()).notes)


def test_names_that_two_tasks_use_are_made_unique() -> None:
    """Entries of the same name in two tasks, and activities in two graphs of a task, are renamed and noted."""
    steps = (Precedence(pre=("x",), post=("y",)),)
    graphs = tuple(
        Entry(name=n, start="x", activities=(work("x"), work("y")), precedences=steps) for n in "qr"
    )
    wanted = (Call(task="A", entry="q"), Call(task="A", entry="r"), Call(task="db", entry="q"))
    base = model()
    client = replace(base.tasks[0], entries=(single("u", work("u", *wanted)),))
    changed = replace(base, tasks=(client, replace(base.tasks[1], entries=graphs), base.tasks[2]))
    found = there_and_back(changed)
    assert [e.name for e in found.task("A").entries] == ["A.q", "r"]
    assert {a.name for a in found.task("A").entry("r").activities} == {"r:x", "r:y"}
    assert [(c.task, c.entry) for c in found.task("U").entries[0].activities[1].calls] == [
        ("A", "A.q"),
        ("A", "r"),
        ("db", "db.q"),
    ]
    assert len([n for n in model_to_lqnx(changed).notes if "is called" in n]) == 4


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (model(replicas=3), "3 replicas"),
        (model(front=Front(request=Constant(0.001), reply=Constant(0.002))), "framework work"),
        (with_activity(demand=Lognormal(1.0, 2.0)), "lognormal"),
        (with_activity(demand=Empirical((1.0, 2.0))), "empirical"),
        (with_activity(demand=Gamma(1.0, 3.0)), "gamma"),
        (with_activity(delay=Constant(1.0)), "a time that is constant"),
        (with_activity(calls=(Call(task="db", entry="q", kind="releasing"),)), "gives its thread back"),
        (with_activity(calls=(Call(task="db", entry="q", count=Empirical((1.0, 3.0))),)), "a count that is empirical"),
        (replace(model(), processors=(Processor(name="host", cores=2, discipline="cores"),)), "stick to their core"),
        (
            replace(
                model(),
                processors=(Processor(name="host", cores=2, discipline="cores", migration=Migration(wake=1.0)),),
            ),
            "threads migrate",
        ),
        (
            replace(
                model(),
                processors=(Processor(name="host", discipline="cores", turns=Turns(quantum=0.002)),),
            ),
            "threads take turns",
        ),
        (
            model(
                entries=(
                    Entry(
                        name="/a/",
                        start="a",
                        activities=(work("a"), work("b"), work("c")),
                        precedences=(Precedence(pre=("a",), post=("b", "c"), fork="and"),),
                    ),
                )
            ),
            "may outlive the flow",
        ),
        (
            model(
                entries=(
                    Entry(
                        name="/a/",
                        start="a",
                        activities=(work("a"), work("b")),
                        precedences=(Precedence(pre=("a",), post=("b",), fork="loop", counts=(Constant(2),)),),
                    ),
                )
            ),
            "a loop whose count is constant",
        ),
        (
            model().with_task(
                replace(model().task("U"), threads=math.inf, entries=(replace(model().task("U").entries[0], arrivals=Exponential(2.0)),))
            ),
            "starts at arrivals",
        ),
        (model(entries=(replace(single("/a/", work("a")), arrivals=Constant(5.0)),)), "a time that is constant"),
    ],
)  # fmt: skip
def test_what_can_be_approximated_is_refused_and_offered(changed: Model, expected: str) -> None:
    """Without permission it is an error that says what would be done; with it, it is done and listed."""
    with pytest.raises(ModelError) as caught:
        model_to_lqnx(changed)
    assert expected in str(caught.value)
    assert "approximately" in str(caught.value)
    assert "--approximate" in caught.value.hint
    export = model_to_lqnx(changed, approximate=True)
    assert any(expected in text for text in export.approximated)
    there_and_back(changed, approximate=True)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (with_activity(demand=None), "activities['a'].demand: it was never measured"),
        (with_activity(demand=Pareto(1.0, 1.5)), "infinite variance"),
        (with_activity(calls=(Call(task="db", entry="q", count=None),)), "never measured"),
        (
            replace(
                model(),
                processors=(
                    Processor(name="big"),
                    Processor(name="host", parent="big"),
                ),
            ),
            "processors do not nest",
        ),
        (replace(model(), tasks=model().tasks[1:]), "nothing generates load"),
    ],
)
def test_what_has_no_near_equivalent(changed: Model, expected: str) -> None:
    """It is named, and no approximation helps."""
    for approximate in (False, True):
        with pytest.raises(ModelError) as caught:
            model_to_lqnx(changed, approximate=approximate)
        assert expected in str(caught.value)
    assert "--approximate" not in caught.value.hint


def test_everything_is_named_at_once() -> None:
    """A model with four things lqnx lacks is refused with all four."""
    changed = model(replicas=2, front=Front(request=Constant(0.1), reply=None))
    changed = replace(changed, processors=(Processor(name="host", cores=2, discipline="cores"),))
    with pytest.raises(ModelError) as caught:
        model_to_lqnx(changed)
    listed = str(caught.value)
    assert all(
        word in listed for word in ("replicas", "framework work", "stick", "front.reply: it was never")
    )


def test_numbers_that_no_client_reaches_need_no_measurement() -> None:
    """An uncalibrated activity behind a branch of probability 0 can be written as 0."""
    entry = Entry(
        name="/a/",
        start="a",
        activities=(work("a"), work("b"), Activity(name="c")),
        precedences=(Precedence(pre=("a",), post=("b", "c"), fork="or", probabilities=(1.0, 0.0)),),
    )
    export = model_to_lqnx(model(entries=(entry,)), approximate=True)
    assert [t for t in export.approximated if "'c'" in t and "nor reached" in t]


def test_the_approximations_keep_means() -> None:
    """Replicas become threads, the framework's work and an empirical demand keep their means."""
    front = Front(request=Constant(0.25), reply=Exponential(0.5))
    changed = with_activity(demand=Empirical((1.0, 2.0, 6.0)))
    changed = changed.with_task(replace(changed.task("A"), replicas=3, threads=2, front=front))
    task = there_and_back(changed, approximate=True).task("A")
    assert task.threads == 6
    before, own = task.entries[0].activities
    assert (before.demand and before.demand.mean) == pytest.approx(0.75)
    assert (before.demand and before.demand.variance) == pytest.approx(0.25)
    assert own.demand is not None
    assert (own.demand.mean, own.demand.variance) == pytest.approx((3.0, 14 / 3))


def test_erlang_is_a_gamma() -> None:
    """Erlang is written exactly: it is the gamma distribution of the same mean and variance."""
    entry = there_and_back(with_activity(demand=Erlang(2.0, 4))).task("A").entries[0]
    assert entry.activities[0].demand == Gamma(2.0, 0.25)


def test_what_only_matters_for_display_is_noted() -> None:
    """Roles, source lines, paths and provenance are left out with a note each."""
    entry = replace(single("/a/", replace(work("a"), line=3)), fingerprint="x")
    changed = replace(model(entries=(entry,), role="database"), provenance={"run": "r"})
    notes = " | ".join(model_to_lqnx(changed).notes)
    assert all(word in notes for word in ("roles", "source lines", "fingerprints", "provenance"))


def test_a_refused_export_leaves_the_old_file(tmp_path: Path) -> None:
    """The file is written whole or not at all."""
    path = tmp_path / "m.lqnx"
    save_lqnx(model(), path)
    before = path.read_bytes()
    with pytest.raises(ModelError, match="replicas"):
        save_lqnx(model(replicas=2), path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["m.lqnx"]
    with pytest.raises(ModelError, match="cannot write the model"):
        save_lqnx(model(), tmp_path / "none" / "m.lqnx")
