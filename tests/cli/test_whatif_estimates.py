"""``mup whatif`` estimates first, and keeps the results of a grid that failed half-way."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from command_line import run, saved, shop

from mup.errors import UsageError
from simulator.analytic import estimate
from simulator.fluid import fluid
from simulator.studies.grids import UnfinishedError, run_scenarios
from simulator.studies.whatif import Change, Scenario, grid

FAST = ("--precision", "0.2", "--no-difference", "--no-saturation", "--no-interval")
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def file(tmp_path: Path) -> str:
    return saved(tmp_path, shop())


@pytest.mark.parametrize(("engine", "solve"), [("analytic", estimate), ("fluid", fluid)])
def test_a_grid_is_estimated(capsys: pytest.CaptureFixture[str], file: str, engine: str, solve: Any) -> None:
    """Every scenario has the figures of ``mup simulate`` with that engine."""
    code, out, err = run(
        capsys, "whatif", file, "--clients", "2,8", "--pool", "B=2", "--engine", engine, "--json"
    )
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert document["baseline"]["engine"] == engine
    assert [s["change"] for s in document["scenarios"]] == [
        {"clients": 2, "pool": {"B": 2}},
        {"clients": 8, "pool": {"B": 2}},
    ]
    last = grid(shop(), [(Change("clients", "", 8),), (Change("pool", "B", 2),)])[-1]
    expected = solve(last.model).to_json()
    found, cycle = document["scenarios"][1]["result"]["cycle"], expected["cycle"]
    assert found.keys() == cycle.keys()
    for name in ("throughput", "response_time", "cycle_time"):
        # Compiled estimates differ from plain ones by rounding.
        assert found[name]["mean"] == pytest.approx(cycle[name]["mean"], rel=1e-9)


def test_estimates_are_printed_with_changes_and_what_they_are(
    capsys: pytest.CaptureFixture[str], file: str, tmp_path: Path
) -> None:
    """The table, a CSV file and a chart without bands."""
    table, picture = tmp_path / "grid.csv", tmp_path / "grid.svg"
    code, out, err = run(
        capsys, "whatif", file, "--clients", "2,8", "--engine", "analytic",
        "--csv", str(table), "--plot", str(picture),
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert re.search(r"8 clients +(task|processor) \w+ \d+ % +[\d.]+ +\+[\d.]+ %", out)
    assert "ESTIMATES (layered mean values) without intervals" in out
    with table.open(newline="") as text:
        rows = list(csv.DictReader(text))
    assert [row["clients"] for row in rows] == ["", "2", "8"]
    assert float(rows[2]["throughput"]) > float(rows[1]["throughput"]) > 0
    assert float(rows[2]["utilization processor host"]) > 0
    root = ET.fromstring(picture.read_text())
    texts = " ".join(t.text or "" for t in root.iter("{http://www.w3.org/2000/svg}text"))
    assert "estimates: layered mean values" in texts
    assert "%" not in texts


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--engine", "analytics"), "did you mean 'analytic'"),
        (("--engine", "reference"), "--engine: no 'reference'"),
        (("--engine", "analytic", "--precision", "0.1"), "--precision means nothing to --engine analytic"),
        (("--engine", "fluid", "--no-interval"), "--interval means nothing to --engine fluid"),
        (("--engine", "fluid", "--dask", "tcp://127.0.0.1:9"), "--dask means nothing"),
        (("--dask", "tcp://127.0.0.1:9", "--jobs", "2"), "--dask and --jobs exclude each other"),
        (("--engine", "analytic", "--arrivals", "5000"), "scenario: 2 clients"),
    ],
)
def test_what_estimates_do_not_do_is_refused(
    capsys: pytest.CaptureFixture[str], file: str, arguments: tuple[str, ...], says: str
) -> None:
    """One message that names the option, or the scenario."""
    load = () if "--arrivals" in arguments else ("--clients", "2")
    code, out, err = run(capsys, "whatif", file, *load, *arguments)
    assert (code, out) == (2, "")
    assert says.replace("2 clients", "5000 arrivals/s") in err
    assert "Traceback" not in err


def test_a_huge_grid_of_estimates_says_how_long(capsys: pytest.CaptureFixture[str], file: str) -> None:
    """A million of them: refused where the user cannot be asked."""
    numbers = ",".join(str(n) for n in range(1, 1001))
    code, _, err = run(
        capsys, "whatif", file, "--clients", numbers, "--pool", f"A={numbers}", "--engine", "analytic"
    )
    assert code == 2
    assert re.search(r"1,000,000 scenarios, about \d+ (minutes|hours|days), and no terminal to ask", err)
    assert "add --yes" in err


def test_something_is_said_at_once(capsys: pytest.CaptureFixture[str], file: str) -> None:
    """An estimate comes first, then a line for every simulation that has ended; the tables are the output."""
    code, out, err = run(capsys, "whatif", file, "--clients", "2,8", *FAST)
    assert code == 0
    assert err.index("At once: an estimate") < err.index("simulated: ")
    said = re.findall(
        r"simulated: (.+): response [\d.]+ \+- [\d.]+ ms, throughput [\d.]+ \+- [\d.]+ 1/s", err
    )
    assert sorted(said) == ["2 clients", "8 clients", "baseline"]
    assert "At once" not in out
    _, _, err = run(capsys, "whatif", file, "--clients", "2", *FAST, "--json")
    assert err == ""


def test_estimates_that_take_long_are_not_waited_for(
    capsys: pytest.CaptureFixture[str], file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After some time those that are there are printed; of a large model there are none."""
    monkeypatch.setattr("mup.cli.predictions.scenario_estimates.LOOK_SECONDS", 0.0)
    _, _, err = run(capsys, "whatif", file, "--clients", "2,8", *FAST)
    look = err[: err.index("simulated: ")]
    assert "baseline" in look
    assert "8 clients" not in look
    monkeypatch.setattr("mup.cli.predictions.scenario_estimates.LARGE", 1)
    _, _, err = run(capsys, "whatif", file, "--clients", "2,8", *FAST)
    assert "At once" not in err


