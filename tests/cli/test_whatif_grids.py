"""``mup whatif`` carries out changes, compares with the baseline, and writes its files."""

from __future__ import annotations

import csv
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from command_line import run, saved, shop

from mup.lqn.edits import with_clients, with_pool
from simulator.api import Progress, simulate
from simulator.studies.differences import (
    Comparison,
    Difference,
    difference,
    replication_seconds,
    replication_seeds,
    values_of,
)
from simulator.studies.grids import run_scenarios
from simulator.studies.parallel import run_jobs
from simulator.studies.whatif import Change, Scenario, grid

pytestmark = pytest.mark.slow

FAST = ("--precision", "0.1")
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def file(tmp_path: Path) -> str:
    """A small calibrated model on disk."""
    return saved(tmp_path, shop())


def scenario(capsys: pytest.CaptureFixture[str], file: str, *arguments: str) -> dict[str, Any]:
    """Run a what-if with one scenario; return the document."""
    code, out, err = run(capsys, "whatif", file, *arguments, *FAST, "--json")
    assert code == 0, err
    document: dict[str, Any] = json.loads(out)
    assert len(document["scenarios"]) == 1
    return document


@pytest.mark.parametrize(
    ("arguments", "change"),
    [
        (("--clients", "8"), {"clients": 8}),
        (("--arrivals", "30"), {"arrivals": 30}),
        (("--arrivals", "U=30"), {"arrivals": {"U": 30}}),
        (("--think", "0.2"), {"think": 0.2}),
        (("--pool", "B=inf"), {"pool": {"B": "inf"}}),
        (("--admission", "A=random"), {"admission": {"A": "random"}}),
        (("--replicas", "B=2"), {"replicas": {"B": 2}}),
        (("--cores", "host=2"), {"cores": {"host": 2}}),
        (("--speed", "host=2"), {"speed": {"host": 2}}),
        (("--place", "B=host"), {"place": {"B": "host"}}),
        (("--place", "B=none"), {"place": {"B": "none"}}),
        (("--probability", "A/a/:miss=0.9"), {"probability": {"A/a/:miss": 0.9}}),
        (("--calls", "A/a/:miss->B/b/=3"), {"calls": {"A/a/:miss->B/b/": 3}}),
    ],
)
def test_every_change_is_carried_out(
    capsys: pytest.CaptureFixture[str], file: str, arguments: tuple[str, ...], change: dict[str, Any]
) -> None:
    """Each kind of edit is named in the result and changes the figures."""
    document = scenario(capsys, file, *arguments, "--no-difference", "--no-saturation")
    (one,) = document["scenarios"]
    assert one["change"] == change
    kinds = ("cycle", "processors")
    assert any(one["result"][kind] != document["baseline"][kind] for kind in kinds)


def test_scenarios_have_differences_and_limits(capsys: pytest.CaptureFixture[str], file: str) -> None:
    """By default every scenario comes with its difference and with what saturates first."""
    (one,) = scenario(capsys, file, "--speed", "host=2")["scenarios"]
    change = one["difference"]["cycle"]["response_time"]
    assert change["mean"] + change["ci95"] < 0
    assert change["relative"]["mean"] < 0
    assert one["difference"]["replications"] == 10
    assert one["difference"]["processors"]["host"]["utilization"]["mean"] < -0.05
    assert one["result"]["saturation"]["resource"] == "task A"


def test_edits_do_what_they_say(capsys: pytest.CaptureFixture[str], file: str) -> None:
    """Three calls instead of one triple B's requests per cycle; probability 0.9 makes 0.9 of them."""
    for arguments, per_cycle in (
        (("--calls", "A/a/:miss->B/b/=3"), 1.5),
        (("--probability", "A/a/:miss=0.9"), 0.9),
    ):
        result = scenario(capsys, file, *arguments, "--no-difference", "--no-saturation")["scenarios"][0][
            "result"
        ]
        ratio = result["entries"]["B/b/"]["throughput"]["mean"] / result["cycle"]["throughput"]["mean"]
        assert ratio == pytest.approx(per_cycle, rel=0.05)


