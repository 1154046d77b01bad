"""Targets that are no single station are recognised; those that are one are not taken for something else."""

from __future__ import annotations

import numpy as np
import pytest
from stations import TIMES, SimulatedInjector

from analyzer.blackbox.alternatives import Structure
from analyzer.blackbox.departures import served
from analyzer.blackbox.experiment import run_experiment
from analyzer.blackbox.holdout import Comparison, verdict
from analyzer.blackbox.inversion import FloatArray, Trace
from analyzer.blackbox.policy import Limits
from analyzer.blackbox.station import LoadStep
from analyzer.blackbox.structure import judge_structure, statistics


def shared(arrivals: FloatArray, work: FloatArray, cores: int) -> FloatArray:
    """Return departures from cores that all requests share, event by event with the work that is left."""
    leave, left, now, coming = np.empty(len(work)), {}, 0.0, 0  # type: ignore[var-annotated]
    while coming < len(work) or left:
        rate = min(1.0, cores / len(left)) if left else 0.0
        done = now + min(left.values()) / rate if left else np.inf
        arrival = arrivals[coming] if coming < len(work) else np.inf
        following = min(done, arrival)
        left = {k: w - (following - now) * rate for k, w in left.items()}
        now = following
        if arrival <= done:
            left[coming] = work[coming]
            coming += 1
        else:
            first = min(left, key=lambda k: left[k])
            del left[first]
            leave[first] = now
    return leave


def lindley(ready: FloatArray, service: FloatArray) -> FloatArray:
    """Return departures from one server, in order of arrival."""
    leave, free = np.empty(len(ready)), 0.0
    for i, (at, time) in enumerate(zip(ready, service, strict=True)):
        free = leave[i] = max(at, free) + time
    return leave


class Injector:
    """An injector into two stations in series, a delay or a cache before one, or shared cores."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def inject(self, rate: float, seconds: float, seed: int) -> LoadStep:
        rng = np.random.default_rng([seed, 77])
        arrivals = np.cumsum(rng.exponential(1 / rate, int(rng.poisson(rate * seconds))))
        times = rng.exponential(1.0, (2, len(arrivals)))
        if self.kind == "series":
            leave = lindley(lindley(arrivals, 0.04 * times[0]), 0.03 * times[1])
        elif self.kind == "delay":
            ready = arrivals + 0.01 * times[0]
            leave = served(ready, 0.04 * times[1], 1)
        elif self.kind == "sharing":
            leave = shared(arrivals, 0.05 * times[0], 2)
        elif self.kind == "constant":
            leave = shared(arrivals, np.full(len(arrivals), 0.05), 2)
        else:
            leave = arrivals + 0.005 * times[0]
            missed = rng.random(len(arrivals)) < 0.5
            leave[missed] = lindley(arrivals[missed], 0.08 * times[1][missed])
        return LoadStep(rate, Trace.of(arrivals, leave - arrivals + 0.0005), seconds)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "capacity"), [("series", 25.0), ("cache", 25.0), ("sharing", 40.0)])
def test_what_is_no_single_station_is_recognised(kind: str, capacity: float) -> None:
    """By name, and with a capacity that is nearer to the true one than that of a single station."""
    found = run_experiment(Injector(kind), limits=Limits(rate=1000, seconds=70), seed=0)
    verdict = judge_structure(found.station, found.steps)
    assert verdict is not None
    assert verdict.one is False
    assert verdict.kind == kind
    assert verdict.capacity == pytest.approx(capacity, rel=0.15)
    assert abs(verdict.capacity - capacity) < abs(found.station.capacity - capacity)
    assert verdict.to_json()["one_station"] is False


@pytest.mark.slow
def test_shared_cores_with_constant_work_are_recognised() -> None:
    """Nothing overtakes there, as in one station."""
    found = run_experiment(Injector("constant"), limits=Limits(rate=1000, seconds=70), seed=0)
    verdict = judge_structure(found.station, found.steps)
    assert verdict is not None
    assert verdict.kind == "sharing"
    assert verdict.capacity == pytest.approx(40.0, rel=0.05)


@pytest.mark.slow
def test_a_delay_before_a_station_is_not_taken_for_two_in_series() -> None:
    """Requests overtake there, which single departures show."""
    found = run_experiment(Injector("delay"), limits=Limits(rate=1000, seconds=70), seed=0)
    verdict = judge_structure(found.station, found.steps)
    assert verdict is not None
    assert verdict.kind == "delay"
    assert verdict.capacity == pytest.approx(25.0, rel=0.15)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "servers"), [("exponential", 1), ("hyperexponential", 2), ("constant", 1)]
)
def test_one_station_is_not_taken_for_something_else(family: str, servers: int) -> None:
    """No structure is preferred, and the station is not rejected."""
    injector = SimulatedInjector(servers, TIMES[family])
    found = run_experiment(injector, limits=Limits(rate=1000, seconds=40), seed=3)
    verdict = judge_structure(found.station, found.steps)
    assert verdict is not None
    assert verdict.kind == "one"
    assert verdict.one is not False


def test_shared_cores_serve_as_event_by_event() -> None:
    """The heap of sums of work gives the departures that a simulation of the work left gives."""
    rng = np.random.default_rng(2)
    arrivals, drawn = np.cumsum(rng.exponential(0.02, 300)), rng.uniform(1e-12, 1, (3, 300))
    responses = Structure("sharing", (2,), ()).responses([0.03, 1.0], arrivals, 1.0, drawn)
    np.testing.assert_allclose(arrivals + responses, shared(arrivals, -0.03 * np.log(drawn[0]), 2), rtol=1e-9)


def test_stations_in_series_serve_one_after_the_other() -> None:
    """With one server each, as Lindley's recursion twice."""
    rng = np.random.default_rng(2)
    arrivals, drawn = np.cumsum(rng.exponential(0.02, 300)), rng.uniform(1e-12, 1, (3, 300))
    responses = Structure("series", (1, 1), ()).responses([0.01, 0.015, 1.0], arrivals, 1.0, drawn)
    between = lindley(arrivals, -0.01 * np.log(drawn[0]))
    np.testing.assert_allclose(arrivals + responses, lindley(between, -0.015 * np.log(drawn[1])), rtol=1e-9)


