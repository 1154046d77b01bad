"""Track parameters of a model over time, with a test whether it still explains measurements.

An extended Kalman filter. Its state s are the logarithms of the parameters (``states``); from one period to
the next they walk at random, and what a period measures is what the model predicts for its configuration u:

    s' = s + w,              w of standard deviation ``drift``
    y  = h(s, u) + c(u) + v  h as for a fit; c what a simulation adds to an approximate h; v as in ``noise``

1. The first periods are fitted with constant parameters. That gives a start and the noise, from which the
   drift of the parameters is taken out (smoothed states instead of constant ones), and a factor: by how much
   more innovations vary than it says. Both are maximum-likelihood estimates given the drift.
2. Every period is predicted, tested (``analyzer.kalman``), and added by Gauss-Newton steps to the minimum of
   (y - h)' R^-1 (y - h) + (s - s^)' P^-1 (s - s^): an iterated filter, for h is curved.
3. After an alarm, what was known is forgotten, and the last periods are fitted alone. If that explains them,
   parameters have jumped; if no values do, the structure is no longer that of the model.

With ``drift=None`` the drift is estimated, too: first with the noise, in turns; then, the model linearised
along a first pass, as the one that makes the innovations of all periods before the first alarm most likely;
then there is a second pass.

Sources: Zheng, Woodside, Litoiu, "Performance Model Estimation and Tracking Using Optimal Filters", IEEE TSE
34 (2008); Bell and Cathey, "The iterated Kalman filter update as a Gauss-Newton method", IEEE TAC 38 (1993);
Schweppe, "Evaluation of likelihood functions for Gaussian signals", IEEE Trans. Inf. Theory 11 (1965).
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar

from analyzer.fitting.correction import simulated_means
from analyzer.fitting.data import Series, grouped
from analyzer.fitting.fit import Fit, Options, Wanted, fit
from analyzer.fitting.forward import Forward, Settings, forward_of
from analyzer.fitting.noise import Noise, noise_of
from analyzer.fitting.parameters import Parameter
from analyzer.fitting.states import States
from analyzer.kalman import (
    MEMORY,
    Finding,
    Innovation,
    Linear,
    Watch,
    chi_squared_limit,
    filtered,
    innovation_of,
    smoothed,
)
from mup.errors import UsageError
from mup.lqn.model import Model
from mup.statistics.student import t_quantile

__all__ = ["Alarm", "Following", "Tracked", "track"]

FloatArray = npt.NDArray[np.float64]

FALSE_ALARM: Final = 1e-4
"""Probability of an alarm of one test in one period in which nothing has happened."""
VERDICT: Final = 0.01
"""Probability of residuals as large after a refit below which no values are said to explain a period."""
JUDGED: Final = 5
"""Periods that are refitted after an alarm about many."""
LEAST_LEARNED: Final = 5
TESTED: Final = 2
"""Periods there must be beyond those that are learned from."""
VAGUE: Final = 1.0
"""Standard deviation of a state nothing is known of: values within a factor of 7, 19 times of 20."""
USUAL: Final = 0.02
"""Drift where the search for a likely one begins."""
DRIFTS: Final = (1e-3, 0.5)
FACTORS: Final = (1.0, 100.0)
"""Errors are not taken to be smaller than they say, or than was learned: that is a best case already."""
RENEW: Final = 0.1
"""How far a state may have moved from where an approximate solver was compared with a simulation."""
SURER: Final = 0.3
"""Half-width of such a simulation relative to that of a period, for its error is the same in all of them."""
ROUNDS: Final = 4
"""Of finding out about the noise."""
ALTERNATIONS: Final = 4
"""Between noise and drift."""
ITERATIONS: Final = 10
CLOSE: Final = 0.05
"""Standard deviations by which residuals may differ from their linearisation where iterations end."""
LONGEST: Final = 1.0
"""Change of a state beyond which a linearisation is not believed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Following:
    """How to track.

    Attributes:
        drift: Standard deviation of the change of a state per period; None = estimate it.
        learning: Periods that noise and start are learned from. No alarm comes from them.
        level: Of the intervals.
        correct: Correct an approximate solver by simulation.
        seed: Of simulations.
    """

    drift: float | None = None
    learning: int = 20
    level: float = 0.95
    correct: bool = True
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """The model does not explain a period.

    Attributes:
        period: Its number, from 0.
        test: ``size``, ``whiteness``, or ``overload``: the model has no steady state at the tracked values.
        statistic, limit: What was found, and what it may be; 0 for an overload.
        verdict: ``jump``: other values of the parameters explain it. ``structure``: no values do.
            ``unknown``: there are too few figures to tell. ``drift``: parameters change faster than the
            drift allows. ``overload``: as the test.
        measure: The figure that is off most; empty for an overload.
        measured, expected: Its values in this period; after a refit if the verdict is ``structure``.
        deviation: Their difference in standard deviations, over all periods the test is about.
    """

    period: int
    test: str
    statistic: float
    limit: float
    verdict: str
    measure: str = ""
    measured: float = math.nan
    expected: float = math.nan
    deviation: float = math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracked:
    """Parameters over T periods.

    Attributes:
        model: With the values of the last period.
        parameters: The n parameters.
        series: What was measured.
        values, deviations, low, high: Estimates after each period, their standard deviations and intervals;
            shape (T, n).
        size: NIS of each period over the number of its figures: 1 is what is expected; NaN after an overload;
            shape (T,).
        alarms: In order of time.
        covariance: Of the states after the last period, shape (n, n).
        drift: Standard deviation of the change of a state per period, given or estimated.
        noise: Where the errors of periods come from: ``rows``, ``stated`` or ``learned``.
        factor: By how much larger than they say they were taken to be, as a variance.
        learning: Periods that were learned from.
        level: Of the intervals.
        exact: The solver was.
        warnings: What is doubtful, one sentence each.
    """

    model: Model
    parameters: tuple[Parameter, ...]
    series: Series
    values: FloatArray
    deviations: FloatArray
    low: FloatArray
    high: FloatArray
    size: FloatArray
    alarms: tuple[Alarm, ...]
    covariance: FloatArray
    drift: float
    noise: str
    factor: float
    learning: int
    level: float
    exact: bool
    warnings: tuple[str, ...]

    def draws(self, count: int, seed: int) -> FloatArray:
        """Return values as likely as the estimates of the last period say, shape (count, n)."""
        states = States(self.parameters)
        random = np.random.default_rng(seed)
        centre = states.of(self.values[-1])
        drawn = random.multivariate_normal(centre, self.covariance, size=count, method="eigh")
        return states.values(states.clipped(drawn))


