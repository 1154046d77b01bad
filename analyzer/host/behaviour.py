"""Behaviour of the scheduler: whether work waits while a core idles, and what runs next.

Figures from a schedule (`analyzer.host.schedule`), in the terms of the model: there a thread that wakes
another one at the end of its work has left its core by then. In reality it needs some microseconds more, so
a thread that wakes another one and sleeps within `ENDING` seconds of work does not count as running.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from analyzer.host.estimates import Estimate, share
from analyzer.host.schedule import Piece, Schedule, Wakeup
from mup.lqn.model import Migration, Turns

__all__ = ["AMONG_SERVICES", "ENDING", "USUAL", "Behaviour", "behaviour"]

ENDING = 2e-4
"""Seconds; longer than waking another thread takes, shorter than any work of the profile."""
AT_ONCE = 1e-4
"""Seconds within which a thread that was woken runs if it has pushed another one off its core."""
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
AMONG_SERVICES = (
    (0.37, 0.59, 0.03),
    (0.46, 0.59, 0.03),
    (0.55, 0.59, 0.09),
    (0.62, 0.29, 0.10),
    (0.75, 0.07, 0.12),
    (0.86, 0.07, 0.39),
    (0.97, 0.01, 0.39),
)
"""By utilization of a machine with two cores, ``wake`` and ``steal`` of the processes of services, as traced
on Linux 6.18 (``benchmarks/services_on_cores.py``): close to the means of loads that are alike, smoothed so
that one falls and the other rises. Beside services both depend on it more than in the ring."""
USUAL = Turns(quantum=0.002, preempt=0.94)
"""How threads take turns where no trace says: as traced on Linux 6.18 (EEVDF, 250 ticks per second)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """What a trace of the ring showed.

    Shares are of the cases named. "Waits" means runnable, but not running.

    Attributes:
        idle_while_waiting: Share of the time a core idled while a thread waited for another one; per phase
            of the ring.
        utilization: Busy share of the cores, per phase.
        wake: Woken while its last core is busy and another one idle: put on an idle one.
        wake_by_timer, wake_by_thread: The same, by who woke it.
        wake_to_waker: The same, if the idle one is the core that its waker is just leaving.
        stays_home: Woken while its last core is idle: put there.
        packed: Woken while its last core is idle: put on a busy core.
        steal: A core about to fall idle while threads wait elsewhere: takes one.
        balance: Moves per second of waiting threads to another core while queues (with the running
            threads) differ by 2 or more.
        preempts: Woken onto a busy core: runs within 0.1 ms, that is, instead of the running thread.
        woken_wait: Seconds until it runs, otherwise; deciles 1, quartiles, decile 9.
        turn: Seconds a thread that others wait for runs until another one takes over; the same quantiles.
        completes: Share of such turns that end because the thread has nothing more to do.
        expired: Seconds of those that end because a thread that has been waiting is next; the same quantiles.
        preempts_alone: As ``preempts``, where no other thread waits for that core; None without such cases.
    """

    idle_while_waiting: tuple[float, ...]
    utilization: tuple[float, ...]
    wake: Estimate
    wake_by_timer: Estimate
    wake_by_thread: Estimate
    wake_to_waker: Estimate
    stays_home: Estimate
    packed: Estimate
    steal: Estimate
    balance: Estimate
    preempts: Estimate
    woken_wait: tuple[float, ...]
    turn: tuple[float, ...]
    completes: Estimate
    expired: tuple[float, ...] = ()
    preempts_alone: Estimate | None = None

    @property
    def migration(self) -> Migration:
        """The same for the model."""
        return Migration(wake=self.wake.mean, steal=self.steal.mean, balance=self.balance.mean)

    @property
    def turns(self) -> Turns:
        """How threads take turns on a core, for the model."""
        quantum = self.expired[QUANTILES.index(0.5)] if self.expired else USUAL.quantum
        # A model has more threads that wait than the machine: each user of a load is one.
        preempt = self.preempts_alone.mean if self.preempts_alone is not None else USUAL.preempt
        return Turns(quantum=quantum, preempt=preempt)


@dataclass(frozen=True, slots=True)
class _Case:
    """A wake-up in the terms of the model: how many threads each core had, by place."""

    wakeup: Wakeup
    loads: tuple[int, ...]
    home: int
    target: int
    leaving: int


