"""Processor time used by each process while a round of load was running.

Processor time per process, and the share of the machine that went to programs which have nothing to do
with the run.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from analyzer.calibration.rundir import ProcessUse
from mup.runtime.deployment.launcher import ProcessInfo
from mup.workload.cpu import HostCpu, process_cpu_seconds

__all__ = ["Meter", "RoundUse"]


@dataclass(frozen=True, slots=True)
class RoundUse:
    """Processor seconds per process id (as text), and the shares of the machine others used or withheld."""

    cpu: dict[str, float]
    foreign: float
    stolen: float


class Meter:
    """Reads the clocks of every process of a deployment around rounds of load.

    Args:
        processes: Of the deployment.
        client: The load generator.
        helpers: Process ids of programs that only observe: neither part of the system nor foreign.

    Attributes:
        last: What the round that was ended last used.
    """

    def __init__(
        self, processes: Sequence[ProcessInfo], client: ProcessInfo, helpers: Sequence[int] = ()
    ) -> None:
        self._processes = [*processes, client]
        self._client = client
        self._idle = dict.fromkeys(self._pids(), 0.0)
        self._mark: dict[int, float] = {}
        self._prepared = 0.0
        self._helpers = helpers
        self._own = 0.0
        self._host = HostCpu()
        self.last = RoundUse({}, 0.0, 0.0)

    def _pids(self) -> list[int]:
        # Several databases may live in one server.
        return list(dict.fromkeys(p.pid for p in self._processes))

    def _read(self) -> dict[int, float]:
        clocks = {}
        for pid in self._pids():
            # A worker that died has no clock any more; see replaced().
            with suppress(ProcessLookupError):
                clocks[pid] = process_cpu_seconds(pid)
        return clocks

    def measure_idle(self, seconds: float) -> None:
        """Wait, and note what every process uses although nothing is asked of it."""
        if seconds <= 0:
            return
        before = self._read()
        time.sleep(seconds)
        after = self._read()
        self._idle.update({pid: (cpu - before[pid]) / seconds for pid, cpu in after.items()})

    def start(self) -> None:
        """Begin a round."""
        self._host = HostCpu()
        self._host.start()
        self._mark = self._read()
        self._prepared = 0.0
        self._own = self._observers()

    def start_client(self) -> None:
        """Leave out what the load generator has done since `start`: it prepared the round."""
        with suppress(ProcessLookupError):
            now = process_cpu_seconds(self._client.pid)
            self._prepared = now - self._mark[self._client.pid]
            self._mark[self._client.pid] = now

    def stop(self) -> None:
        """End a round; see `last`."""
        now = self._read()
        used = {pid: cpu - self._mark[pid] for pid, cpu in now.items() if pid in self._mark}
        self._host.stop()
        ours = sum(used.values()) + self._prepared + self._observers() - self._own
        self.last = RoundUse(
            {str(pid): seconds for pid, seconds in used.items()}, self._host.foreign(ours), self._host.stolen
        )

    def _observers(self) -> float:
        """Return the seconds this process and the helpers have used."""
        total = time.process_time()
        for pid in self._helpers:
            with suppress(ProcessLookupError):
                total += process_cpu_seconds(pid)
        return total

    def replaced(self, now: Sequence[ProcessInfo]) -> list[str]:
        """Return the services in which a new process has taken over; it is watched from now on."""
        known = set(self._pids())
        fresh = [p for p in now if p.pid not in known]
        self._processes += fresh
        # Housekeeping of a worker is what that of its siblings is.
        for process in fresh:
            alike = [self._idle.get(p.pid, 0.0) for p in self._processes if _same_job(p, process)]
            self._idle[process.pid] = max(alike, default=0.0)
        return sorted({p.service for p in fresh})

    def processes(self) -> list[ProcessUse]:
        """Return every process with what it uses when idle."""
        return [
            ProcessUse(
                role=p.role,
                service=p.service,
                replica=p.replica,
                worker=p.worker,
                pid=p.pid,
                idle_rate=self._idle[p.pid],
            )
            for p in self._processes
        ]


def _same_job(one: ProcessInfo, other: ProcessInfo) -> bool:
    return (one.role, one.service) == (other.role, other.service)
