"""Requests are spread over any number of replicas as in a product-form network."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from simulator.analytic.approximations import replicas
from simulator.analytic.approximations.replicas import Replicas

SPEEDS = np.array([0.7, 1.3, 1.1, 1.6, 1.6, 2.0])


def weight(requests: int) -> float:
    return math.prod(1 / SPEEDS[:requests])


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_all_states_counted_one_by_one(count: int) -> None:
    """Speed of all replicas, and requests at one of them, from the weights of every state."""
    spread = Replicas(SPEEDS, count)
    crowd = np.array([0.1, 0.1, 0.2, 0.25, 0.15, 0.15, 0.05])
    single = np.zeros(7)
    for total in range(7):
        states = [s for s in itertools.product(range(total + 1), repeat=count) if sum(s) == total]
        weights = np.array([math.prod(map(weight, s)) for s in states])
        chances = weights / weights.sum()
        busy = np.array([sum(SPEEDS[n - 1] for n in s if n) for s in states])
        if total:
            assert spread.speeds[total - 1] == pytest.approx(chances @ busy)
        for state, chance in zip(states, chances, strict=True):
            single[state[0]] += crowd[total] * chance
    assert spread.single(crowd) == pytest.approx(single)


@pytest.mark.parametrize("count", [2, 3, 16])
def test_weights_beyond_the_range_of_numbers(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether logarithms are added one by one or their weights multiplied makes no difference."""
    speeds = 1 + 0.8 * np.sin(np.arange(300) / 30)
    crowd = np.exp(-(((np.arange(301) - 200) / 15) ** 2))
    quick = Replicas(speeds, count)
    monkeypatch.setattr(replicas, "SAFE", 0.0)
    safe = Replicas(speeds, count)
    assert safe.speeds == pytest.approx(quick.speeds, rel=1e-9)
    assert safe.single(crowd) == pytest.approx(quick.single(crowd), rel=1e-9)


def test_hundreds_of_requests_that_are_slow_or_quick() -> None:
    """Replicas 2.5 times as fast with more than 300 requests: weights span 119 orders of magnitude."""
    speeds = np.where(np.arange(1, 601) > 300, 2.5, 1.0)
    spread = Replicas(speeds, 3)
    assert np.isfinite(spread.speeds).all()
    assert (spread.speeds > 1 - 1e-9).all()
    assert (spread.speeds < 7.5).all()
    crowd = np.zeros(601)
    crowd[600] = 1.0
    found = spread.single(crowd)
    assert found.sum() == pytest.approx(1.0)
    assert found @ np.arange(601) == pytest.approx(200.0)
