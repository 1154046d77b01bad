"""Names are looked up, never taken apart: whatever they hold, a text stands for one element."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mup.errors import UsageError
from mup.lqn import (
    Activity,
    ActivityRef,
    Call,
    Constant,
    Entry,
    EntryRef,
    FigureRef,
    LoadDependence,
    Model,
    Names,
    Precedence,
    Replicate,
    Task,
    Uncertainty,
    entry_label,
    model_from_json,
    model_to_json,
)
from mup.lqn.edits import with_arrivals
from mup.lqn.refs import CallRef, JoinRef, WorkNames, halves
from mup.lqn.routing_edits import place_of, with_count
from mup.lqn.statistics import statistics
from mup.lqn.time_edits import mean_time
from mup.lqn.uncertainty import apply

nasty = st.text(alphabet='ab:/.&">- ', min_size=1, max_size=5)
"""Short texts of what stands between names, so that two of them often look alike together."""


def entry(name: str, *activities: Activity) -> Entry:
    """Return an entry whose activities follow each other."""
    names = [a.name for a in activities]
    arcs = tuple(Precedence(pre=(a,), post=(b,)) for a, b in pairwise(names))
    return Entry(name=name, start=names[0], activities=activities, precedences=arcs)


def work(name: str, seconds: float = 1.0, calls: tuple[Call, ...] = ()) -> Activity:
    return Activity(name=name, demand=Constant(seconds), delay=Constant(0.0), calls=calls)


def alike() -> Model:
    """Return a model in which entries, activities and calls share their plain texts."""
    return Model(
        name="m",
        tasks=(
            Task(name="A", entries=(entry("b.c", work("x", 1.0)), entry("d:e", work("f", 3.0)))),
            Task(name="A.b", entries=(entry("c", work("x", 2.0)),)),
            Task(name="A.d", entries=(entry("e", work("f", 5.0)),)),
            Task(name="B", entries=(entry("d", work("e:f", 4.0)), entry("d:e", work("f", 6.0)))),
        ),
    )


@st.composite
def systems(draw: st.DrawFn) -> Model:
    """Return tasks, entries and activities of arbitrary names, the last of each entry calling another one."""
    tasks = []
    targets: list[tuple[str, str]] = []
    for task in draw(st.lists(nasty, min_size=1, max_size=3, unique=True)):
        entries = []
        for name in draw(st.lists(nasty, min_size=1, max_size=3, unique=True)):
            names = draw(st.lists(nasty, min_size=1, max_size=3, unique=True))
            called = draw(st.lists(st.sampled_from(targets), max_size=2, unique=True)) if targets else []
            calls = tuple(Call(task=t, entry=e) for t, e in called)
            entries.append(entry(name, *map(work, names[:-1]), work(names[-1], 1.0, calls)))
        targets += [(task, e.name) for e in entries]
        tasks.append(Task(name=task, entries=tuple(entries)))
    return Model(name="m", tasks=tuple(tasks))


@settings(deadline=None, max_examples=200)
@given(systems())
def test_every_element_has_a_text_of_its_own(model: Model) -> None:
    """Each text, plain or quoted, is that of one element, and leads back to it."""
    names = Names(model.tasks)
    refs = list(names.activities())
    assert len(set(names.entries.values())) == len(names.entries)
    assert len({names.activity(ref) for ref in refs}) == len(refs)
    for owner, label in names.entries.items():
        assert names.by_label[label] == names.by_label[owner.quoted] == owner
        assert label in (owner.label, owner.quoted)
    for ref in refs:
        assert names.by_key[names.activity(ref)] == names.by_key[ref.quoted] == ref
        assert names.spoken_activity(names.activity(ref)) == ref
    beside = {names.activity(names.beside(owner, "forward")) for owner in names.entries}
    assert len(beside) == len(names.entries)
    assert beside.isdisjoint(names.activity(ref) for ref in refs)
    calls = {
        CallRef(ActivityRef(t.name, e.name, a.name), EntryRef(c.task, c.entry))
        for t, e, a in model.walk()
        for c in a.calls
    }
    assert len({names.call(ref) for ref in calls}) == len(calls)
    for task in model.tasks:
        keys = WorkNames(task.entries)
        assert len(keys.pairs) == len(keys.texts) == sum(len(e.activities) for e in task.entries)


def test_texts_are_plain_unless_two_elements_share_them() -> None:
    """What files and results had before stays; only what was mixed up is quoted."""
    names = Names(alike().tasks)
    assert names.entries[EntryRef("A", "b.c")] == '"A"."b.c"'
    assert names.entries[EntryRef("A.b", "c")] == '"A.b"."c"'
    assert names.entries[EntryRef("A", "d:e")] == "A.d:e"
    assert names.activity(ActivityRef("B", "d", "e:f")) == '"B"."d":"e:f"'
    assert names.activity(ActivityRef("B", "d:e", "f")) == '"B"."d:e":"f"'
    plain = Names((Task(name="Net", entries=(entry("exchange@A/x:y/", work("exchange@A/x:y/")),)),))
    ref = ActivityRef("Net", "exchange@A/x:y/", "exchange@A/x:y/")
    assert plain.activity(ref) == "Net.exchange@A/x:y/:exchange@A/x:y/"


def test_joins_of_activities_with_an_ampersand_differ() -> None:
    """``a&b`` with ``c`` is not ``a`` with ``b&c``."""

    def forked(*pre: str) -> tuple[Precedence, ...]:
        return (
            Precedence(pre=("start",), post=pre, fork="and"),
            Precedence(pre=pre, post=("end",), join="and"),
        )

    one, other = ("a&b", "c"), ("a", "b&c")
    tasks = tuple(
        Task(
            name=task,
            entries=(
                Entry(
                    name=name,
                    start="start",
                    activities=tuple(map(work, ("start", *pre, "end"))),
                    precedences=forked(*pre),
                ),
            ),
        )
        for task, name, pre in (("T", "x.y", one), ("T.x", "y", other), ("S", "z", one))
    )
    names = Names(tasks)
    refs = [
        JoinRef(EntryRef("T", "x.y"), one),
        JoinRef(EntryRef("T.x", "y"), other),
        JoinRef(EntryRef("S", "z"), one),
    ]
    assert len({names.join(ref) for ref in refs}) == 3
    assert names.join(refs[2]) == "S.z:a&b&c"


def test_a_replicate_changes_what_it_names_and_nothing_else() -> None:
    """Of two activities that look alike one gets slower, also after a way through a file."""
    model = alike()
    names = Names(model.tasks)
    for ref in names.activities():
        sure = Uncertainty(replicates=(Replicate(demands={names.activity(ref): 10.0}),))
        read = model_from_json(model_to_json(replace(model, uncertainty=sure)))
        assert read.uncertainty == sure
        changed = apply(model, sure.replicates[0])
        for (task, owner, old), (_, _, new) in zip(model.walk(), changed.walk(), strict=True):
            assert old.demand is not None
            factor = 10.0 if (task.name, owner.name, old.name) == ref else 1.0
            assert new.demand == Constant(old.demand.mean * factor)


def test_edits_find_what_is_named_and_refuse_what_is_not_clear() -> None:
    """A name people type may be quoted; one that stands for two elements is refused, and both are shown."""
    model = alike()
    assert mean_time(model, "demand", '"A.b"."c"') == 2.0
    assert mean_time(model, "demand", '"A"."b.c":"x"') == 1.0
    assert mean_time(model, "demand", "A/d:e") == 3.0
    assert place_of(model, '"B"."d":"e:f"').activity.demand == Constant(4.0)
    with pytest.raises(UsageError, match=r"'A\.b\.c' can be several entries") as refused:
        mean_time(model, "demand", "A.b.c")
    assert refused.value.hint == 'write one of "A"."b.c", "A.b"."c"'
    with pytest.raises(UsageError, match="can be several activities"):
        place_of(model, "B.d:e:f")


def test_a_call_is_found_behind_names_with_arrows() -> None:
    """``->`` in a name is no end of it."""
    target = Task(name="C", entries=(entry("in->out", work("w")),))
    caller = Task(name="A", entries=(entry("x->y", work("a->b", 1.0, (Call(task="C", entry="in->out"),))),))
    model = Model(name="m", tasks=(caller, target))
    for text in ("A.x->y:a->b->C.in->out", "A.x->y:a->b->C"):
        (call,) = with_count(model, text, 3).task("A").entries[0].activities[0].calls
        assert call.count == Constant(3)


def test_arrivals_at_an_entry_that_is_named_like_a_task() -> None:
    """The rate of one source changes, that of the other stays."""
    open_entry = replace(entry("x", work("w")), arrivals=Constant(0.5))
    source = Task(
        name="A.x",
        role="reference",
        threads=float("inf"),
        entries=(replace(entry("go", work("g")), arrivals=Constant(0.25)),),
    )
    model = Model(name="m", tasks=(Task(name="A", entries=(open_entry,)), source))
    one = with_arrivals(model, 10.0, '"A"."x"')
    other = with_arrivals(model, 10.0, "A.x")
    rates = [[t.entries[0].arrivals.mean for t in m.tasks if t.entries[0].arrivals] for m in (one, other)]
    assert rates == [[0.1, 0.25], [0.5, 0.1]]


def test_load_dependence_of_works_that_look_alike() -> None:
    """The keys of a task's load dependence are as unique as those of a result."""
    task = Task(name="A", entries=(entry("x", work("y:z")), entry("x:y", work("z"))))
    keys = WorkNames(task.entries).texts
    assert keys == {("x", "y:z"): '"x":"y:z"', ("x:y", "z"): '"x:y":"z"'}
    warm = LoadDependence(rates=(1.0, 2.0), demands={keys["x", "y:z"]: (0.1, 0.0)})
    model = Model(name="m", tasks=(replace(task, load_dependence=warm),))
    assert model_from_json(model_to_json(model)) == model


