"""A comparison finds what changed, and nothing else."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from expressible_models import ExpressibleModel
from hypothesis import given, settings
from hypothesis import strategies as st

from mup.lqn import (
    Activity,
    Call,
    Constant,
    Entry,
    Exponential,
    Forward,
    Front,
    Gamma,
    Geometric,
    Migration,
    Model,
    Precedence,
    Processor,
    Task,
    Turns,
)
from mup.lqn.comparison import Change, compare

ZERO = Constant(0.0)


def base() -> Model:
    query = Call(task="db", entry="q")
    graph = Entry(
        name="e",
        start="a",
        activities=(
            Activity(
                name="a", demand=Exponential(0.01), delay=ZERO, calls=(query, replace(query, kind="send"))
            ),
            Activity(name="b", demand=ZERO, delay=ZERO),
            Activity(name="c", demand=ZERO, delay=ZERO),
        ),
        precedences=(Precedence(pre=("a",), post=("b", "c"), fork="or", probabilities=(0.25, 0.75)),),
    )
    query_entry = Entry(name="q", start="q", activities=(Activity(name="q", demand=ZERO, delay=ZERO),))
    client = Entry(
        name="u",
        start="u",
        activities=(Activity(name="u", demand=ZERO, delay=ZERO, calls=(Call(task="A", entry="e"),)),),
    )
    return Model(
        name="m",
        processors=(Processor(name="host", cores=2),),
        tasks=(
            Task(name="U", role="reference", threads=10, think=Exponential(1.0), entries=(client,)),
            Task(name="A", threads=4, processor="host", entries=(graph,)),
            Task(name="db", threads=math.inf, entries=(query_entry,)),
        ),
    )


def with_entry(**changes: object) -> Model:
    task = base().task("A")
    return base().with_task(replace(task, entries=(replace(task.entries[0], **changes),)))  # type: ignore[arg-type]


def with_activity(**changes: object) -> Model:
    first, *others = base().task("A").entries[0].activities
    return with_entry(activities=(replace(first, **changes), *others))  # type: ignore[arg-type]


def with_task(**changes: object) -> Model:
    return base().with_task(replace(base().task("A"), **changes))  # type: ignore[arg-type]


QUERY = Call(task="db", entry="q")


@pytest.mark.parametrize(
    ("changed", "field", "old", "new", "relative"),
    [
        (base().with_processor(Processor(name="host", cores=3)), "cores", "2", "3", 0.5),
        (
            base().with_processor(Processor(name="host", cores=2, discipline="fcfs")),
            "discipline", "ps", "fcfs", None,
        ),
        (base().with_task(replace(base().task("U"), threads=5)), "clients", "10", "5", -0.5),
        (base().with_task(replace(base().task("U"), think=None)), "think", "1 exponential (scv 1)", "-", None),
        (with_task(threads=math.inf), "threads", "4", "inf", None),
        (with_task(replicas=2), "replicas", "1", "2", 1.0),
        (with_task(priority=1), "priority", "0", "1", None),
        (with_entry(waits=True), "waits", "no", "yes", None),
        (with_entry(arrivals=Exponential(2.0)), "arrivals", "-", "2 exponential (scv 1)", None),
        (with_activity(demand=Exponential(0.02)), "demand", "0.01 exponential (scv 1)", "0.02 exponential (scv 1)", 1.0),
        (with_activity(demand=Gamma(0.01, 0.5)), "demand", "0.01 exponential (scv 1)", "0.01 gamma (scv 0.5)", 0.0),
        (with_activity(demand=Exponential(0.01 + 1e-12)), "demand", "0.01 exponential (scv 1)", "0.010000000001 exponential (scv 1)", 1e-10),
        (with_activity(demand=None), "demand", "0.01 exponential (scv 1)", "-", None),
        (with_activity(interleaved=True), "interleaved", "no", "yes", None),
        (with_activity(calls=(replace(QUERY, count=Geometric(2.0)), replace(QUERY, kind="send"))), "count", "1 constant", "2 geometric (scv 1.5)", 1.0),
        (with_activity(calls=(replace(QUERY, kind="send"), QUERY)), "order of calls", "db.q, db.q (send)", "db.q (send), db.q", None),
    ],
)  # fmt: skip
def test_one_change_is_one_difference(
    changed: Model, field: str, old: str, new: str, relative: float | None
) -> None:
    """A changed number or word is found once, with both values and the relative change of its mean."""
    (change,) = compare(base(), changed)
    assert (change.kind, change.field, change.texts()) == ("changed", field, (old, new))
    assert change.relative == (relative if relative is None else pytest.approx(relative))


def test_probabilities_are_compared_by_branch() -> None:
    """Branches in another order with the same probabilities are no change; other probabilities are."""
    (fork,) = base().task("A").entries[0].precedences
    turned = replace(fork, post=("c", "b"), probabilities=(0.75, 0.25))
    assert compare(base(), with_entry(precedences=(turned,))) == []
    found = compare(base(), with_entry(precedences=(replace(fork, probabilities=(0.5, 0.5)),)))
    assert [(c.field, c.relative) for c in found] == [
        ("probability of 'b'", 1.0),
        ("probability of 'c'", pytest.approx(-1 / 3)),
    ]


def test_elements_that_came_and_went() -> None:
    """Added and removed elements of every kind are named by their path."""
    graph = base().task("A").entries[0]
    extra = Activity(name="d", demand=ZERO, delay=ZERO)
    arc = Precedence(pre=("c",), post=("d",))
    entry = replace(
        graph,
        activities=(*graph.activities, extra),
        precedences=(*graph.precedences, arc),
        forwards=(Forward(task="db", entry="q", probability=0.5),),
    )
    task = replace(base().task("A"), entries=(entry, replace(base().task("db").entries[0], name="new")))
    changed = replace(base().with_task(task), processors=(*base().processors, Processor(name="p2")))
    places = {
        "processors['p2']",
        "tasks['A'].entries['new']",
        "tasks['A'].entries['e'].activities['d']",
        "tasks['A'].entries['e'].precedences['c -> d']",
        "tasks['A'].entries['e'].forwards['db.q']",
    }
    assert {c.where for c in compare(base(), changed)} == places
    assert {(c.kind, c.where) for c in compare(changed, base())} == {("removed", p) for p in places}


def test_turns() -> None:
    """Threads that take turns, and a quantum that becomes longer, are differences field by field."""
    shared = Processor(name="host", cores=2, discipline="cores")
    turns = replace(shared, turns=Turns(quantum=0.002, preempt=0.5))
    longer = replace(shared, turns=Turns(quantum=0.003, preempt=0.5))
    found = compare(base().with_processor(shared), base().with_processor(turns))
    assert [(c.field, c.old, c.new) for c in found] == [
        ("turns.quantum", None, 0.002),
        ("turns.preempt", None, 0.5),
    ]
    found = compare(base().with_processor(turns), base().with_processor(longer))
    assert [(c.field, c.new) for c in found] == [("turns.quantum", 0.003)]


def test_fronts_and_migration() -> None:
    """A front that appears, and probabilities of migration, are differences field by field."""
    front = with_task(front=Front(request=Constant(0.001), reply=None))
    assert [c.field for c in compare(base(), front)] == ["front", "front.request"]
    cores = Processor(name="host", cores=2, discipline="cores")
    moved = replace(cores, migration=Migration(wake=0.5))
    found = compare(base().with_processor(cores), base().with_processor(moved))
    assert [(c.field, c.new) for c in found] == [("migration.wake", 0.5)]


def test_a_changed_source_is_only_told_where_both_have_one() -> None:
    """Fingerprints are compared if both models came from source code."""
    one, other = with_entry(fingerprint="1"), with_entry(fingerprint="2")
    assert [c.field for c in compare(one, other)] == ["source"]
    assert compare(base(), one) == []


def test_what_is_for_display_is_not_compared() -> None:
    """Name, provenance, source lines and the order of tasks are no change."""
    changed = replace(with_activity(line=7), name="x", provenance={"a": 1})
    changed = replace(changed, tasks=tuple(reversed(changed.tasks)))
    assert compare(base(), changed) == []


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1000), st.integers(0, 1000))
def test_any_two_models_give_a_json_document(first: int, second: int) -> None:
    """Differences of arbitrary models print and serialise; a model does not differ from itself."""
    old, new = ExpressibleModel(first).model(), ExpressibleModel(second).model()
    changes = compare(old, new)
    json.dumps([c.to_json() for c in changes], allow_nan=False)
    assert all(c.kind != "changed" or c.texts()[0] != c.texts()[1] for c in changes)
    assert compare(old, old) == []
    assert bool(changes) == bool(compare(new, old))


def test_infinity_in_json() -> None:
    """An infinite number is the text "inf", as in a model file."""
    assert Change("changed", "x", "threads", 4, math.inf).to_json()["new"] == "inf"
