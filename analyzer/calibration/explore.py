"""The exploratory run: one user, real services, until every endpoint's time is known well enough.

The load comes in rounds, some without think times and some with (``rounds.py``). Between rounds nothing runs
but the housekeeping, so reading the logs for the stop rule (``stop_rule.py``) never disturbs a measurement.
A probe of the machine's speed stands between neighbouring rounds. ``run.json`` is written after every round:
a run that is killed can be used and resumed.

Given a question (``question.py``), the predictions it asks for have to be known well instead, and the rounds
are those that narrow them (``inquiry.py``).
"""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import msgspec

from analyzer.calibration.answer import look
from analyzer.calibration.inquiry import FIRST_ROUNDS, Inquiry
from analyzer.calibration.meter import Meter
from analyzer.calibration.question import Question
from analyzer.calibration.rounds import (
    BURST_ROUNDS,
    MIN_ROUNDS,
    ClientPace,
    ExploreSettings,
    Rounds,
    doubt_about,
)
from analyzer.calibration.run_lock import writing
from analyzer.calibration.rundir import (
    DatabaseUse,
    PartInfo,
    Phase,
    Run,
    RunInfo,
    Window,
    describe_host,
    fingerprints,
    load_info,
    load_run,
    merge_runs,
    new_run_directory,
    same_machine,
    stale_endpoints,
)
from analyzer.calibration.running_log import RunningLogs
from analyzer.calibration.stop_rule import Knowledge, State
from analyzer.static.application import Application
from analyzer.static.measured_code import difference
from mup.errors import LogError, StaleLogError, UsageError
from mup.events.settings import LogSettings
from mup.project import Project
from mup.runtime.deployment.launcher import Deployment, ProcessInfo
from mup.workload import speed, speed_history
from mup.workload.cpu import STOLEN_LIMIT
from mup.workload.driver import LoadDriver
from mup.workload.speed import Bracket, Speed
from mup.workload.speed_monitor import SpeedMonitor

__all__ = ["ExploreSettings", "Progress", "explore"]

PACE_SCALE = 0.01
"""Think times are cut to this while the client is watched to see how long it thinks."""
INTERRUPTED = "interrupted"
"""Why a run stopped that the user stopped."""
FAILED_LIMIT = 0.01
"""Share of the client's cycles that may fail."""
GIVE_UP = 0.2
"""A larger share than this ends the run at once."""
UNUSABLE = ("a process of", "no cycle of the client ended well", "so many clients make cycles fail")
"""How the reasons of rounds begin that cannot count, however little there is else."""
FLUSH_SECONDS = 1.5
"""After so long, services have written to disk what they had to log."""
RESTART_SECONDS = 0.5
"""Of load after a pause, not observed."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What a progress display may show after each round.

    Attributes:
        seconds: Under load so far, void rounds included.
        limit: Cap on them.
        goal: Relative half-width to reach.
        state: What is known.
        phase: Of the round that has just ended.
        void: Rounds so far that do not count.
        note: Why the round that has just ended does not count; "" if it does.
        speed: Of the machine, units per second and core.
        question: What is known about the question, and what follows; "" if there is none, or nothing yet.
    """

    seconds: float
    limit: float
    goal: float
    state: State
    phase: Phase
    void: int
    note: str
    speed: float
    question: str = ""

    @property
    def worst(self) -> float | None:
        """Largest relative half-width; None while there are too few rounds."""
        return self.state.worst


