"""Traces, and a layered model with a variation of the times of each task to explain them.

A time becomes exponential stages that have its squared coefficient of variation and the shape of a family
(``service_families``, ``simulator.fluid.phases``). What the model misses the simulation tells, with all
stages. In which direction less would be missed, the fluid tells; there it has fewer stages, for its cost
grows with the square of their number, and what is matched is the simulation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from analyzer.learning.lqn_columns import match_columns
from analyzer.learning.lqn_correction import simulated
from analyzer.learning.lqn_fit import VAGUE, FluidFit, Simulated, residual_scale
from analyzer.learning.lqn_unknowns import with_times
from analyzer.learning.service_families import Family, shape_of
from mup.errors import SimulationError
from mup.lqn.model import Model
from simulator.networks.begun_stages import BegunStages, begun_stages
from simulator.networks.inlined import InlinedLqn, TimeKey, inline
from simulator.networks.inlined_process import InlinedProcess

__all__ = ["MOST_STATES", "Point", "Problem"]

FloatArray = npt.NDArray[np.float64]

STAGES: Final = (20, 10, 5, 3)
"""At most, in the simulation: the first number with which all times may have that many."""
MOST_STATES: Final = 1000
FLUID_STATES: Final = {5: 100, 3: 200, 2: 300}
"""At most, in the fluid, by the number of its stages."""
HIGHEST: Final = 20.0
"""Squared coefficient of variation that is learned."""
DAMPING: Final = 0.7
FAR_TIME, FAR_SCV = 0.7, 0.7
"""The farthest a step goes, in logarithms."""
APART: Final = 0.35
"""From a variation to another one whose difference tells its effect, in logarithms."""
DIRECTIONS, ASIDE = 6, 0.3
"""Of steps, the least certain ones, and how far their response is looked for: the largest change of a
logarithm."""
LEAST_RESPONSE, MOST_RESPONSE = 0.4, 8.0
"""Of a step in any direction."""
SPREAD_OF_SCV: Final = 2.0
"""Standard deviation of the logarithm of a squared coefficient of variation, before any trace was seen."""
REPLICATIONS: Final = 400
"""Of one simulation of a trace, at most."""
EVENTS, EVENTS_OF_FEW = 5_000_000, 1_000_000
"""Of one simulation of all traces, and of some of them, about."""


@dataclass(frozen=True, slots=True)
class Point:
    """Logarithms of the means, shape (P,), and of the variation of each task, shape (G,), and its family."""

    logs: FloatArray
    scv: FloatArray
    family: Family = "stages"


@dataclass(frozen=True, slots=True)
class Problem:
    """Traces, and the model that is to explain them.

    Attributes:
        model: With a number for every time.
        plain: The traces, of the model with exponential times.
        whole: Where they begin, in whole numbers of requests; shape (R, n).
        keys: The learned times.
        tasks: Those which have one.
        stages: Of a time at most, in the simulation and in the fluid.
        seed: Of beginnings.
        events: Of one simulation of all traces, about.
    """

    model: Model
    plain: FluidFit
    whole: FloatArray
    keys: tuple[TimeKey, ...]
    tasks: tuple[str, ...]
    stages: tuple[int, int]
    seed: int
    events: int = EVENTS

    @staticmethod
    def of(model: Model, plain: FluidFit, seed: int) -> Problem:
        """Return the problem for all traces.

        Raises:
            SimulationError: The model has too many states with the fewest stages.
        """
        keys = tuple(plain.lqn.times[i] for i in plain.learned)
        whole = plain.whole_starts(InlinedProcess(plain.lqn), 1, 0)[0]
        problem = Problem(model, plain, whole, keys, tuple(dict.fromkeys(k.task for k in keys)), (1, 1), seed)
        exact, fluid = (problem._most(each) for each in (dict.fromkeys(STAGES, MOST_STATES), FLUID_STATES))
        return replace(problem, stages=(exact, fluid))

    def _most(self, states: Mapping[int, int]) -> int:
        """Return the most stages with which there are no more states than allowed; descending keys."""
        fewest = min(states)
        for stages, allowed in states.items():
            try:
                least = Point(np.empty(0), np.full(len(self.tasks), -math.log(stages)))
                size = self._inlined(least, stages).system.size
            except SimulationError:
                if stages == fewest:
                    raise
                continue
            if size <= allowed:
                return stages
        raise SimulationError(f"the model has {size} states, more than {states[fewest]}")

    @property
    def bounds(self) -> tuple[float, float]:
        """Logarithms of the least and the highest variation."""
        return -math.log(self.stages[0]), math.log(HIGHEST)

    def few(self, traces: int) -> Problem:
        """Return the same for some of the traces."""
        rows = np.unique(np.linspace(0, len(self.whole) - 1, traces).astype(np.int64))
        return replace(self, plain=self.plain.select(rows), whole=self.whole[rows], events=EVENTS_OF_FEW)

    def _inlined(self, point: Point, stages: int) -> InlinedLqn:
        each = dict(zip(self.tasks, np.exp(point.scv).tolist(), strict=True))
        means = dict(zip(self.keys, self.plain.lqn.means[self.plain.learned].tolist(), strict=True))
        times = {key: shape_of(point.family, each[key.task]).scaled(mean) for key, mean in means.items()}
        return inline(with_times(self.model, times), stages=stages)

    def staged(self, point: Point) -> FluidFit:
        """Return the traces of the model with stages, for the variation of a point."""
        names = self.plain.columns.names
        exact, fluid = (self._inlined(point, stages) for stages in self.stages)
        return replace(
            self.plain,
            lqn=fluid,
            learned=_places(fluid, self.keys),
            columns=match_columns(fluid, names),
            starts=self.whole @ begun_stages(self.plain.lqn, fluid),
            simulated=Simulated(
                exact,
                _places(exact, self.keys),
                match_columns(exact, names),
                BegunStages(self.whole, begun_stages(self.plain.lqn, exact), self.seed),
            ),
        )

    def missed(self, point: Point, seed: int) -> FloatArray:
        """Return what the simulated model misses, weighted; shape (R, H M)."""
        fit = self.staged(point)
        found = simulated(fit, point.logs, seed, events=self.events, replications=REPLICATIONS)
        off = (found - fit.data) * fit.weights
        return off.reshape(len(off), -1)

    def slopes(self, point: Point, *, variation: bool = True) -> FloatArray:
        """Return the derivatives of what is missed, as the fluid has them.

        Returns:
            By the logarithms of the means and, if ``variation``, of that of each task; shape (R, H M, P + G).
        """
        # The fluid has a least variation of its own; there, effects are as large as the variation itself.
        least = -math.log(self.stages[1])
        at = np.maximum(point.scv, least)
        fit = self.staged(replace(point, scv=at))
        here, by_mean = fit.predict(point.logs, tangents=True)
        many = len(here)
        slopes = (by_mean * self.plain.weights[:, None]).reshape(many, -1, len(point.logs))
        if not variation:
            return slopes
        found = [slopes]
        for g in range(len(self.tasks)):
            # Towards exponential times, for these have the fewest states; near them, to both sides.
            sides = at[g] - APART * (at[g] > -APART), at[g] + APART * (at[g] < APART)
            less, more = (self._predicted(here, replace(point, scv=at), g, side) for side in sides)
            change = (more - less) * self.plain.weights / (sides[1] - sides[0])
            change *= math.exp(point.scv[g] - at[g])
            found.append(change.reshape(many, -1, 1))
        return np.concatenate(found, axis=2)

    def _predicted(self, here: FloatArray, point: Point, g: int, side: float) -> FloatArray:
        """Return the fluid's columns with another variation of one task."""
        if side == point.scv[g]:
            return here
        scv = np.where(np.arange(len(point.scv)) == g, side, point.scv)
        return self.staged(replace(point, scv=scv)).predict(point.logs)[0]

    def stepped(
        self, point: Point, off: FloatArray, slopes: FloatArray, response: FloatArray | None = None
    ) -> Point:
        """Return where a step leads to.

        Args:
            point: Where it begins.
            off: What is missed there; shape (R, H M).
            slopes: By the means, shape (R, H M, P), or by these and the variation, (R, H M, P + G).
            response: What becomes of a step; None = it leads where the fluid says.
        """
        many = len(point.logs)
        scale = residual_scale(off, slopes)
        ridge, pull = np.full(slopes.shape[2], scale / VAGUE), np.zeros(slopes.shape[2])
        if len(ridge) > many:
            ridge[many:] = scale / SPREAD_OF_SCV
            pull[many:] = point.scv
        jacobian = slopes.reshape(-1, slopes.shape[2])
        squares = jacobian.T @ jacobian + np.diag(ridge**2)
        step = DAMPING * np.linalg.solve(squares, -jacobian.T @ off.ravel() - ridge**2 * pull)
        if response is not None:
            step = response @ step
        low, high = self.plain.bounds
        logs = np.clip(point.logs + np.clip(step[:many], -FAR_TIME, FAR_TIME), low, high)
        scv = point.scv
        if len(step) > many:
            scv = np.clip(scv + np.clip(step[many:], -FAR_SCV, FAR_SCV), *self.bounds)
        return replace(point, logs=logs, scv=scv)

    def response(self, point: Point, slopes: FloatArray, seed: int) -> FloatArray:
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
            step = ASIDE * direction / np.abs(direction).max()
            sides = [
                replace(
                    point,
                    logs=point.logs + way * step[:many],
                    scv=np.clip(point.scv + way * step[many:], *self.bounds),
                )
                for way in (1, -1)
            ]
            there, here = (self.missed(side, seed) for side in sides)
            moves.append(np.concatenate((sides[0].logs - sides[1].logs, sides[0].scv - sides[1].scv)))
            found.append(np.linalg.lstsq(jacobian, (there - here).ravel(), rcond=None)[0])
        made, seen = np.array(moves).T, np.array(found).T
        reaction = np.eye(len(made)) + (seen - made) @ np.linalg.pinv(made)
        # What is nearly lost in the noise of simulations must not lead anywhere.
        left, values, right = np.linalg.svd(reaction)
        return np.asarray(right.T / np.clip(values, 1 / MOST_RESPONSE, 1 / LEAST_RESPONSE) @ left.T)


def _places(lqn: InlinedLqn, keys: tuple[TimeKey, ...]) -> npt.NDArray[np.int64]:
    place = {key: i for i, key in enumerate(lqn.times)}
    return np.array([place[key] for key in keys])
