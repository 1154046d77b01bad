"""Measure a real load run: start a project, drive it, and take the figures of one window.

Utilization of a service = busy time of its workers within the window, over window x pool x replicas. It is
read from the event logs, hence unknown for a system that was not started here.

A run is *void* if the machine changed its speed meanwhile, or other programs used it: in the window, or over
the whole of warm-up and window, for a full closed system remembers for many cycles how it filled.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import numpy as np

from mup.errors import UsageError
from mup.events.settings import LogSettings
from mup.project import Project, is_http_url
from mup.runtime.deployment.launcher import Deployment, ProcessInfo
from mup.workload.arrivals import Arrivals
from mup.workload.cpu import HostCpu, disturbance, process_cpu_seconds
from mup.workload.driver import LoadDriver
from mup.workload.engine import Settings
from mup.workload.figures import (
    Figure,
    ResponseTime,
    Sample,
    Window,
    busy_figure,
    lateness,
    rate,
    response_time,
    series,
    spread,
    throughput,
)
from mup.workload.http import HttpLoad
from mup.workload.limits import allow_many_files
from mup.workload.measurement import CallFigures, CpuUse, Measurement, Run
from mup.workload.result import LoadResult
from mup.workload.service_logs import ServiceLogs, endpoint_figures, read_service_logs
from mup.workload.speed import JUMP_LIMIT, Bracket, Speed, probe
from mup.workload.speed_history import Kind, SpeedRecord, append, record
from mup.workload.speed_monitor import MonitoredSpeed, SpeedMonitor

__all__ = ["CpuUse", "Figure", "Measurement", "ResponseTime", "measure_load"]


class _Outcome:
    """One run: what the driver returned, and what was seen around it."""

    def __init__(
        self,
        result: LoadResult,
        watch: _Watch,
        speed: Bracket,
        monitored: MonitoredSpeed | None,
        *,
        attached: bool,
    ) -> None:
        self.result = result
        self.watch = watch
        self.speed = speed
        self.monitored = monitored
        self.attached = attached
        # None without logs.
        self.logs: ServiceLogs | None = None

    @property
    def foreign(self) -> float:
        """Share of the host used by others; what an attached system uses is not told apart from them."""
        return self.watch.host.foreign(self.watch.ours)

    @property
    def void(self) -> str:
        """Why this run says nothing, or ""."""
        if self.monitored is not None:
            if self.monitored.unsteady:
                return self.monitored.unsteady
        elif not self.speed.steady:
            return (
                f"the machine's speed changed by {self.speed.jump:.1%} during the run"
                f" (limit {JUMP_LIMIT:.0%})"
            )
        return self.watch.disturbed(attached=self.attached)

    def remembered(self, kind: Kind, run: str) -> SpeedRecord:
        """Return what this run says about the speed of the machine."""
        return record(
            kind,
            run,
            self.result.window_seconds,
            monitored=None if self.monitored is None else self.monitored.speed,
            probed=self.speed.speed,
            utilization=min(1.0, self.watch.host.utilization),  # it is counted in ticks
            stolen=self.watch.host.stolen,
            disturbed=self.watch.disturbed(attached=self.attached),
        )

    def summary(self) -> Run:
        """Return the figures of this run alone."""
        times = response_time([self.result])
        return Run(
            seed=self.result.seed,
            response_time=times.mean,
            p95=times.p95,
            throughput=self.result.throughput,
            utilization={}
            if self.logs is None
            else {name: busy_figure([busy]).mean for name, busy in self.logs.busy.items()},
            cycles=len(self.result.cycles),
            errors=self.result.errors,
            speed=self.speed,
            monitored=self.monitored,
            foreign=self.foreign,
            stolen=self.watch.host.stolen,
            void=self.void,
        )


_Drive = Callable[[LoadDriver, "_Watch"], LoadResult]


def measure_load(
    project: Project | HttpLoad,
    *,
    clients: int = 0,
    duration: float,
    warmup: float = 3.0,
    pools: Mapping[str, int] | None = None,
    replicas: Mapping[str, int] | None = None,
    seed: int = 0,
    log_dir: Path | None = None,
    attach: str | None = None,
    repeats: int = 1,
    progress: Callable[[str], None] | None = None,
    clients_from: int | None = None,
    arrivals: Arrivals | None = None,
    think_scale: float = 1.0,
    retries: int = 0,
    until_width: float | None = None,
    max_seconds: float = 60.0,
    kind: Kind = "load",
) -> Measurement:
    """Drive a project with a closed or an open load and measure it.

    Args:
        project: What to run. Its ports are used as they are: see `Project.with_any_ports`. A project without
            services, and plain HTTP requests, are driven where they run already.
        clients: Concurrent clients of a closed load.
        duration: Seconds of the window.
        warmup: Seconds before it; clients start spread over it.
        pools: Changed pool sizes by service.
        replicas: Changed numbers of replicas by service.
        seed: Of everything random in clients; repeat k uses ``seed + k``.
        log_dir: Where the event logs stay (of further runs in subfolders ``repeat2``, ...); None = they are
            not kept.
        attach: URL of the registry of a running system; then nothing is started, and no log is read.
        repeats: Runs, each with fresh services.
        progress: Told in a few words what happens.
        clients_from: Clients when the window opens; the others join, or leave, one by one during it.
        arrivals: Of an open load, in place of ``clients``.
        think_scale: Factor on all think times.
        retries: How often a void run is done again, each time with the same seed.
        until_width: Go on with repeats until the half-width of the mean response time is at most this share
            of it.
        max_seconds: With ``until_width``: no further repeat once so many seconds of windows were observed.
        kind: What the history of the machine's speed says it was.

    Raises:
        UsageError: A value is out of range, ``pools`` or ``replicas`` go with ``attach``, or logs cannot be
            written to ``log_dir``.
        ProjectError: The project names no client.
        DeploymentError: Something did not start, or died.
    """
    settings = Settings(
        clients=clients,
        duration=duration,
        warmup=warmup,
        seed=seed,
        think_scale=think_scale,
        clients_from=clients_from,
        arrivals=arrivals,
    )
    _check(settings, repeats=repeats, retries=retries, until_width=until_width, max_seconds=max_seconds)
    running = attach is not None or isinstance(project, HttpLoad) or not project.services
    if attach is not None and not is_http_url(attach):
        raise UsageError(f"attach must be a URL such as http://127.0.0.1:9099, got {attach!r}")
    if running and (pools or replicas):
        raise UsageError(
            "pools and replicas of a running system cannot be changed", hint="leave out --attach"
        )
    if running and log_dir:
        raise UsageError("a running system writes its logs where it was told to", hint="leave out --log")
    allow_many_files()
    say = progress or (lambda _: None)
    outcomes: list[_Outcome] = []

    def once(repeat: int) -> _Outcome:
        round_of = _round(len(outcomes), repeats, until_width)

        def drive(driver: LoadDriver, watch: _Watch) -> LoadResult:
            say(f"{describe(settings)}: {warmup:g} s warm-up, {duration:g} s window{round_of}")
            watch.start()
            return driver.run(
                clients,
                duration,
                warmup,
                seed=seed + repeat,
                think_scale=think_scale,
                clients_from=clients_from,
                arrivals=arrivals,
                on_open=watch.open,
                on_close=watch.close,
                on_progress=lambda now: say(f"{describe(settings)}{round_of}: {_now(now, duration)}"),
            )

        if isinstance(project, HttpLoad) or running:
            return _attached(project, attach or "", drive)
        say(f"starting {project.name}{round_of}")
        with ExitStack() as stack:
            folder = log_dir if not outcomes else log_dir and log_dir / f"repeat{len(outcomes) + 1}"
            if folder is None:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mup-load-")))
            _make_writable(folder)
            return _fresh(project, folder, drive, pools or {}, replicas or {})

    repeat = 0
    name = f"{kind}-{time.time_ns()}"
    while True:
        for _ in range(retries + 1):
            outcomes.append(once(repeat))
            append(outcomes[-1].remembered(kind, name))
            if not outcomes[-1].void:
                break
            say(f"void: {outcomes[-1].void}")
        repeat += 1
        if repeat < repeats:
            continue
        valid = [run.result for run in outcomes if not run.void]
        observed = sum(run.result.window_seconds for run in outcomes)
        if until_width is None or observed >= max_seconds or _narrow(valid, until_width):
            break
    names = [] if isinstance(project, HttpLoad) else [service.name for service in project.services]
    return _summary(names, outcomes, settings)


def describe(settings: Settings) -> str:
    """Return in a few words what load this is."""
    arrivals = settings.arrivals
    if arrivals is not None:
        if arrivals.process == "trace":
            return f"open load, {_count(len(arrivals.trace), 'arrival')} of a trace"
        rates = f"{arrivals.rate:g}" if arrivals.steady else f"{arrivals.rate:g} to {arrivals.to_rate:g}"
        return f"open load, {rates} {arrivals.process} arrivals/s"
    if settings.steady:
        return f"closed load, {_count(settings.clients, 'client')}"
    return f"closed load, {settings.clients_from} to {_count(settings.clients, 'client')}"


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def _round(done: int, repeats: int, until_width: float | None) -> str:
    if until_width is not None:
        return f" (run {done + 1})"
    return f" (run {done + 1} of {max(repeats, done + 1)})" if repeats > 1 or done else ""


def _now(now: Mapping[str, Any], duration: float) -> str:
    """Return how far a round is."""
    seconds = now["seconds"]
    if seconds < 0:
        where = "warming up"
    elif seconds < duration:
        where = f"{seconds:.0f} of {duration:g} s"
    else:
        where = f"waiting for {_count(now['unfinished'], 'cycle')} of the window"
    mean = "" if now["response_time"] is None else f", {now['response_time'] * 1e3:.1f} ms"
    failed = f", {now['errors']} failed" if now["errors"] else ""
    return f"{where}, {now['cycles']} cycles/s{mean}{failed}"


def _check(
    settings: Settings, *, repeats: int, retries: int, until_width: float | None, max_seconds: float
) -> None:
    if repeats < 1:
        raise UsageError(f"repeats must be >= 1, got {repeats!r}")
    if retries < 0:
        raise UsageError(f"retries must be >= 0, got {retries!r}")
    if until_width is None:
        return
    if not 0 < until_width < 1:
        raise UsageError(f"until_width must be a share between 0 and 1, got {until_width!r}")
    if not 0 < max_seconds < float("inf"):
        raise UsageError(f"max_seconds must be > 0, got {max_seconds!r}")
    if not settings.steady:
        raise UsageError("a load that changes has no mean that repeats could narrow down")


def _narrow(results: Sequence[LoadResult], until_width: float) -> bool:
    times = response_time(results)
    return times.ci95 is not None and times.ci95 <= until_width * times.mean


def _make_writable(folder: Path) -> None:
    """Make the folder of logs and try to write in it, before anything is started."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise UsageError(
            f"cannot write logs here: {error.strerror}",
            where=str(folder),
            hint="name a folder that can be written",
        ) from error