def test_no_estimate_is_no_obstacle(
    capsys: pytest.CaptureFixture[str], file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has no estimate is simulated all the same, and why is said."""

    def refuse(*_: Any) -> None:
        raise UsageError("no analytic estimate of a semaphore")

    monkeypatch.setattr("mup.cli.predictions.scenario_estimates.estimator", refuse)
    code, out, err = run(capsys, "whatif", file, "--clients", "2", *FAST)
    assert code == 0
    assert "no estimate before the simulation: no analytic estimate of a semaphore" in err
    assert "2 clients" in out


def test_what_was_finished_is_printed_before_the_failure(
    capsys: pytest.CaptureFixture[str], file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tables of what is there, then one message; the exit code says that it is not all."""

    def fail_half_way(scenarios: list[Scenario], **options: Any) -> None:
        options.pop("executor")
        outcomes = run_scenarios(scenarios[:2], **options)
        raise UnfinishedError(
            "the executor failed after 2 of 3 scenarios: OSError: no", outcomes=tuple(outcomes)
        )

    monkeypatch.setattr("simulator.studies.grids.run_scenarios", fail_half_way)
    code, out, err = run(capsys, "whatif", file, "--clients", "2,8", *FAST)
    assert code == 2
    assert re.search(r"^2 clients", out, re.MULTILINE)
    assert not re.search(r"^8 clients", out, re.MULTILINE)
    assert "mup: error: the executor failed after 2 of 3 scenarios" in err
    code, out, _ = run(capsys, "whatif", file, "--clients", "2,8", *FAST, "--json")
    document = json.loads(out)
    assert code == 2
    assert len(document["scenarios"]) == 1
    assert "2 of 3" in document["error"]["message"]


def test_scenarios_without_an_estimate_do_not_end_the_others(
    capsys: pytest.CaptureFixture[str], file: str, tmp_path: Path
) -> None:
    """Loads beyond the capacity are left out of table, file and chart; one message, and the exit code, say so."""
    loads, table = ("--arrivals", "20,5000,30,6000", "--engine", "analytic"), tmp_path / "grid.csv"
    code, out, err = run(
        capsys, "whatif", file, *loads, "--csv", str(table), "--plot", str(tmp_path / "grid.svg")
    )
    assert code == 2
    assert re.findall(r"^\d+ arrivals/s", out, re.MULTILINE) == ["20 arrivals/s", "30 arrivals/s"]
    assert "scenario: 5000 arrivals/s); 2 of 5 scenarios have no estimate" in err
    with table.open(newline="") as text:
        assert [row["arrivals"] for row in csv.DictReader(text)] == ["", "20.0", "30.0"]
    code, out, _ = run(capsys, "whatif", file, *loads, "--json")
    document = json.loads(out)
    assert code == 2
    assert [s["change"] for s in document["scenarios"]] == [{"arrivals": 20}, {"arrivals": 30}]
    assert "2 of 5 scenarios have no estimate" in document["error"]["message"]


def test_a_first_look_leaves_out_what_cannot_be(capsys: pytest.CaptureFixture[str], file: str) -> None:
    """Before the simulations there are the estimates of the other loads, and a word on the one without."""
    code, out, err = run(capsys, "whatif", file, "--arrivals", "20,5000", *FAST)
    look = err[: err.index("simulated: ")]
    assert code == 2
    assert "At once: an estimate" in look
    assert re.search(r"^20 arrivals/s", look, re.MULTILINE)
    assert re.search(r"left out: .*scenario: 5000 arrivals/s", " ".join(look.split()))
    assert "20 arrivals/s" in out


@pytest.mark.slow
def test_an_address_of_no_scheduler(capsys: pytest.CaptureFixture[str], file: str) -> None:
    """One message; nothing is simulated here instead."""
    pytest.importorskip("distributed")
    code, out, err = run(
        capsys, "whatif", file, "--clients", "2", *FAST, "--dask", "tcp://127.0.0.1:9", "--json"
    )
    assert code == 2
    assert "no Dask scheduler answers at tcp://127.0.0.1:9" in json.loads(out)["error"]["message"]
    assert "Traceback" not in err
