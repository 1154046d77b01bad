"""Run directories: the logs of one exploratory or load run, and what was running while they were written.

A run directory holds ``run.json`` and one ``.mlog`` file per process (docs/reference/event-log.md).
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from analyzer.static.application import Application
from mup.errors import LogError
from mup.events.reader import Log, read_log
from mup.lqn import Model, entry_label

__all__ = [
    "FORMAT",
    "DatabaseUse",
    "ProcessUse",
    "Run",
    "RunInfo",
    "Width",
    "Window",
    "latest_run",
    "load_run",
]

FORMAT = "mup-run/1"
INFO_FILE = "run.json"


class Window(msgspec.Struct, frozen=True):
    """A stretch of time in which the run was observed; monotonic nanoseconds."""

    start: int
    end: int

    @property
    def seconds(self) -> float:
        """Length in seconds."""
        return (self.end - self.start) / 1e9


class ProcessUse(msgspec.Struct, frozen=True, kw_only=True):
    """Processor time one process used.

    ``cpu`` is in seconds, inside the windows; ``idle_rate`` is what it uses per second when nothing is
    asked of it (heartbeats, housekeeping), measured before the load.
    """

    role: str
    service: str = ""
    replica: int = 0
    worker: int = 0
    pid: int
    cpu: float
    idle_rate: float = 0.0


class DatabaseUse(msgspec.Struct, frozen=True, kw_only=True):
    """Where a database was during the run."""

    embedded: bool
    colocated: bool


class Width(msgspec.Struct, frozen=True, kw_only=True):
    """How well the execution time of one endpoint is known; seconds, 95 % half-width."""

    mean: float
    half_width: float | None
    executions: int
    batches: int


class RunInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The content of ``run.json``."""

    format: str = FORMAT
    kind: str = "explore"
    project: str
    created: str = ""
    mup: str = ""
    python: str = ""
    machine: str = ""
    cores: int = 1
    client: str = ""
    clients: int = 1
    seed: int = 0
    think_scale: float = 1.0
    stop: str = ""
    foreign_cpu: float | None = None
    think_lateness: float = 0.0
    response_time: float | None = None
    windows: list[Window] = []
    fingerprints: dict[str, str] = {}
    deployment: dict[str, dict[str, int]] = {}
    databases: dict[str, DatabaseUse] = {}
    processes: list[ProcessUse] = []
    widths: dict[str, Width] = {}
    replaced: list[str] = []

    @property
    def observed_seconds(self) -> float:
        """Total length of the windows."""
        return sum(w.seconds for w in self.windows)

    def save(self, directory: Path) -> None:
        """Write ``run.json`` into a run directory."""
        text = json.dumps(msgspec.to_builtins(self), indent=1)
        (directory / INFO_FILE).write_text(text + "\n", encoding="utf-8")


@dataclass(frozen=True)
class Run:
    """A run directory, read."""

    path: Path
    info: RunInfo
    logs: tuple[Log, ...] = field(repr=False)

    @property
    def truncated(self) -> tuple[Path, ...]:
        """Logs whose last records are missing."""
        return tuple(log.path for log in self.logs if log.truncated)


def describe_host() -> dict[str, Any]:
    """Return the machine-dependent fields of a ``RunInfo``."""
    return {
        "created": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
    }


def load_run(path: str | Path) -> Run:
    """Read a run directory.

    Raises:
        LogError: It is none, a file in it is unreadable or of another format, or nothing was logged.
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
        info = msgspec.json.decode(text, type=RunInfo)
    except msgspec.MsgspecError as error:
        raise LogError(f"broken: {error}", where=str(file), hint="run 'mup explore' again") from error
    if info.format != FORMAT:
        raise LogError(
            f"format {info.format!r}, this version reads {FORMAT!r}",
            where=str(file),
            hint="run 'mup explore' again",
        )
    logs = tuple(read_log(p) for p in sorted(directory.glob("*.mlog")))
    if not any(len(log.records) for log in logs):
        raise LogError(
            "no events in this run", where=str(directory), hint="run 'mup explore' again and let it finish"
        )
    return Run(directory, info, logs)


def latest_run(runs: Path, *, kind: str = "explore") -> Path:
    """Return the newest complete run of a kind below a project's ``.mup/runs``.

    Raises:
        LogError: There is none.
    """
    candidates = sorted(p.parent for p in runs.glob(f"*-{kind}/{INFO_FILE}"))
    if not candidates:
        raise LogError(
            f"no {kind} run found", where=str(runs), hint="run 'mup explore' first, or name one with --log"
        )
    return candidates[-1]


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


def fingerprints(application: Application) -> dict[str, str]:
    """Return the fingerprint of every endpoint and scenario, by the label the log uses."""
    found = {e.label: e.fingerprint for e in application.endpoints()}
    found.update({f"{c.name}.scenario": c.fingerprint for c in application.clients})
    return found


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
        elif recorded[name] != fingerprint:
            reasons[name] = "changed since the log was written"
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