@pytest.mark.parametrize("database", ["shop", "shop.v2", "a:b/c"])
def test_statistics_count_databases_whatever_they_are_called(database: str) -> None:
    """The queries of a path are those of the model's databases."""
    queries = ("find", "find.all")
    path = {
        "operations": [
            {"op": "query", "target": entry_label(database, query), "of": None} for query in queries
        ],
        "ends": "return",
        "first": "w",
    }
    calls = tuple(Call(task=database, entry=query) for query in queries)
    service = Task(name="S", entries=(replace(entry("/x/", work("w", 1.0, calls)), paths=(path,)),))
    store = Task(name=database, role="database", entries=tuple(entry(q, work(q)) for q in queries))
    found = statistics(Model(name="m", tasks=(service, store)))
    assert found.full.tasks == 2
    assert found.full.entries == 3


def test_figures_have_names_with_points() -> None:
    """The group is the first word and the figure the last one; everything between is the name."""
    ref = FigureRef.parse("tasks.shop.v2.utilization")
    assert ref == FigureRef("tasks", "shop.v2", "utilization")
    assert ref.label == "tasks.shop.v2.utilization"
    assert FigureRef.parse("cycle.throughput") == FigureRef("cycle", "", "throughput")


def test_halves_begin_at_the_right() -> None:
    """Every place a text can be divided at, each once."""
    assert list(halves("a:b:c", ":")) == [("a:b", "c"), ("a", "b:c")]
    assert list(halves("abc", ":")) == []
