"""Where would a real run land? Prediction intervals, what they consist of, and what would narrow them.

A figure of one real run differs from its prediction for four reasons, taken as independent:

- *calibration*: the numbers of the model come from a finite exploratory run;
- *simulation*: the predicted figure itself is an estimate;
- *measurement*: a real run is finite, too, so it varies from one to the next;
- *discrepancy*: the model is not the system, however well it is calibrated.

Times and throughputs err by factors, so their variances are added on the logarithmic scale and their
intervals are wider above than below; utilizations err by what is added. The 95 % quantile is Student's,
with Satterthwaite's degrees of freedom for the sum of the four variances ("An approximate distribution of
estimates of variance components", 1946): a few rounds of an exploratory run or a few systems of a test bed
say little about how large an error can be.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mup.errors import UsageError
from mup.lqn.composed_uncertainty import certain_tasks
from mup.lqn.uncertainty import Uncertainty
from mup.statistics.student import t_quantile
from simulator.figures.result import Figure, Result
from simulator.studies.advice import Advice, Suspect, advise
from simulator.studies.calibration_spread import FIGURES, Key, Spread, figures
from simulator.studies.whatif import Scenario, utilizations

__all__ = ["PARTS", "Interval", "Missing", "Prediction", "RealRun", "predict_interval"]

PARTS: Final = ("calibration", "simulation", "measurement", "discrepancy")


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
            are 0 if nothing varies.
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
        missing: Parts that are not in the intervals.
        advice: What narrows the interval of the mean response time most.
    """

    run: RealRun
    load: float
    response_time: Interval
    p95: Interval
    throughput: Interval
    utilization: Mapping[str, Interval]
    missing: tuple[Missing, ...]
    advice: Advice

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
            "missing": [str(missing) for missing in self.missing],
            "advice": self.advice.text,
        }


def predict_interval(
    scenario: Scenario,
    result: Result,
    run: RealRun,
    spread: Spread | None = None,
    known: Sequence[Suspect] = (),
) -> Prediction:
    """Return the prediction intervals of a simulated scenario.

    Args:
        scenario: Its model may carry ``uncertainty``.
        result: Of its simulation.
        run: The real run to predict.
        spread: What calibration error does to this scenario (``simulator.studies.calibration_spread``); None
            if not known.
        known: The ``suspects`` of the model: what could be calibrated better.
    """
    uncertainty = scenario.model.uncertainty or Uncertainty()
    load = max((figure.mean for figure in utilizations(result).values()), default=0.0)
    sums = {
        key: _Sum(key, figure, result, run, spread, uncertainty, load)
        for key, figure in figures(result).items()
    }
    first = sums["response_time", ""]
    return Prediction(
        run=run,
        load=load,
        response_time=first.interval(),
        p95=sums["p95", ""].interval(),
        throughput=sums["throughput", ""].interval(),
        utilization={key[1]: s.interval() for key, s in sums.items() if key[0] == "utilization"},
        missing=tuple(_missing(sums.values(), certain_tasks(scenario.model))),
        advice=advise(first.variances, result, run.seconds, run.repeats, spread, known),
    )


def _missing(sums: Iterable[_Sum], certain: Sequence[str]) -> list[Missing]:
    """Return the parts that are not known, with the figures if it is not all of them.

    Args:
        sums: Of all figures.
        certain: Tasks whose calibration error is not known, though that of others is.
    """
    found = []
    every = list(sums)
    for part in PARTS:
        lacking = [s.key[0] for s in every if part not in s.variances]
        names = [name for name in FIGURES if name in lacking]
        if len(names) == len({s.key[0] for s in every}):
            found.append(Missing(part))
        elif names:
            found.append(Missing(part, tuple(names)))
        elif part == "calibration" and certain:
            found.append(Missing(part, tuple(certain)))
    return found


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
    ) -> None:
        self.key = key
        self.mean = figure.mean
        self.relative = key[0] != "utilization"
        self.bias = 0.0
        self.variances: dict[str, float] = {}
        self.freedom: dict[str, float] = {}
        if spread is not None and key in spread.variances:
            self._add("calibration", spread.variances[key], min(spread.replicates - 1, uncertainty.freedom))
        scale = figure.mean if self.relative else 1.0
        batches = result.batches - 1
        if scale > 0:
            simulation = (figure.ci95 / t_quantile(batches) / scale) ** 2
            self._add("simulation", simulation, batches)
            window = result.simulated_seconds - result.warmup_seconds
            measurement = simulation * window / run.total
            if key[0] == "response_time":
                cycles = result.cycle.throughput.mean * run.total
                measurement = max(measurement, (result.cycle.response_time.sd / scale) ** 2 / cycles)
            self._add("measurement", measurement, batches)
        discrepancy = uncertainty.discrepancy
        found = None if discrepancy is None else discrepancy.at(key[0], load)
        if discrepancy is not None and found is not None:
            sd, self.bias = found
            if self.relative:
                sd = math.sqrt(math.log1p((sd / (1 + self.bias)) ** 2))
            self._add("discrepancy", sd**2, max(1, discrepancy.systems - 1))

    def _add(self, part: str, variance: float, freedom: float) -> None:
        self.variances[part] = variance
        self.freedom[part] = freedom

    def interval(self) -> Interval:
        """Return the interval of all parts together."""
        total = math.fsum(self.variances.values())
        shares = {part: v / total if total > 0 else 0.0 for part, v in self.variances.items()}
        half = 0.0
        if total > 0:
            weights = math.fsum(share**2 / self.freedom[part] for part, share in shares.items())
            half = t_quantile(1 / weights) * math.sqrt(total)
        if self.relative:
            centre = self.mean / (1 + self.bias)
            low, high = centre * math.exp(-half), centre * math.exp(half)
        else:
            centre = self.mean - self.bias
            low, high = max(0.0, centre - half), min(1.0, centre + half)
        return Interval(self.mean, low, high, shares)
