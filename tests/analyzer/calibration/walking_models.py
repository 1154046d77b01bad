"""Models calibrated from the log of a simulated event loop, and what they say of one user."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from walking_async import AsyncWorld

from analyzer.calibration.calibrate import Calibration, calibrate
from analyzer.calibration.rundir import PartInfo, RunInfo, Window, fingerprints, load_run
from mup.lqn import Constant, Model
from simulator import simulate

__all__ = ["calibrated", "response"]


def calibrated(app: AsyncWorld, run: Path) -> Calibration:
    """Write the log of all requests in ten windows, calibrate, and close the world."""
    app.write_log(run)
    span = round(app.loop.now * 1e6) + 1
    windows = [Window(n * span // 10, (n + 1) * span // 10) for n in range(10)]
    parts = [PartInfo(windows=windows)]
    RunInfo(project="x", fingerprints=fingerprints(app.application), parts=parts).save(run)
    result = calibrate(load_run(run), app.application, name="x", bootstrap=3)
    app.close()
    return result


def response(model: Model) -> float:
    """Return the mean response time of A/a/, in seconds, where requests do not meet."""
    task = model.task("A")
    entry = replace(task.entry("/a/"), arrivals=Constant(10.0))
    found = simulate(
        model.with_task(replace(task, entries=(entry,))), horizon=20_000, seed=1, engine="reference"
    ).entries["A/a/"]
    assert found.response_time is not None
    return found.response_time.mean
