"""The analytic estimate of a real application, below and far beyond saturation."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from repeating import repeats_after

from mup.lqn import Exponential, Model
from mup.lqn.edits import with_clients, with_replicas
from mup.lqn.files import read_model
from simulator import Result, simulate
from simulator.analytic import estimate

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
EVENTS = 2_500_000
"""The intervals of throughputs are some 1.5 % wide then; estimates may be 5 % off."""
NEAR = "near to saturation"
CONVOYS = "always think equally long"


def application(name: str) -> Model:
    return read_model(str(EXAMPLES / name / "model.json"))


def thinking_at_random(model: Model) -> Model:
    """The same clients, with exponential think times."""
    (clients,) = model.reference_tasks
    (cycle,) = clients.entries
    activities = [
        replace(a, delay=Exponential(a.delay.mean)) if a.kind == "think" and a.delay is not None else a
        for a in cycle.activities
    ]
    return model.with_task(replace(clients, entries=(replace(cycle, activities=tuple(activities)),)))


@cache
def teastore(clients: int) -> tuple[Model, Result]:
    """The application with random think times, and what was simulated of it."""
    model = with_clients(thinking_at_random(application("teastore")), clients)
    return model, simulate(model, precision=0.005, max_events=EVENTS)


@pytest.mark.parametrize("clients", repeats_after(1, [256, 64, 16]))
def test_teastore_with_random_think_times(clients: int) -> None:
    """Throughput within 5 % of the simulation: web, full from 64 clients on, waits for three layers below."""
    model, seen = teastore(clients)
    got = estimate(model)
    assert got.converged
    assert not any(CONVOYS in warning for warning in got.warnings)
    assert got.cycle.throughput == pytest.approx(seen.cycle.throughput.mean, rel=0.05)


@pytest.mark.parametrize("clients", [256])
def test_teastore_far_beyond_saturation(clients: int) -> None:
    """Throughput and response time within 5 %."""
    model, seen = teastore(clients)
    got = estimate(model)
    assert got.cycle.throughput == pytest.approx(seen.cycle.throughput.mean, rel=0.05)
    assert got.cycle.response_time == pytest.approx(seen.cycle.response_time.mean, rel=0.05)


def test_convoys_are_not_seen_and_the_estimate_says_so() -> None:
    """64 users who all think 1.5 s queue behind each other again and again; estimated, they wait a third."""
    model = with_clients(application("teastore"), 64)
    got, seen = estimate(model), simulate(model, precision=0.005, max_events=EVENTS)
    assert got.cycle.throughput > 1.1 * seen.cycle.throughput.mean
    assert got.cycle.response_time < 0.7 * seen.cycle.response_time.mean
    (warning,) = [warning for warning in got.warnings if CONVOYS in warning]
    assert "'TeaDrinker'" in warning
    assert "'web'" in warning


def test_bursts_leave_a_full_worker_idle() -> None:
    """Twenty pages of a category in a row, and then all think at once, however many there are."""
    model = with_clients(application("teastore"), 256)
    got, seen = estimate(model), simulate(model, precision=0.02, max_events=4 * EVENTS)
    assert seen.tasks["web"].utilization.mean < 0.98
    assert got.cycle.throughput == pytest.approx(seen.cycle.throughput.mean, rel=0.15)
    assert any(CONVOYS in warning for warning in got.warnings)


@pytest.mark.parametrize(("clients", "doubted"), [(1, False), (8, False), (32, True), (256, True)])
def test_constant_think_times_are_doubted_where_clients_meet(clients: int, doubted: bool) -> None:
    """A single user meets no other, and few of them hardly any."""
    got = estimate(with_clients(application("teastore"), clients))
    assert any(CONVOYS in warning for warning in got.warnings) == doubted


def test_hundreds_of_requests_at_many_replicas() -> None:
    """512 teachers and 16 replicas of a gateway: numbers of requests no product of weights can tell apart."""
    model = with_replicas(with_clients(thinking_at_random(application("tms")), 512), "cms", 16)
    got, seen = estimate(model), simulate(model, precision=0.01, max_events=EVENTS)
    assert got.cycle.throughput == pytest.approx(seen.cycle.throughput.mean, rel=0.05)


def test_replicas_in_front_of_a_nearly_full_service() -> None:
    """Two replicas of main keep auth busy: the estimate is some 10 % off, and says so."""
    model = with_replicas(with_clients(thinking_at_random(application("acmeair")), 128), "main", 2)
    got, seen = estimate(model), simulate(model, precision=0.005, max_events=EVENTS)
    assert got.cycle.throughput == pytest.approx(seen.cycle.throughput.mean, rel=0.15)
    assert any("'auth' and 'main', which waits for it, are both nearly full" in w for w in got.warnings)


@pytest.mark.parametrize(("least", "doubted"), [(0.2, False), (0.9, True)])
def test_response_times_near_saturation_are_doubted(least: float, doubted: bool) -> None:
    """Not far below it, and not far beyond it."""
    model = thinking_at_random(application("acmeair"))
    loads = range(8, 512, 4)
    first = bisect_left(
        loads, least, key=lambda clients: estimate(with_clients(model, clients)).tasks["main"].utilization
    )
    got = estimate(with_clients(model, loads[first]))
    assert any(NEAR in warning for warning in got.warnings) == doubted
    beyond = estimate(with_clients(model, 256))
    assert not any(NEAR in warning for warning in beyond.warnings)


@pytest.mark.parametrize("clients", repeats_after(1, [8, 16, 32]))
def test_pages_and_their_files(clients: int) -> None:
    """A client that loads the files of a page returns to web at once, and hardly waits for them."""
    model, seen = teastore(clients)
    got = estimate(model)
    assert got.cycle.response_time == pytest.approx(seen.cycle.response_time.mean, rel=0.08)
