"""A thread that ends with its reply is held until the front has sent that, where a model says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from engine_comparison import assert_engines_agree
from random_models import random_model, with_setups
from sim_models import act, agrees, clients, entry, exp, fork, join, model, seq, service

from mup.lqn import Constant, Entry, Front, Model
from mup.lqn.lowered import Graph, Lowered, held_by_front
from simulator import simulate
from simulator.analytic import estimate
from simulator.fluid import fluid

WORK, SENDING, BEHIND = 1.0, 0.5, 0.25
REPLYING = entry("a", act("w", exp(WORK), replies=True))
GOING_ON = entry("a", act("w", exp(WORK), replies=True), act("later", exp(BEHIND)))
CLEARING_UP = entry("a", act("w", exp(WORK), replies=True), act("after", exp(BEHIND), kind="after"))


def one_thread(served: Entry, *, holds: bool, load: int = 30) -> Model:
    """One thread without a limit on cores: what it is held for is all that limits the throughput."""
    front = Front(request=Constant(0.0), reply=Constant(SENDING), holds=holds)
    return model(clients(load, exp(1.0), "A.a"), service("A", served, threads=1, front=front))


def _simulated(tested: Model) -> float:
    return simulate(tested, precision=0.005, seed=5).cycle.throughput.mean


def _estimated(tested: Model) -> float | None:
    return estimate(tested).cycle.throughput


def _fluid(tested: Model) -> float | None:
    return fluid(tested).cycle["throughput"]


OFF = {_estimated: 0.09}
"""How far figures of replies may be off that call, the front or another task, and leave work behind: the estimate
of such second phases is no better."""


@pytest.mark.parametrize("engine", [_simulated, _estimated, _fluid], ids=["simulation", "estimate", "fluid"])
@pytest.mark.parametrize(
    ("served", "holds", "seconds"),
    [
        (REPLYING, True, WORK + SENDING),
        (REPLYING, False, WORK),
        (CLEARING_UP, True, WORK + SENDING + BEHIND),
        (CLEARING_UP, False, WORK + BEHIND),
        (GOING_ON, True, WORK + BEHIND),
        (GOING_ON, False, WORK + BEHIND),
    ],
    ids=["held", "not held", "clears up", "clears up at once", "goes on", "goes on at once"],
)
def test_a_full_pool_serves_by_what_its_thread_is_held_for(
    engine: Callable[[Model], float], served: Entry, holds: bool, seconds: float
) -> None:
    """One that works behind its reply hands that over and goes on: the front sends it meanwhile."""
    within = OFF.get(engine, 0.02) if holds and served is CLEARING_UP else 0.02
    assert engine(one_thread(served, holds=holds)) == pytest.approx(1 / seconds, rel=within)


def test_a_caller_waits_for_as_long_either_way() -> None:
    """With a thread for everybody it makes no difference when it is free."""
    for holds in (True, False):
        tested = one_thread(REPLYING, holds=holds, load=1)
        result = simulate(tested, precision=0.01, seed=2)
        assert agrees(result.cycle.response_time, WORK + SENDING, within=0.02)
        assert estimate(tested).cycle.response_time == pytest.approx(WORK + SENDING, rel=1e-6)


def test_the_time_is_in_the_utilization_of_the_thread() -> None:
    """It is full although the front sends a third of the time."""
    tested = one_thread(REPLYING, holds=True)
    assert agrees(simulate(tested, precision=0.01, seed=2).tasks["A"].utilization, 1.0, within=0.01)
    assert estimate(tested).tasks["A"].utilization == pytest.approx(1.0, abs=0.01)


def test_which_replies_hold_a_thread() -> None:
    """Those behind which its flow is over, if that is so of all of its entry."""
    beside = (fork("s", "x", "y"), join("e", "x", "y"))
    steps = (act("s"), act("x"), act("y"), act("e", replies=True))
    joined = entry("a", *steps, arcs=beside)
    loose = entry("a", act("s"), act("x", replies=True), act("y", detached=True), arcs=(fork("s", "x", "y"),))
    elsewhere = entry("a", act("s"), act("x"), act("y", replies=True), arcs=(fork("s", "x", "y"),))
    task = one_thread(REPLYING, holds=True).task("A")
    assert held_by_front(task, Graph(REPLYING)) == {"w"}
    assert held_by_front(task, Graph(joined)) == {"e"}
    assert held_by_front(task, Graph(loose)) == {"x"}
    assert held_by_front(task, Graph(CLEARING_UP)) == {"w"}
    calling = act("after", exp(BEHIND), kind="after", calls="B.b")
    assert not held_by_front(task, Graph(entry("a", act("w", exp(WORK), replies=True), calling)))
    assert not held_by_front(task, Graph(elsewhere))
    assert not held_by_front(task, Graph(GOING_ON))
    assert not held_by_front(task, Graph(entry("a", act("w", exp(WORK)), arcs=seq("w"))))
    assert not held_by_front(replace(task, front=None), Graph(REPLYING))


def held(tested: Model) -> Model:
    """Return a model all of whose fronts hold threads."""
    tasks = (
        t if t.front is None else replace(t, front=replace(t.front, holds=True), entries=_replying(t.entries))
        for t in tested.tasks
    )
    return replace(tested, tasks=tuple(tasks))


def _replying(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """Mark the reply of entries of one activity, which random models seldom do."""
    return tuple(
        replace(e, activities=(replace(e.activities[0], replies=True),)) if len(e.activities) == 1 else e
        for e in entries
    )


@pytest.mark.slow
@pytest.mark.parametrize("sleeping", [False, True], ids=["plain", "with set-up"])
def test_the_engines_agree_on_random_models(sleeping: bool) -> None:
    """Bit for bit, on models some of whose threads are held."""
    tested, seed = 0, 0
    while tested < 12:
        seed += 1
        candidate = held(random_model(seed))
        lowered = Lowered(candidate)
        if not any(
            held_by_front(t, lowered.graph(t.name, e.name)) for t in candidate.tasks for e in t.entries
        ):
            continue
        tested += 1
        assert_engines_agree(with_setups(candidate, seed) if sleeping else candidate, seed=seed)
