"""Factors that fall with the utilization are told from chance."""

from __future__ import annotations

import random

import pytest

from analyzer.host.estimates import Estimate, typical
from analyzer.host.falling import falling, tail_probability

LEVELS = (0.05, 0.2, 0.4, 0.6, 0.8, 0.95)


@pytest.mark.parametrize(
    ("levels", "critical"), [(3, 3.820), (4, 4.528), (5, 5.049), (6, 5.460)], ids=lambda value: f"{value:g}"
)
def test_critical_values(levels: int, critical: float) -> None:
    """Those at 5 % of Barlow et al. (1972, table A.1)."""
    assert tail_probability(critical, levels) == pytest.approx(0.05, abs=2e-5)


def _found(draw: random.Random, effect: float, cases: int) -> float:
    """Return the share of cases in which a fall is found, at four batches per level."""
    return (
        sum(
            bool(
                falling(
                    [
                        (u, typical([draw.gauss(1.02 + effect * (1 - u), 0.03) for _ in range(4)]))
                        for u in LEVELS
                    ]
                )
            )
            for _ in range(cases)
        )
        / cases
    )


def test_chance_is_no_fall() -> None:
    """About 5 % of measurements of one factor; nearly all of a clear fall."""
    draw = random.Random(1)
    assert _found(draw, 0.0, 600) < 0.08
    assert _found(draw, 0.1, 200) > 0.9


def test_a_disturbed_measurement_shows_nothing() -> None:
    """What was seen while neighbours disturbed the machine: one busy level was quicker than five that rose."""
    seen = (1.153, 1.241, 1.252, 1.210, 1.277, 1.130)
    halves = (0.067, 0.034, 0.065, 0.093, 0.072, 0.077)
    assert falling([(u, Estimate(f, h)) for u, f, h in zip(LEVELS, seen, halves, strict=True)]) == ()


def test_a_clear_fall() -> None:
    """Neighbours that rise are averaged; the last level is the unit."""
    seen = (1.25, 1.26, 1.15, 1.08, 1.02, 1.0)
    found = falling([(u, Estimate(f, 0.02)) for u, f in zip(LEVELS, seen, strict=True)])
    assert found == ((0.05, 1.255), (0.2, 1.255), (0.4, 1.15), (0.6, 1.08), (0.8, 1.02), (0.95, 1.0))


def test_without_errors_nothing_is_tested() -> None:
    """Factors of one batch have no interval."""
    assert falling([(0.1, Estimate(1.1)), (0.9, Estimate(1.0))]) == ((0.1, 1.1), (0.9, 1.0))
    assert falling([]) == ()
