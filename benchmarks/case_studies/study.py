"""How is one family of one application studied? One user, then every step predicted, then every step run."""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accuracy.deploy import circumstances
from accuracy.quiet import Quiet

from analyzer.calibration.explore import ExploreSettings, explore
from analyzer.calibration.of_project import calibrate_project
from analyzer.calibration.rundir import load_run
from analyzer.host.measure import profile_host
from analyzer.host.profile import current_profile, save_profile
from analyzer.static import analyse_project
from analyzer.validation import watched
from case_studies.applications import FAMILIES, available_database, started
from case_studies.measured import measure_step
from case_studies.store import StudyFolder, agreed, read_json, write_json
from mup.errors import MupError
from mup.lqn import Model
from mup.lqn.edits import with_think
from mup.lqn.files import read_model
from mup.lqn.json_io import save_model
from simulator.autoscale import Settings, autoscale
from simulator.program import compile_model
from simulator.rehearsal import Rehearsal, cycle_seconds, rehearse, settling_seconds

__all__ = ["Study", "TimeIsUpError", "fitting_window", "replacing", "scaled"]

LEAST_WARMUP = 2.0
"""Seconds. The first requests to new services open connections, which no model knows."""
START_SECONDS = 15.0
"""Starting and stopping services and database, and probing the machine."""
FAMILY_SECONDS = 27 * 60.0
"""All steps of a family, each run once: half an hour with the time predictions take."""
LONGEST_WINDOW, SHORTEST_WINDOW = 60.0, 20.0
"""Seconds. Windows are as long as `FAMILY_SECONDS` allow, within these limits, if nobody says how long."""
CYCLES = 1.2
"""A window is at least so many times as long as a cycle of one user: some begin and end in it."""