def explore(
    project: Project,
    application: Application,
    settings: ExploreSettings,
    *,
    directory: Path | None = None,
    resume: Path | None = None,
    changed_since: Sequence[Path] = (),
    question: Question | None = None,
    progress: Callable[[Progress], None] | None = None,
    serving: Callable[[Mapping[str, Collection[str]]], None] | None = None,
    probe: Callable[[], Speed] = speed.probe,
    monitor: bool = True,
) -> Path:
    """Run one user against a project's services and log what happens.

    Args:
        project: Started with free ports, one deployment for the whole run.
        application: Its static analysis; its fingerprints are stored with the log.
        settings: When to stop.
        directory: Run directory to create; None = a new one below ``.mup/runs``.
        resume: Run directory to continue instead: the new deployment becomes another part of it.
        changed_since: Earlier runs: only what has changed since all of them has to be known well, for the
            model will be calibrated from these runs together.
        question: The predictions that have to be known well, in place of execution times.
        progress: Called after each round.
        serving: Called with the endpoints of every service when all have started.
        probe: Measures the speed of the machine.
        monitor: Also watch the speed while a round lasts.

    Returns:
        The run directory.

    Ctrl-C after the first round ends the run early and keeps it.

    Raises:
        UsageError: ``directory`` is not empty, or there is nothing left to do for ``resume``.
        StaleLogError: The source has changed since the run to resume was started.
        DeploymentError: The services do not start.
        LogError: The client's scenario fails, nothing was logged, or the run to resume is of another machine.
    """
    if resume is not None:
        exploration = _resumed(project, application, settings, resume, question)
    else:
        info = RunInfo(
            **describe_host(),
            project=project.name,
            mup=_version(),
            client=project.client_class,
            seed=settings.seed,
            complete=False,
            fingerprints=fingerprints(application),
            since=[path.name for path in changed_since],
        )
        wanted = _wanted(application, info, changed_since)
        directory = _prepare(directory) if directory else new_run_directory(project.state / "runs")
        exploration = _Exploration(project, application, settings, directory, info, wanted)
        if question is not None:
            exploration.ask(question)
    exploration.progress = progress
    exploration.serving = serving
    exploration.probe = probe
    exploration.monitor = monitor
    exploration.run()
    return exploration.directory


def _wanted(application: Application, info: RunInfo, runs: Sequence[Path]) -> frozenset[str] | None:
    """Return the endpoints that have to be known well; None = all.

    Raises:
        UsageError: Nothing has changed since the earlier runs, or the client has.
        LogError: One of them cannot be read.
    """
    if not runs:
        return None
    changed = changed_endpoints(application, runs)
    names = ", ".join(path.name for path in runs)
    if f"{info.client}.scenario" in changed:
        raise UsageError(
            f"the client has changed since {names}: how often paths are taken has to be measured again",
            hint="run 'mup explore' without --changed",
        )
    # Other clients are not part of this run.
    changed = frozenset(label for label in changed if "/" in label)
    if not changed:
        raise UsageError(f"nothing has changed since {names}", hint="'mup model' can use it as it is")
    return changed


def changed_endpoints(application: Application, runs: Sequence[Path]) -> frozenset[str]:
    """Return the endpoints and scenarios no run has measured as they are now.

    Raises:
        LogError: A run cannot be read.
    """
    now = fingerprints(application)
    earlier = [load_info(path).fingerprints for path in runs]
    return frozenset(
        label
        for label, mark in now.items()
        if all(label not in e or difference(e[label], mark) for e in earlier)
    )


def _prepare(directory: Path) -> Path:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()):
            raise UsageError(
                "exists and is not empty; a run needs a directory of its own", where=str(directory)
            )
    except OSError as error:
        raise UsageError(f"cannot create: {error.strerror}", where=str(directory)) from error
    return directory


def _resumed(
    project: Project,
    application: Application,
    settings: ExploreSettings,
    directory: Path,
    question: Question | None,
) -> _Exploration:
    """Return the exploration that continues a run.

    Raises:
        StaleLogError, LogError, UsageError: It cannot be continued; see `explore`.
    """
    info = load_info(directory)
    where = str(directory)
    now = fingerprints(application)
    changed = {**stale_endpoints(info.fingerprints, now), **stale_endpoints(now, info.fingerprints)}
    if changed:
        raise StaleLogError(
            f"cannot be resumed: the source of {', '.join(sorted(changed))} has changed since it was started",
            where=where,
            hint="start a new run with 'mup explore'",
        )
    client = project.client_class
    if info.client != client:
        raise LogError(f"cannot be resumed: its client is {info.client!r}, now it is {client!r}", where=where)
    if not same_machine(info, RunInfo(**describe_host(), project=project.name)):
        raise LogError(
            f"cannot be resumed: it was started on another machine ({info.hostname}, {info.cpu_model})",
            where=where,
            hint="start a new run with 'mup explore' here",
        )
    earlier = [directory.parent / name for name in info.since]
    exploration = _Exploration(
        project, application, settings, directory, info, _wanted(application, info, earlier)
    )
    if question is not None:
        exploration.ask(question)
    spent = exploration.read_earlier_parts()
    if settings.max_seconds - spent < settings.round_seconds / 2:
        raise UsageError(
            f"nothing is left to do: {spent:.0f} s of at most {settings.max_seconds:g} s are used up",
            where=where,
            hint=f"give it more time, for example --max-seconds {2 * spent:.0f}",
        )
    return exploration


