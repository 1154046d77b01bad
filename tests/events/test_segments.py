"""A log rotates, keeps its cap, survives a full disk, and is read in constant memory."""

from __future__ import annotations

import errno
import logging
import os
import signal
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from mup.errors import DeploymentError, LogError
from mup.events.reader import LogStream, log_files, read_log
from mup.events.record import RECORD, Event
from mup.events.settings import LogSettings
from mup.events.sites import Site
from mup.events.writer import EventWriter

HEADER = {"role": "worker", "service": "A", "replica": 0, "worker": 0}
BLOCK = 65536


def fill(writer: EventWriter, requests: int) -> None:
    """Write BEGIN and DONE of requests 1, 2, ... with a name and a site."""
    name, site = writer.name("A/ep/"), writer.site(Site("a.py", "f", 1))
    for number in range(1, requests + 1):
        writer.write(Event.BEGIN, number, 7, name=name)
        writer.write(Event.DONE, number, 7, name=name, site=site)
    writer.close()


def test_segments_are_one_log(tmp_path: Path) -> None:
    """A log of several segments reads like one file; each segment can also be read alone."""
    writer = EventWriter(tmp_path / "A.0.w0.mlog", HEADER, LogSettings(segment=3 * BLOCK))
    fill(writer, 20_000)
    ((*segments,),) = log_files(tmp_path)
    assert [p.name for p in segments[:2]] == ["A.0.w0.mlog", "A.0.w0.00002.mlog"]
    assert len(segments) > 5
    assert all(p.stat().st_size <= 3 * BLOCK for p in segments)
    log = read_log(segments)
    assert not log.truncated
    assert np.array_equal(log.records["request"][::2], np.arange(1, 20_001))
    third = read_log(segments[2])
    assert third.names == {1: "A/ep/"}
    assert third.sites[1].function == "f"
    assert third.header["segment"] == 3
    assert third.header["clock"] == log.header["clock"]


def test_cap_deletes_the_oldest(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What is kept stays below the cap; the newest records are there, and it is said once."""
    keep = 16 * BLOCK
    writer = EventWriter(tmp_path / "A.0.w0.mlog", HEADER, LogSettings(keep=keep))
    with caplog.at_level(logging.WARNING, "mup.events"):
        fill(writer, 60_000)
    assert sum(p.stat().st_size for p in tmp_path.iterdir()) <= keep
    ((*segments,),) = log_files(tmp_path)
    records = read_log(segments).records
    assert records["request"][-1] == 60_000
    assert len(records) * RECORD.size > keep / 2
    assert np.all(np.diff(records["request"].astype(np.int64)) <= 1)
    assert len(caplog.records) == 1
    assert "oldest segments" in caplog.text


def test_cap_includes_predecessors_of_the_worker(tmp_path: Path) -> None:
    """A worker that is restarted again and again does not fill the disk; others' logs are left alone."""
    other = tmp_path / "A.0.w1.mlog"
    fill(EventWriter(other, HEADER), 30_000)
    for _ in range(6):
        fill(EventWriter(tmp_path / "A.0.w0.mlog", HEADER, LogSettings(keep=16 * BLOCK)), 10_000)
    mine = [path for path in tmp_path.iterdir() if path != other]
    assert sum(p.stat().st_size for p in mine) <= 16 * BLOCK
    assert other.exists()
    newest = log_files(tmp_path)[-2]
    assert newest[0].name.startswith("A.0.w0-6")
    assert len(read_log(newest).records) > 10_000


def test_segment_torn_at_its_start(tmp_path: Path) -> None:
    """A process that was killed while it began a segment leaves a truncated log, not an unreadable one."""
    fill(EventWriter(tmp_path / "A.0.w0.mlog", HEADER), 10)
    (tmp_path / "A.0.w0.00002.mlog").write_bytes(b"MUPLOG01\x50\0")
    log = read_log(log_files(tmp_path)[0])
    assert log.truncated
    assert len(log.records) == 20


def test_streaming_takes_constant_memory(tmp_path: Path) -> None:
    """A log ten times as long takes no more memory to read."""
    peaks = []
    for requests in (20_000, 200_000):
        path = tmp_path / f"{requests}.mlog"
        fill(EventWriter(path, HEADER), 1)
        block = path.read_bytes()[-2 * RECORD.size :]
        with path.open("ab") as file:
            file.write(block * requests)
        tracemalloc.start()
        stream = LogStream(path, batch=2**18)
        assert sum(len(batch) for batch in stream) == 2 * requests + 2
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]
    assert peaks[1] < 3 * 2**20


@pytest.mark.parametrize("batch", [1, 40, 81, 1000])
def test_definitions_across_batches(tmp_path: Path, batch: int) -> None:
    """Wherever a batch ends, definitions and records are the same."""
    writer = EventWriter(tmp_path / "a.mlog", HEADER)
    for number in range(1, 20):
        writer.write(Event.BEGIN, number, 1, name=writer.name("x" * 37 * number))
    writer.close()
    stream = LogStream(writer.path, batch=batch)
    records = np.concatenate(list(stream))
    assert [len(stream.names[int(n)]) for n in records["name"]] == [37 * n for n in range(1, 20)]
    assert not stream.truncated


