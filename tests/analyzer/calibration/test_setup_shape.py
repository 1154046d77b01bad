"""The curve of set-up over sleep is recovered, and what never slept is told from it."""

from __future__ import annotations

import numpy as np
import pytest

from analyzer.calibration.observed import FloatArray
from analyzer.calibration.setup import Shape, fit_shape, line


def grown(gaps: FloatArray) -> FloatArray:
    """Return shares: nothing up to 1 ms, everything from 20 ms on."""
    shares: FloatArray = np.interp(np.log(np.maximum(gaps, 1e-6)), np.log([1e-3, 20e-3]), [0.0, 1.0])
    return shares


def test_one_shape_is_found_in_work_of_all_sizes() -> None:
    """Three kinds of work of different cost share one curve; a fourth does not depend on sleep at all."""
    random = np.random.default_rng(1)
    groups = []
    for base, amount in ((30e-6, 50e-6), (200e-6, 150e-6), (300e-6, 80e-6), (250e-6, 0.0)):
        gaps = np.exp(random.uniform(np.log(1e-4), np.log(0.2), 1500))
        times = base + amount * grown(gaps) + random.exponential(0.1 * base, len(gaps))
        groups.append((gaps, times))
    shape = fit_shape(groups)
    assert shape is not None
    probes = np.array([2e-4, 8e-4, 2e-3, 5e-3, 1e-2, 3e-2, 0.1])
    assert shape.at(probes) == pytest.approx(grown(probes), abs=0.08)
    assert (shape.at(np.array([0.0])) == 0).all()
    assert list(shape.shares) == sorted(shape.shares)


def test_what_does_not_follow_sleep_has_no_shape() -> None:
    """Work that gets shorter after sleep, or of which all sleeps are alike, says nothing of set-up."""
    gaps = np.exp(np.linspace(np.log(1e-4), np.log(0.2), 500))
    assert fit_shape([(gaps, 300e-6 - 100e-6 * grown(gaps))]) is None
    assert fit_shape([(np.full(500, 5e-3), np.linspace(1e-4, 2e-4, 500))]) is None
    assert fit_shape([]) is None


def test_nothing_is_said_beyond_the_sleeps_that_were_seen() -> None:
    """Below the shortest and beyond the longest the shares stay what they are there."""
    shape = Shape((1e-3, 10e-3), (0.0, 1.0))
    assert shape.at(np.array([1e-6, 1e-3, np.sqrt(1e-5), 10e-3, 100.0])) == pytest.approx([0, 0, 0.5, 1, 1])


@pytest.mark.parametrize(
    ("points", "base", "amount"),
    [
        ([(0.1, 110e-6), (0.9, 190e-6)], 100e-6, 100e-6),
        ([(0.0, 100e-6), (1.0, 200e-6), (0.5, 180e-6)], 110e-6, 100e-6),
        ([(0.1, 200e-6), (0.9, 190e-6)], 200e-6, 0.0),
        ([(0.8, 20e-6), (0.9, 190e-6)], 20e-6, 0.0),
    ],
    ids=["through both", "between three", "no shorter", "nothing below 0"],
)
def test_a_line_has_a_base_and_an_amount(
    points: list[tuple[float, float]], base: float, amount: float
) -> None:
    """Phases count the same; where a line makes no sense the hot rounds alone count."""
    found = line(points)
    assert (found.base, found.amount) == pytest.approx((base, amount))
