"""Arrivals at one black box inside a composed system.

In isolation a black box is given exponential inter-arrival times. Where it is called by others, routing and
queueing before it shape the arrivals; they are sampled there, and described like service times (Harbaoui et
al., RR-7027, section 4.1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from analyzer.blackbox.families import Family, choose_family
from analyzer.blackbox.inversion import FloatArray
from mup.errors import UsageError, did_you_mean
from mup.events.reader import log_files, read_log
from mup.events.record import Event

__all__ = ["FEWEST_ARRIVALS", "ArrivalModel", "arrivals_in_logs", "identify_arrivals"]

FEWEST_ARRIVALS = 30
"""With 30 gaps, a scv of 1 is known to 25 to 30 %."""
NORMAL = 1.96
RESAMPLES = 200
"""Of the bootstrap; the ends of its 95 % interval rest on five of them each."""


@dataclass(frozen=True, slots=True)
class ArrivalModel:
    """Inter-arrival times.

    Attributes:
        count: Times between arrivals that were seen.
        rate: Arrivals per second.
        scv, scv_interval: Squared coefficient of variation and its 95 % bootstrap interval.
        correlation: Of neighbouring times; ``correlated`` if it is beyond chance.
        correlated: Then arrivals are no renewal process, and a queue behind them longer or shorter than the
            distribution alone says.
        family: The distribution, and what else was considered.
    """

    count: int
    rate: float
    scv: float
    scv_interval: tuple[float, float]
    correlation: float
    correlated: bool
    family: Family

    @property
    def poisson(self) -> bool:
        """Whether nothing speaks against exponential, independent times."""
        return "exponential" in self.family.accepted and not self.correlated

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "count": self.count,
            "rate": self.rate,
            "scv": self.scv,
            "scv_interval": list(self.scv_interval),
            "correlation": self.correlation,
            "correlated": self.correlated,
            "poisson": self.poisson,
            "distribution": self.family.distribution.to_json(),
            **self.family.to_json(),
        }


def arrivals_in_logs(folder: Path, service: str) -> FloatArray:
    """Return when requests arrived at a service, at any of its replicas; seconds, ascending.

    Args:
        folder: Event logs of one machine.
        service: Name of the service.

    Raises:
        LogError: A log cannot be read.
        UsageError: There is no log of a front of this service.
    """
    fronts = [log for log in map(read_log, log_files(folder)) if log.header["role"] == "front"]
    names = sorted({str(log.header["service"]) for log in fronts})
    if service not in names:
        raise UsageError(
            f"there is no log of a service {service!r}; {did_you_mean(service, names)}", where=str(folder)
        )
    own = [log.records for log in fronts if log.header["service"] == service]
    times = [records["time"][records["event"] == Event.ARRIVE] for records in own]
    arrived: FloatArray = np.sort(np.concatenate(times)) * 1e-9
    return arrived


def identify_arrivals(arrivals: ArrayLike, *, seed: int = 0) -> ArrivalModel:
    """Describe the times between arrivals at one place.

    Args:
        arrivals: Seconds of each arrival, in any order, shape (n,), n > 30.
        seed: Of tests and intervals.

    Raises:
        UsageError: There are too few arrivals, or all at once.
    """
    times = np.diff(np.sort(np.asarray(arrivals, dtype=np.float64)))
    if times.size < FEWEST_ARRIVALS:
        raise UsageError(
            f"{times.size + 1} arrivals are too few to describe them; {FEWEST_ARRIVALS + 1} are needed"
        )
    mean = float(times.mean())
    if mean <= 0:
        raise UsageError("all arrivals are at the same time")
    rng = np.random.default_rng([seed, 2])
    samples = times[rng.integers(0, times.size, (RESAMPLES, times.size))]
    scvs = samples.var(axis=1) / samples.mean(axis=1) ** 2
    low, high = np.quantile(scvs, (0.025, 0.975))
    varies = float(times.std()) > 0
    correlation = float(np.corrcoef(times[:-1], times[1:])[0, 1]) if varies else 0.0
    return ArrivalModel(
        count=times.size,
        rate=1 / mean,
        scv=float(times.var()) / mean**2,
        scv_interval=(float(low), float(high)),
        correlation=correlation,
        correlated=abs(correlation) > NORMAL / math.sqrt(times.size),
        family=choose_family(times, seed=seed),
    )
