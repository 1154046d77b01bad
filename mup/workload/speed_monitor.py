"""How fast was this machine while something else was being measured on it?

Probes before and after a measurement (``mup.workload.speed``) miss what happens in between, and on a virtual
machine that is often the point: a neighbour on the same physical core halves its speed for a fraction of a
second. A monitor is a process of its own that wakes up a few times a second, bound to one core after the
other, and times a short loop with its CPU clock. It costs less than 1 % of each core.

The loop fits the innermost cache and begins with a stretch that is not timed, so that the figure does
not depend on what else the measured system does with the caches, or on whether the core was idle before.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import IO, NamedTuple

__all__ = ["MonitoredSpeed", "Sample", "SpeedMonitor"]

PERIOD = 0.1
"""Seconds between two samples of one core."""
MAX_CORES = 8
WARM_UP = 6_000
ITERATIONS = 12_000
UNIT = 10_000
"""Iterations of the loop that count as one unit of work: about 0.2 ms on a processor of 2024."""
SLOW = 1.25
"""A sample that took so many times as long as the median one was taken in a slow moment."""
FEWEST = 4
JUMP_LIMIT = 0.15
"""Where the speed is known for the whole time, most of a change can be made up for; beyond this it cannot."""
SLOW_LIMIT = 0.35


class Sample(NamedTuple):
    """One timing: when (monotonic ns), on which core, and how many ns of processor time a unit took."""

    time: int
    core: int
    unit_ns: float


@dataclass(frozen=True, slots=True)
class MonitoredSpeed:
    """The speed of the machine over some time.

    Attributes:
        mean: Units per second of processor time, averaged over time and cores: the reciprocal of the mean
            time of a unit, so slow moments weigh as they do for everybody else's work.
        slow_share: Share of the samples that took 1.25 times as long as the median one, or longer.
        jump: Relative change of the mean from the first to the second half of the samples.
        samples: How many there are.
    """

    mean: float
    slow_share: float
    jump: float
    samples: int

    @property
    def unsteady(self) -> str:
        """Why nothing can be made of what was measured meanwhile, or ""."""
        if abs(self.jump) > JUMP_LIMIT:
            return f"the machine's speed changed by {self.jump:+.1%} meanwhile (limit {JUMP_LIMIT:.0%})"
        if self.slow_share > SLOW_LIMIT:
            return (
                f"the machine was slow for {self.slow_share:.0%} of the time (limit {SLOW_LIMIT:.0%}):"
                " somebody else uses its cores"
            )
        return ""

    @classmethod
    def of(cls, samples: Sequence[Sample]) -> MonitoredSpeed | None:
        """Return the speed that samples show; None if there are fewer than four."""
        if len(samples) < FEWEST:
            return None
        times = sorted(sample.unit_ns for sample in samples)
        mean = _mean(samples)
        limit = SLOW * times[len(times) // 2]
        ordered = sorted(samples)
        half = len(ordered) // 2
        return cls(
            1e9 / mean,
            sum(value >= limit for value in times) / len(times),
            _mean(ordered[:half]) / _mean(ordered[half:]) - 1,
            len(times),
        )


def _mean(samples: Sequence[Sample]) -> float:
    """Return the mean time of a unit in ns, of all cores alike however often they were sampled."""
    by_core: dict[int, list[float]] = {}
    for sample in samples:
        by_core.setdefault(sample.core, []).append(sample.unit_ns)
    return sum(sum(values) / len(values) for values in by_core.values()) / len(by_core)


class SpeedMonitor:
    """Samples the speed of every core this process may use; a context manager.

    Attributes:
        pid: Of the sampling process, whose processor time is ours and nobody's work.
    """

    def __init__(self, period: float = PERIOD) -> None:
        self._samples: list[Sample] = []
        self._process = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-m", "mup.workload.speed_monitor", str(period)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pid = self._process.pid
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def speed(self, start: int, end: int) -> MonitoredSpeed | None:
        """Return the speed between two moments.

        Args:
            start: Monotonic ns.
            end: Monotonic ns.

        Returns:
            None if there are too few samples to tell.
        """
        return MonitoredSpeed.of([s for s in list(self._samples) if start <= s.time <= end])

    def close(self) -> None:
        """End the sampling."""
        if self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()
        try:
            self._process.wait(2.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(2.0)
        if self._process.stdout is not None:
            self._process.stdout.close()

    def __enter__(self) -> SpeedMonitor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _read(self) -> None:
        stream: IO[str] | None = self._process.stdout
        if stream is None:
            return
        for line in stream:
            when, core, unit = line.split()
            self._samples.append(Sample(int(when), int(core), float(unit)))


def _loop(iterations: int) -> int:
    total = 0
    for number in range(iterations):
        total += number & 3
    return total


def _sample(core: int) -> Sample:
    _loop(WARM_UP)
    before = time.thread_time_ns()
    _loop(ITERATIONS)
    spent = time.thread_time_ns() - before
    return Sample(time.monotonic_ns(), core, spent * UNIT / ITERATIONS)


def _end_with_input() -> None:
    """End this process when its standard input ends: whoever started it may have been killed."""
    with suppress(OSError):
        while os.read(0, 4096):
            pass
    os._exit(0)


def main() -> None:
    """Write a line per sample to standard output until standard input ends."""
    # Ctrl-C reaches whole process groups; whoever started the monitor ends it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    period = float(sys.argv[1])
    threading.Thread(target=_end_with_input, daemon=True).start()
    can_pin = hasattr(os, "sched_setaffinity")
    cores = sorted(os.sched_getaffinity(0))[:MAX_CORES] if can_pin else [0]
    with suppress(BrokenPipeError):
        while True:
            for core in cores:
                time.sleep(period / len(cores))
                if can_pin:
                    with suppress(OSError):
                        os.sched_setaffinity(0, {core})
                sample = _sample(core)
                sys.stdout.write(f"{sample.time} {sample.core} {sample.unit_ns:.1f}\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
