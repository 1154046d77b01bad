"""The filter is exact where it can be, and its limits are those of the distributions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from analyzer.kalman import Linear, Watch, chi_squared_limit, filtered, smoothed

DRIFT = 0.3


def periods(random: np.random.Generator, count: int) -> list[Linear]:
    """Return measurements of two numbers, of different size and precision."""
    found = []
    for t in range(count):
        size = 1 + t % 3
        root = random.standard_normal((size, size))
        noise = root @ root.T + np.eye(size)
        found.append(Linear(random.standard_normal(size), random.standard_normal((size, 2)), noise))
    return found


def test_filter_and_smoother_are_the_conditional_distribution() -> None:
    """States given measurements, computed at once from the joint normal distribution of everything."""
    count, mean, spread = 5, np.array([0.5, -1.0]), np.array([[2.0, 0.3], [0.3, 1.0]])
    given = periods(np.random.default_rng(1), count)
    prior = np.kron(np.ones((count, count)), spread)
    for s in range(count):
        for t in range(count):
            prior[2 * s : 2 * s + 2, 2 * t : 2 * t + 2] += DRIFT**2 * min(s, t) * np.eye(2)

    def conditional(until: int) -> tuple[np.ndarray, np.ndarray, float]:
        rows = sum(len(p.value) for p in given[:until])
        slopes, noise, at = np.zeros((rows, 2 * count)), np.zeros((rows, rows)), 0
        for t, p in enumerate(given[:until]):
            here = slice(at, at + len(p.value))
            slopes[here, 2 * t : 2 * t + 2] = p.slopes
            noise[here, here] = p.noise
            at += len(p.value)
        centre = np.tile(mean, count)
        covariance = slopes @ prior @ slopes.T + noise
        apart = np.concatenate([p.value for p in given[:until]]) - slopes @ centre
        gain = np.linalg.solve(covariance, slopes @ prior).T
        likelihood = -(np.linalg.slogdet(covariance)[1] + apart @ np.linalg.solve(covariance, apart)) / 2
        return centre + gain @ apart, prior - gain @ slopes @ prior, float(likelihood)

    states, covariances, likelihood = filtered(given, mean, spread, DRIFT)
    for t in range(count):
        expected, uncertain, _ = conditional(t + 1)
        here = slice(2 * t, 2 * t + 2)
        np.testing.assert_allclose(states[t], expected[here], rtol=1e-9)
        np.testing.assert_allclose(covariances[t], uncertain[here, here], rtol=1e-9)
    expected, uncertain, total = conditional(count)
    assert likelihood == pytest.approx(total)
    states, covariances = smoothed(given, mean, spread, DRIFT)
    np.testing.assert_allclose(np.concatenate(states), expected, rtol=1e-9)
    for t in range(count):
        here = slice(2 * t, 2 * t + 2)
        np.testing.assert_allclose(covariances[t], uncertain[here, here], rtol=1e-9)


@pytest.mark.parametrize("freedom", [math.inf, 15.0], ids=["known", "estimated"])
def test_false_alarms_are_as_rare_as_asked_for(freedom: float) -> None:
    """Sums of squares exceed their limit as often as they may, when their variance is an estimate as well."""
    random = np.random.default_rng(2)
    sums = (random.standard_normal((40_000, 3)) ** 2).sum(axis=1)
    if not math.isinf(freedom):
        sums /= random.chisquare(freedom, len(sums)) / freedom
    assert (sums > chi_squared_limit(3, 0.02, freedom)).mean() == pytest.approx(0.02, abs=0.003)


def test_what_the_watch_notices() -> None:
    """One period that is far off, many that are a little off, and those that err to the same side."""
    quiet = np.random.default_rng(3).standard_normal((200, 2))
    watch = Watch(1e-5)
    assert [watch.look(row) for row in quiet] == [None] * len(quiet)
    one = watch.look(np.array([6.0, 0.0]))
    assert one is not None
    assert (one.test, one.periods) == ("size", 1)
    found = [watch.look(np.array(row)) for row in ([3.3, 0.0], [0.0, 3.3], [3.3, 0.0], [0.0, 3.3])]
    assert found[:3] == [None] * 3
    assert found[3] is not None
    assert (found[3].test, found[3].periods) == ("size", 4)
    other = Watch(1e-5)
    sides = [other.look(np.full(2, 1.3)) for _ in range(10)]
    assert sides[:-1] == [None] * 9
    assert sides[-1] is not None
    assert (sides[-1].test, sides[-1].periods) == ("whiteness", 10)
    assert sides[-1].statistic > 0