def _fresh(
    project: Project,
    folder: Path,
    drive: _Drive,
    pools: Mapping[str, int],
    replicas: Mapping[str, int],
) -> _Outcome:
    with (
        Deployment(project, log_dir=folder, log=LogSettings(), pools=pools, replicas=replicas) as deployment,
        LoadDriver(project, deployment.registry_url, folder) as driver,
    ):
        roles = {p.pid: _role(p) for p in deployment.processes()}
        outcome = _observed(driver, drive, roles, attached=False)
    # The last records reach the disk when the processes end.
    outcome.logs = read_service_logs(
        folder, Window.of(outcome.result), [service.name for service in project.services]
    )
    return outcome


def _attached(project: Project | HttpLoad, registry_url: str, drive: _Drive) -> _Outcome:
    with LoadDriver(project, registry_url) as driver:
        return _observed(driver, drive, {}, attached=True)


def _observed(driver: LoadDriver, drive: _Drive, roles: Mapping[int, str], *, attached: bool) -> _Outcome:
    """Drive a load between two probes of the machine's speed, and watch the speed meanwhile."""
    before = probe()
    with SpeedMonitor() as monitor:
        watch = _Watch({**roles, driver.pid: "client", monitor.pid: "monitor"})
        result = drive(driver, watch)
    monitored = monitor.speed(result.start_ns, result.end_ns)
    return _Outcome(result, watch, Bracket(before, probe()), monitored, attached=attached)


