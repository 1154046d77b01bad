"""Fit flows by the largest part of misplaced clients at any moment of each trace.

That error, the mean of the thesis's equation 3.2 over the traces, is what the papers train with. It is the
maximum of sums of absolute values, so it has edges everywhere, and its minimum is on some of them: gradient
descent, which the papers use, goes to and fro there. But between the edges it is as smooth as the fluid. So
the fluid is linearised, with exact derivatives, and the minimum of what that makes of the error is the
solution of a linear program; steps are as long as the last ones were right about what they would gain
(Fletcher, "Practical Methods of Optimization", 1987, chapter 14).

Only some moments can be the worst one: those that were it at flows tried before, as long as they matter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog
from scipy.sparse import csr_array, hstack, identity, kron, vstack

from analyzer.learning.network_regression import FASTEST
from analyzer.learning.traces import FloatArray, Traces
from simulator.networks.closed_network import ClosedNetwork
from simulator.networks.fluid import Pairs, fluid_means, fluid_sensitivities, stable_cells

__all__ = ["fit_error"]

STEPS = 40
"""At most; a dozen is usual."""
CLOSE = 1e-3
"""Stop when not more than this part of the error can be gained."""
FIRST = 0.2
"""How far flows may move at first, as a part of themselves."""
SHORTEST = 1e-5
LITTLE = 1e-2
"""Flows below this part of the largest one may move as far as those of that size."""

Moments = npt.NDArray[np.int64]
"""Some moments of some traces: (trace, sample), ascending; shape (K, 2)."""


def fit_error(traces: Traces, servers: FloatArray, pairs: Pairs, start: FloatArray) -> FloatArray:
    """Return the flows with the least error that are near a start; shape (M, M).

    Args:
        traces: To learn from; R of them.
        servers: Shape (M,).
        pairs: Between which stations clients may move; shape (P, 2).
        start: Flows to begin with; shape (M, M).
    """
    search = _Search(traces, servers, pairs)
    values = start[pairs[:, 0], pairs[:, 1]]
    errors, worst = search.errors(values)
    active = worst
    reach = FIRST
    for _ in range(STEPS):
        step, hoped, active = search.step(values, active, reach)
        promised = float(errors.mean()) - hoped
        if promised <= CLOSE * float(errors.mean()) or reach < SHORTEST:
            break
        tried, there = search.errors(values + step)
        # Also if the step is not made: there the others were too optimistic.
        active = np.unique(np.vstack((active, worst, there)), axis=0)
        gained = float(errors.mean() - tried.mean()) / promised
        if gained > 0.1:
            values, errors, worst = values + step, tried, there
        reach *= 2.0 if gained > 0.7 else 0.3 if gained < 0.3 else 1.0
    return search.flows(values)


@dataclass(frozen=True, slots=True)
class _Search:
    """What is fitted: traces, servers and pairs as in ``fit_error``."""

    traces: Traces
    servers: FloatArray
    pairs: Pairs

    def errors(self, values: FloatArray) -> tuple[FloatArray, Moments]:
        """Return the error of each trace, a part of its clients, and its worst moment: (trace, sample)."""
        traces, flows = self.traces, self.flows(values)
        network = ClosedNetwork.of_flows(flows, traces.names, self.servers)
        x = fluid_means(network, traces.starts, dt=traces.dt, samples=traces.x.shape[1])
        wrong = np.abs(x - traces.x).sum(axis=2)[:, 1:] / (2 * traces.populations[:, None])
        rows = np.arange(len(wrong))
        moments = wrong.argmax(axis=1)
        return wrong[rows, moments], np.column_stack((rows, moments + 1))

    def step(self, values: FloatArray, active: Moments, reach: float) -> tuple[FloatArray, float, Moments]:
        """Return the best step of limited length, the error hoped for, and the moments it depends on.

        Args:
            values: Flows of the pairs; shape (P,).
            active: Those that may be the worst of their traces, every trace's worst one among them.
            reach: How far a flow may go, as a part of itself.
        """
        off, slopes = self._linearised(values, active)
        k, m = off.shape
        many, p = len(self.traces.x), len(values)
        # Variables: the step, what is misplaced at each active moment and station, the error of each trace.
        change = csr_array(slopes.reshape(k * m, p))
        split = identity(k * m)
        nothing = csr_array((k * m, many))
        trace = csr_array((np.ones(k), (np.arange(k), active[:, 0])), shape=(k, many))
        above = hstack((change, -split, nothing))
        below = hstack((-change, -split, nothing))
        added = hstack((csr_array((k, p)), kron(identity(k), np.ones((1, m))), -trace))
        far = reach * np.maximum(values, LITTLE * values.max())
        low = np.maximum(-far, -values)
        high = np.maximum(low, np.minimum(far, FASTEST / self.traces.dt - values))
        found = linprog(
            np.concatenate((np.zeros(p + k * m), np.full(many, 1 / many))),
            A_ub=vstack((above, below, added)).tocsr(),
            b_ub=np.concatenate((-off.ravel(), off.ravel(), np.zeros(k))),
            bounds=np.vstack((np.column_stack((low, high)), np.tile((0.0, np.inf), (k * m + many, 1)))),
            method="highs",
        )
        binding = found.ineqlin.marginals[2 * k * m :] < 0
        return np.asarray(found.x[:p]), float(found.fun), active[binding]

    def _linearised(self, values: FloatArray, active: Moments) -> tuple[FloatArray, FloatArray]:
        """Return what is misplaced at each of the moments, shape (K, M), and its derivatives, (K, M, P)."""
        traces, flows = self.traces, self.flows(values)
        cells = stable_cells(flows, traces.dt)
        m = len(traces.names)
        off, slopes = np.empty((len(active), m)), np.empty((len(active), m, len(values)))
        for trace in range(len(traces.x)):
            mine = active[:, 0] == trace
            moments = active[mine, 1]
            x, s = fluid_sensitivities(
                flows,
                self.servers,
                traces.starts[trace : trace + 1],
                self.pairs,
                dt=traces.dt,
                samples=int(moments[-1]) + 1,
                cells=cells,
                moments=np.concatenate(([0], moments)),
            )
            parts = 2 * traces.populations[trace]
            off[mine] = (x[0, 1:] - traces.x[trace, moments]) / parts
            slopes[mine] = s[0, 1:] / parts
        return off, slopes

    def flows(self, values: FloatArray) -> FloatArray:
        """Return the flows between all stations; shape (M, M)."""
        m = len(self.traces.names)
        flows = np.zeros((m, m))
        flows[self.pairs[:, 0], self.pairs[:, 1]] = values
        return flows
