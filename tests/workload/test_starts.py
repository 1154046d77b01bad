"""Measured and simulated clients come at the same moments, one by one."""

from __future__ import annotations

import numpy as np
import pytest

from mup.lqn import Activity, Call, Constant, Entry, Model, Processor, Task
from mup.workload.starts import start_share
from simulator import simulate
from simulator.machine.variates import Stream, client_stream


@pytest.mark.parametrize("seed", [0, 1, 12345, 2**63, 2**64 - 1, -1])
def test_the_simulator_draws_the_same_shares(seed: int) -> None:
    """The first number of the stream of the first reference task's client."""
    bits = np.uint64(seed & 0xFFFFFFFFFFFFFFFF)
    for client in (0, 1, 7, 4000):
        stream = Stream(int(client_stream(bits, np.uint64(0), np.uint64(client))))
        assert stream.uniform() == start_share(seed, client)


def test_shares_fill_the_time_evenly() -> None:
    """Of many clients, as many come in each tenth, within 4 standard deviations."""
    counts = np.bincount([int(10 * start_share(3, client)) for client in range(10_000)], minlength=10)
    assert counts.max() - 1000 < 4 * 30
    assert 1000 - counts.min() < 4 * 30


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_clients_whose_work_always_takes_equally_long_do_not_stay_together(engine: str) -> None:
    """Ten clients, 1 s of thinking, 0.05 s on a shared core: together they would take 0.5 s, for ever."""
    work = Activity(name="work", demand=Constant(0.05), delay=Constant(0.0))
    use = Activity(
        name="use", demand=Constant(0.0), delay=Constant(0.0), calls=(Call(task="Server", entry="serve"),)
    )
    users = Task(
        name="Users",
        role="reference",
        threads=10,
        think=Constant(1.0),
        entries=(Entry(name="cycle", start="use", activities=(use,)),),
    )
    server = Task(
        name="Server",
        threads=float("inf"),
        processor="core",
        entries=(Entry(name="serve", start="work", activities=(work,)),),
    )
    model = Model(name="staggered", processors=(Processor(name="core"),), tasks=(users, server))
    result = simulate(model, engine=engine, horizon=30.0)
    assert result.cycle.response_time.mean < 0.2
