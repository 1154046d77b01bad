"""A log holds what was written, and a damaged one is recognised."""

from __future__ import annotations

import errno
import logging
import os
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from mup.errors import LogError
from mup.events import writer as writer_module
from mup.events.ids import child_id, new_id
from mup.events.reader import Log, read_log
from mup.events.record import FAILED, MAGIC, RECORD, Event
from mup.events.sites import Site
from mup.events.writer import EventWriter, open_log

HEADER = {"role": "worker", "service": "A", "replica": 0, "worker": 3}


def written(path: Path, requests: int) -> Log:
    """Write BEGIN and DONE of some requests, with definitions in between, and read them back."""
    writer = EventWriter(path, HEADER)
    for number in range(1, requests + 1):
        writer.write(Event.BEGIN, number, 7, name=writer.name(f"A/ep{number % 3}/"), time=number, cpu=-number)
        writer.write(Event.DONE, number, 7, site=writer.site(Site("a.py", "f", number % 5 + 1, 2, 3)))
    writer.close()
    return read_log(path)


def test_round_trip(tmp_path: Path) -> None:
    """Every field comes back; definitions are resolved and are no records."""
    log = written(tmp_path / "a.mlog", 4000)
    assert log.header["service"] == "A"
    assert log.header["worker"] == 3
    assert log.header["pid"] == os.getpid()
    assert set(log.header["clock"]) == {"monotonic_ns", "unix_ns"}
    assert set(log.names.values()) == {"A/ep0/", "A/ep1/", "A/ep2/"}
    assert sorted(s.ordinal for s in log.sites.values()) == [1, 2, 3, 4, 5]
    begins = log.records[log.records["event"] == Event.BEGIN]
    assert np.array_equal(begins["request"], np.arange(1, 4001))
    assert np.array_equal(begins["cpu"], -np.arange(1, 4001))
    assert [log.names[int(n)] for n in begins["name"][:3]] == ["A/ep1/", "A/ep2/", "A/ep0/"]
    assert len(log.records) == 8000
    assert not log.truncated


def test_stamps_default_to_this_thread(tmp_path: Path) -> None:
    """Without explicit stamps a record carries the monotonic clock and the CPU clock of the thread."""
    before = time.monotonic_ns(), time.thread_time_ns()
    writer = EventWriter(tmp_path / "a.mlog", HEADER)
    writer.write(Event.END, 1, 1, flags=FAILED)
    writer.close()
    after = time.monotonic_ns(), time.thread_time_ns()
    (record,) = read_log(writer.path).records
    assert before[0] <= record["time"] <= after[0]
    assert before[1] <= record["cpu"] <= after[1]
    assert record["flags"] == FAILED


