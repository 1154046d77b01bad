"""Experiment that raises the load step by step, as the model so far allows, until the station is known.

Harbaoui et al. (RR-7027, section 4.3): a first step with hardly any load gives the service time and with it
a first estimate of the largest load. Every further step follows from the model identified so far: its load
(`policy`), the time until it is stable (`stabilisation`), its length (the precision wanted). After each of
them all steps are analysed again. It ends when the station is saturated, or at a limit. Then loads that
took no part are injected and compared with what the model predicts (`holdout`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from analyzer.blackbox.policy import LEVELS, Limits, next_rate, sample_size
from analyzer.blackbox.servers import SMALLEST_SAMPLE, Servers
from analyzer.blackbox.stabilisation import stabilisation_seconds
from analyzer.blackbox.station import LoadStep, Station, identify_station, quick_station
from mup.errors import DeploymentError, RequestsFailedError, UsageError

__all__ = ["HELD_BACK", "Experiment", "Injector", "Progress", "run_experiment"]

FIRST_REQUESTS = 20
"""In the first step, which only has to say how long service takes."""
SATURATED = 0.97
"""Share of the servers in use beyond which a station is saturated."""
BUSY = 0.95
"""Utilization of a resource beyond which it is."""
HELD_BACK = {0.45: 1.0, 0.9: 3.0}
"""Loads of the validation, as fractions of the largest one that was borne, and their parts of the time: near
saturation, where models differ, response times depend on each other for long."""
LATE = 0.25
"""Share of the mean response time by which requests may be late on average."""
REPETITIONS = 2
"""So often a load is injected again during which the generator was late, or that had too few requests."""
VALIDATION = 4
"""So many times longer is a step of the validation: response times depend on each other."""
STEPS = 10
"""So many there may be: more than levels, for their goal moves when servers are added."""
RESERVED = 0.3
"""Share of the time that is kept for the validation."""
SHORTEST = 1.0
"""Seconds of a load step."""


class Injector(Protocol):
    """Sends requests at exponential distances."""

    def inject(self, rate: float, seconds: float, seed: int) -> LoadStep:
        """Inject one load, starting and ending with an empty station.

        Raises:
            RequestsFailedError: More requests failed than may.
        """


@dataclass(frozen=True, slots=True)
class Progress:
    """What happens next, or has just been found out.

    Attributes:
        phase: ``ramp`` or ``validation``.
        rate: Arrivals per second of the step.
        seconds: Its length.
        servers, mean, cv: The model the step was planned with; None before the first one.
    """

    phase: str
    rate: float
    seconds: float
    servers: Servers | None
    mean: float | None
    cv: float | None


@dataclass(frozen=True, slots=True)
class Experiment:
    """What an experiment found.

    Attributes:
        station: From all steps of the ramp.
        steps: Of the ramp.
        held_back: For validation; empty if there was no time left.
        ended: Why the ramp ended, one sentence.
        saturated: Whether it ended because the station was saturated.
        failed: Which requests failed, so that no more were sent; "" = that did not happen.
        seconds: Of all loads, until the last request of each was answered.
    """

    station: Station
    steps: tuple[LoadStep, ...]
    held_back: tuple[LoadStep, ...]
    ended: str
    saturated: bool
    failed: str
    seconds: float

    @property
    def validity(self) -> tuple[float, float]:
        """Lowest and highest load, arrivals per second, that the station was seen to bear."""
        return _borne(self.station)


def run_experiment(
    injector: Injector,
    *,
    limits: Limits,
    start_rate: float = 5.0,
    precision: float = 0.05,
    seed: int = 0,
    tell: Callable[[Progress], None] | None = None,
) -> Experiment:
    """Identify the station behind an injector.

    Once requests fail nothing more is sent; what the loads before showed is not lost.

    Args:
        injector: Of the target.
        limits: What may be done to it.
        start_rate: Arrivals per second of the first step.
        precision: Relative 95 % half-width of the mean service time wanted from all steps together.
        seed: Of all arrivals.
        tell: Called before every step.

    Raises:
        UsageError: The limits leave room for no load step.
        DeploymentError: Requests failed at the first load.
    """
    ramp = _Ramp(injector, limits, precision, seed, tell or (lambda _: None))
    ended, saturated = ramp.climb(min(start_rate, limits.rate))
    station = identify_station(ramp.steps, seed=seed)
    held_back = ramp.hold_back(_borne(station)[1])
    return Experiment(station, tuple(ramp.steps), held_back, ended, saturated, ramp.failed, ramp.used)


def _borne(station: Station) -> tuple[float, float]:
    rates = [figures.rate for figures in station.steps if figures.load < SATURATED]
    rates = rates or [station.steps[0].rate]
    return min(rates), max(rates)


class _Ramp:
    def __init__(
        self,
        injector: Injector,
        limits: Limits,
        precision: float,
        seed: int,
        tell: Callable[[Progress], None],
    ) -> None:
        self.steps: list[LoadStep] = []
        self.used = 0.0
        self.failed = ""
        self._emptying = 0.0
        self._injected = 0
        self._injector = injector
        self._limits = limits
        self._precision = precision
        self._seed = seed
        self._tell = tell
        self._model: tuple[Servers, float, float] | None = None

    def climb(self, rate: float) -> tuple[str, bool]:
        """Raise the load as long as that is possible; return why it ended, and whether by saturation."""
        seconds = FIRST_REQUESTS / rate
        available = (1 - RESERVED) * self._limits.seconds
        if seconds > available:
            raise UsageError(
                f"{self._limits.seconds:g} s are too short for {FIRST_REQUESTS} requests at {rate:g}/s",
                hint="raise the limit of seconds, or the first rate",
            )
        while True:
            try:
                self.steps.append(self._inject("ramp", rate, seconds))
            except RequestsFailedError as error:
                if not self.steps:
                    raise
                self.failed = f"at {rate:.3g} requests/s {error.message}"
                return self.failed, False
            self._model = servers, mean, _ = quick_station(self.steps)
            end = self._end(servers, mean)
            if end is not None:
                return end
            following = next_rate(rate, servers.count / mean, self._limits.rate)
            if following is None:
                return f"the limit of {self._limits.rate:g} requests per second was reached", False
            rate = following
            seconds = self._length(rate)
            if self.used + seconds + self._emptying > available:
                return f"the next step would exceed the limit of {self._limits.seconds:g} s of load", False

    def hold_back(self, highest: float) -> tuple[LoadStep, ...]:
        """Inject loads that take no part in the identification, as far as the time allows."""
        found: list[LoadStep] = []
        parts = dict(HELD_BACK)
        for share in () if self.failed else HELD_BACK:
            rate = share * highest
            left = self._limits.seconds - self.used - self._emptying * len(parts)
            own = left * parts[share] / sum(parts.values())
            del parts[share]
            seconds = min(VALIDATION * self._length(rate), own)
            if seconds * rate < 4 * SMALLEST_SAMPLE:
                break
            try:
                found.append(self._inject("validation", rate, seconds))
            except RequestsFailedError as error:
                self.failed = f"at {rate:.3g} requests/s {error.message}"
                break
        return tuple(found)

    def _inject(self, phase: str, rate: float, seconds: float) -> LoadStep:
        servers, mean, cv = self._model or (None, None, None)
        self._tell(Progress(phase, rate, seconds, servers, mean, cv))
        step = self._timed(rate, seconds)
        for _ in range(REPETITIONS):
            # A generator that is late for once was disturbed, and so may be the target; and chance can leave
            # nearly no arrivals.
            useless = self._late(step) or step.trace.size < SMALLEST_SAMPLE
            if not useless or self.used + seconds + self._emptying > self._limits.seconds:
                break
            step = self._timed(rate, seconds)
        if step.trace.size < SMALLEST_SAMPLE:
            raise DeploymentError(
                f"only {step.trace.size} requests were answered within {seconds:.0f} s at {rate:g}/s",
                hint="nothing can be identified from so few; raise the first rate, or the limits",
            )
        return step

    def _timed(self, rate: float, seconds: float) -> LoadStep:
        """Inject a load; what it takes until the last answer is there counts as load, too."""
        begun = time.monotonic()
        # Every step has arrivals of its own.
        self._injected += 1
        step = self._injector.inject(rate, seconds, 1000 * self._seed + self._injected)
        # As long as a target that answers in computed time would have taken.
        taken = max(seconds, float(step.trace.departures.max()), time.monotonic() - begun)
        self.used += taken
        self._emptying = max(self._emptying, taken - seconds)
        return step

    def _late(self, step: LoadStep) -> bool:
        """Whether the generator fell behind. A little is fine: requests count from when they were sent."""
        tolerated = max(self._limits.lateness, LATE * float(step.trace.responses.mean()))
        return step.lateness > tolerated

    def _stable(self, rate: float) -> float:
        if self._model is None:
            return 0.0
        servers, mean, cv = self._model
        return stabilisation_seconds(rate, mean, servers.count, cv**2)

    def _length(self, rate: float) -> float:
        """Return how long a load is injected: until it is stable, and then for the precision wanted."""
        assert self._model is not None  # noqa: S101 - the first step is of fixed length
        sampled = sample_size(self._model[2], self._precision) / len(LEVELS) / rate
        # No step may take the time of those that come after it, and tell more about the number of servers.
        sampled = min(sampled, (1 - RESERVED) * self._limits.seconds / STEPS)
        # A load that is never stable need not be waited for.
        return max(SHORTEST, sampled + min(self._stable(rate), sampled))

    def _end(self, servers: Servers, mean: float) -> tuple[str, bool] | None:
        step = self.steps[-1]
        load = step.trace.size / step.seconds * mean / servers.count
        late = float(np.quantile(step.trace.responses, 0.95))
        if step.utilization is not None and step.utilization >= BUSY:
            return f"a resource is saturated: {step.utilization:.0%} of it are in use", True
        if load >= SATURATED and servers.bounded:
            return f"the station is saturated: all {servers.count} servers are busy", True
        if late > self._limits.response:
            return f"the 95th percentile of the response times is {late:.3g} s", False
        if self._late(step):
            return f"the load generator is at its own limit: {1e3 * step.lateness:.1f} ms late", False
        return None
