"""Closed networks are found again in their traces, and what traces cannot tell is said."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from networks import balancer, loop

from analyzer.learning.misplaced import misplaced
from analyzer.learning.network_error_fit import fit_error
from analyzer.learning.network_learning import learn_network, possible_flows
from analyzer.learning.trace_files import write_traces
from analyzer.learning.traces import Traces
from mup.cli.main import main
from mup.errors import UsageError
from mup.lqn.files import read_model
from simulator.networks.closed_network import ClosedNetwork
from simulator.networks.fluid import fluid_means
from simulator.networks.simulation import transient_means


def observe(network: ClosedNetwork, many: int = 20, runs: int = 200, seed: int = 1) -> Traces:
    """Simulate traces from random states, as the papers do."""
    starts = np.random.default_rng(seed).integers(0, 101, (many, len(network.names)))
    means = transient_means(network, starts, dt=0.05, samples=101, runs=runs, seed=seed)
    return Traces(x=means.x, dt=0.05, names=network.names, servers=network.servers, busy=means.busy)


@pytest.fixture(scope="module")
def traces() -> Traces:
    return observe(balancer())


@pytest.mark.slow
@pytest.mark.parametrize("correction", ["busy", "simulation"])
def test_the_running_example_is_found_again(traces: Traces, correction: str) -> None:
    """Thesis, figure 8: 0.69 % of the clients misplaced in training."""
    found = learn_network(traces, correction=correction)  # type: ignore[arg-type]
    truth = balancer()
    assert found.network.rates == pytest.approx(truth.rates, rel=0.03)
    assert np.abs(found.network.routing - truth.routing).max() < 0.03
    assert found.held_back["corrected"].mean <= found.held_back["uncorrected"].mean + 0.1
    assert found.rates_half is not None
    assert (found.rates_half < 0.1 * truth.rates).all()
    assert found.err_train.traces == found.err_validation.traces == 10


@pytest.mark.slow
def test_correction_removes_the_bias_of_the_fluid() -> None:
    """At stations about as full as they have servers the fluid's rates are off; corrected ones are not."""
    truth = balancer((math.inf, 3, 4))
    network = ClosedNetwork(
        names=truth.names, rates=np.array([1.0, 9.0, 7.0]), routing=truth.routing, servers=truth.servers
    )
    starts = np.random.default_rng(2).integers(0, 21, (24, 3))
    means = transient_means(network, starts, dt=0.05, samples=101, runs=400, seed=4)
    found = learn_network(Traces(x=means.x, dt=0.05, names=network.names, servers=network.servers))
    uncorrected = np.abs(found.uncorrected.rates / network.rates - 1).max()
    corrected = np.abs(found.network.rates / network.rates - 1).max()
    assert corrected < 0.03
    assert corrected < uncorrected / 2
    assert found.held_back["corrected"].mean < found.held_back["uncorrected"].mean


@pytest.mark.slow
def test_intervals_know_the_noise_of_a_short_simulation() -> None:
    """95 % of 32 parameters are 30; if they are independent, fewer than 25 have a probability of 1e-4.

    The simulation has a tenth of the runs of the data. Its noise must neither be forgotten nor cut off.
    """
    truth = ClosedNetwork(
        names=("W", "C1", "C2"),
        rates=np.array([1.0, 9.0, 7.0]),
        routing=balancer().routing,
        servers=np.array([math.inf, 3, 4]),
    )
    inside = 0
    for seed in range(8):
        starts = np.random.default_rng([seed, 1]).integers(1, 21, (40, 3))
        means = transient_means(truth, starts, dt=0.03, samples=101, runs=100, seed=seed)
        traces = Traces(x=means.x, dt=0.03, names=truth.names, servers=truth.servers)
        found = learn_network(traces, without=[("C1", "C2"), ("C2", "C1")], seed=seed, events=1e5)
        assert found.rates_half is not None
        assert found.routing_half is not None
        inside += int((np.abs(found.network.rates - truth.rates) <= found.rates_half).sum())
        inside += abs(found.network.routing[0, 1] - 0.5) <= found.routing_half[0, 1]
    assert inside >= 25


def test_adam_finds_a_network_too(traces: Traces) -> None:
    few = traces.select(range(4))
    found = learn_network(few, method="adam", correction="none")
    assert found.network is found.uncorrected
    assert found.err_train.mean < 5
    assert "corrected" not in found.held_back


def test_the_error_of_the_papers_can_be_what_is_minimised(traces: Traces) -> None:
    """Equation 3.2: no flows near those found have a smaller mean error, nor has training by descent."""
    few = traces.select(range(4))
    squares = learn_network(few, correction="none")
    least = learn_network(few, correction="none", method="worst-moment")
    descended = learn_network(few, correction="none", method="adam")
    assert least.err_train.mean < 0.98 * squares.err_train.mean
    assert least.err_train.mean < descended.err_train.mean
    learn, _ = few.split(0)
    draw = np.random.default_rng(3)
    for far in (0.001, 0.01, 0.1):
        for _ in range(100):
            flows = least.network.flows * np.exp(draw.normal(0.0, far, (3, 3)))
            other = ClosedNetwork.of_flows(flows, few.names, least.network.servers)
            x = fluid_means(other, learn.starts, dt=few.dt, samples=few.x.shape[1])
            assert misplaced(learn.x, x).mean() > 0.999 * least.err_train.mean


