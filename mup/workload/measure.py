"""What does a real load run show? Starts a project, drives it, and takes the figures of one window.

Utilization of a service = busy time of its workers within the window, over window x pool x replicas. It is
read from the event logs, hence unknown for a system that was not started here.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from mup.errors import UsageError
from mup.events.reader import read_log
from mup.project import Project
from mup.runtime.launcher import Deployment, ProcessInfo
from mup.workload.cpu import HostCpu, process_cpu_seconds
from mup.workload.driver import LoadDriver
from mup.workload.engine import Settings
from mup.workload.figures import Figure, ResponseTime, busy_seconds, response_time, throughput
from mup.workload.result import LoadResult

_Drive = Callable[[LoadDriver, "_Watch"], LoadResult]

__all__ = ["CpuUse", "Figure", "Measurement", "ResponseTime", "measure_load"]


@dataclass(frozen=True, slots=True)
class CpuUse:
    """CPU time in the windows, all repeats together.

    Attributes:
        seconds: By role and service: ``A.front``, ``A.worker``, ``registry``, ``database.db``, ``client``.
        host_utilization: Busy share of all cores, 0 to 1.
        foreign: Share of all cores used by processes that are not ours.
        client_utilization: Share of one core used by the load driver; near 1 it is the bottleneck itself.
    """

    seconds: Mapping[str, float]
    host_utilization: float
    foreign: float
    client_utilization: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """A measured load.

    Attributes:
        clients: Concurrent clients.
        duration: Seconds of one window, as asked for.
        repeats: Independent runs with fresh services (with ``attach``: rounds).
        window_seconds: All windows together.
        response_time, throughput: Per cycle; seconds and cycles per second.
        utilization: Busy share of each service's workers; None where there is no log to read it from.
        cpu: CPU time; of a system that was not started here only the load driver's.
        cycles: Successful cycles.
        errors: Failed cycles, in no other figure.
        first_error: What one of them said, or "".
        think_lateness: Mean seconds think times took too long.
        results: What the load driver returned, one per repeat.
    """

    clients: int
    duration: float
    repeats: int
    window_seconds: float
    response_time: ResponseTime
    throughput: Figure
    utilization: Mapping[str, float | None]
    cpu: CpuUse
    cycles: int
    errors: int
    first_error: str
    think_lateness: float
    results: tuple[LoadResult, ...] = field(repr=False)

    @property
    def failed_share(self) -> float:
        """Failed cycles among all."""
        begun = self.cycles + self.errors
        return self.errors / begun if begun else 1.0

    def to_json(self) -> dict[str, Any]:
        """Return the document of ``mup load --json``."""
        return {
            "clients": self.clients,
            "duration": self.duration,
            "repeats": self.repeats,
            "window_seconds": self.window_seconds,
            "response_time": asdict(self.response_time),
            "throughput": asdict(self.throughput),
            "tasks": {name: {"utilization": value} for name, value in self.utilization.items()},
            "cpu": asdict(self.cpu),
            "cycles": self.cycles,
            "errors": self.errors,
            "first_error": self.first_error,
            "think_lateness": self.think_lateness,
        }


@dataclass(frozen=True, slots=True)
class _Run:
    """One repeat."""

    result: LoadResult
    watch: _Watch
    # Busy worker seconds and worker seconds there were, per service; None without logs.
    busy: dict[str, tuple[float, float]] | None


def measure_load(
    project: Project,
    *,
    clients: int,
    duration: float,
    warmup: float = 3.0,
    pools: Mapping[str, int] | None = None,
    replicas: Mapping[str, int] | None = None,
    seed: int = 0,
    log_dir: Path | None = None,
    attach: str | None = None,
    repeats: int = 1,
    progress: Callable[[str], None] | None = None,
) -> Measurement:
    """Drive a project with a closed load and measure it.

    Args:
        project: What to run. Its ports are used as they are: see `Project.with_any_ports`.
        clients: Concurrent clients.
        duration: Seconds of the window.
        warmup: Seconds before it; clients start spread over it.
        pools: Changed pool sizes by service.
        replicas: Changed numbers of replicas by service.
        seed: Of everything random in clients; repeat k uses ``seed + k``.
        log_dir: Where the event logs stay (repeat k > 0 in a subfolder); None = they are not kept.
        attach: URL of the registry of a running system; then nothing is started, and no log is read.
        repeats: Runs, each with fresh services.
        progress: Told in a few words what happens.

    Raises:
        UsageError: A value is out of range, ``pools`` or ``replicas`` go with ``attach``, or logs cannot be
            written to ``log_dir``.
        ProjectError: The project names no client.
        DeploymentError: Something did not start, or died.
    """
    Settings(clients=clients, duration=duration, warmup=warmup, seed=seed)
    if repeats < 1:
        raise UsageError(f"repeats must be >= 1, got {repeats!r}")
    if attach is not None:
        _check_url(attach)
    if attach and (pools or replicas):
        raise UsageError(
            "pools and replicas of a running system cannot be changed", hint="leave out --attach"
        )
    if attach and log_dir:
        raise UsageError("a running system writes its logs where it was told to", hint="leave out --log")
    say = progress or (lambda _: None)
    runs = []
    for repeat in range(repeats):
        round_of = f" (repeat {repeat + 1} of {repeats})" if repeats > 1 else ""

        def drive(driver: LoadDriver, watch: _Watch, k: int = repeat, suffix: str = round_of) -> LoadResult:
            users = "1 client" if clients == 1 else f"{clients} clients"
            say(f"{users}: {warmup:g} s warm-up, {duration:g} s window{suffix}")
            return driver.run(
                clients, duration, warmup, seed=seed + k, on_open=watch.open, on_close=watch.close
            )

        if attach:
            runs.append(_attached(project, attach, drive))
        else:
            say(f"starting {project.name}{round_of}")
            with ExitStack() as stack:
                folder = log_dir if repeat == 0 else log_dir and log_dir / f"repeat{repeat + 1}"
                if folder is None:
                    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mup-load-")))
                _make_writable(folder)
                runs.append(_fresh(project, folder, drive, pools or {}, replicas or {}))
    return _summary(project, runs, clients, duration)


def _check_url(attach: str) -> None:
    try:
        parts = urlsplit(attach)
        # Reading a port that is no number between 0 and 65535 raises, too.
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise UsageError(f"attach must be a URL such as http://127.0.0.1:9099, got {attach!r}")


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
) -> _Run:
    with (
        Deployment(project, log_dir=folder, pools=pools, replicas=replicas) as deployment,
        LoadDriver(project, deployment.registry_url, folder) as driver,
    ):
        processes = deployment.processes()
        workers = Counter(p.service for p in processes if p.role == "worker")
        watch = _Watch({p.pid: _role(p) for p in processes} | {driver.pid: "client"})
        result = drive(driver, watch)
    # The last records reach the disk when the processes end.
    return _Run(result, watch, _busy(folder, result, workers))


def _attached(project: Project, registry_url: str, drive: _Drive) -> _Run:
    with LoadDriver(project, registry_url) as driver:
        watch = _Watch({driver.pid: "client"})
        return _Run(drive(driver, watch), watch, None)


class _Watch:
    """CPU clocks of the host and of our processes, read when the window opens and when it closes."""

    def __init__(self, roles: Mapping[int, str]) -> None:
        self.host = HostCpu()
        self._roles = roles
        self._seconds: dict[int, float] = {}

    def open(self) -> None:
        self.host.start()
        self._seconds = self._read()

    def close(self) -> None:
        self.host.stop()
        now = self._read()
        self._seconds = {pid: now[pid] - start for pid, start in self._seconds.items() if pid in now}

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


def _role(process: ProcessInfo) -> str:
    return "registry" if process.role == "registry" else f"{process.service}.{process.role}"


def _busy(folder: Path, result: LoadResult, workers: Mapping[str, int]) -> dict[str, tuple[float, float]]:
    """Return per service the worker seconds used in the window, and those there were."""
    used = dict.fromkeys(workers, 0.0)
    for path in sorted(folder.glob("*.mlog")):
        log = read_log(path)
        if log.header.get("role") == "worker" and log.header["service"] in used:
            used[log.header["service"]] += busy_seconds(log, result.start_ns, result.end_ns)
    return {name: (used[name], count * result.window_seconds) for name, count in workers.items()}


def _summary(project: Project, runs: Sequence[_Run], clients: int, duration: float) -> Measurement:
    results = tuple(run.result for run in runs)
    window = sum(result.window_seconds for result in results)
    cpu = _sums(item for run in runs for item in run.watch.by_role().items())
    busy = sum(run.watch.host.busy_seconds for run in runs)
    capacity = sum(run.watch.host.capacity_seconds for run in runs)
    lateness = [late for result in results for late in result.think_lateness]
    return Measurement(
        clients=clients,
        duration=duration,
        repeats=len(runs),
        window_seconds=window,
        response_time=response_time(results),
        throughput=throughput(results),
        utilization=_utilization(runs) or {service.name: None for service in project.services},
        cpu=CpuUse(
            seconds=cpu,
            host_utilization=busy / capacity if capacity else 0.0,
            foreign=max(0.0, busy - sum(cpu.values())) / capacity if capacity else 0.0,
            client_utilization=cpu.get("client", 0.0) / window,
        ),
        cycles=sum(len(result.cycles) for result in results),
        errors=sum(result.errors for result in results),
        first_error=next((result.first_error for result in results if result.first_error), ""),
        think_lateness=float(np.mean(lateness)) if lateness else 0.0,
        results=results,
    )


def _utilization(runs: Sequence[_Run]) -> dict[str, float]:
    """Return the busy share of each service's workers; of an attached system nothing is known."""
    pairs = [(name, pair) for run in runs if run.busy is not None for name, pair in run.busy.items()]
    used = _sums((name, seconds) for name, (seconds, _) in pairs)
    there = _sums((name, capacity) for name, (_, capacity) in pairs)
    return {name: used[name] / there[name] for name in there}


def _sums(items: Iterable[tuple[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for name, value in items:
        total[name] = total.get(name, 0.0) + value
    return dict(sorted(total.items()))
