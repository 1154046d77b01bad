"""The exploratory run: one user, real services, until every endpoint's time is known well enough.

The load comes in rounds. Between rounds nothing runs but the housekeeping, so reading the logs for
the stop rule never disturbs what is measured. The rule is the thesis's (section 5.2.2): the 95 %
batch-means interval of every endpoint's execution time, one batch per round, is within 1 % of its
mean (half-width; the full-width reading is an option), or the time is up.
"""

from __future__ import annotations

import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from analyzer.calibration.executions import Execution, collect
from analyzer.calibration.intervals import MIN_BATCHES, half_width_of_batches
from analyzer.calibration.rundir import (
    DatabaseUse,
    PartInfo,
    ProcessUse,
    RunInfo,
    Width,
    Window,
    describe_host,
    fingerprints,
    new_run_directory,
)
from analyzer.static.application import Application
from mup.errors import LogError, UsageError
from mup.events.reader import read_log
from mup.project import Project
from mup.runtime.launcher import Deployment, ProcessInfo
from mup.workload.cpu import HostCpu, process_cpu_seconds
from mup.workload.driver import LoadDriver, LoadResult

__all__ = ["ExploreSettings", "Progress", "explore"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExploreSettings:
    """How long and how precisely to explore.

    Attributes:
        width: Relative half-width to reach for every endpoint's mean execution time.
        full_width: Read ``width`` as the whole width of the interval, as the thesis may be read.
        max_seconds: Cap on the observed time, warm-up excluded.
        round_seconds: Length of one round = one batch.
        warmup_seconds: Load before the first round, not observed.
        idle_seconds: Silence before the load, in which housekeeping is measured.
        think_scale: Factor on every think time of the client. A mostly idle system uses more processor time
            per request than a busy one; compressed think times lie between the two, and show many more
            executions in the same time.
        seed: Of the client's choices.
    """

    width: float = 0.01
    full_width: bool = False
    max_seconds: float = 300.0
    round_seconds: float = 5.0
    warmup_seconds: float = 2.0
    idle_seconds: float = 2.0
    think_scale: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.width < 1:
            raise UsageError(f"width must be a fraction below 1, got {self.width!r}")
        for name in ("width", "max_seconds", "round_seconds"):
            if not getattr(self, name) > 0:
                raise UsageError(f"{name} must be > 0, got {getattr(self, name)!r}")
        for name in ("warmup_seconds", "idle_seconds", "think_scale"):
            if not getattr(self, name) >= 0:
                raise UsageError(f"{name} must be >= 0, got {getattr(self, name)!r}")


@dataclass(frozen=True, slots=True)
class Progress:
    """What a progress display may show after each round.

    Attributes:
        seconds: Observed so far.
        widths: Per endpoint.
        worst: Largest relative half-width; None while there are too few batches.
    """

    seconds: float
    widths: Mapping[str, Width]
    worst: float | None


def explore(
    project: Project,
    application: Application,
    settings: ExploreSettings,
    *,
    directory: Path | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Path:
    """Run one user against a project's services and log what happens.

    Args:
        project: Started with free ports, one deployment for the whole run.
        application: Its static analysis; its fingerprints are stored with the log.
        settings: When to stop.
        directory: Run directory to create; None = a new one below ``.mup/runs``.
        progress: Called after each round.

    Returns:
        The run directory.

    Ctrl-C after the first round ends the run early and keeps it.

    Raises:
        UsageError: ``directory`` is not empty.
        DeploymentError: The services do not start.
        LogError: The client's scenario fails, or nothing was logged.
    """
    directory = _prepare(directory) if directory else new_run_directory(project.state / "runs")
    try:
        info = _explore(project, application, settings, directory, progress)
    except BaseException:
        # Nothing half-written: without its description a log is of no use.
        shutil.rmtree(directory, ignore_errors=True)
        raise
    info.save(directory)
    return directory


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


def _explore(
    project: Project,
    application: Application,
    settings: ExploreSettings,
    directory: Path,
    progress: Callable[[Progress], None] | None,
) -> RunInfo:
    windows: list[Window] = []
    results: list[LoadResult] = []
    stop = "time is up"
    with (
        Deployment(project.with_any_ports(), log_dir=directory) as deployment,
        LoadDriver(project, deployment.registry_url, log_dir=directory) as driver,
    ):
        processes = deployment.processes()
        meter = _Meter(processes, driver.pid, project)
        meter.measure_idle(settings.idle_seconds)
        if settings.warmup_seconds:
            _round(driver, settings.warmup_seconds, settings, seed=settings.seed)
        # Without enough rounds there is no interval.
        length = min(settings.round_seconds, settings.max_seconds / MIN_BATCHES)
        try:
            while (left := settings.max_seconds - sum(w.seconds for w in windows)) > 0.1 * length:
                meter.start()
                host = HostCpu()
                host.start()
                result = _round(driver, min(length, left), settings, seed=settings.seed + len(windows) + 1)
                host.stop()
                windows.append(meter.window(result, settings, host))
                results.append(result)
                meter.look_for_replaced(deployment.processes())
                widths = _widths(directory, windows)
                worst = _worst(widths)
                if progress is not None:
                    progress(Progress(sum(w.seconds for w in windows), widths, worst))
                goal = settings.width / (2 if settings.full_width else 1)
                if worst is not None and worst <= goal:
                    stop = f"every endpoint within {goal:.2%}"
                    break
        except KeyboardInterrupt:
            # What has been observed so far is worth keeping.
            if not results:
                raise
            stop = "interrupted"
        uses = meter.uses()
        databases = {
            name: DatabaseUse(embedded=d.embedded, colocated=d.pid is not None)
            for name, d in deployment.databases().items()
        }
        deployed = {
            name: {"pool": d.pool_size, "replicas": d.replicas} for name, d in deployment.services().items()
        }
    # The last records reach the disk when the processes end, so the logs are complete only now.
    _check_cycles(results, project)
    described = describe_host()
    return RunInfo(
        **described,
        project=project.name,
        mup=_version(),
        client=project.client.rpartition(":")[2],
        seed=settings.seed,
        stop=stop,
        fingerprints=fingerprints(application),
        parts=[
            PartInfo(
                created=described["created"],
                windows=windows,
                deployment=deployed,
                databases=databases,
                processes=uses,
                replaced=sorted(meter.replaced),
            )
        ],
        widths=_widths(directory, windows),
    )


def _round(driver: LoadDriver, seconds: float, settings: ExploreSettings, *, seed: int) -> LoadResult:
    # Each round begins with a think time like any cycle; it needs no warm-up of its own.
    return driver.run(1, seconds, warmup=0.0, seed=seed, think_scale=settings.think_scale)


class _Meter:
    """Processor time of every process of a deployment, summed over the rounds."""

    def __init__(self, processes: Sequence[ProcessInfo], driver_pid: int, project: Project) -> None:
        client = project.client.rpartition(":")[2]
        self.processes = [
            *processes,
            ProcessInfo(role="client", service=client, replica=0, worker=0, pid=driver_pid),
        ]
        self.total = dict.fromkeys((p.pid for p in self.processes), 0.0)
        self.idle = dict.fromkeys((p.pid for p in self.processes), 0.0)
        self.mark: dict[int, float] = {}
        self.replaced: set[str] = set()

    def _read(self) -> dict[int, float]:
        clocks = {}
        for process in self.processes:
            # A worker that dies is replaced by one nobody watches; see look_for_replaced.
            with suppress(ProcessLookupError):
                clocks[process.pid] = process_cpu_seconds(process.pid)
        return clocks

    def measure_idle(self, seconds: float) -> None:
        if seconds <= 0:
            return
        before = self._read()
        time.sleep(seconds)
        after = self._read()
        self.idle.update({pid: (cpu - before[pid]) / seconds for pid, cpu in after.items()})

    def start(self) -> None:
        self.mark = self._read()

    def window(self, result: LoadResult, settings: ExploreSettings, host: HostCpu) -> Window:
        cpu = {pid: now - self.mark[pid] for pid, now in self._read().items()}
        for pid, used in cpu.items():
            self.total[pid] += used
        return Window(
            result.start_ns,
            max(result.end_ns, time.monotonic_ns()),
            think_scale=settings.think_scale,
            cpu={str(pid): used for pid, used in cpu.items()},
            foreign=max(0.0, (host.busy_seconds - sum(cpu.values())) / host.capacity_seconds),
            cycles=len(result.cycles),
            failed=result.errors,
            response_time=_mean(result.response_times) or None,
            think_lateness=_mean(result.think_lateness),
        )

    def look_for_replaced(self, now: Sequence[ProcessInfo]) -> None:
        """Note the services in which a process nobody watches has taken over from one that died."""
        self.replaced.update(p.service for p in now if p.pid not in self.total)

    def uses(self) -> list[ProcessUse]:
        return [
            ProcessUse(
                role=p.role,
                service=p.service,
                replica=p.replica,
                worker=p.worker,
                pid=p.pid,
                cpu=self.total[p.pid],
                idle_rate=self.idle[p.pid],
            )
            for p in self.processes
        ]


def _widths(directory: Path, windows: Sequence[Window]) -> dict[str, Width]:
    """Return the state of the stop rule per endpoint, one batch per window."""
    logs = [read_log(p) for p in sorted(directory.glob("*.w*.mlog"))]
    batches: dict[str, list[list[float]]] = defaultdict(lambda: [[] for _ in windows])
    for execution in collect(logs, windows):
        if execution.failed or execution.end is None:
            continue
        index = _window_of(execution, windows)
        elapsed = (execution.end.time - execution.begin.time) / 1e9
        batches[execution.endpoint][index].append(elapsed)
    widths = {}
    for label, values in batches.items():
        everything = [v for batch in values for v in batch]
        widths[label] = Width(
            mean=_mean(everything),
            half_width=half_width_of_batches(values),
            executions=len(everything),
            batches=sum(1 for batch in values if batch),
        )
    return widths


def _window_of(execution: Execution, windows: Sequence[Window]) -> int:
    return next(i for i, w in enumerate(windows) if w.start <= execution.begin.time <= w.end)


def _worst(widths: Mapping[str, Width]) -> float | None:
    if not widths or any(w.half_width is None for w in widths.values()):
        return None
    return max((w.half_width or 0.0) / w.mean for w in widths.values())


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _check_cycles(results: Sequence[LoadResult], project: Project) -> None:
    good = sum(len(r.cycles) for r in results)
    bad = sum(r.errors for r in results)
    if good == 0:
        reason = next((r.first_error for r in results if r.first_error), "no cycle ended in time")
        raise LogError(
            f"the client completed no cycle: {reason}",
            where=str(project.root),
            hint="fix the scenario or the services; 'mup run' shows their log lines",
        )
    if bad > 0.01 * (good + bad):
        reason = next((r.first_error for r in results if r.first_error), "")
        raise LogError(f"{bad} of {good + bad} client cycles failed: {reason}", where=str(project.root))


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415

    try:
        return version("mup-framework")
    except PackageNotFoundError:
        return "source"