def compare(changes: tuple[Change, ...], precision: float = 0.04) -> tuple[Difference, float]:
    """Return the difference a change makes to the shop, and the interval from other seeds for its response."""
    scenarios = [Scenario((), shop()), *grid(shop(), [(c,) for c in changes])]
    outcome = run_scenarios(scenarios, precision=precision, limits=False)[1]
    assert outcome.difference is not None
    seconds = outcome.difference.simulated_seconds
    seeds = replication_seeds(0)
    before = [simulate(scenarios[0].model, horizon=seconds, seed=s) for s in seeds]
    after = [simulate(scenarios[1].model, horizon=seconds, seed=s + 1000) for s in seeds]
    independent = difference(before, after)
    return outcome.difference, independent.response_time.ci95


@pytest.mark.parametrize("change", [Change("speed", "host", 1.1), Change("cores", "host", 2)], ids=str)
def test_common_random_numbers_narrow_the_interval(change: Change) -> None:
    """Replications with equal seeds tell a small difference more precisely than with different ones."""
    found, independent = compare((change,))
    assert found.response_time.ci95 < 0.7 * independent
    assert found.response_time.mean < 0


def test_a_difference_is_right() -> None:
    """The difference of the means of two long runs lies within the joint intervals."""
    scenarios = [Scenario((), shop()), *grid(shop(), [(Change("clients", "", 8),)])]
    base, more = run_scenarios(scenarios, precision=0.01, limits=False)
    assert base.difference is None
    assert more.difference is not None
    for name in ("throughput", "response_time"):
        old, new = getattr(base.result.cycle, name), getattr(more.result.cycle, name)
        figure = more.difference.figures["cycle", name]
        slack = 2 * (old.ci95 + new.ci95 + figure.ci95)
        assert abs(figure.mean - (new.mean - old.mean)) < slack
    relative = more.difference.relative("cycle", "throughput")
    assert relative is not None
    assert relative.mean == pytest.approx(
        more.difference.throughput.mean / base.result.cycle.throughput.mean, 0.05
    )


def test_equal_models_do_not_differ() -> None:
    """A change to what is already there is recognised: it has the baseline's result, and no difference."""
    scenarios = [Scenario((), shop()), *grid(shop(), [(Change("clients", "", 4),)])]
    base, same = run_scenarios(scenarios, precision=0.05, limits=False)
    assert base.result == same.result
    assert same.difference is None
    results = [simulate(shop(), horizon=20, seed=s) for s in range(3)]
    assert difference(results, results).response_time.ci95 == 0


def test_replications_are_long_enough() -> None:
    """At least 100 cycles each, and a power of two times what the baseline needs."""
    base = simulate(shop(), horizon=20)
    slow = simulate(with_clients(shop(), 1), horizon=200)
    alone, both = replication_seconds(base, base).first, replication_seconds(base, slow).first
    assert alone * base.cycle.throughput.mean >= 99
    assert both * slow.cycle.throughput.mean >= 99
    assert math.log2(both / alone) == pytest.approx(round(math.log2(both / alone)))


def test_replications_get_longer_until_they_are_precise() -> None:
    """Differences reach the precision that was asked for, if that is possible at a reasonable price."""
    scenarios = [Scenario((), shop()), *grid(shop(), [(Change("speed", "host", 1.2),)])]
    found = []
    for precision in (0.05, 0.01):
        outcome = run_scenarios(scenarios, precision=precision, limits=False)[1]
        assert outcome.difference is not None
        assert outcome.difference.precision <= precision
        found.append(outcome.difference.simulated_seconds)
    assert found[1] > found[0]


