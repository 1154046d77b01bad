"""The choice of a structure, and of the next experiment."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fitted_models import (
    MEASURES,
    NAMES,
    PATHS,
    TRUE,
    clients,
    loads,
    measured,
    server,
    three_queues,
    two_layers,
)
from scipy.special import fdtrc
from test_fit_command import run, write_data

from analyzer.fitting.design import elasticities, experiments
from analyzer.fitting.fit import Options, Wanted, fit
from analyzer.fitting.parameters import parameter
from analyzer.fitting.structures import FTest, _moved_inwards, compare, kept, simplified
from mup.errors import UsageError
from mup.lqn import Exponential, Model
from mup.lqn.files import read_model, write_model

WANTED = [Wanted(parameter(p)) for p in PATHS]
GHOST = Wanted(parameter("demand.ghost.serve"))


def four_queues(ghost: float) -> Model:
    """Return the network with a fourth queue that no figure is measured of."""
    model = three_queues()
    queue = server("ghost", Exponential(ghost))
    return replace(model, tasks=(clients((*NAMES, "ghost"), 4), *model.tasks[1:], queue))


@pytest.mark.parametrize(("truth", "significant"), [pytest.param(0.0, False, id="not-there"), (1.0, True)])
def test_a_further_queue_is_significant_if_it_is_there(truth: float, significant: bool) -> None:
    """The F test tells a queue that exists from one that does not; its E is never larger."""
    system = four_queues(truth) if truth else three_queues()
    data = measured(system, loads(range(1, 9)), MEASURES, rows=8, error=0.02, random=np.random.default_rng(1))
    three, four = fit(three_queues(), data, WANTED), fit(four_queues(0.5), data, [*WANTED, GHOST])
    test = compare(three, four)
    # Chance alone gives p below 0.05 once in twenty times.
    assert (test.p_value < 0.01) is significant
    assert test.parameters == (3, 4)
    assert test.freedom == (1, 8 * 4 - 4)
    assert test.squares[1] <= test.squares[0] * (1 + 1e-6)
    statistic = (test.squares[0] - test.squares[1]) / (test.squares[1] / 28)
    assert test.statistic == pytest.approx(statistic)


def _ghost_test(seed: int, *, ghost: float = 0.0, rows: int = 6) -> FTest:
    """Return the test of a fourth queue on drawn measurements."""
    data = measured(
        four_queues(ghost) if ghost else three_queues(), loads(range(1, 7)), MEASURES, rows=rows, error=0.02,
        random=np.random.default_rng(seed),
    )  # fmt: skip
    linear = Options(method="linear")
    three, four = (
        fit(three_queues(), data, WANTED, linear),
        fit(four_queues(0.5), data, [*WANTED, GHOST], linear),
    )
    return compare(three, four)


def test_a_queue_without_work_is_at_a_bound() -> None:
    """The demand of a queue that is not there can only be estimated too large: p is half of that of F."""
    test = _ghost_test(3, ghost=0.02)
    assert test.at_bound == ("demand.ghost.serve",)
    if test.squares[1] < test.squares[0]:
        assert test.p_value == pytest.approx(float(fdtrc(*test.freedom, test.statistic)) / 2, rel=1e-6)


@pytest.mark.slow
def test_the_test_at_a_bound_is_as_sharp_as_it_says() -> None:
    """A queue that is not there is found in about 5 % of all cases; by F's own distribution in half as many."""
    p_values = np.array([_ghost_test(seed).p_value for seed in range(5000, 5090)])
    assert 0.02 <= np.mean(p_values < 0.05) <= 0.08
    assert 0.4 <= np.mean(p_values > 0.49) <= 0.65


@pytest.mark.parametrize("correlation", [0.0, 0.5, -0.5])
def test_weights_of_two_parameters_at_a_bound(correlation: float) -> None:
    """In two dimensions they are known: 1/2 for one of them, and an angle for none (Silvapulle and Sen, 3.5)."""
    weights = _moved_inwards(np.array([[1.0, correlation], [correlation, 1.0]]))
    both = 0.25 + math.asin(correlation) / (2 * math.pi)
    np.testing.assert_allclose(weights, [0.5 - both, 0.5, both], atol=0.03)


def test_structures_of_equally_many_parameters_are_compared_by_what_they_explain() -> None:
    """There is nothing to test; with the same weights the true structure leaves less."""
    random = np.random.default_rng(0)
    data = measured(three_queues(), loads([1, 4, 8]), MEASURES, rows=5, error=0.02, random=random)
    found, other = fit(three_queues(), data, WANTED), fit(four_queues(2.0), data, WANTED)
    test = compare(found, other)
    assert test.parameters == (3, 3)
    assert test.freedom == (0, 3 * 4 - 3)
    assert not test.significant
    assert 10 * test.squares[0] < test.squares[1]


def test_a_task_becomes_a_delay() -> None:
    """What only the task needs goes with it; the delay starts at the response time the whole model predicts."""
    smaller, delays = simplified(two_layers(), "back")
    assert [t.name for t in smaller.tasks] == ["Users", "front", "back"]
    assert smaller.task("back").threads == float("inf")
    (delay,) = delays
    assert delay.parameter.path == "delay.back.serve"
    assert delay.start is not None
    assert delay.start > 0.05  # its demand, and some waiting
    both = [Wanted(parameter("demand.front.serve")), Wanted(parameter("demand.back.serve"))]
    assert kept(both, smaller, "back") == both[:1]
    whole, _ = simplified(two_layers(), "front")
    assert [t.name for t in whole.tasks] == ["Users", "front"]
    assert whole.processors == ()


