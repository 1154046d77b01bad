"""Fan-outs in models: what is valid, what they look like, how often their branch runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

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
    Geometric,
    Model,
    Precedence,
    Task,
    model_from_json,
    model_to_json,
)
from mup.lqn.comparison import compare
from mup.lqn.drawing import draw
from mup.lqn.drawing.labels import TIMES
from mup.lqn.lowered import FanOut, Graph, Lowered
from mup.lqn.routing_edits import with_width
from mup.lqn.visits import activity_visits

NOTHING = Constant(0.0)


def _fan(width: Distribution | None = Geometric(3.0), **fields: Any) -> Precedence:  # noqa: B008 - immutable
    return Precedence(pre=("s",), post=("x", "e"), fork="fan-out", counts=(width,), **fields)


def _entry(*arcs: Precedence, names: str = "sxe", **changed: Any) -> Entry:
    activities = tuple(Activity(name=n, demand=NOTHING, delay=NOTHING, **changed.get(n, {})) for n in names)
    return Entry(name="a", start=names[0], activities=activities, precedences=arcs or (_fan(),))


def _model(entry: Entry) -> Model:
    calls = (Call(task="A", entry="a"),)
    go = Activity(name="go", demand=NOTHING, delay=NOTHING, calls=calls)
    work = Activity(name="w", demand=Exponential(0.1), delay=NOTHING)
    return Model(
        name="m",
        tasks=(
            Task(
                name="U",
                role="reference",
                threads=1,
                think=Exponential(1.0),
                entries=(Entry(name="cycle", start="go", activities=(go,)),),
            ),
            Task(name="A", entries=(entry,)),
            Task(name="B", entries=(Entry(name="b", start="w", activities=(work,)),)),
        ),
    )


def _calling(fan: Precedence) -> Model:
    return _model(_entry(fan, x={"calls": (Call(task="B", entry="b"),)}))


@pytest.mark.parametrize("how", [{}, {"first": 0}, {"first": 2}, {"limit": 4}], ids=str)
@pytest.mark.parametrize("width", [Constant(3), Geometric(2.5), Empirical((0, 1, 7)), None], ids=repr)
def test_files_keep_them(width: Distribution | None, how: dict[str, int]) -> None:
    model = _calling(_fan(width, **how))
    data = model_to_json(model)
    arc = data["tasks"][1]["entries"][0]["precedences"][0]
    assert arc["fork"] == "fan-out"
    assert {name: arc[name] for name in ("first", "limit") if name in arc} == how
    assert model_from_json(data) == model


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (_entry(_fan(Exponential(1.0))), "a count is constant, geometric or empirical"),
        (_entry(_fan(Constant(1.5))), "a count is a whole number"),
        (_entry(_fan(Constant(10.0**9))), "at most 100000 copies"),
        (_entry(_fan(first=-1)), "from 0 to 100000"),
        (_entry(_fan(limit=0)), "from 1 to 100000"),
        (_entry(_fan(first=1, limit=2)), "cannot limit how many"),
        (_entry(replace(_fan(), counts=())), "one count, its width"),
        (
            _entry(replace(_fan(), fork="sequence", post=("x",), counts=(), limit=2), names="sx"),
            "only a 'fan-out'",
        ),
        (_entry(x={"replies": True}), "could be sent twice"),
        (_entry(x={"kind": "think"}), "no think time"),
        (_entry(x={"calls": (Call(task="B", entry="b", kind="releasing"),)}), "no thread to give back"),
        (
            _entry(_fan(), Precedence(pre=("x",), post=("y", "z"), fork="and"), names="sxyze"),
            "ends with 'z' is not joined within the copy",
        ),
        (
            _entry(
                Precedence(pre=("s",), post=("x", "e"), fork="loop", counts=(Constant(2),)),
                Precedence(pre=("x",), post=("y", "z"), fork="fan-out", counts=(Constant(2),), first=1),
                names="sxyze",
            ),
            "cannot be repeated",
        ),
        (
            _entry(
                Precedence(pre=("s",), post=("x", "y"), fork="fan-out", counts=(Constant(2),)),
                Precedence(pre=("x", "y"), post=("e",), join="and"),
                names="sxye",
            ),
            "outside it",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_not_valid_is_said(entry: Entry, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        _model(entry)


def test_what_is_wrong_in_several_branches_is_said_once_each() -> None:
    """Of two fan-outs one behind the other both are named, and a step in a nested one only once."""
    loose = [
        Precedence(pre=("s",), post=("x", "t"), fork="fan-out", counts=(Constant(2),)),
        Precedence(pre=("x",), post=("y", "z"), fork="and"),
        Precedence(pre=("t",), post=("u",), fork="fan-out", counts=(Constant(2),)),
        Precedence(pre=("u",), post=("v", "w"), fork="and"),
    ]
    with pytest.raises(ModelError) as both:
        _model(_entry(*loose, names="sxtyzuvw"))
    assert [f"ends with {name!r}" in str(both.value) for name in "zw"] == [True, True]
    nested = [
        Precedence(pre=("s",), post=("x",), fork="fan-out", counts=(Constant(2),)),
        Precedence(pre=("x",), post=("y",), fork="fan-out", counts=(Constant(2),)),
    ]
    with pytest.raises(ModelError) as once:
        _model(_entry(*nested, names="sxy", y={"kind": "think"}))
    assert str(once.value).count("no think time") == 1


@pytest.mark.parametrize("wrong", [{"first": "2"}, {"limit": 1.5}, {"counts": 3}], ids=str)
def test_files_with_mistakes_are_refused_by_place(wrong: dict[str, Any]) -> None:
    data = model_to_json(_calling(_fan()))
    data["tasks"][1]["entries"][0]["precedences"][0].update(wrong)
    with pytest.raises(ModelError, match=rf"precedences\[0\].*{next(iter(wrong))}"):
        model_from_json(data)


@pytest.mark.parametrize(
    ("width", "often"), [(Constant(0), 0), (Constant(4), 4), (Geometric(2.5), 2.5), (Empirical((0, 1, 5)), 2)]
)
@pytest.mark.parametrize("how", [{}, {"first": 0}, {"first": 1}, {"limit": 1}], ids=str)
def test_every_copy_asks_whether_it_is_waited_for_or_not(
    width: Distribution, often: float, how: dict[str, int]
) -> None:
    model = _calling(_fan(width, **how))
    assert Lowered(model).requests_per_cycle()["U", "cycle"].get(("B", "b"), 0.0) == pytest.approx(often)
    assert activity_visits(model.task("A").entry("a")) == pytest.approx({"s": 1, "x": often, "e": 1})


def test_copies_are_no_part_of_the_flow_that_waits() -> None:
    graph = Graph(_entry())
    assert isinstance(graph.after["s"].then, FanOut)
    assert graph.carried == {"s", "e"}
    assert graph.reached == {"s", "x", "e"}


def test_a_width_that_was_never_measured_is_named() -> None:
    lowered = Lowered(_calling(_fan(None)))
    with pytest.raises(UncalibratedError, match=r"precedences\[0\].counts\[0\]"):
        lowered.check_measured()


def test_differences_of_widths_and_of_what_is_waited_for() -> None:
    old, new = (_calling(fan) for fan in (_fan(Constant(3)), _fan(Constant(5), limit=2)))
    found = {(change.field, str(change.old), str(change.new)) for change in compare(old, new)}
    assert {field for field, _, _ in found} == {"limit", "width of 'x'"}


@pytest.mark.parametrize(
    ("old", "asked", "new"),
    [
        (Geometric(3.0), 5, Geometric(5.0)),
        (Constant(3), 5, Constant(5)),
        (None, 2, Constant(2)),
        (Constant(3), "geometric(2.5)", Geometric(2.5)),
        (Geometric(3.0), "constant(4)", Constant(4)),
        (Constant(3), " empirical(7, 0,2)", Empirical((0, 2, 7))),
    ],
    ids=str,
)
def test_widths_are_edited(old: Distribution | None, asked: float | str, new: Distribution) -> None:
    for place in ("A.a:x", "A.a:s"):
        changed = with_width(_calling(_fan(old)), place, asked)
        assert changed.task("A").entry("a").precedences[0].counts == (new,)


@pytest.mark.parametrize(
    ("place", "asked", "said"),
    [
        ("A.a:e", 3, "no fan-out at 'e'; known: s, x"),
        ("A.a:y", 3, "has no activity 'y'"),
        ("A.a:x", -1, "must be a number >= 0"),
        ("A.a:x", "geometric(1,2)", r"geometric\(MEAN\)"),
        ("A.a:x", "poisson(3)", r"got 'poisson\(3\)'"),
        ("A.a:x", "empirical()", "must be a number"),
        ("A.a:x", "constant(1.5)", "a whole number"),
        ("A.a:x", 1e9, "at most 100000 copies"),
    ],
)
def test_senseless_widths_are_refused(place: str, asked: float | str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        with_width(_calling(_fan()), place, asked)


@pytest.mark.parametrize(
    ("how", "label"),
    [
        ({}, f"∥ {TIMES} ~3"),
        ({"limit": 4}, f"∥ {TIMES} ~3, 4 at once"),
        ({"first": 1}, f"∥ {TIMES} ~3, waits for 1"),
    ],
)
def test_pictures_say_how_wide_they_are(how: dict[str, int], label: str) -> None:
    assert label in draw(_calling(_fan(**how)))
