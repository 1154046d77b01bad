"""What does one round of load return? Plain data that crosses from the driver process to whoever measures."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

__all__ = ["Cycle", "EndpointStats", "LoadResult"]


class Cycle(NamedTuple):
    """One cycle of one client.

    Attributes:
        start_ns: Monotonic ns.
        duration: Seconds from its start to its end.
        think: Seconds of it spent thinking, as realised.
    """

    start_ns: int
    duration: float
    think: float

    @property
    def response(self) -> float:
        """Response time in seconds: duration without think time."""
        return self.duration - self.think


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointStats:
    """Calls of one endpoint that clients began in the window.

    Attributes:
        count: Answered with a status of 2xx.
        mean_seconds: Mean of their response times; None if there is none.
        errors: The others.
    """

    count: int
    mean_seconds: float | None
    errors: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadResult:
    """What the clients saw in one window.

    Attributes:
        clients: Concurrent clients.
        seed: Of their random numbers.
        start_ns, end_ns: Of the window, monotonic ns.
        cycles: Successful cycles that began in the window, in order of their start; all were completed.
        completions: Ends of the successful cycles that ended in the window, monotonic ns, ascending.
        errors: Failed cycles that began in the window; in no other figure.
        first_error: What the first of them said, or "".
        endpoints: Per endpoint (``A/epA/``) called by clients.
        cpu_seconds: CPU time of the driver process in the window.
        think_lateness: Seconds by which each think time took longer than asked for: the check that the
            generator kept up.
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

    @property
    def window_seconds(self) -> float:
        """Length of the window in seconds."""
        return (self.end_ns - self.start_ns) * 1e-9

    @property
    def response_times(self) -> list[float]:
        """Duration minus think time of every successful cycle, in seconds."""
        return [cycle.response for cycle in self.cycles]

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
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> LoadResult:
        """Return the result `to_dict` was made of."""
        return cls(
            **{
                **data,
                "cycles": tuple(Cycle(*cycle) for cycle in data["cycles"]),
                "completions": tuple(data["completions"]),
                "think_lateness": tuple(data["think_lateness"]),
                "endpoints": {name: EndpointStats(**stats) for name, stats in data["endpoints"].items()},
            }
        )
