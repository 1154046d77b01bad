"""How does this machine run many processes that wake each other for short bursts of work?

A small application like a deployment of services, of which everything is known. Tokens go round a ring of
processes; each process takes a token from its socket, works for a fraction of a millisecond to a few
milliseconds, and hands it on. A hub lets every token rest for a random time between two rounds, so the first
process of a round is woken by a timer's owner and the others by each other. Every process writes down
what each burst cost in processor time, in wall time, and (where the kernel says so) in time spent in a run
queue. The same ring is a model: `analyzer.host.fitting` simulates it.
"""

from __future__ import annotations

import heapq
import os
import random
import select
import socket
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from analyzer.host.forks import Fork, fork
from mup.workload.speed import ReferenceWork

__all__ = ["BURSTS", "MAX_CORES", "RingPlan", "run_ring"]

MAX_CORES = 8
"""More cores than these are not used; how threads are placed does not depend on all of them."""

BURSTS = (0.0003, 0.0006, 0.001, 0.0016, 0.0026, 0.0044)
"""Mean seconds of work per burst, dealt to the processes in turn."""

_TOKEN = struct.Struct("<Iq")  # which token, when it was sent (monotonic ns)
_STOP = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class RingPlan:
    """What a ring is made of.

    Attributes:
        cores: How many cores it may use (the first ones this process may use).
        tokens: How many tokens go round.
        rests: Mean rest of a token at the hub in seconds, one per phase.
        seconds: How long each phase lasts.
        seed: Of rests and bursts.
    """

    cores: int
    tokens: int
    rests: tuple[float, ...]
    seconds: float
    seed: int = 1

    @classmethod
    def for_cores(cls, cores: int, seconds: float, loads: Sequence[float] = (0.5, 0.7, 0.85)) -> RingPlan:
        """Return a ring that uses the cores to about these shares, one phase of ``seconds`` each."""
        cores = min(cores, MAX_CORES)
        tokens, work = 6 * cores, 3 * cores * sum(BURSTS) / len(BURSTS)
        # Rounds per second = tokens / (rest + time for a round); the latter is guessed, 2 to 4 times the work.
        rests = tuple(max(0.001, tokens * work / (load * cores) - work * (1 + 2 * load)) for load in loads)
        return cls(cores, tokens, rests, seconds)

    @property
    def means(self) -> tuple[float, ...]:
        """Intended mean seconds of work per burst, one per process."""
        return tuple(BURSTS[i % len(BURSTS)] for i in range(3 * self.cores))


def run_ring(plan: RingPlan) -> dict[str, Any]:
    """Run a ring and return what its processes wrote down.

    Returns:
        ``phases``: per phase ``start`` and ``end`` (monotonic ns), ``rest`` and ``lateness`` (mean seconds a
        token rested, and by how much its timer was late), ``rounds`` (seconds per round). ``processes``: one per
        process of the ring, ``pid`` and ``bursts``: ``[received ns, CPU s, wall s, run queue s or None, travel s]``.
        ``hub``: ``pid``, and its CPU seconds per phase.
    """
    allowed = sorted(os.sched_getaffinity(0))
    step = _step_seconds()
    links = [socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM) for _ in range(len(plan.means) + 1)]
    os.sched_setaffinity(0, set(allowed[: plan.cores]))
    try:
        workers = [
            fork(_worker, links, index, mean / step, plan.seed + index) for index, mean in enumerate(plan.means)
        ]
        hub = fork(_hub, links, plan)
        for inward, outward in links:
            inward.close()
            outward.close()
        return _gather(hub, workers)
    finally:
        os.sched_setaffinity(0, set(allowed))


def _gather(hub: Fork, workers: list[Fork]) -> dict[str, Any]:
    report = hub.result()
    return {
        "phases": report["phases"],
        "hub": {"pid": hub.pid, "cpu": report["cpu"]},
        "processes": [{"pid": worker.pid, "bursts": worker.result()} for worker in workers],
    }


def _step_seconds() -> float:
    """Return the processor time of one step of the reference work, now."""
    work = ReferenceWork()
    work.run(20)
    start = time.thread_time_ns()
    work.run(60)
    return (time.thread_time_ns() - start) / 1e9 / work.steps_of(60)


