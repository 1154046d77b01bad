"""The history of the machine's speed keeps whole lines, whatever happens to its file."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mup.workload import speed_history
from mup.workload.machine import boot_id, since_boot, this_machine
from mup.workload.speed_history import append, history_path, read_history, record

WRITER = """
import sys
from pathlib import Path
from mup.workload.speed_history import append, record
for number in range(50):
    assert append(record("load", f"{sys.argv[2]}-{number}", 1.0, monitored=2000.0), path=Path(sys.argv[1]))
"""


def test_what_was_written_is_read(tmp_path: Path) -> None:
    """A record says when, during what, how fast, how busy, and on which start of which machine."""
    file = tmp_path / "new" / "history.jsonl"
    before = since_boot()
    written = record("explore", "one", 10.0, monitored=1900.0, probed=1000.0, utilization=0.3, stolen=0.01)
    assert append(written, path=file)
    assert append(record("probe", "two", 3.0, monitored=2000.0), path=file)
    found = read_history(file)
    assert [r.run for r in found.records] == ["one", "two"]
    assert found.records[0] == written
    assert found.notes == ()
    assert (written.machine, written.boot) == (this_machine(), boot_id())
    assert before - 0.01 <= written.since_boot <= since_boot()
    assert abs((datetime.now(UTC) - written.time).total_seconds()) < 60


def test_no_history_is_an_empty_one(tmp_path: Path) -> None:
    """Nothing was measured here yet, and there is nothing to complain about."""
    assert read_history(tmp_path / "none.jsonl") == speed_history.History()
    assert history_path().name == "speed-history.jsonl"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{broken", "malformed"),
        ('{"time": 1}', "Expected"),
        ("[]", "object"),
        ("\0\0", "malformed"),
    ],
)
def test_a_broken_line_is_named_and_left_out(tmp_path: Path, line: str, says: str) -> None:
    """One message with file and line; the lines around it count."""
    file = tmp_path / "history.jsonl"
    append(record("load", "one", 1.0, monitored=2000.0), path=file)
    with file.open("a") as text:
        text.write(line + "\n" + line + "\n")
    append(record("load", "two", 1.0, monitored=2000.0), path=file)
    found = read_history(file)
    assert [r.run for r in found.records] == ["one", "two"]
    (note,) = found.notes
    assert f"{file}, line 2, and 1 more lines: " in note
    assert says.lower() in note.lower()


@pytest.mark.parametrize("values", [{"monitored": 0.0}, {"seconds": -1.0}, {"probed": float("inf")}])
def test_speeds_that_cannot_be_are_no_records(tmp_path: Path, values: dict[str, float]) -> None:
    """A speed of 0 would be the logarithm of nothing."""
    with pytest.raises(ValueError, match="must be > 0"):
        record("load", "one", **{"seconds": 1.0, **values})  # type: ignore[arg-type]


def test_records_of_an_earlier_version_are_left_out(tmp_path: Path) -> None:
    """Its monitor timed other work, so its speeds are in other units."""
    path = tmp_path / "history.jsonl"
    append(
        record("load", "a", 12.0, monitored=2000.0), record("load", "b", 12.0, monitored=1900.0), path=path
    )
    first, second = path.read_text().splitlines()
    path.write_text(first.replace("mup-speed/2", "mup-speed/1") + "\n" + second + "\n")
    found = read_history(path)
    assert [one.run for one in found.records] == ["b"]
    assert found.notes == ("records of an earlier version left out, whose speeds are in other units: 1",)


def test_a_line_that_was_not_finished_does_not_spoil_the_next(tmp_path: Path) -> None:
    """A process was killed while writing: what comes behind begins on a line of its own."""
    file = tmp_path / "history.jsonl"
    append(record("load", "one", 1.0, monitored=2000.0), path=file)
    with file.open("ab") as data:
        data.write(b'{"time": "2026-')
    append(record("load", "two", 1.0, monitored=2000.0), path=file)
    found = read_history(file)
    assert [r.run for r in found.records] == ["one", "two"]
    assert len(found.notes) == 1


def test_the_file_does_not_grow_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The older half goes when there is too much; the newest records are there."""
    monkeypatch.setattr(speed_history, "MAX_BYTES", 4000)
    file = tmp_path / "history.jsonl"
    for number in range(60):
        assert append(record("load", str(number), 1.0, monitored=2000.0), path=file)
        assert file.stat().st_size < 5000
    found = read_history(file)
    assert [int(r.run) for r in found.records] == list(range(60 - len(found.records), 60))
    assert found.notes == ()


def test_what_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    """A history is a by-product: a measurement does not fail for it."""
    (tmp_path / "file").write_text("")
    assert not append(record("load", "one", 1.0, monitored=2000.0), path=tmp_path / "file" / "history.jsonl")
    assert not append(record("load", "one", 1.0, monitored=2000.0), path=tmp_path)


@pytest.mark.slow
def test_several_processes_write_whole_lines(tmp_path: Path) -> None:
    """Three processes at once, and a file that is shortened meanwhile: every line is whole."""
    file = tmp_path / "history.jsonl"
    script = WRITER.replace(
        "for number", "import mup.workload.speed_history as h\nh.MAX_BYTES = 30_000\nfor number"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", script, str(file), name]) for name in ("a", "b", "c")
    ]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    found = read_history(file)
    assert found.notes == ()
    assert len(found.records) >= 40
    # Each process's own records are the last ones it wrote, without a gap.
    for name in ("a", "b", "c"):
        numbers = [int(r.run.split("-")[1]) for r in found.records if r.run.startswith(name)]
        assert numbers == list(range(50 - len(numbers), 50))
