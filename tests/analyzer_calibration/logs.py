"""Write event logs as a run would, from a readable list of events."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mup.events.record import Event
from mup.events.sites import Site
from mup.events.writer import EventWriter

Row = tuple[Event, int, str, Site | None, int]
"""Event, time in milliseconds, name, site, number of the operation."""


def write_log(
    path: Path, request: int, rows: Sequence[Row], *, service: str, role: str = "worker", cpu: bool = False
) -> None:
    """Write the events of one request; without ``cpu`` no CPU clock was read (-1)."""
    writer = EventWriter(path, {"role": role, "service": service, "replica": 0, "worker": 0, "pid": 1})
    for event, milliseconds, name, site, seq in rows:
        writer.write(
            event,
            request,
            1,
            seq=seq,
            site=writer.site(site) if site else 0,
            name=writer.name(name),
            time=milliseconds * 1_000_000,
            cpu=milliseconds * 1_000_000 if cpu else -1,
        )
    writer.close()
