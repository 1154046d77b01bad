"""Closed queueing networks: simulated, as a fluid, as a layered model; against exact solutions."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from networks import balancer, loop
from scipy.linalg import expm

from mup.errors import ModelError, UsageError
from simulator import simulate
from simulator.analytic.approximations.convolution import Chain
from simulator.networks.closed_network import ClosedNetwork
from simulator.networks.fluid import fluid_means, fluid_sensitivities, misplaced_gradient
from simulator.networks.model import default_reference, network_model, network_of
from simulator.networks.prediction import predicted_means
from simulator.networks.simulation import transient_means


def exact_means(network: ClosedNetwork, start: tuple[int, ...], times: list[float]) -> np.ndarray:
    """Solve the Markov chain: mean clients and busy servers at each time; shape (2, times, M)."""
    n, m = sum(start), len(start)
    states = [s for s in product(range(n + 1), repeat=m) if sum(s) == n]
    index = {s: k for k, s in enumerate(states)}
    q = np.zeros((len(states), len(states)))
    for s, k in index.items():
        for i, j in product(range(m), repeat=2):
            if s[i] and i != j:
                t = list(s)
                t[i] -= 1
                t[j] += 1
                rate = network.rates[i] * network.routing[i, j] * min(s[i], network.servers[i])
                q[k, index[tuple(t)]] += rate
                q[k, k] -= rate
    levels = np.array(states, dtype=float)
    busy = np.minimum(levels, network.servers)
    odds = [expm(q * t)[index[start]] for t in times]
    return np.array([[p @ levels for p in odds], [p @ busy for p in odds]])


def throughput(network: ClosedNetwork, clients: int, reference: str) -> float:
    """Return the exact throughput of a station, by convolution."""
    visits = network.visits(reference)
    think = network.index(reference)
    rest = [i for i in range(len(visits)) if i != think]
    rates = [network.rates[i] * np.minimum(np.arange(1.0, clients + 1), network.servers[i]) for i in rest]
    delay = float(1 / network.rates[think])
    return float(Chain(clients, delay, visits[rest].tolist(), rates, 1.0).throughput[clients - 1])


@pytest.mark.slow
def test_simulated_transients_are_those_of_the_markov_chain() -> None:
    """Means and busy times from one state, at every moment, within four standard errors."""
    network, start = loop(), (0, 5, 1)
    exact, busy = exact_means(network, start, [0.2 * h for h in range(11)])
    found = transient_means(network, np.array([start]), dt=0.2, samples=11, runs=20_000, seed=3)
    error = found.half[0] / 1.96
    assert error.max() < 0.02, "too few runs for this test to mean anything"
    assert (np.abs(found.x[0] - exact) <= 4 * error + 1e-12).all()
    # Simpson's rule on the exact means is far more exact than the simulation.
    fine = exact_means(network, start, np.linspace(0, 2, 201).tolist())[1]
    area = (fine[0] + 4 * fine[1:-1:2].sum(axis=0) + 2 * fine[2:-1:2].sum(axis=0) + fine[-1]) * (0.01 / 3)
    assert np.allclose(found.busy[0, -1], area, atol=0.02)
    assert np.allclose(exact[0], start)
    assert (busy <= network.servers).all()


def test_the_long_run_is_in_product_form() -> None:
    """Home's mean queue is its throughput times its time (Little), from convolution."""
    network, clients = loop(), 12
    runs = transient_means(network, np.array([[12, 0, 0]]), dt=40.0, samples=2, runs=8_000, seed=1)
    expected = throughput(network, clients, "home") / 0.5
    half = float(runs.half[0, 1, 0])
    assert half < 0.02 * expected
    assert abs(runs.x[0, 1, 0] - expected) <= 2 * half


def test_clients_are_conserved_and_seeds_repeat() -> None:
    starts = np.array([[3, 2, 0], [0, 0, 9]])
    one = transient_means(loop(), starts, dt=0.1, samples=20, runs=10, seed=5)
    again = transient_means(loop(), starts, dt=0.1, samples=20, runs=10, seed=5)
    other = transient_means(loop(), starts[:1], dt=0.1, samples=20, runs=10, seed=5)
    assert np.array_equal(one.x, again.x)
    assert np.array_equal(one.x[:1], other.x), "a state's runs must not depend on the other states"
    assert np.allclose(one.x.sum(axis=2), [[5], [9]])
    assert (np.diff(one.busy, axis=1) >= 0).all()
    assert ((one.free >= 0) & (one.free <= 1)).all()


def with_self_loops(network: ClosedNetwork, stay: np.ndarray) -> ClosedNetwork:
    """The construction in the proof of theorem 2.1.1, from a network without self-loops."""
    routing = network.routing * (1 - stay)[:, None] + np.diag(stay)
    return replace(network, routing=routing, rates=network.rates / (1 - stay))


@pytest.mark.slow
def test_self_loops_leave_no_trace_in_the_fluid() -> None:
    """Theorem 2.1.1: for any probabilities to stay there are rates that move the clients alike."""
    plain = loop((4, 2, 1))
    looped = with_self_loops(plain, np.array([0.3, 0.0, 0.9]))
    starts = np.array([[0.0, 7.0, 2.0]])
    expected = fluid_means(plain, starts, dt=0.1, samples=30)
    assert np.allclose(fluid_means(looped, starts, dt=0.1, samples=30), expected, atol=1e-12)
    back = ClosedNetwork.of_flows(looped.flows, looped.names, looped.servers)
    assert np.allclose(back.rates, plain.rates)
    assert np.allclose(back.routing, plain.routing)


