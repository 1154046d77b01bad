"""Requests that have just begun are in the first stage of what they do, of alternatives by chance."""

from __future__ import annotations

import numpy as np
import pytest

from mup.lqn import (
    Activity,
    Call,
    Constant,
    Entry,
    Erlang,
    Hyperexponential,
    Model,
    Precedence,
    Processor,
    Task,
)
from mup.lqn.distributions import Distribution, Exponential
from simulator.networks.begun_stages import BegunStages, begun_stages
from simulator.networks.inlined import inline

NOTHING = Constant(0.0)


def model(think: Distribution, work: Distribution) -> Model:
    """Users think and call B."""
    cycle = Entry(
        name="cycle",
        start="think",
        activities=(
            Activity(name="think", demand=think, delay=NOTHING),
            Activity(name="ask", demand=NOTHING, delay=NOTHING, calls=(Call(task="B", entry="serve"),)),
        ),
        precedences=(Precedence(pre=("think",), post=("ask",)),),
    )
    serve = Entry(name="serve", start="work", activities=(Activity(name="work", demand=work, delay=NOTHING),))
    return Model(
        name="begun",
        processors=(Processor(name="P", cores=20),),
        tasks=(
            Task(name="A", role="reference", threads=20, entries=(cycle,)),
            Task(name="B", threads=3, processor="P", entries=(serve,)),
        ),
    )


def test_first_stages() -> None:
    """One of two stages of an Erlang time is not begun; both alternatives are, and waiting has no stages."""
    plain = inline(model(Exponential(1.0), Exponential(0.2)))
    work = Hyperexponential((0.75, 0.25), (0.1, 0.5))
    staged = inline(model(Erlang(1.0, 2), work), stages=2)
    odds = begun_stages(plain, staged)
    assert odds.shape == (3, 5)
    assert odds.sum(axis=1) == pytest.approx(1)
    assert sorted(np.round(odds[odds > 0], 9).tolist()) == [0.25, 0.75, 1.0, 1.0]


def test_together_draws_have_the_shares_they_should() -> None:
    odds = np.array([[0.75, 0.25, 0.0], [0.0, 0.0, 1.0]])
    begun = BegunStages(np.array([[7.0, 2.0], [0.0, 5.0]]), odds, seed=3)
    drawn = begun.drawn(10, 0)
    assert drawn.shape == (10, 2, 3)
    assert (drawn.sum(axis=2) == [9, 5]).all()
    assert np.abs(drawn.sum(axis=0) - [[52.5, 17.5, 20], [0, 0, 50]]).max() < 1
    assert len(np.unique(drawn[:, 0, 0])) > 1
    assert not np.array_equal(drawn, begun.drawn(10, 1))
    assert np.array_equal(drawn[:, 1:], begun.select(np.array([1])).drawn(10, 0))
