"""Steps of a campaign, system by system: explore, predict, measure. None is done twice."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from accuracy.deploy import circumstances, deployable, generated, prepare, seed_of
from accuracy.judge import response_times, usable
from accuracy.measured import WindowLength, measure
from accuracy.points import Point, choose, choose_wide
from accuracy.predictions import Recipe, describe, known_host, points_of, predict_system
from accuracy.quiet import Quiet
from accuracy.store import FIRST, Results, SystemFolder, read_json, write_json
from accuracy.whole_run import explore_to_the_end
from analyzer.calibration.explore import ExploreSettings
from analyzer.host.measure import profile_host
from analyzer.host.profile import save_profile
from analyzer.static import analyse_project
from mup.errors import MupError
from mup.workload.speed import Bracket, probe

__all__ = ["Campaign", "TimeIsUpError"]

REQUESTS_PER_PLACE = 4
"""Requests per place of a cache after which it holds about what it will hold."""
LONGEST_FILLING = 10.0
"""Seconds."""


class TimeIsUpError(Exception):
    """The campaign was given so many minutes, and they are over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    """What to do, how thoroughly.

    Attributes:
        results: Where everything goes.
        quiet: How the machine is shared.
        points: Names of the points to measure; empty = all.
        repeats: At least so many valid ones per point.
        width: Relative half-width of the mean response time from which on a point is done.
        observed: Seconds of windows after which a point is done in any case.
        window: Of one repeat.
        void: So many void repeats per point are thrown away; then it stays as it is.
        budget: Seconds of all repeats of a system, void ones included, after which points that have a valid
            one are done.
        explore_seconds: Cap of the exploratory run; None = the default of ``mup explore``.
        burst: Clients of the rounds at its end; 0 = no such rounds.
        precision: Of predictions.
        deadline: ``time.monotonic()`` at which to stop between two steps.
        say: Told what happens.
    """

    results: Results
    quiet: Quiet = field(default_factory=Quiet)
    points: Sequence[str] = ()
    repeats: int = 3
    width: float = 0.03
    observed: float = 60.0
    window: WindowLength = field(default_factory=WindowLength)
    void: int = 6
    budget: float = float("inf")
    explore_seconds: float | None = None
    burst: int = 0
    precision: float = 0.005
    deadline: float = float("inf")
    say: Callable[[str], None] = print

    def run(self, names: Sequence[str]) -> list[str]:
        """Do everything that is left for some systems; return those that failed, with the reason.

        A system that fails does not stop the others.

        Raises:
            TimeIsUpError: The deadline has passed; what was done is stored.
        """
        failed = []
        for name in names:
            try:
                self.system(self.results.system(name))
            except MupError as error:
                failed.append(f"{name}: {error}")
                self.say(failed[-1])
        return failed

    def system(self, folder: SystemFolder) -> None:
        """Do everything that is left for one system."""
        prepare(folder)
        if not self.results.host.exists() and not self.results.prediction(FIRST, folder.name).exists():
            self._check_time()
            self._profile()
        if not folder.explored.exists():
            self._check_time()
            self._explore(folder)
        if not folder.points.exists():
            self._check_time()
            self._choose(folder)
        if not self.results.prediction(FIRST, folder.name).exists():
            self._check_time()
            with self.quiet.shared():
                record = predict_system(self.results, folder.name, FIRST, self._recipe())
            self.say(f"predicted {describe(record)}")
        record = read_json(self.results.prediction(FIRST, folder.name))
        # All points once, then all points again: what drifts hits each of them alike.
        todo = [p for p in points_of(folder) if not self.points or p.name in self.points]
        while todo := [p for p in todo if not self._done(folder, p)]:
            for point in todo:
                # The budget may have been used up since this round began.
                if not self._done(folder, point):
                    self._check_time()
                    self._measure(folder, point, record)

    def _recipe(self) -> Recipe:
        return Recipe(
            host=known_host(self.results),
            precision=self.precision,
            window=self.window,
            repeats=self.repeats,
        )

    def _profile(self) -> None:
        """Measure the machine, once per campaign."""
        with self.quiet.alone():
            self.say("profiling the machine")
            save_profile(profile_host(), self.results.host)

    def _explore(self, folder: SystemFolder) -> None:
        partial = folder.path / "run.partial"
        for left_over in (partial, folder.run):
            shutil.rmtree(left_over, ignore_errors=True)
        settings = ExploreSettings(seed=seed_of(folder.name) or 0, burst=self.burst)
        if self.explore_seconds is not None:
            settings = replace(settings, max_seconds=self.explore_seconds)
        with self.quiet.alone(), deployable(folder) as project:
            self.say(f"exploring {folder.name}")
            application = analyse_project(project)
            began, before = time.perf_counter(), probe()
            explore_to_the_end(project, application, settings, partial)
            bracket = Bracket(before, probe())
        partial.rename(folder.run)
        record = {
            "created": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
            "seconds": time.perf_counter() - began,
            "speed": bracket.speed,
            "jump": bracket.jump,
            "circumstances": circumstances(),
        }
        write_json(folder.explored, record)

    def _choose(self, folder: SystemFolder) -> None:
        with self.quiet.shared():
            model, _ = self._recipe().calibrated(folder)
            found = generated(folder.name)
            if found is not None and found.prefix:
                points = choose_wide(model, found)
            else:
                points = choose(model, more_replicas=(seed_of(folder.name) or 0) % 2 == 1)
        write_json(folder.points, [p.to_json() for p in points])
        self.say(f"{folder.name}: " + "; ".join(map(str, points)))

    def _done(self, folder: SystemFolder, point: Point) -> bool:
        records = folder.repeats(point.name)
        valid = usable(records)
        if len(records) - len(valid) >= self.void:
            return True
        if valid and self._spent(folder) >= self.budget:
            return True
        if len(valid) < self.repeats:
            return False
        together = response_times(valid)
        reached = together.ci95 is not None and together.ci95 <= self.width * together.mean
        return reached or sum(r["window_us"] for r in valid) * 1e-6 >= self.observed

    def _spent(self, folder: SystemFolder) -> float:
        """Return how many seconds the repeats of a system took, with their starts."""
        points = points_of(folder)
        return float(sum(r.get("took", 0.0) for point in points for r in folder.repeats(point.name)))

    def _measure(self, folder: SystemFolder, point: Point, prediction: dict[str, Any]) -> None:
        predicted = prediction["points"][point.name]
        throughput = predicted["throughput"]["mean"]
        number = len(folder.repeats(point.name))
        with self.quiet.alone():
            record = measure(
                folder,
                point,
                number,
                duration=self.window.seconds(throughput),
                warmup=self._warmup(folder, point, throughput),
            )
        write_json(folder.repeat(point.name, number), record, indent=None)
        found = record["measurement"]["response_time"]["mean"]
        mean = predicted["response_time"]["mean"]
        self.say(
            f"{folder.name} {point.name} ({point}) #{number}: {1000 * found:.2f} ms, "
            + ("predicted" if point.covered else "not covered; with as much data as explored")
            + f" {1000 * mean:.2f} ms ({mean / found - 1:+.1%})"
            + (f" VOID: {record['void']}" if record["void"] else "")
        )

    def _warmup(self, folder: SystemFolder, point: Point, throughput: float) -> float:
        """Return the seconds before a window: until users are there, and caches as full as explored."""
        # Of users who come at a rate, as many are there as one user's cycle lasts.
        seconds = self.window.warmup((point.clients or 1) / throughput)
        system = generated(folder.name)
        for service in system.services if system else ():
            if service.cache is not None and not service.cache.filled:
                pool = 1 if service.runtime == "async" else point.pools.get(service.name, service.pool)
                workers = pool * point.replicas.get(service.name, service.replicas)
                needed = REQUESTS_PER_PLACE * service.cache.size * workers / throughput
                seconds = max(seconds, round(min(needed, LONGEST_FILLING), 1))
        return seconds

    def _check_time(self) -> None:
        if time.monotonic() >= self.deadline:
            raise TimeIsUpError
