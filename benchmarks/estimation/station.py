"""The closed system of the paper: users, an admission queue, a pool of threads that share cores.

N users think, queue first come first served for one of W threads, and are served by V cores in processor
sharing (the cores are fully shared, or each thread joins the core with the fewest threads). After a request a
user changes to another class with a given probability. Perez, Casale, Pacheco-Sanchez, section 3.1 and
figure 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from analyzer.estimation.samples import ArrivalSamples, FloatArray, IntArray, Trace, Windows, arrival_samples

__all__ = ["LOAD_OF_ONE", "Observed", "System", "simulate", "system"]

LOAD_OF_ONE = 200
"""Users that would keep all cores busy without any waiting: 20, 100 and 180 are 10, 50 and 90 % load."""

THINKING, WAITING, SERVED = 0, 1, 2


@dataclass(frozen=True)
class System:
    """One system.

    Attributes:
        cores, threads, users: V, W, N.
        demand: Mean demand of each class, s; shape (R,).
        think: Mean think time of each class, s; shape (R,).
        switch: Probability that a user changes class after a request.
        scv: Squared coefficient of variation of demands: 1 exponential, 1/k Erlang, above 1 hyperexponential
            of two phases with balanced means.
        shared: All cores are shared by all threads; else a thread joins the shortest queue.
        lognormal: Demands of an scv above 1 are lognormal instead.
    """

    cores: int
    threads: int
    users: int
    demand: FloatArray
    think: FloatArray
    switch: float = 0.1
    scv: float = 1.0
    shared: bool = True
    lognormal: bool = False


@dataclass(frozen=True)
class Observed:
    """What a run gave: the trace of all requests, those to be used, and measurements over windows."""

    trace: Trace
    used: IntArray
    windows: Windows

    @property
    def samples(self) -> ArrivalSamples:
        """What the requests to be used saw on admission."""
        return arrival_samples(self.trace).chosen(self.used)


def system(
    cores: int, threads: int, users: int, classes: int = 2, ratio: float = 2.0, **changes: float | bool
) -> System:
    """Return a system as in the paper's table 1.

    Mean demands go down geometrically from 0.1 s to 0.1 s / ratio. Up to a ratio of 10 all classes think
    equally long; beyond, think times are proportional to demands, so that no class vanishes from the load.
    """
    powers = np.arange(classes) / max(classes - 1, 1)
    demand = 0.1 * ratio**-powers
    # In proportional think times users of all classes have the same cycle relative to their demands.
    think = LOAD_OF_ONE * (demand if ratio > 10 else np.full(classes, demand.mean())) / cores
    return System(cores, threads, users, demand, think, **changes)  # type: ignore[arg-type]


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _run(
    cores: int,
    threads: int,
    users: int,
    demand: np.ndarray,
    think: np.ndarray,
    switch: float,
    scv: float,
    shared: bool,
    lognormal: bool,
    warmup: int,
    wanted: int,
    window: float,
    windows: int,
    rng: np.random.Generator,
) -> tuple:  # type: ignore[type-arg]
    classes = len(demand)
    limit = 1024
    record = np.empty((limit, 4))  # class, admission, departure, whether it is to be used
    number = 0
    utilization = np.zeros(windows)
    completions = np.zeros((windows, classes))
    times = np.zeros((windows, classes))
    phase = np.zeros(users, dtype=np.int64)
    kind = np.empty(users, dtype=np.int64)
    left = np.empty(users)  # think time or demand that remains
    core = np.zeros(users, dtype=np.int64)
    slot = np.zeros(users, dtype=np.int64)
    load = np.zeros(cores, dtype=np.int64)
    queue = np.empty(users, dtype=np.int64)
    head, waiting, busy = 0, 0, 0
    now, begin = 0.0, -1.0
    completed, pending = 0, 0
    count = np.zeros(classes, dtype=np.int64)
    for u in range(users):
        kind[u] = u % classes
        left[u] = rng.exponential(think[kind[u]])
    while True:
        share = min(1.0, cores / busy) if busy > 0 else 1.0
        soonest, who = np.inf, -1
        for u in range(users):
            if phase[u] == WAITING:
                continue
            speed = 1.0
            if phase[u] == SERVED:
                speed = share if shared else 1.0 / load[core[u]]
            if left[u] / speed < soonest:
                soonest, who = left[u] / speed, u
        working = min(busy, cores)
        if not shared:
            working = 0
            for v in range(cores):
                working += load[v] > 0
        if begin >= 0:
            # Busy cores over the windows the interval touches.
            at = now
            while at < now + soonest:
                w = int((at - begin) / window + 1e-9)
                if w >= windows:
                    break
                upto = min(now + soonest, begin + (w + 1) * window)
                utilization[w] += working * (upto - at)
                at = upto
        for u in range(users):
            if phase[u] == THINKING:
                left[u] -= soonest
            elif phase[u] == SERVED:
                left[u] -= soonest * (share if shared else 1.0 / load[core[u]])
        now += soonest
        arrived = -1
        if phase[who] == THINKING:
            phase[who] = WAITING
            if busy < threads:
                arrived = who
            else:
                queue[(head + waiting) % users] = who
                waiting += 1
        else:
            r = kind[who]
            record[slot[who], 2] = now
            pending -= int(record[slot[who], 3])
            busy -= 1
            load[core[who]] -= 1
            completed += 1
            if begin >= 0:
                w = int((now - begin) / window)
                if w < windows:
                    completions[w, r] += 1
                    times[w, r] += now - record[slot[who], 1]
            if classes > 1 and rng.random() < switch:
                kind[who] = (r + 1 + int(rng.random() * (classes - 1))) % classes
            phase[who] = THINKING
            left[who] = rng.exponential(think[kind[who]])
            if begin < 0 and completed >= warmup:
                begin = now
            if waiting > 0:
                arrived = queue[head]
                head = (head + 1) % users
                waiting -= 1
        if arrived >= 0:
            u = arrived
            r = kind[u]
            if number == limit:
                limit *= 2
                bigger = np.empty((limit, 4))
                bigger[:number] = record
                record = bigger
            use = begin >= 0 and count[r] < wanted
            count[r] += use
            pending += use
            phase[u] = SERVED
            busy += 1
            slot[u] = number
            record[number] = np.array([r, now, np.inf, use])
            number += 1
            mean = demand[r]
            if scv == 1.0:
                left[u] = rng.exponential(mean)
            elif scv < 1.0:
                steps = int(1 / scv + 0.5)
                left[u] = rng.standard_gamma(steps) * mean / steps
            elif lognormal:
                variance = np.log(1 + scv)
                left[u] = mean * np.exp(np.sqrt(variance) * rng.standard_normal() - variance / 2)
            else:
                likely = 0.5 * (1 + np.sqrt((scv - 1) / (scv + 1)))
                p = likely if rng.random() < likely else 1 - likely
                left[u] = rng.exponential(mean / (2 * p))
            core[u] = np.argmin(load)
            load[core[u]] += 1
        if begin >= 0 and count.min() >= wanted and pending == 0 and now >= begin + window * windows:
            break
    return record[:number], utilization / (window * cores), completions, times


def simulate(
    model: System,
    samples: int,
    seed: int,
    *,
    windows: int = 0,
    window: float = 5.0,
    warmup: int = 0,
    compiled: bool = True,
) -> Observed:
    """Run a system and observe it.

    Args:
        model: The system.
        samples: Requests per class to use: the first of each class admitted after the warm-up.
        seed: Same seed, same run.
        windows: Windows to measure utilization, throughput and response times over.
        window: Length of a window, s.
        warmup: Completions before anything counts; 0 = ten per user.
        compiled: False = interpreted: quicker than to compile first, for some hundred requests.
    """
    run = _run if compiled else _run.py_func
    record, utilization, completions, times = run(
        model.cores,
        model.threads,
        model.users,
        model.demand,
        model.think,
        model.switch,
        model.scv,
        model.shared,
        model.lognormal,
        warmup or 10 * model.users,
        samples,
        window,
        windows,
        np.random.default_rng(seed),
    )
    classes = tuple(f"c{r + 1}" for r in range(len(model.demand)))
    kind = record[:, 0].astype(np.int64)
    used = np.flatnonzero(record[:, 3])
    # Who has not left yet is in process until the end.
    end = np.where(np.isinf(record[:, 2]), record[:, 1].max(), record[:, 2])
    trace = Trace(classes, kind, np.arange(len(kind)), record[:, 1].copy(), end)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = times / completions
    return Observed(trace, used, Windows(classes, utilization, completions / window, means))
