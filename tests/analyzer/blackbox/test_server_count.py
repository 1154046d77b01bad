"""The number of servers is found, for any distribution."""

from __future__ import annotations

import numpy as np
import pytest
from stations import MEAN, TIMES, simulated

from analyzer.blackbox.inversion import Trace, service_times
from analyzer.blackbox.servers import count_servers
from mup.errors import UsageError


@pytest.mark.parametrize("servers", [1, 2, 4])
@pytest.mark.parametrize("family", TIMES)
def test_servers_and_mean_are_found_from_four_loads(family: str, servers: int) -> None:
    """K is right and the mean service time within 5 %, with latency and noise, also of times that never overtake."""
    rng = np.random.default_rng(11)
    rates = [load * servers / MEAN for load in (0.3, 0.5, 0.7, 0.9)]
    runs = [simulated(rng, rate, 200, servers, TIMES[family], 0.001, 0.0002) for rate in rates]
    traces = [trace for trace, _ in runs]
    found = count_servers(traces)
    assert (found.count, found.bounded) == (servers, True)
    inferred = np.concatenate([service_times(trace, servers, found.latency)[0] for trace in traces])
    truth = np.concatenate([times for _, times in runs])
    assert abs(inferred.mean() / truth.mean() - 1) < 0.05


def test_constant_times_need_the_likelihood() -> None:
    """Constant times never overtake: the smallest K without negative times is 1, and wrong."""
    trace, _ = simulated(np.random.default_rng(4), 150.0, 500, 4, TIMES["constant"])
    found = count_servers([trace])
    assert (found.at_least, found.count) == (1, 4)


def test_without_waiting_the_number_is_a_lower_bound() -> None:
    """Where hardly two requests meet, more servers would explain the same."""
    trace, _ = simulated(np.random.default_rng(5), 2.0, 60, 4, TIMES["exponential"])
    found = count_servers([trace])
    assert found.count < 4
    assert not found.bounded


def test_swapped_requests_are_tolerated() -> None:
    """One pair that changed places on its way does not make a second server."""
    trace, _ = simulated(np.random.default_rng(6), 35.0, 400, 1, TIMES["uniform"])
    leave = trace.departures
    pair = next(i for i in range(200, 400) if leave[i] > trace.arrivals[i + 1])
    leave[[pair, pair + 1]] = leave[[pair + 1, pair]]
    assert count_servers([Trace.of(trace.arrivals, leave - trace.arrivals)]).count == 1


@pytest.mark.parametrize(("servers", "family"), [(1, "exponential"), (2, "uniform"), (4, "hyperexponential")])
def test_noise_makes_no_servers(servers: int, family: str) -> None:
    """A tenth of the service time of random latency makes requests seem to overtake: K stays right, the mean near."""
    rng = np.random.default_rng(12)
    rates = [load * servers / MEAN for load in (0.3, 0.5, 0.7, 0.9)]
    runs = [simulated(rng, rate, 200, servers, TIMES[family], 0.001, 0.1 * MEAN) for rate in rates]
    found = count_servers([trace for trace, _ in runs])
    assert found.count == servers
    inferred = [service_times(trace, servers, found.latency)[0] for trace, _ in runs]
    truth = np.concatenate([times for _, times in runs])
    assert abs(np.concatenate(inferred).mean() / truth.mean() - 1) < 0.06


def test_latency_is_told_from_service() -> None:
    """Of constant times it is found to a tenth, fixed part and mean of the random part together."""
    rng = np.random.default_rng(13)
    runs = [simulated(rng, rate, 300, 2, TIMES["constant"], 0.002, 0.001) for rate in (40.0, 70.0, 90.0)]
    assert count_servers([trace for trace, _ in runs]).latency == pytest.approx(0.003, rel=0.1)


def test_a_handful_of_requests_is_refused() -> None:
    """No density can be estimated from them."""
    with pytest.raises(UsageError, match="at least 8"):
        count_servers([Trace.of([0.0, 1.0], [0.1, 0.1])])


def test_a_latency_at_the_bound_of_the_search_is_said() -> None:
    """0.3 s on the way and 20 ms of service, some of it next to nothing: how much is service is not known."""
    rng = np.random.default_rng(13)
    rates = [load / MEAN for load in (0.3, 0.5, 0.7, 0.9)]
    far = [simulated(rng, rate, 300, 1, TIMES["exponential"], 0.3)[0] for rate in rates]
    (said,) = count_servers(far).at_limit
    assert said.startswith("a latency of 27")
    near = [simulated(rng, rate, 300, 1, TIMES["uniform"], 0.001)[0] for rate in rates]
    assert not count_servers(near).at_limit


def test_more_servers_than_were_compared_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Constant times never overtake, so the search begins at one server; here it ends before the fourth."""
    trace, _ = simulated(np.random.default_rng(4), 150.0, 500, 4, TIMES["constant"])
    assert not any("compared" in said for said in count_servers([trace]).at_limit)
    monkeypatch.setattr("analyzer.blackbox.servers.MAX_CANDIDATES", 2)
    found = count_servers([trace])
    (said,) = (s for s in found.at_limit if "servers are the most that were compared" in s)
    assert said.startswith(f"{found.count} servers")
