"""Fit parameters of a model to measurements: the whole procedure.

0. Measurements that break a law no values of parameters could mend are refused.
1. Start where the model is. Whole numbers (pools, cores) are searched by neighbours, everything else is
   fitted for each combination.
2. If measurements do not say how sure they are, the residuals of a first fit do.
3. If the solver is approximate, predictions are corrected by simulation, and fitted again, until estimates
   move by less than a tenth of their standard deviation.
4. Intervals.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import fdtrc

from analyzer.fitting.confidence import Confidence, Interval, Method, confidence
from analyzer.fitting.correction import Simulated, own_seed, simulated_means
from analyzer.fitting.covariance import Errors, errors_of
from analyzer.fitting.data import Data
from analyzer.fitting.forward import forward_of
from analyzer.fitting.laws import check_laws
from analyzer.fitting.parameters import Parameter
from analyzer.fitting.regression import MAX_EVALUATIONS, Expert, Problem, Solution, minimise
from mup.errors import SimulationError, UncalibratedError, UsageError
from mup.lqn.model import Model

__all__ = ["Fit", "Options", "Wanted", "fit"]

FloatArray = npt.NDArray[np.float64]

ROUNDS: Final = 3
"""Rounds in which errors are found by residuals, or predictions corrected by simulation, as a rule."""
CORRECTIONS: Final = 12
"""Corrections at most where estimates still move by more than ``MOVING``: each leaves about half of what the
one before it left, for derivatives are those of the approximate solver."""
STILL: Final = 0.1
"""Part of its standard deviation that an estimate may still move by when iterations end."""
MOVING: Final = 1.0
"""The same after three rounds of simulation: those of other values end at other times, with other luck."""
WORTH_CORRECTING: Final = 4.0
"""Whole-number alternatives whose E is less than this many times the best one's are corrected as well."""
FIRST_LOOK: Final = 4
"""Evaluations after which a combination of whole numbers has shown how good it can become."""
LARGEST_WHOLE: Final = 10_000
LARGEST_LEARNED: Final = 0.3
"""Relative error of a figure, learned from residuals, beyond which the figure itself is in doubt."""
ON_BOUND: Final = 1e-4
"""How near to a bound, relative to its scale, an estimate counts as being on it."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A parameter that is to be fitted.

    Attributes:
        parameter: Which, and its bounds.
        start: The value to begin with; None = the model's.
        expert: Expert knowledge of it; None if there is none.
    """

    parameter: Parameter
    start: float | None = None
    expert: Expert | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to fit.

    Attributes:
        level: Confidence level of all intervals.
        method: Of the intervals.
        correct: Correct an approximate solver by simulation.
        seed: Of simulations and bootstrap.
    """

    level: float = 0.95
    method: Method = "auto"
    correct: bool = True
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A fitted model.

    Attributes:
        model: With the fitted values.
        parameters, values, intervals: The parameters in the order asked for, whole numbers too.
        joint: Bonferroni intervals.
        problem, solution, confidence: Of the n parameters that are no whole numbers, with the others fixed.
        whole: E of every combination of whole numbers that was tried.
        squares: E.
        residuals: Predicted minus measured, in standard deviations; shape (trials, measures).
        exact: The solver was.
        corrections: How often predictions were corrected by simulation.
        warnings: What is doubtful, one sentence each.
    """

    model: Model
    parameters: tuple[Parameter, ...]
    values: tuple[float, ...]
    intervals: tuple[Interval, ...]
    joint: tuple[Interval, ...]
    problem: Problem
    solution: Solution
    confidence: Confidence | None
    whole: dict[tuple[int, ...], float]
    squares: float
    residuals: FloatArray
    exact: bool
    corrections: int
    warnings: tuple[str, ...]

    @property
    def freedom(self) -> int:
        """Measured values minus fitted parameters."""
        return self.problem.values - len(self.parameters)

    @property
    def learned_errors(self) -> dict[str, float] | None:
        """Relative standard deviation of a mean by figure, if errors were learned from residuals."""
        if self.problem.errors.source != "residuals":
            return None
        deviations = np.sqrt(np.array([np.diag(c) for c in self.problem.errors.covariances]))
        measured = self.problem.measured
        # Of what is predicted: beside means that are too large by a factor, their errors look small.
        levels = np.abs(self.problem.forward.means(self.solution.values) + self.problem.correction)
        found = {}
        for index, name in enumerate(self.problem.data.measures):
            there = np.isfinite(measured[:, index]) & (levels[:, index] > 0)
            if there.any():
                found[name] = float(np.median(deviations[there, index] / levels[there, index]))
        return found

    @property
    def p_value(self) -> float | None:
        """How likely residuals as large as these are if the model is right; None if they are all there is."""
        if self.problem.errors.source == "residuals" or self.freedom < 1:
            return None
        errors = self.problem.errors
        # Where the covariance is an estimate, too, E per degree of freedom is like a ratio of two variances.
        known = errors.freedom if errors.source == "rows" else 1e9
        return float(fdtrc(self.freedom, known, self.squares / self.freedom / errors.inflation))


