"""Precision may end a run under open load only after the time its fullest queue takes to forget its beginning."""

from __future__ import annotations

import math

import pytest
from sim_models import act, clients, entry, exp, model, ps, service

from mup.lqn import Activity, Call, Constant, Entry, Exponential, Model, Task
from simulator import simulate
from simulator.api import compiled
from simulator.figures.relaxation import RELAXATIONS, least_seconds

SERVICE = 0.1


def arrivals(rate: float, target: str) -> Task:
    """Requests from outside."""
    name, of = target.split(".")
    ask = Activity(name="ask", demand=Constant(0.0), delay=Constant(0.0), calls=(Call(task=name, entry=of),))
    cycle = Entry(name="cycle", start="ask", activities=(ask,), arrivals=Exponential(1 / rate))
    return Task(name="U", role="reference", threads=math.inf, entries=(cycle,))


def threads_queue(utilization: float, threads: int = 1) -> Model:
    """M/M/c of threads that need no processor."""
    load = arrivals(utilization * threads / SERVICE, "A.a")
    return model(load, service("A", entry("a", act("w", delay=exp(SERVICE))), threads=threads))


def processor_queue(utilization: float, speed: float = 1.0) -> Model:
    """M/M/1 of a processor."""
    load = arrivals(utilization * speed / SERVICE, "A.a")
    served = service("A", entry("a", act("w", exp(SERVICE))), processor="cpu")
    return model(load, served, processors=(ps(speed=speed),))


def relaxation(utilization: float) -> float:
    """Of M/M/1, in seconds."""
    return SERVICE / (1 - math.sqrt(utilization)) ** 2


@pytest.mark.parametrize("utilization", [0.5, 0.95])
def test_threads_and_processors_relax_like_one_queue(utilization: float) -> None:
    """Whatever it is that serves, the time is that of M/M/1."""
    expected = RELAXATIONS * relaxation(utilization)
    assert least_seconds(compiled(threads_queue(utilization))) == pytest.approx(expected)
    assert least_seconds(compiled(processor_queue(utilization))) == pytest.approx(expected)


def test_faster_and_more_servers_relax_sooner() -> None:
    """At equal utilization, twice the speed takes half the time, and four servers a quarter."""
    alone = least_seconds(compiled(threads_queue(0.8)))
    assert least_seconds(compiled(threads_queue(0.8, threads=4))) == pytest.approx(alone / 4)
    assert least_seconds(compiled(processor_queue(0.8, speed=2.0))) == pytest.approx(alone / 2)


def test_clients_need_no_least_time() -> None:
    """Their number bounds the queue."""
    closed = model(clients(10, exp(1.0), "A.a"), service("A", entry("a", act("w", exp(0.1))), threads=1))
    assert least_seconds(compiled(closed)) == 0


@pytest.mark.parametrize("seed", [13, 106, 219])
def test_runs_near_saturation_do_not_end_by_luck(seed: int) -> None:
    """Ended by precision alone, these seeds stop after 2444 to 4874 steps, 190 to 270 % above the exact mean."""
    model_ = threads_queue(0.95)
    result = simulate(model_, precision=0.1, seed=seed)
    assert result.simulated_seconds >= least_seconds(compiled(model_))
    assert result.cycle.response_time.mean == pytest.approx(SERVICE / (1 - 0.95), rel=0.1)


def test_a_horizon_ends_a_run_sooner() -> None:
    """With both, the first of the two ends it, and the result says when precision was not yet to be believed."""
    result = simulate(threads_queue(0.95), precision=0.5, horizon=2000.0)
    assert result.simulated_seconds == pytest.approx(2000.0)
