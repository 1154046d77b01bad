"""Fan-outs in engines and estimates: copies of a branch that run in parallel, a random number of them."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from engine_comparison import assert_engines_agree
from random_models import random_model, with_setups
from repeating import repeats_after
from sim_models import act, clients, entry, exp, fan_out, fork, join, model, ps, service

from mup.errors import ModelError, UsageError
from mup.lqn import (
    Constant,
    Distribution,
    Empirical,
    Entry,
    Geometric,
    Model,
    Precedence,
    Processor,
    Task,
)
from mup.lqn.lowered import FanOut
from simulator import simulate
from simulator.analytic import estimate
from simulator.analytic.candidates.estimator import Estimator
from simulator.analytic.entries.entry_times import fanned
from simulator.fluid import fluid

WIDTHS = (Constant(0), Constant(1), Constant(3), Geometric(2.5), Empirical((0, 0, 2, 7)))
HOW: tuple[dict[str, int], ...] = ({}, {"first": 0}, {"first": 1}, {"first": 3}, {"limit": 1}, {"limit": 2})


def _waiting(width: Distribution, time: Distribution, **how: int) -> Model:
    """A client that does nothing but fan out, over branches that never meet."""
    body = entry("a", act("s"), act("x", delay=time), act("e"), arcs=(fan_out("s", "x", "e", width, **how),))
    return model(clients(1, exp(1.0), "A.a"), service("A", body))


def _response(tested: Model, horizon: float = 4000.0) -> float:
    found = simulate(tested, seed=1, horizon=horizon).entries["A.a"].response_time
    assert found is not None
    return found.mean


def _harmonic(n: int, first: int | None = None) -> float:
    """Mean of the largest (the k-th) of n exponential times of mean 1."""
    k = n if first is None else min(first, n)
    return math.fsum(1 / (n - i) for i in range(k))


# Engines


@pytest.mark.parametrize("how", HOW, ids=str)
@pytest.mark.parametrize("width", WIDTHS, ids=repr)
def test_engines_agree_bit_for_bit(width: Distribution, how: dict[str, int]) -> None:
    """With branches that fork, join, loop and call; events at the same moments, and not."""
    for times, discipline in ((Constant(0.25), "ps"), (exp(0.2), "cores")):
        body = entry(
            "a",
            act("s", times), act("x", times, calls="B.b"), act("y1", calls="B.b"), act("y2", times),
            act("z", times), act("l", times), act("f", times), act("e", times),
            arcs=(
                fan_out("s", "x", "e", width, **how), fork("x", "y1", "y2"), join("z", "y1", "y2"),
                Precedence(pre=("z",), post=("l", "f"), fork="loop", counts=(Empirical((0, 2)),)),
            ),
        )  # fmt: skip
        assert_engines_agree(
            model(
                clients(4, times, "A.a"),
                service("A", body, threads=2, replicas=2, processor="cpu"),
                service("B", entry("b", act("w", times)), threads=2, processor="cpu"),
                processors=(Processor(name="cpu", cores=2, discipline=discipline),),  # type: ignore[arg-type]
            ),
            seed=3,
            events=300,
        )


def test_engines_agree_on_fan_outs_in_fan_outs_and_in_scenarios() -> None:
    inner = fan_out("x", "y", "z", Geometric(1.5), limit=2)
    for outer in (fan_out("s", "x", "e", Geometric(2.0)), fan_out("s", "x", None, Empirical((0, 3)))):
        names = [act("s"), act("x", exp(0.1)), act("y", exp(0.1), calls="B.b"), act("z")]
        names += [act("e", exp(0.1))] if outer.continuation else []
        assert_engines_agree(
            model(
                clients(3, exp(0.5), body=entry("cycle", *names, arcs=(outer, inner))),
                service("B", entry("b", act("w", exp(0.2))), threads=2, processor="cpu"),
                processors=(ps(),),
            )
        )


@pytest.mark.parametrize("how", [{}, {"limit": 2}], ids=str)
def test_engines_agree_where_a_loop_repeats_copies_that_join(how: dict[str, int]) -> None:
    """Every round has copies of its own, whose branches meet within the copy."""
    body = entry(
        "a",
        act("s"), act("l", exp(0.1)), act("x"), act("y1", calls="B.b"), act("y2", exp(0.1)), act("z"),
        act("m"), act("e"),
        arcs=(
            Precedence(pre=("s",), post=("l", "e"), fork="loop", counts=(Empirical((0, 3)),)),
            fan_out("l", "x", "m", Geometric(2.0), **how), fork("x", "y1", "y2"), join("z", "y1", "y2"),
        ),
    )  # fmt: skip
    assert_engines_agree(
        model(
            clients(3, exp(0.5), "A.a"),
            service("A", body, threads=2, processor="cpu"),
            service("B", entry("b", act("w", exp(0.2))), threads=2, processor="cpu"),
            processors=(ps(),),
        ),
        seed=5,
        events=400,
    )


CHUNKS, CHUNK = 8, 6


@pytest.mark.slow
@pytest.mark.parametrize("chunk", repeats_after(2, range(CHUNKS)))
def test_engines_agree_on_random_models(chunk: int) -> None:
    fans = 0
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        tested = _with_fan_outs(with_setups(random_model(7000 + seed), seed), random.Random(seed))
        fans += sum(p.fork == "fan-out" for t in tested.tasks for e in t.entries for p in e.precedences)
        assert_engines_agree(tested, seed=seed)
    assert fans >= CHUNK, "these models do not test what they are for"


def _with_fan_outs(tested: Model, rng: random.Random) -> Model:
    """Turn some activities, and loops, into the branches of fan-outs, wherever that is valid."""
    for task in tested.tasks:
        for body in task.entries:
            for name in [a.name for a in body.activities if rng.random() < 0.4]:
                tested = _changed(
                    tested, task.name, _fanned(tested.task(task.name).entry(body.name), name, rng)
                )
            loops = [i for i, p in enumerate(body.precedences) if p.fork == "loop" and len(p.counts) == 1]
            for index in loops:
                now = tested.task(task.name).entry(body.name)
                arcs = list(now.precedences)
                arcs[index] = replace(arcs[index], fork="fan-out", **rng.choice(HOW))
                tested = _changed(tested, task.name, replace(now, precedences=tuple(arcs)))
    return tested


def _changed(tested: Model, task: str, body: Entry) -> Model:
    changed = tested.task(task)
    entries = tuple(body if e.name == body.name else e for e in changed.entries)
    try:
        return tested.with_task(replace(changed, entries=entries))
    except ModelError:
        return tested  # some activities must not be in a branch, such as those that reply


def _fanned(body: Entry, name: str, rng: random.Random) -> Entry:
    before, after = f"{name}_before", f"{name}_after"
    arcs = tuple(
        replace(
            arc,
            pre=tuple(after if n == name else n for n in arc.pre),
            post=tuple(before if n == name else n for n in arc.post),
        )
        for arc in body.precedences
    )
    width = rng.choice((Constant(2), Geometric(1.2), Empirical((0, 1, 3))))
    return replace(
        body,
        start=before if body.start == name else body.start,
        activities=(*body.activities, act(before), act(after)),
        precedences=(*arcs, fan_out(before, name, after, width, **rng.choice(HOW))),
    )


# Exact answers


@pytest.mark.parametrize(("n", "first"), [(1, None), (4, None), (4, 1), (4, 3), (2, 5), (3, 0)])
def test_order_statistics_of_exponential_times(n: int, first: int | None) -> None:
    how = {} if first is None else {"first": first}
    tested = _waiting(Constant(n), exp(1.0), **how)
    assert _response(tested) == pytest.approx(_harmonic(n, first), rel=0.05, abs=1e-9)
    assert estimate(tested).entries["A.a"][1] == pytest.approx(_harmonic(n, first), rel=1e-3, abs=1e-9)


@pytest.mark.parametrize("how", [{}, {"first": 2}, {"limit": 3}], ids=str)
def test_random_widths_of_exponential_times(how: dict[str, int]) -> None:
    """Of W > L in turns, W - L begin at the pace of L servers; then L are waited for."""
    limit, first = how.get("limit", 99), how.get("first")

    def exact(n: int) -> float:
        return max(n - limit, 0) / limit + _harmonic(min(n, limit), first)

    ratio = 2.5 / 3.5
    for width, expected in (
        (Empirical((0, 0, 2, 7)), (exact(0) * 2 + exact(2) + exact(7)) / 4),
        (Geometric(2.5), math.fsum((1 - ratio) * ratio**n * exact(n) for n in range(200))),
    ):
        tested = _waiting(width, exp(1.0), **how)
        assert _response(tested) == pytest.approx(expected, rel=0.06)
        assert estimate(tested).entries["A.a"][1] == pytest.approx(expected, rel=2e-3)


@pytest.mark.parametrize(
    ("n", "limit", "expected"), [(4, 2, 2.0), (5, 2, 3.0), (3, 9, 1.0), (4, 1, 4.0), (0, 3, 0.0)]
)
def test_a_limit_lets_copies_take_turns(n: int, limit: int, expected: float) -> None:
    tested = _waiting(Constant(n), Constant(1.0), limit=limit)
    assert _response(tested, 100.0) == pytest.approx(expected)
    assert estimate(tested).entries["A.a"][1] == pytest.approx(expected)


def test_what_is_not_waited_for_runs_on() -> None:
    """The thread is free then; with ``waits`` it is held until the last copy has ended."""
    tested = _waiting(Constant(3), Constant(2.0), first=0)
    task = tested.task("A")
    assert _response(tested, 200.0) == pytest.approx(0.0)
    held = tested.with_task(replace(task, entries=(replace(task.entries[0], waits=True),)))
    assert _response(held, 200.0) == pytest.approx(2.0)
    assert estimate(held).entries["A.a"][1] == pytest.approx(2.0)


def test_its_join_is_among_the_results() -> None:
    found = simulate(_waiting(Constant(3), Constant(2.0)), seed=1, horizon=500.0).joins
    assert found["A.a:x"].delay.mean == pytest.approx(2.0)


# Estimates


def _meeting(fan: bool, first: int | None, clients_: int, cores: int) -> Model:
    """Three copies that meet at a processor, spelt out or not."""
    copies = [act(f"x{i}", exp(0.002), calls="B.b") for i in range(3)]
    if fan:
        how = {} if first is None else {"first": first}
        body = entry(
            "a", act("s", exp(0.01)), copies[0], act("e", exp(0.01)),
            arcs=(fan_out("s", "x0", "e", Constant(3), **how),),
        )  # fmt: skip
    else:
        met = Precedence(pre=("x0", "x1", "x2"), post=("m",), join="and", quorum=first)
        body = entry(
            "a", act("s", exp(0.01)), act("o"), *copies, act("m"), act("e", exp(0.01)),
            arcs=(fork("s", "o", "x0", "x1", "x2"), met, join("e", "o", "m")),
        )  # fmt: skip
    return model(
        clients(clients_, exp(0.5), "A.a"),
        service("A", body, threads=4, processor="ca"),
        service("B", entry("b", act("w", exp(0.04))), threads=4, processor="cb"),
        processors=(ps("ca"), ps("cb", cores=cores)),
    )


@pytest.mark.parametrize("cores", [1, 2, 4])
@pytest.mark.parametrize("clients_", [1, 6])
@pytest.mark.parametrize("first", [None, 1, 2])
def test_a_constant_width_is_as_many_branches(first: int | None, clients_: int, cores: int) -> None:
    """The estimate of copies that meet is that of a fork into as many branches, whose accuracy is known."""
    fan, spelt = (estimate(_meeting(fan, first, clients_, cores)) for fan in (True, False))
    assert fan.entries["A.a"][1] == pytest.approx(spelt.entries["A.a"][1], rel=1e-3)
    assert fan.cycle.throughput == pytest.approx(spelt.cycle.throughput, rel=1e-3)


def test_simulations_agree_with_as_many_branches() -> None:
    fan, spelt = (simulate(_meeting(fan, None, 6, 2), seed=1, horizon=3000.0) for fan in (True, False))
    times = [r.entries["A.a"].response_time for r in (fan, spelt)]
    assert times[0] is not None
    assert times[1] is not None
    assert times[0].mean == pytest.approx(times[1].mean, rel=0.03)


@pytest.mark.parametrize("width", [Geometric(2.5), Empirical((0, 0, 2, 7))], ids=repr)
@pytest.mark.parametrize("how", [{}, {"limit": 2}], ids=str)
def test_estimates_of_random_widths_are_near(width: Distribution, how: dict[str, int]) -> None:
    tested = _meeting(True, None, 6, 4)
    task = tested.task("A")
    arcs = (fan_out("s", "x0", "e", width, **how),)
    tested = tested.with_task(replace(task, entries=(replace(task.entries[0], precedences=arcs),)))
    assert estimate(tested).entries["A.a"][1] == pytest.approx(_response(tested, 2000.0), rel=0.15)


def test_many_estimates_of_one_structure_are_those_of_single_ones() -> None:
    """Compiled estimates have no fan-outs; such a model is estimated whole each time."""
    tested = _meeting(True, None, 6, 2)
    estimator = Estimator(tested)
    assert not estimator.takes(tested)
    assert estimator.at(()) == estimate(tested)


def test_moments_of_wide_fan_outs() -> None:
    """Of 1000 exponential times the mean of the last is H(1000), its variance nearly pi^2 / 6."""
    mean, variance = fanned((1.0, 1.0), _of(Constant(1000)))
    assert mean == pytest.approx(_harmonic(1000), rel=2e-3)
    assert variance == pytest.approx(math.pi**2 / 6, rel=0.02)
    wide, _ = fanned((1.0, 1.0), _of(Geometric(2000.0)))
    ratio = 2000 / 2001
    assert wide == pytest.approx(-math.log(1 - ratio), rel=0.02)  # of a logarithmic series


def _of(width: Distribution) -> FanOut:
    from mup.lqn.lowered import Repeated

    return FanOut(Repeated("x", width), None, None, None)


def test_the_fluid_model_refuses_them() -> None:
    with pytest.raises(UsageError, match="no meaning for a fan-out of random width"):
        fluid(_waiting(Constant(2), exp(1.0)))


def test_clients_may_fan_out() -> None:
    body = entry(
        "cycle", act("s"), act("x", calls="B.b"), act("e"), arcs=(fan_out("s", "x", "e", Constant(2)),)
    )
    user: Task = clients(1, exp(1.0), body=body)
    tested = model(user, service("B", entry("b", act("w", delay=exp(1.0)))))
    assert simulate(tested, seed=1, horizon=4000.0).cycle.response_time.mean == pytest.approx(1.5, rel=0.05)
    assert estimate(tested).cycle.response_time == pytest.approx(1.5, rel=1e-3)
