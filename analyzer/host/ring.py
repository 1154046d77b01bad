"""Ring benchmark: many processes that wake each other for short bursts of work.

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

import msgspec

from analyzer.host.forks import fork
from mup.errors import DeploymentError
from mup.workload.speed import ReferenceWork

__all__ = ["BURSTS", "MAX_CORES", "Burst", "Phase", "Process", "RingPlan", "RingReport", "run_ring"]

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
        # Rounds per second = tokens / (rest + time for a round); the latter is a guess.
        rests = tuple(max(0.001, tokens * work / (load * cores) - work * (1 + 2 * load)) for load in loads)
        return cls(cores, tokens, rests, seconds)

    @property
    def means(self) -> tuple[float, ...]:
        """Intended mean seconds of work per burst, one per process."""
        return tuple(BURSTS[i % len(BURSTS)] for i in range(3 * self.cores))


@dataclass(frozen=True, slots=True)
class Burst:
    """One turn of a process.

    Attributes:
        received: When it had read the token (monotonic ns).
        cpu: Processor seconds, waking up and reading included.
        wall: Seconds from reading the token to having handed it on.
        queue: Seconds spent runnable without running, since the end of the previous burst; None = the kernel
            does not tell.
        travel: Seconds from sending the token to having read it.
        work: Processor seconds of the same work back to back, when the ring began.
    """

    received: int
    cpu: float
    wall: float
    queue: float | None
    travel: float
    work: float


@dataclass(frozen=True, slots=True)
class Phase:
    """A load of the ring.

    Attributes:
        start, end: Monotonic ns.
        rest: Mean seconds a token was to rest.
        lateness: Mean seconds its timer was late.
        rounds: Seconds of every round, from leaving the hub to coming back.
        hub_cpu: Processor seconds of the hub.
    """

    start: int
    end: int
    rest: float
    lateness: float
    rounds: tuple[float, ...]
    hub_cpu: float


@dataclass(frozen=True, slots=True)
class Process:
    """A process of the ring."""

    pid: int
    bursts: tuple[Burst, ...]

    def within(self, phase: Phase) -> list[Burst]:
        """Return the bursts of a phase."""
        return [burst for burst in self.bursts if phase.start <= burst.received < phase.end]


@dataclass(frozen=True, slots=True)
class RingReport:
    """Everything the processes of a ring wrote down."""

    cores: tuple[int, ...]
    tokens: int
    hub: int
    phases: tuple[Phase, ...]
    processes: tuple[Process, ...]

    @property
    def pids(self) -> frozenset[int]:
        """The processes, hub included."""
        return frozenset({self.hub, *(process.pid for process in self.processes)})

    @property
    def mean_rounds(self) -> tuple[float, ...]:
        """Mean seconds per round, one per phase.

        Raises:
            DeploymentError: No token came round in one of them.
        """
        if not all(phase.rounds for phase in self.phases):
            raise DeploymentError(
                "nothing was completed while the scheduler was measured: the machine is too busy",
                hint="stop what else runs on it, or measure for longer (--duration)",
            )
        return tuple(sum(phase.rounds) / len(phase.rounds) for phase in self.phases)


def run_ring(plan: RingPlan) -> RingReport:
    """Run a ring in forked processes of this one, and return what they wrote down."""
    allowed = sorted(os.sched_getaffinity(0))
    used = allowed[: plan.cores]
    step = _step_seconds()
    links = [socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM) for _ in range(len(plan.means) + 1)]
    os.sched_setaffinity(0, set(used))
    try:
        workers = [
            fork(_worker, links, index, mean, step, plan.seed + index)
            for index, mean in enumerate(plan.means)
        ]
        hub = fork(_hub, links, plan)
        for inward, outward in links:
            inward.close()
            outward.close()
        phases = msgspec.convert(hub.result(), tuple[Phase, ...])
        processes = tuple(
            Process(worker.pid, msgspec.convert(worker.result(), tuple[Burst, ...])) for worker in workers
        )
        return RingReport(tuple(used), plan.tokens, hub.pid, phases, processes)
    finally:
        os.sched_setaffinity(0, set(allowed))


def _step_seconds() -> float:
    """Return the processor time of one step of the reference work, now."""
    work = ReferenceWork()
    work.run(20)
    start = time.thread_time_ns()
    work.run(60)
    return (time.thread_time_ns() - start) / 1e9 / work.steps_of(60)


def _ends(
    links: list[tuple[socket.socket, socket.socket]], index: int
) -> tuple[socket.socket, socket.socket]:
    """Keep what member ``index`` of the ring needs: where it reads, and where the next one reads."""
    inward, outward = links[index][0], links[(index + 1) % len(links)][1]
    for pair in links:
        for end in pair:
            if end not in (inward, outward):
                end.close()
    return inward, outward


def _worker(
    links: list[tuple[socket.socket, socket.socket]], index: int, mean: float, step: float, seed: int
) -> list[Burst]:
    inward, outward = _ends(links, index)
    draw, work, queue = random.Random(seed), ReferenceWork(), _RunQueue()
    work.run(5)
    bursts: list[Burst] = []
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
        steps = max(1, round(mean / step * (0.5 + 0.5 * draw.expovariate(1.0))))
        work.steps(steps)
        outward.sendall(_TOKEN.pack(token, time.monotonic_ns()))
        ended, now_used, now_waited = time.monotonic_ns(), clock(), queue.seconds()
        bursts.append(
            Burst(
                received,
                (now_used - used) / 1e9,
                (ended - received) / 1e9,
                None if now_waited is None or waited is None else now_waited - waited,
                (received - sent) / 1e9,
                steps * step,
            )
        )
        used, waited = now_used, now_waited
    return bursts


def _hub(links: list[tuple[socket.socket, socket.socket]], plan: RingPlan) -> list[Phase]:
    inward, outward = _ends(links, len(links) - 1)
    draw = random.Random(plan.seed + 1000)
    resting: list[tuple[float, int]] = []
    left: dict[int, float] = {}
    phases: list[Phase] = []
    clock = time.monotonic
    # All tokens begin to rest; later phases begin with the tokens where they are.
    for token in range(plan.tokens):
        heapq.heappush(resting, (clock() + draw.expovariate(1 / plan.rests[0]), token))
    for rest in plan.rests:
        start, cpu = clock(), time.thread_time_ns()
        ends, late, rests, rounds = start + plan.seconds, [], [], []
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
        phases.append(
            Phase(
                start=int(start * 1e9),
                end=int(clock() * 1e9),
                rest=sum(rests) / max(1, len(rests)),
                lateness=sum(late) / max(1, len(late)),
                rounds=tuple(rounds),
                hub_cpu=(time.thread_time_ns() - cpu) / 1e9,
            )
        )
    outward.sendall(_TOKEN.pack(_STOP, 0))
    # Until the last one has seen it: closing earlier would break the pipe of another one.
    while message := inward.recv(_TOKEN.size, socket.MSG_WAITALL):
        if _TOKEN.unpack(message)[0] == _STOP:
            break
    return phases


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
