"""Run directories: the logs of one exploratory run, and what was running while they were written.

A run directory holds ``run.json`` and one ``.mlog`` file per process (docs/reference/run-directory.md).
A run consists of *parts*, one deployment each: a broken run that was resumed has several, and so have
merged runs. The clocks of two parts cannot be compared, for the machine may have been restarted between
them: what is joined by time is joined inside one part.
"""

from __future__ import annotations

import json
import math
import os
import platform
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import msgspec

from analyzer.static.application import Application
from analyzer.static.measured_code import difference, fingerprints
from mup.errors import LogError, StaleLogError
from mup.events.reader import Log, log_files, read_log
from mup.events.record import Event
from mup.lqn import Model, entry_label
from mup.whole_file import write_whole
from mup.workload.machine import this_machine

__all__ = [
    "FORMAT",
    "AnswerInfo",
    "DatabaseUse",
    "Part",
    "PartInfo",
    "PathUse",
    "Phase",
    "ProcessUse",
    "QuestionInfo",
    "Run",
    "RunInfo",
    "VoidWindow",
    "Width",
    "Window",
    "describe_host",
    "fingerprints",
    "latest_run",
    "latest_runs",
    "load_info",
    "load_run",
    "merge_runs",
    "new_run_directory",
    "same_machine",
    "stale_endpoints",
    "stale_in_model",
]

FORMAT = "mup-run/2"
FORMAT_1 = "mup-run/1"
INFO_FILE = "run.json"

Phase = Literal["hot", "cold", "burst"]
"""``hot``: one client, back to back. ``cold``: one client with think times. ``burst``: several clients."""


class Window(msgspec.Struct, frozen=True):
    """One round of load: a stretch of time in which the run was observed.

    Attributes:
        start, end: Monotonic nanoseconds.
        phase: How the load was.
        clients: Concurrent clients.
        think_scale: Factor on the client's own think times.
        speed: Of the machine in units of ``mup.workload.speed`` per second and core, mean of the probes
            before and after; None if unknown.
        jump: Relative change of the speed across the window, of the core where it is largest.
        monitored: Speed during the window in units of ``mup.workload.speed_monitor`` per second; None if
            unknown.
        cpu: Processor seconds used inside the window, per process id (as text).
        foreign: Share of the machine that other programs used; None if unknown.
        stolen: Share of the machine that the hypervisor withheld; None if unknown.
        cycles, failed: Client cycles that ended well and badly.
        response_time: Mean of the good cycles, think time excluded; seconds.
        think_lateness: Mean time by which think times lasted longer than asked for; seconds.
        flaw: Why the window would be void, had there been time to repeat it.
    """

    start: int
    end: int
    phase: Phase = "hot"
    clients: int = 1
    think_scale: float = 1.0
    speed: float | None = None
    jump: float | None = None
    monitored: float | None = None
    cpu: dict[str, float] = {}
    foreign: float | None = None
    stolen: float | None = None
    cycles: int = 0
    failed: int = 0
    response_time: float | None = None
    think_lateness: float = 0.0
    flaw: str = msgspec.field(default="", name="doubt")

    @property
    def seconds(self) -> float:
        """Length in seconds."""
        return (self.end - self.start) / 1e9


class VoidWindow(msgspec.Struct, frozen=True, kw_only=True):
    """A round that does not count, and why; what it logged is in no window."""

    window: Window
    reason: str


class ProcessUse(msgspec.Struct, frozen=True, kw_only=True):
    """Processor time one process used.

    ``cpu`` is in seconds, over all windows of its part; ``idle_rate`` is what it uses per second when
    nothing is asked of it (heartbeats, housekeeping), measured before the load.
    """

    role: str
    service: str = ""
    replica: int = 0
    worker: int = 0
    pid: int
    cpu: float = 0.0
    idle_rate: float = 0.0

    def inside(self, windows: Sequence[Window]) -> ProcessUse:
        """Return it with the time it used inside these windows."""
        return msgspec.structs.replace(self, cpu=sum(w.cpu.get(str(self.pid), 0.0) for w in windows))


class DatabaseUse(msgspec.Struct, frozen=True, kw_only=True):
    """Where a database was during the run."""

    embedded: bool
    colocated: bool


class Width(msgspec.Struct, frozen=True, kw_only=True):
    """How well a mean execution time is known; seconds, 95 % half-width (None with too few batches)."""

    mean: float
    half_width: float | None
    executions: int
    batches: int


