"""Mean numbers of requests per state, at given moments after a given start.

Exact stochastic simulation (Gillespie, "Exact stochastic simulation of coupled chemical reactions", 1977) of
an inlined model: in a state, the next event comes after an exponential time, and is one of those possible in
proportion to their rates. Only the numbers of requests per state are kept, so a thousand clients cost what
one costs. Who is admitted is drawn uniformly among all who wait (the GPS admission of Garbi's thesis, 4.1.2,
the ``random`` admission of a model); what follows at once follows in the same event.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from mup.errors import SimulationError, UsageError
from mup.native.binding import compiled, inlined
from mup.native.shapes import Floats1, Floats2, Longs1, Numbers1, Word
from simulator.fluid.states import PARKED, Effects
from simulator.machine.variates import client_streams, uniform
from simulator.networks.inlined import InlinedLqn, held_pools

__all__ = ["InlinedProcess", "TransientMeans"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.uint32]
"""Of states, events, pools, processors: never negative, so compiled code need not ask whether one counts from
the end of an array, which takes a tenth of the time."""

STACK: Final = 4096
"""Room for what is still to happen at one moment."""

DONE: Final = 0
OVERFLOW: Final = 1
EXHAUSTED: Final = 2


@dataclass(frozen=True, slots=True)
class TransientMeans:
    """Averages over replications.

    Attributes:
        x: Mean requests per state at the moments 0, dt, ...; shape (starts, H, n).
        events: Ends of stages that were simulated.
    """

    x: FloatArray
    events: int


class InlinedProcess:
    """The Markov population process of an inlined model, ready to be simulated."""

    def __init__(self, lqn: InlinedLqn) -> None:
        space, system = lqn.space, lqn.system
        self.lqn = lqn
        self.held = held_pools(lqn)
        self.capacity = system.capacity
        n, processors = len(space.states), len(system.cores)
        parked = {s.owner: i for s, i in space.index.items() if s.kind == PARKED}
        self.move_state = system.source_q.astype(np.uint32)
        # One more processor at the end, on which everything runs at full speed.
        self.move_processor = np.where(system.processor < 0, processors, system.processor).astype(np.uint32)
        self.cores = np.append(system.cores, math.inf)
        self.parent = np.array([*system.parent, -1], dtype=np.int64)
        self.parents_first = np.array([*system.parents_first, processors], dtype=np.int64)
        self.admission_state = system.source_a.astype(np.uint32)
        self.admission_pool = system.pool.astype(np.uint32)
        by_state: list[list[int]] = [[] for _ in range(n)]
        by_pool: list[list[int]] = [[] for _ in range(len(self.capacity))]
        for a, admission in enumerate(space.admissions):
            by_state[admission.state].append(a)
            by_pool[admission.pool].append(a)
        self.of_state = _rows(by_state)
        self.of_pool = _rows(by_pool)
        served: list[list[int]] = [[] for _ in range(n)]
        shared: list[list[int]] = [[] for _ in range(processors + 1)]
        for m, (state, processor) in enumerate(
            zip(self.move_state.tolist(), self.move_processor.tolist(), strict=True)
        ):
            served[state].append(m)
            shared[processor].append(m)
        self.moves_of_state, self.moves_of_processor = _rows(served), _rows(shared)
        events: list[tuple[Effects, int]] = [(m.effects, -1) for m in space.moves]
        events += [(a.effects, parked.get(a.pool, -1)) for a in space.admissions]
        first, odds, targets, released, taken = [0], [], [], [], []
        for effects, consumed in events:
            total = 0.0
            for outcome in effects.outcomes:
                total += outcome.probability
                odds.append(total)
                targets.append(list(outcome.targets))
                released.append(list(outcome.released))
                taken.append(consumed)
            odds[-1] = 1.0
            first.append(len(odds))
        self.outcomes = (np.array(first, dtype=np.int64), np.array(odds))
        self.targets, self.released = _rows(targets), _rows(released)
        self.taken = np.array(taken, dtype=np.int64)

    def free_places(self, x: FloatArray) -> FloatArray:
        """Return the free places of every pool in a state; shape (S,)."""
        return np.asarray(self.capacity - self.held @ x)

    def simulate(
        self,
        means: FloatArray,
        starts: FloatArray,
        *,
        dt: float,
        samples: int,
        replications: int,
        seed: int = 0,
        max_events: int = 10**10,
    ) -> TransientMeans:
        """Average ``replications`` runs from every start.

        Args:
            means: Of the model's times, in seconds, > 0; shape (T,).
            starts: Whole numbers of requests per state; shape (K, n). Who waits although there is a place is
                admitted before the first moment.
            dt: Seconds between moments.
            samples: Number of moments, the beginning included.
            replications: Runs per start.
            seed: Same seed, same numbers.
            max_events: Of all runs together.

        Raises:
            UsageError: A start is no state of the model.
            SimulationError: There were more events than allowed.
        """
        if (starts < 0).any() or (starts != np.floor(starts)).any():
            raise UsageError("initial populations must be whole numbers >= 0")
        rate = self.lqn.factor / means[self.lqn.time_of]
        x = np.zeros((len(starts), samples, starts.shape[1]))
        streams = client_streams(np.uint64(seed), 0, len(starts))
        counts = np.zeros(starts.shape[1], dtype=np.int64)
        stack = np.zeros(STACK, dtype=np.int64)
        free = np.zeros(len(self.capacity), dtype=np.int64)
        work = np.zeros((4, len(self.cores)))
        events = 0
        for k, start in enumerate(starts):
            places = np.rint(self.free_places(start)).astype(np.int64)
            if (places < 0).any():
                pool = self.lqn.space.code.pools[int(np.argmin(places))].name
                raise UsageError(f"initial population {k}: more requests than places: {pool}")
            status, count = _run(
                streams[k], x[k], start.astype(np.int64), places, counts, free, stack, work, float(dt),
                replications, max_events - events, rate, self.move_state, self.move_processor,
                self.cores, self.parent, self.parents_first, self.admission_state, self.admission_pool,
                *self.of_state, *self.of_pool, *self.moves_of_state, *self.moves_of_processor, *self.outcomes,
                *self.targets, *self.released, self.taken,
            )  # fmt: skip
            events += count
            if status == EXHAUSTED:
                raise SimulationError(
                    f"more than {max_events:.3g} events",
                    hint="simulate fewer replications, or a shorter time",
                )
            if status == OVERFLOW:
                raise SimulationError("too much happens at one moment", where=self.lqn.model.name)
            x[k] /= replications
        return TransientMeans(x, events)

    def random_starts(self, count: int, seed: int = 0) -> FloatArray:
        """Return valid initial populations: clients spread at random; shape (count, n).

        Weights of the states are Dirichlet distributed, so some starts crowd a few states and others are
        even. A client without a place left in its drawn state begins a cycle.
        """
        rng = np.random.default_rng(seed)
        mine = np.flatnonzero(self.lqn.client_states)
        return np.array(
            [self._spread(rng, mine, rng.dirichlet(np.full(len(mine), 0.3))) for _ in range(count)]
        )

    def whole(self, x: FloatArray) -> FloatArray:
        """Return a valid initial population of whole numbers near mean requests per state; shape (n,).

        By largest remainders. A client without a place left begins a cycle, a branch is left out.
        """
        near = np.floor(x + 1e-6)
        missing = round(float((x - near).sum()))
        space = self.lqn.space
        unplaced = []
        for state in np.argsort(near - x).tolist():
            if missing == 0:
                break
            near[state] += 1
            if (self.free_places(near) < -1e-9).any():
                near[state] -= 1
                unplaced.append(state)
            else:
                missing -= 1
        for state in unplaced[:missing]:
            if self.lqn.client_states[state]:
                near[int(next(iter(space.start[space.states[state].owner])))] += 1
        return near

    def extreme_starts(self) -> FloatArray:
        """Return the states in which as many clients as possible are in one entry; shape (entries, n)."""
        rng = np.random.default_rng(0)
        mine = np.flatnonzero(self.lqn.client_states)
        labels = sorted({label for p in self.lqn.positions for label in p.entries})
        found = []
        for label in labels:
            rows = [i for i, p in enumerate(self.lqn.positions) if p.entries[-1] == label]
            inside = self.lqn.counts[rows][:, mine].sum(axis=0) > 0
            if inside.any():
                found.append(self._spread(rng, mine, inside / inside.sum()))
        return np.array(found)

    def _spread(self, rng: np.random.Generator, states: IntArray, weights: FloatArray) -> FloatArray:
        """Place every client in one of the states, where there is room for all it holds."""
        x = np.zeros(len(self.lqn.space.states))
        space = self.lqn.space
        for number, population in enumerate(space.code.populations):
            own = np.array([space.states[s].owner == number for s in states])
            odds = np.where(own, weights, 0.0)
            start = int(next(iter(space.start[number])))
            for _ in range(int(population.clients)):
                free = self.free_places(x)
                fits = (self.held[:, states] <= np.maximum(free, 0.0)[:, None] + 1e-9).all(axis=0)
                here = np.where(fits, odds, 0.0)
                total = here.sum()
                state = int(rng.choice(states, p=here / total)) if total > 0 else start
                x[state] += 1
        return x


def _rows(rows: list[list[int]]) -> tuple[IntArray, Numbers]:
    """Return lists of numbers one behind the other, with the place where each begins."""
    first = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    return first, np.array([value for row in rows for value in row], dtype=np.uint32)


@inlined
def _shares(work: Any, cores: Any, parent: Any, parents_first: Any) -> None:
    """Turn the running threads work[0] into the share of a core each of them gets, work[1] (equation 4.1).

    For processors within others; work[2] are the loads from within.
    """
    for i in range(len(cores)):
        work[2, i] = work[0, i]
    for j in range(len(cores) - 1, -1, -1):
        i = parents_first[j]
        if parent[i] >= 0:
            work[2, parent[i]] += min(work[2, i], cores[i])
    for j in range(len(cores)):
        i = parents_first[j]
        own = cores[i] / work[2, i] if work[2, i] > cores[i] else 1.0
        work[1, i] = own * work[1, parent[i]] if parent[i] >= 0 else own


@inlined
def _count(
    state: int, change: int, counts: Any, work: Any, rate: Any, move_processor: Any, moves_first: Any,
    moves_list: Any,
) -> None:  # fmt: skip
    """Let requests enter a state (or leave it, if ``change`` is negative), and know who runs where."""
    counts[state] += change
    for j in range(moves_first[state], moves_first[state + 1]):
        m = moves_list[j]
        work[0, move_processor[m]] += change
        work[3, move_processor[m]] += change * rate[m]


@inlined
def _choose(state: Any, event: int, first: Any, odds: Any) -> Any:
    """Return the stream and the outcome of an event."""
    at = first[event]
    if first[event + 1] == at + 1:
        return state, at
    state, u = uniform(state)
    while odds[at] < u:
        at += 1
    return state, at


@inlined
def _settle(
    stream: Any, top: int, stack: Any, counts: Any, free: Any, work: Any, rate: Any, move_processor: Any,
    admission_state: Any, admission_pool: Any, state_first: Any, state_list: Any, pool_first: Any,
    pool_list: Any, moves_first: Any, moves_list: Any, first: Any, odds: Any, target_first: Any,
    target_list: Any, released_first: Any, released_list: Any, taken: Any,
) -> Any:  # fmt: skip
    """Let everything happen that happens at once. The stack has outcomes; its size at the end is 0."""
    while top > 0:
        top -= 1
        item = stack[top]
        event = -1
        if item < 0:  # a place of a pool was given back
            pool = -1 - item
            free[pool] += 1
            waiting = 0
            for j in range(pool_first[pool], pool_first[pool + 1]):
                waiting += counts[admission_state[pool_list[j]]]
            if waiting > 0 and free[pool] > 0:
                stream, u = uniform(stream)
                pick = int(u * waiting)
                for j in range(pool_first[pool], pool_first[pool + 1]):
                    pick -= counts[admission_state[pool_list[j]]]
                    if pick < 0:
                        event = pool_list[j]
                        break
        else:  # a request enters a state
            _count(item, 1, counts, work, rate, move_processor, moves_first, moves_list)
            for j in range(state_first[item], state_first[item + 1]):
                if free[admission_pool[state_list[j]]] > 0:
                    event = state_list[j]
                    break
        if event >= 0:
            _count(admission_state[event], -1, counts, work, rate, move_processor, moves_first, moves_list)
            free[admission_pool[event]] -= 1
            stream, outcome = _choose(stream, len(first) - 1 - len(admission_state) + event, first, odds)
            if taken[outcome] >= 0:
                _count(taken[outcome], -1, counts, work, rate, move_processor, moves_first, moves_list)
            top = _push(top, stack, outcome, target_first, target_list, released_first, released_list)
            if top < 0:
                return stream, top
    return stream, top


@inlined
def _push(
    top: int, stack: Any, outcome: int, target_first: Any, target_list: Any, released_first: Any,
    released_list: Any,
) -> int:  # fmt: skip
    """Put what an outcome does on the stack, what is given back on top; -1 if there is no room."""
    if top + 64 > len(stack):
        return -1
    for j in range(target_first[outcome], target_first[outcome + 1]):
        stack[top] = target_list[j]
        top += 1
    for j in range(released_first[outcome], released_first[outcome + 1]):
        stack[top] = -1 - released_list[j]
        top += 1
    return top


@compiled
def _run(
    stream: Word, sums: Floats2, start: Longs1, free_at_start: Longs1, counts: Longs1, free: Longs1,
    stack: Longs1, work: Floats2, dt: float, replications: int, max_events: int, rate: Floats1,
    move_state: Numbers1, move_processor: Numbers1, cores: Floats1, parent: Longs1, parents_first: Longs1,
    admission_state: Numbers1, admission_pool: Numbers1, state_first: Longs1, state_list: Numbers1,
    pool_first: Longs1, pool_list: Numbers1, moves_first: Longs1, moves_list: Numbers1,
    processor_first: Longs1, processor_list: Numbers1, first: Longs1, odds: Floats1, target_first: Longs1,
    target_list: Numbers1, released_first: Longs1, released_list: Numbers1, taken: Longs1,
) -> Any:  # fmt: skip
    """Add the numbers at every moment over all replications to ``sums``; returns a status and the events.

    Work space: ``work`` (running threads per processor, their shares, loads or rates, rate at full speed).
    """
    samples, n = sums.shape
    moves = len(rate)
    events = 0
    nested = False
    for i in range(len(parent)):
        nested = nested or parent[i] >= 0
    for _ in range(replications):
        for s in range(n):
            counts[s] = start[s]
        for p in range(len(free)):
            free[p] = free_at_start[p]
        # Summed anew for every run, so that rounding errors of the changes do not pile up.
        for i in range(len(cores)):
            work[0, i] = 0.0
            work[3, i] = 0.0
        for m in range(moves):
            present = counts[move_state[m]]
            work[0, move_processor[m]] += present
            work[3, move_processor[m]] += present * rate[m]
        # Those who wait although there is a place: as many places are given back once more.
        top = 0
        for p in range(len(free)):
            waiting = 0
            for j in range(pool_first[p], pool_first[p + 1]):
                waiting += counts[admission_state[pool_list[j]]]
            for _place in range(min(free[p], waiting)):
                if top + 64 > len(stack):
                    return OVERFLOW, events
                free[p] -= 1
                stack[top] = -1 - p
                top += 1
        time = 0.0
        sample = 0
        while True:
            stream, top = _settle(
                stream, top, stack, counts, free, work, rate, move_processor, admission_state, admission_pool,
                state_first, state_list, pool_first, pool_list, moves_first, moves_list, first, odds,
                target_first, target_list, released_first, released_list, taken,
            )  # fmt: skip
            if top < 0:
                return OVERFLOW, events
            if nested:
                _shares(work, cores, parent, parents_first)
            total = 0.0
            for i in range(len(cores)):
                running = work[0, i]
                if running == 0.0:  # exact, for these are whole numbers; the rates are not
                    work[3, i] = 0.0
                if not nested:
                    work[1, i] = cores[i] / running if running > cores[i] else 1.0
                work[2, i] = work[1, i] * work[3, i]
                total += work[2, i]
            if total > 0.0:
                stream, u = uniform(stream)
                time -= math.log(1.0 - u) / total
            else:
                time = math.inf
            while sample < samples and sample * dt < time:
                for s in range(n):
                    sums[sample, s] += counts[s]
                sample += 1
            if sample == samples:
                break
            events += 1
            if events > max_events:
                return EXHAUSTED, events
            stream, u = uniform(stream)
            left = u * total
            where = -1
            for i in range(len(cores)):
                if work[0, i] > 0.0:
                    where = i
                    if left < work[2, i]:
                        break
                    left -= work[2, i]
            left /= work[1, where]
            event = -1
            for j in range(processor_first[where], processor_first[where + 1]):
                m = processor_list[j]
                present = counts[move_state[m]]
                if present > 0:
                    event = m
                    left -= present * rate[m]
                    if left < 0.0:
                        break
            _count(move_state[event], -1, counts, work, rate, move_processor, moves_first, moves_list)
            stream, outcome = _choose(stream, event, first, odds)
            top = _push(0, stack, outcome, target_first, target_list, released_first, released_list)
    return DONE, events