def behaviour(schedule: Schedule, own: Collection[int], phases: Sequence[tuple[float, float]]) -> Behaviour:
    """Return the figures of the threads ``own`` during the phases (start and end in seconds).

    Raises:
        ValueError: The schedule holds nothing of these threads.
    """

    def within(time: float) -> bool:
        return any(start <= time < end for start, end in phases)

    remaining = _Remaining(schedule.pieces)
    place = {core: index for index, core in enumerate(schedule.cores)}
    cases = [
        _case(w, place, own, remaining)
        for w in schedule.wakeups
        if w.pid in own and w.home >= 0 and within(w.time)
    ]
    if not cases:
        raise ValueError("the trace shows none of the threads")
    stuck = [c for c in cases if c.loads[c.home] and 0 in c.loads]
    free = [c for c in cases if not c.loads[c.home]]
    busy = [c for c in cases if c.wakeup.running[c.target] and c.wakeup.ran is not None]
    waits = [(c.wakeup.ran or 0.0) - c.wakeup.time for c in busy]
    alone = [wait for case, wait in zip(busy, waits, strict=True) if not case.wakeup.waiting[case.target]]
    turns = [p for p in schedule.pieces if p.pid in own and p.awaited is not None and within(p.start)]

    def moved(some: list[_Case]) -> Estimate:
        return share(sum(c.loads[c.target] == 0 for c in some), len(some))

    idled = [i for i in schedule.idled if within(i[0])]
    idle, used, uneven = zip(*(_times(schedule, *phase) for phase in phases), strict=True)
    length = [end - start for start, end in phases]
    moves = sum(not move.pulled and within(move.time) for move in schedule.moves)
    uneven_seconds = sum(uneven)
    return Behaviour(
        idle_while_waiting=tuple(a / b for a, b in zip(idle, length, strict=True)),
        utilization=tuple(a / b / len(place) for a, b in zip(used, length, strict=True)),
        wake=moved(stuck),
        wake_by_timer=moved([c for c in stuck if c.wakeup.waker == 0]),
        wake_by_thread=moved([c for c in stuck if c.wakeup.waker]),
        wake_to_waker=share(
            *_count(
                [c for c in stuck if c.leaving >= 0 and c.leaving != c.home], lambda c: c.target == c.leaving
            )
        ),
        stays_home=share(*_count(free, lambda c: c.target == c.home)),
        packed=share(*_count(free, lambda c: c.target != c.home and c.loads[c.target] > 0)),
        steal=share(sum(pulled for *_, pulled in idled), len(idled)),
        balance=Estimate(moves / uneven_seconds, 1.96 * moves**0.5 / uneven_seconds)
        if uneven_seconds
        else Estimate(0.0, 0.0),
        preempts=share(sum(wait <= AT_ONCE for wait in waits), len(waits)),
        woken_wait=_quantiles([wait for wait in waits if wait > AT_ONCE]),
        turn=_quantiles([p.end - p.start for p in turns]),
        completes=share(sum(p.blocked for p in turns), len(turns)),
        expired=_quantiles([p.end - p.start for p in _expired(schedule, turns)]),
        preempts_alone=share(sum(wait <= AT_ONCE for wait in alone), len(alone)) if alone else None,
    )


def _expired(schedule: Schedule, turns: Collection[Piece]) -> Iterator[Piece]:
    """Give the turns that ended neither by sleep nor by a thread that had just woken up."""
    woken = {(w.pid, w.ran): w.time for w in schedule.wakeups if w.ran is not None}
    following = {(p.cpu, p.start): p for p in schedule.pieces}
    for piece in turns:
        after = following.get((piece.cpu, piece.end))
        if not piece.blocked and after is not None:
            since = woken.get((after.pid, after.start))
            if since is None or after.start - since > AT_ONCE:
                yield piece


def _case(wakeup: Wakeup, place: dict[int, int], own: Collection[int], remaining: _Remaining) -> _Case:
    running = list(wakeup.running)
    leaving = -1
    if wakeup.waker in own and remaining(wakeup.waker, wakeup.time) < ENDING:
        leaving = place[wakeup.waker_cpu]
        running[leaving] = 0
    loads = tuple(bool(pid) + waiting for pid, waiting in zip(running, wakeup.waiting, strict=True))
    return _Case(wakeup, loads, place[wakeup.home], place[wakeup.target], leaving)


def _count(cases: list[_Case], holds: Callable[[_Case], bool]) -> tuple[int, int]:
    return sum(holds(case) for case in cases), len(cases)


def _times(schedule: Schedule, start: float, end: float) -> tuple[float, float, float]:
    """Return seconds of idling while others wait, core-seconds in use, and seconds of uneven queues."""
    idle = used = uneven = 0.0
    for (time, running, waiting), (until, _, _) in zip(schedule.changes, schedule.changes[1:], strict=False):
        passed = min(until, end) - max(time, start)
        if passed <= 0:
            continue
        used += passed * sum(pid != 0 for pid in running)
        if 0 in running and any(waiting):
            idle += passed
        loads = [bool(pid) + count for pid, count in zip(running, waiting, strict=True)]
        if max(loads) - min(loads) >= 2:
            uneven += passed
    return idle, used, uneven


class _Remaining:
    """Remaining work of a thread before it sleeps."""

    def __init__(self, pieces: list[Piece]) -> None:
        self._pieces: dict[int, list[Piece]] = defaultdict(list)
        for piece in sorted(pieces, key=lambda p: p.start):
            self._pieces[piece.pid].append(piece)
        self._starts = {pid: [p.start for p in mine] for pid, mine in self._pieces.items()}

    def __call__(self, pid: int, time: float) -> float:
        """Return seconds of processor time from ``time`` on."""
        total = 0.0
        first = max(0, bisect_right(self._starts.get(pid, []), time) - 1)
        for piece in self._pieces[pid][first:]:
            total += piece.end - max(piece.start, time)
            if piece.blocked or total >= ENDING:
                break
        return total


def _quantiles(values: list[float]) -> tuple[float, ...]:
    ordered = sorted(values)
    return tuple(ordered[int(q * (len(ordered) - 1))] for q in QUANTILES) if ordered else ()
