"""Fit times so that the fluid of an inlined model follows the traces.

Nonlinear least squares on the logarithms of the means, by a trust-region method with the cell's own tangents
(``simulator.networks.inlined_fluid``), from several starts: a linear one (``linear_start``) where the columns
show every state, and random ones. The thesis (section 4.2.2) minimises the mean absolute error by gradient
descent instead; squares have second-order methods, and so need a dozen evaluations instead of thousands. A
column's residuals are divided by the square root of its mean, for numbers of requests scatter like that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.linalg import null_space
from scipy.optimize import least_squares, nnls

from analyzer.learning.lqn_columns import Columns
from simulator.networks.begun_stages import BegunStages
from simulator.networks.inlined import InlinedLqn
from simulator.networks.inlined_fluid import FluidCell
from simulator.networks.inlined_process import InlinedProcess

__all__ = [
    "Fit",
    "FluidFit",
    "Simulated",
    "column_weights",
    "jackknife_spread",
    "linear_start",
    "residual_scale",
    "vague_groups",
]

FloatArray = npt.NDArray[np.float64]

SHORTEST: Final = 200
"""The shortest time that is looked for is this part of the time between two samples."""
LONGEST: Final = 100.0
"""The longest one is so many times the length of a trace."""
EVALUATIONS: Final = 12
FIRST_EVALUATIONS: Final = 5
MIDDLE_EVALUATIONS: Final = 20
FIRST_TRACES: Final = 8
SPREAD: Final = 0.7
"""Standard deviation of the random starts, in logarithms."""
SAME: Final = 1.02
"""Starts whose costs differ by less than this factor have arrived at the same place."""
VAGUE: Final = 0.5
"""A logarithm with a larger standard error is not known."""
RIDGE: Final = 1e-12
"""Directions with less than this part of the information are not determined and stay out."""
OFFSET: Final = 0.02
"""Added to the mean of a column before it becomes a weight, as a part of the mean of all."""


@dataclass(frozen=True, slots=True)
class Fit:
    """Where the search ended.

    Attributes:
        logs: Logarithms of the learned means; shape (P,).
        cost: Half the sum of squared residuals.
        agreeing: Part of the starts that came to about the same cost (1 if there was one start).
    """

    logs: FloatArray
    cost: float
    agreeing: float = 1.0


@dataclass(frozen=True, slots=True)
class Simulated:
    """What is simulated of a model whose times have stages: all of them, where the fluid has fewer.

    Attributes:
        lqn: The model; n states.
        learned: Indices of the learned times; shape (P,).
        columns: M.
        begun: In which stages requests begin.
    """

    lqn: InlinedLqn
    learned: npt.NDArray[np.int64]
    columns: Columns
    begun: BegunStages


@dataclass(frozen=True, slots=True)
class FluidFit:
    """R traces of H samples and M columns; T times of the model, P of them learned.

    Attributes:
        lqn: The model.
        learned: Indices of the learned times; shape (P,).
        columns: M.
        starts: Where the traces begin; shape (R, n).
        data: What the columns say; shape (R, H, M).
        dt: Seconds between samples.
        weights: Residuals are multiplied by them; shape (M,).
        simulated: Where times have stages: the model that is simulated; None if it is that of the fluid.
    """

    lqn: InlinedLqn
    learned: npt.NDArray[np.int64]
    columns: Columns
    starts: FloatArray
    data: FloatArray
    dt: float
    weights: FloatArray
    simulated: Simulated | None = None

    @property
    def bounds(self) -> tuple[float, float]:
        """Logarithms of the shortest and the longest time."""
        seconds = self.dt * (self.data.shape[1] - 1)
        return float(np.log(self.dt / SHORTEST)), float(np.log(LONGEST * seconds))

    def means(self, logs: FloatArray) -> FloatArray:
        """Return the means of all times; shape (T,)."""
        return _with_learned(self.lqn, self.learned, logs)

    def process(self) -> InlinedProcess:
        """Return what simulates the model."""
        return InlinedProcess(self.lqn if self.simulated is None else self.simulated.lqn)

    def simulated_means(self, logs: FloatArray) -> FloatArray:
        """Return the means of all times of the model that is simulated."""
        if self.simulated is None:
            return self.means(logs)
        return _with_learned(self.simulated.lqn, self.simulated.learned, logs)

    def columns_of(self, simulated: FloatArray) -> FloatArray:
        """Return the columns for simulated requests per state; shapes (R, H, M) and (R, H, n)."""
        columns = self.columns if self.simulated is None else self.simulated.columns
        return np.asarray(simulated @ columns.counts.T)

    def select(self, rows: npt.NDArray[np.int64]) -> FluidFit:
        """Return the same for some of the traces."""
        simulated = self.simulated
        if simulated is not None:
            simulated = replace(simulated, begun=simulated.begun.select(rows))
        return replace(self, starts=self.starts[rows], data=self.data[rows], simulated=simulated)

    def whole_starts(self, process: InlinedProcess, many: int, draw: int) -> FloatArray:
        """Return where simulations of the traces begin, in whole numbers; shape (D, R, n).

        Args:
            process: Of the model that is simulated.
            many: D where times have stages, and the first ones are drawn; else D is 1.
            draw: Of the random numbers.
        """
        if self.simulated is not None:
            return self.simulated.begun.drawn(many, draw)
        return np.array([[process.whole(row) for row in self.starts]])

    def few(self, traces: int, samples: int) -> FluidFit:
        """Return the same for the first samples of some traces."""
        rows = np.unique(np.linspace(0, len(self.data) - 1, traces).astype(np.int64))
        return replace(self.select(rows), data=self.data[rows, :samples])

    def at(self, dt: float) -> FluidFit:
        """Return the same with another time between samples, in seconds."""
        return replace(self, dt=dt)

    def predict(self, logs: FloatArray, *, tangents: bool = False) -> tuple[FloatArray, FloatArray]:
        """Return the fluid's columns, shape (R, H, M), and their derivatives, (R, H, M, P) or empty."""
        cell = FluidCell(self.lqn)
        means = self.means(logs)
        samples = self.data.shape[1]
        values = np.empty(self.data.shape)
        slopes = np.empty((*self.data.shape, len(logs) if tangents else 0))
        counts = self.columns.counts
        for r, start in enumerate(self.starts):
            x, dx = cell.trajectory(means, start, dt=self.dt, samples=samples, tangents=tangents)
            values[r] = x @ counts.T
            if tangents:
                slopes[r] = np.einsum("ms,hsp->hmp", counts, dx[:, :, self.learned])
        return values, slopes

    def linearised(self, logs: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return weighted residuals, shape (R, H M), and their derivatives, (R, H M, P)."""
        values, slopes = self.predict(logs, tangents=True)
        many = len(values)
        residuals = ((values - self.data) * self.weights).reshape(many, -1)
        return residuals, (slopes * self.weights[:, None]).reshape(many, -1, len(logs))

    def run(self, logs: FloatArray, evaluations: int = EVALUATIONS) -> Fit:
        """Search from one start."""
        low, high = self.bounds
        last: list[tuple[FloatArray, FloatArray]] = []

        def residuals(u: FloatArray) -> FloatArray:
            values, slopes = self.linearised(u)
            last[:] = [(u.copy(), slopes.reshape(-1, len(u)))]
            return values.ravel()

        def jacobian(u: FloatArray) -> FloatArray:
            # A rejected step may have come in between.
            if not np.array_equal(last[0][0], u):
                residuals(u)
            return last[0][1]

        begin = np.clip(logs, low + 1e-6, high - 1e-6)
        found = least_squares(
            residuals, begin, jacobian, bounds=(low, high), ftol=1e-5, xtol=1e-3, gtol=1e-10,
            max_nfev=evaluations,
        )  # fmt: skip
        return Fit(np.asarray(found.x), float(found.cost))

    def search(self, starts: Sequence[FloatArray]) -> Fit:
        """Follow all starts for a few steps on a few traces, the best to the end there, and then on all."""
        few = self.few(FIRST_TRACES, self.data.shape[1])
        first = [few.run(s, FIRST_EVALUATIONS) for s in starts]
        best = min(first, key=lambda f: f.cost)
        agreeing = sum(f.cost <= SAME * best.cost for f in first) / len(first)
        middle = few.run(best.logs, MIDDLE_EVALUATIONS)
        return replace(self.run(middle.logs), agreeing=agreeing)

    def random_starts(self, around: FloatArray, count: int, seed: int) -> list[FloatArray]:
        """Return logarithms that scatter around others."""
        rng = np.random.default_rng(seed)
        return [around + rng.normal(0.0, SPREAD, len(around)) for _ in range(count)]


def _with_learned(lqn: InlinedLqn, learned: npt.NDArray[np.int64], logs: FloatArray) -> FloatArray:
    means = lqn.means.copy()
    means[learned] = np.exp(logs)
    return means


def vague_groups(residuals: FloatArray, slopes: FloatArray) -> list[tuple[int, ...]]:
    """Return groups of learned times that the traces do not tell.

    A direction in which the residuals hardly change is one: its standard error, with the residuals as they
    are, exceeds ``VAGUE``. The times that matter in it are a group, by their places among the learned ones.

    Args:
        residuals: Of a fit; shape (R, H M).
        slopes: Their derivatives; shape (R, H M, P).
    """
    jacobian = slopes.reshape(-1, slopes.shape[2])
    scale = residual_scale(residuals, slopes)
    values, vectors = np.linalg.eigh(jacobian.T @ jacobian)
    groups = []
    for value, vector in zip(values, vectors.T, strict=True):
        if value <= 0 or scale / np.sqrt(value) > VAGUE:
            groups.append(tuple(int(i) for i in np.flatnonzero(np.abs(vector) > 0.3)))
    return groups


def residual_scale(residuals: FloatArray, slopes: FloatArray) -> float:
    """Return the standard deviation of a single residual; arguments as in ``vague_groups``."""
    return float(np.sqrt((residuals**2).sum() / max(1, residuals.size - slopes.shape[2])))


def jackknife_spread(
    residuals: FloatArray, slopes: FloatArray, response: FloatArray | None = None
) -> FloatArray:
    """Return standard errors of the learned logarithms, from leaving out one trace at a time.

    Traces are independent, the moments of one are not. One step of Gauss and Newton from the common solution
    tells where the others alone would have led.

    Args:
        residuals: Of a fit; shape (R, H M).
        slopes: Their derivatives; shape (R, H M, P).
        response: What becomes of such a step; shape (P, P). None = it leads where it says.

    Returns:
        Shape (P,).

    Source: Efron, "The Jackknife, the Bootstrap and Other Resampling Plans", 1982, section 3.
    """
    many = len(residuals)
    turned = slopes.transpose(0, 2, 1)
    squares, targets = turned @ slopes, (turned @ residuals[:, :, None])[:, :, 0]
    others = zip(squares.sum(axis=0) - squares, targets.sum(axis=0) - targets, strict=True)
    left = np.array([-np.linalg.lstsq(square, target, rcond=RIDGE)[0] for square, target in others])
    if response is not None:
        left = left @ response.T
    spread: FloatArray = np.sqrt((many - 1) / many * ((left - left.mean(axis=0)) ** 2).sum(axis=0))
    return spread


def column_weights(data: FloatArray) -> FloatArray:
    """Return 1 / sqrt(mean) per column, columns of small means bounded; shape (M,)."""
    means = data.mean(axis=(0, 1))
    return np.asarray(1.0 / np.sqrt(means + OFFSET * means.mean() + 1e-12))


def linear_start(fit: FluidFit) -> FloatArray | None:
    """Estimate the learned times by linear regression, without solving any equation.

    If the columns show all states, so do they the flows: what leaves a state in an interval is its rate times
    the integral of the requests that are served there. Admissions are not observed; combinations of states
    that they leave alone (the left null space of their jumps) are.

    Returns:
        Logarithms of the means; None if the columns leave states in the dark.
    """
    counts, lqn = fit.columns.counts, fit.lqn
    system = lqn.system
    if np.linalg.matrix_rank(counts) < system.size:
        return None
    x = fit.data @ np.linalg.pinv(counts).T
    shape = x.shape
    shares = np.array(
        [np.append(system.shares(system.running @ row)[0], 1.0) for row in x.reshape(-1, shape[2])]
    )
    served = (shares[:, system.processor] * x.reshape(-1, shape[2])[:, system.source_q]).reshape(
        *shape[:2], -1
    )
    given = fit.dt * (served[:, 1:] + served[:, :-1]) / 2 * lqn.factor
    jumps = system.jumps_a.toarray()
    rest = null_space(jumps.T) if jumps.shape[1] else np.eye(system.size)
    effects = rest.T @ system.jumps_q.toarray()
    change = (x[:, 1:] - x[:, :-1]) @ rest
    design = np.zeros((*change.shape, len(lqn.times)))
    for move, time in enumerate(lqn.time_of):
        design[..., time] += given[..., move, None] * effects[:, move]
    known = np.setdiff1d(np.arange(len(lqn.times)), fit.learned)
    target = change - design[..., known] @ (1.0 / lqn.means[known])
    a = design[..., fit.learned].reshape(-1, len(fit.learned))
    q, r = np.linalg.qr(a)
    rates = nnls(r, q.T @ target.ravel())[0]
    low, high = fit.bounds
    return np.asarray(np.clip(-np.log(np.maximum(rates, np.exp(-high))), low, high))