def test_enormous_definition_is_damage(tmp_path: Path) -> None:
    """A damaged length does not make the reader collect the rest of the file."""
    writer = EventWriter(tmp_path / "a.mlog", HEADER)
    writer.close()
    with writer.path.open("ab") as file:
        file.write(RECORD.pack(2**60, 0, 0, 0, 0, 1, 1, Event.DEFINE, 0))
    with pytest.raises(LogError, match="definition is damaged"):
        read_log(writer.path)


LIMITED = """
import resource, sys
from pathlib import Path
from mup.events.record import Event
from mup.events.writer import EventWriter

resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
writer = EventWriter(Path(sys.argv[1]), {})
for number in range(1, 20_001):
    writer.write(Event.BEGIN, number, 1)
print(writer.active, writer.problem)
writer.close()
"""


def test_file_size_limit(tmp_path: Path) -> None:
    """A log that may not grow is switched off; what was flushed stays valid and the process goes on."""
    path = tmp_path / "a.mlog"
    run = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path)], capture_output=True, text=True, check=True, timeout=60
    )
    assert run.stdout.strip() == f"False {os.strerror(errno.EFBIG)}"
    assert run.stderr.count("is off") == 1
    log = read_log(path)
    assert not log.truncated
    assert np.array_equal(log.records["request"], np.arange(1, len(log.records) + 1))
    assert len(log.records) > 1000


KILLED = """
import os, signal, sys
from pathlib import Path
from mup.events.record import Event
from mup.events.settings import LogSettings
from mup.events.writer import EventWriter

writer = EventWriter(Path(sys.argv[1]), {}, LogSettings(segment=200_000))
for number in range(1, 10_001):
    writer.write(Event.BEGIN, number, 1)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_kill_loses_the_unflushed_tail_only(tmp_path: Path) -> None:
    """Of a process killed with -9, all but the last block of records is there."""
    run = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "a.mlog")], check=False, timeout=60)
    assert run.returncode == -signal.SIGKILL
    log = read_log(log_files(tmp_path)[0])
    assert np.array_equal(log.records["request"], np.arange(1, len(log.records) + 1))
    assert 10_000 - len(log.records) < BLOCK / RECORD.size


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MUP_LOG_SAMPLE", "0"),
        ("MUP_LOG_SAMPLE", "2.5"),
        ("MUP_LOG_SAMPLE", "-1"),
        ("MUP_LOG_KEEP", "much"),
        ("MUP_LOG_SEGMENT", "0"),
        ("MUP_LOG_KEEP", "inf"),
        ("MUP_LOG_KEEP", "0.9"),
    ],
)
def test_wrong_settings_are_refused(name: str, value: str) -> None:
    """A setting that is not understood is named with its value."""
    with pytest.raises(DeploymentError, match=f"{name}.*{value!r}"):
        LogSettings.from_environment({name: value})


def test_settings_from_the_environment() -> None:
    """Sizes are megabytes."""
    settings = LogSettings.from_environment({"MUP_LOG_KEEP": "8", "MUP_LOG_SAMPLE": "10"})
    assert settings == LogSettings(keep=8_000_000, sample=10)
    assert settings.segment_bytes == 2_000_000


FULL_FOR_A_WHILE = """
import resource, sys
from pathlib import Path
from mup.events import writer as writers
from mup.events.record import Event

writers.RETRY_SECONDS = 0.0
writer = writers.EventWriter(Path(sys.argv[1]), {"role": "worker", "service": "A"})
name = writer.name("A/a/")

def write(numbers):
    for number in numbers:
        writer.write(Event.DONE, number, 1, name=name)
    writer.flush()

write(range(1, 1001))
resource.setrlimit(resource.RLIMIT_FSIZE, (10, resource.RLIM_INFINITY))
write(range(1001, 1501))
write(range(1501, 2001))
print(writer.active, writer.missing)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
if sys.argv[2] == "more":
    write(range(2001, 3001))
    print(writer.active, writer.missing)
writer.close()
"""


@pytest.mark.parametrize("then", ["more", "end"])
def test_a_log_that_was_off_goes_on(tmp_path: Path, then: str) -> None:
    """With room again it has another segment, which says how much is missing; it is not taken for whole."""
    words = [sys.executable, "-c", FULL_FOR_A_WHILE, str(tmp_path / "a.mlog"), then]
    run = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    assert run.stdout.splitlines() == ["False 1000", "True 0"][: 2 if then == "more" else 1]
    assert run.stderr.count("is off: File too large") == 1
    assert run.stderr.count("is on again: 1000 records are missing") == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.00002.mlog", "a.mlog"]
    (segments,) = log_files(tmp_path)
    with pytest.raises(LogError, match="1000 records are missing"):
        read_log(segments)
    log = read_log(segments, gaps=True)
    assert (log.missing, log.truncated) == (1000, False)
    kept = [*range(1, 1001), *(range(2001, 3001) if then == "more" else ())]
    assert log.records["request"].tolist() == kept
    assert {log.names[name] for name in log.records["name"].tolist()} == {"A/a/"}