def track(
    model: Model, series: Series, wanted: Sequence[Wanted], options: Following | None = None
) -> Tracked:
    """Follow parameters of a model over time.

    Args:
        model: Its structure; values of the parameters are where the first fit starts.
        series: Measurements in the order of time.
        wanted: The parameters.
        options: How to track.

    Raises:
        UsageError: There are too few periods, or a parameter is unknown, cannot be tracked, or is set by the
            data.
        UncalibratedError: Numbers are missing that are not tracked.
        ModelError, SimulationError: The model cannot be estimated or simulated under some configuration.
    """
    options = options or Following()
    _check(series, wanted, options)
    first = grouped(series.data.trials[: options.learning], series.data.measures, series.data.path)
    how = Options(level=options.level, method="linear", correct=options.correct, seed=options.seed)
    learned = fit(model, first, wanted, how)
    for parameter, value, scale in zip(
        learned.parameters, learned.values, learned.problem.scales, strict=True
    ):
        if value <= 1e-6 * scale or value == parameter.high == 1.0:
            raise UsageError(
                f"{parameter.path} is {value:g} in the first {options.learning} periods, so there is nothing "
                "to follow",
                hint="leave it out, or give it bounds",
            )
    tracker = _Tracker(series, learned, options)
    drift = tracker.first_drift() if options.drift is None else options.drift
    factor, path = tracker.follow(drift)
    if options.drift is None:
        drift = tracker.likely_drift(path)
        factor, path = tracker.follow(drift)
    return tracker.report(path, drift, factor)


