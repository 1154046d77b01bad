"""Traces in a wrong unit are told in one message; what ends at a bound of the search is no result."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from layered_systems import act, chain, running_example, traces_of, without_times
from networks import balancer

from analyzer.learning.lqn import learn_lqn
from analyzer.learning.network_learning import learn_network
from analyzer.learning.traces import Traces, require_closed
from mup.errors import UsageError
from simulator.networks.inlined import TimeKey
from simulator.networks.simulation import transient_means


def closed(runs: int = 50, *, fastest: float = 11.0) -> Traces:
    """Traces of a closed network, simulated event by event, of which every one says how many runs it is of."""
    network = replace(balancer(), rates=np.array([1.0, 11.0, fastest]))
    starts = np.random.default_rng(1).integers(0, 101, (20, 3))
    x = transient_means(network, starts, dt=0.05, samples=101, runs=runs, seed=1).x
    return Traces(x=x, dt=0.05, names=network.names, servers=network.servers, runs=np.array(runs))


@pytest.fixture(scope="module")
def layered() -> Traces:
    return traces_of(running_example(), count=12)


@pytest.mark.parametrize(("factor", "says"), [(1e3, "milliseconds taken for"), (1e-3, "seconds taken for")])
def test_a_wrong_unit_of_time_is_told_by_times_that_are_known(
    layered: Traces, factor: float, says: str
) -> None:
    """It took minutes, and times were a bound of the search, with an interval."""
    wrong = replace(layered, dt=layered.dt * factor)
    with pytest.raises(UsageError, match=says):
        learn_lqn(without_times(running_example(), "B", "D"), wrong)


def test_short_times_that_are_known_are_no_wrong_unit() -> None:
    """A latency of 1 ms is known, everything else takes a hundred times as long, as it really does."""
    model = running_example()
    query = chain("query", act("latency", 0.001), act("select", 0.04))
    model = model.with_task(replace(model.task("D"), entries=(query,)))
    unknown = without_times(model, "A", "B", "D")
    entry = unknown.task("D").entry("query")
    known = tuple(act("latency", 0.001) if a.name == "latency" else a for a in entry.activities)
    unknown = unknown.with_task(replace(unknown.task("D"), entries=(replace(entry, activities=known),)))
    learned = learn_lqn(unknown, traces_of(model, count=12), correction=False)
    found = learned.times[TimeKey("D", "query", "select", "demand")]
    assert found.known
    assert found.mean == pytest.approx(0.04, rel=0.15)


def test_a_time_at_a_bound_of_the_search_is_not_known() -> None:
    """10 us in samples every 100 ms: the shortest time that is looked for is said to be just that."""
    model = running_example()
    model = model.with_task(replace(model.task("B"), entries=(chain("serve", act("comp", 1e-5)),)))
    learned = learn_lqn(without_times(model, "B"), traces_of(model, count=12), correction=False)
    (time,) = learned.times.values()
    assert not time.known
    assert any("ended at 0.0005 s, the shortest time" in warning for warning in learned.warnings)
    assert learned.to_json()["times"]["B.serve:comp demand"]["known"] is False


def test_a_rate_at_a_bound_of_the_search_is_said() -> None:
    """5000 services per second in samples every 50 ms."""
    found = learn_network(closed(fastest=5000.0), correction="none")
    assert [s for s in found.to_json()["unknown"] if "bound of the search" in s and "'C2'" in s]
    assert not [s for s in learn_network(closed(), correction="none").unknown if "bound of the search" in s]


def test_tenfold_counts_are_noticed() -> None:
    """Means of n runs are multiples of 1/n; a few values, or means that were rounded, tell nothing."""
    good = closed()
    with pytest.raises(UsageError, match="multiple of 10 divided by the number of runs"):
        replace(good, x=good.x * 10)
    whole = np.round(closed(runs=2).x * 2)
    assert replace(good, x=whole, runs=None).dt == good.dt
    with pytest.raises(UsageError, match="every queue length is a multiple of 10, "):
        replace(good, x=whole * 10, runs=None)
    assert replace(good, x=np.round(good.x * 10, 2) + 0.001).dt == good.dt
    assert replace(good, x=np.full_like(good.x, 10.0)).dt == good.dt


def test_a_thousandfold_trace_or_column_is_named() -> None:
    good = replace(closed(), runs=None)
    x = good.x.copy()
    x[3] *= 1000
    with pytest.raises(UsageError, match=r"x: clients in trace 3 \(\d+\); the others have about"):
        require_closed(replace(good, x=x))
    x = good.x.copy()
    x[:, :, 1] /= 1000
    with pytest.raises(UsageError, match="column 'C1' times 1000 makes the sum the same throughout"):
        require_closed(replace(good, x=x))
    x[:, :, 2] *= 0.7
    with pytest.raises(UsageError, match="is a station missing"):
        require_closed(replace(good, x=x))
