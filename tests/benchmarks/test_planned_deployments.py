"""Deployments that were planned, and what their runs say of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import planned_deployments
import pytest
from planned_deployments import questions, report, verdict
from stored import Store

from mup.lqn import Activity, Call, Constant, Entry, Exponential, Model, Processor, Task

NOTHING = Constant(0.0)


def waiting() -> Model:
    """Users think for a second and ask A, whose threads wait for 50 ms."""
    ask = Activity(name="ask", demand=NOTHING, delay=NOTHING, calls=(Call(task="A", entry="/a/"),))
    work = Activity(name="work", demand=NOTHING, delay=Exponential(0.05))
    return Model(
        name="waiting",
        processors=(Processor(name="host", cores=2),),
        tasks=(
            Task(
                name="User",
                role="reference",
                threads=1,
                think=Exponential(1.0),
                entries=(Entry(name="cycle", start="ask", activities=(ask,)),),
            ),
            Task(
                name="A",
                threads=1,
                processor="host",
                entries=(Entry(name="/a/", start="work", activities=(work,)),),
            ),
        ),
    )


def test_questions_have_a_deployment_that_meets_them_and_one_that_does_not() -> None:
    """The same seed, the same question: a thread less is too slow."""
    found = questions("tms", ["A"], waiting(), 2)
    assert found == questions("tms", ["A"], waiting(), 2)
    assert [(question["clients"], question["figure"]) for question in found] == [(16, "mean"), (32, "p95")]
    for question in found:
        assert question["proven"]
        recommended, cheaper = (question["deployments"][name] for name in ("recommended", "next cheaper"))
        assert cheaper["pools"]["A"] == recommended["pools"]["A"] - 1
        assert recommended["predicted"] <= question["limit"] < cheaper["predicted"]
        assert recommended["probability"] > 0.5 > cheaper["probability"]
        assert 10 <= recommended["seconds"] <= planned_deployments.LONGEST


@pytest.mark.parametrize(
    ("which", "seen", "told"),
    [
        pytest.param("recommended", {"value": 0.09, "ci95": 0.005, "void": None}, "right", id="meets"),
        pytest.param("recommended", {"value": 0.12, "ci95": 0.005, "void": None}, "wrong", id="fails"),
        pytest.param("next cheaper", {"value": 0.12, "ci95": None, "void": None}, "right", id="as it should"),
        pytest.param("next cheaper", {"value": 0.09, "ci95": 0.005, "void": None}, "wrong", id="would do"),
        pytest.param("recommended", {"value": 0.12, "ci95": 0.03, "void": None}, "undecided", id="near"),
        pytest.param("recommended", {"value": 0.12, "ci95": 0.03, "void": "stolen"}, "void", id="void"),
    ],
)
def test_verdicts(which: str, seen: dict[str, Any], told: str) -> None:
    assert verdict({"limit": 0.1}, which, seen) == told


def test_the_report_has_what_was_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = Store(tmp_path / "results.jsonl")
    deployment = {"pools": {"A": 3, "B": 1}, "predicted": 0.0912, "probability": 0.874}
    question = {"clients": 16, "figure": "p95", "limit": 0.1, "deployments": {"recommended": deployment}}
    store.put("tms", [question, question])
    store.put("tms, 1, recommended", {"value": 0.0933, "ci95": 0.004, "void": None})
    report(Store(tmp_path / "results.jsonl"), ["tms", "acmeair"])
    row = "| tms | 16 | p95 <= 100 ms | recommended | A=3 B=1 | 91.2 | 87% | 93.3 ± 4 | right |"
    assert row in capsys.readouterr().out.splitlines()
