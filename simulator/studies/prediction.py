"""Prediction intervals of a real run, their parts, and what would narrow them.

A figure of one real run differs from its prediction for five reasons, taken as independent:

- *calibration*: the numbers of the model come from a finite exploratory run;
- *simulation*: the predicted figure itself is an estimate;
- *measurement*: a real run is finite, too, so it varies from one to the next;
- *discrepancy*: the model is not the system, however well it is calibrated. What other systems showed of
  that, or what this one shows at one user, whichever is more: other systems differ at one user, too;
- *machine speed*: the machine is not as fast as it was during the calibration.

Times and throughputs err by factors, so their variances are added on the logarithmic scale and their
intervals are wider above than below; utilizations err by what is added. The 95 % quantile is Student's,
with Satterthwaite's degrees of freedom for the sum of the variances ("An approximate distribution of
estimates of variance components", 1946): a few rounds of an exploratory run or a few systems of a test bed
say little about how large an error can be.

A figure does not follow the speed of the machine in proportion: near saturation a slower machine does more
than a faster one undoes. So the figure at both ends of the speeds' own interval counts, each for its side of
the interval. Alone, that is exact for a figure that rises or falls with the speed; with the other parts it is
their sum of variances, per side. A range of speeds that has to be covered is not random: it is added as it
is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from mup.errors import UsageError
from mup.lqn.composed_uncertainty import certain_tasks
from mup.lqn.machine_speed import MachineSpeed
from mup.lqn.uncertainty import OneUser, Uncertainty
from mup.statistics.student import t_quantile
from simulator.figures.result import Figure, ResponseTime, Result
from simulator.studies.advice import Advice, Suspect, advise
from simulator.studies.calibration_spread import FIGURES, Key, SpeedEffect, Spread, figures
from simulator.studies.whatif import Scenario, utilizations

__all__ = [
    "MACHINE_SPEED",
    "PARTS",
    "Interval",
    "Missing",
    "Prediction",
    "RealRun",
    "predict_interval",
    "probability_within",
    "sure_enough",
]

NORMAL: Final = 1.96
"""Standard deviations that a 95 % interval of a normal distribution reaches from its middle."""
MACHINE_SPEED: Final = "machine_speed"
PARTS: Final = ("calibration", "simulation", "measurement", "discrepancy", MACHINE_SPEED)
UNSEEN: Final = 0.05
"""Relative error of a variance that does not show in an interval: it makes it 2.5 % wider or narrower."""
UNSEEN_OF_RUNS: Final = 0.2
"""The same where real runs differ by the rhythms of their clients: what calibration adds to that is known
after many runs only."""
MOST_FREEDOM: Final = 1e9
"""Degrees of freedom beyond which Student's distribution is the normal one."""


@dataclass(frozen=True, slots=True)
class RealRun:
    """The real run whose figures are predicted.

    Attributes:
        seconds: Length of its window.
        repeats: How many of them are taken together.
    """

    seconds: float = 60.0
    repeats: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.seconds < math.inf:
            raise UsageError(
                f"the length of a real run must be a number of seconds > 0, got {self.seconds!r}"
            )
        if isinstance(self.repeats, bool) or not isinstance(self.repeats, int) or self.repeats < 1:
            raise UsageError(f"repeats of a real run must be a whole number >= 1, got {self.repeats!r}")

    @property
    def total(self) -> float:
        """Seconds of all repeats together."""
        return self.seconds * self.repeats


@dataclass(frozen=True, slots=True)
class Interval:
    """A 95 % prediction interval.

    Attributes:
        mean: The predicted figure.
        low, high: Where the figure of a real run is expected, 19 times of 20. Where predictions are known
            to be biased the interval is moved, the mean is not.
        parts: Share of each of ``PARTS`` in the variance, 0 to 1; a part that is not known is missing. All
            are 0 if nothing varies. That of a range of speeds is as if its ends were a 95 % interval.
    """

    mean: float
    low: float
    high: float
    parts: Mapping[str, float]

    @property
    def half_width(self) -> float:
        """Half the length of the interval, in the unit of the figure."""
        return (self.high - self.low) / 2

    def contains(self, value: float) -> bool:
        """Tell whether a measured figure is inside."""
        return self.low <= value <= self.high

    def to_json(self) -> dict[str, Any]:
        """Return ``{"mean", "low", "high", "parts"}``."""
        return {"mean": self.mean, "low": self.low, "high": self.high, "parts": dict(self.parts)}