@dataclass(frozen=True, slots=True)
class _Bench:
    """What runs while a part is being explored."""

    deployment: Deployment
    driver: LoadDriver
    meter: Meter
    monitor: SpeedMonitor | None


class _Exploration:
    """One run while it is going on.

    Attributes:
        directory: The run directory.
        progress: Called after each round.
        serving: Called with the endpoints of every service when all have started.
        probe: Measures the speed of the machine.
        monitor: Also watch the speed while a round lasts.
    """

    def __init__(
        self,
        project: Project,
        application: Application,
        settings: ExploreSettings,
        directory: Path,
        info: RunInfo,
        wanted: Collection[str] | None = None,
    ) -> None:
        self.directory = directory
        self.progress: Callable[[Progress], None] | None = None
        self.serving: Callable[[Mapping[str, Collection[str]]], None] | None = None
        self.probe: Callable[[], Speed] = speed.probe
        self.monitor = True
        self._project = project
        self._application = application
        self._settings = settings
        self._inquiry: Inquiry | None = None
        self._earlier = info
        self._part = len(info.parts)
        self._rounds = Rounds()
        self._knowledge = Knowledge(application, info.client, wanted)
        name = f"part-{self._part + 1}" if self._part else ""
        self._folder = directory / name if name else directory
        self._logs = RunningLogs(self._folder)
        sample = LogSettings.from_environment(os.environ).sample
        self._info = PartInfo(folder=name, created=describe_host()["created"], sample=sample)
        self._phases: tuple[Phase, ...] = ("hot", "cold")
        self._good = self._bad = 0
        self._overloaded = False
        self._first_error = ""
        self._stop = ""
        self._paused = False

    def ask(self, question: Question) -> None:
        """Explore for a question."""
        self._inquiry = Inquiry(question, self._settings.max_seconds, self._settings.round_seconds)

    def read_earlier_parts(self) -> float:
        """Learn what the run knows already; return the seconds under load that took."""
        for number, part in enumerate(self._earlier.parts):
            for window in part.windows:
                # What was kept for want of better rounds may be replaced by them now.
                bare = msgspec.structs.replace(window, flaw="")
                self._rounds.add(number, bare, window.flaw)
            for void in part.void:
                usable = not void.reason.startswith(UNUSABLE)
                self._rounds.add(number, void.window, void.reason, usable=usable)
            self._knowledge.add(
                RunningLogs(self.directory / part.folder).executions(), self._rounds.windows(number)
            )
        return self._spent

    def run(self) -> None:
        """Start the services, load them until the rule is met, stop them, and describe it all.

        Raises:
            UsageError: Another process explores into this directory.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        with writing(self.directory):
            self._run()

    def _run(self) -> None:
        try:
            self._folder.mkdir(exist_ok=True)
            self._save()
            self._load()
            self._finish(complete=True)
        except LogError:
            self._discard()
            raise
        except BaseException as error:
            if not any(r.part == self._part for r in self._rounds.all):
                self._discard()
                raise
            # What has been observed so far is worth keeping.
            interrupted = isinstance(error, KeyboardInterrupt)
            self._stop = INTERRUPTED if interrupted else f"broken off: {error}"
            self._finish(complete=False)
            if not interrupted:
                raise

    def _finish(self, *, complete: bool) -> None:
        """Describe the run now that its services have ended and their logs are complete."""
        self._read_logs()
        for phase in self._phases:
            self._rounds.keep_doubtful(phase)
        self._check_cycles(FAILED_LIMIT)
        self._save(final=True, complete=complete)
        if complete and self._inquiry is not None and self._inquiry.outcome == "open":
            # All the rounds there will be, also those of the last seconds and doubtful ones.
            self._look(self._inquiry)
            known = self._inquiry.text()
            self._stop = self._inquiry.stop or (f"{self._stop}; {known}" if known else self._stop)
            self._save(final=True, complete=complete)

    def _discard(self) -> None:
        """Leave nothing half-written: without its description a log is of no use."""
        shutil.rmtree(self._folder, ignore_errors=True)
        if self._part:
            self._earlier.save(self.directory)

    def _load(self) -> None:
        """Start the services, run rounds until the rule is met or the time is up, stop them."""
        settings = self._settings
        # Everything that is logged stays: a round without its beginning would tell nothing.
        log = LogSettings(sample=self._info.sample)
        with (
            SpeedMonitor() if self.monitor else nullcontext() as monitor,
            Deployment(self._project.with_any_ports(), log_dir=self._folder, log=log) as deployment,
            LoadDriver(self._project, deployment.registry_url, log_dir=self._folder, log=log) as driver,
        ):
            if self.serving is not None:
                self.serving(deployment.endpoints())
            generator = ProcessInfo(role="client", service=self._earlier.client, pid=driver.pid)
            meter = Meter(deployment.processes(), generator, [] if monitor is None else [monitor.pid])
            bench = _Bench(deployment, driver, meter, monitor)
            self._describe(bench)
            meter.measure_idle(settings.idle_seconds)
            pace = self._warm_up(driver)
            scale = pace.cold_scale(settings.round_seconds)
            if scale and settings.think_scale is not None:
                scale = settings.think_scale
            # A client that does not think has rounds of one kind only.
            self._phases = ("hot", "cold") if scale else ("hot",)
            least = dict.fromkeys(self._phases, MIN_ROUNDS)
            if self._inquiry is not None:
                least = {phase: FIRST_ROUNDS[phase] for phase in self._phases}
            length = min(settings.round_seconds, settings.max_seconds / sum(least.values()))
            before = self.probe()
            while not self._enough():
                left = settings.max_seconds - self._spent
                if left < length / 2:
                    self._stop = "time is up"
                    break
                if self._paused:
                    before = self._restart(driver)
                phase = self._next_phase()
                before = self._round(
                    bench,
                    before,
                    phase=phase,
                    seconds=min(length, left),
                    think_scale=scale if phase == "cold" else 0.0,
                    clients=self._inquiry.users if phase == "burst" and self._inquiry is not None else 1,
                )
            for _ in range(2 * BURST_ROUNDS if settings.burst else 0):
                if len(self._rounds.good("burst")) >= BURST_ROUNDS or self._overloaded:
                    break
                before = self._round(
                    bench,
                    before,
                    phase="burst",
                    seconds=length,
                    think_scale=0.0,
                    clients=settings.burst,
                )

    def _warm_up(self, driver: LoadDriver) -> ClientPace:
        seconds = max(self._settings.warmup_seconds, 0.2)
        result = driver.run(1, seconds, seed=self._settings.seed, think_scale=PACE_SCALE)
        if not result.cycles:
            raise LogError(
                f"the client completed no cycle: {result.first_error or 'none ended in time'}",
                where=str(self._project.root),
                hint="fix the scenario or the services; 'mup run' shows their log lines",
            )
        return ClientPace.of(result, PACE_SCALE)

    @property
    def _spent(self) -> float:
        """Seconds of the budget that are used up; rounds that a question asked for count, bursts as well."""
        return self._rounds.spent if self._inquiry is None else self._rounds.spent_in_all

    def _counts(self) -> dict[Phase, int]:
        return {phase: len(self._rounds.good(phase)) for phase in self._phases}

    def _counts_of_all(self) -> dict[Phase, int]:
        return {**self._counts(), "burst": len(self._rounds.good("burst"))}

    def _next_phase(self) -> Phase:
        if self._inquiry is None:
            return self._rounds.next_phase(self._phases, self._settings.max_seconds)
        # Void rounds of one kind must not use up the time of the others here either.
        limit = int(self._settings.max_seconds / self._settings.round_seconds / (2 * len(self._phases)))
        return self._inquiry.next_phase(
            {phase: len(self._rounds.good(phase)) for phase in self._rounds.steady(self._phases, limit)}
        )

    def _restart(self, driver: LoadDriver) -> Speed:
        """Make the services as busy as they were before a pause; return the speed of the machine."""
        self._paused = False
        driver.run(1, RESTART_SECONDS, seed=self._settings.seed, think_scale=PACE_SCALE)
        return self.probe()

    def _round(
        self,
        bench: _Bench,
        before: Speed,
        *,
        phase: Phase,
        seconds: float,
        think_scale: float,
        clients: int,
    ) -> Speed:
        """Run one round and the housekeeping behind it; return the speed probed after it."""
        seed = self._settings.seed + len(self._rounds.all) + 1
        driver, meter = bench.driver, bench.meter
        if clients == 1:
            # A single client's round is observed as a whole: whatever its processes did was for its cycles.
            meter.start()
            result = driver.run(1, seconds, seed=seed, think_scale=think_scale, on_open=meter.start_client)
            end = max(result.end_ns, time.monotonic_ns())
            meter.stop()
        else:
            result = driver.run(
                clients,
                seconds,
                min(seconds, 1.0),
                seed=seed,
                think_scale=think_scale,
                on_open=meter.start,
                on_close=meter.stop,
            )
            end = result.end_ns
        after = self.probe()
        bracket = Bracket(before, after)
        monitored = None if bench.monitor is None else bench.monitor.speed(result.start_ns, end)
        window = Window(
            start=result.start_ns,
            end=end,
            phase=phase,
            clients=clients,
            think_scale=think_scale,
            speed=bracket.speed,
            jump=bracket.jump,
            monitored=monitored.speed if monitored is not None else None,
            cpu=meter.last.cpu,
            foreign=meter.last.foreign,
            stolen=meter.last.stolen,
            cycles=len(result.cycles),
            failed=result.errors,
            response_time=_mean(result.response_times),
            think_lateness=_mean(result.think_lateness) or 0.0,
        )
        self._remember(window)
        replaced = meter.replaced(bench.deployment.processes())
        reason = doubt_about(window, self._settings.foreign_limit, monitored)
        usable = True
        if replaced:
            usable = False
            reason = f"{UNUSABLE[0]} {', '.join(replaced)} died and was replaced"
        elif not result.cycles:
            usable = False
            reason = UNUSABLE[1]
        elif clients > 1 and result.errors > FAILED_LIMIT * (len(result.cycles) + result.errors):
            usable = False
            reason = f"{UNUSABLE[2]} ({result.errors}: {result.first_error})"
            self._overloaded = True
        self._rounds.add(self._part, window, reason, usable=usable)
        if clients == 1:
            self._good += len(result.cycles)
            self._bad += result.errors
            self._first_error = self._first_error or result.first_error
            self._check_cycles(GIVE_UP)
        self._describe(bench)
        self._read_logs()
        self._save()
        self._tell(phase, reason, bracket.speed)
        return after

    def _remember(self, window: Window) -> None:
        """Put the speed of a round into the history of this machine."""
        cores = self._earlier.cores
        busy = (
            sum(window.cpu.values()) / (window.seconds * cores) + (window.foreign or 0.0) if cores else None
        )
        others = []
        if window.foreign is not None and window.foreign > self._settings.foreign_limit:
            others.append(f"other programs used {window.foreign:.1%} of the machine")
        if window.stolen is not None and window.stolen > STOLEN_LIMIT:
            others.append(f"the hypervisor withheld {window.stolen:.1%} of the machine")
        speed_history.append(
            speed_history.record(
                "explore",
                f"explore {self.directory.name} {self._info.created}",
                window.seconds,
                monitored=window.monitored,
                probed=window.speed,
                utilization=None if busy is None else min(1.0, busy),
                stolen=window.stolen,
                disturbed=" and ".join(others),
            )
        )

    def _enough(self) -> bool:
        """Return whether the stop rule is met."""
        if self._inquiry is not None:
            return self._answered(self._inquiry)
        if any(len(self._rounds.good(phase)) < MIN_ROUNDS for phase in self._phases):
            return False
        state = self._state()
        if state.worst is None or state.worst > self._settings.goal:
            return False
        which = "changed endpoint" if self._earlier.since else "endpoint"
        self._stop = f"every {which} and path within {self._settings.goal:.2%}"
        return True

    def _answered(self, inquiry: Inquiry) -> bool:
        """Return whether exploring has done for the question what it can; look at the run if it is time."""
        mine = [r.window.end for r in self._rounds.all if r.part == self._part]
        # What a deployment does before its first round is no observation.
        if not mine or not inquiry.due(self._counts(), self._spent):
            return False
        time.sleep(max(0.0, max(mine) / 1e9 + FLUSH_SECONDS - time.monotonic()))
        self._save()
        self._look(inquiry)
        self._paused = True
        self._stop = inquiry.stop
        return bool(self._stop)

    def _look(self, inquiry: Inquiry) -> None:
        run = self._run_so_far()
        counts = Counter[Phase](window.phase for window in run.windows)
        inquiry.learn(look(run, self._application, self._project, inquiry.question), counts, self._spent)

    def _run_so_far(self) -> Run:
        """Read the run as it is on disk, with those that it adds to."""
        earlier = [self.directory.parent / name for name in self._earlier.since]
        if not earlier:
            return load_run(self.directory)
        return merge_runs([self.directory, *earlier], fingerprints(self._application))

    def _state(self) -> State:
        hot = [r.number for r in self._rounds.good("hot")]
        return self._knowledge.state(hot, [r.number for r in self._rounds.good("cold")])

    def _read_logs(self) -> None:
        self._knowledge.add(self._logs.executions(), self._rounds.windows(self._part))

    def _check_cycles(self, limit: float) -> None:
        """Refuse the run if a larger share of its cycles failed."""
        total = self._good + self._bad
        if self._bad > limit * total:
            raise LogError(
                f"{self._bad} of {total} client cycles failed: {self._first_error}",
                where=str(self._project.root),
                hint="fix the scenario or the services; 'mup run' shows their log lines",
            )

    def _describe(self, bench: _Bench) -> None:
        """Put what is running into the description of this part."""
        deployed = {
            name: {"pool": d.pool_size, "replicas": d.replicas}
            for name, d in bench.deployment.services().items()
        }
        for part in self._earlier.parts[-1:]:
            if part.deployment and part.deployment != deployed:
                raise LogError(
                    f"cannot be resumed: it ran with {part.deployment}, now it would be {deployed}",
                    where=str(self.directory),
                    hint="start a new run with 'mup explore'",
                )
        self._info = msgspec.structs.replace(
            self._info,
            deployment=deployed,
            databases={
                name: DatabaseUse(embedded=d.embedded, colocated=d.pid is not None)
                for name, d in bench.deployment.databases().items()
            },
            processes=bench.meter.processes(),
        )

    def _save(self, *, final: bool = False, complete: bool = False) -> None:
        """Write ``run.json``.

        Until the services have ended, the newest records may still be in their buffers, so the newest
        rounds are left out: were the run killed now, their logs would be incomplete.
        """
        flushed = None if final else time.monotonic_ns() - int(FLUSH_SECONDS * 1e9)
        parts = []
        for number, part in enumerate([*self._earlier.parts, self._info]):
            windows, void = self._rounds.of_part(number, flushed if number == self._part else None)
            parts.append(
                msgspec.structs.replace(
                    part, windows=windows, void=void, processes=[p.inside(windows) for p in part.processes]
                )
            )
        state = self._state()
        msgspec.structs.replace(
            self._earlier,
            complete=complete,
            stop=self._stop if final else "",
            parts=parts,
            widths=dict(state.widths),
            cold_widths=dict(state.cold_widths),
            paths={label: list(uses) for label, uses in state.paths.items()},
            unmatched=dict(state.unmatched),
            warnings=self._warnings(),
            question=None if self._inquiry is None else self._inquiry.info(self._counts_of_all()),
        ).save(self.directory)

    def _warnings(self) -> list[str]:
        """Return what makes the run worse than it should be."""
        found = []
        for phase in self._phases:
            good = self._rounds.good(phase)
            doubtful = [r.window.flaw for r in good if r.window.flaw]
            if doubtful:
                found.append(
                    f"{len(doubtful)} of {len(good)} {phase} rounds count although {doubtful[0]}:"
                    " there was no time to repeat them"
                )
            elif len(good) < MIN_ROUNDS:
                found.append(f"only {len(good)} {phase} rounds: no interval is known")
        died = {r.reason for r in self._rounds.all if r.reason and not r.usable}
        found += [f"a round is void: {reason}" for reason in sorted(died)]
        return found

    def _tell(self, phase: Phase, note: str, speed_now: float) -> None:
        if self.progress is None:
            return
        self.progress(
            Progress(
                seconds=self._spent,
                limit=self._settings.max_seconds,
                goal=self._settings.goal,
                state=self._state(),
                phase=phase,
                void=sum(1 for r in self._rounds.all if r.reason),
                note=note,
                speed=speed_now,
                question="" if self._inquiry is None else self._inquiry.text(),
            )
        )


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415

    try:
        return version("mup-framework")
    except PackageNotFoundError:
        return "source"
