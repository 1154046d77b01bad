"""How is one family of one application studied? One user, then every step predicted, then every step run."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
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
from simulator.rehearsal import Rehearsal, rehearse, settling_seconds

__all__ = ["Study", "TimeIsUpError", "scaled"]

LEAST_WARMUP = 2.0
"""Seconds. The first requests to new services open connections, which no model knows."""
START_SECONDS = 15.0
"""Starting and stopping services and database, and probing the machine."""


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
        seconds: Length of the window of every step.
        think_scale: Factor on think times, in predictions and real runs.
        max_clients: At the end of every family.
        precision: Of predictions.
        retries: How often a void run of a step is done again.
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
    seconds: float = 60.0
    think_scale: float = 1.0
    max_clients: int = 512
    precision: float = 0.01
    retries: int = 1
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
            self._measure(family, step)

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
        settings = {
            "seconds": self.seconds,
            "think_scale": self.think_scale,
            "max_clients": self.max_clients,
            "precision": self.precision,
        }
        stored = agreed(file, settings)
        if stored is None:
            scaling = Settings(scaling=FAMILIES[family].scaling, max_clients=self.max_clients)
            thinking = scaled(watched(model), self.think_scale)
            steps = []
            with self.quiet.shared():
                for step in autoscale(thinking, scaling, self._observe):
                    self._check_time(0.0)
                    steps.append(step.to_json())
                    self.say(
                        f"predicted {family} step {step.number}: {step.clients} clients, {step.bottleneck}"
                        f" {100 * step.seen.utilization[step.bottleneck].mean:.0f} %, response"
                        f" {step.seen.response_time.mean:.3f} s; {step.action}"
                    )
            stored = {"settings": settings, "circumstances": circumstances(), "steps": steps}
            write_json(file, stored)
        found: list[dict[str, Any]] = stored["steps"]
        return found

    def _observe(self, model: Model) -> Rehearsal:
        warmup = max(LEAST_WARMUP, settling_seconds(model))
        return rehearse(model, seconds=self.seconds, warmup=warmup, precision=self.precision)

    def _measure(self, family: str, step: dict[str, Any]) -> None:
        folder = self.folder.family(family)
        file = folder.measured(step["step"])
        if file.exists():
            return
        cycle = step["cycle_time"]["mean"]
        self._check_time(START_SECONDS + step["warmup"] + step["seconds"] + cycle)
        database = read_json(self.folder.study)["settings"]["database"]
        with self.quiet.alone(), started(self.application, self.mode, database) as project:
            record = measure_step(project, step, think_scale=self.think_scale, retries=self.retries)
        write_json(file, record)
        seen, expected = record["response_time"]["mean"], step["response_time"]["mean"]
        void = record["disturbance"]["void"]
        self.say(
            f"measured {family} step {step['step']}: {step['clients']} clients, response {seen:.3f} s,"
            f" predicted {expected:.3f} s" + (f"; VOID: {void}" if void else "")
        )

    def _check_time(self, needed: float) -> None:
        if time.monotonic() + needed > self.deadline:
            raise TimeIsUpError("time is up; the same command continues")


def scaled(model: Model, factor: float) -> Model:
    """Return a model whose clients think so many times as long."""
    if factor == 1:
        return model
    (clients,) = compile_model(model).populations
    return with_think(model, factor * clients.nominal.think)
