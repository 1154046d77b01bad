"""Comparison of predictions with measurements, raw and corrected for the machine's speed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from terminals import assert_whole, printed

from analyzer.validation import (
    Comparison,
    compare,
    correct,
    judged_error,
    max_abs_error,
    predict,
    save_predictions,
    speed_ratio,
    watched,
)
from mup.cli.output.display import console
from mup.cli.predictions.comparing import (
    comparison_document,
    comparison_warnings,
    headline,
    print_comparison,
    speed_text,
)
from mup.cli.predictions.report import comparison_charts
from mup.errors import UsageError
from mup.lqn import (
    Activity,
    Call,
    Constant,
    Discrepancy,
    Entry,
    Exponential,
    Model,
    Processor,
    Replicate,
    Task,
    Uncertainty,
)
from mup.lqn.machine_speed import MachineSpeed
from mup.project import Project, load_project
from mup.workload.figures import Figure, ResponseTime
from mup.workload.measure import CpuUse, Measurement
from mup.workload.measurement import Run
from mup.workload.speed import Bracket, Speed
from simulator.studies.grids import Outcome
from simulator.studies.prediction import RealRun
from simulator.studies.whatif import Change, grid

NOTHING = Constant(0.0)
RUN = RealRun(30)
CALIBRATED_AT = 1000.0


def shop(uncertainty: Uncertainty | None = None) -> Model:
    """Clients of one service on one core, calibrated at a known speed."""
    work = Entry(
        name="/a/", start="w", activities=(Activity(name="w", demand=Exponential(0.02), delay=NOTHING),)
    )
    calls = (Call(task="A", entry="/a/"),)
    cycle = Entry(
        name="cycle",
        start="go",
        activities=(Activity(name="go", demand=NOTHING, delay=NOTHING, calls=calls),),
    )
    return Model(
        name="shop",
        processors=(Processor(name="host"),),
        tasks=(
            Task(name="U", role="reference", threads=1, think=Exponential(0.1), entries=(cycle,)),
            Task(name="A", threads=2, processor="host", entries=(work,)),
        ),
        provenance={"speed": CALIBRATED_AT},
        uncertainty=uncertainty,
    )


def known(sd: float = 0.02) -> Uncertainty:
    """A calibration that is good to a few percent."""
    replicates = tuple(Replicate(demands={"A/a/:w": 1 + sd * d}) for d in (-1.2, -0.8, -0.1, 0.3, 0.8, 1.1))
    points = dict.fromkeys(("response_time", "p95", "throughput", "utilization"), ((0.5, 0.02, 0.0),))
    return Uncertainty(
        replicates=replicates, discrepancy=Discrepancy(points=points, systems=20, points_used=100)
    )


def predicted(model: Model, *clients: int) -> list[Outcome]:
    """Predict some loads."""
    axis = tuple(Change("clients", "", n) for n in clients)
    return predict(grid(model, [axis]), RUN, precision=0.02, seed=0)


def bracket(speed: float) -> Bracket:
    """A machine of a steady speed."""
    return Bracket(Speed((speed, speed)), Speed((speed, speed)))


def measurement(*times: float, speed: float = CALIBRATED_AT, void: str = "", **changes: Any) -> Measurement:
    """A measured load whose runs had these mean response times."""
    mean = sum(times) / len(times)
    runs = tuple(
        Run(
            seed=i, response_time=t, p95=2 * t, throughput=8.0 + t, utilization={"A": 0.2 + t}, cycles=500, errors=0,
            speed=bracket(speed), monitored=None, foreign=0.0, stolen=0.0, void=void,
        )
        for i, t in enumerate(times)
    )  # fmt: skip
    data: dict[str, Any] = {
        "load": "closed load", "clients": 1, "clients_from": None, "arrivals": None, "steady": True, "duration": 30.0,
        "repeats": len(times), "window_seconds": 30.0 * len(times),
        "response_time": ResponseTime(mean, 0.001, mean, mean, 2 * mean, 3 * mean, 0.002), "service_response": None,
        "throughput": Figure(8.2, 0.1), "utilization": {"A": 0.21}, "utilization_ci95": {"A": 0.01}, "calls": {},
        "endpoints": {}, "cpu": CpuUse({}, 0.3, 0.0, 0.0, 0.1), "cycles": 500, "errors": 0, "first_error": "",
        "think_lateness": 0.0, "think_wanted": 0.1, "late_thinks": None, "late_starts": None, "series": (),
        "speed": bracket(speed), "monitored_speed": None, "void": void, "attached": False, "runs": runs, "results": (),
    }  # fmt: skip
    return Measurement(**{**data, **changes})


def test_errors_are_relative_to_the_measurement_and_of_utilization_absolute() -> None:
    """(predicted - measured) / measured of mean, p95 and throughput; predicted - measured of busy workers."""
    (outcome,) = predicted(shop(), 1)
    found = compare(outcome, measurement(0.025))
    time = outcome.result.cycle.response_time
    assert found.raw.error("response_time") == pytest.approx((time.mean - 0.025) / 0.025)
    assert found.raw.error("p95") == pytest.approx((time.p95.mean - 0.05) / 0.05)
    busy = outcome.result.tasks["A"].utilization
    assert busy is not None
    assert found.raw.utilization_errors == pytest.approx({"A": busy.mean - 0.21})
    assert max_abs_error([found])["response_time"] == abs(found.raw.error("response_time"))


def test_three_runs_are_judged_by_their_median() -> None:
    """One disturbed run of three does not move the measured figures; two runs are pooled."""
    (outcome,) = predicted(shop(), 1)
    three = compare(outcome, measurement(0.020, 0.021, 0.090)).raw.measured
    assert three.response_time.mean == 0.021
    assert three.throughput.mean == pytest.approx(8.021)
    assert three.utilization["A"] is not None
    assert three.utilization["A"].mean == pytest.approx(0.221)
    two = compare(outcome, measurement(0.020, 0.030)).raw.measured
    assert two.response_time.mean == pytest.approx(0.025)


def test_inside_is_unknown_without_a_calibration_error() -> None:
    """An interval of a model of unknown error is not one that reality could be asked to fall into."""
    (outcome,) = predicted(shop(), 1)
    document = compare(outcome, measurement(0.02)).to_json()
    assert document["inside_interval"] is None
    assert document["prediction"]["missing"] == ["calibration", "discrepancy", "machine_speed"]


@pytest.mark.slow
@pytest.mark.parametrize(("factor", "inside"), [(1.0, True), (1.01, True), (1.6, False), (0.6, False)])
def test_inside_says_whether_reality_fell_into_the_interval(factor: float, inside: bool) -> None:
    """Near the prediction is inside, 40 % off is not."""
    (outcome,) = predicted(shop(known()), 1)
    mean = outcome.result.cycle.response_time.mean
    document = compare(outcome, measurement(factor * mean)).to_json()
    assert document["inside_interval"] is inside
    assert document["inside"]["response_time"] is inside


@pytest.mark.slow
def test_a_slower_machine_is_corrected_for() -> None:
    """Measured at 80 % of the speed of the calibration: the prediction for that speed has demands / 0.8."""
    outcomes = predicted(shop(known()), 1, 2)
    times = [o.result.cycle.response_time.mean for o in outcomes]
    slow = [compare(outcomes[0], measurement(times[0] / 0.8, speed=0.8 * CALIBRATED_AT))]
    slow.append(compare(outcomes[1], measurement(times[1])))
    found = correct(slow, RUN, precision=0.02, seed=0)
    assert found[0].speed == pytest.approx(0.8)
    assert found[0].raw.error("response_time") == pytest.approx(-0.2)
    assert found[0].corrected is not None
    # Alone on its core a client takes exactly 1 / 0.8 as long.
    assert abs(found[0].corrected.error("response_time")) < 0.03
    assert (found[0].raw.inside["response_time"], found[0].corrected.inside["response_time"]) == (False, True)
    # At the speed of the calibration nothing is predicted again.
    assert found[1].corrected is found[1].raw
    assert judged_error(found) < 0.03 < max_abs_error(found)["response_time"]


@pytest.mark.slow
def test_raw_and_corrected_intervals_claim_what_they_hold() -> None:
    """The raw interval allows for any speed of the machine; the corrected one for how well that was measured."""
    model = replace(shop(known()), provenance={"hostname": "elsewhere", "cores": 1, "speed": CALIBRATED_AT})
    machine = MachineSpeed(processors=("host",), sd=0.14, freedom=4, source="a test")
    scenarios = grid(model, [(Change("clients", "", 1),)])
    (outcome,) = predict(scenarios, RUN, precision=0.02, seed=0, machine=machine)
    mean = outcome.result.cycle.response_time.mean
    (found,) = correct(
        [compare(outcome, measurement(mean / 0.8, speed=0.8 * CALIBRATED_AT))], RUN, precision=0.02, seed=0
    )
    assert found.corrected is not None
    raw, again = found.raw.prediction, found.corrected.prediction
    assert raw is not None
    assert again is not None
    assert (found.raw.inside["response_time"], found.corrected.inside["response_time"]) == (True, True)
    assert again.response_time.half_width / again.response_time.mean < raw.response_time.half_width / mean
    assert raw.response_time.parts["machine_speed"] > again.response_time.parts["machine_speed"] > 0
    assert again.machine is not None
    assert "probes before and after" in again.machine.source
    assert "Most of the uncertainty is the machine: a test." in headline([found])
    # What was not known about a speed that turned out to be the same is known afterwards, too.
    (same,) = correct([compare(outcome, measurement(mean))], RUN, precision=0.02, seed=0)
    assert same.corrected is not None
    assert same.corrected.prediction is not None
    assert same.corrected.prediction.response_time.half_width < raw.response_time.half_width


def test_the_monitor_is_believed_before_the_probes() -> None:
    """Where both sides were monitored their ratio counts; without any speed there is no correction."""
    model, slow = shop(), measurement(0.02, speed=500.0, monitored_speed=1900.0)
    assert speed_ratio(model, slow) == pytest.approx(0.5)
    both = replace(model, provenance={"speed": CALIBRATED_AT, "monitored_speed": 2000.0})
    assert speed_ratio(both, slow) == pytest.approx(0.95)
    assert speed_ratio(replace(model, provenance={}), slow) is None
    (outcome,) = predicted(replace(model, provenance={}), 1)
    (same,) = correct([compare(outcome, slow)], RUN, precision=0.02, seed=0)
    assert same.corrected is None


def test_a_measured_machine_has_a_monitor_beside_it() -> None:
    """20 samples a second on each of two cores are 40 units of work, and some waking up."""
    host = Processor(name="host", cores=2, background=0.01)
    machines = (host, Processor(name="db", cores=2))
    monitored = replace(shop(), processors=machines, provenance={"monitored_speed": 1500.0})
    seen = watched(monitored)
    assert seen.processor("host").background == pytest.approx(0.01 + 40 / 1500 * 1.4)
    assert seen.processor("db") == machines[1]
    assert watched(replace(monitored, provenance={})).processors == machines


def test_void_measurements_are_not_judged() -> None:
    """A void measurement is in the table with its reason, and counts only if there is no other."""
    outcomes = predicted(shop(), 1, 2)
    times = [o.result.cycle.response_time.mean for o in outcomes]
    good = compare(outcomes[0], measurement(1.1 * times[0]))
    void = compare(outcomes[1], measurement(3 * times[1], void="the machine's speed changed"))
    assert judged_error([good, void]) == pytest.approx(0.1 / 1.1)
    assert judged_error([void]) == pytest.approx(2 / 3)
    assert void.to_json()["void"] == "the machine's speed changed"
    assert any("void" in text for text in comparison_warnings([good, void]))


def test_nothing_measured_is_nothing_to_compare_with() -> None:
    """A run in which every cycle failed is an error that says why."""
    (outcome,) = predicted(shop(), 1)
    with pytest.raises(UsageError, match="connection refused"):
        compare(outcome, measurement(0.0, errors=9, first_error="connection refused"))


@pytest.fixture
def project() -> Project:
    """The example."""
    return load_project(Path(__file__).parents[2] / "examples" / "translator")


def test_predictions_are_written_down(tmp_path: Path, project: Project) -> None:
    """The file holds changes, figures and intervals of every scenario."""
    outcomes = predicted(shop(known()), 1, 4)
    file = tmp_path / "predicted.json"
    save_predictions(file, project, shop(), outcomes)
    document = json.loads(file.read_text())
    assert document["format"] == "mup-prediction/1"
    assert [s["change"] for s in document["scenarios"]] == [{"clients": 1}, {"clients": 4}]
    mean = outcomes[1].result.cycle.response_time.mean
    assert document["scenarios"][1]["predicted"]["response_time"]["mean"] == mean
    assert document["scenarios"][1]["prediction"]["response_time"]["mean"] == mean


def compared() -> list[Comparison]:
    """Two loads, the second on a slower machine."""
    outcomes = predicted(shop(known()), 1, 4)
    times = [o.result.cycle.response_time.mean for o in outcomes]
    found = [compare(outcomes[0], measurement(times[0] * 1.02))]
    found.append(compare(outcomes[1], measurement(times[1] * 1.3, speed=0.85 * CALIBRATED_AT)))
    return correct(found, RUN, precision=0.02, seed=0)


@pytest.mark.slow
def test_people_see_errors_intervals_and_corrections(capsys: pytest.CaptureFixture[str]) -> None:
    """The table has a row per figure; a note names the speed that was different."""
    found = compared()
    print_comparison(console(), found)
    out = capsys.readouterr().out
    assert "95 % interval" in out
    assert "corrected" in out
    assert "1 of 2 measured mean response times lie in their" in out
    assert "and 2 in that of the corrected prediction" in out
    assert any("4 clients: 15% slower" in text for text in comparison_warnings(found))
    assert "Largest error of a mean response time, as predicted: 23" in out
    assert "Corrected for the machine's speed (0 to 15 % slower than in the exploratory run): " in out
    document = comparison_document(found, Path("p.json"))
    assert document["corrected_max_abs_error"]["response_time"] < document["max_abs_error"]["response_time"]
    json.dumps(document, allow_nan=False)


@pytest.mark.slow
def test_the_table_of_errors_is_not_broken() -> None:
    """At 80 columns the interval is left out, and that is said; at 120 everything is there."""
    found = compared()
    assert_whole(lambda out: print_comparison(out, found))
    narrow, wide = (printed(lambda out: print_comparison(out, found), width) for width in (80, 120))
    assert "Not shown for want of width: 95 % interval, its 95 % interval." in narrow
    assert "Not shown" not in wide


@pytest.mark.slow
@pytest.mark.parametrize(
    ("speeds", "says"),
    [
        ((1.15, 1.19), "15 to 19 % faster"),
        ((0.81, 0.9), "10 to 19 % slower"),
        ((1.1,), "10 % faster"),
        ((0.95, 1.1), "between 5% slower and 10% faster"),
        ((1.001, 0.999), "the same"),
    ],
)
def test_a_faster_machine_is_called_faster(speeds: tuple[float, ...], says: str) -> None:
    """In the headline and in the note."""
    outcomes = predicted(shop(), *range(1, len(speeds) + 1))
    found = [
        compare(o, measurement(0.02, speed=s * CALIBRATED_AT)) for o, s in zip(outcomes, speeds, strict=True)
    ]
    assert says in speed_text(found)
    notes = " ".join(comparison_warnings(found))
    assert ("faster" in notes) == any(s > 1.04 for s in speeds)
    assert ("slower" in notes) == any(s < 0.96 for s in speeds)
    assert "not as fast" not in notes


@pytest.mark.slow
def test_void_measurements_are_left_out_of_the_headline() -> None:
    """And it says so."""
    outcomes = predicted(shop(known()), 1, 2)
    times = [o.result.cycle.response_time.mean for o in outcomes]
    good = compare(outcomes[0], measurement(1.1 * times[0]))
    void = compare(outcomes[1], measurement(3 * times[1], void="the machine's speed changed"))
    lines = headline([good, void])
    assert "as predicted: 9.1%" in lines[0]
    assert lines[-1] == "1 void measurement is left out of this."
    assert headline([void])[-1].startswith("Every measurement is void")


@pytest.mark.slow
def test_the_charts_show_band_points_and_correction() -> None:
    """Three charts, each with the band, a dashed line and one point per load; they are well-formed."""
    charts = comparison_charts([c.to_json() for c in compared()])
    assert len(charts) == 3
    for chart in charts:
        assert chart.count("<polygon") == 1
        assert chart.count("stroke-dasharray") == 1
        assert chart.count("<circle") == 2 + 1  # and one in the legend
        assert ET.fromstring(chart).tag.endswith("svg")
