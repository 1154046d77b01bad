"""Learn a layered system whose times are not exponential: means, and the variation of the times of each task.

A time becomes a sequence of exponential stages, or one of two of them, that has its squared coefficient of
variation (``simulator.fluid.code.phases``); the fluid, the exact simulation and the correction work on such a
model as on any other. The search begins at several degrees of variation, the same for all tasks, and goes on
for all at once: the simulation tells what is missed (indirect inference, as in ``lqn_correction``), the fluid
in which direction less would be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from analyzer.learning.explanations import CANNOT_TELL, alike
from analyzer.learning.lqn_columns import match_columns
from analyzer.learning.lqn_correction import Correction, correct, simulated
from analyzer.learning.lqn_fit import VAGUE, FluidFit, residual_scale
from analyzer.learning.lqn_unknowns import with_times
from analyzer.learning.service_families import shape_of
from mup.errors import SimulationError
from mup.lqn.model import Model
from simulator.networks.begun_stages import BegunStages, begun_stages
from simulator.networks.inlined import TimeKey, inline
from simulator.networks.inlined_process import InlinedProcess

__all__ = ["MOST_STAGES", "ShapedTimes", "learn_variation"]

FloatArray = npt.NDArray[np.float64]

MOST_STAGES: Final = 5
MOST_STATES: Final = 60
"""Of 22 states a search takes 20 s of processor time; of 108, more than five minutes."""
LOWEST, HIGHEST = 1 / MOST_STAGES, 20.0
"""Squared coefficients of variation that are learned."""
BEGUN: Final = (0.3, 3.0, 15.0)
"""Those where searches begin."""
FIRST_STEPS, STEPS, REFINED, AVERAGED = 3, 6, 8, 6
"""Of a search with its first variation, of a search, and of the best one; the last of these are averaged."""
DAMPING: Final = 0.7
FAR_TIME, FAR_SCV = 0.7, 0.7
"""The farthest a step goes, in logarithms."""
APART: Final = 0.35
"""From a variation to that of either side, in logarithms."""
DIRECTIONS, ASIDE = 5, 0.2
"""Of steps, the least certain ones, and how far their response is looked for, in logarithms."""
SPREAD_OF_SCV: Final = 2.0
"""Standard deviation of the logarithm of a squared coefficient of variation, before any trace was seen."""
EVENTS: Final = 4_000_000
"""Of one simulation of all traces, about."""
CLOSE: Final = 1.25
"""What a search may miss, in terms of the best one, to be refined."""
ELSEWHERE: Final = 0.1
"""Difference of logarithms of a mean by which two results are not the same."""
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
        others: Logarithms of the means and of the variation of each task that the traces cannot tell from
            these; shapes (P,) and (tasks,).
    """

    everything: FluidFit
    corrected: Correction
    scv: dict[str, float]
    residuals: FloatArray
    slopes: FloatArray
    response: FloatArray
    others: tuple[tuple[FloatArray, FloatArray], ...]

    def widened(self, widths: FloatArray) -> tuple[FloatArray, dict[str, float]]:
        """Return relative half-widths that hold the other results, too: of the times, and of the variation.

        Args:
            widths: Of the times and of the variation of each task, of this result alone; shape (P + tasks,).
        """
        here = np.concatenate((self.corrected.logs, np.log(list(self.scv.values()))))
        reach = widths
        for other in self.others:
            reach = np.maximum(reach, np.abs(np.expm1(np.concatenate(other) - here)) + widths)
        many = len(self.corrected.logs)
        return reach[:many], dict(zip(self.scv, reach[many:].tolist(), strict=True))

    def ambiguities(self) -> list[str]:
        """Return what else explains the traces, one sentence for each of the others."""
        found = []
        for _, scv in self.others:
            each = dict(zip(self.scv, np.exp(scv).tolist(), strict=True))
            task = max(each, key=lambda name: abs(math.log(each[name] / self.scv[name])))
            found.append(
                f"times of {task!r} have a squared coefficient of variation of {self.scv[task]:.2g} or, with"
                f" other means, of {each[task]:.2g}: {CANNOT_TELL}"
            )
        return found


@dataclass(frozen=True, slots=True)
class _Point:
    """Logarithms of the means, shape (P,), and of the variation of each task, shape (G,)."""

    logs: FloatArray
    scv: FloatArray