def fit(model: Model, data: Data, wanted: Sequence[Wanted], options: Options | None = None) -> Fit:
    """Fit parameters of a model to measurements.

    Args:
        model: Its structure; values of the parameters are where the search starts.
        data: The measurements.
        wanted: The parameters.
        options: How to fit.

    Raises:
        UsageError: A parameter is unknown, set by the data as well, or there are more of them than
            measured values.
        UncalibratedError: Numbers are missing that are not to be fitted.
        ModelError, SimulationError: The model cannot be estimated or simulated under some configuration.
    """
    return _Fitting(model, data, wanted, options or Options()).run()


@dataclass(slots=True)
class _State:
    """The best fit for one combination of whole numbers."""

    model: Model
    problem: Problem
    solution: Solution
    corrections: int = 0
    simulated: Simulated | None = None
    converged: bool = True


class _Fitting:
    def __init__(self, model: Model, data: Data, wanted: Sequence[Wanted], options: Options) -> None:
        self.data, self.wanted, self.options = data, wanted, options
        self._check(wanted)
        self.starts = [_start(w, model) for w in wanted]
        self.law_warnings = check_laws(model, data, [w.parameter for w in wanted])
        self.whole = [i for i, w in enumerate(wanted) if w.parameter.whole]
        self.rest = [i for i, w in enumerate(wanted) if not w.parameter.whole]
        self.parameters = [wanted[i].parameter for i in self.rest]
        typical = [abs(self.starts[i]) for i in self.rest if self.starts[i] != 0]
        usual = float(np.median(typical)) if typical else 1.0
        self.start = np.array([self.starts[i] for i in self.rest])
        self.scales = np.array([abs(s) if s != 0 else usual for s in self.start])
        self.experts = {k: e for k, i in enumerate(self.rest) if (e := wanted[i].expert) is not None}
        self.base = model
        for k, i in enumerate(self.rest):
            self.base = wanted[i].parameter.apply(
                self.base, self.scales[k] if self.start[k] == 0 else self.start[k]
            )
        self.tried: dict[tuple[int, ...], _State] = {}

    def _check(self, wanted: Sequence[Wanted]) -> None:
        paths = [w.parameter.path for w in wanted]
        for path in paths:
            if paths.count(path) > 1:
                raise UsageError(f"{path!r} is to be estimated twice")
            if any(setting.path == path for t in self.data.trials for setting, _ in t.settings):
                raise UsageError(
                    f"{path!r} is to be estimated, and a column of the measurements sets it",
                    hint="leave it out of one of them",
                )
        for w in wanted:
            if w.parameter.whole and w.expert is not None:
                raise UsageError(
                    f"{w.parameter.path!r} is a whole number: give it bounds instead of an expert's interval"
                )
        known = self.data.values + sum(w.expert is not None for w in wanted)
        # Where measurements say how sure they are, as many as parameters suffice.
        needed = len(wanted) + (errors_of(self.data).source == "residuals")
        if known < needed:
            raise UsageError(
                f"{len(wanted)} parameters cannot be fitted to {known} values with anything left to tell how "
                "sure they are",
                hint="measure more figures or configurations, or fit fewer parameters",
            )

    def run(self) -> Fit:
        best = self._search()
        if self.options.correct and not best.problem.forward.exact:
            best = self._corrected_search(best)
        return self._report(best)

    # ------------------------------------------------------------------ whole numbers

    def _search(self) -> _State:
        """Walk from combination to combination of whole numbers while one next to the best is better."""
        here = tuple(int(self.starts[i]) for i in self.whole)
        best = self._state(here, self.start)
        if not math.isfinite(best.solution.squares):
            raise SimulationError(
                "the model cannot be solved where the search starts, for one of the configurations at least",
                where=best.model.name,
                hint="start elsewhere: --estimate PATH=START",
            )
        moved = True
        while moved:
            moved = False
            for near in self._neighbours(here):
                state = self._state(near, best.solution.values, best.solution.squares)
                if state.solution.squares < best.solution.squares:
                    here, best, moved = near, state, True
        return best

    def _neighbours(self, here: tuple[int, ...]) -> list[tuple[int, ...]]:
        found = []
        for k, i in enumerate(self.whole):
            parameter = self.wanted[i].parameter
            for step in (-1, 1):
                near = here[k] + step
                if parameter.low <= near <= min(parameter.high, LARGEST_WHOLE):
                    found.append((*here[:k], near, *here[k + 1 :]))
        return found

    def _state(self, whole: tuple[int, ...], start: FloatArray, best: float = math.inf) -> _State:
        if whole not in self.tried:
            model = self.base
            for i, value in zip(self.whole, whole, strict=True):
                model = self.wanted[i].parameter.apply(model, value)
            self.tried[whole] = self._fit(model, start, best)
        return self.tried[whole]

    def _corrected_search(self, best: _State) -> _State:
        """Correct the best combination and those that come close, and return the best of these."""
        limit = WORTH_CORRECTING * best.solution.squares
        close = [s for s in self.tried.values() if s.solution.squares <= limit]
        for state in close:
            self._correct(state)
        return min(close, key=lambda s: s.solution.squares)

    # ------------------------------------------------------------------ one combination

    def _fit(self, model: Model, start: FloatArray, best: float) -> _State:
        """Fit one combination; not to the end if it is far from the best one so far."""
        trials = [t.settings for t in self.data.trials]
        forward = forward_of(model, self.parameters, self.scales, trials, self.data.measures)
        errors = errors_of(self.data)
        problem = Problem.of(self.parameters, self.scales, forward, self.data, errors, self.experts)
        solution = minimise(
            problem, start, evaluations=FIRST_LOOK if math.isfinite(best) else MAX_EVALUATIONS
        )
        if math.isfinite(best):
            if solution.squares > WORTH_CORRECTING * best:
                return _State(model, problem, solution)
            solution = minimise(problem, solution.values)
        return self._with_errors(_State(model, problem, solution))

    def _with_errors(self, state: _State) -> _State:
        """Find out about the errors of measurements by what was fitted, and fit again."""
        rounds = ROUNDS if state.problem.errors.source == "residuals" else 1
        for _ in range(rounds):
            problem, solution = state.problem, state.solution
            errors = self._errors(problem.forward.means(solution.values) + problem.correction, state)
            state.problem = self._problem(problem, errors, problem.correction)
            state.solution = minimise(state.problem, solution.values)
            if self._moved(state, solution.values) <= STILL:
                break
        return state

    def _correct(self, state: _State) -> None:
        """Correct predictions by simulation and fit again."""
        trials = [t.settings for t in self.data.trials]
        relative = self._relative(state.problem.errors)
        state.converged = False
        while state.corrections < CORRECTIONS and not state.converged:
            before = state.solution.values
            found = simulated_means(
                state.model, self.parameters, before, trials, self.data.measures,
                relative=relative, seed=own_seed(self.data, self.options.seed),
            )  # fmt: skip
            state.simulated, state.corrections = found, state.corrections + 1
            correction = found.means - state.problem.forward.means(before)
            errors = self._errors(found.means, state)
            state.problem = self._problem(state.problem, errors, correction)
            state.solution = minimise(state.problem, before)
            self._with_errors(state)
            allowed = STILL if state.corrections < ROUNDS else MOVING
            state.converged = self._moved(state, before) <= allowed

    def _errors(self, predicted: FloatArray, state: _State) -> Errors:
        """Return what is known about the errors of measured means, and of simulated ones on top."""
        errors = errors_of(self.data, predicted, len(self.wanted))
        if state.simulated is None or errors.source == "residuals":
            return errors
        more = np.array([np.diag(v) for v in state.simulated.variances])
        return replace(errors, covariances=errors.covariances + more)

    def _problem(self, before: Problem, errors: Errors, correction: FloatArray | float) -> Problem:
        return Problem.of(
            self.parameters, self.scales, before.forward, self.data, errors, self.experts, correction
        )

    def _moved(self, state: _State, before: FloatArray) -> float:
        """Return by how much the estimate that moved most has moved, in standard deviations."""
        if not len(before):
            return 0.0
        deviations = np.sqrt(np.diag(state.problem.covariance(state.solution.values)))
        apart = np.abs(state.solution.values - before)
        return float(np.max(np.divide(apart, deviations, out=np.zeros_like(apart), where=apart > 0)))

    def _relative(self, errors: Errors) -> float:
        """Return the typical relative 95 % half-width of what was measured."""
        deviations = np.sqrt(np.array([np.diag(c) for c in errors.covariances]))
        measured = np.abs(np.array([t.means for t in self.data.trials]))
        usable = np.isfinite(measured) & (measured > 0)
        return float(1.96 * np.median(deviations[usable] / measured[usable]))

    # ------------------------------------------------------------------ the result

    def _report(self, best: _State) -> Fit:
        options = self.options
        sure = None
        if self.rest:
            sure = confidence(
                best.problem, best.solution, level=options.level, method=options.method, seed=options.seed
            )
        whole = next(key for key, state in self.tried.items() if state is best)
        factor = 1.0 if sure is None else sure.factor
        t = 1.959964 if sure is None else sure.quantile()
        sets = self._plausible(best, whole, factor * t**2)
        values, intervals, joint = [], [], []
        for i in range(len(self.wanted)):
            if i in self.whole:
                k = self.whole.index(i)
                values.append(float(whole[k]))
                span = Interval(min(s[k] for s in sets), max(s[k] for s in sets), "enumeration")
                intervals.append(span)
                joint.append(span)
            elif sure is not None:
                k = self.rest.index(i)
                values.append(float(best.solution.values[k]))
                intervals.append(sure.intervals[k])
                joint.append(sure.joint[k])
        fitted = best.model
        for parameter, value in zip(self.parameters, best.solution.values, strict=True):
            fitted = parameter.apply(fitted, float(value))
        rest = (
            best.problem.forward.means(best.solution.values) + best.problem.correction - best.problem.measured
        )
        deviations = np.sqrt(np.array([np.diag(c) for c in best.problem.errors.covariances]))
        found = Fit(
            model=fitted,
            parameters=tuple(w.parameter for w in self.wanted),
            values=tuple(values),
            intervals=tuple(intervals),
            joint=tuple(joint),
            problem=best.problem,
            solution=best.solution,
            confidence=sure,
            whole={key: state.solution.squares for key, state in self.tried.items()},
            squares=best.solution.squares,
            residuals=rest / deviations,
            exact=best.problem.forward.exact,
            corrections=best.corrections,
            warnings=(),
        )
        return replace(found, warnings=(*self.law_warnings, *_warnings(found, best, options)))

    def _plausible(self, best: _State, whole: tuple[int, ...], rise: float) -> list[tuple[int, ...]]:
        """Return the combinations of whole numbers that explain the data nearly as well."""
        comparable = {k: s for k, s in self.tried.items() if (s.corrections > 0) == (best.corrections > 0)}
        return [k for k, s in comparable.items() if s.solution.squares <= best.solution.squares + rise] or [
            whole
        ]


