"""Measurements of the real cases of learning can be stopped, go on, and repeat what was disturbed."""

from __future__ import annotations

import argparse
import asyncio
import math
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from accuracy.quiet import Quiet
from learning import real_runs
from learning.real_runs import (
    Arrays,
    Driver,
    Request,
    Round,
    Run,
    Series,
    VoidError,
    mean_traces,
    measured,
    missing,
    order_of,
    predicted_before,
    round_of,
)

from analyzer.learning.traces import Traces
from mup.errors import DeploymentError
from mup.workload import cpu


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


def test_series_take_turns_and_what_is_stored_is_not_measured_again(tmp_path: Path) -> None:
    """A stopped measurement goes on where it was, with something of every kind; a report measures nothing."""
    done: list[str] = []

    def series(name: str, rounds: int) -> Series:
        def measure(number: int) -> Arrays:
            done.append(f"{name}{number}")
            return one_round(number).arrays()

        return Series(name, rounds, measure)

    first = measured([series("learn", 3), series("ask", 1)], options(tmp_path))
    assert done == ["learn0", "ask0", "learn1", "learn2"]
    wanted = [series("learn", 4), series("ask", 2)]
    (tmp_path / "learn-01.npz").unlink()
    assert missing(wanted, measured(wanted, options(tmp_path, report=True))) == ("learn: 2 of 4, ask: 1 of 2")
    assert missing(wanted, measured(wanted, options(tmp_path, last=-math.inf))) != ""
    assert len(done) == 4
    again = measured(wanted, options(tmp_path))
    assert done[4:] == ["learn1", "ask1", "learn3"]
    assert missing(wanted, again) == ""
    found = Round.of_arrays(again["learn"][0])
    assert found.void == 1
    assert np.array_equal(found.traces.x, Round.of_arrays(first["learn"][0]).traces.x)
    assert found.traces.busy is not None
    assert not list(tmp_path.glob("*.partial*"))


def test_no_round_begins_that_would_end_too_late(tmp_path: Path) -> None:
    """The first round tells how long the others take; what is left of the time is for shorter ones."""
    clock = time.monotonic()

    def measure(number: int) -> Arrays:
        time.sleep(0.2)
        return one_round(number).arrays()

    quick = Series("quick", 3, lambda number: one_round(number).arrays())
    found = measured([Series("slow", 3, measure), quick], options(tmp_path, last=clock + 0.3))
    assert (len(found["slow"]), len(found["quick"])) == (1, 3)


def test_a_round_that_fails_is_tried_again(tmp_path: Path) -> None:
    """On a busy machine services may not start in time; after two failures it is left out, the others go on."""
    failures = iter([DeploymentError("is not ready in time"), None, TimeoutError(), TimeoutError()])

    def measure(number: int) -> Arrays:
        failure = next(failures)
        if failure is not None:
            raise failure
        return one_round(number).arrays()

    wanted = [Series("web", 2, measure), Series("other", 3, lambda number: one_round(number).arrays())]
    found = measured(wanted, options(tmp_path))
    assert missing(wanted, found) == "web: 1 of 2"


def test_runs_are_averaged_by_the_state_they_began_in() -> None:
    traces = mean_traces([one_round(0), round_of([Run(1, 0)], of_runs, [7, 3])])
    assert traces.x[:, 1, 0].tolist() == [1.0, 0.0]  # plan 1 began in state 3, plan 0 in state 7
    with pytest.raises(VoidError, match="too busy to measure on: disturbed"):
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
    driver = Driver(["http://nowhere"], 0.001, lambda _: Request("/", {}), random.Random(1), ())
    runs = driver.runs([[None], [None], [Request("/", {})]], 0.01, retries=2)
    assert [(run.plan, run.void) for run in runs] == [
        (0, ""), (1, "disturbed"), (2, ""), (1, "disturbed"), (1, ""),
    ]  # fmt: skip
    assert len(runs[2].responses) > 0


def test_systems_take_turns_while_clients_go_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """No client is in two runs at once, and no run begins before the last one on its system is over."""

    async def answer(self: Driver, session: object, run: Run, request: Request) -> None:
        await asyncio.sleep(0.15)
        run.responses.append((time.monotonic() - run.began * 1e-9, 0.15))

    monkeypatch.setattr(Driver, "_ask", answer)
    driver = Driver(["http://one", "http://two"], 10.0, lambda _: Request("/", {}), random.Random(1))
    begin = time.monotonic()
    runs = driver.runs([[Request("/", {})]] * 4, 0.1)
    took = time.monotonic() - begin
    assert [(run.plan, run.system) for run in runs] == [(0, 0), (1, 1), (2, 0), (3, 1)]
    began = np.array([run.began for run in runs]) * 1e-9
    ended = began + [run.responses[-1][0] for run in runs]
    assert (np.diff(began) >= 0.095).all()
    assert (began[2:] >= ended[:2]).all()
    assert took < 4 * 0.15


def test_predictions_are_made_once_and_before(tmp_path: Path) -> None:
    """What is there is not predicted again, and a report says when it was written."""
    chosen = options(tmp_path)
    first = predicted_before("predicted", lambda: {"mean": np.array(1.0)}, chosen)
    asked = Series("ask", 1, lambda number: one_round(number).arrays())
    assert "nothing that is predicted" in order_of(first, [])
    rounds = measured([asked], chosen)["ask"]
    again = predicted_before("predicted", lambda: {"mean": np.array(2.0)}, chosen)
    assert (float(again["mean"]), float(again["written"])) == (1.0, float(first["written"]))
    assert order_of(again, rounds).startswith("predictions written")
    (tmp_path / "predicted.npz").unlink()
    late = predicted_before("predicted", lambda: {"mean": np.array(2.0)}, chosen)
    assert order_of(late, rounds).startswith("NOT PREDICTED")


def test_a_stalled_driver_makes_a_run_void(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also on a machine that is otherwise idle."""
    monkeypatch.setattr(cpu, "FOREIGN_LIMIT", 1.0)
    monkeypatch.setattr(cpu, "STOLEN_LIMIT", 1.0)
    assert real_runs._Watch(()).verdict(0.1) == ""
    assert real_runs._Watch(()).verdict(3.0) == "nothing ran for 3.00 s"