def test_only_tasks_that_are_called_become_delays() -> None:
    """Clients cannot be a delay."""
    with pytest.raises(UsageError, match="no task 'Users' that is called"):
        simplified(two_layers(), "Users")


def test_the_most_telling_experiment_does_tell_most() -> None:
    """The trial ranked first shrinks the real covariance most when it is really added."""
    random = np.random.default_rng(11)
    data = measured(three_queues(), loads([1, 2]), MEASURES, rows=10, error=0.02, random=random)
    found = fit(three_queues(), data, WANTED)
    ranked = experiments(found, loads([1, 3, 12]))
    assert [e.shrinkage for e in ranked] == sorted(e.shrinkage for e in ranked)
    assert ranked[0].shrinkage < 1
    volumes = {}
    for experiment in ranked:
        more = measured(
            three_queues(), [*loads([1, 2]), experiment.settings], MEASURES, rows=10, error=0.02,
            random=np.random.default_rng(11),
        )  # fmt: skip
        if experiment.settings in loads([1, 2]):
            continue
        sure = fit(three_queues(), more, WANTED).confidence
        assert sure is not None
        volumes[experiment.settings] = float(np.linalg.det(sure.covariance))
    assert list(volumes) == sorted(volumes, key=lambda s: volumes[s])


def test_elasticities_of_a_bottleneck() -> None:
    """Many clients: throughput falls by 1 % per percent of the slowest demand, and not with the others."""
    data = measured(
        three_queues(), loads([1, 40]), MEASURES, rows=5, error=0.01, random=np.random.default_rng(0)
    )
    found = fit(three_queues(), data, WANTED)
    np.testing.assert_allclose(elasticities(found)[1, 3], [0, 0, -1], atol=0.02)
    np.testing.assert_allclose(elasticities(found)[0, 3], -np.array(TRUE) / sum(TRUE), rtol=0.05)


def test_command_compares_simplifies_and_ranks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One run fits the model and a smaller one, tests them, ranks further trials, and writes the smaller one."""
    write_model(three_queues(), tmp_path / "model.json")
    data = measured(
        three_queues(), loads([2, 5]), MEASURES, rows=8, error=0.02, random=np.random.default_rng(5)
    )
    arguments = [str(tmp_path / "model.json"), str(write_data(tmp_path / "data.csv", data))]
    arguments += ["--estimate", ",".join(PATHS), "--candidate", "clients=1", "--candidate", "clients=9"]
    code, out, _ = run(capsys, *arguments, "--simplify", "web", "--json")
    assert code == 0
    assert set(json.loads(out)["versus"]["parameters"]) == {*PATHS[1:], "delay.web.serve"}
    assert json.loads(out)["versus"]["test"]["statistic"] is None
    code, out, _ = run(
        capsys, *arguments, "--versus-estimate", ",".join(PATHS[1:]), "-o", str(tmp_path / "f.json"), "--json"
    )
    content = json.loads(out)
    assert code == 0
    assert len(content["experiments"]) == 2
    assert content["versus"]["test"]["parameters"] == [2, 3]
    assert content["trials"][0]["sensitivities"]["throughput"][PATHS[2]] < 0
    assert read_model(tmp_path / "f.json").provenance["fit"]["freedom"] == 5
    code, out, _ = run(capsys, *arguments, "--versus-estimate", PATHS[0])
    assert code == 0
    assert "explain more than chance would" in out or "explain no more than chance would" in out
    assert "Further trials" in out


def test_what_was_never_measured_can_become_a_delay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A demand that is null in the file has a value once it is fitted, and a response time."""
    model = three_queues()
    unknown = replace(model.task("web").entries[0].activities[0], demand=None)
    web = replace(model.task("web"), entries=(replace(model.task("web").entries[0], activities=(unknown,)),))
    write_model(replace(model, tasks=(model.tasks[0], web, *model.tasks[2:])), tmp_path / "model.json")
    data = measured(
        three_queues(), loads([2, 5]), MEASURES, rows=8, error=0.02, random=np.random.default_rng(5)
    )
    arguments = [str(tmp_path / "model.json"), str(write_data(tmp_path / "data.csv", data))]
    arguments += ["--estimate", f"{PATHS[0]}=1", "--estimate", ",".join(PATHS[1:])]
    code, out, _ = run(capsys, *arguments, "--simplify", "web")
    assert code == 0
    assert "delay.web.serve" in out
    assert "both structures have 3 parameters, so there is nothing to test" in out.replace("\n", " ")


def test_a_delay_has_no_utilization(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A column that only the whole model explains is named before anything is fitted."""
    write_model(three_queues(), tmp_path / "model.json")
    (tmp_path / "data.csv").write_text("clients,throughput,tasks.web.utilization\n1,0.11,0.22\n2,0.16,0.33\n")
    arguments = [str(tmp_path / "model.json"), str(tmp_path / "data.csv"), "--estimate", PATHS[0]]
    code, _, err = run(capsys, *arguments, "--simplify", "web")
    assert code == 2
    assert "'tasks.web.utilization' is measured, and a delay has no utilization" in err
