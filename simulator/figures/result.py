"""Result of a simulation: figures with intervals, as data and as the command line's JSON.

Times in seconds, throughputs per second, utilizations as fractions. ``ci95`` is the half-width of the
95 % confidence interval. A figure that does not exist (the utilization of an infinite server, the
response time of an entry that was not called) is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from simulator.machine.budget import Reached
from simulator.preparing import Load

__all__ = [
    "ActivityResult",
    "CallResult",
    "ControlVariates",
    "CycleResult",
    "EntryResult",
    "Figure",
    "JoinResult",
    "Precision",
    "ProcessorResult",
    "ReplicaResult",
    "ResponseTime",
    "Result",
    "TaskResult",
]


@dataclass(frozen=True, slots=True)
class Figure:
    """A mean and the half-width of its 95 % confidence interval.

    Attributes:
        uncontrolled: What the half-width would be without control variates: what chance does to a figure that
            is measured for as long. None if it is the same.
        of_runs: Of a percentile from several replications: the standard deviation of the logarithm of what
            each of them alone shows. None if there was one run, or one in which nothing took time.
    """

    mean: float
    ci95: float
    uncontrolled: float | None = field(default=None, kw_only=True, repr=False, compare=False)
    of_runs: float | None = field(default=None, kw_only=True, repr=False, compare=False)

    @property
    def of_chance(self) -> float:
        """The half-width without control variates."""
        return self.ci95 if self.uncontrolled is None else self.uncontrolled

    @property
    def variance_ratio(self) -> float:
        """How many times larger the squared half-width is without control variates."""
        return (self.of_chance / self.ci95) ** 2 if self.ci95 else 1.0

    @property
    def relative(self) -> float:
        """The half-width as a fraction of the mean; 0 if both are 0."""
        return self.ci95 / abs(self.mean) if self.mean else (float("inf") if self.ci95 else 0.0)

    def to_json(self) -> dict[str, Any]:
        """Return ``{"mean", "ci95"}``."""
        return {"mean": self.mean, "ci95": self.ci95}


@dataclass(frozen=True, slots=True)
class ResponseTime(Figure):
    """A mean time with the percentiles of the single times, in seconds, and their standard deviation."""

    p50: Figure
    p90: Figure
    p95: Figure
    p99: Figure
    sd: float

    def to_json(self) -> dict[str, Any]:
        """Return ``{"mean", "ci95", "p50": {"mean", "ci95"}, ...}``."""
        data: dict[str, Any] = {"mean": self.mean, "ci95": self.ci95}
        for name in ("p50", "p90", "p95", "p99"):
            figure: Figure = getattr(self, name)
            data[name] = figure.to_json()
        return data


def _json(figure: Figure | None) -> dict[str, Any] | None:
    return None if figure is None else figure.to_json()


@dataclass(frozen=True, slots=True)
class ControlVariates:
    """The sums of known mean that all figures of a run were estimated with, and what that gained.

    Attributes:
        names: What is summed, of most effect first; empty if none had an effect, or none is known exactly.
        throughput, response_time: How many times wider the squared interval of the cycle's figure is without
            them: so many times longer the run would have to be.
    """

    names: tuple[str, ...] = ()
    throughput: float = 1.0
    response_time: float = 1.0

    def to_json(self) -> dict[str, Any]:
        """Return the object under ``control_variates``."""
        return {
            "names": list(self.names),
            "variance_ratio": {"throughput": self.throughput, "response_time": self.response_time},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleResult:
    """Cycles of all reference tasks together, and requests to entries from outside.

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
class ReplicaResult:
    """One replica of a task: utilization (None if its threads are infinite), busy threads, queue."""

    utilization: Figure | None
    busy: Figure
    queue: Figure

    def to_json(self) -> dict[str, Any]:
        """Return an object of the list ``replicas``."""
        return {name: _json(getattr(self, name)) for name in ("utilization", "busy", "queue")}


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult:
    """One task.

    Attributes:
        throughput: Requests answered per second; of a reference task, cycles.
        utilization: Busy threads / (threads x replicas); None if the threads are infinite or clients.
        busy: Mean number of threads at work or blocked for a request (a token that is merely held does not
            count); of a reference task, clients that are not thinking.
        queue: Mean number of requests waiting for a thread; None for a reference task.
        setup: Mean processor time per request (of clients: per cycle) that was added after sleep, in seconds;
            None if its task has no set-up.
        response_time, cycle_time: Of a reference task whose clients completed a cycle, else None.
        replicas: Their figures, if there are several and not very many.
    """

    throughput: Figure
    utilization: Figure | None
    busy: Figure
    queue: Figure | None
    setup: Figure | None = None
    response_time: ResponseTime | None = None
    cycle_time: Figure | None = None
    replicas: tuple[ReplicaResult, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the object under ``tasks``; only reference tasks have times."""
        data: dict[str, Any] = {
            name: _json(getattr(self, name)) for name in ("throughput", "utilization", "busy", "queue")
        }
        if self.setup is not None:
            data["setup"] = self.setup.to_json()
        if self.replicas:
            data["replicas"] = [r.to_json() for r in self.replicas]
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
    """One processor: busy cores / cores, and how many it has; an infinite one has no result.

    The work of a processor's parts (those whose ``parent`` it is) counts as its own.
    """

    utilization: Figure
    cores: int

    def to_json(self) -> dict[str, Any]:
        """Return the object under ``processors``."""
        return {"utilization": self.utilization.to_json(), "cores": self.cores}


@dataclass(frozen=True, slots=True, kw_only=True)
class CallResult:
    """One call site: requests per second, and how long they wait for a thread before they are served."""

    throughput: Figure
    waiting: Figure | None

    def to_json(self) -> dict[str, Any]:
        """Return the object under ``calls``."""
        return {"throughput": self.throughput.to_json(), "waiting": _json(self.waiting)}


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinResult:
    """One join: completions per second, and the time from the fork of its branches until then."""

    throughput: Figure
    delay: Figure | None

    def to_json(self) -> dict[str, Any]:
        """Return the object under ``joins``."""
        return {"throughput": self.throughput.to_json(), "delay": _json(self.delay)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityResult:
    """One activity: executions per second; their duration, calls included; processor waiting in it."""

    throughput: Figure
    service_time: Figure | None
    processor_waiting: Figure | None

    def to_json(self) -> dict[str, Any]:
        """Return the object under ``activities``."""
        names = ("throughput", "service_time", "processor_waiting")
        return {name: _json(getattr(self, name)) for name in names}


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
        replications: Runs with beginnings of their own, each a batch; 1 if the batches are those of one run.
        precision: Asked for and reached.
        cycle, tasks, entries, processors: The figures, keyed by name; entries are ``A/epA/`` or ``db.qry``.
        calls, joins: Keyed ``ENTRY:ACTIVITY -> ENTRY`` and ``ENTRY:ACTIVITY&ACTIVITY``.
        activities: Keyed ``ENTRY:ACTIVITY``; only if they were asked for.
        limit: Of events or wall time, that ended the run before it was done.
        demands_at: The load at which processor times were taken, where they depend on it.
        warnings: What is doubtful about the result, one sentence each.
    """

    engine: str
    seed: int
    simulated_seconds: float
    warmup_seconds: float
    events: int
    wall_seconds: float = field(compare=False)
    batches: int
    replications: int = 1
    precision: Precision
    cycle: CycleResult
    tasks: Mapping[str, TaskResult]
    entries: Mapping[str, EntryResult]
    processors: Mapping[str, ProcessorResult]
    calls: Mapping[str, CallResult] = field(default_factory=dict)
    joins: Mapping[str, JoinResult] = field(default_factory=dict)
    activities: Mapping[str, ActivityResult] = field(default_factory=dict)
    limit: Reached | None = None
    demands_at: Load | None = None
    warnings: tuple[str, ...] = ()
    control_variates: ControlVariates = ControlVariates()

    @property
    def window_seconds(self) -> float:
        """What was measured, without any warm-up, in simulated seconds: of all replications together."""
        return self.simulated_seconds - self.warmup_seconds

    @property
    def freedom(self) -> int:
        """Degrees of freedom of the intervals."""
        return max(1, self.batches - 1 - len(self.control_variates.names))

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
            "replications": self.replications,
            "precision": self.precision.to_json(),
            "control_variates": self.control_variates.to_json(),
            "cycle": self.cycle.to_json(),
            "tasks": {name: t.to_json() for name, t in self.tasks.items()},
            "entries": {name: e.to_json() for name, e in self.entries.items()},
            "processors": {name: p.to_json() for name, p in self.processors.items()},
            "calls": {name: c.to_json() for name, c in self.calls.items()},
            "joins": {name: j.to_json() for name, j in self.joins.items()},
            "activities": {name: a.to_json() for name, a in self.activities.items()},
            "limit": None if self.limit is None else self.limit.to_json(),
            "demands_at": None if self.demands_at is None else self.demands_at.to_json(),
            "warnings": list(self.warnings),
        }
