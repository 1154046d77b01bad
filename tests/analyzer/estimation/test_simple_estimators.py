"""BL, RPS, ERPS, LDPS and the methods they are compared with compute their formulas."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from observations import observed, samples, trace

from analyzer.estimation.baseline import baseline, demands, utilization
from analyzer.estimation.comparisons import fcfs, open_product_form, utilization_regression
from analyzer.estimation.fit import Fit
from analyzer.estimation.regression import erps, ldps, rps
from analyzer.estimation.samples import ArrivalSamples, Trace, Windows, admitted, arrival_samples


@pytest.mark.parametrize(
    ("cores", "expected"),
    [
        # Alone for 1 s, half of a core for 2 s, a third for 3 s, half for 1 s, alone for 1 s.
        pytest.param(1, [1 + 1 + 1, 1 + 1 + 0.5, 1 + 0.5 + 1], id="one core"),
        pytest.param(2, [1 + 2 + 2, 2 + 2 + 1, 2 + 1 + 1], id="two cores"),
        pytest.param(3, [6, 6, 5], id="as many cores as requests"),
    ],
)
def test_work_is_added_up_piece_by_piece(cores: int, expected: list[float]) -> None:
    """BL: each request gets min(1, V / n) of a core while n are in process (section 4.1)."""
    three = trace(("a", 0, 6), ("a", 1, 7), ("b", 3, 8))
    assert demands(three, cores) == pytest.approx(expected)
    fit = baseline(three, cores)
    assert fit.demand == pytest.approx([np.mean(expected[:2]), expected[2]])


def test_a_request_that_waits_for_others_takes_no_core() -> None:
    """Between its segments a request neither works nor slows others down."""
    both = Trace(
        ("a", "b"),
        np.array([0, 1]),
        np.array([0, 0, 1]),
        np.array([0.0, 3.0, 1.0]),
        np.array([1.0, 4.0, 3.0]),
    )
    assert demands(both, 1) == pytest.approx([2.0, 2.0])
    assert both.response_time == pytest.approx([2.0, 2.0])
    assert utilization(both, 1) == pytest.approx(1.0)


def test_what_requests_see_on_admission() -> None:
    """A request sees itself and those in process; who leaves at that moment is gone."""
    found = arrival_samples(trace(("a", 0, 2), ("b", 1, 4), ("a", 2, 3), ("a", 10, 11)))
    assert found.seen.tolist() == [[1, 0], [1, 1], [1, 1], [1, 0]]
    assert found.rates == pytest.approx([0.3, 0.1])


@pytest.mark.parametrize(
    ("threads", "expected"),
    [
        pytest.param(1, [0, 4, 6, 7], id="one thread"),
        pytest.param(2, [0, 1, 4, 6], id="two threads"),
        pytest.param(9, [0, 1, 2, 3], id="more threads than requests"),
    ],
)
def test_admission_follows_from_arrivals(threads: int, expected: list[float]) -> None:
    """First come first served: who finds no idle thread is admitted when one is freed."""
    found = admitted(np.array([0.0, 1, 2, 3]), np.array([4.0, 6, 7, 8]), threads)
    assert found == pytest.approx(expected)


def test_too_few_threads_are_noticed() -> None:
    """A request that left before a thread was free contradicts the number of threads."""
    with pytest.raises(ValueError, match="request 2 left before any of 1 threads was free"):
        admitted(np.array([0.0, 1]), np.array([5.0, 4]), 1)


def test_regression_formulas() -> None:
    """RPS, ERPS and LDPS on numbers worked out by hand: V = 4, mean of seen 3."""
    few = samples((0, 1.0, [1]), (0, 2.0, [2]), (0, 5.0, [6]))
    slope = (1 * 1 + 2 * 2 + 5 * 6) / (1 + 4 + 36)
    assert rps(few, 4).demand == pytest.approx([4 * slope])
    assert erps(few, 4).demand == pytest.approx([3 * slope])
    assert ldps(few, 4).demand == pytest.approx([8 / (1 + 1 + 1.5)])


@pytest.mark.parametrize("method", [rps, erps, ldps], ids=["rps", "erps", "ldps"])
def test_resampling_everything_once_changes_nothing(method: Callable[[ArrivalSamples, float], Fit]) -> None:
    """A resample that draws every sample once gives the estimate itself."""
    data = observed(2, 8, 60).samples
    fit = method(data, 2)
    everything = np.ones((1, len(data.kind)))
    assert fit.resampled(everything)[0] == pytest.approx(fit.demand)


@pytest.mark.parametrize("users", [2, 5, 12])
@pytest.mark.parametrize("cores", [1, 3])
def test_ldps_is_exact_where_theory_is(cores: int, users: int) -> None:
    """E[R] = E[D] E[max(1, n / V)] holds for the exact solution of a closed system of one class.

    Machine repair: N users, exponential think times (mean Z), V cores in processor sharing. The states a
    user sees on arrival are those of a system with one user less (arrival theorem).
    """
    demand, think = 0.3, 0.5

    def distribution(population: int) -> np.ndarray:
        weights = [1.0]
        for n in range(1, population + 1):
            weights.append(weights[-1] * (population - n + 1) / think * demand / min(n, cores))
        return np.array(weights) / sum(weights)

    here = distribution(users)
    n = np.arange(users + 1)
    throughput = float(here @ np.minimum(n, cores)) / demand
    response = float(here @ n) / throughput
    seen = distribution(users - 1)
    stretch = float(seen @ np.maximum(1.0, np.arange(1, users + 1) / cores))
    assert response == pytest.approx(demand * stretch, rel=1e-12)


def test_light_load_is_where_ldps_beats_rps() -> None:
    """V = 4, W = 16, 20 users: RPS is far too high (the paper says 145 %), LDPS is not."""
    data = observed(4, 16, 20).samples
    truth = np.array([0.1, 0.05])
    assert np.all(rps(data, 4).demand > 1.8 * truth)
    assert np.all(np.abs(ldps(data, 4).demand / truth - 1) < 0.25)
    assert np.all(erps(data, 4).demand < truth)


def test_utilization_law() -> None:
    """UR finds demands that explain utilization exactly, and none below 0."""
    throughput = np.array([[1.0, 2.0], [3.0, 1.0], [2.0, 2.0]])
    exact = throughput @ np.array([0.2, 0.1]) / 2
    windows = Windows(("a", "b"), exact, throughput, np.full((3, 2), np.nan))
    assert utilization_regression(windows, 2).demand == pytest.approx([0.2, 0.1])
    opposed = Windows(
        ("a", "b"), throughput @ np.array([0.2, -0.05]) / 2, throughput, np.full((3, 2), np.nan)
    )
    found = utilization_regression(opposed, 2).demand
    assert found[1] == pytest.approx(0, abs=1e-6)
    assert found[0] > 0


def test_utilization_does_not_tell_classes_apart_that_always_come_together() -> None:
    """Orders and payments in one proportion have no demands of their own; who varies has one."""
    together = np.array([[1.0, 2.0, 1.0], [2.0, 4.0, 1.0], [3.0, 6.0, 3.0]])
    windows = Windows(("order", "pay", "find"), np.full(3, 0.5), together, np.full((3, 3), np.nan))
    with pytest.raises(ValueError, match="order, pay come in the same proportion"):
        utilization_regression(windows, 2)
    apart = together.copy()
    apart[0, 0] = 1.001
    utilization_regression(Windows(windows.classes, windows.utilization, apart, windows.response_time), 2)


def test_open_product_form() -> None:
    """PF is exact for windows that obey R = D / (1 - U) and U = sum X D."""
    throughput = np.array([[1.0, 2.0], [3.0, 1.0], [2.0, 2.0]])
    demand = np.array([0.2, 0.1])
    busy = throughput @ demand
    windows = Windows(("a", "b"), busy, throughput, demand / (1 - busy[:, None]))
    assert open_product_form(windows, 1).demand == pytest.approx(demand)


def test_first_come_first_served() -> None:
    """FCFS takes a response time for the sum of the demands of all that were seen."""
    few = samples((0, 0.2, [1, 0]), (1, 0.3, [1, 1]), (0, 0.5, [2, 1]), (1, 0.1, [0, 1]))
    assert fcfs(few).demand == pytest.approx([0.2, 0.1])
