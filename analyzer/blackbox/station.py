"""Station identified from load steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from analyzer.blackbox.families import Family, choose_family
from analyzer.blackbox.inversion import FloatArray, Trace, service_times
from analyzer.blackbox.servers import NOISE, SMALLEST_SAMPLE, Servers, count_servers
from mup.errors import UsageError
from mup.lqn.distributions import Distribution

__all__ = ["LoadStep", "Station", "StepFigures", "identify_station", "quick_station"]

NORMAL = 1.96
STEP_RESAMPLES = 19
"""Of the tests of single steps, which decide nothing."""
RESAMPLES = 40
"""Of the mean service time, for prediction intervals of models that the station is a part of."""
DRIFT_ERRORS = 4.0
"""Standard errors by which service times must differ between loads to be called different."""


@dataclass(frozen=True)
class LoadStep:
    """What was seen of one load, from an empty station on.

    Attributes:
        rate: Arrivals per second that were meant.
        trace: Of all requests that were answered.
        seconds: Duration of the arrivals.
        failures: Requests that were not answered well; they are not in the trace.
        lateness: Mean seconds by which requests were sent late.
        utilization: Largest share in use of any resource that was watched, 0 to 1; None = none was.
        cpu_seconds: Processor time per request of what was watched; None = nothing was.
    """

    rate: float
    trace: Trace
    seconds: float
    failures: int = 0
    lateness: float = 0.0
    utilization: float | None = None
    cpu_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class StepFigures:
    """One load step, seen through the station.

    Attributes:
        rate: Arrivals per second as they were.
        requests: How many.
        response_time, p95: Mean and 95th percentile of the response times, seconds.
        service_time, cv: Mean in seconds and coefficient of variation of the inferred service times.
        waited: Share of requests that found all servers busy.
        load: Share of the servers in use, ``rate x service_time / servers``; above 1 they did not keep up.
        utilization, cpu_seconds: As measured; None if nothing was watched.
        accepted: Families of distributions that are not rejected.
    """

    rate: float
    requests: int
    response_time: float
    p95: float
    service_time: float
    cv: float
    waited: float
    load: float
    utilization: float | None
    cpu_seconds: float | None
    accepted: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {name: getattr(self, name) for name in self.__slots__} | {"accepted": list(self.accepted)}


@dataclass(frozen=True, slots=True)
class Station:
    """An M/G/K station.

    Attributes:
        servers: Their number, and the latency outside of them.
        family: The distribution of the service times, and what else was considered.
        half_width: Of the 95 % interval of the mean service time, seconds.
        steps: In the order of the loads.
        resampled: Mean service time in resamples (a bootstrap), seconds.
    """

    servers: Servers
    family: Family
    half_width: float
    steps: tuple[StepFigures, ...]
    resampled: tuple[float, ...] = ()

    @property
    def distribution(self) -> Distribution:
        """Of the service times, seconds."""
        return self.family.distribution

    @property
    def capacity(self) -> float:
        """Requests per second that the servers can do."""
        mean = self.distribution.mean
        return self.servers.count / mean if mean > 0 else math.inf

    @property
    def drift(self) -> float:
        """How much longer service takes at the highest load than at the lowest; 0 = not beyond chance.

        Of a line through the mean service times of all steps, each weighed by its standard error.
        """
        rates = np.array([s.rate for s in self.steps])
        times = np.array([s.service_time for s in self.steps])
        errors = np.array([s.service_time * s.cv / math.sqrt(s.requests) for s in self.steps])
        # Times that do not vary at all are known to what a clock and a link let see.
        weights = 1 / np.maximum(errors, NOISE) ** 2
        apart = rates - np.average(rates, weights=weights)
        spread = float(weights @ apart**2)
        if spread == 0 or not np.all(times > 0):
            return 0.0
        slope = float(weights @ (apart * times)) / spread
        if abs(slope) * math.sqrt(spread) <= DRIFT_ERRORS:
            return 0.0
        lowest = float(np.average(times, weights=weights) + slope * apart.min())
        return slope * float(np.ptp(rates)) / max(lowest, float(times.min()) / 2)


def identify_station(steps: Sequence[LoadStep], *, seed: int = 0) -> Station:
    """Return the station that explains all load steps.

    All steps are analysed again with the number of servers that all of them together need.

    Args:
        steps: At least one, each of at least 8 requests.
        seed: Of the tests of distributions.

    Raises:
        UsageError: There are too few requests.
    """
    servers, inferred = _inferred(steps)
    times = np.concatenate([service for service, _ in inferred])
    half = NORMAL * float(times.std(ddof=1)) / math.sqrt(times.size)
    figures = tuple(
        _figures(
            step,
            service,
            waiting,
            servers,
            choose_family(service, seed=seed, resamples=STEP_RESAMPLES).accepted,
        )
        for step, (service, waiting) in zip(steps, inferred, strict=True)
    )
    resampled = _resampled([service for service, _ in inferred], seed)
    return Station(servers, choose_family(times, seed=seed), half, figures, resampled)


def quick_station(steps: Sequence[LoadStep]) -> tuple[Servers, float, float]:
    """Return servers, mean (seconds) and cv of the service times: all that the next load step depends on."""
    servers, inferred = _inferred(steps)
    times = np.concatenate([service for service, _ in inferred])
    mean = float(times.mean())
    return servers, mean, float(times.std()) / mean if mean > 0 else 0.0


def _inferred(steps: Sequence[LoadStep]) -> tuple[Servers, list[tuple[FloatArray, FloatArray]]]:
    if not steps or any(step.trace.size < SMALLEST_SAMPLE for step in steps):
        raise UsageError(
            f"a station is identified from load steps of at least {SMALLEST_SAMPLE} requests each"
        )
    servers = count_servers([step.trace for step in steps])
    inferred = []
    for step in steps:
        service, waiting = service_times(step.trace, servers.count, servers.latency)
        # What noise has made negative is a very short time.
        inferred.append((np.maximum(service, 0.0), waiting))
    return servers, inferred


def _resampled(steps: Sequence[FloatArray], seed: int) -> tuple[float, ...]:
    """Return the mean service time in resamples of every load step.

    Blocks of consecutive requests are drawn, as many as there are, with replacement: where one inferred time
    is too long because another was too short, both are in the same block (Kuensch, "The jackknife and the
    bootstrap for general stationary observations", Annals of Statistics 1989).
    """
    rng = np.random.default_rng([seed, 2])
    total, size = np.zeros(RESAMPLES), 0
    for times in steps:
        length = max(1, round(times.size ** (1 / 3)))
        # Blocks run on from the last request to the first, so that all requests are equally likely.
        firsts = rng.integers(times.size, size=(RESAMPLES, math.ceil(times.size / length), 1))
        drawn = times[(firsts + np.arange(length)) % times.size].reshape(RESAMPLES, -1)
        total += drawn[:, : times.size].sum(axis=1)
        size += times.size
    return tuple((total / size).tolist())


def _figures(
    step: LoadStep, service: FloatArray, waiting: FloatArray, servers: Servers, accepted: tuple[str, ...]
) -> StepFigures:
    mean = float(service.mean())
    rate = step.trace.size / step.seconds
    return StepFigures(
        rate=rate,
        requests=step.trace.size,
        response_time=float(step.trace.responses.mean()),
        p95=float(np.quantile(step.trace.responses, 0.95)),
        service_time=mean,
        cv=float(service.std()) / mean if mean > 0 else 0.0,
        waited=float((waiting > 0).mean()),
        load=rate * mean / servers.count,
        utilization=step.utilization,
        cpu_seconds=step.cpu_seconds,
        accepted=accepted,
    )