class _Watch:
    """CPU clocks of the host and of our processes: when the load starts, when its window opens and closes."""

    def __init__(self, roles: Mapping[int, str]) -> None:
        self.host = HostCpu()
        self._roles = roles
        self._seconds: dict[int, float] = {}
        # Of warm-up and window together.
        self._load = HostCpu()
        self._load_seconds: dict[int, float] = {}

    def start(self) -> None:
        self._load.start()
        self._load_seconds = self._read()

    def open(self) -> None:
        self.host.start()
        self._seconds = self._read()

    def close(self) -> None:
        self.host.stop()
        self._load.stop()
        now = self._read()
        self._seconds = _differences(self._seconds, now)
        self._load_seconds = _differences(self._load_seconds, now)

    @property
    def ours(self) -> float:
        """CPU seconds of all our processes within the window."""
        return sum(self._seconds.values())

    def disturbed(self, *, attached: bool) -> str:
        """Return who else used the machine too much, or "".

        Args:
            attached: Whether what is measured cannot be told apart from others.
        """
        window = disturbance(self.host, None if attached else self.ours)
        if window:
            return window
        load = disturbance(self._load, None if attached else sum(self._load_seconds.values()))
        return f"warm-up included, {load}" if load else ""

    def by_role(self) -> dict[str, float]:
        """Return CPU seconds within the window, summed over processes of one role."""
        return _sums((self._roles[pid], seconds) for pid, seconds in self._seconds.items())

    def _read(self) -> dict[int, float]:
        clocks = {}
        for pid in self._roles:
            # A worker may have died and been replaced; the run tells by its errors.
            with suppress(ProcessLookupError):
                clocks[pid] = process_cpu_seconds(pid)
        return clocks