@pytest.mark.slow
@pytest.mark.parametrize("cell", ["euler", "heun"])
def test_sensitivities_are_the_derivatives_of_the_cells(cell: str) -> None:
    network = loop((6, 2, 1))
    starts = np.array([[0.0, 4.0, 1.0], [9.0, 0.0, 0.5]])
    pairs = np.array([(0, 1), (1, 2), (2, 0)])
    settings = {"dt": 0.1, "samples": 15, "cells": 3, "cell": cell}
    x, s = fluid_sensitivities(network.flows, network.servers, starts, pairs, **settings)
    for p, (i, j) in enumerate(pairs):
        moved = network.flows
        moved[i, j] += 1e-7
        shifted, _ = fluid_sensitivities(moved, network.servers, starts, pairs[:0], **settings)
        assert np.allclose((shifted - x) / 1e-7, s[..., p], atol=1e-5)


def test_backpropagation_gives_the_derivatives_of_the_papers_error() -> None:
    observed = fluid_means(loop((6, 2, 1)), np.array([[0.0, 4.0, 1.0]]), dt=0.1, samples=15)
    flows = loop().flows * 1.3
    servers = np.array([6.0, 2.0, 1.0])
    errors, gradient = misplaced_gradient(flows, servers, observed, dt=0.1)
    flows[1, 2] += 1e-7
    moved, _ = misplaced_gradient(flows, servers, observed, dt=0.1)
    assert errors[0] > 0.01
    assert (moved - errors)[0] / 1e-7 == pytest.approx(gradient[1, 2], rel=1e-3)


def test_few_runs_and_the_fluid_together_have_no_bias() -> None:
    """Where the fluid is 20 % off, 40 runs are within 2 %."""
    network, start = loop((math.inf, 2, 1)), (0, 5, 1)
    exact = exact_means(network, start, [0.2 * h for h in range(11)])[0]
    starts = np.array([start])
    fluid = fluid_means(network, starts.astype(float), dt=0.2, samples=11)[0]
    found = predicted_means(network, starts, dt=0.2, samples=11, runs=400, seed=2)
    assert np.abs(fluid - exact).max() > 0.25
    assert np.abs(found.x[0] - exact).max() < 0.1
    inside = np.abs(found.x[0] - exact) <= found.half[0] + 1e-9
    assert inside.mean() > 0.8


@pytest.mark.slow
@pytest.mark.parametrize("network", [balancer((math.inf, 3, 2)), loop()], ids=["choices", "mixed"])
def test_the_layered_model_has_the_same_long_run(network: ClosedNetwork) -> None:
    clients, reference = 15, network.names[0]
    model = network_model(network, clients=clients, reference=reference, name="n")
    result = simulate(model, precision=0.01, seed=1)
    exact = throughput(network, clients, reference)
    assert result.cycle.throughput.mean == pytest.approx(exact, rel=0.02)
    assert model.reference_tasks[0].name == reference
    found = network_of(model)
    assert np.array_equal(found.routing, network.routing)
    assert np.array_equal(found.servers, network.servers)


def test_a_reference_station_with_finite_servers_is_a_task() -> None:
    network = loop((2, 2, 1))
    model = network_model(network, clients=4, reference="A", name="n")
    assert default_reference(network) == "home"
    assert [t.name for t in model.tasks] == ["clients", "home", "A", "B"]
    assert model.task("A").threads == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param({"rates": np.array([-1.0, 1, 1])}, "rates['home']: must be a number >= 0", id="rate"),
        pytest.param({"servers": np.array([1.0, 0, 1])}, "servers['A']: must be a whole", id="servers"),
        pytest.param({"routing": np.eye(3) / 2}, "routing['home']: must be probabilities", id="routing"),
        pytest.param({"rates": np.ones(2)}, "rates: must have the shape (3,), got (2,)", id="shape"),
    ],
)
def test_unsound_networks_are_refused(change: dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(ModelError) as caught:
        replace(loop(), **change)
    assert message in str(caught.value)


def test_clients_that_never_come_back_are_named() -> None:
    trap = loop().with_routing("B", {"B": 1.0})
    with pytest.raises(ModelError, match="clients never come back to 'home' from B"):
        network_model(trap, clients=3, reference="home", name="n")


def test_a_reference_station_that_no_client_leaves_is_refused() -> None:
    with pytest.raises(ModelError, match="no client ever leaves the reference station"):
        network_model(loop().with_rate("home", 0.0), clients=3, reference="home", name="n")


def test_what_if_edits_name_stations() -> None:
    network = balancer().with_servers("C1", 6).with_rate("C2", 22.0).with_routing("W", {"C1": 0.4, "C2": 0.6})
    assert network.servers.tolist() == [1000, 6, 25]
    assert network.rates.tolist() == [1, 11, 22]
    assert network.routing[0].tolist() == [0, 0.4, 0.6]
    with pytest.raises(UsageError, match="no station 'C3'"):
        network.with_servers("C3", 1)
