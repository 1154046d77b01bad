"""What the rounds leave open in a figure: by estimates, by simulations, and what follows of it."""

import math

import pytest

from analyzer.calibration.answer import _answers, _decides, _estimated, _simulated
from analyzer.calibration.bootstrap import emphases
from analyzer.calibration.rundir import Phase, Window
from mup.lqn import (
    Activity,
    Call,
    Constant,
    Entry,
    Exponential,
    Model,
    Processor,
    Replicate,
    Task,
    Uncertainty,
)
from mup.statistics.student import t_quantile
from simulator.studies.advice import suspects
from simulator.studies.whatif import Change, Scenario

ROUNDS: list[Phase] = ["hot", "cold"] * 6
WINDOWS = [Window(start=n, end=n + 1, phase=phase) for n, phase in enumerate(ROUNDS)]
OF = emphases(WINDOWS)


def model(spread: float) -> Model:
    """One service on a core of its own; each hot round found another demand, cold ones all the same delay."""
    service = Task(
        name="A",
        role="service",
        threads=1,
        processor="core",
        entries=(
            Entry(
                name="/x/",
                start="work",
                activities=(Activity(name="work", demand=Exponential(0.01), delay=Constant(0.002)),),
            ),
        ),
    )
    go = Activity(name="go", demand=Constant(0.0), delay=Constant(0.0), calls=(Call(task="A", entry="/x/"),))
    client = Task(
        name="U",
        role="reference",
        threads=1,
        think=Exponential(0.1),
        entries=(Entry(name="cycle", start="go", activities=(go,)),),
    )
    hot = [1 + spread * (number - 2.5) for number in range(6)]
    draws = []
    for emphasis in OF:
        factor = 1.0
        if emphasis.phase == "hot":
            extra = emphasis.weight - 1
            factor = 1 + (hot[emphasis.windows[0] // 2] - 1) * extra / (emphasis.groups + extra)
        draws.append(Replicate(demands={"A/x/:work": factor}))
    return Model(
        name="m",
        processors=(Processor(name="core"),),
        tasks=(client, service),
        uncertainty=Uncertainty(replicates=tuple(draws), batches=6),
    )


def scenario(clients: int, spread: float = 0.02) -> Scenario:
    """Return the model with so many clients."""
    change = Change("clients", "", clients)
    return Scenario((change,), change.apply(model(spread)))


def test_one_user_knows_a_time_as_well_as_its_rounds_do() -> None:
    """Of a response time of 12 ms, 10 are known to the standard error of the rounds."""
    one = scenario(1)
    ((time, _), (throughput, _)) = _answers("one", one.model, _estimated(one, OF), OF)
    sd = 0.02 * math.sqrt(3.5)  # of 0, 1, .. 5
    assert time.variances["cold"] == 0
    assert math.sqrt(time.variances["hot"]) == pytest.approx(10 / 12 * sd / math.sqrt(6), rel=0.03)
    assert time.freedom == pytest.approx(5)
    assert time.half_width == pytest.approx(t_quantile(5) * math.sqrt(time.variances["hot"]))
    assert throughput.half_width < 0.2 * time.half_width


def test_queues_make_it_worse() -> None:
    """Where a service is nearly full, its demand counts several times."""
    answers = [_answers("", s.model, _estimated(s, OF), OF)[0][0] for s in (scenario(1), scenario(12))]
    assert answers[1].half_width > 2 * answers[0].half_width


def test_simulations_say_the_same_as_estimates() -> None:
    """They stand in for them where a model has no estimate."""
    crowd = scenario(8, spread=0.04)
    ((by_estimate, _), _) = _answers("", crowd.model, _estimated(crowd, OF), OF)
    ((by_simulation, _), _) = _answers("", crowd.model, _simulated(crowd), OF)
    assert by_simulation.mean == pytest.approx(by_estimate.mean, rel=0.15)
    assert by_simulation.half_width == pytest.approx(by_estimate.half_width, rel=0.4)


def test_who_decides_is_named() -> None:
    """The only numbers that differ are the demands of the service."""
    one = scenario(1)
    ((_, moves), _) = _answers("", one.model, _estimated(one, OF), OF)
    assert _decides(suspects(one.model), moves) == "A/x/ (demand)"
    assert _decides(suspects(one.model), [0.0] * len(OF)) == ""
