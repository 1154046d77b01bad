"""Arrival times of an open load.

An open load does not wait for answers: its arrivals are decided before the run, by a seed or a recording.
Arrivals at a changing rate come from arrivals at rate 1 through the inverse of the cumulative rate.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from mup.errors import UsageError

__all__ = ["ArrivalProcess", "Arrivals"]

ArrivalProcess = Literal["poisson", "constant", "trace"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """The arrivals of an open load.

    Attributes:
        rate: Arrivals per second, during the warm-up and when the window opens; 0 for a trace.
        to_rate: When the window closes, and afterwards; None = ``rate``. In between it changes linearly.
        process: ``poisson`` (independent of each other), ``constant`` (equal distances) or ``trace``.
        trace: For ``trace``: seconds of each arrival since the first one, ascending. The warm-up takes the
            first of them; when they are used up, nothing arrives any more.

    Raises:
        UsageError: A value is out of range.
    """

    rate: float = 0.0
    to_rate: float | None = None
    process: ArrivalProcess = "poisson"
    trace: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.process not in ("poisson", "constant", "trace"):
            raise UsageError(f"arrivals must be 'poisson', 'constant' or 'trace', got {self.process!r}")
        if self.process == "trace":
            if not self.trace:
                raise UsageError("a trace needs at least one arrival")
            return
        rates = (self.rate, self.rate if self.to_rate is None else self.to_rate)
        if not all(0 <= rate < math.inf for rate in rates) or not any(rates):
            shown = f"{self.rate!r}" if self.to_rate is None else f"{self.rate!r} to {self.to_rate!r}"
            raise UsageError(f"arrivals must be > 0 per second, got {shown}")

    @property
    def steady(self) -> bool:
        """Whether the rate is the same all the time."""
        return self.process != "trace" and self.to_rate in (None, self.rate)

    def times(self, seed: int, warmup: float, duration: float) -> Iterator[float]:
        """Yield the seconds of all arrivals since the start of the run, ascending, also after the window.

        Args:
            seed: Of a Poisson process.
            warmup: Seconds before the window.
            duration: Seconds of the window.
        """
        if self.process == "trace":
            yield from self.trace
            return
        rng = random.Random(f"arrivals {seed}")
        poisson = self.process == "poisson"
        # Half a distance before the first one: then a window holds the same number wherever it begins.
        count = 0.0 if poisson else 0.5
        while True:
            if poisson:
                count += rng.expovariate(1.0)
            at = self._when(count, warmup, duration)
            if at is None:
                return
            yield at
            if not poisson:
                count += 1.0

    def expected(self, start: float, end: float, warmup: float, duration: float) -> float:
        """Return the mean number of arrivals between two times since the start of the run."""
        if self.process == "trace":
            return float(sum(start <= at < end for at in self.trace))
        return self._until(end, warmup, duration) - self._until(start, warmup, duration)

    def _until(self, at: float, warmup: float, duration: float) -> float:
        """Return the mean number of arrivals until a time."""
        last = self.rate if self.to_rate is None else self.to_rate
        before = self.rate * min(at, warmup)
        within = min(max(at - warmup, 0.0), duration)
        ramp = within * (self.rate + (last - self.rate) * within / duration / 2)
        return before + ramp + last * max(at - warmup - duration, 0.0)

    def _when(self, count: float, warmup: float, duration: float) -> float | None:
        """Return when the mean number of arrivals reaches a value; None = never."""
        last = self.rate if self.to_rate is None else self.to_rate
        if count < self.rate * warmup:
            return count / self.rate
        count -= self.rate * warmup
        whole = duration * (self.rate + last) / 2
        if count >= whole:
            return warmup + duration + (count - whole) / last if last else None
        # The positive root of rate x + slope x^2 / 2 = count, in the form that bears a slope of 0.
        slope = (last - self.rate) / duration
        return warmup + 2 * count / (self.rate + math.sqrt(max(self.rate**2 + 2 * slope * count, 0.0)))

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Arrivals:
        """Return what `to_json` wrote."""
        return cls(**{**data, "trace": tuple(data.get("trace", ()))})