@dataclass(frozen=True, slots=True)
class Missing:
    """A part of the variance that is not in the intervals because it is not known.

    Attributes:
        part: One of ``PARTS``.
        of: Names of the figures it is missing in (of calibration also: names of tasks); none if it is missing
            in every figure.
    """

    part: str
    of: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.part} of {', '.join(self.of)}" if self.of else self.part


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """Prediction intervals of one scenario.

    Attributes:
        run: The real run they are for.
        load: Utilization of the most utilized processor or pool.
        response_time, p95, throughput: Of the cycle.
        utilization: Per task that has a pool.
        machine: The speeds its machine may have; None if they are not in the intervals.
        missing: Parts that are not in the intervals.
        advice: What narrows the interval of the mean response time most.
        spread: What calibration error does; None if not known.
        effect: What the speeds of the machine do; None if not known.
    """

    run: RealRun
    load: float
    response_time: Interval
    p95: Interval
    throughput: Interval
    utilization: Mapping[str, Interval]
    machine: MachineSpeed | None
    missing: tuple[Missing, ...]
    advice: Advice
    spread: Spread | None = field(default=None, repr=False)
    effect: SpeedEffect | None = field(default=None, repr=False)

    def to_json(self) -> dict[str, Any]:
        """Return the object under ``prediction``."""
        return {
            "run_seconds": self.run.seconds,
            "run_repeats": self.run.repeats,
            "load": self.load,
            "response_time": self.response_time.to_json(),
            "p95": self.p95.to_json(),
            "throughput": self.throughput.to_json(),
            "utilization": {task: interval.to_json() for task, interval in self.utilization.items()},
            "machine_speed": None if self.machine is None else self.machine.to_json(),
            "missing": [str(missing) for missing in self.missing],
            "advice": self.advice.text,
        }


def predict_interval(
    scenario: Scenario,
    result: Result,
    run: RealRun,
    spread: Spread | None = None,
    known: Sequence[Suspect] = (),
    speed: SpeedEffect | None = None,
) -> Prediction:
    """Return the prediction intervals of a simulated scenario.

    Args:
        scenario: Its model may carry ``uncertainty``.
        result: Of its simulation.
        run: The real run to predict.
        spread: What calibration error does to this scenario (``simulator.studies.calibration_spread``); None
            if not known.
        known: The ``suspects`` of the model: what could be calibrated better.
        speed: What the speeds its machine may have do to this scenario; None if not known.
    """
    load, sums = _sums(scenario, result, run, spread, speed)
    first = sums["response_time", ""]
    return Prediction(
        run=run,
        load=load,
        response_time=first.interval(),
        p95=sums["p95", ""].interval(),
        throughput=sums["throughput", ""].interval(),
        utilization={key[1]: s.interval() for key, s in sums.items() if key[0] == "utilization"},
        machine=None if speed is None else speed.machine,
        missing=tuple(_missing(sums.values(), certain_tasks(scenario.model))),
        advice=advise(first.variances, result, run.seconds, run.repeats, spread, known, speed),
        spread=spread,
        effect=speed,
    )


def probability_within(
    prediction: Prediction,
    scenario: Scenario,
    result: Result,
    key: Key,
    figure: Figure,
    limit: float,
    *,
    at_least: bool = False,
) -> float:
    """Return how probable it is that a figure of one real run keeps a limit, 0 to 1.

    Calibration, simulation, chance in the run, the model's own error and the machine count as in the interval
    of the figure: an interval that ends at the limit is kept with a probability of 97.5 %. A range of speeds
    that has to be covered counts with its worse end.

    Args:
        prediction: Of the scenario.
        scenario: What was simulated.
        result: Of its simulation.
        key: The figure whose parts count: the figure itself or, of one that has no interval of its own (an
            endpoint's, another percentile), the one of its kind.
        figure: The figure in the result.
        limit: In the unit of the figure.
        at_least: The limit is a lower one.
    """
    load = max((share.mean for share in utilizations(result).values()), default=0.0)
    uncertainty = scenario.model.uncertainty or Uncertainty()
    parts = _Sum(key, figure, result, prediction.run, prediction.spread, uncertainty, load, prediction.effect)
    return parts.probability(limit, at_least=at_least)


def sure_enough(
    scenario: Scenario, result: Result, run: RealRun, spread: Spread | None, speed: SpeedEffect | None
) -> tuple[bool, bool]:
    """Tell whether the simulations behind ``spread``, and those behind ``speed``, were long enough.

    What chance left in them may move no interval visibly. Where calibration or machine is a small part of an
    interval, very short simulations do.

    Args:
        scenario: As for ``predict_interval``, like all others.
        result: Of its simulation.
        run: The real run to predict.
        spread: What calibration error does.
        speed: What the speeds of the machine do.
    """
    _, sums = _sums(scenario, result, run, spread, speed)
    unseen = UNSEEN if result.replications == 1 else UNSEEN_OF_RUNS
    seen = {key: unseen * math.fsum(each.variances.values()) for key, each in sums.items()}
    spread_noise = {} if spread is None else spread.noise
    speed_noise = {} if speed is None else {key: _speed_noise(speed, key) for key in speed.noise}
    return (
        all(spread_noise.get(key, 0.0) <= most for key, most in seen.items()),
        all(speed_noise.get(key, 0.0) <= most for key, most in seen.items()),
    )


