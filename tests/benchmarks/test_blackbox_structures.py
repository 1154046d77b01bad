"""The simulated targets of the black boxes' benchmark do what they say."""

from __future__ import annotations

import numpy as np
import pytest
from blackbox_structures import FAMILIES, TARGETS, Target, in_order, shared

HALF = np.array([0.0, 1.0, 1.5])
"""When three requests arrive."""


@pytest.mark.parametrize(
    ("servers", "leave"),
    [
        pytest.param(1, [2.0, 5.0, 6.0], id="one-after-the-other"),
        pytest.param(2, [2.0, 4.0, 3.0], id="the-third-takes-the-first-that-is-free"),
        pytest.param(3, [2.0, 4.0, 2.5], id="none-waits"),
    ],
)
def test_requests_are_served_in_order_of_arrival(servers: int, leave: list[float]) -> None:
    """By hand: they need 2, 3 and 1 s."""
    np.testing.assert_allclose(in_order(HALF, np.array([2.0, 3.0, 1.0]), servers), leave)


def test_arrivals_in_any_order_are_served_in_theirs() -> None:
    """The second station of two in series gets requests in the order in which they leave the first."""
    order = np.array([2, 0, 1])
    work = np.array([2.0, 3.0, 1.0])
    np.testing.assert_allclose(in_order(HALF[order], work[order], 1), in_order(HALF, work, 1)[order])


@pytest.mark.parametrize(
    ("cores", "leave"),
    [
        # One: alone until 1, half each until 1.5 (0.75 and 2.75 left), a third each until the first is done at 3.75.
        pytest.param(1, [3.75, 6.0, 4.25], id="one-core"),
        # Two: the first two have a core each until 1.5, two thirds each until the first is done at 2.25.
        pytest.param(2, [2.25, 4.25, 2.75], id="two-cores"),
        pytest.param(3, [2.0, 4.0, 2.5], id="a-core-each"),
    ],
)
def test_cores_are_shared_evenly(cores: int, leave: list[float]) -> None:
    """By hand: they need 2, 3 and 1 s."""
    np.testing.assert_allclose(shared(HALF, np.array([2.0, 3.0, 1.0]), cores), leave)


def test_service_times_have_mean_one() -> None:
    """Of every family."""
    rng = np.random.default_rng(0)
    for draw in FAMILIES.values():
        assert draw(rng, 100_000).mean() == pytest.approx(1.0, abs=0.03)


@pytest.mark.parametrize("target", [t for t in TARGETS if t.family == "exponential"], ids=lambda t: t.label)
def test_capacities_are_those_of_the_structure(target: Target) -> None:
    """Requests that come all at once leave at the rate that the target can do."""
    count = 5_000 if target.kind != "sharing" else 400
    leave = target.leave(np.zeros(count), np.random.default_rng(1))
    assert count / leave.max() == pytest.approx(
        target.capacity, rel=0.15 if target.kind == "sharing" else 0.08
    )
