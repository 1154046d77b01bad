"""Study one family of one application: one user, all steps predicted, then all steps run."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accuracy.deploy import circumstances
from accuracy.quiet import Quiet
from accuracy.whole_run import explore_to_the_end

from analyzer.calibration.explore import ExploreSettings
from analyzer.calibration.of_project import calibrate_project
from analyzer.calibration.rundir import load_run
from analyzer.host.measure import profile_host
from analyzer.host.profile import current_profile, save_profile
from analyzer.static import analyse_project
from analyzer.validation import watched
from case_studies.applications import FAMILIES, available_database, started
from case_studies.correction import corrected_step
from case_studies.fullness import until_full
from case_studies.measured import measure_step
from case_studies.scaling import scaled
from case_studies.store import StudyFolder, agreed, read_json, write_json
from case_studies.windows import (
    LONGEST_WINDOW,
    fitting_window,
    longer_window,
    shortest_window,
    step_seconds,
)
from mup.lqn import Model
from mup.lqn.files import read_model
from mup.lqn.json_io import save_model
from simulator.studies.autoscale import Settings, autoscale
from simulator.studies.rehearsal import Rehearsal, cycle_seconds, rehearse, transient_seconds

__all__ = ["Study", "TimeIsUpError", "replacing"]

LEAST_WARMUP = 2.0
"""Seconds. The first requests to new services open connections, which no model knows."""
SAME = ("step", "clients", "pools", "replicas", "warmup", "seconds", "response_time", "utilization")
"""What steps of two families have in common if a run of the one is one of the other: all that is run (the
number of the step is its seed), and what was predicted before it was run."""


class TimeIsUpError(Exception):
    """The time given is over; the same command continues."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """One application in one mode.

    Attributes:
        results: Folder of all studies.
        application, mode: What is studied.
        database: ``mongod`` or ``embedded``; None: the best there is.
        explore_seconds: Cap of the exploratory run.
        seconds: Length of the window of every step; None: of each, as long as it has to be.
        think_scale: Factor on think times, in predictions and real runs.
        max_clients: At the end of every family.
        precision: Of predictions.
        retries: How often a void run of a step is done again at once.
        void: A step none of whose runs was valid is done again, at another start, until it has so many.
        profile: Measure the machine first, if it has no profile yet.
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
        for step in steps:
            self._take_over(family, step)
        due = [step for step in steps if self._is_due(family, step)]
        minutes = sum(map(step_seconds, due)) / 60
        self.say(f"{len(due)} of {len(steps)} steps are to be run, about {minutes:.0f} min")
        # What was never run goes first: half an hour is better spent on a new figure than on a better one.
        for step in sorted(due, key=lambda step: self.folder.family(family).measured(step["step"]).exists()):
            self._measure(family, step)
        void = sum(self._is_due(family, step) for step in steps)
        if void:
            self.say(f"{void} of {len(steps)} steps are void; the same command runs them again")
        for step in steps:
            self._correct(family, model, step)

    def model(self) -> Model:
        """Return the calibrated model of one user; explore first if that was not done."""
        return self._model()

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
                    explore_to_the_end(project, application, settings, partial_run)
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
        given = {"seconds": self.seconds}
        stored = agreed(file, settings if self.seconds is None else settings | given)
        if stored is None:
            thinking = scaled(watched(model), self.think_scale)
            known = read_json(self.folder.windows)["longest"] if self.folder.windows.exists() else None
            steps = list(self._predicted(family, thinking, known or LONGEST_WINDOW))
            if known is None and self.seconds is None:
                longest = fitting_window(steps)
                if longest < LONGEST_WINDOW:
                    self.say(f"windows of {LONGEST_WINDOW:g} s take too long; once more with {longest:g} s")
                    steps = list(self._predicted(family, thinking, longest))
                write_json(self.folder.windows, {"longest": longest})
            stored = {"settings": settings | given, "circumstances": circumstances(), "steps": steps}
            write_json(file, stored)
        found: list[dict[str, Any]] = stored["steps"]
        return found

    def _predicted(self, family: str, model: Model, longest: float) -> Iterator[dict[str, Any]]:
        """Predict all steps, with windows that are no longer than that if they need not be."""
        scaling = Settings(scaling=FAMILIES[family].scaling, max_clients=self.max_clients)
        steps = autoscale(model, scaling, lambda deployed: self._rehearsed(deployed, longest))
        if self.mode == "cpu" and scaling.scaling == "none":
            steps = until_full(steps)
        with self.quiet.shared():
            # Not between two of them: predictions are stored all together, and take minutes.
            for step in steps:
                self.say(
                    f"predicted {family} step {step.number}: {step.clients} clients, {step.bottleneck}"
                    f" {100 * step.seen.utilization[step.bottleneck].mean:.0f} %, response"
                    f" {step.seen.response_time.mean:.3f} s; {step.action}"
                )
                yield step.to_json()

    def _rehearsed(self, deployed: Model, longest: float) -> Rehearsal:
        """Predict what a run of a step shows, and with it how long its window has to be."""
        # Users who come twice as fast as a full system serves them are all there after half of a cycle, and
        # from then on a cycle takes as long as it does at rest.
        warmup = max(LEAST_WARMUP, cycle_seconds(deployed), transient_seconds(deployed) / 2)
        seconds = shortest_window(deployed) if self.seconds is None else self.seconds
        seen = rehearse(deployed, seconds=seconds, warmup=warmup, precision=self.precision)
        longer = longer_window(seen, longest)
        if self.seconds is not None or longer == seconds:
            return seen
        return rehearse(deployed, seconds=longer, warmup=warmup, precision=self.precision)

    def _take_over(self, family: str, step: dict[str, Any]) -> None:
        """Store what a run for another family showed, if the step is one of that, too, and is still due."""
        if not self._is_due(family, step):
            return
        file = self.folder.family(family).measured(step["step"])
        for name in FAMILIES:
            other = self.folder.family(name)
            found = other.measured(step["step"])
            if name == family or not found.exists():
                continue
            stored = read_json(other.steps)
            same = any(all(step[key] == theirs[key] for key in SAME) for theirs in stored["steps"])
            record = read_json(found)
            if (
                same
                and stored["settings"]["think_scale"] == self.think_scale
                and not (file.exists() and is_void(record))
            ):
                write_json(file, {**record, "of": record.get("of", name)})
                self.say(f"{family} step {step['step']} is one of {record.get('of', name)}, too")
                return

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

    def _correct(self, family: str, model: Model, step: dict[str, Any]) -> None:
        """Predict a step again for the machine of its real run, unless that was done for this run."""
        folder = self.folder.family(family)
        measured, file = folder.measured(step["step"]), folder.corrected(step["step"])
        if not measured.exists():
            return
        record = read_json(measured)
        if not record["cycles"] or (file.exists() and read_json(file)["run"] == record["created"]):
            return
        if "of" in record:
            # What is the same step was predicted from the same model.
            same = self.folder.family(record["of"]).corrected(step["step"])
            if same.exists() and read_json(same)["run"] == record["created"]:
                write_json(file, read_json(same))
                return
        with self.quiet.shared():
            found = corrected_step(model, read_json(folder.steps)["settings"], step, record)
        if found is not None:
            write_json(file, {"run": record["created"], **found})

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

    Which of two void ones is nearer to the truth is unknown; to choose by their figures would be to choose
    the result.
    """
    if before is None or not is_void(record) or not before["cycles"]:
        return record
    return before
