"""Fan-outs in lqnx: a choice between widths, each a fork of as many copies."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from mup.errors import ModelError
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
    Processor,
    Task,
)
from mup.lqn.lowered import Lowered
from mup.lqn.lqnx import load_lqnx, model_to_lqnx
from mup.lqn.lqnx.fan_outs import without_fan_outs
from mup.lqn.lqnx.losses import Losses
from simulator import simulate

NOTHING = Constant(0.0)
WORK = Exponential(0.1)


def _act(name: str, demand: Distribution | None = NOTHING, calls: str = "") -> Activity:
    made = (Call(task=calls, entry=calls.lower()),) if calls else ()
    return Activity(name=name, demand=demand, delay=NOTHING, calls=made)


def _model(
    width: Distribution | None, *arcs: Precedence, demand: Distribution | None = WORK, **how: int
) -> Model:
    fan = Precedence(pre=("s",), post=("x", "e"), fork="fan-out", counts=(width,), **how)
    names = sorted({name for arc in arcs for name in (*arc.pre, *arc.post)} - {"s", "x", "e"})
    body = Entry(
        name="a",
        start="s",
        activities=(_act("s"), _act("x", demand, "B"), *(_act(n, WORK) for n in names), _act("e")),
        precedences=(fan, *arcs),
    )
    return Model(
        name="m",
        processors=(Processor(name="pa", discipline="infinite", cores=math.inf), Processor(name="pb")),
        tasks=(
            Task(
                name="U", role="reference", threads=3, think=Exponential(1.0), processor="pa",
                entries=(Entry(name="u", start="go", activities=(_act("go", calls="A"),)),),
            ),
            Task(name="A", entries=(body,), processor="pa"),
            Task(
                name="B", threads=1, processor="pb",
                entries=(Entry(name="b", start="w", activities=(_act("w", WORK),)),),
            ),
        ),
    )  # fmt: skip


def _read(text: str, folder: Path) -> Model:
    file = folder / "m.lqnx"
    file.write_text(text, encoding="utf-8")
    return load_lqnx(file)


def _requests(model: Model) -> float:
    return Lowered(model).requests_per_cycle()["U", "u"].get(("B", "b"), 0.0)


@pytest.mark.parametrize("how", [{}, {"first": 0}, {"first": 1}, {"first": 2}], ids=str)
@pytest.mark.parametrize("width", [Constant(0), Constant(1), Constant(3), Empirical((0, 0, 2, 4))], ids=repr)
def test_what_is_written_asks_as_often(width: Distribution, how: dict[str, int], tmp_path: Path) -> None:
    """Read back, it is a choice with the probabilities of the widths, and as many requests come of it."""
    model = _model(width, **how)
    export = model_to_lqnx(model, approximate=bool(how))
    back = _read(export.text, tmp_path)
    assert not any(p.fork == "fan-out" for t in back.tasks for e in t.entries for p in e.precedences)
    assert _requests(back) == pytest.approx(_requests(model)) == width.mean
    assert any("written as a choice between its widths" in note for note in export.notes)


def test_a_geometric_width_is_cut_off_and_a_limit_is_lost(tmp_path: Path) -> None:
    geometric = _model(Geometric(1.5))
    with pytest.raises(ModelError, match="a width that is geometric; approximately: no wider than 19"):
        model_to_lqnx(geometric)
    export = model_to_lqnx(geometric, approximate=True)
    assert _requests(_read(export.text, tmp_path)) == pytest.approx(1.5, rel=1e-3)
    with pytest.raises(ModelError, match="at most 2 copies at once; approximately: all at once"):
        model_to_lqnx(_model(Constant(3), limit=2))


def test_one_that_is_too_wide_is_named() -> None:
    with pytest.raises(ModelError, match=r"entries\['a'\].*widths have 3000 activities together"):
        model_to_lqnx(_model(Constant(3000)))


def test_numbers_that_were_never_measured_are_named() -> None:
    with pytest.raises(ModelError, match=r"width of the fan-out behind 's'.*never measured"):
        model_to_lqnx(_model(None))
    with pytest.raises(ModelError, match=r"x#2.1.*never measured"):
        model_to_lqnx(_model(Constant(2), demand=None))


@pytest.mark.parametrize("how", [{}, {"first": 1}], ids=str)
def test_what_is_written_takes_as_long(how: dict[str, int]) -> None:
    """Branches that fork, choose, loop, and fan out again are copied whole."""
    arcs = (
        Precedence(pre=("x",), post=("f", "g"), fork="and"),
        Precedence(pre=("f", "g"), post=("h",), join="and"),
        Precedence(pre=("h",), post=("o", "p"), fork="or", probabilities=(0.5, 0.5)),
        Precedence(pre=("o",), post=("l",), fork="loop", counts=(Geometric(1.0),)),
        Precedence(pre=("p",), post=("q",), fork="fan-out", counts=(Empirical((0, 2)),)),
    )
    model = _model(Empirical((0, 1, 3)), *arcs, **how)
    losses = Losses(approximate=False, reached=set())
    spelt = without_fan_outs(model, losses)
    assert losses.problems == []
    assert _requests(spelt) == pytest.approx(_requests(model))
    times = [simulate(m, seed=1, horizon=4000.0).cycle.response_time.mean for m in (model, spelt)]
    assert times[0] == pytest.approx(times[1], rel=0.04)


def test_models_without_any_stay_as_they_are() -> None:
    model = _model(Constant(1))
    task = replace(model.task("A"), entries=(Entry(name="a", start="s", activities=(_act("s"),)),))
    plain = model.with_task(task)
    assert without_fan_outs(plain, Losses(approximate=False, reached=set())) is plain
