"""Differential equation of the masses of all states, and its equilibrium.

Notation: x (n states) are masses; q the flows of moves (ends of stages), alpha of admissions, both per
second. A stage on processor p ends at rate mu * sigma_p, with sigma_p the share of a core that a thread
gets (thesis, equation 4.1). dx/dt = G_q q + G_a alpha, the columns of G being jumps (equation 4.9).

**Admission without a fast rate.** The thesis lets waiting mass w enter a pool with free places f at a
large rate H (equation 4.2), which makes the equations stiff. Here the flow into a pool is

    alpha = min(a + kappa w, r + kappa f)

with a the flow of requests that arrive, r of places given back. If none wait, what arrives goes on.
If some wait, what is given back is taken at once. Both hold exactly, whatever kappa is; it only says how
fast the last mass enters when a queue runs empty, and is no larger than ten times the fastest stage.
In rest alpha = a = r, so that min(w, f) = 0. All who wait for a pool share alpha in proportion.
Flows through several pools in one instant (a request that is admitted and at once waits for the next
pool) are an algebraic system: with offers o of mass to pools, alpha = g o, g = min(1, (r + kappa f) / sum o).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.integrate import solve_ivp
from scipy.sparse.linalg import splu

from mup.errors import SimulationError
from simulator.fluid.states import PARKED, SHARED, Effects, SharedCall, StateSpace, engaged

__all__ = ["FloatArray", "FluidSystem"]

FloatArray = npt.NDArray[np.float64]
Matrix = Any
"""A sparse matrix in CSR form."""

KAPPA: Final = 10.0
"""Largest rate of the admission law, in units of the fastest stage."""

MAX_KAPPA: Final = 1e7
"""The same, in units of the slowest stage: beyond some 1e8, rounding errors of kappa f hide the flows."""
MAX_SWEEPS: Final = 2000
DENSE_UP_TO: Final = 300
RTOL: Final = 1e-7
MAX_STEPS: Final = 400
GROWTH: Final = 3.0
MAX_NEWTON: Final = 12
NEWTON: Final = 1e-10
REST: Final = 1e-9
"""A state of rest: no mass changes by more than this part of the flows per cycle of the slowest stage."""


def _matrix(shape: tuple[int, int], entries: Iterable[tuple[int, int, float]]) -> Matrix:
    rows, columns, values = [], [], []
    for row, column, value in entries:
        rows.append(row)
        columns.append(column)
        values.append(value)
    return sparse.csr_matrix((values, (rows, columns)), shape=shape, dtype=float)


class FluidSystem:
    """The equations of one model.

    Attributes:
        space: What the numbers stand for.
        x0: All clients begin a cycle; shape (n,).
        jumps_q, jumps_a: G_q, G_a; shapes (n, moves), (n, admissions).
        held: Places taken per unit of mass; shape (pools, n).
        running: Threads that use a processor per unit of mass; shape (processors, n).
    """

    def __init__(self, space: StateSpace) -> None:
        self.space = space
        code = space.code
        n, pools = len(space.states), len(code.pools) + len(space.shared)
        moves, admissions = space.moves, space.admissions
        self.size = n
        self.x0 = np.zeros(n)
        for start in space.start:
            for state, mass in start.items():
                self.x0[state] += mass
        self.source_q = np.array([m.state for m in moves], dtype=int)
        self.source_a = np.array([a.state for a in admissions], dtype=int)
        self.rate = np.array([m.rate for m in moves])
        # One more processor, number -1, on which everything runs at full speed: delays.
        self.processor = np.array([m.processor for m in moves], dtype=int)
        self.pool = np.array([a.pool for a in admissions], dtype=int)
        self.previous = np.array([a.previous for a in admissions], dtype=int)
        rates = self.rate[self.rate > 0]
        fastest, slowest = (rates.max(), rates.min()) if rates.size else (1e-9, 1e-9)
        self.kappa = float(min(KAPPA * fastest, MAX_KAPPA * slowest))

        self.into_q = _targets(n, [m.effects for m in moves])
        self.into_a = _targets(n, [a.effects for a in admissions])
        self.jumps_q = self.into_q - _matrix(
            (n, len(moves)), ((s, e, 1.0) for e, s in enumerate(self.source_q))
        )
        self.jumps_a = self.into_a - _matrix(
            (n, len(admissions)), ((s, e, 1.0) for e, s in enumerate(self.source_a))
        )
        # Consumption of parked branches is no arrival.
        arrive_q, arrive_a = self.into_q.maximum(0).tocsr(), self.into_a.maximum(0).tocsr()
        first = self.previous < 0
        mask = sparse.diags(first.astype(float), format="csr")
        self.arrive_q = (mask @ arrive_q[self.source_a]).tocsr()
        self.arrive_a = (mask @ arrive_a[self.source_a]).tocsr()
        self.first = first
        self.give_q = self._counts(pools, moves, "released")
        self.give_a = self._counts(pools, admissions, "released")
        self.member = _matrix((pools, len(admissions)), ((p, e, 1.0) for e, p in enumerate(self.pool)))
        self.capacity = np.array([p.capacity for p in code.pools] + [0.0] * len(space.shared))
        self.held = self._held(pools)
        self._processors()
        self.running = _matrix(
            (len(self.cores), n), ((m.processor, m.state, 1.0) for m in moves if m.processor >= 0)
        )

    def _counts(self, rows: int, events: Iterable[Any], kind: str) -> Matrix:
        events = list(events)
        return _matrix(
            (rows, len(events)),
            ((i, e, v) for e, event in enumerate(events) for i, v in getattr(event.effects, kind).items()),
        )

    def counts(self, rows: int, kind: str) -> tuple[Matrix, Matrix]:
        """Return the matrices from q and alpha to the flows of some effect (``done``, ``cycles``, ...)."""
        return self._counts(rows, self.space.moves, kind), self._counts(rows, self.space.admissions, kind)

    def _held(self, pools: int) -> Matrix:
        code, space = self.space.code, self.space
        entries: list[tuple[int, int, float]] = []
        for s, state in enumerate(space.states):
            if state.kind == PARKED:
                entries.append((state.owner, s, -1.0))
            if state.kind == SHARED:
                entries.append((state.owner, s, 1.0))
            for request in engaged(state.request):
                pool = code.entries[request.entry].pool
                if request.held and pool >= 0:
                    entries.append((pool, s, 1.0))
                for flow in request.flows:
                    if flow.address >= 0:
                        entries.extend((p, s, 1.0) for p in code.ops[flow.address].holding)
                    if isinstance(flow.child, SharedCall):
                        entries.append((flow.child.pool, s, -1.0))
        return _matrix((pools, self.size), entries)

    def _processors(self) -> None:
        processors = self.space.code.model.processors
        index = {p.name: i for i, p in enumerate(processors)}
        self.parent = [index[p.parent] if p.parent is not None else -1 for p in processors]
        # Cores with a queue are pools: an admitted job has a core.
        self.cores = np.array(
            [p.cores * p.available if p.discipline in ("ps", "cores") else math.inf for p in processors],
            dtype=float,
        )
        order: list[int] = []
        while len(order) < len(processors):
            order += [i for i in range(len(processors)) if i not in order and self.parent[i] in (-1, *order)]
        self.parents_first = order

    def shares(self, running: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return sigma per processor and its derivatives by the running threads.

        A processor's load is its own threads and, of every part of it, at most as many as that has cores.
        """
        count = len(self.cores)
        load, d_load = running.copy(), np.eye(count)
        for i in reversed(self.parents_first):
            parent = self.parent[i]
            if parent >= 0:
                load[parent] += min(load[i], self.cores[i])
                if load[i] < self.cores[i]:
                    d_load[parent] += d_load[i]
        sigma, d_sigma = np.ones(count), np.zeros((count, count))
        for i in self.parents_first:
            own, d_own = 1.0, np.zeros(count)
            if load[i] > self.cores[i]:
                own = self.cores[i] / load[i]
                d_own = -own / load[i] * d_load[i]
            parent = self.parent[i]
            above, d_above = (sigma[parent], d_sigma[parent]) if parent >= 0 else (1.0, np.zeros(count))
            sigma[i] = own * above
            d_sigma[i] = d_own * above + own * d_above
        return sigma, d_sigma

    def speed(self, sigma: FloatArray) -> FloatArray:
        """Return the rate of every move per unit of mass."""
        return np.asarray(self.rate * np.append(sigma, 1.0)[self.processor])

    def flows(
        self, x: FloatArray, guess: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return q, the offers o, the admitted fractions g (per pool) and sigma in a state."""
        sigma, _ = self.shares(self.running @ x)
        q = self.speed(sigma) * x[self.source_q]
        base = self.arrive_q @ q + np.where(self.first, self.kappa * x[self.source_a], 0.0)
        g = np.ones(len(self.capacity)) if guess is None else guess
        offers = base
        if not len(self.pool):
            return q, offers, g, sigma
        chained = np.flatnonzero(~self.first)
        scale = max(1e-300, float(np.abs(base).sum()), float(np.abs(q).sum()))
        for _ in range(MAX_SWEEPS):
            admitted = g[self.pool] * offers
            offers = base + self.arrive_a @ admitted
            for e in chained:
                before = self.previous[e]
                offers[e] = (1 - g[self.pool[before]]) * offers[before]
            total = self.member @ offers
            room = self._room(x, q, admitted)
            g = np.divide(room, total, out=np.ones(len(room)), where=total > room)
            change = np.abs(g[self.pool] * offers - admitted).max()
            if change <= 1e-13 * scale:
                return q, offers, g, sigma
        return q, offers, g, sigma

    def derivative(self, x: FloatArray) -> FloatArray:
        """Return dx/dt, in requests per second."""
        q, offers, g, _ = self.flows(x)
        return np.asarray(self.jumps_q @ q + self.jumps_a @ (g[self.pool] * offers))

    def _room(self, x: FloatArray, q: FloatArray, admitted: FloatArray) -> FloatArray:
        """Return the flow that every pool can take: r + kappa f, but no less than nothing."""
        free = self.capacity - self.held @ x
        return np.asarray(np.maximum(self.give_q @ q + self.give_a @ admitted + self.kappa * free, 0.0))

    def _blocks(
        self, x: FloatArray, q: FloatArray, offers: FloatArray, g: FloatArray
    ) -> tuple[Matrix, Matrix, Matrix, Matrix]:
        """Return the derivatives of (dx/dt; algebraic residuals z) by (x; offers, g, sigma).

        The residuals are those of ``residuals``; both follow the pass or limit of every pool in ``g``.
        """
        sigma, d_sigma = self.shares(self.running @ x)
        dq_dx = _columns(self.speed(sigma), self.source_q, self.size)
        on = np.flatnonzero(self.processor >= 0)
        dq_ds = sparse.csr_matrix(
            (self.rate[on] * x[self.source_q[on]], (on, self.processor[on])),
            shape=(len(self.rate), len(self.cores)),
        )
        events = len(self.pool)
        da_do = sparse.diags(g[self.pool], shape=(events, events), format="csr") if events else None
        da_dg = sparse.csr_matrix(
            (offers, (np.arange(events), self.pool)), shape=(events, len(self.capacity))
        )
        if da_do is None:
            da_do = sparse.csr_matrix((0, 0))
        f_x = self.jumps_q @ dq_dx
        f_z = sparse.hstack([self.jumps_a @ da_do, self.jumps_a @ da_dg, self.jumps_q @ dq_ds], format="csr")

        stay = _columns(np.where(self.first, self.kappa, 0.0), self.source_a, self.size)
        chained = np.flatnonzero(~self.first)
        before = self.previous[chained]
        chain_o = sparse.csr_matrix((1 - g[self.pool[before]], (chained, before)), shape=(events, events))
        chain_g = sparse.csr_matrix(
            (-offers[before], (chained, self.pool[before])), shape=(events, len(self.capacity))
        )
        limited = sparse.diags((g < 1.0).astype(float), format="csr")
        giving = sparse.diags((self._room(x, q, g[self.pool] * offers) > 0).astype(float), format="csr")
        passing = sparse.diags((g >= 1.0).astype(float), format="csr")
        z_x = sparse.vstack(
            [
                -(self.arrive_q @ dq_dx) - stay,
                limited @ giving @ (-(self.give_q @ dq_dx) + self.kappa * self.held),
                -sparse.csr_matrix(d_sigma) @ self.running,
            ],
            format="csr",
        )
        processors = len(self.cores)
        z_z = sparse.bmat(
            [
                [
                    sparse.identity(events) - self.arrive_a @ da_do - chain_o,
                    -(self.arrive_a @ da_dg) - chain_g,
                    -(self.arrive_q @ dq_ds),
                ],
                [
                    limited @ (self.member - giving @ self.give_a) @ da_do,
                    limited @ (self.member - giving @ self.give_a) @ da_dg + passing,
                    -(limited @ giving @ (self.give_q @ dq_ds)),
                ],
                [
                    sparse.csr_matrix((processors, events)),
                    sparse.csr_matrix((processors, len(self.capacity))),
                    sparse.identity(processors),
                ],
            ],
            format="csr",
        )
        return f_x, f_z, z_x, z_z

    def jacobian(self, x: FloatArray) -> Matrix:
        """Return the derivative of ``derivative``; dense for small systems."""
        q, offers, g, _ = self.flows(x)
        f_x, f_z, z_x, z_z = self._blocks(x, q, offers, g)
        if z_z.shape[0] == 0:
            inner = f_x
        else:
            # Only columns with entries need solving for: states that use a pool or a processor.
            solved = splu(z_z.tocsc()).solve(z_x.toarray())
            inner = f_x - sparse.csr_matrix(f_z @ solved)
        return inner.toarray() if self.size <= DENSE_UP_TO else inner.tocsc()

    def implicit_step(self, x: FloatArray, dt: float) -> FloatArray | None:
        """Return the state one implicit Euler step later; None if Newton's method does not find it."""
        y = x
        size = 1.0 + float(np.abs(x).sum())
        for _ in range(MAX_NEWTON):
            q, offers, g, _ = self.flows(y)
            rate = self.jumps_q @ q + self.jumps_a @ (g[self.pool] * offers)
            residual = rate - (y - x) / dt
            f_x, f_z, z_x, z_z = self._blocks(y, q, offers, g)
            whole = sparse.bmat([[sparse.identity(self.size) / dt - f_x, -f_z], [z_x, z_z]], format="csc")
            try:
                step = splu(whole).solve(np.concatenate([residual, np.zeros(z_z.shape[0])]))[: self.size]
            except RuntimeError:  # SuperLU: exactly singular
                return None
            if not np.isfinite(step).all():
                return None
            y = np.asarray(y + step)
            if float(np.abs(step).sum()) <= NEWTON * size:
                return y
        return None

    def rest(self, x: FloatArray) -> FloatArray:
        """Return where the masses come to rest.

        Implicit Euler steps that grow as the flows die down (pseudo-transient continuation; Kelley and
        Keyes, SIAM Journal on Numerical Analysis 35, 1998).

        Raises:
            SimulationError: They do not: more arrives than can be served, or the iteration fails.
        """
        slowest = 1.0 / max(1e-12, float(self.rate.min()))
        dt = 0.1 * slowest
        for _ in range(MAX_STEPS):
            following = self.implicit_step(x, dt)
            if following is None or following.min() < -1e-6 * (1.0 + np.abs(x).max()):
                dt *= 0.2
                continue
            x = following
            dt *= GROWTH
            moving = float(np.abs(self.derivative(x)).sum())
            if moving * slowest <= REST * max(1.0, float(np.abs(x).sum())):
                return x
            if float(np.abs(x).sum()) > 1e6 * (1.0 + float(self.x0.sum())):
                break
        raise SimulationError(
            "the fluid model does not come to rest: more requests arrive than can be served, "
            "or waiting requests hold the threads they wait for",
            where=self.space.code.model.name,
            hint="lower the arrivals or give it more threads and cores; times=... shows what happens",
        )

    def trajectory(self, x: FloatArray, times: FloatArray) -> FloatArray:
        """Return the masses at ascending times, from x at time 0; shape (n, times).

        Raises:
            SimulationError: The integrator gave up.
        """
        if times[-1] <= 0:
            return np.repeat(x[:, None], len(times), axis=1)
        scale = max(1.0, float(x.sum()))
        found = solve_ivp(
            lambda _, y: self.derivative(y),
            (0.0, float(times[-1])),
            x,
            method="BDF",
            t_eval=times,
            jac=lambda _, y: self.jacobian(y),
            rtol=RTOL,
            atol=1e-9 * scale,
        )
        if not found.success:
            raise SimulationError(f"the integration stopped: {found.message}")
        return np.asarray(found.y)


def _targets(n: int, effects: list[Effects]) -> Matrix:
    return _matrix(
        (n, len(effects)), ((s, e, v) for e, effect in enumerate(effects) for s, v in effect.targets.items())
    )


def _columns(values: FloatArray, columns: npt.NDArray[np.int_], width: int) -> Matrix:
    """Return the matrix that has value i in row i, column columns[i]."""
    return sparse.csr_matrix((values, (np.arange(len(values)), columns)), shape=(len(values), width))
