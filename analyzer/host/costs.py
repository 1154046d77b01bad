"""Costs that this machine adds to work: neighbours, interpreter lock, wake-ups, idling.

Every function measures one cost for a given time and returns samples (``analyzer.host.estimates`` makes
means and intervals of them). They fork and bind processes to cores, so they run in a process of their own
with one thread (``analyzer.host.stage``).
"""

from __future__ import annotations

import asyncio
import os
import random
import socket
import sys
import threading
import time
from collections.abc import Callable
from itertools import product
from statistics import fmean
from typing import Any

from analyzer.host.forks import fork
from analyzer.host.idling import idling
from mup.workload.speed import ReferenceWork, probe

__all__ = ["COLD_IDLES", "COLD_WORKS", "MEASUREMENTS"]

Samples = dict[str, list[float]]

COLD_WORKS = (0.0001, 0.0005, 0.002, 0.01)
COLD_IDLES = (0.0, 0.001, 0.01, 0.1)
MAX_CORES = 8
"""Cores that share a cache are alike; more would make the profile longer."""
SLICE = 0.15
"""Seconds of each measurement; some 40 of the scheduler's ticks of 4 ms."""
BURST_STEPS = 2000  # about 1 ms
BURST_PAUSE = 0.0005
"""Seconds; long enough for a core to sleep."""
START_DELAY = 0.02
"""Seconds in which all threads of a measurement are ready."""
PING_PONGS = 100
"""Of a measurement: some milliseconds, over which the scatter of single wake-ups averages out."""
TIMER_SECONDS = 0.001
"""The shortest pause that services make on purpose."""


def speeds(seconds: float) -> Samples:
    """Probe every core again and again: units of work per second of processor time, by number of the core."""
    result: Samples = {}
    for _ in _rounds(seconds):
        for number, speed in enumerate(probe().cores):
            result.setdefault(str(number), []).append(speed)
    return result


def parallel(seconds: float) -> Samples:
    """Burn on all cores at once and on each alone: ``efficiency``, work done at once per work done alone."""
    cores = sorted(os.sched_getaffinity(0))[:MAX_CORES]
    result: Samples = {"efficiency": []}
    for _ in _rounds(seconds):
        alone = [fork(_burn, core, _soon()).result() for core in cores]
        start = _soon()
        together = [each.result() for each in [fork(_burn, core, start) for core in cores]]
        result["efficiency"].append(sum(together) / sum(alone))
    return result


def sharing(seconds: float) -> Samples:
    """Let two processes work in bursts of a millisecond on one core: ``factor`` on their processor time."""
    core = min(os.sched_getaffinity(0))
    result: Samples = {"factor": []}
    for _ in _rounds(seconds):
        alone = fork(_bursts, core, _soon()).result()
        start = _soon()
        pair = [each.result() for each in [fork(_bursts, core, start) for _ in range(2)]]
        result["factor"].append(fmean(pair) / alone)
    return result


def interpreter_lock(seconds: float) -> Samples:
    """Let two threads of a process work: ``factor`` on their processor time, and the ``interval`` set."""
    result: Samples = {"factor": [], "interval": [sys.getswitchinterval()]}
    for _ in _rounds(seconds):
        alone = fork(_threads, 1).result()
        result["factor"].append(fork(_threads, 2).result() / alone)
    return result


def timers(seconds: float) -> Samples:
    """Set timers of a millisecond: seconds each comes late, by kind of timer."""
    result: Samples = {"sleep": []}
    until = time.monotonic() + seconds / 3
    while time.monotonic() < until:
        before = time.perf_counter()
        time.sleep(TIMER_SECONDS)
        result["sleep"].append(time.perf_counter() - before - TIMER_SECONDS)
    result["asyncio"] = asyncio.run(_call_later(seconds / 3))
    try:
        import uvloop  # noqa: PLC0415  (not everywhere)
    except ImportError:
        return result
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        result["uvloop"] = runner.run(_call_later(seconds / 3))
    return result


def wakeups(seconds: float) -> Samples:
    """Play ping-pong between two processes: seconds and processor seconds per wake-up.

    ``free`` where the system puts them, ``same`` both on one core, ``different`` on two.
    """
    cores = sorted(os.sched_getaffinity(0))
    places: dict[str, tuple[set[int], set[int]]] = {
        "free": (set(cores), set(cores)),
        "same": ({cores[0]}, {cores[0]}),
    }
    if len(cores) > 1:
        places["different"] = ({cores[0]}, {cores[1]})
    result: Samples = {f"{place} {what}": [] for place, what in product(places, ("wall", "cpu"))}
    for _ in _rounds(seconds):
        for place, (mine, theirs) in places.items():
            near, far = socket.socketpair()
            pong = fork(_pong, near, far, theirs)
            far.close()
            wall, cpu = _ping(near, mine, cores)
            near.close()
            result[f"{place} wall"].append(wall / (2 * PING_PONGS))
            result[f"{place} cpu"].append((cpu + pong.result()) / (2 * PING_PONGS))
    return result


