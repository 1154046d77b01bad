"""Logs that are read while they grow."""

from pathlib import Path

import pytest

from analyzer.calibration.executions import Execution, collect
from analyzer.calibration.running_log import RunningLogs
from mup.events.reader import read_log
from mup.events.record import Event
from mup.events.sites import Site
from mup.events.writer import EventWriter


def written(path: Path, executions: int = 40) -> bytes:
    """Write a worker's log: calls by names and sites that are defined on the way; return its bytes."""
    log = EventWriter(path, {"role": "worker", "service": "A", "replica": 0, "worker": 0})
    for k in range(executions):
        name = log.name(f"A/ep{k // 8}/")
        called = log.name("B/x/")
        site = log.site(Site("services.py", "A.x", 1 + k // 8, line=10 + k))
        log.write(Event.BEGIN, k, k, name=name, time=1000 * k, cpu=0)
        log.write(Event.COMM_START, k, k, 1, site, called, time=1000 * k + 100, cpu=10)
        log.write(Event.CONTACT_DEST, k, k, 1, name=called, time=1000 * k + 110, cpu=20)
        log.write(Event.END, k, k, name=name, site=site, time=1000 * k + 200, cpu=30)
        log.write(Event.DONE, k, k, name=name, time=1000 * k + 300, cpu=40)
    log.close()
    return path.read_bytes()


def described(execution: Execution) -> tuple[object, ...]:
    steps = [(s.op, s.site, s.start, s.resume) for s in execution.steps]
    return execution.request, execution.endpoint, execution.begin, execution.done, steps


@pytest.mark.slow
@pytest.mark.parametrize("piece", [1, 7, 40, 113, 1000, 10**6])
def test_a_growing_log_yields_every_execution_once(tmp_path: Path, piece: int) -> None:
    """However its bytes arrive, in the end it is what reading the whole log gives."""
    # Two endpoints suffice where a look follows every single byte.
    data = written(tmp_path / "whole.mlog", 10 if piece == 1 else 40)
    whole = collect([read_log(tmp_path / "whole.mlog")])
    folder = tmp_path / "run"
    folder.mkdir()
    logs = RunningLogs(folder)
    growing = folder / "A.0.w0.mlog"
    found: list[Execution] = []
    for start in range(0, len(data), piece):
        with growing.open("ab") as file:
            file.write(data[start : start + piece])
        found += logs.executions()
    assert [described(e) for e in found] == [described(e) for e in whole]
    assert not list(logs.executions())


def test_what_was_read_is_not_read_again(tmp_path: Path) -> None:
    """Bytes before the last look may change unnoticed: they are not looked at."""
    path = tmp_path / "A.0.w0.mlog"
    data = written(path)
    logs = RunningLogs(tmp_path)
    assert len(list(logs.executions())) == 40
    path.write_bytes(b"\xff" * len(data))
    assert not list(logs.executions())


def test_a_worker_that_replaces_another_is_noticed(tmp_path: Path) -> None:
    """It writes a file of its own; fronts are left alone."""
    written(tmp_path / "A.0.w0.mlog", 3)
    logs = RunningLogs(tmp_path)
    assert len(list(logs.executions())) == 3
    written(tmp_path / "A.0.w0.mlog", 5)  # becomes A.0.w0-2.mlog
    (tmp_path / "A.0.front.mlog").write_bytes(b"not read")
    assert len(list(logs.executions())) == 5
