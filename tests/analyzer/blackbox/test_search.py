"""The search for positive parameters finds them, within its limits."""

from __future__ import annotations

import math

import pytest

from analyzer.blackbox.search import least


def far_off(values: list[float]) -> float:
    """Return the squared distance, of logarithms, from 3 and 0.2."""
    return math.log(values[0] / 3) ** 2 + math.log(values[1] / 0.2) ** 2


def test_the_least_is_found() -> None:
    """In as many evaluations as it may take."""
    values, distance = least(far_off, [1, 1], evaluations=200, step=0.25, furthest=3, tolerance=1e-6)
    assert values == pytest.approx([3, 0.2], rel=0.02)
    assert distance == pytest.approx(0, abs=1e-3)


def test_parameters_stay_near_their_start() -> None:
    """Further off is worse than anything."""
    values, _ = least(far_off, [100, 1], evaluations=200, step=0.25, furthest=2, tolerance=1e-6)
    assert values[0] >= 100 * math.exp(-2)


def test_no_more_evaluations_are_made() -> None:
    """They are what takes time."""
    asked: list[list[float]] = []

    def counted(values: list[float]) -> float:
        asked.append(values)
        return far_off(values)

    least(counted, [1, 1], evaluations=20, step=0.25, furthest=3, tolerance=1e-9)
    assert len(asked) == 20
