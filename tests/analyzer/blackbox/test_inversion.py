"""Service times are recovered from arrivals and response times."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from stations import TIMES, simulated

from analyzer.blackbox.inversion import Trace, overtakings, service_times
from mup.errors import UsageError


@pytest.mark.parametrize("servers", [1, 2, 5])
@pytest.mark.parametrize("load", [0.3, 1.2])
def test_the_right_number_of_servers_gives_the_service_times_back(servers: int, load: float) -> None:
    """With the true K and latency the inversion is exact, below and beyond saturation."""
    rng = np.random.default_rng(1)
    trace, truth = simulated(rng, load * servers / 0.02, 500, servers, TIMES["exponential"], latency=0.003)
    service, waiting = service_times(trace, servers, 0.003)
    np.testing.assert_allclose(service, truth, atol=1e-12)
    np.testing.assert_allclose(service + waiting + 0.003, trace.responses, atol=1e-12)


def test_too_few_servers_give_negative_times_where_a_request_overtook() -> None:
    """Times are negative exactly where as many earlier requests as there are servers are still there."""
    trace, _ = simulated(np.random.default_rng(2), 150.0, 400, 4, TIMES["exponential"])
    for servers in range(1, 6):
        negative = service_times(trace, servers)[0] < -1e-12
        np.testing.assert_array_equal(negative, overtakings(trace, 1e-12) >= servers)


def test_more_servers_never_shorten_a_service_time() -> None:
    """Waiting that is not assumed is taken for work."""
    trace, _ = simulated(np.random.default_rng(3), 90.0, 300, 2, TIMES["uniform"])
    by_servers = [service_times(trace, k)[0] for k in range(1, 7)]
    for fewer, more in pairwise(by_servers):
        assert (more >= fewer - 1e-12).all()


def test_requests_may_come_in_any_order() -> None:
    """A trace is put in order of arrival."""
    trace = Trace.of([3.0, 1.0, 2.0], [0.3, 0.1, 0.2])
    assert trace.arrivals.tolist() == [1.0, 2.0, 3.0]
    assert trace.responses.tolist() == [0.1, 0.2, 0.3]


@pytest.mark.parametrize(
    ("arrivals", "responses"),
    [
        pytest.param([0.0, 1.0], [0.1], id="unpaired"),
        pytest.param([0.0], [-0.1], id="negative"),
        pytest.param([float("nan")], [0.1], id="not-a-number"),
    ],
)
def test_what_is_no_trace_is_refused(arrivals: list[float], responses: list[float]) -> None:
    """Shapes and values are checked."""
    with pytest.raises(UsageError):
        Trace.of(arrivals, responses)