class TimeIsUpError(MupError):
    """The time given is over; the same command continues."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """One application in one mode.

    Attributes:
        results: Folder of all studies.
        application, mode: What is studied.
        database: ``mongod`` or ``embedded``; None: the best there is.
        explore_seconds: Cap of the exploratory run.
        seconds: Length of the window of every step; None: as long as half an hour for the family allows.
        think_scale: Factor on think times, in predictions and real runs.
        max_clients: At the end of every family.
        precision: Of predictions.
        retries: How often a void run of a step is done again at once.
        void: A step none of whose runs was valid is done again, at another start, until it has so many.
        profile: Measure the machine first, if nobody has yet.
        quiet: Who else may use the machine meanwhile.
        deadline: Monotonic time at which to stop between two steps.
        say: Told what happens.
    """

    results: Path
    application: str
    mode: str
    database: str | None = None
    explore_seconds: float = 300.0
    seconds: float | None = None
    think_scale: float = 1.0
    max_clients: int = 512
    precision: float = 0.01
    retries: int = 1
    void: int = 6
    profile: bool = True
    quiet: Quiet
    deadline: float = float("inf")
    say: Callable[[str], None] = print

    @property
    def folder(self) -> StudyFolder:
        """Where it is stored."""
        return StudyFolder(self.results / f"{self.application}-{self.mode}")

    def run(self, family: str) -> None:
        """Do everything that is left for one family.

        Raises:
            TimeIsUpError: The deadline has passed, or the next step would end after it.
            MupError: Something cannot be started, calibrated or predicted; what was done is stored.
        """
        model = self._model()
        steps = self._steps(family, model)
        due = [step for step in steps if self._is_due(family, step)]
        # What was never run goes first: half an hour is better spent on a new figure than on a better one.
        for step in sorted(due, key=lambda step: self.folder.family(family).measured(step["step"]).exists()):
            self._measure(family, step)
        void = sum(self._is_due(family, step) for step in steps)
        if void:
            self.say(f"{void} of {len(steps)} steps are void; the same command runs them again")

    def _model(self) -> Model:
        """Return the calibrated model; explore first if that was not done."""
        wanted: dict[str, Any] = {"explore_seconds": self.explore_seconds}
        if self.database is not None:
            wanted["database"] = self.database
        study = agreed(self.folder.study, wanted)
        if study is None:
            settings = {**wanted, "database": self.database or available_database()}
            study = {"application": self.application, "mode": self.mode, "settings": settings}
            write_json(self.folder.study, study)
        if not self.folder.model.exists():
            self._calibrate(study["settings"]["database"])
        return read_model(str(self.folder.model))

    def _calibrate(self, database: Any) -> None:
        host = self.results / "host.json"
        if self.profile and not host.exists():
            self._check_time(60.0)
            known = current_profile()[0]
            if not known.measured:
                self.say("profiling the machine, once (45 s)")
                with self.quiet.alone():
                    known = profile_host()
            save_profile(known, host)
        with started(self.application, self.mode, database) as project:
            application = analyse_project(project)
            if not self.folder.run.exists():
                self._check_time(self.explore_seconds + 60)
                self.say(
                    f"{self.application} ({self.mode}, {database}): one user, at most"
                    f" {self.explore_seconds:g} s"
                )
                partial_run = self.folder.path / "run.partial"
                shutil.rmtree(partial_run, ignore_errors=True)
                settings = ExploreSettings(
                    max_seconds=self.explore_seconds, round_seconds=min(3.0, self.explore_seconds / 4)
                )
                with self.quiet.alone():
                    explore(project, application, settings, directory=partial_run)
                partial_run.rename(self.folder.run)
            profile = host if host.exists() else None
            found = calibrate_project(project, load_run(self.folder.run), application, host=profile)
        for warning in found.warnings:
            self.say(f"calibration: {warning}")
        new = self.folder.path / "model.json.new"
        save_model(found.model, new)
        new.replace(self.folder.model)
        self.say(f"calibrated: {found.observed} of {found.paths} paths seen")

    def _steps(self, family: str, model: Model) -> list[dict[str, Any]]:
        """Return the steps with their predictions; all of them are predicted before the first is run."""
        file = self.folder.family(family).steps
        settings: dict[str, Any] = {
            "think_scale": self.think_scale,
            "max_clients": self.max_clients,
            "precision": self.precision,
        }
        stored = agreed(file, settings if self.seconds is None else {**settings, "seconds": self.seconds})
        if stored is None:
            thinking = scaled(watched(model), self.think_scale)
            seconds = LONGEST_WINDOW if self.seconds is None else self.seconds
            steps = self._predicted(family, thinking, seconds)
            if self.seconds is None:
                seconds = fitting_window(steps, at_least=CYCLES * cycle_seconds(thinking))
                if seconds < LONGEST_WINDOW:
                    self.say(f"windows of {LONGEST_WINDOW:g} s take too long; once more with {seconds:g} s")
                    steps = self._predicted(family, thinking, seconds)
            settings["seconds"] = seconds
            stored = {"settings": settings, "circumstances": circumstances(), "steps": steps}
            write_json(file, stored)
            self.say(f"{len(steps)} steps, about {sum(map(step_seconds, steps)) / 60:.0f} min of runs")
        found: list[dict[str, Any]] = stored["steps"]
        return found

    def _predicted(self, family: str, model: Model, seconds: float) -> list[dict[str, Any]]:
        """Predict all steps with windows of this length."""
        scaling = Settings(scaling=FAMILIES[family].scaling, max_clients=self.max_clients)

        def observe(deployed: Model) -> Rehearsal:
            warmup = max(LEAST_WARMUP, settling_seconds(deployed))
            return rehearse(deployed, seconds=seconds, warmup=warmup, precision=self.precision)

        steps = []
        with self.quiet.shared():
            # Not between two of them: predictions are stored all together, and take minutes.
            for step in autoscale(model, scaling, observe):
                steps.append(step.to_json())
                self.say(
                    f"predicted {family} step {step.number}: {step.clients} clients, {step.bottleneck}"
                    f" {100 * step.seen.utilization[step.bottleneck].mean:.0f} %, response"
                    f" {step.seen.response_time.mean:.3f} s; {step.action}"
                )
        return steps

    def _is_due(self, family: str, step: dict[str, Any]) -> bool:
        """Tell whether a step was not run yet, or only by void runs of which there may be more."""
        file = self.folder.family(family).measured(step["step"])
        if not file.exists():
            return True
        record = read_json(file)
        return is_void(record) and record["runs"] < self.void

    def _measure(self, family: str, step: dict[str, Any]) -> None:
        folder = self.folder.family(family)
        file = folder.measured(step["step"])
        before = read_json(file) if file.exists() else None
        runs = before["runs"] if before else 0
        needed = step_seconds(step)
        self._check_time(needed)
        database = read_json(self.folder.study)["settings"]["database"]
        with self.quiet.alone():
            # Others may have had the machine for a while.
            self._check_time(needed)
            retries = min(self.retries, self.void - runs - 1)
            while retries and not self._fits((1 + retries) * needed):
                retries -= 1
            with started(self.application, self.mode, database) as project:
                record = measure_step(project, step, think_scale=self.think_scale, retries=retries)
        write_json(file, {**replacing(before, record), "runs": runs + record["runs"]})
        seen, expected = record["response_time"]["mean"], step["response_time"]["mean"]
        void = f"; VOID: {record['disturbance']['void']}" if is_void(record) else ""
        self.say(
            f"measured {family} step {step['step']}: {step['clients']} clients, response {seen:.3f} s,"
            f" predicted {expected:.3f} s{void}"
        )

    def _fits(self, seconds: float) -> bool:
        """Tell whether there are so many until the deadline."""
        return time.monotonic() + seconds <= self.deadline

    def _check_time(self, needed: float) -> None:
        if not self._fits(needed):
            raise TimeIsUpError("time is up; the same command continues")


def is_void(record: dict[str, Any]) -> bool:
    """Return whether the machine disturbed all runs of a record."""
    return record["disturbance"]["void"] is not None


def replacing(before: dict[str, Any] | None, record: dict[str, Any]) -> dict[str, Any]:
    """Return which record of a step stays: a valid one, else the first that has figures.

    Which of two void ones is nearer to the truth nobody knows; to choose by their figures would be to choose
    the result.
    """
    if before is None or not is_void(record) or not before["cycles"]:
        return record
    return before


def step_seconds(step: dict[str, Any]) -> float:
    """Return about how long one run of a step takes, until the cycles begun in its window are over."""
    seconds: float = START_SECONDS + step["warmup"] + step["seconds"] + step["cycle_time"]["mean"]
    return seconds


def fitting_window(steps: Sequence[dict[str, Any]], *, at_least: float) -> float:
    """Return the longest window, in steps of 5 s, with which a family takes `FAMILY_SECONDS`.

    Args:
        steps: Predicted with `LONGEST_WINDOW`.
        at_least: Seconds a window needs in any case.
    """
    others: float = sum(step_seconds(step) - step["seconds"] for step in steps)
    longest = (FAMILY_SECONDS - others) / len(steps)
    shortest = max(SHORTEST_WINDOW, at_least)
    return min(max(5 * math.floor(longest / 5), 5 * math.ceil(shortest / 5)), LONGEST_WINDOW)


def scaled(model: Model, factor: float) -> Model:
    """Return a model whose clients think so many times as long."""
    if factor == 1:
        return model
    (clients,) = compile_model(model).populations
    return with_think(model, factor * clients.nominal.think)
