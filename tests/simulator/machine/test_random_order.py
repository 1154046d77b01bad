"""Random-order admission: the mean of first come first served, but another spread. Exact, for a closed pool.

Six clients think and ask for a thread; thinking and service are exponential, so the time one request takes is
that of a small Markov chain to absorption. Its states: the request in question waits beside ``n`` others (n
from 0) while another request is served, or is served itself.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.optimize import brentq
from sim_models import act, agrees, clients, entry, exp, machine_repair, model, service

from mup.lqn import Model, Task
from simulator import simulate

CLIENTS, THINK, DEMAND = 6, 1.0, 0.4


def six_clients(admission: str) -> Model:
    server = service("A", entry("a", act("w", exp(DEMAND))), threads=1)
    return model(clients(CLIENTS, exp(THINK), "A.a"), replace(server, admission=admission))  # type: ignore[arg-type]


def seen_on_arrival() -> list[float]:
    """Return the probability of n others in the queue or in service: those of a system with one client less."""
    others = CLIENTS - 1
    weights = [1.0]
    for n in range(1, others + 1):
        weights.append(weights[-1] * (others - n + 1) / THINK * DEMAND)
    return [w / sum(weights) for w in weights]


def exact_quantile(admission: str, share: float) -> float:
    """Return the time within which this share of the requests is answered, in seconds.

    First come first served, only those ahead matter; in random order, all who wait do, later ones too.
    """
    others, service_rate, think_rate = CLIENTS - 1, 1 / DEMAND, 1 / THINK
    # State 0: in service. State 1 + n: waits, one other is served, n others wait (FIFO: wait ahead of it).
    size = others + 1
    rates = np.zeros((size, size))
    rates[0, 0] = -service_rate
    for n in range(others):
        state = 1 + n
        if admission == "random":
            rates[state, 0] += service_rate / (n + 1)
            if n:
                rates[state, state - 1] += service_rate * n / (n + 1)
            thinking = others - 1 - n
            if thinking:
                rates[state, state + 1] += think_rate * thinking
        else:
            rates[state, state - 1 if n else 0] += service_rate
        rates[state, state] = -rates[state].sum()
    start = np.array(seen_on_arrival())  # n others found: n = 0 is served at once, else n - 1 wait

    def late(seconds: float) -> float:
        return float((start @ expm(rates * seconds)).sum()) - (1 - share)

    return float(brentq(late, 1e-9, 100.0))


@pytest.mark.slow
@pytest.mark.parametrize("admission", ["fifo", "random"])
def test_percentiles_are_those_of_the_chain(admission: str) -> None:
    """The mean is that of M/M/1//N in any order; percentiles follow the order."""
    result = simulate(six_clients(admission), precision=0.006, seed=7)
    time = result.cycle.response_time
    assert agrees(time, machine_repair(CLIENTS, 1, THINK, DEMAND)[1])
    for share, figure in ((0.5, time.p50), (0.9, time.p90), (0.95, time.p95), (0.99, time.p99)):
        assert agrees(figure, exact_quantile(admission, share), within=0.05)


def test_in_random_order_some_wait_much_longer() -> None:
    """The chain says so without any simulation: earlier for half of them, a third later for the last percent."""
    assert exact_quantile("random", 0.5) < 0.9 * exact_quantile("fifo", 0.5)
    assert exact_quantile("random", 0.99) > 1.3 * exact_quantile("fifo", 0.99)


@pytest.mark.slow
@pytest.mark.parametrize("rho", [0.5, 0.8])
def test_second_moment_of_the_wait_in_an_open_queue(rho: float) -> None:
    """M/M/1: E[W^2] in random order is 2 / (2 - rho) times that of first come first served (Takacs 1963)."""
    body = replace(entry("cycle", act("go", calls="A.a")), arrivals=exp(1 / rho))
    source = Task(name="U", role="reference", threads=float("inf"), entries=(body,))
    server = replace(service("A", entry("a", act("w", exp(1.0))), threads=1), admission="random")
    result = simulate(model(source, server), precision=0.012, seed=11)
    wait = rho / (1 - rho)
    square = 2 * rho / (1 - rho) ** 2 * 2 / (2 - rho)
    sd = (square - wait**2 + 1.0) ** 0.5
    assert agrees(result.cycle.response_time, wait + 1)
    assert result.cycle.response_time.sd == pytest.approx(sd, rel=0.06)