def test_results_do_not_depend_on_workers() -> None:
    """One worker or four: the same numbers."""
    scenarios = [Scenario((), shop()), *grid(shop(), [(Change("pool", "B", 2), Change("pool", "B", 3))])]
    one = run_scenarios(scenarios, precision=0.3, workers=1)
    four = run_scenarios(scenarios, precision=0.3, workers=4)
    assert [(o.result, o.difference, o.saturation) for o in one] == [
        (o.result, o.difference, o.saturation) for o in four
    ]


def test_jobs_that_are_not_wanted_any_more_end() -> None:
    """The first failure is raised at once; the endless simulation beside it is told to stop."""
    ended = []

    def endless(progress: Any) -> None:
        try:
            while True:
                progress(Progress(0.0, 0, math.inf))
        finally:
            ended.append(True)

    def failing(progress: Any) -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        run_jobs([endless, failing], workers=2)
    for _ in range(1000):
        if ended:
            break
        import time

        time.sleep(0.01)
    assert ended


def test_jobs_keep_their_order_and_report() -> None:
    """Results come in the order of the jobs, progress after each."""
    seen: list[int] = []
    assert run_jobs([lambda _, n=n: n for n in range(5)], workers=3, progress=seen.append) == [0, 1, 2, 3, 4]
    assert seen == [1, 2, 3, 4, 5]


def test_a_failing_scenario_is_named(capsys: pytest.CaptureFixture[str], file: str) -> None:
    """The message says which of the scenarios cannot be; those that can be are in the table."""
    code, out, err = run(capsys, "whatif", file, "--arrivals", "50,5000", *FAST)
    assert code == 2
    assert "50 arrivals/s" in out
    assert "5000 arrivals/s" not in out
    assert "scenario: 5000 arrivals/s" in err


def test_files_are_written(capsys: pytest.CaptureFixture[str], file: str, tmp_path: Path) -> None:
    """CSV has the differences; the chart has one curve per value of the shorter axis."""
    table, picture = tmp_path / "grid.csv", tmp_path / "grid.svg"
    code, out, _ = run(
        capsys, "whatif", file, "--clients", "1,8", "--pool", "B=1,2", *FAST, "--no-saturation",
        "--csv", str(table), "--plot", str(picture),
    )  # fmt: skip
    assert code == 0
    assert "paired runs with common random numbers" in out
    with table.open(newline="") as text:
        rows = list(csv.DictReader(text))
    assert len(rows) == 5
    assert rows[0]["response_time_change"] == ""
    assert float(rows[4]["throughput_change_ci95"]) > 0
    root = ET.fromstring(picture.read_text())
    texts = [t.text for t in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"pool B=1", "pool B=2", "1", "8", "clients", "response time, ms"} <= set(texts)
    assert len(list(root.iter("{http://www.w3.org/2000/svg}polyline"))) == 4


def test_differences_and_limits_can_be_left_out(capsys: pytest.CaptureFixture[str], file: str) -> None:
    """Without them a grid takes one simulation per scenario."""
    code, out, _ = run(
        capsys, "whatif", file, "--pool", "B=2", *FAST,
        "--no-difference", "--no-saturation", "--no-interval", "--json",
    )  # fmt: skip
    document = json.loads(out)
    assert code == 0
    assert set(document["scenarios"][0]) == {"change", "result"}
    assert document["baseline"]["saturation"] is None


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--place", "B"), "NAME=PROCESSOR"),
        (("--place", "B=hots"), "did you mean 'host'?"),
        (("--place", "B="), "is missing"),
        (("--admission", "B"), "NAME=ORDER"),
        (("--admission", "B=lifo"), "must be one of fifo, random, hol, got 'lifo'"),
        (("--probability", "A/a/:mis=0.1"), "did you mean 'miss'?"),
        (("--probability", "A/a/:miss=1.5"), "between 0 and 1"),
        (("--calls", "A/a/:miss=2"), "TASK/entry:ACTIVITY->TARGET"),
        (("--calls", "A/a/:miss->C=2"), "does not call 'C'"),
        (("--arrivals", "0"), "> 0"),
        (("--arrivals", "X=1"), "nothing arrives at 'X'"),
        (
            ("--pool", "A=1,2,3,4,5,6,7,8,9", "--clients", "1,2,3,4,5,6,7,8,9,10", "--plot", "x.svg"),
            "9 curves",
        ),
        (("--pool", "A=2", "--jobs", "0"), "--jobs"),
    ],
)
def test_changes_that_cannot_be_are_refused(
    capsys: pytest.CaptureFixture[str], file: str, arguments: tuple[str, ...], says: str
) -> None:
    """One message with the closest known name, exit code 2."""
    code, out, err = run(capsys, "whatif", file, *arguments)
    assert (code, out) == (2, "")
    assert says in err
    assert "Traceback" not in err


