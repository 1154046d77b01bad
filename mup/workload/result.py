"""Result of one round of load: plain data passed from the driver process to the measuring one."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

__all__ = ["Cycle", "EndpointStats", "LoadResult"]


class Cycle(NamedTuple):
    """One run of the scenario.

    Attributes:
        start_ns: When it really began, monotonic ns.
        duration: Seconds from then to its end.
        think: Seconds of it spent thinking, as realised.
        late: Seconds it began after its intended start; 0 under a closed load, where a cycle begins when the
            one before it has ended.
    """

    start_ns: int
    duration: float
    think: float
    late: float = 0.0

    @property
    def intended_ns(self) -> int:
        """When it should have begun, monotonic ns."""
        return self.start_ns - round(self.late * 1e9)

    @property
    def response(self) -> float:
        """Response time in seconds, from the intended start: a late generator must not hide a slow system."""
        return self.late + self.duration - self.think

    @property
    def service_response(self) -> float:
        """Response time in seconds, from the real start."""
        return self.duration - self.think


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointStats:
    """Calls of one endpoint that clients began in the window.

    Attributes:
        starts_ns: When each call answered with a status of 2xx began, in the order of the answers; monotonic
            ns.
        seconds: How long each of them took.
        errors: Number of the others.
    """

    starts_ns: tuple[int, ...]
    seconds: tuple[float, ...]
    errors: int

    @property
    def count(self) -> int:
        """Calls answered with a status of 2xx."""
        return len(self.seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadResult:
    """What the clients saw in one window.

    Attributes:
        clients: Concurrent clients of a closed load (the larger number, where clients join or leave); 0 =
            open.
        seed: Of their random numbers.
        start_ns, end_ns: Of the window, monotonic ns.
        cycles: Successful cycles that began in the window (under an open load: should have begun in it), in
            order of their start; all were completed.
        completions: Ends of the successful cycles that ended in the window, monotonic ns, ascending.
        errors: Failed cycles that began in the window; in no other figure.
        first_error: What the first of them said, or "".
        endpoints: Per endpoint (``A/epA/``) called by clients.
        cpu_seconds: CPU time of the driver process in the window.
        think_lateness: Seconds by which each think time took longer than asked for: the check that the
            generator kept up.
        think_wanted: Mean of the think times asked for, in seconds; None if no client thought.
    """

    clients: int
    seed: int
    start_ns: int
    end_ns: int
    cycles: tuple[Cycle, ...]
    completions: tuple[int, ...]
    errors: int
    first_error: str
    endpoints: dict[str, EndpointStats] = field(default_factory=dict)
    cpu_seconds: float
    think_lateness: tuple[float, ...]
    think_wanted: float | None = None

    @property
    def window_seconds(self) -> float:
        """Length of the window in seconds."""
        return (self.end_ns - self.start_ns) * 1e-9

    @property
    def response_times(self) -> list[float]:
        """Response time of every successful cycle, in seconds."""
        return [cycle.response for cycle in self.cycles]

    @property
    def start_lateness(self) -> list[float]:
        """Seconds each successful cycle began after its intended start."""
        return [cycle.late for cycle in self.cycles]

    @property
    def throughput(self) -> float:
        """Successful cycles completed in the window, per second."""
        return len(self.completions) / self.window_seconds

    @property
    def failed_share(self) -> float:
        """Failed cycles among all that began in the window; 1 if none began."""
        begun = len(self.cycles) + self.errors
        return self.errors / begun if begun else 1.0

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON-able data."""
        # Not dataclasses.asdict: it would copy some hundred thousand tuples one by one.
        data = {each.name: getattr(self, each.name) for each in fields(self)}
        data["endpoints"] = {
            name: {"starts_ns": stats.starts_ns, "seconds": stats.seconds, "errors": stats.errors}
            for name, stats in self.endpoints.items()
        }
        return data

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> LoadResult:
        """Return the result `to_dict` was made of."""
        endpoints = {
            name: EndpointStats(
                starts_ns=tuple(stats["starts_ns"]), seconds=tuple(stats["seconds"]), errors=stats["errors"]
            )
            for name, stats in data["endpoints"].items()
        }
        return cls(
            **{
                **data,
                "cycles": tuple(Cycle(*cycle) for cycle in data["cycles"]),
                "completions": tuple(data["completions"]),
                "think_lateness": tuple(data["think_lateness"]),
                "endpoints": endpoints,
            }
        )
