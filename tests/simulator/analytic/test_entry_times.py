"""Joins of parallel branches take what the distributions of their times say."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from scipy.integrate import quad
from scipy.special import gammaincc

from simulator.analytic.entries.entry_times import Moments, latest, meeting

PAIRS: list[tuple[Moments, Moments]] = [
    ((1.0, 1.0), (1.0, 1.0)),
    ((1.0, 0.3), (2.0, 1.5)),
    ((5e-6, 1e-12), (0.02, 4e-4)),
    ((1.0, 0.01), (1.05, 6.0)),
    ((1.0, 0.0), (0.9, 0.5)),
    ((0.0, 0.0), (0.3, 0.2)),
    ((3.0, 2e-5), (3.0, 2e-5)),
]


def survival(time: Moments, at: float) -> float:
    """Return how likely a time goes on at an instant."""
    mean, variance = time
    return float(at < mean) if variance == 0 else float(gammaincc(mean**2 / variance, at * mean / variance))


def integral(one: Moments, other: Moments, power: int, *, later: bool) -> float:
    """Return a moment of the later or the earlier of two times, by integration of its survival function."""

    def rest(at: float) -> float:
        first, second = survival(one, at), survival(other, at)
        both = first * second
        return (first + second - both if later else both) * power * at ** (power - 1)

    marks = sorted(
        {max(m + k * math.sqrt(v), 0.0) for m, v in (one, other) for k in (-9, -3, -1, 0, 1, 3, 9, 60)}
        | {0.0}
    )
    return sum(quad(rest, low, high, limit=200)[0] for low, high in pairwise(marks))


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_the_later_and_the_earlier_of_two_times(one: Moments, other: Moments) -> None:
    """Means and variances are those of integration, whichever time comes first."""
    for needed, later in ((None, True), (2, True), (1, False)):
        mean, variance = latest([one, other], needed)
        assert mean == pytest.approx(integral(one, other, 1, later=later), rel=1e-6, abs=1e-12)
        second = integral(one, other, 2, later=later)
        assert variance + mean**2 == pytest.approx(second, rel=1e-6, abs=1e-12)
        assert latest([other, one], needed) == pytest.approx((mean, variance))


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_two_times_share_what_they_have_in_common(one: Moments, other: Moments) -> None:
    """They go on together until the earlier one ends; half of that counts for each."""
    shares, together = meeting([one, other])
    both = integral(one, other, 1, later=False)
    assert together[0][1] == together[1][0] == pytest.approx(both, rel=1e-6, abs=1e-12)
    assert shares == pytest.approx([one[0] - both / 2, other[0] - both / 2], rel=1e-6, abs=1e-12)


def test_a_third_branch_that_takes_no_time_changes_nothing() -> None:
    """Three branches are integrated on a grid, two are not: both are the same maximum."""
    two = latest([(1.0, 1.0), (0.7, 0.2)])
    assert latest([(1.0, 1.0), (0.7, 0.2), (0.0, 0.0)]) == pytest.approx(two, rel=1e-3)
    shares, together = meeting([(1.0, 1.0), (0.7, 0.2)])
    more_shares, more_together = meeting([(1.0, 1.0), (0.7, 0.2), (0.0, 0.0)])
    assert more_shares[:2] == pytest.approx(shares, rel=1e-3)
    assert more_together[0][1] == pytest.approx(together[0][1], rel=1e-3)