def _start(wanted: Wanted, model: Model) -> float:
    """Return the value a search begins with."""
    value = wanted.start
    if value is None and wanted.expert is not None:
        value = wanted.expert.likely
    if value is None:
        value = wanted.parameter.read(model)
    path = wanted.parameter.path
    if value is None:
        raise UncalibratedError(
            f"{path} was never measured, so there is no value to start from", hint=f"give one: {path}=0.01"
        )
    if math.isinf(value):
        raise UsageError(f"{path} is infinite in the model", hint=f"give a value to start from: {path}=4")
    if not wanted.parameter.low <= value <= wanted.parameter.high:
        raise UsageError(
            f"{path} starts at {value:g}, outside of {wanted.parameter.low:g} .. {wanted.parameter.high:g}"
        )
    return value


def _warnings(found: Fit, best: _State, options: Options) -> list[str]:
    warnings = []
    if not best.solution.converged:
        warnings.append("the search was cut off before it converged: start closer, or fit fewer parameters")
    if not best.converged:
        warnings.append(
            f"estimates had not converged in {best.corrections} corrections by simulation: what is left of "
            "the solver's error is not in their intervals"
        )
    p = found.p_value
    if p is not None and p < 0.01:
        warnings.append(
            f"the model does not explain the measurements: residuals like these have probability {p:.2g}; "
            "intervals are widened accordingly, but a wrong structure can be wrong by more"
        )
    for name, error in (found.learned_errors or {}).items():
        if error > LARGEST_LEARNED:
            warnings.append(
                f"{name!r} is off by {error:.0%} on average, and was given little weight for it: check its "
                "unit, what it counts, and the structure of the model; predictions of it are off by as much"
            )
    if not found.exact and not options.correct:
        warnings.append(
            "the solver is approximate and was not corrected by simulation: estimates absorb its error, "
            "which intervals do not contain"
        )
    for k, parameter in enumerate(found.problem.parameters):
        if found.confidence is not None and not math.isfinite(found.confidence.covariance[k, k]):
            warnings.append(f"{parameter.path} has no influence on anything that was measured")
    scales = {p.path: float(s) for p, s in zip(found.problem.parameters, found.problem.scales, strict=True)}
    for parameter, value in zip(found.parameters, found.values, strict=True):
        warnings += _at_bound(parameter, value, ON_BOUND * scales.get(parameter.path, 1.0))
    return warnings


def _at_bound(parameter: Parameter, value: float, close: float) -> Iterator[str]:
    """Yield what to say of an estimate that the search would have taken further."""
    path, low, high = parameter.path, parameter.low, parameter.high
    if parameter.whole:
        high = min(high, LARGEST_WHOLE)
    if value <= low + close and low == 0:
        yield f"{path} ended at 0, the least it can be: what was measured needs none of it, or less than none"
    elif value >= high - close or (value <= low + close and not (parameter.whole and low == 1)):
        yield (
            f"{path} ended at {value:g}, a bound of the search: the measurements ask for"
            f" {'more' if value >= high - close else 'less'}, which its interval does not contain; widen"
            " --bounds, or look for a wrong unit or structure"
        )