def _speed_noise(speed: SpeedEffect, key: Key) -> float:
    """Return by how much chance may be wrong about the variance due to the speed of the machine."""
    noise, most = (v / speed.machine.quantile for v in (speed.noise[key], max(map(abs, speed.changes[key]))))
    return noise * (noise + 2 * most)


def _sums(
    scenario: Scenario, result: Result, run: RealRun, spread: Spread | None, speed: SpeedEffect | None
) -> tuple[float, dict[Key, _Sum]]:
    """Return the load, and the variances of all figures."""
    uncertainty = scenario.model.uncertainty or Uncertainty()
    load = max((figure.mean for figure in utilizations(result).values()), default=0.0)
    return load, {
        key: _Sum(key, figure, result, run, spread, uncertainty, load, speed)
        for key, figure in figures(result).items()
    }


def _missing(sums: Iterable[_Sum], certain: Sequence[str]) -> list[Missing]:
    """Return the parts that are not known, with the figures if it is not all of them.

    Args:
        sums: Of all figures.
        certain: Tasks whose calibration error is not known, though that of others is.
    """
    found = []
    every = list(sums)
    for part in PARTS:
        lacking = [s.key[0] for s in every if not s.knows(part)]
        names = [name for name in FIGURES if name in lacking]
        if len(names) == len({s.key[0] for s in every}):
            found.append(Missing(part))
        elif names:
            found.append(Missing(part, tuple(names)))
        elif part == "calibration" and certain:
            found.append(Missing(part, tuple(certain)))
    return found


def _at_one_user(own: OneUser, key: Key, result: Result) -> float:
    """Return by which part a figure would be off if the model were as wrong as it is at one user."""
    if key[0] == "response_time":
        return own.response_time
    if key[0] == "p95":
        return own.p95 * own.share_of(result.cycle.response_time.p95.mean)
    if key[0] == "throughput":
        # Clients that think for long hardly come less often for waiting longer.
        cycle = result.cycle.cycle_time.mean
        return own.response_time * result.cycle.response_time.mean / cycle if cycle > 0 else 0.0
    return 0.0


def _independent(times: ResponseTime, cycles: float) -> float:
    """Return the relative variance of the 95th percentile of so many independent cycles, at least.

    The share of cycles below it has the error of a binomial. The percentile at the lower end of the interval
    of that share may be much shorter: of a cache that misses one request in ten, a run of 50 cycles may not
    see enough misses. Between the percentiles that are known, times grow by equal factors.
    """
    least = min(times.p50.mean, times.p90.mean, times.p95.mean)
    if least <= 0 or cycles <= 0:
        return 0.0
    level = 0.95 - NORMAL * math.sqrt(0.95 * 0.05 / cycles)
    known = ((0.5, times.p50.mean), (0.9, times.p90.mean), (0.95, times.p95.mean))
    lower = times.p50.mean
    for (below, short), (above, long) in pairwise(known):
        if below <= level < above:
            lower = short * (long / short) ** ((level - below) / (above - below))
    return (math.log(times.p95.mean / lower) / NORMAL) ** 2


def _runs(result: Result, run: RealRun) -> float:
    """Return how many times as long, or as many, is what was simulated than the real run is.

    A longer run averages chance out, but for the rhythm in which clients began: that is another one in every
    run, not within one.
    """
    if result.replications == 1:
        return result.window_seconds / run.total
    each = result.window_seconds / result.replications
    return result.window_seconds / (min(run.seconds, each) * run.repeats)