@pytest.mark.parametrize("servers", [1, 3])
def test_servers_take_requests_in_the_order_they_come(servers: int) -> None:
    """Also where they come in another order than they are listed in, and each row for itself."""
    rng = np.random.default_rng(3)
    ready, service = rng.uniform(0, 2, (2, 200)), rng.exponential(0.02 * servers, (2, 200))
    expected = np.empty((2, 200))
    for row in range(2):
        free = [0.0] * servers
        for i in np.argsort(ready[row]):
            free[0] = expected[row, i] = max(ready[row, i], free[0]) + service[row, i]
            free.sort()
    np.testing.assert_array_equal(served(ready, service, servers), expected)


def test_a_cache_answers_hits_at_once_and_lets_only_misses_queue() -> None:
    """Requests that hit do not delay those that miss."""
    rng = np.random.default_rng(2)
    arrivals, drawn = np.cumsum(rng.exponential(0.02, 300)), rng.uniform(1e-12, 1, (3, 300))
    responses = Structure("cache", (1,), ()).responses([0.001, 0.03, 0.4, 1.0], arrivals, 1.0, drawn)
    missed = drawn[2] >= 0.4
    queued = lindley(arrivals[missed], -0.03 * np.log(drawn[1][missed]))
    np.testing.assert_allclose(arrivals[missed] + responses[missed], queued, rtol=1e-9)
    np.testing.assert_allclose(responses[~missed], -0.001 * np.log(drawn[0][~missed]), rtol=1e-9)


def test_answers_that_a_link_swaps_are_no_second_server() -> None:
    """Overtaking counts from a millisecond on: a link varies by less, and another server by more."""
    arrivals = np.arange(400) * 0.02
    in_order = np.full(400, 0.019)
    swapped, overtaken = in_order.copy(), in_order.copy()
    swapped[::2] += 0.0205
    overtaken[::2] += 0.0225
    overtaking = [statistics(arrivals, responses)[4] for responses in (in_order, swapped, overtaken)]
    assert overtaking[0] == overtaking[1] == 0
    assert overtaking[2] > 1


@pytest.mark.parametrize(
    ("intervals", "measured", "expected", "each"),
    [
        pytest.param([(0.9, 1.1), (1.8, 2.2)], [1.0, 2.0], True, [True, True], id="narrow"),
        pytest.param([(0.9, 1.1), (0.1, 6.0)], [1.0, 2.0], None, [True, None], id="too-wide-at-the-top"),
        pytest.param([(0.1, 6.0), (1.8, 2.2)], [1.0, 2.0], True, [None, True], id="too-wide-below"),
        pytest.param([(0.9, 1.1), (1.8, 2.2)], [1.0, 4.0], False, [True, False], id="off"),
        pytest.param([], [], None, [], id="none"),
    ],
)
def test_a_wide_interval_certifies_nothing(
    intervals: list[tuple[float, float]],
    measured: list[float],
    expected: bool | None,
    each: list[bool | None],
) -> None:
    """What chance alone may show by a factor is no evidence for a model."""
    compared = [
        Comparison(rate, 100, mean, rate, interval, mean, mean, interval)
        for rate, (interval, mean) in enumerate(zip(intervals, measured, strict=True), 1)
    ]
    assert verdict(compared) is expected
    assert [c.to_json()["holds"] for c in compared] == each


def test_the_time_that_answers_take_is_within_the_limit() -> None:
    """Loads that are answered long after they were sent leave room for their last answers."""

    class Slow(SimulatedInjector):
        def inject(self, rate: float, seconds: float, seed: int) -> LoadStep:
            step = super().inject(rate, seconds, seed)
            late = Trace.of(step.trace.arrivals, step.trace.responses + 4.0)
            return LoadStep(rate, late, seconds)

    found = run_experiment(Slow(4, TIMES["exponential"]), limits=Limits(rate=30, seconds=60, response=10))
    assert found.seconds <= 60


def test_nearly_constant_service_is_constant() -> None:
    """Shared cores give back in order what is the same for all, and not what nearly is."""
    rng = np.random.default_rng(2)
    arrivals, drawn = np.cumsum(rng.exponential(0.017, 300)), rng.uniform(1e-12, 1, (3, 300))
    for shape, ordered in ((110.0, True), (90.0, False)):
        leave = arrivals + Structure("sharing", (2,), ()).responses([0.03, shape], arrivals, 1.0, drawn)
        assert bool((np.diff(leave) >= -1e-9).all()) is ordered