def test_flows_of_a_fluid_are_found_by_its_error() -> None:
    """Traces without noise, a start that is far off: the error becomes that of the arithmetic."""
    truth = loop()
    starts = np.random.default_rng(5).integers(0, 31, (10, 3)).astype(float)
    x = fluid_means(truth, starts, dt=0.05, samples=101)
    traces = Traces(x=x, dt=0.05, names=truth.names, servers=truth.servers)
    begin = truth.flows * np.array([[0.0, 1.5, 0.6], [0.5, 0.0, 1.6], [1.4, 0.7, 0.0]])
    flows = fit_error(traces, truth.servers, possible_flows(truth.names, ()), begin)
    assert flows == pytest.approx(truth.flows, rel=1e-3)


def test_structural_zeros_are_kept_and_starts_agree(traces: Traces) -> None:
    """Without the ways that do not exist; a second fit from elsewhere ends at the same place."""
    without = [("C1", "C2"), ("C2", "C1")]
    one = learn_network(traces, without=without, correction="none")
    two = learn_network(traces, without=without, correction="none", starts=2, seed=0)
    assert one.network.routing[1].tolist() == [1, 0, 0]
    assert two.network.rates == pytest.approx(one.network.rates, rel=0.01)
    with pytest.raises(UsageError, match="nothing would leave station 'C1'"):
        learn_network(traces, without=[("C1", "C2"), ("C1", "W")])


def empty_station(traces: Traces) -> Traces:
    """One station more, at which no client ever is."""
    x = np.concatenate((traces.x, np.zeros_like(traces.x[:, :, :1])), axis=2)
    servers = np.array([1000, 30, 25, 2.0])
    return Traces(x=x, dt=traces.dt, names=(*traces.names, "idle"), servers=servers)


def test_what_cannot_be_known_is_said(traces: Traces) -> None:
    found = learn_network(empty_station(traces), correction="none")
    assert (
        "station 'idle' was empty throughout: neither its rate nor its routing can be known" in found.unknown
    )
    assert any("station 'W' was never full" in sentence for sentence in found.unknown)


@pytest.mark.slow
def test_few_traces_of_many_stations_end_with_resolvable_rates() -> None:
    """Two traces cannot tell 90 flows; what is found is still finite, and found in finite time."""
    draw = np.random.default_rng(6)
    routing = draw.uniform(size=(10, 10))
    np.fill_diagonal(routing, 0.0)
    network = ClosedNetwork(
        names=tuple("ABCDEFGHIJ"),
        rates=draw.uniform(4.0, 30.0, 10),
        routing=routing / routing.sum(axis=1, keepdims=True),
        servers=draw.integers(15, 31, 10).astype(float),
    )
    starts = draw.integers(0, 41, (4, 10))
    means = transient_means(network, starts, dt=0.05, samples=21, runs=20, seed=6)
    found = learn_network(Traces(x=means.x, dt=0.05, names=network.names, servers=network.servers))
    assert (found.network.rates <= 5 / 0.05 + 1e-9).all()
    assert np.isfinite(found.err_validation.mean)


def test_the_command_writes_a_model_for_what_ifs(
    traces: Traces, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_traces(tmp_path / "t.npz", traces)
    out = tmp_path / "learned.json"
    arguments = ["learn", "qn", str(tmp_path / "t.npz"), "--servers", "inf,30,25"]
    arguments += ["--without", "C1->C2", "--without", "C2->C1", "-o", str(out), "--json"]
    arguments += ["--plot", str(tmp_path / "worst.svg")]
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 0
    document = json.loads(capsys.readouterr().out)
    assert document["rates"] == pytest.approx([1, 11, 11], rel=0.05)
    assert document["routing"][0] == pytest.approx([0, 0.5, 0.5], abs=0.03)
    assert 0 < document["err_train"] < 3
    assert 0 < document["err_validation"] < 3
    assert document["seconds"] > 0
    picture = (tmp_path / "worst.svg").read_text()
    assert picture.startswith("<svg")
    assert "clients at C2" in picture
    model = read_model(out)
    assert model.reference_tasks[0].name == "W"
    assert model.task("C1").threads == 30
    with pytest.raises(SystemExit) as end:
        main(["convert", str(out), str(tmp_path / "learned.lqnx")])
    assert end.value.code == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(lambda x: x[:3], "3 traces are too few", id="few"),
        pytest.param(lambda x: x - 200, "must not be negative", id="negative"),
        pytest.param(lambda x: x * np.linspace(1, 2, 101)[None, :, None], "appear or vanish", id="lost"),
        pytest.param(lambda x: x[:, :1].repeat(101, axis=1), "nothing moves", id="constant"),
    ],
)
def test_bad_traces_are_refused_by_the_command(
    traces: Traces,
    change: Callable[[np.ndarray], np.ndarray],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "bad.npz"
    np.savez(file, x=change(traces.x), dt=0.05, names=np.array(traces.names), servers=[1000, 30, 25])
    with pytest.raises(SystemExit) as end:
        main(["learn", "qn", str(file), "-o", str(tmp_path / "m.json"), "--json"])
    assert end.value.code == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert message in error["message"]
    assert error["where"] == str(file)
    assert not (tmp_path / "m.json").exists()
