"""``mup learn lqn`` where times are not exponential: means, variation, intervals; what cannot be told is said."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from layered_services import TIMES, two_layers, two_layers_observed, unknown
from layered_systems import without_times

from analyzer.learning import lqn_service_problem
from analyzer.learning.lqn import LearnedLqn, LearnedTime, learn_lqn
from analyzer.learning.trace_files import write_traces
from mup.cli.main import main
from mup.lqn import save_model
from mup.lqn.files import read_model
from simulator import simulate


def named(learned: LearnedLqn) -> dict[str, LearnedTime]:
    return {key.activity or key.time: time for key, time in learned.times.items()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("service", "scv", "far"),
    [
        pytest.param("erlang-5", 0.2, 0.02, id="erlang"),
        pytest.param("h2-10", 10.0, 0.05, id="hyperexponential"),
    ],
)
def test_means_and_variation_are_learned(service: str, scv: float, far: float) -> None:
    """Taken for exponential, times are 5 to 62 % too short."""
    traces = two_layers_observed(dict.fromkeys(TIMES, service), seed=0)
    plain = learn_lqn(unknown(), traces, services="exponential")
    assert plain.alarm is not None
    assert plain.exponential
    assert max(abs(named(plain)[name].mean / true - 1) for name, true in TIMES.items()) > 0.1
    told: list[str] = []
    learned = learn_lqn(unknown(), traces, on_progress=told.append)
    assert "search 4 of 4" in told[3]
    assert "last steps" in told[-1]
    assert learned.alarm is None
    for name, true in TIMES.items():
        time = named(learned)[name]
        assert time.mean == pytest.approx(true, rel=far), name
        assert time.ci95 is not None
        # Intervals of Erlang-5 are narrow (0.5 %); half of that again is one time in a hundred.
        assert abs(time.mean - true) < 1.5 * time.ci95 + 0.005 * true, name
        assert time.scv == pytest.approx(scv, rel=0.2), name


@pytest.mark.slow
def test_each_task_has_a_variation_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Users think exponentially, A is nearly constant, B varies: files in, a model that simulates out."""
    services = {"think": "exponential", "pre": "erlang-5", "q": "h2-2", "post": "erlang-5"}
    save_model(without_times(two_layers(), "C", "A", "B"), tmp_path / "model.json")
    write_traces(tmp_path / "t.npz", two_layers_observed(services, seed=2))
    command = ["learn", "lqn", str(tmp_path / "model.json"), str(tmp_path / "t.npz")]
    with pytest.raises(SystemExit) as end:
        main([*command, "-o", str(tmp_path / "learned.json"), "--json"])
    assert end.value.code == 0
    times = json.loads(capsys.readouterr().out)["times"]
    for text, mean, scv in (
        ("C.cycle:think", 0.5, 1.0),
        ("A.serve:pre", 0.05, 0.2),
        ("A.serve:post", 0.1, 0.2),
        ("B.query:q", 0.06, 2.0),
    ):
        found = times[f"{text} demand"]
        assert found["mean"] == pytest.approx(mean, rel=0.05), text
        assert found["scv"] == pytest.approx(scv, rel=0.25), text
        assert found["scv_ci95"] > 0
    written = read_model(tmp_path / "learned.json")
    demand = written.task("B").entries[0].activities[0].demand
    assert demand is not None
    assert demand.scv == pytest.approx(times["B.query:q demand"]["scv"])
    # 96 users in cycles of 0.71 s: hardly one of them waits for a thread.
    assert simulate(written, horizon=200, seed=1).tasks["A"].throughput.mean == pytest.approx(135, rel=0.05)


def test_models_of_too_many_states_keep_exponential_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lqn_service_problem, "MOST_STATES", 7)
    traces = two_layers_observed(dict.fromkeys(TIMES, "h2-2"), traces=10, runs=60, seed=1)
    learned = learn_lqn(unknown(), replace(traces, runs=np.array(60)))
    assert learned.exponential
    assert any("more than 7" in warning for warning in learned.warnings)