@dataclass(frozen=True, slots=True)
class _Problem:
    model: Model
    plain: FluidFit
    whole: FloatArray
    keys: tuple[TimeKey, ...]
    tasks: tuple[str, ...]
    seed: int

    @staticmethod
    def of(model: Model, plain: FluidFit, seed: int) -> _Problem:
        keys = tuple(plain.lqn.times[i] for i in plain.learned)
        whole = plain.whole_starts(InlinedProcess(plain.lqn), 1, 0)[0]
        return _Problem(model, plain, whole, keys, tuple(dict.fromkeys(k.task for k in keys)), seed)

    def staged(self, scv: FloatArray) -> FluidFit:
        """Return the traces of the model with stages, for logarithms of the variation."""
        each = dict(zip(self.tasks, np.exp(scv).tolist(), strict=True))
        means = dict(zip(self.keys, self.plain.lqn.means[self.plain.learned].tolist(), strict=True))
        times = {key: shape_of("stages", each[key.task]).scaled(mean) for key, mean in means.items()}
        lqn = inline(with_times(self.model, times), stages=MOST_STAGES)
        if lqn.system.size > MOST_STATES:
            raise SimulationError(f"the model has {lqn.system.size} states, more than {MOST_STATES}")
        odds = begun_stages(self.plain.lqn, lqn)
        place = {key: i for i, key in enumerate(lqn.times)}
        return FluidFit(
            lqn,
            np.array([place[key] for key in self.keys]),
            match_columns(lqn, self.plain.columns.names),
            self.whole @ odds,
            self.plain.data,
            self.plain.dt,
            self.plain.weights,
            BegunStages(self.whole, odds, self.seed),
        )

    def missed(self, fit: FluidFit, logs: FloatArray, seed: int) -> FloatArray:
        """Return what the simulated model misses, weighted; shape (R, H M)."""
        off = (simulated(fit, logs, seed, events=EVENTS) - fit.data) * fit.weights
        return off.reshape(len(off), -1)

    def by_variation(self, point: _Point) -> FloatArray:
        """Return how that changes with the logarithm of each variation; shape (R, H M, G)."""
        found = []
        for g in range(len(self.tasks)):
            up, down = point.scv.copy(), point.scv.copy()
            up[g] = min(up[g] + APART, math.log(HIGHEST))
            down[g] = max(down[g] - APART, math.log(LOWEST))
            more, less = (self.staged(s).predict(point.logs)[0] for s in (up, down))
            change = (more - less) * self.plain.weights / (up[g] - down[g])
            found.append(change.reshape(len(change), -1))
        return np.stack(found, axis=2)

    def stepped(self, point: _Point, seed: int, *, variation: bool) -> tuple[_Point, FloatArray]:
        """Return where a step leads to, and what was missed before; shape (R, H M)."""
        fit = self.staged(point.scv)
        off = self.missed(fit, point.logs, seed)
        slopes = fit.linearised(point.logs)[1]
        scale = residual_scale(off, slopes)
        ridge = np.full(slopes.shape[2], scale / VAGUE)
        pull = np.zeros(len(ridge))
        if variation:
            slopes = np.concatenate((slopes, self.by_variation(point)), axis=2)
            ridge = np.append(ridge, np.full(len(point.scv), scale / SPREAD_OF_SCV))
            pull = np.append(pull, point.scv)
        jacobian = slopes.reshape(-1, slopes.shape[2])
        squares = jacobian.T @ jacobian + np.diag(ridge**2)
        step = np.linalg.solve(squares, -jacobian.T @ off.ravel() - ridge**2 * pull)
        many = len(point.logs)
        low, high = fit.bounds
        logs = np.clip(point.logs + DAMPING * np.clip(step[:many], -FAR_TIME, FAR_TIME), low, high)
        scv = point.scv
        if variation:
            scv = scv + DAMPING * np.clip(step[many:], -FAR_SCV, FAR_SCV)
            scv = np.clip(scv, math.log(LOWEST), math.log(HIGHEST))
        return _Point(logs, scv), off

    def response(self, point: _Point, slopes: FloatArray, seed: int) -> FloatArray:
        """Return what becomes of a step: where the data differ little, the fluid differs more.

        Args:
            point: Where.
            slopes: Derivatives of what is missed; shape (R, H M, P + G).
            seed: Of simulations on both sides along the least certain directions.
        """
        jacobian = slopes.reshape(-1, slopes.shape[2])
        many = len(point.logs)
        moves, found = [], []
        for direction in np.linalg.eigh(jacobian.T @ jacobian)[1].T[:DIRECTIONS]:
            sides = [
                _Point(
                    point.logs + step[:many],
                    np.clip(point.scv + step[many:], math.log(LOWEST), math.log(HIGHEST)),
                )
                for step in (ASIDE * direction, -ASIDE * direction)
            ]
            there, here = (self.missed(self.staged(p.scv), p.logs, seed) for p in sides)
            moves.append(np.concatenate((sides[0].logs - sides[1].logs, sides[0].scv - sides[1].scv)))
            found.append(np.linalg.lstsq(jacobian, (there - here).ravel(), rcond=None)[0])
        made, seen = np.array(moves).T, np.array(found).T
        reaction = np.eye(len(made)) + (seen - made) @ np.linalg.pinv(made)
        return np.asarray(np.linalg.pinv(reaction))


