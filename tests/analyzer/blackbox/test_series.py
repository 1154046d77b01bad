"""One station and two in series are told apart by every single departure."""

from __future__ import annotations

import numpy as np
import pytest
from stations import TIMES, simulated

from analyzer.blackbox.alternatives import Structure
from analyzer.blackbox.inversion import FloatArray, Trace
from analyzer.blackbox.series import MOST_SERVERS, advantage_of_series
from analyzer.blackbox.station import LoadStep, Station, identify_station

LOADS = (0.3, 0.5, 0.65, 0.8, 0.9)
REQUESTS = 200


def one_after_the_other(arrivals: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
    """Return departures from two servers in series."""
    leave, free = np.empty(len(arrivals)), [0.0, 0.0]
    for i, at in enumerate(arrivals):
        free[0] = max(at, free[0]) + first[i]
        leave[i] = free[1] = max(free[0], free[1]) + second[i]
    return leave


def in_series(seed: int, second: float) -> list[LoadStep]:
    """Return loads of two exponential stations with a mean of 40 ms, and one of ``second`` s."""
    steps = []
    for number, load in enumerate(LOADS):
        rng = np.random.default_rng([seed, number])
        rate = load / 0.04
        arrivals = np.cumsum(rng.exponential(1 / rate, REQUESTS))
        leave = one_after_the_other(
            arrivals, rng.exponential(0.04, REQUESTS), rng.exponential(second, REQUESTS)
        )
        steps.append(LoadStep(rate, Trace.of(arrivals, leave - arrivals), REQUESTS / rate))
    return steps


def alone(seed: int, family: str) -> list[LoadStep]:
    """Return loads of a single server, behind a link whose latency varies a little."""
    steps = []
    for number, load in enumerate(LOADS):
        rng = np.random.default_rng([seed, number])
        rate = load / 0.02
        trace, _ = simulated(rng, rate, REQUESTS, 1, TIMES[family], 0.001, 0.0002)
        steps.append(LoadStep(rate, trace, REQUESTS / rate))
    return steps


def compared(steps: list[LoadStep], seed: int) -> tuple[Station, float | None, float]:
    """Return the station, the advantage of two in series, and the capacity of these."""
    station = identify_station(steps)
    found = advantage_of_series(station, [step.trace for step in steps], seed=seed)
    if found is None:
        return station, None, 0.0
    advantage, series = found
    return station, advantage, Structure("series", series.servers, ()).capacity(series.means)


@pytest.mark.parametrize("seed", range(3))
def test_two_in_series_are_more_likely_where_there_are_two(seed: int) -> None:
    """And what they can do is nearer to the truth than what one station can."""
    station, advantage, capacity = compared(in_series(seed, 0.03), seed)
    assert advantage is not None
    assert advantage > 10
    assert capacity == pytest.approx(25.0, rel=0.15)
    assert abs(capacity - 25) < abs(station.capacity - 25)


@pytest.mark.parametrize("family", list(TIMES))
@pytest.mark.parametrize("seed", range(3))
def test_one_station_is_not_taken_for_two(family: str, seed: int) -> None:
    """Whatever its service times are like."""
    _, advantage, _ = compared(alone(seed, family), seed)
    assert advantage is None or advantage < 0


def test_what_takes_a_twentieth_of_the_time_is_no_station() -> None:
    """A link is not called one."""
    _, advantage, _ = compared(in_series(0, 0.002), 0)
    assert advantage is None or advantage < 6


def test_constant_times_are_not_compared() -> None:
    """Two stations with such are one station and a latency."""
    arrivals = np.arange(1, 200) * 0.05
    trace = Trace(arrivals, np.full(len(arrivals), 0.02))
    steps = [LoadStep(20.0, trace, 10.0) for _ in range(3)]
    assert advantage_of_series(identify_station(steps), [trace] * 3) is None


def test_many_servers_are_not_compared() -> None:
    """Of forty, two stations in series differ in nothing that is seen."""
    rng = np.random.default_rng(0)
    steps = []
    for rate in (200.0, 800.0, 1800.0):
        trace, _ = simulated(rng, rate, 400, MOST_SERVERS + 24, TIMES["constant"])
        steps.append(LoadStep(rate, trace, 400 / rate))
    station = identify_station(steps)
    assert station.servers.count > MOST_SERVERS
    assert advantage_of_series(station, [step.trace for step in steps]) is None
