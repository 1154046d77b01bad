"""``mup plan``: what it prints, and what it refuses with one message."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import run, saved, shop

from mup.cli.predictions.plan_options import objectives, varied
from simulator.studies.whatif import Change


@pytest.fixture
def file(tmp_path: Path) -> str:
    """A small calibrated model on disk."""
    return saved(tmp_path, shop())


SLO = ("--slo", "p95<=200ms")
VARY = ("--vary", "pool:*=1..2")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (VARY, "no objective: nothing to plan for"),
        (SLO, "nothing to vary"),
        ((*VARY, "--slo", "p97<=200ms"), "there is no p97: simulations tell p50, p90, p95, p99"),
        ((*VARY, "--slo", "p95<=200"), "'p95<=200': the unit is missing; known: s, ms, us"),
        ((*VARY, "--slo", "p95<=200h"), "no unit 'h'"),
        ((*VARY, "--slo", "p95<=fast"), "'fast' is no limit"),
        ((*VARY, "--slo", "p95"), "must be [NAME:]FIGURE<=LIMIT, got 'p95'"),
        ((*VARY, "--slo", "p95>=200ms"), "it has an upper limit"),
        ((*VARY, "--slo", "throughput<=5"), "a throughput has a lower limit"),
        ((*VARY, "--slo", "p95<=-1s"), "the limit of p95 must be a number > 0"),
        ((*VARY, "--slo", "utilization<=120%"), "a utilization is at most 100 %"),
        ((*VARY, "--slo", "C/c/:p95<=1s"), "no endpoint, query or kind of clients 'C/c/'"),
        ((*VARY, *SLO, *SLO), "an objective is given twice"),
        ((*VARY, "--slo", "p95<=1ms"), "p95 <= 1 ms cannot be met: a client who is alone has"),
        ((*SLO, "--vary", "pool:C=1..2"), "no task 'C'"),
        ((*SLO, "--vary", "pool:C*=1..2"), "nothing fits 'C*'; known: A, B"),
        ((*SLO, "--vary", "threads:A=1..2"), "must be KIND:NAME=LOW..HIGH, got 'threads:A=1..2'"),
        ((*SLO, "--vary", "pool=1..2"), "the name is missing"),
        ((*SLO, "--vary", "pool:A=2..1"), "must be whole numbers >= 1, LOW..HIGH or N,N,.., got '2..1'"),
        ((*SLO, "--vary", "pool:A=0..3"), "must be whole numbers >= 1"),
        ((*SLO, "--vary", "pool:A=1..5000"), "at most 1000 values are compared"),
        ((*SLO, "--vary", "pool:A=1", "--vary", "pool:*=1,2"), "pool of A is given twice"),
        ((*SLO, *VARY, "--clients", "4,8"), "--clients: a plan is for one load, got 2 values"),
        ((*SLO, *VARY, "--clients", "4", "--arrivals", "3"), "--clients and --arrivals exclude each other"),
        ((*SLO, *VARY, "--max-load"), "--max-load is about the deployment as it is"),
        (("--slo", "throughput>=5", "--max-load"), "a lower limit of throughput is met from some load on"),
        ((*SLO, "--max-load", "--clients", "3"), "leave out --vary, --cost, --clients and --arrivals"),
        ((*SLO, *VARY, "--duration", "0"), "the length of a real run must be a number of seconds > 0"),
        ((*SLO, *VARY, "--jobs", "0"), "--jobs: must be a whole number >= 1, got 0"),
        ((*SLO, *VARY, "--cost", "nowhere.toml"), "nowhere.toml: cannot read the prices"),
    ],
)
def test_what_cannot_be_planned_is_refused(
    capsys: pytest.CaptureFixture[str], file: str, arguments: tuple[str, ...], message: str
) -> None:
    """One message, exit code 2, nothing on standard output."""
    code, out, err = run(capsys, "plan", file, *arguments)
    assert code == 2, err
    assert message in err
    assert "Traceback" not in err
    assert not out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("core = -4\n", "core: a price must be a number >= 0, got -4"),
        ("core = 1\n[cores]\nhots = 4\n", "cores.hots: the model has no machine 'hots'; did you mean 'host'"),
        ("core = \n", "no TOML"),
        ("", "every price is 0"),
    ],
)
def test_wrong_prices_name_their_file(
    capsys: pytest.CaptureFixture[str], file: str, tmp_path: Path, text: str, message: str
) -> None:
    """And the field."""
    prices = tmp_path / "prices.toml"
    prices.write_text(text)
    code, _, err = run(capsys, "plan", file, *SLO, *VARY, "--cost", str(prices))
    assert code == 2
    assert "prices.toml" in err
    assert message in err


def test_values_may_follow_one_vary() -> None:
    """Ranges, lists and patterns, several in one text."""
    axes = varied(shop(), ["pool:*=1..2 cores:host=1,4..5"])
    assert axes == [
        (Change("pool", "A", 1), Change("pool", "A", 2)),
        (Change("pool", "B", 1), Change("pool", "B", 2)),
        (Change("cores", "host", 1), Change("cores", "host", 4), Change("cores", "host", 5)),
    ]


def test_limits_have_units() -> None:
    """They are kept in seconds, per second, and as fractions."""
    found = objectives(
        shop(),
        ["p95<=200ms", "A/a/: mean <= 0.05 s", "throughput>=60/min", "host:utilization<=80%", "p99<1s"],
    )
    assert [slo.limit for slo in found] == pytest.approx([0.2, 0.05, 1.0, 0.8, 1.0])
    assert [str(slo) for slo in found[:4]] == [
        "p95 <= 200 ms",
        "A/a/ mean <= 50 ms",
        "throughput >= 1 1/s",
        "processor host utilization <= 80 %",
    ]


@pytest.mark.slow
def test_a_plan_is_printed_and_is_a_document(
    capsys: pytest.CaptureFixture[str], file: str, tmp_path: Path
) -> None:
    """The deployment, its cost, the next cheaper one and why it fails, the probability, and what helps."""
    prices = tmp_path / "prices.toml"
    prices.write_text('unit = "EUR"\ncore = 40\nthread = 1\n')
    asked = (
        "plan", file, "--clients", "12", "--slo", "p95<=100ms", "--vary", "pool:*=1..3", "cores:*=1..2",
        "--cost", str(prices), "--duration", "30",
    )  # fmt: skip
    code, out, err = run(capsys, *asked, "--explain")
    assert code == 0, err
    assert "cheapest deployment: " in out
    assert "next cheaper: " in out
    assert "What moves p95" in out
    code, out, err = run(capsys, *asked, "--no-front", "--json")
    assert code == 0, err
    document = json.loads(out)
    best, cheaper = document["best"], document["next_cheaper"]
    assert best["figures"][0]["verdict"] == "meets"
    assert cheaper["cost"] < best["cost"]
    assert cheaper["figures"][0]["verdict"] != "meets"
    assert document["outlook"]["run_seconds"] == 30
    assert 0.3 < document["outlook"]["probability"] <= 1
    assert document["deployments"] == 36
    assert document["unit"] == "EUR"


@pytest.mark.slow
def test_the_largest_load_is_printed(capsys: pytest.CaptureFixture[str], file: str) -> None:
    """With what fails beyond it; where a client more makes a difference, few simulations tell."""
    code, out, err = run(capsys, "plan", file, "--slo", "p95<=60ms", "--max-load")
    assert code == 0, err
    assert out.startswith("largest load: ")
    assert "fails p95" in out
    code, out, err = run(capsys, "plan", file, "--slo", "p95<=60ms", "--max-load", "--json")
    assert code == 0, err
    document = json.loads(out)
    assert document["beyond"]["load"]["clients"] > document["load"]["clients"]


@pytest.mark.slow
def test_a_whatif_of_a_demand(capsys: pytest.CaptureFixture[str], file: str) -> None:
    """Half the work of an endpoint, as a factor, or in seconds."""
    texts = ("B/b/=0.5x", "B/b/=0.005", "B/b/:w=0.5x")
    times = []
    for text in texts:
        code, out, err = run(
            capsys, "whatif", file, "--demand", text, "--precision", "0.05", "--no-saturation", "--json"
        )
        assert code == 0, err
        document = json.loads(out)
        times.append(document["scenarios"][0]["result"]["cycle"]["response_time"]["mean"])
        assert times[-1] < document["baseline"]["cycle"]["response_time"]["mean"]
    assert times[0] == times[1] == times[2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("B/b/=-1x", "the factor on the demand of 'B/b/' must be >= 0"),
        ("B/b/=fastx", "must be numbers separated by commas, got 'fast'"),
        ("C/c/=0.5x", "no entry 'C/c/'"),
        ("A/a/:miss=0.5x", "'A/a/:miss' has no demand to scale: it is 0"),
        ("0.5x", "must be NAME=NUMBER"),
    ],
)
def test_demands_that_make_no_sense_are_refused(
    capsys: pytest.CaptureFixture[str], file: str, text: str, message: str
) -> None:
    """One message each."""
    code, _, err = run(capsys, "whatif", file, "--demand", text)
    assert code == 2, err
    assert message in err
