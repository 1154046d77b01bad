"""Prediction intervals allow for another machine speed, as far as it affects each figure."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from sim_models import act, clients, entry, exp, machine_repair, model, service

from analyzer.host.speed_variation import PRIOR, selected, variation
from mup.errors import UsageError
from mup.lqn import Model, Processor
from mup.lqn.machine_speed import MachineSpeed, on_machine_of_speed
from mup.workload.machine import Identity
from mup.workload.speed_history import SpeedRecord
from simulator import Result, simulate
from simulator.studies.calibration_spread import SpeedEffect, speed_effect, speed_jobs
from simulator.studies.grids import run_scenarios
from simulator.studies.prediction import Interval, RealRun, predict_interval
from simulator.studies.whatif import Scenario

CLIENTS, THINK, DEMAND = 8, 0.5, 0.1
LONG = RealRun(1e9)
HERE = Identity(hostname="here", kernel="6.1", cpu="Some CPU", cores=1)


def shop(users: int = CLIENTS) -> Model:
    """Clients of one thread on the machine; their exact figures are known."""
    plain = model(
        clients(users, exp(THINK), "A.a"), service("A", entry("a", act("w", exp(DEMAND))), threads=1)
    )
    host = Processor(name="host")
    return replace(plain, processors=(host,), tasks=tuple(_on_host(plain)))


def _on_host(plain: Model) -> list[object]:
    return [t if t.is_reference else replace(t, processor="host") for t in plain.tasks]


def random_speed(sd: float, freedom: float = math.inf) -> MachineSpeed:
    """A machine whose speed is known to a standard deviation."""
    return MachineSpeed(processors=("host",), sd=sd, freedom=freedom)


def exact(speed: float) -> dict[tuple[str, str], float]:
    """Figures of the shop on a machine of another speed."""
    rate, time = machine_repair(CLIENTS, 1, THINK, DEMAND / speed)
    return {
        ("response_time", ""): time,
        ("p95", ""): time,
        ("throughput", ""): rate,
        ("utilization", "A"): rate * DEMAND / speed,
    }


def exact_effect(machine: MachineSpeed) -> SpeedEffect:
    """What simulations at both ends would show."""
    same, slow, fast = (exact(f) for f in (1.0, 1 / machine.factor, machine.factor))
    changes = {
        key: (slow[key] - same[key], fast[key] - same[key])
        if key[0] == "utilization"
        else (math.log(slow[key] / same[key]), math.log(fast[key] / same[key]))
        for key in same
    }
    return SpeedEffect(machine, changes)


@pytest.fixture(scope="module")
def result() -> Result:
    """A simulation of the shop."""
    return simulate(shop(), precision=0.004)


@pytest.mark.slow
def test_simulated_speeds_show_the_exact_effect() -> None:
    """Short runs at both ends of the speeds change all figures as the exact ones change."""
    machine = random_speed(0.1)
    scenario = Scenario((), shop())
    found = speed_effect(
        machine,
        [
            job(lambda _: None)
            for job in speed_jobs(scenario, simulate(shop(), precision=0.01), machine, seed=0)
        ],
    )
    assert found is not None
    for key, changes in exact_effect(machine).changes.items():
        if key[0] != "p95":
            assert found.changes[key] == pytest.approx(changes, rel=0.1, abs=0.01), key
    # The tail of response times grows on a slower machine, too.
    assert found.changes["p95", ""][0] > 0.1 > -0.1 > found.changes["p95", ""][1]


def test_near_saturation_a_slower_machine_does_more(result: Result) -> None:
    """Each side of an interval is what the slow, or the fast, end of the speeds does."""
    machine = random_speed(0.12)
    effect = exact_effect(machine)
    found = predict_interval(Scenario((), shop()), result, LONG, speed=effect).throughput
    slow, fast = effect.changes["throughput", ""]
    assert -slow > 1.2 * fast
    assert math.log(found.high / found.mean) == pytest.approx(fast, rel=0.02)
    assert math.log(found.mean / found.low) == pytest.approx(-slow, rel=0.02)
    assert found.parts["machine_speed"] > 0.95


def test_few_degrees_of_freedom_widen_the_interval(result: Result) -> None:
    """The speeds looked at are those of Student's quantile, so the interval is wider by as much."""
    wide, narrow = (
        predict_interval(
            Scenario((), shop()), result, LONG, speed=exact_effect(random_speed(0.02, freedom))
        ).throughput
        for freedom in (3, math.inf)
    )
    ratio = math.log(wide.high / wide.low) / math.log(narrow.high / narrow.low)
    assert ratio == pytest.approx(3.182 / 1.96, rel=0.1)


