"""CPU time of a process and of the whole host, and whether others used the host meanwhile."""

from __future__ import annotations

import os
import time
from pathlib import Path

__all__ = [
    "FOREIGN_LIMIT",
    "STOLEN_LIMIT",
    "TICKS_SECONDS",
    "HostCpu",
    "disturbance",
    "process_cpu_seconds",
]

FOREIGN_LIMIT = 0.02
"""Share of the host that others may use while something is measured on it."""
STOLEN_LIMIT = 0.02
"""Share of a virtual machine that its hypervisor may withhold while something is measured on it."""
TICKS_SECONDS = 0.05
"""How far off the CPU time of the host may be: the kernel rounds each kind of time to ticks of 10 ms."""
STAT = Path("/proc/stat")
"""Where Linux says what its cores have done since boot."""


def process_cpu_seconds(pid: int) -> float:
    """Return the CPU time of all threads of a process since it started; its children do not count.

    Linux knows a clock for every process, with the resolution of the scheduler. It derives the clock's number
    from the process id (``MAKE_PROCESS_CPUCLOCK``; 2 = the scheduler's own account).

    Raises:
        ProcessLookupError: There is no such process.
    """
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return _from_proc(pid)


def _from_proc(pid: int) -> float:
    """The same in ticks of 10 ms, for systems that refuse the clock."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError as error:
        raise ProcessLookupError(f"no process {pid}") from error
    # The command in parentheses may hold spaces and parentheses.
    fields = text.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class HostCpu:
    """A stop watch for the CPU time of the host; intervals between `start` and `stop` add up.

    Attributes:
        busy_seconds: CPU seconds in which cores of the host were neither idle nor withheld.
        stolen_seconds: CPU seconds in which something was ready and the hypervisor ran others (steal).
        capacity_seconds: CPU seconds there were: elapsed time x cores.
    """

    def __init__(self) -> None:
        self.busy_seconds = 0.0
        self.stolen_seconds = 0.0
        self.capacity_seconds = 0.0
        self._mark: tuple[float, float, float] | None = None

    def start(self) -> None:
        """Begin an interval."""
        self._mark = (*_host_seconds(), time.monotonic())

    def stop(self) -> None:
        """End the interval begun last."""
        if self._mark is None:
            return
        busy, stolen, began = self._mark
        now_busy, now_stolen = _host_seconds()
        self._mark = None
        # Idle and withheld time overlap where a core that was woken had to wait for the hypervisor.
        self.busy_seconds += max(0.0, now_busy - busy)
        self.stolen_seconds += now_stolen - stolen
        self.capacity_seconds += (time.monotonic() - began) * (os.cpu_count() or 1)

    @property
    def utilization(self) -> float:
        """Busy share of the host, 0 to 1; 0 before the first interval."""
        return self.busy_seconds / self.capacity_seconds if self.capacity_seconds else 0.0

    @property
    def stolen(self) -> float:
        """Share of the host the hypervisor has withheld, 0 to 1; 0 before the first interval."""
        return self.stolen_seconds / self.capacity_seconds if self.capacity_seconds else 0.0

    def foreign(self, ours: float) -> float:
        """Return the share of the host that others used, 0 to 1; 0 before the first interval.

        Args:
            ours: CPU seconds that we used in the same intervals.
        """
        return max(0.0, self.busy_seconds - ours) / self.capacity_seconds if self.capacity_seconds else 0.0


def disturbance(host: HostCpu, ours: float | None) -> str:
    """Return why what was measured in the intervals of a stop watch says nothing, or "".

    Args:
        host: After at least one interval.
        ours: CPU seconds used in it by what was measured and by the measuring processes; None if they cannot
            be told apart from what others used.
    """
    ticks = TICKS_SECONDS / host.capacity_seconds if host.capacity_seconds else 0.0
    foreign = 0.0 if ours is None else host.foreign(ours)
    if foreign > FOREIGN_LIMIT + ticks:
        return f"other programs used {foreign:.1%} of the machine (limit {FOREIGN_LIMIT:.0%})"
    if host.stolen > STOLEN_LIMIT + ticks:
        return f"the hypervisor withheld {host.stolen:.1%} of the machine (limit {STOLEN_LIMIT:.0%})"
    return ""


def _host_seconds() -> tuple[float, float]:
    """Return the CPU seconds of the host that were busy, less a constant, and those withheld since boot.

    Busy is what is neither idle, nor waiting for I/O, nor withheld by the hypervisor. Linux measures how long
    a core is idle, yet counts what it does otherwise by looking every few milliseconds (in the usual
    configuration). Looks meet a thread that timers or sockets wake more often than its share: the sum of
    ``user``, ``system`` and ``softirq`` exceeded the clocks of all processes by 2 to 5 % of a machine half
    full of services, and was below them on a full one (``benchmarks/host_clock.py``).
    """
    elapsed = time.monotonic() * (os.cpu_count() or 1)
    with STAT.open(encoding="ascii") as file:
        ticks = [int(field) for field in file.readline().split()[1:]]
    _user, _nice, _system, idle, waiting, _irq, _softirq, steal = ticks[:8]
    second = os.sysconf("SC_CLK_TCK")
    return elapsed - (idle + waiting + steal) / second, steal / second
