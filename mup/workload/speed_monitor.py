"""Monitor of this machine's speed while something else is being measured on it.

Probes before and after a measurement (``mup.workload.speed``) miss what happens in between. A monitor is a
process of its own that wakes up twenty times a second on every core, one after the other, and times a little
of what services do (``mup.workload.sampled_work``) with its CPU clock. It costs some 1 % of each core.

A sample begins with a stretch that is not timed, so that the figure does not depend much on what else the
measured system does with the caches. Even so some samples take up to twice as long as others. Where cores are
shared with strangers (hyper-threads of a virtual machine) half of them may, and all work does; so the speed
is that of the mean sample. Elsewhere a fifth of them do while the machine is mostly idle, hardly any while it
is busy: that is what idling does to work (``Processor.idling``), and a comparison of speeds at different
utilizations has to allow for it.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from statistics import stdev
from types import TracebackType
from typing import IO, NamedTuple

from mup.workload.sampled_work import SampledWork

__all__ = ["MonitoredSpeed", "Sample", "SpeedMonitor", "monitor_load"]

PERIOD = 0.05
"""Seconds between two samples of one core."""
MAX_CORES = 8
SLOW = 1.25
"""A sample that took so many times as long as the median one was taken in a slow moment."""
FEWEST = 4
JUMP_LIMIT = 0.16
"""Where the speed is known for the whole time, a change can be made up for. Up to here that has been seen
to work: scaled by the mean speed, windows with jumps of 8 to 16 % differed hardly more from their siblings
than those with smaller ones (seen once; no command repeats it)."""
CERTAIN = 3.0
"""A change counts from so many standard errors on: on a noisy machine the halves of a short window differ."""
USUAL = 1 / 3
"""Part of the samples, the fastest ones, up to which they are certainly not slow."""


WAKE_UP = 0.4
"""What waking up, changing the core and reporting cost on top of a sample, as a share of it."""


def monitor_load(speed: float, cores: int) -> float:
    """Return the seconds of processor time a monitor takes per second.

    Args:
        speed: Of the machine, in units per second.
        cores: Of the machine.
    """
    sample = (1 + WAKE_UP) / speed  # half a unit that is not timed, and half a one that is
    return min(cores, MAX_CORES) * sample / PERIOD


class Sample(NamedTuple):
    """One timing: when (monotonic ns), on which core, and how many ns of processor time a unit took."""

    time: int
    core: int
    unit_ns: float


@dataclass(frozen=True, slots=True)
class MonitoredSpeed:
    """The speed of the machine over some time.

    Attributes:
        speed: Units per second of processor time: the reciprocal of the mean time of a unit, averaged over
            cores.
        usual: The same of the lower third of the times, slow moments left out.
        slow_share: Share of the samples that took 1.25 times as long as the usual ones, or longer.
        jump: Relative change of the speed from the first to the second half of the samples.
        jump_error: Standard error of that.
        samples: How many there are.
    """

    speed: float
    usual: float
    slow_share: float
    jump: float
    jump_error: float
    samples: int

    @property
    def unsteady(self) -> str:
        """Why nothing can be made of what was measured meanwhile, or ""."""
        if abs(self.jump) > max(JUMP_LIMIT, CERTAIN * self.jump_error):
            return f"the machine's speed changed by {self.jump:+.1%} meanwhile (limit {JUMP_LIMIT:.0%})"
        return ""

    @classmethod
    def of(cls, samples: Sequence[Sample]) -> MonitoredSpeed | None:
        """Return the speed that samples show; None if there are fewer than four."""
        if len(samples) < FEWEST:
            return None
        ordered = sorted(samples)
        earlier, later = ordered[: len(ordered) // 2], ordered[len(ordered) // 2 :]
        usual = _usual(samples)
        return cls(
            1e9 / _average(samples),
            1e9 / usual,
            sum(sample.unit_ns >= SLOW * usual for sample in samples) / len(samples),
            _average(earlier) / _average(later) - 1,
            math.hypot(_error(earlier), _error(later)),
            len(samples),
        )


def _usual(samples: Sequence[Sample]) -> float:
    """Return the lower third of the times of a unit in ns, the mean over cores."""
    return _mean([sorted(times)[int(USUAL * len(times))] for times in _by_core(samples)])


def _average(samples: Sequence[Sample]) -> float:
    """Return the mean time of a unit in ns, the mean over cores."""
    return _mean([_mean(times) for times in _by_core(samples)])


def _error(samples: Sequence[Sample]) -> float:
    """Return the relative standard error of the mean time of a unit."""
    times = [sample.unit_ns for sample in samples]
    if len(times) < 2:
        return math.inf
    return stdev(times) / math.sqrt(len(times)) / _mean(times)


def _by_core(samples: Sequence[Sample]) -> list[list[float]]:
    """Return the times of each core; cores count alike however often they were sampled."""
    found: dict[int, list[float]] = {}
    for sample in samples:
        found.setdefault(sample.core, []).append(sample.unit_ns)
    return list(found.values())


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


class SpeedMonitor:
    """Samples the speed of every core this process may use; a context manager.

    Attributes:
        pid: Of the sampling process, whose processor time belongs to the measurement.
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


def _sample(work: SampledWork, core: int) -> Sample:
    work.half_unit()
    before = time.thread_time_ns()
    work.half_unit()
    spent = time.thread_time_ns() - before
    return Sample(time.monotonic_ns(), core, 2.0 * spent)


def _end_with_input() -> None:
    """End this process when its standard input ends: its parent may have been killed."""
    with suppress(OSError):
        while os.read(0, 4096):
            pass
    os._exit(0)


def main() -> None:
    """Write a line per sample to standard output until standard input ends."""
    # Ctrl-C reaches whole process groups; its parent ends the monitor.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    period = float(sys.argv[1])
    threading.Thread(target=_end_with_input, daemon=True).start()
    can_pin = hasattr(os, "sched_setaffinity")
    cores = sorted(os.sched_getaffinity(0))[:MAX_CORES] if can_pin else [0]
    work = SampledWork()
    with suppress(BrokenPipeError):
        while True:
            for core in cores:
                time.sleep(period / len(cores))
                if can_pin:
                    with suppress(OSError):
                        os.sched_setaffinity(0, {core})
                sample = _sample(work, core)
                sys.stdout.write(f"{sample.time} {sample.core} {sample.unit_ns:.1f}\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