def _check(series: Series, wanted: Sequence[Wanted], options: Following) -> None:
    for w in wanted:
        if w.parameter.whole:
            raise UsageError(
                f"{w.parameter.path!r} is a whole number: it jumps, does not drift, and cannot be tracked",
                hint="fit it without --track, or have a column of the measurements set it",
            )
        if w.expert is not None:
            raise UsageError(
                f"an expert's interval of {w.parameter.path!r} is about one value; what is tracked has many",
                hint="give it bounds that are never crossed: --bounds",
            )
    needed, there = options.learning + TESTED, len(series.names)
    if options.learning < LEAST_LEARNED:
        raise UsageError(f"at least {LEAST_LEARNED} periods must be learned from, got {options.learning}")
    if there < needed:
        raise UsageError(
            f"{there} periods are too few: {options.learning} are learned from, and {needed} needed",
            hint="measure longer, or learn from fewer periods: --learning-periods",
        )
    for name, trial in zip(series.names, series.data.trials, strict=True):
        if not np.isfinite(trial.means).any():
            raise UsageError(f"nothing was measured in period {name!r}", hint="leave out its rows")


@dataclass(frozen=True, slots=True)
class _Period:
    """A period as it looks from a state.

    Attributes:
        there: Which figures it has, k of them.
        forward: The model in its configuration.
        target: What h has to be: measured less corrected, shape (k,).
        noise, weights: Covariance of its errors, and the matrix that makes them independent.
    """

    there: npt.NDArray[np.intp]
    forward: Forward
    target: FloatArray
    noise: FloatArray
    weights: FloatArray


@dataclass(slots=True)
class _Path:
    """What a pass over all periods has found."""

    states: list[FloatArray] = field(default_factory=list)
    covariances: list[FloatArray] = field(default_factory=list)
    sizes: list[float] = field(default_factory=list)
    linear: list[Linear] = field(default_factory=list)
    alarms: list[Alarm] = field(default_factory=list)


