"""Times inside of a measured repeat, from its event logs."""

from __future__ import annotations

from pathlib import Path

import pytest
from accuracy.observed import entry_figures

from mup.events.record import Event
from mup.events.settings import LogSettings
from mup.events.writer import EventWriter


@pytest.mark.parametrize(
    ("runtime", "clocks", "each"),
    [({"runtime": "async"}, {1: (0, 3), 2: (1, 4)}, 2.0), ({}, {1: (0, 4), 2: (4, 8)}, 4.0)],
    ids=["event loop", "process"],
)
def test_work_on_an_event_loop_counts_once(
    tmp_path: Path, runtime: dict[str, str], clocks: dict[int, tuple[int, int]], each: float
) -> None:
    """Two executions of 2 ms overlap: the clock of each also holds what the loop did for the other."""
    header = {"role": "worker", "service": "S", "replica": 0, "worker": 0, "pid": 1, **runtime}
    writer = EventWriter(tmp_path / "S.0.w0.mlog", header, LogSettings())
    moments = {1: (0, 10), 2: (1, 12)} if runtime else {1: (0, 10), 2: (10, 21)}
    events = sorted(
        (moments[request][number], event, request, clocks[request][number])
        for request in moments
        for number, event in enumerate((Event.BEGIN, Event.DONE))
    )
    for time, event, request, cpu in events:
        name = writer.name("S/e/")
        writer.write(event, request, 1, seq=0, site=0, name=name, flags=0, time=time * 10**6, cpu=cpu * 10**6)
    writer.close()
    figures = entry_figures(tmp_path, 0, 10**12)["S/e/"]
    assert figures["count"] == 2
    assert figures["service"] == pytest.approx(0.0105)
    assert 1e3 * figures["cpu"] == pytest.approx(each)