def test_pairs_share_their_luck() -> None:
    """The k-th runs of two models move together: their difference varies less than either."""
    seeds = replication_seeds(0)
    before = [simulate(shop(), horizon=60, seed=s).cycle.response_time.mean for s in seeds]
    changed = with_pool(replace(shop(), name="other name"), "B", 2)
    after = [simulate(changed, horizon=60, seed=s).cycle.response_time.mean for s in seeds]
    spread = [max(v) - min(v) for v in (before, [a - b for a, b in zip(after, before, strict=True)])]
    assert spread[1] < spread[0]


def test_processor_times_that_depend_on_the_load(capsys: pytest.CaptureFixture[str]) -> None:
    """Each scenario takes those of its own load, and the document says at which."""
    (one,) = scenario(capsys, str(EXAMPLES / "tms" / "model.json"), "--clients", "20", "--no-saturation")[
        "scenarios"
    ]
    rates = one["result"]["demands_at"]["rates"]
    cycles = one["result"]["cycle"]["throughput"]["mean"]
    assert rates["Teacher"] == pytest.approx(cycles, rel=0.05)


def test_a_large_change_needs_no_pairs_and_a_small_one_only_its_sign() -> None:
    """The two results know a change of 60 %; of one of some percent, pairs say at least which way it goes."""
    changes = (Change("clients", "", 16), Change("clients", "", 5))
    scenarios = [Scenario((), shop()), *grid(shop(), [changes])]
    base, large, small = run_scenarios(scenarios, precision=0.02, limits=False)
    assert large.difference is not None
    assert small.difference is not None
    assert (large.difference.replications, large.difference.simulated_seconds) == (0, 0.0)
    old, new = base.result.cycle.throughput, large.result.cycle.throughput
    found = large.difference.throughput
    assert found.mean == new.mean - old.mean
    assert found.ci95 == math.hypot(new.ci95, old.ci95) <= 0.05 * found.mean
    pairs = small.difference
    for name in ("throughput", "response_time"):
        figure = pairs.relative("cycle", name)
        assert figure is not None
        assert figure.ci95 <= max(0.02, abs(figure.mean) / 2) or pairs.replications == 0


def test_pairs_and_results_together_are_surer_than_either() -> None:
    """Each counts by its variance; what pairs add narrows the interval."""
    one, other = simulate(shop(), horizon=100), simulate(with_pool(shop(), "B", 2), horizon=100)
    comparison = Comparison(one, other, 1e-6)
    alone = comparison.found
    seconds = comparison.wanted
    assert seconds is not None
    seeds = replication_seeds(0)
    before = [simulate(shop(), horizon=seconds, seed=s) for s in seeds]
    after = [simulate(with_pool(shop(), "B", 2), horizon=seconds, seed=s) for s in seeds]
    paired = difference(before, after)
    comparison.add([values_of(r) for r in before], [values_of(r) for r in after])
    key = ("cycle", "response_time")
    both = comparison.found.figures[key]
    assert both.ci95 < min(alone.figures[key].ci95, paired.figures[key].ci95)
    between = sorted((alone.figures[key].mean, paired.figures[key].mean))
    assert between[0] <= both.mean <= between[1]
    comparison.end()
    assert comparison.wanted is None