class _Tracker:
    def __init__(self, series: Series, learned: Fit, options: Following) -> None:
        self.series, self.learned, self.options = series, learned, options
        self.parameters = learned.parameters
        self.states = States(self.parameters)
        self.start = self.states.of(np.array(learned.values))
        self.noise: Noise = noise_of(series.data, learned)
        self.warnings = [
            f"in the first {options.learning} periods, {warning}" for warning in learned.warnings
        ]
        self._forwards: dict[Settings, Forward] = {}
        self._last: tuple[tuple[Forward, bytes], tuple[FloatArray, FloatArray]] | None = None
        self._corrections: dict[Settings, list[tuple[FloatArray, FloatArray, FloatArray]]] = defaultdict(list)

    # ------------------------------------------------------------------ what the model says

    def _forward(self, settings: Settings) -> Forward:
        if settings not in self._forwards:
            self._forwards[settings] = forward_of(
                self.learned.model, self.parameters, self.learned.problem.scales, [settings],
                self.series.data.measures,
            )  # fmt: skip
        return self._forwards[settings]

    def _predicted(self, forward: Forward, state: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the figures of a configuration and their derivatives with respect to the state."""
        key = forward, state.tobytes()
        if self._last is None or self._last[0] != key:
            # Asked for again at once: a period is linearised where it is tested, and then added to the state.
            means, slopes = forward.sensitivities(self.states.values(state))
            self._last = key, (means[0], slopes[0] * self.states.slopes(state))
        return self._last[1]

    def _correction(self, index: int, state: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what a simulation adds to the prediction of a period, and its variance.

        What it is at a state holds for those around it; where parameters have moved far, it is found anew.
        """
        trial, measures = self.series.data.trials[index], self.series.data.measures
        settings, forward = trial.settings, self._forward(trial.settings)
        if forward.exact or not self.options.correct:
            return np.zeros(len(measures)), np.zeros(len(measures))
        near = [c for c in self._corrections[settings] if np.abs(state - c[0]).max() <= RENEW]
        if not near:
            values = self.states.values(state)
            predicted, there = forward.means(values)[0], np.isfinite(trial.means)
            errors = np.sqrt(np.diag(self.noise.of(index, trial, predicted)[0]))
            relative = 1.96 * float(np.median(errors / np.maximum(np.abs(predicted[there]), 1e-300)))
            found = simulated_means(
                self.learned.model, self.parameters, values, [settings], measures,
                relative=SURER * relative, seed=self.options.seed,
            )  # fmt: skip
            near = [(state, found.means[0] - predicted, found.variances[0])]
            self._corrections[settings] += near
        return near[0][1], near[0][2]

    def _seen(self, index: int, state: FloatArray, factor: float) -> _Period | None:
        """Return a period as it looks from a state; None if the model cannot be solved there."""
        trial = self.series.data.trials[index]
        forward = self._forward(trial.settings)
        predicted = forward.means(self.states.values(state))[0]
        if not np.isfinite(predicted).all():
            return None
        added, variances = self._correction(index, state)
        there = np.flatnonzero(np.isfinite(trial.means))
        noise, weights = self.noise.of(index, trial, predicted + added)
        if np.any(variances[there] > 0) or factor != 1.0:
            noise = factor * noise + np.diag(variances[there])
            weights = np.linalg.inv(np.linalg.cholesky(noise))
        return _Period(there, forward, (trial.means - added)[there], noise, weights)

    def _linear(self, period: _Period, state: FloatArray) -> Linear:
        means, slopes = self._predicted(period.forward, state)
        rows = slopes[period.there]
        return Linear(period.target - means[period.there] + rows @ state, rows, period.noise)

    # ------------------------------------------------------------------ the filter

    def follow(self, drift: float) -> tuple[float, _Path]:
        """Return the factor on the noise, and what a pass over all periods finds."""
        count, path = len(self.start), _Path()
        self.noise = self._learned_noise(drift)
        factor = self._factor(drift)
        watch = Watch(FALSE_ALARM, self.noise.freedom)
        state, spread = self.start, VAGUE**2 * np.eye(count)
        recent: deque[tuple[int, npt.NDArray[np.intp], FloatArray]] = deque(maxlen=MEMORY)
        for index in range(len(self.series.names)):
            if index:
                spread = spread + drift**2 * np.eye(count)
            period = self._seen(index, state, factor)
            if period is None:
                if index >= self.options.learning:
                    path.alarms.append(
                        Alarm(period=index, test="overload", statistic=0.0, limit=0.0, verdict="overload")
                    )
                self._note(path, state, spread, math.nan)
                continue
            seen = self._linear(period, state)
            innovation = innovation_of(seen.value - seen.slopes @ state, seen.slopes, spread, period.noise)
            whitened = innovation.whitened
            finding = watch.look(whitened) if index >= self.options.learning else None
            recent.append((index, period.there, innovation.normalised))
            if finding is None:
                state, spread, _ = self._updated([period], state, spread)
            else:
                about = list(recent)[-finding.periods :]
                alarm, state, spread = self._started_over(finding, about, state, factor, innovation)
                path.alarms.append(alarm)
                recent.clear()
            self._note(path, state, spread, float(whitened @ whitened) / len(whitened))
            path.linear.append(seen)
        return factor, path

    @staticmethod
    def _note(path: _Path, state: FloatArray, spread: FloatArray, size: float) -> None:
        path.states.append(state)
        path.covariances.append(spread)
        path.sizes.append(size)

    def _updated(
        self, periods: Sequence[_Period], mean: FloatArray, spread: FloatArray
    ) -> tuple[FloatArray, FloatArray, float]:
        """Return the most likely state after some periods, its covariance, and what they leave unexplained.

        The last one is the sum of squared residuals of the periods, each of variance 1.
        """
        prior = np.asarray(np.linalg.inv(np.linalg.cholesky(spread)), dtype=np.float64)

        def residuals(state: FloatArray) -> FloatArray:
            values = self.states.values(state)
            parts = [p.weights @ (p.forward.means(values)[0][p.there] - p.target) for p in periods]
            return np.concatenate([*parts, prior @ (state - mean)])

        state, rest = mean, residuals(mean)
        slopes = self._slopes(periods, prior, state)
        for _ in range(ITERATIONS):
            step = np.asarray(-np.linalg.lstsq(slopes, rest, rcond=None)[0], dtype=np.float64)
            step *= min(1.0, LONGEST / max(float(np.abs(step).max()), 1e-300))
            moved, left = self._descended(residuals, state, rest, step)
            expected = rest + slopes @ (moved - state)
            near = float(np.linalg.norm(left - expected)) < CLOSE and bool(np.all(moved == state + step))
            still = bool(np.all(np.abs(moved - state) < 1e-9))
            state, rest = moved, left
            if still or (near and np.abs(step).max() < LONGEST):
                break
            slopes = self._slopes(periods, prior, state)
        covariance = np.asarray(np.linalg.inv(slopes.T @ slopes), dtype=np.float64)
        own = rest[: -len(mean)]
        return state, covariance, float(own @ own)

    def _slopes(self, periods: Sequence[_Period], prior: FloatArray, state: FloatArray) -> FloatArray:
        parts = [p.weights @ self._predicted(p.forward, state)[1][p.there] for p in periods]
        slopes: FloatArray = np.concatenate([*parts, prior])
        return slopes

    def _descended(
        self,
        residuals: Callable[[FloatArray], FloatArray],
        state: FloatArray,
        rest: FloatArray,
        step: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """Return a state in the direction of a step that is no worse, and its residuals."""
        for _ in range(8):
            moved = self.states.clipped(state + step)
            left = residuals(moved)
            if np.isfinite(left).all() and left @ left <= rest @ rest * (1 + 1e-9):
                return moved, left
            step = 0.5 * step
        return state, rest

    # ------------------------------------------------------------------ alarms

    def _started_over(
        self,
        finding: Finding,
        about: Sequence[tuple[int, npt.NDArray[np.intp], FloatArray]],
        state: FloatArray,
        factor: float,
        innovation: Innovation,
    ) -> tuple[Alarm, FloatArray, FloatArray]:
        """Return an alarm, and the state and its covariance as the last periods alone have them."""
        count = len(state)
        judged = [index for index, _, _ in about[-JUDGED:]]
        seen = [p for index in judged if (p := self._seen(index, state, factor)) is not None]
        vague = VAGUE**2 * np.eye(count)
        fresh, spread, squares = self._updated(seen, state, vague)
        left, best = sum(len(p.target) for p in seen) - count, fresh
        if all(len(p.target) > count for p in seen):
            # Even values of its own for every period: so a jump or a drift among them is no wrong structure.
            alone = [self._updated([p], state, vague) for p in seen]
            left, best = sum(len(p.target) - count for p in seen), alone[-1][0]
            squares = sum(each[2] for each in alone)
        verdict = "unknown"
        if left > 0:
            limit = chi_squared_limit(left, VERDICT, self.noise.freedom)
            verdict = "structure" if squares > limit else "jump"
        if finding.test == "whiteness" and finding.statistic > 0 and verdict != "structure":
            verdict = "drift"
        index, there, _ = about[-1]
        trial, last = self.series.data.trials[index], seen[-1]
        if verdict == "structure":
            apart = last.target - last.forward.means(self.states.values(best))[0][there]
            off = apart / np.sqrt(np.diag(last.noise))
            most = int(np.argmax(np.abs(off)))
            difference, deviation = apart[most], off[most]
        else:
            sums = np.zeros((2, len(self.series.data.measures)))
            for _, those, normalised in about:
                sums[0, those] += normalised
                sums[1, those] += 1
            off = sums[0, there] / np.sqrt(sums[1, there])
            most = int(np.argmax(np.abs(off)))
            difference, deviation = innovation.value[most], off[most]
        measured = float(trial.means[there[most]])
        alarm = Alarm(
            period=index,
            test=finding.test,
            statistic=finding.statistic,
            limit=finding.limit,
            verdict=verdict,
            measure=self.series.data.measures[there[most]],
            measured=measured,
            expected=measured - float(difference),
            deviation=float(deviation),
        )
        return alarm, fresh, spread

    # ------------------------------------------------------------------ noise and drift

    def _learning(self) -> list[tuple[int, _Period, Linear]]:
        """Return the periods that are learned from, linearised at what the first fit has found."""
        seen = [(index, self._seen(index, self.start, 1.0)) for index in range(self.options.learning)]
        return [(index, p, self._linear(p, self.start)) for index, p in seen if p is not None]

    def _learned_noise(self, drift: float) -> Noise:
        """Return the noise without the drift of the parameters, which is in the residuals of the first fit.

        Expectation and maximisation: errors are taken to be what is left around the smoothed states, with
        what these are unsure of; that makes other states of the best.
        """
        noise, vague = self.noise, VAGUE**2 * np.eye(len(self.start))
        if noise.own is not None:
            return noise
        learning = self._learning()
        trials, measures = self.series.data.trials, len(self.series.data.measures)
        for _ in range(ROUNDS):
            linear, levels = [], []
            for index, period, one in learning:
                level = trials[index].means.copy()
                level[period.there] = one.slopes @ self.start + trials[index].means[period.there] - one.value
                linear.append(Linear(one.value, one.slopes, noise.of(index, trials[index], level)[0]))
                levels.append(level)
            products, number = np.zeros((2, measures, measures))
            for (index, period, one), level, state, spread in zip(
                learning, levels, *smoothed(linear, self.start, vague, drift), strict=True
            ):
                left = one.value - one.slopes @ state
                scale = noise.scale(trials[index], level)[period.there]
                cell = np.ix_(period.there, period.there)
                products[cell] += (np.outer(left, left) + one.slopes @ spread @ one.slopes.T) / np.outer(
                    scale, scale
                )
                number[cell] += 1
            noise = noise.learned(products, number)
        return noise

    def _factor(self, drift: float) -> float:
        """Return by how much noise is larger than it is said to be in the periods that are learned from."""
        linear = [one for _, _, one in self._learning()]
        return _minimum(lambda factor: -self._likelihood(linear, drift, factor), FACTORS)

    def first_drift(self) -> float:
        """Return the drift with which the periods that are learned from are most likely, noise and all."""
        drift = USUAL
        for _ in range(ALTERNATIONS):
            self.noise = self._learned_noise(drift)
            drift = self._likeliest([one for _, _, one in self._learning()])
        return drift

    def likely_drift(self, path: _Path) -> float:
        """Return the drift with which what was measured before the first alarm is most likely."""
        until = path.alarms[0].period if path.alarms else len(path.linear)
        linear = path.linear[: max(until, self.options.learning)]
        return self._likeliest(linear)

    def _likeliest(self, linear: Sequence[Linear]) -> float:
        return _minimum(lambda drift: -self._likelihood(linear, drift), DRIFTS, 0.05)

    def _likelihood(self, linear: Sequence[Linear], drift: float, factor: float = 1.0) -> float:
        scaled = [Linear(one.value, one.slopes, factor * one.noise) for one in linear]
        return filtered(scaled, self.start, VAGUE**2 * np.eye(len(self.start)), drift)[2]

    # ------------------------------------------------------------------ the result

    def report(self, path: _Path, drift: float, factor: float) -> Tracked:
        """Return what a pass has found."""
        states = np.array(path.states)
        sd = np.sqrt(np.array([np.diag(c) for c in path.covariances]))
        t = t_quantile(self.noise.freedom, self.options.level)
        values = self.states.values(states)
        model = self.learned.model
        for parameter, value in zip(self.parameters, values[-1], strict=True):
            model = parameter.apply(model, float(value))
        return Tracked(
            model=model,
            parameters=self.parameters,
            series=self.series,
            values=values,
            deviations=self.states.slopes(states) * sd,
            low=self.states.values(self.states.clipped(states - t * sd)),
            high=self.states.values(self.states.clipped(states + t * sd)),
            size=np.array(path.sizes),
            alarms=tuple(path.alarms),
            covariance=path.covariances[-1],
            drift=drift,
            noise=self.noise.source,
            factor=factor,
            learning=self.options.learning,
            level=self.options.level,
            exact=all(f.exact for f in self._forwards.values()),
            warnings=tuple(self.warnings),
        )


def _minimum(
    function: Callable[[float], float], between: tuple[float, float], precision: float = 1e-2
) -> float:
    """Return where a function of a positive number is smallest, up to a relative precision."""
    found: Any = minimize_scalar(
        lambda x: function(math.exp(x)),
        bounds=(math.log(between[0]), math.log(between[1])),
        method="bounded",
        options={"xatol": precision},
    )
    return math.exp(float(found.x))