def cold(seconds: float) -> Samples:
    """Work right after sleeping, and back to back: extra processor seconds, by ``work/idle`` in seconds."""
    work = ReferenceWork()
    work.run(20)
    start = time.thread_time_ns()
    work.run(50)
    step = (time.thread_time_ns() - start) / 1e9 / work.steps_of(50)
    cases = list(product(COLD_WORKS, COLD_IDLES))
    result: Samples = {f"{amount:g}/{idle:g}": [] for amount, idle in cases}
    draw = random.Random(1)
    until = time.monotonic() + seconds
    while True:
        # In random order, so that a slow second does not hit one case alone.
        for amount, idle in draw.sample(cases, len(cases)):
            steps = max(1, round(amount / step))
            hot = _timed_steps(work, steps, 3)
            time.sleep(idle)
            result[f"{amount:g}/{idle:g}"].append(_timed_steps(work, steps, 1) - hot)
            if time.monotonic() > until and all(len(values) >= 3 for values in result.values()):
                return result


MEASUREMENTS: dict[str, Callable[[float], Samples]] = {
    "speeds": speeds,
    "parallel": parallel,
    "sharing": sharing,
    "interpreter_lock": interpreter_lock,
    "timers": timers,
    "wakeups": wakeups,
    "cold": cold,
    "idling": idling,
}


def _rounds(seconds: float) -> Any:
    """Count rounds until the time is over; at least three, for an interval needs that."""
    until, count = time.monotonic() + seconds, 0
    while count < 3 or time.monotonic() < until:
        yield count
        count += 1


def _soon() -> float:
    """Return a moment at which forked processes are ready."""
    return time.monotonic() + START_DELAY


def _burn(core: int, start: float) -> float:
    """Return steps per second of wall time on a core from ``start`` on."""
    os.sched_setaffinity(0, {core})
    work = ReferenceWork()
    while time.monotonic() < start:
        work.steps(50)
    end, steps, began = start + SLICE, 0, time.monotonic()
    while time.monotonic() < end:
        work.steps(500)
        steps += 500
    return steps / (time.monotonic() - began)


def _bursts(core: int, start: float) -> float:
    """Return processor seconds per burst; between two bursts the process sleeps for a moment."""
    os.sched_setaffinity(0, {core})
    work = ReferenceWork()
    while time.monotonic() < start:
        work.steps(50)
    used = 0
    bursts = round(SLICE / 2 / 0.001)
    for _ in range(bursts):
        before = time.thread_time_ns()
        work.steps(BURST_STEPS)
        used += time.thread_time_ns() - before
        time.sleep(BURST_PAUSE)
    return used / 1e9 / bursts


def _threads(count: int) -> float:
    """Return processor seconds per step of so many threads that work at once."""
    used: list[int] = []
    steps, gate = 200_000 // count, threading.Barrier(count)

    def work() -> None:
        mine = ReferenceWork()
        mine.run(5)
        gate.wait()
        before = time.thread_time_ns()
        mine.steps(steps)
        used.append(time.thread_time_ns() - before)

    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(used) / 1e9 / (steps * count)


async def _call_later(seconds: float) -> list[float]:
    loop = asyncio.get_running_loop()
    late: list[float] = []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        done: asyncio.Future[None] = loop.create_future()
        before = time.perf_counter()
        loop.call_later(TIMER_SECONDS, done.set_result, None)
        await done
        late.append(time.perf_counter() - before - TIMER_SECONDS)
    return late


def _ping(near: socket.socket, mine: set[int], everywhere: list[int]) -> tuple[float, float]:
    os.sched_setaffinity(0, mine)
    near.sendall(b"x")
    near.recv(1)
    wall, cpu = time.perf_counter(), time.thread_time_ns()
    for _ in range(PING_PONGS):
        near.sendall(b"x")
        near.recv(1)
    used = (time.thread_time_ns() - cpu) / 1e9
    wall = time.perf_counter() - wall
    os.sched_setaffinity(0, set(everywhere))
    return wall, used


def _pong(near: socket.socket, far: socket.socket, mine: set[int]) -> float:
    near.close()
    os.sched_setaffinity(0, mine)
    far.sendall(far.recv(1))
    cpu = time.thread_time_ns()
    for _ in range(PING_PONGS):
        far.sendall(far.recv(1))
    return (time.thread_time_ns() - cpu) / 1e9


def _timed_steps(work: ReferenceWork, steps: int, times: int) -> float:
    """Return mean processor seconds of a piece of work."""
    before = time.thread_time_ns()
    for _ in range(times):
        work.steps(steps)
    return (time.thread_time_ns() - before) / 1e9 / times
