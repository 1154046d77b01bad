"""A network that does not explain its traces is noticed, and one that does is not blamed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from networks import loop
from service_systems import three_stations

from analyzer.learning.goodness import fluctuations, goodness_of_fit, runs_of
from analyzer.learning.network_learning import learn_network
from analyzer.learning.trace_files import read_traces, write_traces
from analyzer.learning.traces import Traces
from mup.cli.main import main
from mup.errors import UsageError
from simulator.networks.simulation import transient_means


@pytest.mark.slow
@pytest.mark.parametrize(
    ("service", "holds", "told"),
    [
        ("exponential", True, True),
        ("exponential", True, False),
        ("erlang-5", False, True),
        ("constant", False, False),
        ("lognormal-4", False, True),
    ],
)
def test_services_that_are_not_exponential_are_noticed(service: str, holds: bool, told: bool) -> None:
    """Review of the methods: rates were 15 to 35 % off without a word, if services are taken to be so."""
    traces = three_stations(service, seed=3)
    found = learn_network(traces if told else replace(traces, runs=None), services="exponential")
    assert found.goodness is not None
    assert found.goodness.runs == pytest.approx(50)
    assert found.goodness.runs_known == told
    assert found.goodness.holds == holds
    assert (found.alarm is None) == holds


@pytest.mark.slow
@pytest.mark.usefixtures("learned_once")
def test_the_command_ends_with_an_alarm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No shape of services explains one server in place of five: the last line and the exit code say so."""
    write_traces(tmp_path / "t.npz", three_stations("exponential", traces=16))
    command = ["learn", "qn", str(tmp_path / "t.npz"), "--servers", "inf,6,1"]
    for json_wanted in (False, True):
        with pytest.raises(SystemExit) as end:
            main([*command, *(["--json"] if json_wanted else [])])
        assert end.value.code == 1
        printed = capsys.readouterr()
        assert printed.err.startswith("alarm: the model does not explain the traces")
        assert "servers or structure" in printed.err
        if json_wanted:
            document = json.loads(printed.out)
            assert document["alarm"] in printed.err
            assert document["goodness"]["misplaced"] > document["goodness"]["limit"]


@pytest.mark.slow
def test_the_numbers_or_the_roughness_tell_the_runs() -> None:
    """Means of 30 runs are multiples of 1/30, until something is added that is none."""
    network, starts = loop(), np.array([[9, 3, 2], [1, 8, 4], [0, 0, 12]])

    def means(seed: int) -> np.ndarray:
        return transient_means(network, starts, dt=0.05, samples=201, runs=30, seed=seed).x

    others = np.array([means(seed) for seed in range(1, 21)])
    noise, expected = fluctuations(others, 30), others.mean(axis=0)
    x = means(0)
    assert runs_of(x, x - expected, noise) == 30
    assert runs_of(x + 1e-3 / 7, x - expected, noise) == pytest.approx(30, rel=0.15)


def test_limit_follows_the_noise() -> None:
    """What a true model misplaces falls with the root of the runs; what a wrong one does, does not."""
    draw = np.random.default_rng(1)
    around = draw.normal(size=(30, 6, 40, 2))
    noise = fluctuations(around, 10)
    off = draw.normal(size=(6, 40, 2))

    def test(off: np.ndarray, runs: float) -> tuple[bool, float]:
        found = goodness_of_fit(
            off,
            noise,
            runs=np.full(6, runs),
            runs_known=True,
            uncertain=np.zeros((1, 6, 40, 2)),
            error=lambda d: np.abs(d).mean(axis=(1, 2)),
            seed=0,
        )
        return found.holds, found.expected

    assert test(off, 10)[0]
    assert test(off / 2, 40)[0]
    assert not test(off, 40)[0]
    assert test(off, 40)[1] == pytest.approx(test(off, 10)[1] / 2)


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        pytest.param([3.0, 4.0], "one number, or 4, one per trace", id="shape"),
        pytest.param(2.5, "whole numbers of executions >= 1", id="half"),
        pytest.param(0, "whole numbers of executions >= 1", id="none"),
    ],
)
def test_unsound_runs_are_refused(runs: object, message: str) -> None:
    x = np.ones((4, 5, 2))
    with pytest.raises(UsageError) as caught:
        Traces(x=x, dt=0.1, names=("A", "B"), runs=np.array(runs))
    assert message in caught.value.message


@pytest.mark.parametrize("runs", [np.array(7), np.array([7.0, 8, 9, 10])], ids=["one", "each"])
def test_runs_survive_a_file(runs: np.ndarray, tmp_path: Path) -> None:
    traces = Traces(x=np.ones((4, 5, 2)), dt=0.1, names=("A", "B"), runs=runs)
    write_traces(tmp_path / "t.npz", traces)
    again = read_traces(tmp_path / "t.npz")
    assert again.runs is not None
    assert again.runs == pytest.approx(np.broadcast_to(runs, 4))
    assert again.select([2]).runs == pytest.approx(np.broadcast_to(runs, 4)[[2]])


def test_a_table_can_tell_the_runs(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("trace,time,A,B\nruns,12\n1,0,2,0\n1,0.1,1.5,0.5\n")
    assert read_traces(file).runs == pytest.approx([12])
    file.write_text("trace,time,A,B\nruns\n1,0,2,0\n1,0.1,1.5,0.5\n")
    with pytest.raises(UsageError, match="line 2: how many runs"):
        read_traces(file)
