"""Result of a measured load: figures, intervals, and whether they can be trusted."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from mup.workload.arrivals import Arrivals
from mup.workload.figures import Figure, Lateness, Point, ResponseTime
from mup.workload.result import LoadResult
from mup.workload.service_logs import EndpointFigures
from mup.workload.speed import Bracket
from mup.workload.speed_monitor import MonitoredSpeed

__all__ = ["CallFigures", "CpuUse", "Measurement", "Run"]

CLIENT_LIMIT = 0.8
"""Share of a core above which the load driver may itself be what is measured."""
LATE_LIMIT = 0.05
"""Lateness above which it matters: share of a think time, or of what an open arrival is counted in."""
CLOCK_SECONDS = 0.001
"""Lateness that no generator on a machine with other work can avoid."""


@dataclass(frozen=True, slots=True)
class CpuUse:
    """CPU time in the windows, all repeats together.

    Attributes:
        seconds: By role and service: ``A.front``, ``A.worker``, ``registry``, ``database.db``, ``client``.
        host_utilization: Busy share of all cores, 0 to 1.
        foreign: Share of all cores used by processes that are not ours.
        stolen: Share of all cores that was wanted and that the hypervisor gave to others (steal).
        client_utilization: Share of one core used by the load driver; near 1 it is the bottleneck itself.
    """

    seconds: Mapping[str, float]
    host_utilization: float
    foreign: float
    stolen: float
    client_utilization: float


@dataclass(frozen=True, slots=True)
class CallFigures:
    """What clients saw of an endpoint they call.

    Attributes:
        response_time: Of answered calls, from the call to its decoded body.
        throughput: Answered calls per second, by the moment they began.
        errors: Calls without an answer, or answered with a status outside 2xx.
    """

    response_time: ResponseTime
    throughput: Figure
    errors: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run, void or not.

    Attributes:
        seed: Of its clients.
        response_time, p95, throughput, utilization: Seconds, cycles per second, and busy shares by service.
        cycles, errors: Successful and failed cycles.
        speed: Of the machine, before and after.
        monitored: Of the machine, during the window; None if there were too few samples.
        foreign: Share of the machine used by others.
        stolen: Share of the machine withheld by the hypervisor.
        void: Why it counts for nothing, or "".
    """

    seed: int
    response_time: float
    p95: float
    throughput: float
    utilization: Mapping[str, float]
    cycles: int
    errors: int
    speed: Bracket
    monitored: MonitoredSpeed | None
    foreign: float
    stolen: float
    void: str

    def to_json(self) -> dict[str, Any]:
        """Return one of the ``runs`` of ``mup load --json``."""
        return {
            "seed": self.seed,
            "response_time": self.response_time,
            "p95": self.p95,
            "throughput": self.throughput,
            "utilization": dict(self.utilization),
            "cycles": self.cycles,
            "errors": self.errors,
            "speed": _speed(self.speed),
            "monitored": None if self.monitored is None else asdict(self.monitored),
            "foreign": self.foreign,
            "stolen": self.stolen,
            "void": self.void or None,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """A measured load.

    Attributes:
        load: In words: closed or open, and how much.
        clients: Concurrent clients of a closed load (with ``clients_from``: when the window closes); None =
            open.
        clients_from: Clients when the window opened, if others joined or left during it.
        arrivals: Of an open load.
        steady: Whether the load was meant to be the same all the time; if not, means and intervals are of a
            mixture and say little: look at ``series``.
        duration: Seconds of one window, as asked for.
        repeats: Independent runs in the figures, with fresh services (with ``attach``: rounds).
        window_seconds: All their windows together.
        response_time: Per cycle, in seconds; under an open load from the intended start.
        service_response: The same from the real start; None under a closed load, where there is no
            difference.
        throughput: Cycles per second.
        utilization: Busy share of each service's workers; None where there is no log to read it from.
        utilization_ci95: Half-widths of their 95 % intervals.
        calls: By endpoint (``A/epA/``), as clients saw it.
        endpoints: By endpoint (``A/epA/``), as its service saw it; empty without logs.
        cpu: CPU time; of a system that was not started here only the load driver's.
        cycles: Successful cycles.
        errors: Failed cycles, in no other figure.
        first_error: What one of them said, or "".
        think_lateness: Mean seconds think times took too long.
        think_wanted: Mean seconds they were asked to take; None if no client thought.
        late_thinks, late_starts: How late think times ended, and arrivals of an open load began.
        series: The course of the window.
        speed: Of the machine, before and after; the mean of the runs.
        monitored_speed: Of the machine during the windows (units of ``mup.workload.speed_monitor`` per
            second).
        void: Why all runs are void, or "". If some are valid, the figures are theirs alone.
        attached: The system was not started here.
        runs: Every run there was, void ones included.
        results: What the load driver returned, one per run in the figures.
    """

    load: str
    clients: int | None
    clients_from: int | None
    arrivals: Arrivals | None
    steady: bool
    duration: float
    repeats: int
    window_seconds: float
    response_time: ResponseTime
    service_response: ResponseTime | None
    throughput: Figure
    utilization: Mapping[str, float | None]
    utilization_ci95: Mapping[str, float | None]
    calls: Mapping[str, CallFigures]
    endpoints: Mapping[str, EndpointFigures]
    cpu: CpuUse
    cycles: int
    errors: int
    first_error: str
    think_lateness: float
    think_wanted: float | None
    late_thinks: Lateness | None
    late_starts: Lateness | None
    series: tuple[Point, ...]
    speed: Bracket
    monitored_speed: float | None
    void: str
    attached: bool
    runs: tuple[Run, ...]
    results: tuple[LoadResult, ...] = field(repr=False)

    @property
    def kind(self) -> Literal["closed", "open"]:
        """Whether users wait for answers before they go on, or arrivals come regardless."""
        return "closed" if self.arrivals is None else "open"

    @property
    def failed_share(self) -> float:
        """Failed cycles among all."""
        begun = self.cycles + self.errors
        return self.errors / begun if begun else 1.0

    @property
    def valid_runs(self) -> tuple[Run, ...]:
        """The runs in the figures."""
        return tuple(run for run in self.runs if not run.void) or self.runs

    @property
    def median_response_time(self) -> float:
        """Median over the runs of their mean response times, in seconds."""
        return statistics.median(run.response_time for run in self.valid_runs)

    @property
    def median_p95(self) -> float:
        """Median over the runs of their 95th percentiles, in seconds."""
        return statistics.median(run.p95 for run in self.valid_runs)

    @property
    def median_throughput(self) -> float:
        """Median over the runs of their throughputs, in cycles per second."""
        return statistics.median(run.throughput for run in self.valid_runs)

    @property
    def median_utilization(self) -> dict[str, float]:
        """Median over the runs of the utilization of each service; empty without logs."""
        runs = [run.utilization for run in self.valid_runs if run.utilization]
        return {name: statistics.median(run[name] for run in runs) for name in runs[0]} if runs else {}

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader of the figures must know."""
        found = []
        if self.errors:
            noun = "cycle" if self.errors == 1 else "cycles"
            found.append(f"{self.errors} {noun} failed, the first with: {self.first_error}")
        left_out = [run for run in self.runs if run.void]
        if self.void:
            found.append(f"the measurement is void: {self.void}")
        elif left_out:
            found.append(f"{len(left_out)} of {len(self.runs)} runs left out as void: {left_out[0].void}")
        if not self.cycles:
            return tuple(found)
        if not self.steady:
            found.append("the load was not steady: means and percentiles mix all of it; see its course")
        if self.cpu.client_utilization > CLIENT_LIMIT:
            share = f"{self.cpu.client_utilization:.0%}"
            found.append(f"the load driver used {share} of a core: it may be the bottleneck itself")
        found += self._late()
        return tuple(found)

    def _late(self) -> list[str]:
        """Return where the generator did not keep up: where lateness distorts what it generates."""
        found = []
        if self.late_thinks is not None and self.think_wanted:
            late = self.late_thinks.p95
            if late > max(LATE_LIMIT * self.think_wanted, CLOCK_SECONDS):
                found.append(
                    f"think times of {self.think_wanted * 1e3:.1f} ms took up to {late * 1e3:.1f} ms too long"
                    " (95th percentile): the load driver does not keep up"
                )
        if self.late_starts is not None and self.cycles:
            late = self.late_starts.p95
            gap = self.window_seconds / (self.cycles + self.errors)
            # A late start is in the response time: it matters where it is much of that, or of the distance to
            # the next arrival.
            if late > max(LATE_LIMIT * max(gap, self.response_time.mean), CLOCK_SECONDS):
                found.append(
                    f"arrivals were up to {late * 1e3:.1f} ms late (95th percentile): the load driver does"
                    " not keep up; response times count from the intended start and contain it"
                )
        return found

    def to_json(self) -> dict[str, Any]:
        """Return the document of ``mup load --json``."""
        return {
            "kind": self.kind,
            "load": self.load,
            "clients": self.clients,
            "clients_from": self.clients_from,
            "arrivals": None if self.arrivals is None else _arrivals(self.arrivals),
            "steady": self.steady,
            "duration": self.duration,
            "repeats": self.repeats,
            "window_seconds": self.window_seconds,
            "response_time": asdict(self.response_time),
            "service_response": None if self.service_response is None else asdict(self.service_response),
            "throughput": asdict(self.throughput),
            "tasks": {
                name: {"utilization": value, "ci95": self.utilization_ci95.get(name)}
                for name, value in self.utilization.items()
            },
            "calls": {name: asdict(figures) for name, figures in self.calls.items()},
            "endpoints": {name: asdict(figures) for name, figures in self.endpoints.items()},
            "cpu": asdict(self.cpu),
            "cycles": self.cycles,
            "errors": self.errors,
            "first_error": self.first_error,
            "think_lateness": self.think_lateness,
            "lateness": {
                "think": None if self.late_thinks is None else asdict(self.late_thinks),
                "start": None if self.late_starts is None else asdict(self.late_starts),
                "think_wanted": self.think_wanted,
            },
            "series": [asdict(point) for point in self.series],
            "speed": _speed(self.speed),
            "monitored_speed": self.monitored_speed,
            "void": self.void or None,
            "median": {
                "response_time": self.median_response_time,
                "p95": self.median_p95,
                "throughput": self.median_throughput,
                "utilization": self.median_utilization,
            },
            "runs": [run.to_json() for run in self.runs],
            "warnings": list(self.warnings),
        }


def _arrivals(arrivals: Arrivals) -> dict[str, Any]:
    return {
        "process": arrivals.process,
        "rate": arrivals.rate or None,
        "to_rate": arrivals.to_rate,
        "trace": len(arrivals.trace) or None,
    }


def _speed(bracket: Bracket) -> dict[str, Any]:
    return {
        "before": bracket.before.to_json(),
        "after": bracket.after.to_json(),
        "jump": bracket.jump,
        "mean": bracket.speed,
    }
