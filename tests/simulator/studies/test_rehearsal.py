"""Rehearsals show what load runs show: their starts, their window, their figures."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sim_models import act, entry, exp

from mup.errors import SimulationError, UsageError
from mup.lqn import Constant, Distribution, Exponential, Model, Processor, Task
from mup.workload.starts import start_share
from simulator import simulate
from simulator.studies.rehearsal import cycle_seconds, rehearse, transient_seconds
from simulator.studies.saturation import saturation

WARMUP, WINDOW = 4.0, 10.0


def shop(
    clients: int, think: Distribution, work: Distribution, *, threads: float = 1, steps: int = 1
) -> Model:
    """Clients that think and visit a service, once per step."""
    visits = [act(f"ask{k}", calls="S./s/") for k in range(steps)]
    return Model(
        name="shop",
        processors=(Processor(name="host", cores=64),),
        tasks=(
            Task(
                name="U", role="reference", threads=clients, think=think, entries=(entry("cycle", *visits),)
            ),
            Task(name="S", threads=threads, processor="host", entries=(entry("/s/", act("w", work)),)),
        ),
    )


def test_clients_come_and_count_as_in_a_measured_load() -> None:
    """Without any waiting every figure of one run follows from the starts the load driver draws."""
    model = shop(12, Constant(1.5), Constant(0.25), threads=100)
    found = rehearse(model, seconds=WINDOW, warmup=WARMUP, seed=7, workers=1)
    begun, completed = [], []
    for seed in range(7, 7 + found.repeats):
        comes = [WARMUP * start_share(seed, client) for client in range(12)]
        moments = [at + 1.75 * k for at in comes for k in range(20)]
        begun.append(sum(WARMUP <= at < WARMUP + WINDOW for at in moments))
        completed.append(sum(WARMUP <= at + 1.75 < WARMUP + WINDOW for at in moments))
    assert found.response_time.mean == pytest.approx(0.25)
    assert found.cycle_time.mean == pytest.approx(1.75)
    assert found.throughput.mean == pytest.approx(sum(completed) / found.repeats / WINDOW)
    assert found.utilization["S"].mean == pytest.approx(found.processors["host"].mean * 64 / 100)
    assert sum(begun) > 0


@pytest.mark.slow
def test_a_long_window_shows_the_state_of_rest() -> None:
    """With random think times a rehearsal of a late window agrees with a simulation, within both intervals."""
    model = shop(12, Exponential(1.0), exp(0.1))
    rest = simulate(model, precision=0.01)
    found = rehearse(model, seconds=100.0, warmup=20.0)
    for one, other in (
        (found.response_time, rest.cycle.response_time),
        (found.throughput, rest.cycle.throughput),
        (found.utilization["S"], rest.tasks["S"].utilization),
    ):
        assert other is not None
        assert abs(one.mean - other.mean) <= 1.5 * (one.ci95 + other.ci95)
        assert one.ci95 > 0
    single = found.of_one_run(found.response_time)
    assert single.ci95 > 2 * found.response_time.ci95


def test_the_same_seed_gives_the_same_figures_with_any_number_of_workers() -> None:
    """Repeats are put together in their order, not in that of their ends."""
    model = shop(6, Constant(1.0), exp(0.1))
    assert rehearse(model, seconds=5, workers=1, seed=3) == rehearse(model, seconds=5, workers=3, seed=3)
    assert rehearse(model, seconds=5, seed=3) != rehearse(model, seconds=5, seed=4)


def test_the_length_of_a_cycle_without_waiting() -> None:
    """Think time and work, whatever the number of clients."""
    assert cycle_seconds(shop(500, Constant(1.5), Constant(0.25))) == pytest.approx(1.75)


def test_a_full_system_has_cycles_in_every_window() -> None:
    """100 clients of a service of 0.1 s: cycles take 10 s, and begin in a window of 2 s all the same."""
    model = shop(100, Constant(0.5), Constant(0.1))
    assert transient_seconds(model) == pytest.approx(10.0, rel=0.15)
    found = rehearse(model, seconds=2.0, precision=0.05)
    assert found.throughput.mean == pytest.approx(10.0, rel=0.02)
    assert found.cycle_time.mean == pytest.approx(10.0, rel=0.1)


def test_a_full_system_of_many_calls_has_cycles_in_every_window() -> None:
    """100 clients ask a service of 0.05 s five times: cycles take 25 s, though all may end within 5 s."""
    model = shop(100, Constant(0.5), Constant(0.05), steps=5)
    assert transient_seconds(model) == pytest.approx(25.0, rel=0.1)
    found = rehearse(model, seconds=2.0, precision=0.05)
    assert found.cycle_time.mean == pytest.approx(25.0, rel=0.1)


def test_cycles_may_be_much_longer_than_the_window() -> None:
    """Of 1 client with cycles of 20.25 s one run in 20 sees a cycle begin in its second; there are more runs."""
    model = shop(1, Constant(20.0), Constant(0.25))
    begins = [20.25 * start_share(3 + k, 0) < 1 for k in range(128)]
    assert not any(begins[:8])
    found = rehearse(model, seconds=1.0, precision=0.5, seed=3, workers=1)
    assert found.repeats > 8
    assert any(begins[: found.repeats])
    assert found.response_time.mean == pytest.approx(0.25)


def test_a_warm_up_in_which_no_cycle_ends_is_named() -> None:
    """All clients have come before the window, and none is through with the first cycle within it."""
    model = shop(100, Constant(0.5), Constant(0.05), steps=5)
    with pytest.raises(SimulationError, match=r"window of 2 s after a warm-up of 0\.75 s"):
        rehearse(model, seconds=2.0, warmup=0.75)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seconds": 0.0}, "window must be"),
        ({"warmup": -1.0}, "warm-up must be"),
        ({"precision": 1.0}, "precision must be"),
    ],
    ids=["window", "warmup", "precision"],
)
def test_wrong_arguments_are_refused(arguments: dict[str, float], message: str) -> None:
    """With the value in the message."""
    with pytest.raises(UsageError, match=message):
        rehearse(shop(1, Constant(1.0), Constant(0.1)), **arguments)  # type: ignore[arg-type]


def test_only_clients_are_rehearsed() -> None:
    """Arrivals have no cycles that clients begin."""
    model = shop(1, Constant(1.0), Constant(0.1))
    users = model.task("U")
    cycle = replace(users.entries[0], arrivals=Exponential(1.0))
    open_model = model.with_task(replace(users, threads=float("inf"), think=None, entries=(cycle,)))
    with pytest.raises(UsageError, match="one kind of clients"):
        rehearse(open_model)


def test_a_cycle_of_many_steps_does_not_hide_what_saturates() -> None:
    """300 steps per cycle and a long think time: a short simulation still sees whole cycles."""
    found = saturation(shop(1, Constant(30.0), Constant(0.001), steps=300))
    assert (found.resource, found.confirmed) == ("task S", True)
    assert found.throughput == pytest.approx(1 / 0.3, rel=0.03)
