"""Write event logs as a run would, from a readable list of events."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mup.events.record import Event
from mup.events.settings import LogSettings
from mup.events.sites import Site
from mup.events.writer import EventWriter

PAUSING = """\
import asyncio

from mup import EP, MS


class S(MS):
    runtime = "async"

    @EP("/e/")
    async def e(self, comm):
        await asyncio.sleep(0.005)
        comm.respond(1)
"""
"""A service with an event loop, whose only endpoint pauses."""

Row = tuple[Event, float, str, Site | None, int]
"""Event, time in milliseconds, name, site, number of the operation."""


class LogFile:
    """One log file under construction; times are in milliseconds."""

    def __init__(
        self, path: Path, *, service: str, role: str = "worker", sample: int = 1, worker: int = 0
    ) -> None:
        header = {"role": role, "service": service, "replica": 0, "worker": worker, "pid": 1}
        self._writer = EventWriter(path, header, LogSettings(sample=sample))

    def add(
        self,
        event: Event,
        request: int,
        time: float,
        *,
        cpu: float | None = None,
        name: str = "",
        site: Site | None = None,
        seq: int = 0,
        flags: int = 0,
    ) -> None:
        """Append one record; without ``cpu`` no CPU clock was read (-1)."""
        self._writer.write(
            event,
            request,
            1,
            seq=seq,
            site=self._writer.site(site) if site else 0,
            name=self._writer.name(name),
            flags=flags,
            time=round(time * 1e6),
            cpu=-1 if cpu is None else round(cpu * 1e6),
        )

    def close(self) -> None:
        """Write what is buffered."""
        self._writer.close()


def write_log(path: Path, request: int, rows: Sequence[Row], *, service: str) -> None:
    """Write the events of one request by a worker that has no CPU clock."""
    log = LogFile(path, service=service)
    for event, milliseconds, name, site, seq in rows:
        log.add(event, request, milliseconds, name=name, site=site, seq=seq)
    log.close()
