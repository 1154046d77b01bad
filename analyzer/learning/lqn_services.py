"""Learn a layered system whose times are not exponential: means, and the variation of the times of each task.

The search (on ``lqn_service_problem``) begins at several degrees of variation, the same for all tasks, and
goes on for all at once: the simulation tells what is missed (indirect inference, as in ``lqn_correction``),
the fluid in which direction less would be. Some of the traces tell which beginnings are worth being followed
with all of them. Where the fluid reacts more than the model does, steps would be too short; simulations along
the least certain directions tell by how much.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from analyzer.learning.explanations import CANNOT_TELL, alike
from analyzer.learning.lqn_correction import Correction, correct
from analyzer.learning.lqn_fit import FluidFit
from analyzer.learning.lqn_service_problem import Point, Problem
from analyzer.learning.service_families import Family
from mup.lqn.model import Model

__all__ = ["OnProgress", "ShapedTimes", "learn_variation"]

FloatArray = npt.NDArray[np.float64]
OnProgress = Callable[[str], None]

VARIED: Final = 0.5
"""Squared coefficient of variation from which on a lognormal time is something else than stages."""
BEGUN: Final = (0.08, 0.3, 3.0, 15.0)
"""Squared coefficients of variation where searches begin."""
FIRST_STEPS, STEPS, ANEW = 3, 6, 3
"""Of a search with its first variation, and with every task's own; after how many directions are new."""
APPROACH, REFINED, AWAY = 4, 8, 2
"""Steps with all traces, and those of searches that are left; the first ones are not averaged."""
SEARCHED: Final = 20
"""Traces from which it is found where to refine."""
WORSE: Final = 1.2
"""What a step may miss, in terms of the best one before."""
CLOSE, FOLLOWED = 1.25, 2
"""What a search may miss, in terms of the best one, to be followed with all traces, and how many are."""
ELSEWHERE, ELSEWHERE_SCV = 0.1, 0.4
"""Differences of logarithms of a mean and of a variation by which two results are not the same."""
DECISIVE: Final = 0.95
"""Times with stages have to miss less than this part of what exponential ones miss."""


@dataclass(frozen=True, slots=True)
class ShapedTimes:
    """A model with times that are not exponential.

    Attributes:
        everything: All traces, of the model with stages.
        corrected: Of its times.
        scv: Squared coefficient of variation of the learned times of each task.
        residuals: What the last steps of the search had left of the training traces, weighted: the scatter of
            traces and of simulations; shape (training, H M).
        slopes: Their derivatives by the logarithms of the means and of the variations, as the fluid has them;
            shape (training, H M, P + tasks).
        response: What becomes of a step with these; shape (P + tasks, P + tasks).
        family: Of their shapes.
        others: What the traces cannot tell from these.
    """

    everything: FluidFit
    corrected: Correction
    scv: dict[str, float]
    residuals: FloatArray
    slopes: FloatArray
    response: FloatArray
    family: Family
    others: tuple[Point, ...]

    def widened(self, widths: FloatArray) -> tuple[FloatArray, dict[str, float]]:
        """Return relative half-widths that hold the other results, too: of the times, and of the variation.

        Args:
            widths: Of the times and of the variation of each task, of this result alone; shape (P + tasks,).
        """
        here = np.concatenate((self.corrected.logs, np.log(list(self.scv.values()))))
        reach = widths
        for other in self.others:
            apart = np.abs(np.expm1(np.concatenate((other.logs, other.scv)) - here))
            reach = np.maximum(reach, apart + widths)
        many = len(self.corrected.logs)
        return reach[:many], dict(zip(self.scv, reach[many:].tolist(), strict=True))

    def ambiguities(self) -> list[str]:
        """Return what else explains the traces, one sentence for each that is not about the same."""
        found = []
        own = Point(self.corrected.logs, np.log(list(self.scv.values())))
        for other in _apart([own, *self.others])[1:]:
            each = dict(zip(self.scv, np.exp(other.scv).tolist(), strict=True))
            task = max(each, key=lambda name: abs(math.log(each[name] / self.scv[name])))
            found.append(
                f"times of {task!r} have a squared coefficient of variation of {self.scv[task]:.2g} or, with"
                f" other means, of {each[task]:.2g}: {CANNOT_TELL}"
            )
        return found


