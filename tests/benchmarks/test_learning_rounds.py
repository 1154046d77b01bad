"""Measurements of the real cases of learning can be stopped, go on, and repeat what was disturbed."""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from accuracy.quiet import Quiet
from learning import real_runs
from learning.real_runs import Driver, Request, Round, Run, TimeIsUpError, mean_traces, round_of, rounds

from analyzer.learning.traces import Traces
from mup.errors import DeploymentError


def options(folder: Path, **more: Any) -> argparse.Namespace:
    chosen = {
        "quick": False,
        "report": False,
        "results": folder,
        "last": math.inf,
        "quiet": Quiet(),
        "retries": 1,
    }
    return argparse.Namespace(**(chosen | more))


def of_runs(runs: list[Run]) -> Traces:
    """One trace of two samples per run; the queue at the end is the number of the plan."""
    x = np.array([[[1.0], [float(run.plan)]] for run in runs])
    return Traces(x=x, dt=0.1, names=("A",), servers=np.array([2.0]), busy=np.zeros(x.shape))


def one_round(number: int) -> Round:
    return round_of([Run(0, number), Run(1, number), Run(1, number, void="disturbed")], of_runs, [7, 3])


def test_what_is_stored_is_not_measured_again(tmp_path: Path) -> None:
    """A stopped measurement goes on with the round it had begun; a report measures nothing."""
    measured: list[int] = []

    def measure(number: int) -> Round:
        measured.append(number)
        return one_round(number)

    first = rounds("web", 2, measure, options(tmp_path))
    again = rounds("web", 3, measure, options(tmp_path))
    assert measured == [0, 1, 2]
    assert [one.void for one in again] == [1, 1, 1]
    assert np.array_equal(again[0].traces.x, first[0].traces.x)
    assert again[0].traces.busy is not None
    assert not list(tmp_path.glob("*.partial*"))
    with pytest.raises(TimeIsUpError, match="3 of 4 rounds are done"):
        rounds("web", 4, measure, options(tmp_path, last=-math.inf))
    assert len(rounds("web", 4, measure, options(tmp_path, report=True))) == 3
    with pytest.raises(TimeIsUpError, match="nothing is measured yet"):
        rounds("other", 1, measure, options(tmp_path, report=True))
    assert measured == [0, 1, 2]


def test_a_round_that_fails_is_tried_again(tmp_path: Path) -> None:
    """On a busy machine services may not start in time; twice in a row it is better to stop, and say why."""
    failures = iter([DeploymentError("is not ready in time"), None] + [DeploymentError("is not ready")] * 2)

    def measure(number: int) -> Round:
        failure = next(failures)
        if failure is not None:
            raise failure
        return one_round(number)

    assert len(rounds("web", 1, measure, options(tmp_path))) == 1
    with pytest.raises(TimeIsUpError, match="is not ready"):
        rounds("web", 2, measure, options(tmp_path))


def test_runs_are_averaged_by_the_state_they_began_in() -> None:
    traces = mean_traces([one_round(0), round_of([Run(1, 0)], of_runs, [7, 3])])
    assert traces.x[:, 1, 0].tolist() == [1.0, 0.0]  # plan 1 began in state 3, plan 0 in state 7
    with pytest.raises(TimeIsUpError, match="too busy to measure on: disturbed"):
        round_of([Run(0, 0, void="disturbed")], of_runs, [0])


def test_void_runs_are_repeated_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second of three runs is disturbed twice; it is done again after the others, then it counts."""

    async def answer(self: Driver, session: object, run: Run, request: Request) -> None:
        run.responses.append((0.0, 0.0))

    def verdicts() -> Iterator[str]:
        yield from ("", "disturbed", "", "disturbed", "")

    found = verdicts()
    monkeypatch.setattr(Driver, "_ask", answer)
    monkeypatch.setattr(real_runs._Watch, "verdict", lambda self, late: next(found))
    driver = Driver("http://nowhere", 0.001, lambda _: Request("/", {}), random.Random(1), ())
    runs = driver.runs([[None], [None], [Request("/", {})]], 0.01, retries=2)
    assert [(run.plan, run.void) for run in runs] == [
        (0, ""), (1, "disturbed"), (2, ""), (1, "disturbed"), (1, ""),
    ]  # fmt: skip
    assert len(runs[2].responses) > 0


def test_a_stalled_driver_makes_a_run_void(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also on a machine on which nobody else does anything."""
    monkeypatch.setattr(real_runs, "FOREIGN_LIMIT", 1.0)
    monkeypatch.setattr(real_runs, "STOLEN_LIMIT", 1.0)
    assert real_runs._Watch(()).verdict(0.1) == ""
    assert real_runs._Watch(()).verdict(3.0) == "nothing ran for 3.00 s"
