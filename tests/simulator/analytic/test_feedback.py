"""Requests that come back to a station at once, and their effect on waiting times."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sim_models import act, choice, clients, entry, exp, fork, join, merge, model, seq, service

from mup.lqn import Constant, Model
from simulator import simulate
from simulator.analytic import estimate
from simulator.analytic.entries.feedback import Feedback, FeedbackSearch
from simulator.analytic.layers import Layers


def feedback(found: Model, station: str) -> list[Feedback]:
    """Return what all requests of the clients add at a station."""
    layers = Layers.of(found)
    (root,) = layers.roots
    return [
        back
        for back in FeedbackSearch(layers).visits()[root]
        if layers.stations[back.station].name == f"tasks[{station!r}]"
    ]


def shop(*activities: object, arcs: object = None) -> Model:
    """Ten clients of a service with one thread."""
    body = entry("cycle", *activities, arcs=arcs)  # type: ignore[arg-type]
    page = entry("a", act("x", exp(0.02)))
    return model(clients(10, exp(1.0), body=body), service("A", page, threads=1))


def test_a_call_behind_another_one() -> None:
    """It returns at once, and the pause before it is its gap."""
    first, second = act("p", calls="A.a"), act("q", calls="A.a")
    (at_once,) = feedback(shop(first, second), "A")
    assert (at_once.times, at_once.gap, at_once.step) == (1.0, 0.0, "q")
    (later,) = feedback(shop(first, act("rest", delay=Constant(0.003)), second), "A")
    assert later.gap == pytest.approx(0.003)
    assert feedback(shop(first, act("rest", delay=Constant(2.0)), second), "A") == []


def test_waiting_for_an_answer_at_once() -> None:
    """A call of a branch, which a flow waits for after a moment of computing, is one of a sequence."""
    parts = [act("p", calls="A.a"), act("on", Constant(0.001)), act("q", calls="A.a"), act("r", calls="A.a")]
    arcs = (fork("p", "on", "q"), join("r", "on", "q"))
    found = feedback(shop(*parts, arcs=arcs), "A")
    assert [(back.times, back.gap, back.step) for back in found] == [(1.0, 0.0, "q"), (1.0, 0.0, "r")]


def test_what_is_waited_for_longer_is_a_gap() -> None:
    """The branch beside the call takes 0.1 s, the call 0.02."""
    parts = [act("p"), act("on", Constant(0.1)), act("q", calls="A.a"), act("r", calls="A.a")]
    (back,) = feedback(shop(*parts, arcs=(fork("p", "on", "q"), join("r", "on", "q"))), "A")
    assert back.gap == pytest.approx(0.08)


def test_ways_that_some_requests_take() -> None:
    """A quarter comes back after 0.01 s, a quarter after 0.03, the others not soon."""
    parts = [act("p", calls="A.a"), act("end")]
    ways = ("fast", "slow", "never")
    pauses = [act(name, delay=Constant(t)) for name, t in zip(ways, (0.01, 0.03, 5.0), strict=True)]
    again = [act(f"{name} q", calls="A.a") for name in ways]
    arcs = (choice("p", (0.25, 0.25, 0.5), *ways), *(seq(n, f"{n} q")[0] for n in ways))
    arcs += (merge("end", *(f"{name} q" for name in ways)),)
    (back,) = feedback(shop(*parts, *pauses, *again, arcs=arcs), "A")
    assert (back.times, back.gap) == pytest.approx((0.5, 0.02))


@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_the_unit_of_time_does_not_matter(factor: float) -> None:
    """A page whose files follow after pauses, with all times multiplied: so are the figures."""

    def page(unit: float) -> Model:
        files = [act(f"f{k}", delay=Constant(0.3 * unit), calls="A.file") for k in range(3)]
        body = entry("cycle", act("p", calls="A.page"), *files)
        pages = entry("page", act("x", exp(0.5 * unit))), entry("file", act("y", exp(0.4 * unit)))
        return model(clients(8, exp(10.0 * unit), body=body), service("A", *pages, threads=1))

    one, other = estimate(page(1.0)).cycle, estimate(page(factor)).cycle
    assert other.response_time == pytest.approx(factor * one.response_time, rel=1e-9)
    assert other.throughput == pytest.approx(one.throughput / factor, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("gap", [0.0, 0.002, 0.1])
def test_a_page_and_its_files(gap: float) -> None:
    """Seven small files behind a page, at once or with pauses: response times within 10 %."""
    files = [act(f"f{k}", delay=Constant(gap), calls="A.file") for k in range(7)]
    body = entry("cycle", act("p", calls="A.page"), *files)
    pages = entry("page", act("x", exp(0.05))), entry("file", act("y", exp(0.002)))
    found = model(clients(8, exp(1.0), body=body), service("A", *pages, threads=1))
    got, seen = estimate(found), simulate(found, precision=0.01)
    assert got.cycle.response_time == pytest.approx(seen.cycle.response_time.mean, rel=0.1)


@pytest.mark.slow
def test_same_model_same_estimate() -> None:
    """Which of several last activities counts does not depend on the seed of Python's hashes."""
    code = (
        "from random_models import random_model; from simulator.analytic import estimate;"
        "print(repr(estimate(random_model(20)).cycle))"
    )
    folder = Path(__file__).resolve().parents[1]
    found = {
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(folder)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(found) == 1
