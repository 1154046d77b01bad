"""``mup log`` gives count, time and failures per endpoint, and refuses other files."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mup.cli.main import main
from mup.events.endpoint_figures import FileFigures
from mup.events.reader import LogStream
from mup.events.record import FAILED, QUEUED, Event
from mup.events.writer import EventWriter

MS = 10**6


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Run the command; return exit code, stdout and stderr."""
    with pytest.raises(SystemExit) as ended:
        main(["log", *words])
    printed = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, printed.out, printed.err


def worker(folder: Path, number: int, times: list[float], failures: int = 0) -> None:
    """Write the log of a worker whose executions took so many milliseconds; the first ones failed."""
    log = EventWriter(
        folder / f"A.0.w{number}.mlog", {"role": "worker", "service": "A", "replica": 0, "worker": number}
    )
    me = log.name("A/a/")
    now = 1000 * MS
    for index, time in enumerate(times):
        request, flags = 1 + index + 10**6 * number, FAILED if index < failures else 0
        log.write(Event.BEGIN, request, 7, name=me, time=now)
        now += int(time * MS)
        log.write(Event.END, request, 7, name=me, time=now)
        now += 50 * MS  # work after the reply
        log.write(Event.DONE, request, 7, name=me, flags=flags, time=now)
    log.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two workers, one that never worked, and a front."""
    worker(tmp_path, 0, [float(t) for t in range(1, 101)], failures=3)
    worker(tmp_path, 1, [200.0] * 4)
    worker(tmp_path, 2, [])
    front = EventWriter(tmp_path / "A.0.front.mlog", {"role": "front", "service": "A", "replica": 0})
    me = front.name("A/a/")
    for index in range(10):
        front.write(Event.ARRIVE, 5000 + index, 7, name=me, flags=QUEUED if index < 4 else 0, time=1000 * MS)
    front.close()
    return tmp_path


def test_every_endpoint_has_count_mean_p95_and_errors(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Over all workers, from begin to reply; the share of requests that had to wait comes from the front."""
    code, out, _ = run(capsys, str(folder), "--json")
    assert code == 0
    document: dict[str, Any] = json.loads(out)
    found = document["endpoints"]["A/a/"]
    assert (found["count"], found["failed"], found["arrived"], found["queued"]) == (104, 3, 10, 4)
    assert found["mean"] == pytest.approx((5050 + 800) / 104 / 1000)
    assert found["p95"] == pytest.approx(0.099, rel=0.02)
    assert document["unreadable"] == []
    assert len(document["logs"]) == 4
    _, text, _ = run(capsys, str(folder))
    (line,) = (line for line in text.splitlines() if line.startswith("A/a/"))
    assert line.split()[:5] == ["A/a/", "104", "56.25", plain_p95(found["p95"]), "2.9%"]
    assert line.split()[-1] == "40%"
    assert "3 logs, 1 more without any" in text
    assert "w2.mlog" not in text


def plain_p95(seconds: float) -> str:
    """Return a time as the table writes it."""
    return f"{1e3 * seconds:.4g}"


def test_details_list_files_that_hold_something(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was printed before, without the workers that have logged nothing."""
    _, out, _ = run(capsys, str(folder), "--details")
    assert "A.0.w0.mlog: 300 records in" in out
    assert "w2.mlog" not in out


@pytest.mark.parametrize("option", [(), ("--json",), ("--jsonl",), ("--otlp",), ("--details",)])
@pytest.mark.parametrize("content", [b"", b"hello, this is no log at all", b"MUPLOG01\xff\xff"])
def test_a_file_that_is_no_log_does_not_hide_the_others(
    folder: Path, capsys: pytest.CaptureFixture[str], content: bytes, option: tuple[str, ...]
) -> None:
    """It is named and counted, the others are shown, and the exit status is 1."""
    (folder / "B.0.w0.mlog").write_bytes(content)
    code, out, err = run(capsys, str(folder), *option)
    assert code == 1
    assert "B.0.w0.mlog is left out" in err
    assert "1 of 5 logs could not be read" in err
    assert "A/a/" in out
    assert "Traceback" not in err
    if option == ("--json",):
        (broken,) = json.loads(out)["unreadable"]
        assert broken["file"].endswith("B.0.w0.mlog")


def test_damage_in_the_middle_leaves_a_log_out_as_a_whole(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A part of a log would count something else than the others."""
    path = folder / "A.0.w1.mlog"
    data = bytearray(path.read_bytes())
    data[-2] = 99  # the event of the last record
    path.write_bytes(bytes(data))
    code, out, err = run(capsys, str(folder), "--json")
    assert code == 1
    assert json.loads(out)["endpoints"]["A/a/"]["count"] == 100
    assert "A.0.w1.mlog is left out: unknown event 99" in err


def test_nothing_readable_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit status 2, as for a folder without logs."""
    (tmp_path / "A.0.w0.mlog").write_bytes(b"")
    code, out, err = run(capsys, str(tmp_path))
    assert (code, out) == (2, "")
    assert "A.0.w0.mlog" in err


def test_batches_do_not_matter_and_percentiles_are_good_to_a_percent(tmp_path: Path) -> None:
    """Records of one execution may be in different batches; interleaved executions of an event loop, too."""
    source = random.Random(3)
    times = [source.lognormvariate(2, 1.5) for _ in range(3000)]
    log = EventWriter(tmp_path / "L.0.w0.mlog", {"role": "worker", "service": "L", "replica": 0, "worker": 0})
    me = log.name("L/l/")
    events = []
    for index, time in enumerate(times):
        start = index * MS
        events += [(start, Event.BEGIN, index), (start + int(time * MS), Event.END, index)]
        events.append((start + int(time * MS), Event.DONE, index))
    for at, event, index in sorted(events):
        log.write(event, index + 1, 7, name=me, time=at)
    log.close()
    found = []
    for batch in (400, 4 * 2**20):
        figures = FileFigures()
        for records in LogStream(tmp_path / "L.0.w0.mlog", batch=batch):
            figures.add(records)
        (only,) = figures.by_name.values()
        found.append(only)
    small, whole = found
    assert small.count == whole.count == 3000
    assert small.mean == pytest.approx(sum(times) / 3000 / 1000, rel=1e-4)
    assert (small.histogram == whole.histogram).all()
    for share in (0.5, 0.95, 0.99):
        assert whole.percentile(share) == pytest.approx(float(np.quantile(times, share)) / 1000, rel=0.025)