class PathUse(msgspec.Struct, frozen=True, kw_only=True):
    """How often one path of an endpoint was taken, and how well its time is known in each phase."""

    path: str
    executions: int = 0
    hot: Width | None = None
    cold: Width | None = None


class PartInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One deployment of a run.

    Attributes:
        folder: Of its logs, relative to the run directory; "" = the run directory itself.
        created: When it was started.
        windows: What was observed, in order of time.
        void: Rounds that were repeated, and why.
        processes: Everything that ran for the deployment.
        databases: Where they were.
        deployment: Pool size and replicas per service.
        replaced: Services of which a process died and was replaced by one whose time was not measured (older
            runs; now such rounds are void).
        sample: One in so many client cycles was logged, with everything it caused.
    """

    folder: str = ""
    created: str = ""
    windows: list[Window] = []
    void: list[VoidWindow] = []
    processes: list[ProcessUse] = []
    databases: dict[str, DatabaseUse] = {}
    deployment: dict[str, dict[str, int]] = {}
    replaced: list[str] = []
    sample: int = 1


class AnswerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """How well one figure of a question was known when it was looked at last.

    Attributes:
        scenario, figure: Which: changes in words; ``response_time`` or ``throughput``.
        mean: As predicted then, roughly; s or 1/s.
        half_width: Relative 95 % half-width, as far as it comes from exploring.
        goal: To which exploring was to narrow it.
        rest: Relative half-width from what exploring cannot narrow; 0 if unknown.
        open: Share of each kind of rounds in the variance that is left.
        decides: What most of it comes from.
    """

    scenario: str
    figure: str
    mean: float
    half_width: float
    goal: float
    rest: float = 0.0
    open: dict[str, float] = {}
    decides: str = ""


class QuestionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a run was explored for.

    Attributes:
        as_written: Changes, as written; none = the project's own client.
        width: Relative half-width the figures should be known to.
        outcome: ``known``, ``narrowed`` (as far as exploring can), ``refused`` (exploring tells nothing about
            a scenario), or ``open`` (it ended before).
        answers: Per scenario and figure.
        refused: Why exploring tells nothing about a scenario, by its name.
        rounds: Of each kind, that count.
        users: In the bursts that it took; 0 = it took none.
        looks, look_seconds: How often the run was looked at, and how long that took, not under load.
    """

    as_written: list[str] = msgspec.field(name="asked")
    width: float
    outcome: str = "open"
    answers: list[AnswerInfo] = []
    refused: dict[str, str] = {}
    rounds: dict[str, int] = {}
    users: int = 0
    looks: int = 0
    look_seconds: float = 0.0


class RunInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The content of ``run.json``.

    Attributes:
        kind: ``explore``.
        project: Name of the project.
        created: When the run was started.
        mup, python: Versions.
        hostname, machine, cpu_model, cores: The machine.
        client: Name of the client class.
        seed: Of the client's choices.
        complete: The stop rule was met, or the time was up.
        stop: Why the run ended; "" while it is going on or if it was killed.
        fingerprints: Of every endpoint and scenario, when the run was started.
        since: Names of earlier runs beside this one: it only had to measure what has changed since.
        parts: One per deployment.
        widths: Per endpoint, from the hot rounds (from the cold ones if there were no hot ones).
        cold_widths: Per endpoint, from the cold rounds.
        paths: Per endpoint, every path of its source.
        unmatched: Per endpoint, executions that fit no path.
        warnings: What made the run worse than it should be.
        question: What it was explored for; None = for anything.
    """

    format: str = FORMAT
    kind: str = "explore"
    project: str
    created: str = ""
    mup: str = ""
    python: str = ""
    hostname: str = ""
    machine: str = ""
    cpu_model: str = ""
    cores: int = 1
    client: str = ""
    seed: int = 0
    complete: bool = True
    stop: str = ""
    fingerprints: dict[str, str] = {}
    since: list[str] = []
    parts: list[PartInfo] = []
    widths: dict[str, Width] = {}
    cold_widths: dict[str, Width] = {}
    paths: dict[str, list[PathUse]] = {}
    unmatched: dict[str, int] = {}
    warnings: list[str] = []
    question: QuestionInfo | None = None

    @property
    def windows(self) -> list[Window]:
        """Windows of all parts."""
        return [w for part in self.parts for w in part.windows]

    @property
    def void(self) -> list[VoidWindow]:
        """Rounds of all parts that do not count."""
        return [v for part in self.parts for v in part.void]

    @property
    def processes(self) -> list[ProcessUse]:
        """Processes of all parts."""
        return [p for part in self.parts for p in part.processes]

    @property
    def databases(self) -> dict[str, DatabaseUse]:
        """Databases of all parts; a later part wins."""
        return {name: use for part in self.parts for name, use in part.databases.items()}

    @property
    def replaced(self) -> list[str]:
        """Services with an unmeasured process in any part."""
        return sorted({name for part in self.parts for name in part.replaced})

    @property
    def observed_seconds(self) -> float:
        """Total length of the windows."""
        return sum(w.seconds for w in self.windows)

    @property
    def foreign_cpu(self) -> float | None:
        """Share of the machine that other programs used during the windows."""
        known = [(w.foreign, w.seconds) for w in self.windows if w.foreign is not None]
        total = sum(seconds for _, seconds in known)
        return sum(share * seconds for share, seconds in known) / total if total else None

    @property
    def think_lateness(self) -> float:
        """Mean time by which think times lasted longer than asked for; seconds."""
        chosen = [w for w in self.windows if w.think_scale > 0 and w.clients == 1]
        return _per_cycle(chosen, [w.think_lateness for w in chosen]) or 0.0

    @property
    def response_time(self) -> float | None:
        """Mean response time of the client with think times, or without if there were no such rounds."""
        single = [w for w in self.windows if w.clients == 1 and w.response_time is not None]
        chosen = [w for w in single if w.phase == "cold"] or single
        return _per_cycle(chosen, [w.response_time or 0.0 for w in chosen])

    def save(self, directory: Path) -> None:
        """Write ``run.json`` into a run directory, whole or not at all."""
        text = json.dumps(msgspec.to_builtins(self), indent=1)
        write_whole(directory / INFO_FILE, text + "\n", what="what the run found", error=LogError)


def _per_cycle(windows: Sequence[Window], values: Sequence[float]) -> float | None:
    """Return the mean of values that belong to windows, each weighed by its cycles."""
    cycles = sum(w.cycles for w in windows)
    if not cycles:
        return None
    return sum(w.cycles * value for w, value in zip(windows, values, strict=True)) / cycles


@dataclass(frozen=True)
class Part:
    """One deployment of a run, with its logs.

    Attributes:
        path: Folder of the logs.
        info: What ``run.json`` says about it.
        logs: In order of the file names.
        outdated: Endpoints and scenarios whose source has changed since, and is measured by another part.
    """

    path: Path
    info: PartInfo
    logs: tuple[Log, ...] = field(repr=False)
    outdated: frozenset[str] = frozenset()

    @property
    def windows(self) -> tuple[Window, ...]:
        """What was observed, in order of time."""
        return tuple(self.info.windows)

    @property
    def processes(self) -> tuple[ProcessUse, ...]:
        """Everything that ran for the deployment, with its idle rate."""
        return tuple(self.info.processes)

    @property
    def databases(self) -> Mapping[str, DatabaseUse]:
        """Where the databases were."""
        return self.info.databases


@dataclass(frozen=True)
class Run:
    """A run directory, read; or several, merged.

    Attributes:
        path: The directory (of the first one, if merged).
        info: What ``run.json`` says; of merged runs, with the parts of all.
        parts: One per deployment.
        directories: All directories that were merged.
    """

    path: Path
    info: RunInfo
    parts: tuple[Part, ...]
    directories: tuple[Path, ...]

    @property
    def windows(self) -> tuple[Window, ...]:
        """Windows of all parts. Their times can only be compared inside one part."""
        return tuple(w for part in self.parts for w in part.windows)

    @property
    def logs(self) -> tuple[Log, ...]:
        """Logs of all parts."""
        return tuple(log for part in self.parts for log in part.logs)

    @property
    def truncated(self) -> tuple[Path, ...]:
        """Logs whose last records are missing."""
        return tuple(log.path for log in self.logs if log.truncated)


def describe_host() -> dict[str, Any]:
    """Return the machine-dependent fields of a ``RunInfo``."""
    return {
        "created": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "python": platform.python_version(),
        "hostname": platform.node(),
        "machine": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cpu_model": this_machine().cpu,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
    }


def load_info(path: str | Path) -> RunInfo:
    """Read ``run.json`` alone.

    Raises:
        LogError: The directory is no run directory, or the file is broken or of an unknown format.
    """
    directory = Path(path)
    file = directory / INFO_FILE
    try:
        text = file.read_bytes()
    except OSError as error:
        raise LogError(
            f"not a run directory: cannot read {INFO_FILE} ({error.strerror})",
            where=str(directory),
            hint="name a directory written by 'mup explore', or run 'mup explore' first",
        ) from error
    try:
        data = msgspec.json.decode(text)
        found = data.get("format", FORMAT) if isinstance(data, dict) else FORMAT
        if found == FORMAT_1:
            data = _from_format_1(data)
        elif found != FORMAT:
            raise LogError(
                f"format {found!r}, this version reads {FORMAT!r} and {FORMAT_1!r}",
                where=str(file),
                hint="run 'mup explore' again",
            )
        return msgspec.convert(data, RunInfo)
    except (msgspec.MsgspecError, KeyError, TypeError) as error:
        raise LogError(f"broken: {error}", where=str(file), hint="run 'mup explore' again") from error


def _from_format_1(old: dict[str, Any]) -> dict[str, Any]:
    """Return the content of an older ``run.json`` as if one long round had been observed.

    It knew processor times as totals only, so nothing can be said about shorter stretches.
    """
    windows = old.get("windows") or []
    processes = old.get("processes") or []
    part = {
        "created": old.get("created", ""),
        "processes": processes,
        "databases": old.get("databases") or {},
        "deployment": old.get("deployment") or {},
        "replaced": old.get("replaced") or [],
    }
    if windows:
        part["windows"] = [
            {
                "start": min(w["start"] for w in windows),
                "end": max(w["end"] for w in windows),
                "phase": "hot",
                "clients": old.get("clients", 1),
                "think_scale": old.get("think_scale", 1.0),
                "cpu": {str(p["pid"]): p["cpu"] for p in processes},
                "foreign": old.get("foreign_cpu"),
                "cycles": 1,
                "response_time": old.get("response_time"),
                "think_lateness": old.get("think_lateness", 0.0),
            }
        ]
    changed = {
        "format",
        "clients",
        "think_scale",
        "foreign_cpu",
        "think_lateness",
        "response_time",
        "windows",
    }
    kept = {name: value for name, value in old.items() if name not in changed and name not in part}
    return {**kept, "created": part["created"], "parts": [part]}


def load_run(path: str | Path) -> Run:
    """Read a run directory.

    Raises:
        LogError: It is none, a file in it is unreadable or of another format, or nothing was logged.
    """
    directory = Path(path)
    info = load_info(directory)
    parts = tuple(
        _load_part(directory / part.folder, part, complete=info.complete)
        for part in info.parts or [PartInfo()]
    )
    if not any(len(log.records) for part in parts for log in part.logs):
        raise LogError(
            "no events in this run", where=str(directory), hint="run 'mup explore' again and let it finish"
        )
    return Run(directory, info, parts, (directory,))


def _load_part(folder: Path, info: PartInfo, *, complete: bool) -> Part:
    # A process that was killed before it wrote anything leaves an empty file.
    found = log_files(folder) if folder.is_dir() else []
    used = [[p for p in paths if complete or p.stat().st_size] for paths in found]
    logs = tuple(read_log(paths) for paths in used if paths)
    samples = {log.header.get("sample", 1) for log in logs} or {info.sample}
    for log in logs:
        if (log.records["event"] == Event.POOL).any():
            raise LogError(
                f"the pool of {log.header['service']!r} was given another size during the run",
                where=str(log.path),
                hint="a model has one size: run 'mup explore' again and leave the pools alone meanwhile",
            )
    if len(samples) > 1:
        raise LogError(
            f"its logs are of different sampling rates: 1 in {', 1 in '.join(map(str, sorted(samples)))}",
            where=str(folder),
            hint="give all services and clients the same MUP_LOG_SAMPLE",
        )
    return Part(folder, msgspec.structs.replace(info, sample=samples.pop()), logs)


def merge_runs(paths: Sequence[str | Path], current: Mapping[str, str] | None = None) -> Run:
    """Read several run directories of one project as one run.

    Args:
        paths: The directories.
        current: Fingerprints of the source as it is now. Given these, runs may be of different versions of
            the code: each stands for the endpoints that have not changed since.

    Raises:
        LogError: There is none, one cannot be read, or they are of different projects or machines.
        StaleLogError: They were written by different versions of the code, and ``current`` is not given.
    """
    runs = [load_run(path) for path in dict.fromkeys(Path(p) for p in paths)]
    if not runs:
        raise LogError("no run directory was named", hint="name one with --run")
    first = runs[0]
    for other in runs[1:]:
        _check_mergeable(first, other, same_source=current is None)
    if current is not None and len(runs) > 1:
        runs = [_dated(run, current) for run in runs]
    parts = tuple(part for run in runs for part in run.parts)
    usable = [_usable(run) for run in runs]
    info = msgspec.structs.replace(
        first.info,
        fingerprints=_merged_fingerprints(runs, usable),
        parts=[part.info for part in parts],
        complete=all(run.info.complete for run in runs),
        widths=_merged_widths([info.widths for info in usable]),
        cold_widths=_merged_widths([info.cold_widths for info in usable]),
        paths=_merged_paths([info.paths for info in usable]),
        unmatched={
            label: sum(info.unmatched.get(label, 0) for info in usable)
            for label in sorted({label for info in usable for label in info.unmatched})
        },
        warnings=list(dict.fromkeys(text for run in runs for text in run.info.warnings)),
    )
    return Run(first.path, info, parts, tuple(run.path for run in runs))


def _dated(run: Run, current: Mapping[str, str]) -> Run:
    """Return a run that knows what of its source has changed since."""
    if not run.info.fingerprints:
        return run
    outdated = frozenset(stale_endpoints(run.info.fingerprints, current))
    return replace(run, parts=tuple(replace(part, outdated=outdated) for part in run.parts))


def _usable(run: Run) -> RunInfo:
    """Return what a run says about the endpoints that have not changed since."""
    outdated = {label for part in run.parts for label in part.outdated}
    kept: dict[str, Any] = {
        name: {label: value for label, value in getattr(run.info, name).items() if label not in outdated}
        for name in ("fingerprints", "widths", "cold_widths", "paths", "unmatched")
    }
    return msgspec.structs.replace(run.info, **kept)


def _merged_fingerprints(runs: Sequence[Run], usable: Sequence[RunInfo]) -> dict[str, str]:
    """Return the fingerprints of what some run stands for, and older ones of what none does."""
    if not all(run.info.fingerprints for run in runs):
        return dict(runs[0].info.fingerprints) if len(runs) == 1 else {}
    return {k: v for info in (*(run.info for run in runs), *usable) for k, v in info.fingerprints.items()}


def _check_mergeable(first: Run, other: Run, *, same_source: bool) -> None:
    def refuse(text: str) -> LogError:
        return LogError(
            f"cannot be merged with {first.path}: {text}",
            where=str(other.path),
            hint="calibrate from one of them",
        )

    if first.info.project != other.info.project:
        raise refuse(f"it is of project {other.info.project!r}, not {first.info.project!r}")
    if first.info.client != other.info.client:
        raise refuse(f"its client is {other.info.client!r}, not {first.info.client!r}")
    if not same_machine(first.info, other.info):
        raise refuse("it was written on another machine")
    if not same_source:
        return
    changed = stale_endpoints(other.info.fingerprints, first.info.fingerprints)
    changed.update(stale_endpoints(first.info.fingerprints, other.info.fingerprints))
    if changed:
        raise StaleLogError(
            f"cannot be merged with {first.path}: the source of {', '.join(sorted(changed))} is different",
            where=str(other.path),
            hint="calibrate from one of them",
        )


def _merged_widths(runs: Sequence[Mapping[str, Width]]) -> dict[str, Width]:
    labels = sorted({label for widths in runs for label in widths})
    found = {label: _merged_width([widths.get(label) for widths in runs]) for label in labels}
    return {label: width for label, width in found.items() if width is not None}


def _merged_width(parts: Sequence[Width | None]) -> Width | None:
    """Return the width of the mean over independent runs."""
    widths = [w for w in parts if w is not None]
    if not widths:
        return None
    total = sum(w.executions for w in widths)
    halves = [w.half_width for w in widths if w.half_width is not None]
    known = len(halves) == len(widths)
    shares = [w.executions / total for w in widths]
    return Width(
        mean=sum(share * w.mean for share, w in zip(shares, widths, strict=True)),
        half_width=math.hypot(*(share * half for share, half in zip(shares, halves, strict=True)))
        if known
        else None,
        executions=total,
        batches=sum(w.batches for w in widths),
    )


def _merged_paths(runs: Sequence[Mapping[str, list[PathUse]]]) -> dict[str, list[PathUse]]:
    merged: dict[str, dict[str, list[PathUse]]] = {}
    for paths in runs:
        for label, uses in paths.items():
            for use in uses:
                merged.setdefault(label, {}).setdefault(use.path, []).append(use)
    return {
        label: [
            PathUse(
                path=text,
                executions=sum(u.executions for u in uses),
                hot=_merged_width([u.hot for u in uses]),
                cold=_merged_width([u.cold for u in uses]),
            )
            for text, uses in texts.items()
        ]
        for label, texts in merged.items()
    }


def same_machine(one: RunInfo, other: RunInfo) -> bool:
    """Return whether two runs can be of the same machine; older runs do not know everything."""
    pairs = [
        (getattr(one, name), getattr(other, name)) for name in ("hostname", "machine", "cpu_model", "cores")
    ]
    return all(mine == theirs for mine, theirs in pairs if mine and theirs)


def latest_run(runs: Path, *, kind: str = "explore") -> Path:
    """Return the newest run of a kind below a project's ``.mup/runs`` that observed anything.

    Raises:
        LogError: There is none.
    """
    voids: RunInfo | None = None
    for file in sorted(runs.glob(f"*-{kind}/{INFO_FILE}"), reverse=True):
        try:
            info = load_info(file.parent)
        except LogError:
            continue
        if info.complete or info.windows:
            return file.parent
        if voids is None and info.void:
            voids, where = info, file.parent
    if voids is not None:
        raise LogError(
            f"no round of this run counts: {_most_common([void.reason for void in voids.void])}",
            where=str(where),
            hint=f"continue it with 'mup explore --resume {where}' when the machine is calmer",
        )
    raise LogError(
        f"no {kind} run found",
        where=str(runs),
        hint="run 'mup explore' first, or name one with --run; 'mup model --static' needs none",
    )


def _most_common(reasons: Sequence[str]) -> str:
    """Return the reason given most often, and how often."""
    reason, count = Counter(reasons).most_common(1)[0]
    return reason if count == len(reasons) else f"{reason} ({count} of {len(reasons)})"


def latest_runs(runs: Path) -> list[Path]:
    """Return the newest run of a project, and the earlier ones it only adds to.

    Raises:
        LogError: There is none, or one of them is gone.
    """
    newest = latest_run(runs)
    found = [newest, *(newest.parent / name for name in load_info(newest).since)]
    for path in found[1:]:
        if not (path / INFO_FILE).is_file():
            raise LogError(
                f"{newest.name} only measured what had changed since {path.name}, which is gone",
                where=str(runs),
                hint="run 'mup explore' again, or name the runs to use with --run",
            )
    return found


def new_run_directory(runs: Path, *, kind: str = "explore") -> Path:
    """Create an empty run directory whose name sorts by time."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    for attempt in range(1000):
        suffix = f".{attempt}" if attempt else ""
        directory = runs / f"{stamp}{suffix}-{kind}"
        try:
            directory.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise LogError(f"cannot create: {error.strerror}", where=str(directory)) from error
        return directory
    raise LogError("too many runs were started in this second", where=str(runs))


def stale_endpoints(recorded: Mapping[str, str], current: Mapping[str, str]) -> dict[str, str]:
    """Return the endpoints whose source is not the one the log was written with, and why.

    Args:
        recorded: Fingerprint per endpoint when the log was written.
        current: Fingerprint per endpoint of the source as it is now.
    """
    reasons = {}
    for name, fingerprint in current.items():
        if name not in recorded:
            reasons[name] = "new since the log was written"
        elif why := difference(recorded[name], fingerprint):
            reasons[name] = why
    return reasons


def stale_in_model(model: Model, application: Application) -> dict[str, str]:
    """Return the endpoints of a model whose source is no longer the one it was calibrated for, and why."""
    recorded = {
        entry_label(task.name, entry.name): entry.fingerprint
        for task in model.tasks
        for entry in task.entries
        if entry.fingerprint
    }
    current = fingerprints(application)
    # A model holds one client; the others cannot be stale.
    return stale_endpoints(recorded, {k: v for k, v in current.items() if k in recorded or "/" in k})
