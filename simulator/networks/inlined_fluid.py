"""Fluid of an inlined model over time, and its derivatives by the model's times.

The recurrent cell of Garbi's thesis, section 4.2.1: one step after the other, rates as weights. dx/dt is that
of equation 4.9. As there, a step is split (Strang): a slow part, the ends of stages, and a fast one, whatever
takes no time. Three things differ, all of them because the thesis approximates "at once" by a large rate H:

- The fast part is exact: waiting requests and free places of a pool annul each other (``_sweep``).
- Within the slow part a pool is in one of two regimes. Are there more waiting than free, what is given
  back is taken by those who wait; otherwise what arrives passes. Without this a place would stay unused for
  the rest of a step, and a step would have to be much shorter than the shortest time.
- The slow part is a Runge-Kutta step of fourth order instead of Euler's.

Tangents by the logarithm of every time are carried along, through the fast part, too: they are the exact
derivatives of what the cell computes. ``simulator.fluid.ode`` treats the same equations implicitly and with a
smooth law of admission; it reaches rest in few steps, but its steps have no such derivatives.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from mup.native.binding import compiled, internal
from mup.native.shapes import Floats1, Floats2, Floats3, Longs1
from simulator.networks.inlined import InlinedLqn, held_pools

__all__ = ["FluidCell"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

STEP: Final = 1.5
"""Length of a step in units of the shortest time; beyond 2.7 the method is unstable."""

MAX_STEPS: Final = 400
"""Steps between two moments; so a time may be as short as a six hundredth of that."""

SWEEPS: Final = 24

YOUNG: Final = 0.4
"""Those who came within this part of a step share what is given back; less makes short queues unstable."""

TINY: Final = 1e-10


class FluidCell:
    """The cell of one inlined model."""

    def __init__(self, lqn: InlinedLqn) -> None:
        self.lqn = lqn
        system = lqn.system
        processors = len(system.cores)
        self.move_state = system.source_q.astype(np.int64)
        self.move_processor = np.where(system.processor < 0, processors, system.processor).astype(np.int64)
        self.cores = np.append(system.cores, math.inf)
        self.parent = np.array([*system.parent, -1], dtype=np.int64)
        self.parents_first = np.array([*system.parents_first, processors], dtype=np.int64)
        self.admission_state = system.source_a.astype(np.int64)
        self.admission_pool = system.pool.astype(np.int64)
        events = [m.effects for m in lqn.space.moves] + [a.effects for a in lqn.space.admissions]
        self.into = _sparse([e.targets for e in events])
        self.gives = _sparse([e.released for e in events])
        held = held_pools(lqn)
        self.holds = _sparse(
            [{int(p): float(held[p, s]) for p in np.flatnonzero(held[:, s])} for s in range(system.size)]
        )
        self.capacity = system.capacity.astype(float)
        own = self.admission_pool.tolist()
        given = [a.effects.released.get(p, 0.0) for a, p in zip(lqn.space.admissions, own, strict=True)]
        self.returned = np.array(given, dtype=float)
        self.passes = self._passes()

    def _passes(self) -> int:
        """Return how often admissions must be gone through until each has seen those that cause it.

        A place that is given back to the pool it was taken from needs no further pass: see ``_slow``.
        """
        moves, count = len(self.move_state), len(self.admission_state)
        reaches = np.zeros((count, count), dtype=bool)
        for a in range(count):
            for (first, columns, _), causes in (
                (self.into, self.admission_state),
                (self.gives, self.admission_pool),
            ):
                hit = columns[first[moves + a] : first[moves + a + 1]]
                if causes is self.admission_pool:
                    hit = hit[hit != self.admission_pool[a]]
                reaches[a] |= np.isin(causes, hit)
        found, paths = 1, reaches
        while paths.any() and found < SWEEPS:
            found += 1
            paths = paths @ reaches
        return found

    def steps(self, means: FloatArray, dt: float) -> int:
        """Return the number of steps between two moments that are ``dt`` seconds apart."""
        fastest = float((self.lqn.factor / means[self.lqn.time_of]).max())
        return min(MAX_STEPS, max(1, math.ceil(dt * fastest / STEP)))

    def trajectory(
        self, means: FloatArray, start: FloatArray, *, dt: float, samples: int, tangents: bool = True
    ) -> tuple[FloatArray, FloatArray]:
        """Follow the fluid from a start.

        Args:
            means: Of the model's times, in seconds, > 0; shape (T,).
            start: Requests per state; shape (n,).
            dt: Seconds between moments.
            samples: Number of moments, the beginning included.
            tangents: Whether to compute derivatives.

        Returns:
            Requests per state at the moments, shape (H, n), and their derivatives by the logarithms of the
            means, shape (H, n, T), or (H, n, 0).
        """
        n, parameters = len(start), len(means) if tangents else 0
        events, admissions, pools = len(self.move_state), len(self.admission_state), len(self.capacity)
        rows = 1 + parameters
        x = np.zeros((samples, n, rows))
        # Columns: the value, then the derivatives by every parameter.
        area = np.zeros((8 * n + 3 * events + 6 * admissions + 7 * pools + 8 * len(self.cores) + 8, rows))
        z = np.zeros((n, rows))
        z[:, 0] = start
        rate = self.lqn.factor / means[self.lqn.time_of]
        count = self.steps(means, dt)
        regimes = np.zeros(pools, dtype=np.int64)
        _follow(
            x, z, area, regimes, dt / count, count, rate, self.lqn.time_of, self.move_state,
            self.move_processor, self.cores, self.parent, self.parents_first, self.admission_state,
            self.admission_pool, self.returned, self.capacity, *self.into, *self.gives, *self.holds,
            self.passes,
        )  # fmt: skip
        return x[:, :, 0], x[:, :, 1:]


def _sparse(rows: list[dict[int, float]]) -> tuple[IntArray, IntArray, FloatArray]:
    """Return rows one behind the other: where each begins, columns, values."""
    first = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    columns = np.array([c for row in rows for c in row], dtype=np.int64)
    return first, columns, np.array([v for row in rows for v in row.values()], dtype=float)


@internal
def _clear(rows: Any) -> None:
    for i in range(rows.shape[0]):
        for k in range(rows.shape[1]):
            rows[i, k] = 0.0


@internal
def _add(target: Any, factor: float, source: Any) -> None:
    for k in range(len(target)):
        target[k] += factor * source[k]


@internal
def _add_product(target: Any, sign: float, a: Any, b: Any) -> None:
    """Add sign * a * b, with its derivatives."""
    value, other = a[0], b[0]
    target[0] += sign * value * other
    for k in range(1, len(target)):
        target[k] += sign * (a[k] * other + value * b[k])


@internal
def _add_quotient(target: Any, sign: float, a: Any, b: Any, c: Any) -> None:
    """Add sign * a * b / c, with its derivatives."""
    inverse = 1.0 / c[0]
    value = a[0] * b[0] * inverse
    target[0] += sign * value
    for k in range(1, len(target)):
        target[k] += sign * (a[k] * b[0] * inverse + a[0] * b[k] * inverse - value * c[k] * inverse)


@internal
def _shares(load: Any, share: Any, own: Any, cores: Any, parent: Any, parents_first: Any) -> None:
    """Turn running threads per processor, in ``load``, into shares of a core (equation 4.1)."""
    for j in range(len(cores) - 1, -1, -1):
        i = parents_first[j]
        p = parent[i]
        if p >= 0:
            if load[i, 0] < cores[i]:
                _add(load[p], 1.0, load[i])
            else:
                load[p, 0] += cores[i]
    for j in range(len(cores)):
        i = parents_first[j]
        _clear(own[i : i + 1])
        own[i, 0] = 1.0
        if load[i, 0] > cores[i]:
            own[i, 0] = cores[i] / load[i, 0]
            for k in range(1, load.shape[1]):
                own[i, k] = -own[i, 0] / load[i, 0] * load[i, k]
        _clear(share[i : i + 1])
        if parent[i] >= 0:
            _add_product(share[i], 1.0, own[i], share[parent[i]])
        else:
            _add(share[i], 1.0, own[i])


@internal
def _free_places(free: Any, z: Any, capacity: Any, hold_first: Any, hold_pool: Any, hold_value: Any) -> None:
    _clear(free)
    for p in range(len(capacity)):
        free[p, 0] = capacity[p]
    for s in range(z.shape[0]):
        for j in range(hold_first[s], hold_first[s + 1]):
            _add(free[hold_pool[j]], -hold_value[j], z[s])


@internal
def _slow(
    out: Any, alpha: Any, z: Any, h: float, regimes: Any, area: Any, rate: Any, time_of: Any,
    move_state: Any, move_processor: Any, cores: Any, parent: Any, parents_first: Any, admission_state: Any,
    admission_pool: Any, returned: Any, into_first: Any, into_state: Any, into_value: Any, give_first: Any,
    give_pool: Any, give_value: Any, passes: int,
) -> None:  # fmt: skip
    """Compute dx/dt, in ``out``, and the flows of admissions, in ``alpha``.

    Some of those who are admitted to a pool give their place back at once (after a call that had released
    it, nothing may be left to do), and the next one takes it. So b places given back by others admit
    b (1 + r + r^2 + ..) = b / (1 - r), where r is the part who give it back; without that sum every term
    would need a pass of its own. If all of them do, there is no end, and ``SWEEPS`` terms count.
    """
    n, moves, admissions = z.shape[0], len(rate), len(admission_state)
    pools, processors = len(regimes), len(cores)
    rows = z.shape[1]
    at = 0
    load, at = area[at : at + processors], at + processors
    share, at = area[at : at + processors], at + processors
    own, at = area[at : at + processors], at + processors
    arrive0, at = area[at : at + n], at + n
    arrive, at = area[at : at + n], at + n
    back0, at = area[at : at + pools], at + pools
    back, at = area[at : at + pools], at + pools
    total, at = area[at : at + pools], at + pools
    kept, at = area[at : at + pools], at + pools
    weight, at = area[at : at + admissions], at + admissions
    q, at = area[at : at + 1], at + 1
    _clear(out)
    _clear(load)
    _clear(arrive0)
    _clear(back0)
    for m in range(moves):
        _add(load[move_processor[m]], 1.0, z[move_state[m]])
    _shares(load, share, own, cores, parent, parents_first)
    for m in range(moves):
        s = move_state[m]
        _clear(q)
        _add_product(q[0], rate[m], z[s], share[move_processor[m]])
        if rows > 1:
            q[0, 1 + time_of[m]] -= q[0, 0]
        _add(out[s], -1.0, q[0])
        for j in range(into_first[m], into_first[m + 1]):
            _add(out[into_state[j]], into_value[j], q[0])
            _add(arrive0[into_state[j]], into_value[j], q[0])
        for j in range(give_first[m], give_first[m + 1]):
            _add(back0[give_pool[j]], give_value[j], q[0])
    _clear(alpha)
    for turn in range(passes):
        for a in range(admissions):
            s = admission_state[a]
            for k in range(rows):
                arrive[s, k] = arrive0[s, k]
        for p in range(pools):
            for k in range(rows):
                back[p, k] = back0[p, k]
        if turn > 0:
            for a in range(admissions):
                e = moves + a
                for j in range(into_first[e], into_first[e + 1]):
                    if into_value[j] > 0.0:  # a parked branch that is taken does not arrive
                        _add(arrive[into_state[j]], into_value[j], alpha[a])
                for j in range(give_first[e], give_first[e + 1]):
                    if give_pool[j] != admission_pool[a]:
                        _add(back[give_pool[j]], give_value[j], alpha[a])
        _clear(alpha)
        _clear(weight)
        _clear(total)
        _clear(kept)
        a = 0
        while a < admissions:
            s = admission_state[a]
            last = a
            while last < admissions and admission_state[last] == s:
                last += 1
            passed = -1
            for b in range(a, last):
                if passed < 0 and regimes[admission_pool[b]] == 0:
                    passed = b
            if passed >= 0:
                _add(alpha[passed], 1.0, arrive[s])
            else:
                # Those who come within the step share, too: a queue that is nearly empty has no history.
                for b in range(a, last):
                    if z[s, 0] > 0.0:
                        _add(weight[b], 1.0, z[s])
                    if arrive[s, 0] > 0.0:
                        _add(weight[b], YOUNG * h, arrive[s])
                    _add(total[admission_pool[b]], 1.0, weight[b])
                    _add(kept[admission_pool[b]], 1.0 - returned[b], weight[b])
            a = last
        for p in range(pools):
            if kept[p, 0] * SWEEPS < total[p, 0]:
                _clear(kept[p : p + 1])
                _add(kept[p], 1.0 / SWEEPS, total[p])
        for a in range(admissions):
            p = admission_pool[a]
            if weight[a, 0] > 0.0:
                _add_quotient(alpha[a], 1.0, back[p], weight[a], kept[p])
    for a in range(admissions):
        e = moves + a
        _add(out[admission_state[a]], -1.0, alpha[a])
        for j in range(into_first[e], into_first[e + 1]):
            _add(out[into_state[j]], into_value[j], alpha[a])


@internal
def _move(
    z: Any, amount: Any, event: int, state: int, into_first: Any, into_state: Any, into_value: Any
) -> None:
    """Admit an amount (with derivatives) of a state; a negative one goes back."""
    _add(z[state], -1.0, amount)
    for j in range(into_first[event], into_first[event + 1]):
        _add(z[into_state[j]], into_value[j], amount)


@internal
def _swept(
    z: Any, free: Any, waiting: Any, admission_state: Any, admission_pool: Any, capacity: Any,
    hold_first: Any, hold_pool: Any, hold_value: Any,
) -> bool:  # fmt: skip
    """Tell whether a sweep would move no mass: that is so most of the time, and needs no derivatives."""
    for p in range(len(capacity)):
        free[p, 0] = capacity[p]
        waiting[p, 0] = 0.0
    for s in range(z.shape[0]):
        for j in range(hold_first[s], hold_first[s + 1]):
            free[hold_pool[j], 0] -= hold_value[j] * z[s, 0]
    for a in range(len(admission_state)):
        here = z[admission_state[a], 0]
        if here < -TINY:
            return False
        waiting[admission_pool[a], 0] += here
    for p in range(len(capacity)):
        if free[p, 0] < -TINY or (free[p, 0] > TINY and waiting[p, 0] > TINY):
            return False
    return True


@internal
def _sweep(
    z: Any, flowed: Any, area: Any, moves: int, admission_state: Any, admission_pool: Any, capacity: Any,
    into_first: Any, into_state: Any, into_value: Any, hold_first: Any, hold_pool: Any, hold_value: Any,
) -> None:  # fmt: skip
    """Let no request wait for a pool that has free places, and no pool have less than none.

    ``flowed`` is what was admitted in the step: what was too much goes back in proportion to it.
    """
    pools, admissions = len(capacity), len(admission_state)
    at = 0
    free, at = area[at : at + pools], at + pools
    waiting, at = area[at : at + pools], at + pools
    total, at = area[at : at + pools], at + pools
    amount, at = area[at : at + admissions], at + admissions
    for _ in range(SWEEPS):
        if _swept(
            z, free, waiting, admission_state, admission_pool, capacity, hold_first, hold_pool, hold_value
        ):
            break
        moved = False
        for a in range(admissions):
            s = admission_state[a]
            if z[s, 0] < -TINY:
                _clear(amount[a : a + 1])
                _add(amount[a], 1.0, z[s])
                _move(z, amount[a], moves + a, s, into_first, into_state, into_value)
                moved = True
        _free_places(free, z, capacity, hold_first, hold_pool, hold_value)
        _clear(waiting)
        _clear(total)
        _clear(amount)
        for a in range(admissions):
            _add(waiting[admission_pool[a]], 1.0, z[admission_state[a]])
            _add(total[admission_pool[a]], 1.0, flowed[a])
        for a in range(admissions):
            p, s = admission_pool[a], admission_state[a]
            if free[p, 0] < -TINY:
                if total[p, 0] > 0.0:
                    _add_quotient(amount[a], 1.0, free[p], flowed[a], total[p])
            elif free[p, 0] > TINY and waiting[p, 0] > TINY:
                if waiting[p, 0] <= free[p, 0]:
                    _add(amount[a], 1.0, z[s])
                else:
                    _add_quotient(amount[a], 1.0, free[p], z[s], waiting[p])
        # A state that waits for two pools gives to one of them at a time.
        for a in range(admissions):
            s = admission_state[a]
            if amount[a, 0] != 0.0 and (amount[a, 0] < 0.0 or amount[a, 0] <= z[s, 0] * (1.0 + 1e-9)):
                _move(z, amount[a], moves + a, s, into_first, into_state, into_value)
                moved = True
        if not moved:
            break


@compiled
def _follow(
    x: Floats3, z: Floats2, area: Floats2, regimes: Longs1, h: float, steps: int, rate: Floats1,
    time_of: Longs1, move_state: Longs1, move_processor: Longs1, cores: Floats1, parent: Longs1,
    parents_first: Longs1, admission_state: Longs1, admission_pool: Longs1, returned: Floats1,
    capacity: Floats1, into_first: Longs1, into_state: Longs1, into_value: Floats1, give_first: Longs1,
    give_pool: Longs1, give_value: Floats1, hold_first: Longs1, hold_pool: Longs1, hold_value: Floats1,
    passes: int,
) -> None:  # fmt: skip
    """Write the states at all moments, with derivatives, into ``x``; ``z`` is the first one."""
    n, rows = z.shape
    moves, admissions, pools = len(rate), len(admission_state), len(capacity)
    at = 0
    slope, at = area[at : at + n], at + n
    sum_, at = area[at : at + n], at + n
    inner, at = area[at : at + n], at + n
    alpha, at = area[at : at + admissions], at + admissions
    flowed, at = area[at : at + admissions], at + admissions
    scratch = area[at:]
    _clear(flowed)
    last = steps * (x.shape[0] - 1)
    for step in range(last + 1):
        _sweep(
            z, flowed, scratch, moves, admission_state, admission_pool, capacity, into_first, into_state,
            into_value, hold_first, hold_pool, hold_value,
        )  # fmt: skip
        if step % steps == 0:
            for s in range(n):
                for k in range(rows):
                    x[step // steps, s, k] = z[s, k]
        if step == last:
            break
        # Invariant: no request waits where there is a free place, so one waiting state tells the regime.
        for p in range(pools):
            regimes[p] = 0
        for a in range(admissions):
            if z[admission_state[a], 0] > TINY:
                regimes[admission_pool[a]] = 1
        _clear(sum_)
        _clear(flowed)
        for stage in range(4):
            reach = 0.0 if stage == 0 else (1.0 if stage == 3 else 0.5)
            part = h / 6.0 if stage in (0, 3) else h / 3.0
            for s in range(n):
                for k in range(rows):
                    inner[s, k] = z[s, k] + reach * h * slope[s, k] if stage > 0 else z[s, k]
            _slow(
                slope, alpha, inner, h, regimes, scratch, rate, time_of, move_state, move_processor, cores,
                parent, parents_first, admission_state, admission_pool, returned, into_first, into_state,
                into_value, give_first, give_pool, give_value, passes,
            )  # fmt: skip
            for s in range(n):
                _add(sum_[s], part, slope[s])
            for a in range(admissions):
                _add(flowed[a], part, alpha[a])
        for s in range(n):
            _add(z[s], 1.0, sum_[s])