def learn_variation(
    model: Model,
    plain: FluidFit,
    training: npt.NDArray[np.int64],
    exponential: Correction,
    *,
    seed: int,
    on_progress: OnProgress,
) -> ShapedTimes | None:
    """Learn means and variation; None if exponential times explain the traces as well.

    Args:
        model: With a number for every time.
        plain: All traces, of the model with exponential times.
        training: Rows of the traces to fit.
        exponential: The best that can be said with these.
        seed: Same seed, same result.
        on_progress: Called with what is being done.

    Raises:
        SimulationError: The model has too many states with stages.
    """
    problem, base = Problem.of(model, plain, seed), 1000 * seed
    few = problem.few(SEARCHED)
    found = []
    # Where there are few stages, the two least ones are the same.
    begun = list(dict.fromkeys(max(math.log(scv), problem.bounds[0]) for scv in BEGUN))
    for k, scv in enumerate(begun):
        on_progress(f"times are not exponential: search {k + 1} of {len(begun)} for their variation")
        found.append(_searched(few, exponential.logs, scv, seed=base + 20 * k))
    found.sort(key=lambda each: each[1])
    close = _apart([point for point, missed in found if missed < CLOSE * found[0][1]])
    on_progress(f"times are not exponential: more steps of the best searches ({len(close[:FOLLOWED])})")
    ways = [_Way.begun(problem, point, base + 100 + 50 * k) for k, point in enumerate(close[:FOLLOWED])]
    ways = [way.followed(problem, APPROACH) for way in ways]
    point = ways[_alike(problem, ways, base + 98)[0]].point
    if (point.scv > math.log(VARIED)).any():
        way = _Way.begun(problem, replace(point, family="lognormal"), base + 300)
        ways.append(way.followed(problem, APPROACH))
    ways = [ways[k] for k in _alike(problem, ways, base + 98)]
    on_progress(f"times are not exponential: last steps of the best searches ({len(ways)})")
    ways = [way.followed(problem, REFINED, anew=True) for way in ways]
    ways = [ways[k] for k in _alike(problem, ways, base + 99)]
    best = ways[0]
    everything = problem.staged(best.point)
    corrected = correct(everything, training, best.point.logs, seed=seed)
    now, before = (
        float(np.square((c.simulated - plain.data) * plain.weights).mean()) for c in (corrected, exponential)
    )
    if now >= DECISIVE * before:
        return None
    return ShapedTimes(
        everything,
        corrected,
        dict(zip(problem.tasks, np.exp(best.point.scv).tolist(), strict=True)),
        best.left[training],
        best.slopes[training],
        best.response,
        best.point.family,
        tuple(way.point for way in ways[1:]),
    )


def _alike(problem: Problem, ways: Sequence[_Way], seed: int) -> list[int]:
    """Return the best of some ways, and those that the traces cannot tell from it.

    What is seen of a tail is little, and the mean hangs on all of it: another family that misses a little
    more cannot be ruled out.
    """
    missed = np.array([np.square(problem.missed(way.point, seed)).mean(axis=1) for way in ways])
    found = alike(missed)
    best, family = missed[found[0]].mean(), ways[found[0]].point.family
    others = [
        k for k, way in enumerate(ways) if way.point.family != family and missed[k].mean() < CLOSE * best
    ]
    return found + [k for k in others if k not in found]


def _apart(points: Sequence[Point]) -> list[Point]:
    """Return the first of each group of points that are about the same."""
    kept: list[Point] = []
    for point in points:
        if all(
            (np.abs(point.logs - other.logs) > ELSEWHERE).any()
            or (np.abs(point.scv - other.scv) > ELSEWHERE_SCV).any()
            for other in kept
        ):
            kept.append(point)
    return kept


@dataclass(frozen=True, slots=True)
class _Way:
    """Where some steps have led to.

    Attributes:
        point: The mean of the last ones: the noise of simulations averages out.
        seed: Of what follows.
        slopes: Derivatives of what is missed, before the last steps; shape (R, H M, P + G).
        response: What becomes of a step; shape (P + G, P + G).
        left: What the last steps had left; shape (R, H M).
    """

    point: Point
    seed: int
    slopes: FloatArray
    response: FloatArray
    left: FloatArray

    @staticmethod
    def begun(problem: Problem, point: Point, seed: int) -> _Way:
        """Return the way that begins at a point."""
        slopes = problem.slopes(point)
        response = problem.response(point, slopes, seed)
        return _Way(point, seed + 1, slopes, response, np.zeros(slopes.shape[:2]))

    def followed(self, problem: Problem, steps: int, *, anew: bool = False) -> _Way:
        """Return where so many steps more lead to, in directions as they were or computed anew."""
        slopes = problem.slopes(self.point) if anew else self.slopes
        points, left = [], []
        at = self.point
        best, least = (at, self.left), math.inf
        response: FloatArray | None = self.response
        for k in range(steps):
            off = problem.missed(at, self.seed + k)
            missed = float(np.square(off).mean())
            if missed > WORSE * least:
                # Back to the best one, and on as the fluid says.
                (at, off), response = best, None
            elif missed < least:
                best, least = (at, off), missed
            left.append(off)
            at = problem.stepped(at, off, slopes, response)
            points.append(at)
        last = points[AWAY:]
        mean = replace(
            self.point,
            logs=np.mean([p.logs for p in last], axis=0),
            scv=np.mean([p.scv for p in last], axis=0),
        )
        return _Way(mean, self.seed + steps, slopes, self.response, np.mean(left[AWAY:], axis=0))


def _searched(problem: Problem, logs: FloatArray, scv: float, *, seed: int) -> tuple[Point, float]:
    """Return where a search leads to that begins at a variation (logarithm), and what is missed there."""
    point = Point(logs, np.full(len(problem.tasks), scv))
    for k in range(FIRST_STEPS + STEPS):
        if k % ANEW == 0:
            slopes = problem.slopes(point, variation=k >= FIRST_STEPS)
        point = problem.stepped(point, problem.missed(point, seed + k), slopes)
    return point, float(np.square(problem.missed(point, seed + FIRST_STEPS + STEPS)).mean())