class _Sum:
    """The variances of one figure, on the scale on which they add up."""

    def __init__(
        self,
        key: Key,
        figure: Figure,
        result: Result,
        run: RealRun,
        spread: Spread | None,
        uncertainty: Uncertainty,
        load: float,
        speed: SpeedEffect | None,
    ) -> None:
        self.key = key
        self.mean = figure.mean
        self.relative = key[0] != "utilization"
        self.bias = 0.0
        self.variances: dict[str, float] = {}
        self.freedom: dict[str, float] = {}
        own = uncertainty.one_user or OneUser()
        if spread is not None and key in spread.variances:
            calibration = spread.variances[key]
            if key[0] == "p95":
                # Replicates have times with other means and spreads, but of the same shape.
                calibration += (own.p95_shape * own.share_of(self.mean)) ** 2
            self._add("calibration", calibration, min(spread.replicates - 1, uncertainty.freedom))
        scale = figure.mean if self.relative else 1.0
        freedom = result.freedom
        if scale > 0:
            simulation = (figure.ci95 / t_quantile(freedom) / scale) ** 2
            self._add("simulation", simulation, freedom)
            # A measured run has no control variates: chance has its full effect.
            measurement = simulation * figure.variance_ratio * _runs(result, run)
            if key[0] == "response_time":
                cycles = result.cycle.throughput.mean * run.total
                measurement = max(measurement, (result.cycle.response_time.sd / scale) ** 2 / cycles)
            elif key[0] == "p95":
                if figure.of_runs is not None:
                    measurement = figure.of_runs**2 * _runs(result, run) / result.replications
                cycles = result.cycle.throughput.mean * run.total
                measurement = max(measurement, _independent(result.cycle.response_time, cycles))
            self._add("measurement", measurement, freedom)
        self._add_discrepancy(uncertainty, load, _at_one_user(own, key, result))
        self._add_machine(speed)

    def _add_discrepancy(self, uncertainty: Uncertainty, load: float, own: float) -> None:
        """Add what other systems showed, or what this one shows at one user (``own``) if that is more."""
        discrepancy = uncertainty.discrepancy
        found = None if discrepancy is None else discrepancy.at(self.key[0], load)
        self.examined = found is not None
        sd, freedom = own, uncertainty.freedom
        if discrepancy is not None and found is not None:
            sd, self.bias = found
            sd, freedom = max(sd, own), max(1, discrepancy.systems - 1)
        if self.relative:
            sd = math.sqrt(math.log1p((sd / (1 + self.bias)) ** 2))
        if self.examined or own > 0:
            self._add("discrepancy", sd**2, freedom)

    def _add_machine(self, speed: SpeedEffect | None) -> None:
        """Add what the speeds the machine may have do to the figure."""
        # Per side, down and up: a standard deviation that is random, and a distance that is not.
        self.sides = ((0.0, 0.0), (0.0, 0.0))
        away = None if speed is None else speed.away(self.key)
        if speed is not None and away is not None:
            machine = speed.machine
            sds = [each / machine.quantile for each in away]
            self.sides = ((sds[0], 0.0), (sds[1], 0.0)) if machine.sd else ((0.0, away[0]), (0.0, away[1]))
            self._add(MACHINE_SPEED, (sds[0] ** 2 + sds[1] ** 2) / 2, machine.freedom)

    def knows(self, part: str) -> bool:
        """Tell whether a part is known. What one user shows is not all that other systems would."""
        return part in self.variances and (part != "discrepancy" or self.examined)

    def _add(self, part: str, variance: float, freedom: float) -> None:
        self.variances[part] = variance
        self.freedom[part] = freedom

    def interval(self) -> Interval:
        """Return the interval of all parts together."""
        total = math.fsum(self.variances.values())
        shares = {part: v / total if total > 0 else 0.0 for part, v in self.variances.items()}
        down, up = (self._half(*side) for side in self.sides)
        if self.relative:
            centre = self.mean / (1 + self.bias)
            low, high = centre * math.exp(-down), centre * math.exp(up)
        else:
            centre = self.mean - self.bias
            low, high = max(0.0, centre - down), min(1.0, centre + up)
        return Interval(self.mean, low, high, shares)

    def probability(self, limit: float, *, at_least: bool) -> float:
        """Return how probable it is that the figure keeps a limit."""
        if self.relative:
            centre = self.mean / (1 + self.bias)
            if min(centre, limit) <= 0:
                return float(centre >= limit if at_least else centre <= limit)
            room = math.log(limit / centre)
        else:
            room = limit - (self.mean - self.bias)
        machine_sd, _ = self.sides[room > 0]
        # Towards the limit; where the figure is beyond it, back from there.
        room = -room - self.sides[0][1] if at_least else room - self.sides[1][1]
        sd, freedom = self._spread(machine_sd)
        if sd == 0:
            return float(room >= 0)
        from scipy.special import stdtr  # noqa: PLC0415 - takes a while, and few ask

        return float(stdtr(min(freedom, MOST_FREEDOM), room / sd))

    def _half(self, machine_sd: float, reach: float) -> float:
        """Return the length of one side of the interval.

        Args:
            machine_sd: What the speed of the machine does to this side.
            reach: How much farther this side goes for a range of speeds.
        """
        sd, freedom = self._spread(machine_sd)
        return reach + t_quantile(freedom) * sd if sd else reach

    def _spread(self, machine_sd: float) -> tuple[float, float]:
        """Return the standard deviation of all parts together, and its degrees of freedom."""
        variances = {**self.variances, MACHINE_SPEED: machine_sd**2}
        total = math.fsum(variances.values())
        if total == 0:
            return 0.0, math.inf
        shares = ((part, v / total) for part, v in variances.items() if v)
        weights = math.fsum(share**2 / self.freedom[part] for part, share in shares)
        return math.sqrt(total), 1 / weights if weights else math.inf