def learn_variation(
    model: Model,
    plain: FluidFit,
    training: npt.NDArray[np.int64],
    exponential: Correction,
    *,
    seed: int,
) -> ShapedTimes | None:
    """Learn means and variation; None if exponential times explain the traces as well.

    Args:
        model: With a number for every time.
        plain: All traces, of the model with exponential times.
        training: Rows of the traces to fit.
        exponential: The best that can be said with these.
        seed: Same seed, same result.

    Raises:
        SimulationError: The model has too many states with stages.
    """
    problem, base = _Problem.of(model, plain, seed), 1000 * seed
    found = [_searched(problem, exponential.logs, scv, seed=base + 20 * k) for k, scv in enumerate(BEGUN)]
    least = min(missed for _, missed in found)
    refined = [
        _refined(problem, point, seed=base + 100 + 20 * k)
        for k, (point, missed) in enumerate(found)
        if missed < CLOSE * least
    ]
    points = [point for point, _ in refined]
    missed = np.array(
        [np.square(problem.missed(problem.staged(p.scv), p.logs, base + 99)).mean(axis=1) for p in points]
    )
    best, *rest = alike(missed)
    point = points[best]
    everything = problem.staged(point.scv)
    corrected = correct(everything, training, point.logs, seed=seed)
    now, before = (
        float(np.square((c.simulated - plain.data) * plain.weights).mean()) for c in (corrected, exponential)
    )
    if now >= DECISIVE * before:
        return None
    final = _Point(corrected.logs, point.scv)
    slopes = np.concatenate((everything.linearised(final.logs)[1], problem.by_variation(final)), axis=2)
    return ShapedTimes(
        everything,
        corrected,
        dict(zip(problem.tasks, np.exp(point.scv).tolist(), strict=True)),
        refined[best][1][training],
        slopes[training],
        problem.response(final, slopes, base + 150),
        tuple(
            (points[k].logs, points[k].scv)
            for k in rest
            if (np.abs(points[k].logs - point.logs) > ELSEWHERE).any()
        ),
    )


def _refined(problem: _Problem, point: _Point, *, seed: int) -> tuple[_Point, FloatArray]:
    """Return the mean of the last of some steps, and what they had left; shape (R, H M)."""
    points, left = [], []
    for k in range(REFINED):
        point, off = problem.stepped(point, seed + k, variation=True)
        points.append(point)
        left.append(off)
    last = points[-AVERAGED:]
    mean = _Point(np.mean([p.logs for p in last], axis=0), np.mean([p.scv for p in last], axis=0))
    return mean, np.mean(left[-AVERAGED:], axis=0)


def _searched(problem: _Problem, logs: FloatArray, scv: float, *, seed: int) -> tuple[_Point, float]:
    """Return where a search leads to that begins at a degree of variation, and what is missed there."""
    point = _Point(logs, np.full(len(problem.tasks), math.log(scv)))
    for k in range(FIRST_STEPS + STEPS):
        point, _ = problem.stepped(point, seed + k, variation=k >= FIRST_STEPS)
    missed = problem.missed(problem.staged(point.scv), point.logs, seed + FIRST_STEPS + STEPS)
    return point, float(np.square(missed).mean())
