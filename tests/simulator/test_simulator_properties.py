"""Properties of every run of every model: generated models, short runs, no statistics."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sim_models import ZERO, act, choice, clients, entry, exp, fork, join, merge, model, service

from mup.errors import SimulationError
from mup.lqn import (
    Activity,
    Constant,
    Distribution,
    Empirical,
    Entry,
    Erlang,
    Exponential,
    Front,
    Model,
    Precedence,
    Processor,
    Uniform,
    model_from_json,
    model_to_json,
)
from simulator import Figure, Result, simulate, simulate_many
from simulator.figures.runs.single import bin_width as _bin_width
from simulator.program import compile_model

times: st.SearchStrategy[Distribution] = st.one_of(
    st.just(ZERO),
    st.sampled_from([0.01, 0.05, 0.3]).map(Constant),
    st.sampled_from([0.01, 0.1]).map(Exponential),
    st.just(Erlang(0.1, 2)),
    st.just(Uniform(0.0, 0.2)),
    st.just(Empirical((0.0, 0.02, 0.2))),
)


@st.composite
def bodies(draw: st.DrawFn, name: str, callees: list[str]) -> Entry:
    """An entry that is a sequence, a fork and join, a choice, or overlapping forks; it may reply early."""

    def step(step_name: str, *, replies: bool = False) -> Activity:
        call = draw(st.sampled_from([*callees, ""])) if callees else ""
        return act(step_name, draw(times), delay=draw(times), calls=call, replies=replies)

    early = draw(st.booleans())
    shape = draw(st.sampled_from(["sequence", "fork", "choice", "overlap", "detached"]))
    arcs: tuple[Precedence, ...] | None = None
    if shape == "sequence":
        activities = [step("s"), step("t", replies=early), step("u")]
    elif shape == "fork":
        activities = [step("s"), step("x"), step("y"), step("t", replies=early), step("u")]
        arcs = (fork("s", "x", "y"), join("t", "x", "y"), Precedence(pre=("t",), post=("u",)))
    elif shape == "choice":
        activities = [step("s"), step("x", replies=early), step("y"), step("t")]
        arcs = (choice("s", (0.25, 0.75), "x", "y"), merge("t", "x", "y"))
    elif shape == "overlap":
        activities = [step(n) for n in ("s", "t", "u", "v", "w", "b", "c")]
        arcs = (fork("s", "t", "b"), fork("t", "u", "c"), join("v", "u", "b"), join("w", "v", "c"))
    else:
        activities = [step("s"), step("t"), step("x", replies=early)]
        arcs = (fork("s", "t", "x"),)
    return entry(name, *activities, arcs=arcs)


@st.composite
def models(draw: st.DrawFn) -> Model:
    """Clients above two layers of services, on processors of all kinds."""
    processors = (
        Processor(name="ps", cores=draw(st.integers(1, 3)), speed=draw(st.sampled_from([0.5, 1.0, 2.0]))),
        Processor(name="fcfs", cores=draw(st.integers(1, 2)), discipline="fcfs"),
        Processor(name="inf", discipline="infinite"),
    )
    place = st.sampled_from(["ps", "fcfs", "inf", None])
    pool = st.sampled_from([1, 2, 5, math.inf])
    front = st.sampled_from([None, Front(request=exp(0.01), reply=Constant(0.005))])
    low = service("B", draw(bodies("/b/", [])), draw(bodies("/c/", [])), threads=draw(pool),
                  replicas=draw(st.integers(1, 2)), processor=draw(place), front=draw(front))  # fmt: skip
    high = service("A", draw(bodies("/a/", ["B./b/", "B./c/"])), threads=draw(pool), processor=draw(place),
                   replicas=draw(st.integers(1, 2)), front=draw(front))  # fmt: skip
    reader = clients(draw(st.integers(1, 8)), Exponential(draw(st.sampled_from([0.05, 0.5]))), "A./a/")
    writer = clients(2, Constant(0.3), "B./b/", name="V")
    crowd = (reader, writer) if draw(st.booleans()) else (reader,)
    return model(*crowd, high, low, processors=processors)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=True)
@given(tested=models(), seed=st.integers(0, 2**64))
def test_every_run_obeys_the_laws(tested: Model, seed: int) -> None:
    """Utilizations are in [0, 1], identities hold (else simulate raises), percentiles are ordered."""
    try:
        result = simulate(tested, seed=seed, horizon=20, max_events=20_000)
    except SimulationError as error:
        # A slow model may complete no cycle in so short a run; nothing else is excused.
        if "no client completed a cycle" in str(error):
            return
        raise
    for figure in _figures(result):
        assert math.isfinite(figure.mean)
        assert figure.ci95 >= 0
    for task in result.tasks.values():
        assert task.utilization is None or -1e-9 <= task.utilization.mean <= 1 + 1e-9
    for processor in result.processors.values():
        assert -1e-9 <= processor.utilization.mean <= 1 + 1e-9
    response = result.cycle.response_time
    assert response.p50.mean <= response.p90.mean <= response.p95.mean <= response.p99.mean
    assert response.mean <= result.cycle.cycle_time.mean + 1e-9


@pytest.mark.slow
@settings(max_examples=15, deadline=None, derandomize=True)
@given(tested=models(), seed=st.integers(0, 1000))
def test_same_seed_same_result(tested: Model, seed: int) -> None:
    """A run depends on nothing but model, seed and length."""
    assert simulate(tested, seed=seed, horizon=5) == simulate(tested, seed=seed, horizon=5)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(tested=models())
def test_model_survives_its_file(tested: Model) -> None:
    """load(save(model)) == model."""
    assert model_from_json(model_to_json(tested)) == tested


def _figures(result: Result) -> list[Figure]:
    found = [result.cycle.throughput, result.cycle.response_time, result.cycle.cycle_time]
    for task in result.tasks.values():
        found += [f for f in (task.throughput, task.utilization, task.busy, task.queue) if f is not None]
    for served in result.entries.values():
        found += [f for f in (served.throughput, served.response_time) if f is not None]
    return found


@pytest.mark.slow
def test_parallel_scenarios_equal_single_ones() -> None:
    """Results do not depend on the number of workers or on what else is simulated."""
    tested = [
        model(clients(n, exp(0.1), "A.a"), service("A", entry("a", act("w", exp(0.05))), threads=1))
        for n in (1, 3, 3, 5)
    ]
    calls: list[tuple[int, int]] = []
    together = simulate_many(
        tested, precision=0.05, seed=7, workers=2, progress=lambda a, b: calls.append((a, b))
    )
    assert together == [simulate(m, precision=0.05, seed=7) for m in tested]
    assert calls == [(1, 3), (2, 3), (3, 3)]


def test_common_random_numbers() -> None:
    """Clients keep their random numbers when others join or an unrelated part changes."""
    work = entry("a", act("w", exp(0.05)))
    few = model(clients(1, exp(0.1), "A.a"), service("A", work))
    faster = model(
        clients(1, exp(0.1), "A.a"),
        service("A", work, processor="cpu"),
        processors=(Processor(name="cpu", discipline="infinite", speed=2.0),),
    )
    slow, fast = simulate(few, horizon=500), simulate(faster, horizon=500)
    ratio = fast.cycle.response_time.mean / slow.cycle.response_time.mean
    assert ratio == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("horizon", [0.3, 7.77, 123.4, 1e4])
def test_runs_end_exactly_at_the_horizon(horizon: float) -> None:
    """Bins are cut such that the last one ends at the horizon, however often they are merged."""
    tested = model(clients(1, Constant(0.01), "A.a"), service("A", entry("a", act("w", Constant(0.01)))))
    width = _bin_width(compile_model(tested), horizon)
    assert horizon / width == pytest.approx(round(horizon / width))
    if horizon < 200:
        assert simulate(tested, horizon=horizon).simulated_seconds == pytest.approx(horizon, rel=1e-12)
