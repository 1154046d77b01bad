"""Compare nested models: more parameters must explain measurements better than chance.

Source: Woodside, "The Relationship of Performance Models to Data", sections 3.1 and 5.2. The statistic is
[(E1 - E2) / (n2 - n1)] / [E2 / (mT - n2)]; the appendix prints it with the two E exchanged.

A queue that is not there has the demand 0, a bound of the search: chance makes it larger in half of all
cases only, and F has no F distribution but a mixture of several. Its weights are the probabilities that so
many of the parameters at a bound move into the interior, drawn from their covariance. Source: Silvapulle and
Sen, "Constrained Statistical Inference", 2005, sections 3.4 (chi-bar-squared weights) and 3.11 (F-bar test).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls
from scipy.special import fdtrc

from analyzer.fitting.fit import Fit, Wanted
from analyzer.fitting.parameters import Parameter, parameter
from analyzer.fitting.regression import Problem, minimise
from mup.errors import MupError, UsageError, did_you_mean
from mup.lqn.distributions import Constant, Exponential
from mup.lqn.lowered import tasks_behind, tasks_with_sources
from mup.lqn.model import Activity, Entry, Model, Task
from mup.lqn.refs import EntryRef, Names
from simulator.analytic import estimate

__all__ = ["FTest", "check_called", "compare", "kept", "simplified"]

FloatArray = npt.NDArray[np.float64]

USUAL: Final = 0.05
"""Probability below which a difference is called significant."""
AT_BOUND: Final = 0.1
"""Distance from a bound, in standard deviations, of a parameter that is at it."""
REPRODUCED: Final = 0.1
"""E with which the larger structure must reproduce the smaller one's predictions to contain it."""
DRAWS: Final = 4000
"""Of the weights of a mixture: with a standard error of 0.008 at most."""


@dataclass(frozen=True, slots=True)
class FTest:
    """A comparison of two structures fitted to the same measurements.

    Attributes:
        squares: E of the one with fewer parameters, and of the other, with the same weights.
        parameters: Their numbers of parameters.
        statistic, freedom: F and its two degrees of freedom. Of structures with equally many parameters the
            first is 0, and there is no statistic (NaN): the one with the smaller E explains more.
        p_value: How likely an F as large is if the structure with fewer parameters is right; NaN without one.
        at_bound: Parameters that the smaller structure holds at a bound; with any, F has a mixture of
            distributions.
    """

    squares: tuple[float, float]
    parameters: tuple[int, int]
    statistic: float
    freedom: tuple[int, int]
    p_value: float
    at_bound: tuple[str, ...] = ()

    @property
    def significant(self) -> bool:
        """True if the additional parameters explain more than chance would."""
        return self.p_value < USUAL


def compare(one: Fit, other: Fit) -> FTest:
    """Compare two fits to the same measurements.

    The one with fewer parameters (of equally many: ``one``) is fitted once more with the weights of the
    other: where these come from residuals, each fit has its own, and their E could not be compared.

    Raises:
        UsageError: Nothing is left to judge by.
    """
    smaller, larger = sorted((one, other), key=lambda f: len(f.parameters))
    counts = len(smaller.parameters), len(larger.parameters)
    left = larger.freedom
    if left < 1:
        raise UsageError("there are no more measured values than parameters, so nothing to judge a fit by")
    problem = smaller.problem
    again = Problem.of(
        problem.parameters,
        problem.scales,
        problem.forward,
        problem.data,
        larger.problem.errors,
        problem.experts,
        problem.correction,
    )
    refitted = minimise(again, smaller.solution.values)
    squares = refitted.squares, larger.squares
    if counts[0] == counts[1]:
        return FTest(squares, counts, math.nan, (0, left), math.nan)
    gain = (squares[0] - squares[1]) / (counts[1] - counts[0])
    statistic = gain / (squares[1] / left) if squares[1] > 0 else math.inf
    freedom = counts[1] - counts[0], left
    weights, at_bound = _mixture(again, refitted.values, larger, freedom[0])
    p_value = _tail(squares, weights, left + freedom[0])
    return FTest(squares, counts, statistic, freedom, p_value, at_bound)


def _tail(squares: tuple[float, float], weights: FloatArray, known: int) -> float:
    """Return how likely a gain as large is by chance, given the weights of 0, 1, .. further dimensions.

    Args:
        squares: E of the smaller and of the larger structure.
        weights: By number of parameters that have moved away from their bounds; they sum to 1.
        known: Measured values minus parameters of the smaller structure.
    """
    gain = squares[0] - squares[1]
    if gain <= 0:
        return 1.0
    total = 0.0
    for dimensions, weight in enumerate(weights.tolist()):
        if dimensions and weight > 0:
            rest = squares[1] / (known - dimensions)
            statistic = gain / dimensions / rest if rest > 0 else math.inf
            total += weight * float(fdtrc(dimensions, known - dimensions, statistic))
    return total


