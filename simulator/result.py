"""What does a simulation answer? Figures with intervals, as data and as the JSON of the command line.

Times in seconds, throughputs per second, utilizations as fractions. ``ci95`` is the half-width of the
95 % confidence interval. A figure that does not exist (the utilization of an infinite server, the
response time of an entry nobody called) is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "CycleResult",
    "EntryResult",
    "Figure",
    "Precision",
    "ProcessorResult",
    "ResponseTime",
    "Result",
    "TaskResult",
]


@dataclass(frozen=True, slots=True)
class Figure:
    """A mean and the half-width of its 95 % confidence interval."""

    mean: float
    ci95: float

    @property
    def relative(self) -> float:
        """The half-width as a fraction of the mean; 0 if both are 0."""
        return self.ci95 / abs(self.mean) if self.mean else (float("inf") if self.ci95 else 0.0)

    def to_json(self) -> dict[str, Any]:
        """Return ``{"mean", "ci95"}``."""
        return {"mean": self.mean, "ci95": self.ci95}


@dataclass(frozen=True, slots=True)
class ResponseTime(Figure):
    """A mean time with the percentiles of the single times, in seconds."""

    p50: Figure
    p90: Figure
    p95: Figure
    p99: Figure

    def to_json(self) -> dict[str, Any]:
        """Return ``{"mean", "ci95", "p50": {"mean", "ci95"}, ...}``."""
        data: dict[str, Any] = {"mean": self.mean, "ci95": self.ci95}
        for name in ("p50", "p90", "p95", "p99"):
            figure: Figure = getattr(self, name)
            data[name] = figure.to_json()
        return data


def _json(figure: Figure | None) -> dict[str, Any] | None:
    return None if figure is None else figure.to_json()


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleResult:
    """Client cycles, all reference tasks together.

    Attributes:
        throughput: Cycles per second.
        response_time: Of a cycle without its think time.
        cycle_time: With it.
    """

    throughput: Figure
    response_time: ResponseTime
    cycle_time: Figure

    def to_json(self) -> dict[str, Any]:
        """Return the object under ``cycle``."""
        return {
            "throughput": self.throughput.to_json(),
            "response_time": self.response_time.to_json(),
            "cycle_time": self.cycle_time.to_json(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult:
    """One task.

    Attributes:
        throughput: Requests completed (thread freed) per second; of a reference task, cycles.
        utilization: Busy threads / (threads x replicas); None if the threads are infinite or clients.
        busy: Mean number of held threads; of a reference task, clients that are not thinking.
        queue: Mean number of requests waiting for a thread; None for a reference task.
        response_time, cycle_time: Of a reference task whose clients completed a cycle, else None.
    """

    throughput: Figure
    utilization: Figure | None
    busy: Figure
    queue: Figure | None
    response_time: ResponseTime | None = None
    cycle_time: Figure | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the object under ``tasks``; only reference tasks have times."""
        data = {name: _json(getattr(self, name)) for name in ("throughput", "utilization", "busy", "queue")}
        if self.response_time is not None:
            data["response_time"] = self.response_time.to_json()
            data["cycle_time"] = _json(self.cycle_time)
        return data


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryResult:
    """One entry: requests answered per second, and the time from arrival until the reply is out."""

    throughput: Figure
    response_time: ResponseTime | None

    def to_json(self) -> dict[str, Any]:
        """Return the object under ``entries``."""
        return {"throughput": self.throughput.to_json(), "response_time": _json(self.response_time)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessorResult:
    """One processor: busy cores / cores; None if it has a core for everybody."""

    utilization: Figure | None

    def to_json(self) -> dict[str, Any]:
        """Return the object under ``processors``."""
        return {"utilization": _json(self.utilization)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """How precise the cycle's response time and throughput are.

    Attributes:
        requested: Relative half-width asked for; None if a fixed horizon was.
        reached: The larger of the two relative half-widths.
    """

    requested: float | None
    reached: float

    @property
    def met(self) -> bool:
        """True if what was asked for was reached."""
        return self.requested is None or self.reached <= self.requested

    def to_json(self) -> dict[str, Any]:
        """Return the object under ``precision``."""
        return {"requested": self.requested, "reached": self.reached, "met": self.met}


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One simulated scenario. Two results are equal if everything but the wall clock is.

    Attributes:
        engine, seed: What produced it.
        simulated_seconds: Length of the run, warm-up included.
        warmup_seconds: Deleted from its beginning.
        events: Timed steps simulated (thinks, delays, uses of a processor).
        wall_seconds: How long that took.
        batches: Number of batches behind every interval.
        precision: Asked for and reached.
        cycle, tasks, entries, processors: The figures, keyed by name; entries are ``A/epA/`` or ``db.qry``.
        warnings: What is doubtful about the result, one sentence each.
    """

    engine: str
    seed: int
    simulated_seconds: float
    warmup_seconds: float
    events: int
    wall_seconds: float = field(compare=False)
    batches: int
    precision: Precision
    cycle: CycleResult
    tasks: Mapping[str, TaskResult]
    entries: Mapping[str, EntryResult]
    processors: Mapping[str, ProcessorResult]
    warnings: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the JSON document of ``mup simulate --json``."""
        return {
            "engine": self.engine,
            "seed": self.seed,
            "simulated_seconds": self.simulated_seconds,
            "warmup_seconds": self.warmup_seconds,
            "events": self.events,
            "wall_seconds": self.wall_seconds,
            "batches": self.batches,
            "precision": self.precision.to_json(),
            "cycle": self.cycle.to_json(),
            "tasks": {name: t.to_json() for name, t in self.tasks.items()},
            "entries": {name: e.to_json() for name, e in self.entries.items()},
            "processors": {name: p.to_json() for name, p in self.processors.items()},
            "warnings": list(self.warnings),
        }