def _ends(links: list[tuple[socket.socket, socket.socket]], index: int) -> tuple[socket.socket, socket.socket]:
    """Keep what member ``index`` of the ring needs: where it reads, and where the next one reads."""
    inward, outward = links[index][0], links[(index + 1) % len(links)][1]
    for pair in links:
        for end in pair:
            if end not in (inward, outward):
                end.close()
    return inward, outward


def _worker(
    links: list[tuple[socket.socket, socket.socket]], index: int, mean_steps: float, seed: int
) -> list[tuple[int, float, float, float | None, float]]:
    inward, outward = _ends(links, index)
    draw, work, queue = random.Random(seed), ReferenceWork(), _RunQueue()
    work.run(5)
    bursts: list[tuple[int, float, float, float | None, float]] = []
    waited, clock = queue.seconds(), time.thread_time_ns
    used = clock()
    while True:
        message = inward.recv(_TOKEN.size, socket.MSG_WAITALL)
        received = time.monotonic_ns()
        if len(message) < _TOKEN.size:
            break
        token, sent = _TOKEN.unpack(message)
        if token == _STOP:
            outward.sendall(message)
            break
        # Half constant, half exponential: a coefficient of variation of 0.5, as endpoints have.
        work.steps(max(1, round(mean_steps * (0.5 + 0.5 * draw.expovariate(1.0)))))
        outward.sendall(_TOKEN.pack(token, time.monotonic_ns()))
        ended, now_used, now_waited = time.monotonic_ns(), clock(), queue.seconds()
        bursts.append(
            (
                received,
                (now_used - used) / 1e9,
                (ended - received) / 1e9,
                None if now_waited is None or waited is None else now_waited - waited,
                (received - sent) / 1e9,
            )
        )
        used, waited = now_used, now_waited
    return bursts


def _hub(links: list[tuple[socket.socket, socket.socket]], plan: RingPlan) -> dict[str, Any]:
    inward, outward = _ends(links, len(links) - 1)
    draw = random.Random(plan.seed + 1000)
    resting: list[tuple[float, int]] = []
    left: dict[int, float] = {}
    phases: list[dict[str, Any]] = []
    used: list[float] = []
    clock = time.monotonic
    # All tokens begin to rest; later phases begin with the tokens where they are.
    for token in range(plan.tokens):
        heapq.heappush(resting, (clock() + draw.expovariate(1 / plan.rests[0]), token))
    for rest in plan.rests:
        start, cpu = clock(), time.thread_time_ns()
        ends, late, rests, rounds = start + plan.seconds, [0.0], [0.0], []
        while (now := clock()) < ends:
            pause = min(ends, resting[0][0] if resting else ends) - now
            # A timer with the resolution of the system's, as event loops use.
            ready = select.select([inward], [], [], max(0.0, pause))[0]
            now = clock()
            while resting and resting[0][0] <= now:
                due, token = heapq.heappop(resting)
                late.append(now - due)
                left[token] = now
                outward.sendall(_TOKEN.pack(token, time.monotonic_ns()))
            if ready:
                message = inward.recv(_TOKEN.size, socket.MSG_WAITALL)
                token, _ = _TOKEN.unpack(message)
                now = clock()
                rounds.append(now - left.pop(token))
                pause = draw.expovariate(1 / rest)
                rests.append(pause)
                heapq.heappush(resting, (now + pause, token))
        used.append((time.thread_time_ns() - cpu) / 1e9)
        phases.append(
            {
                "start": int(start * 1e9),
                "end": int(clock() * 1e9),
                "rest": sum(rests) / max(1, len(rests) - 1),
                "lateness": sum(late) / max(1, len(late) - 1),
                "rounds": rounds,
            }
        )
    outward.sendall(_TOKEN.pack(_STOP, 0))
    # Until the last one has seen it: closing earlier would break somebody's pipe.
    while message := inward.recv(_TOKEN.size, socket.MSG_WAITALL):
        if _TOKEN.unpack(message)[0] == _STOP:
            break
    return {"phases": phases, "cpu": used}


class _RunQueue:
    """The time the calling thread has spent runnable without running, as the kernel counts it."""

    def __init__(self) -> None:
        try:
            self._file: int | None = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
        except OSError:
            self._file = None

    def seconds(self) -> float | None:
        """Return it; None where the kernel does not tell."""
        if self._file is None:
            return None
        return int(os.pread(self._file, 100, 0).split()[1]) / 1e9