def _mixture(
    smaller: Problem, values: FloatArray, larger: Fit, further: int
) -> tuple[FloatArray, tuple[str, ...]]:
    """Return the weights of 0 to ``further`` more dimensions, and which parameters the smaller one bounds.

    Where the smaller structure is inside the larger one is found by fitting the larger to what the smaller
    predicts. What is at a bound there, and is no parameter of the smaller one, can only move inwards.
    """
    ordinary = np.eye(further + 1)[further]
    problem = larger.problem
    # Without the corrections by simulation: each structure has its own, with luck of its own.
    target = replace(problem, correction=0.0, experts={}).with_measured(smaller.forward.means(values))
    inside = minimise(target, larger.solution.values)
    covariance = problem.covariance(inside.values)
    if inside.squares > REPRODUCED or not np.isfinite(covariance).all():
        return ordinary, ()
    common = {p.path for p in smaller.parameters}
    deviations = np.sqrt(np.diag(covariance))
    bound = [
        k
        for k, p in enumerate(problem.parameters)
        if p.path not in common
        and min(inside.values[k] - p.low, p.high - inside.values[k]) <= AT_BOUND * deviations[k]
    ]
    if not bound or len(bound) > further:
        return ordinary, ()
    outwards = np.array([
        1.0 if inside.values[k] - problem.parameters[k].low <= AT_BOUND * deviations[k] else -1.0
        for k in bound
    ])  # fmt: skip
    own = covariance[np.ix_(bound, bound)] * np.outer(outwards, outwards)
    free = _moved_inwards(own)
    weights = np.zeros(further + 1)
    weights[further - len(bound) :] = free
    return weights, tuple(problem.parameters[k].path for k in bound)


def _moved_inwards(covariance: FloatArray) -> FloatArray:
    """Return the probabilities that 0, 1, .. of some parameters at 0 are estimated larger than that.

    Args:
        covariance: Of estimates that could be negative, shape (b, b).

    Returns:
        Shape (b + 1,).
    """
    count = len(covariance)
    if count == 1:
        return np.array([0.5, 0.5])
    root = np.linalg.inv(np.linalg.cholesky(covariance))
    random = np.random.default_rng(0)
    inwards = [np.count_nonzero(nnls(root, drawn)[0]) for drawn in random.standard_normal((DRAWS, count))]
    return np.bincount(inwards, minlength=count + 1) / DRAWS


def check_called(model: Model, task: str) -> None:
    """Raise a `UsageError` if a model has no task of a name, or one that is a source of load."""
    called = [t.name for t in model.tasks if not t.is_reference]
    if task not in called:
        raise UsageError(f"no task {task!r} that is called; {did_you_mean(task, called)}")


def simplified(model: Model, task: str) -> tuple[Model, list[Wanted]]:
    """Return the model with a task, and all that only it needs, replaced by a pure delay per entry.

    Args:
        model: A calibrated model.
        task: A task that is called.

    Returns:
        The smaller model, and its delays as parameters that start at the response times the model predicts.

    Raises:
        UsageError: There is no such task, or it is a source of load.
    """
    check_called(model, task)
    times = estimate(model).entries
    names = Names(model.tasks)
    wanted, entries = [], []
    for entry in model.task(task).entries:
        label = names.entries[EntryRef(task, entry.name)]
        seconds = times[label][1] or 0.0
        wait = Activity(name="delay", demand=Constant(0.0), delay=Exponential(seconds))
        entries.append(Entry(name=entry.name, start="delay", activities=(wait,), arrivals=entry.arrivals))
        if seconds > 0:
            wanted.append(Wanted(parameter(f"delay.{label}"), start=seconds))
    delay = Task(name=task, role=model.task(task).role, threads=math.inf, entries=tuple(entries))
    smaller = [delay if t.name == task else t for t in model.tasks]
    reached = _reached(smaller)
    tasks = tuple(t for t in smaller if t.name in reached)
    processors = tuple(
        p
        for p in model.processors
        if any(t.processor == p.name for t in tasks) or any(q.parent == p.name for q in model.processors)
    )
    return replace(model, tasks=tasks, processors=processors, uncertainty=None), wanted


def _reached(tasks: Sequence[Task]) -> set[str]:
    """Return the tasks that load gets to."""
    return tasks_behind(tasks_with_sources(tasks), {t.name: t for t in tasks})


def kept(wanted: Sequence[Wanted], model: Model, task: str) -> list[Wanted]:
    """Return the parameters a model simplified by a task still has, without those of the task itself."""

    def there(parameter: Parameter) -> bool:
        try:
            parameter.read(model)
        except MupError:
            return False
        return parameter.owner(model) != task

    return [w for w in wanted if there(w.parameter)]