def test_a_range_is_covered_whole(result: Result) -> None:
    """The figure at both ends of the range lies inside, however sure everything else is."""
    machine = MachineSpeed(processors=("host",), sd=0.0, reach=math.log(1.25))
    found = predict_interval(Scenario((), shop()), result, LONG, speed=exact_effect(machine))
    for speed in (0.81, 1.0, 1.24):
        figures = exact(speed)
        assert found.response_time.contains(figures["response_time", ""])
        assert found.throughput.contains(figures["throughput", ""])
        assert found.utilization["A"].contains(figures["utilization", "A"])
    assert not found.response_time.contains(exact(0.7)["response_time", ""])
    assert found.machine == machine
    assert sum(found.response_time.parts.values()) == pytest.approx(1)


def test_advice_does_not_name_what_has_been_done(result: Result) -> None:
    """Where the machine is most of it: probe it; where it has just been probed, that is no advice."""
    advice = {
        probed: predict_interval(
            Scenario((), shop()),
            result,
            LONG,
            speed=exact_effect(replace(random_speed(0.2), probed=probed)),
        ).advice
        for probed in (False, True)
    }
    assert [a.part for a in advice.values()] == ["machine_speed", "machine_speed"]
    assert "--machine-speed now" in advice[False].text
    assert "--machine-speed" not in advice[True].text


def test_what_does_not_run_on_the_machine_does_not_depend_on_it() -> None:
    """Another processor keeps its speed; without the machine's speed the part is missing, by name."""
    tested = shop(2)
    both = replace(tested, processors=(*tested.processors, Processor(name="db")))
    faster = on_machine_of_speed(both, ("host",), 2.0)
    assert [p.speed for p in faster.processors] == [2.0, 1.0]
    (known,) = run_scenarios(
        [Scenario((), tested)], precision=0.1, limits=False, run=RealRun(60), machine=random_speed(0.1)
    )
    (unknown,) = run_scenarios([Scenario((), tested)], precision=0.1, limits=False, run=RealRun(60))
    assert known.prediction is not None
    assert unknown.prediction is not None
    assert known.prediction.response_time.parts["machine_speed"] > 0
    assert "machine_speed" not in map(str, known.prediction.missing)
    assert "machine_speed" in map(str, unknown.prediction.missing)
    document = known.prediction.to_json()["machine_speed"]
    assert document["low"] == pytest.approx(1 / document["high"])
    assert document["freedom"] is None


@pytest.mark.parametrize("values", [{"sd": -1.0}, {"sd": 0.1, "reach": 0.1}, {"sd": 0.1, "freedom": 0}])
def test_speeds_that_cannot_be_are_refused(values: dict[str, float]) -> None:
    """A spread is not negative, and either random or a range."""
    with pytest.raises(UsageError):
        MachineSpeed(**{"processors": ("host",), "sd": 0.0, **values})  # type: ignore[arg-type]


def history(generator: np.random.Generator, sd: float, runs: int) -> list[SpeedRecord]:
    """One run an hour on a machine whose logarithmic speed has this standard deviation."""
    begin = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
    return [
        SpeedRecord(
            time=datetime.fromtimestamp(begin + 3600 * k, UTC), since_boot=3600.0 * (k + 1), boot="b", machine=HERE,
            kind="load", run=str(k), seconds=20.0, monitored=2000 * math.exp(sd * float(generator.normal())),
        )
        for k in range(runs)
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("runs", [0, 3, 10, 40])
def test_intervals_hold_runs_at_drawn_speeds(result: Result, runs: int) -> None:
    """Machines as different as the prior says, each with its history: 93 to 98 % of real runs lie inside."""
    generator = np.random.default_rng(runs)
    cases, inside, widths = 400, dict.fromkeys(("response_time", "throughput", "utilization"), 0), []
    for _ in range(cases):
        # The difference of two runs has the variance; each of them half of it.
        variance = PRIOR.value * PRIOR.freedom / float(generator.chisquare(PRIOR.freedom))
        sd = math.sqrt(variance / 2)
        found = selected(history(generator, sd, runs), HERE, "b", 0.0)
        assert not found.notes
        later = variation(found.runs, 0.0).later
        machine = random_speed(later.sd, later.freedom)
        prediction = predict_interval(Scenario((), shop()), result, LONG, speed=exact_effect(machine))
        explored, real = sd * generator.normal(size=2)
        truth = exact(math.exp(real - explored))
        pairs: dict[str, tuple[Interval, float]] = {
            "response_time": (prediction.response_time, truth["response_time", ""]),
            "throughput": (prediction.throughput, truth["throughput", ""]),
            "utilization": (prediction.utilization["A"], truth["utilization", "A"]),
        }
        for name, (interval, value) in pairs.items():
            inside[name] += interval.contains(value)
        widths.append(math.log(prediction.throughput.high / prediction.throughput.low))
    assert all(0.93 * cases <= count <= 0.98 * cases for count in inside.values()), inside
    assert float(np.median(widths)) < 0.8, "intervals that contain everything say nothing"