@pytest.mark.parametrize("cut", [1, 39, 40, 41, 80, 500])
def test_truncated_tail(tmp_path: Path, cut: int) -> None:
    """A log that ends early yields everything before the cut and says so."""
    path = tmp_path / "a.mlog"
    whole = written(path, 100).records
    os.truncate(path, path.stat().st_size - cut)
    log = read_log(path)
    assert log.truncated or cut % RECORD.size == 0
    assert len(log.records) == 200 - -(-cut // RECORD.size)
    assert np.array_equal(log.records, whole[: len(log.records)])


def test_truncated_inside_a_definition(tmp_path: Path) -> None:
    """A definition whose text is cut ends the log there."""
    writer = EventWriter(tmp_path / "a.mlog", HEADER)
    writer.write(Event.BEGIN, 1, 1)
    writer.name("x" * 100)
    writer.close()
    os.truncate(writer.path, writer.path.stat().st_size - RECORD.size)
    log = read_log(writer.path)
    assert log.truncated
    assert len(log.records) == 1
    assert log.names == {}


def test_tail_of_zeros(tmp_path: Path) -> None:
    """Zeros a crashed file system left at the end are a truncated tail."""
    path = tmp_path / "a.mlog"
    written(path, 10)
    with path.open("ab") as file:
        file.write(bytes(4000))
    log = read_log(path)
    assert log.truncated
    assert len(log.records) == 20


@pytest.mark.parametrize(
    ("data", "says"),
    [
        pytest.param(b"", "empty", id="empty"),
        pytest.param(b"hello world, this is no log", "not an event log", id="foreign"),
        pytest.param(MAGIC[:5], "ends inside its header", id="cut-magic"),
        pytest.param(MAGIC + b"\x10\0\0\0{", "ends inside its header", id="cut-header"),
        pytest.param(MAGIC + b"\x04\0\0\0{{{{", "header is damaged", id="damaged-header"),
        pytest.param(MAGIC + b"\x02\0\0\0[]", "not a JSON object", id="list-header"),
        pytest.param(b"MUPLOG99" + bytes(20), "format 99", id="other-version"),
        pytest.param(
            MAGIC + b"\x02\0\0\0{}" + RECORD.pack(1, 1, 1, 1, 0, 0, 0, 99, 0), "unknown event 99", id="event"
        ),
    ],
)
def test_unusable_log(tmp_path: Path, data: bytes, says: str) -> None:
    """A file that is no usable log is refused by name and offset."""
    path = tmp_path / "a.mlog"
    path.write_bytes(data)
    with pytest.raises(LogError, match=says) as caught:
        read_log(path)
    assert str(path) in caught.value.where


def test_missing_log(tmp_path: Path) -> None:
    """A file that does not exist is a LogError."""
    with pytest.raises(LogError, match="cannot read"):
        read_log(tmp_path / "none.mlog")


def test_threads_share_a_writer(tmp_path: Path) -> None:
    """Records of several threads neither mix nor get lost."""
    writer = EventWriter(tmp_path / "a.mlog", HEADER)

    def write(trace: int) -> None:
        for number in range(1, 3001):
            writer.write(Event.BEGIN, number, trace, name=writer.name(f"n{number % 50}"))

    threads = [threading.Thread(target=write, args=(trace,)) for trace in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.close()
    log = read_log(writer.path)
    for trace in (1, 2, 3):
        mine = log.records[log.records["trace"] == trace]
        assert np.array_equal(mine["request"], np.arange(1, 3001))
        assert [log.names[int(n)] for n in mine["name"][:2]] == ["n1", "n2"]


def test_existing_log_is_kept(tmp_path: Path) -> None:
    """A restarted worker writes beside the log of its predecessor."""
    written(tmp_path / "a.mlog", 1)
    second = EventWriter(tmp_path / "a.mlog", HEADER)
    second.close()
    assert second.path.name == "a-2.mlog"
    assert len(read_log(tmp_path / "a.mlog").records) == 2


def test_write_error_disables_the_log_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A full disk costs the log, one warning, and nothing else."""
    writer = EventWriter(tmp_path / "a.mlog", HEADER)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(writer_module.os, "write", full)
    with caplog.at_level(logging.WARNING):
        for number in range(1, 5001):
            writer.write(Event.BEGIN, number, 1)
        writer.close()
    assert not writer.active
    assert len(caplog.records) == 1
    assert "No space left" in caplog.text


def test_unwritable_directory_disables_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A log that cannot be created is a warning, not a failure to start."""
    (tmp_path / "file").write_text("")
    writer = EventWriter(tmp_path / "file" / "a.mlog", HEADER)
    writer.write(Event.BEGIN, 1, 1)
    writer.close()
    assert not writer.active
    assert len(caplog.records) == 1


def test_flush_if_older(tmp_path: Path) -> None:
    """An idle worker makes its records visible after the given time, not before."""
    writer = EventWriter(tmp_path / "a.mlog", HEADER)
    writer.write(Event.BEGIN, 1, 1)
    writer.flush_if_older(60)
    assert len(read_log(writer.path).records) == 0
    writer.flush_if_older(0)
    assert len(read_log(writer.path).records) == 1
    writer.close()


def test_no_directory_no_log(tmp_path: Path) -> None:
    """Without a log directory there is no writer."""
    assert open_log(None, "a", HEADER) is None
    writer = open_log(tmp_path / "new", "a", HEADER)
    assert writer
    writer.close()
    assert (tmp_path / "new" / "a.mlog").exists()


def test_reading_a_million_records_is_fast(tmp_path: Path) -> None:
    """The reader looks at columns, not at records: a million take well under a second of CPU."""
    path = tmp_path / "a.mlog"
    record = RECORD.pack(1, 1, 1, 1, 0, 0, 0, Event.BEGIN, 0)
    path.write_bytes(MAGIC + b"\x02\0\0\0{}" + record * 1_000_000)
    start = time.process_time()
    assert len(read_log(path).records) == 1_000_000
    assert time.process_time() - start < 1.0


def test_ids_join_and_differ() -> None:
    """Children of different operations and requests differ, are reproducible and never 0."""
    requests = [new_id() for _ in range(200)]
    children = {child_id(request, seq) for request in requests for seq in range(1, 50)}
    assert len(children) == 200 * 49
    assert 0 not in children
    assert child_id(requests[0], 1) == child_id(requests[0], 1)
    assert all(0 < child < 2**64 for child in children)