def _differences(before: Mapping[int, float], after: Mapping[int, float]) -> dict[int, float]:
    """Return what clocks advanced by; processes that ended are left out."""
    return {pid: after[pid] - start for pid, start in before.items() if pid in after}


def _role(process: ProcessInfo) -> str:
    return "registry" if process.role == "registry" else f"{process.service}.{process.role}"


def _summary(services: Sequence[str], outcomes: Sequence[_Outcome], settings: Settings) -> Measurement:
    """Return the figures of all valid runs; of all runs if there is no valid one."""
    used = [run for run in outcomes if not run.void] or list(outcomes)
    results = tuple(run.result for run in used)
    window = sum(result.window_seconds for result in results)
    cpu = _sums(item for run in used for item in run.watch.by_role().items())
    busy = sum(run.watch.host.busy_seconds for run in used)
    capacity = sum(run.watch.host.capacity_seconds for run in used)
    logs = [run.logs for run in used if run.logs is not None]
    utilization = {
        name: busy_figure([log.busy[name] for log in logs]) if logs else Figure(0.0, None)
        for name in services
    }
    closed = settings.arrivals is None
    thinks = [late for result in results for late in result.think_lateness]
    wanted = [result.think_wanted for result in results if result.think_wanted is not None]
    return Measurement(
        load=describe(settings),
        clients=settings.clients if closed else None,
        clients_from=settings.clients_from,
        arrivals=settings.arrivals,
        steady=settings.steady,
        duration=settings.duration,
        repeats=len(used),
        window_seconds=window,
        response_time=response_time(results),
        service_response=None if closed else response_time(results, from_intended=False),
        throughput=throughput(results),
        utilization={name: figure.mean if logs else None for name, figure in utilization.items()},
        utilization_ci95={name: figure.ci95 for name, figure in utilization.items()},
        calls=_calls(results),
        endpoints=endpoint_figures(logs),
        cpu=CpuUse(
            seconds=cpu,
            host_utilization=busy / capacity if capacity else 0.0,
            foreign=max(0.0, busy - sum(cpu.values())) / capacity if capacity else 0.0,
            stolen=sum(run.watch.host.stolen_seconds for run in used) / capacity if capacity else 0.0,
            client_utilization=cpu.get("client", 0.0) / window,
        ),
        cycles=sum(len(result.cycles) for result in results),
        errors=sum(result.errors for result in results),
        first_error=next((result.first_error for result in results if result.first_error), ""),
        think_lateness=statistics.fmean(thinks) if thinks else 0.0,
        think_wanted=statistics.fmean(wanted) if wanted else None,
        late_thinks=lateness(thinks),
        late_starts=None
        if closed
        else lateness([late for result in results for late in result.start_lateness]),
        series=series(results),
        speed=_speed([run.speed for run in used]),
        monitored_speed=_monitored(used),
        void=next((run.void for run in used if run.void), ""),
        attached=any(run.attached for run in used),
        runs=tuple(run.summary() for run in outcomes),
        results=results,
    )


def _calls(results: Sequence[LoadResult]) -> dict[str, CallFigures]:
    """Return what the clients saw of each endpoint they called."""
    calls = {}
    for label in sorted({label for result in results for label in result.endpoints}):
        seen = [
            (Window.of(result), result.endpoints[label]) for result in results if label in result.endpoints
        ]
        samples = [
            Sample(window, np.array(stats.starts_ns, dtype=np.int64), np.array(stats.seconds))
            for window, stats in seen
        ]
        calls[label] = CallFigures(
            spread(samples),
            rate([(sample.window, sample.at_ns) for sample in samples]),
            sum(stats.errors for _, stats in seen),
        )
    return calls


def _speed(brackets: Sequence[Bracket]) -> Bracket:
    """Return the mean of the probes before and after runs, core by core."""

    def mean(probes: Sequence[Speed]) -> Speed:
        cores = min(len(one.cores) for one in probes)
        return Speed(
            tuple(statistics.fmean(one.cores[k] for one in probes) for k in range(cores)),
            pinned=all(one.pinned for one in probes),
        )

    if len(brackets) == 1:
        return brackets[0]
    return Bracket(mean([b.before for b in brackets]), mean([b.after for b in brackets]))


def _monitored(outcomes: Sequence[_Outcome]) -> float | None:
    """Return the mean speed during all windows; None if it is not known of every one."""
    known = [(run.result.window_seconds, run.monitored.speed) for run in outcomes if run.monitored]
    if len(known) < len(outcomes):
        return None
    return sum(seconds for seconds, _ in known) / sum(seconds / speed for seconds, speed in known)


def _sums(items: Iterable[tuple[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for name, value in items:
        total[name] = total.get(name, 0.0) + value
    return dict(sorted(total.items()))
