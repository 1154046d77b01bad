"""History of this machine's speed: a line per exploratory round, window, profile or probe.

The history lies beside the profile of the machine, ``speed-history.jsonl``. A line says when and during what
a speed was measured, on which machine, how busy that was, and what disturbed it, if something did. Lines are
appended whole, under a lock of the file, and the oldest are dropped when there are too many. A history is a
by-product: where it cannot be written, what it would have been about goes on.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec

from mup.errors import MupError
from mup.whole_file import write_whole
from mup.workload.machine import Identity, boot_id, cache_folder, since_boot, this_machine

__all__ = ["FORMAT", "History", "Kind", "SpeedRecord", "append", "history_path", "read_history", "record"]

FORMAT: Literal["mup-speed/2"] = "mup-speed/2"
EARLIER = b'"format":"mup-speed/1"'
"""In lines of versions whose monitor timed other work: their speeds are in other units."""
MAX_BYTES = 2_000_000
"""Some 5000 lines; the older half is dropped beyond."""
MAX_LINE = 10_000
"""Longer lines are none of ours."""

Kind = Literal["explore", "load", "validate", "profile", "probe"]


class SpeedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The speed of a machine over some seconds.

    Attributes:
        format: Of the line.
        time: When they ended, by the clock on the wall.
        since_boot: The same in seconds since the machine started.
        boot: Which start of the machine that was; "" = unknown.
        machine: Which machine.
        kind: What it was measured during: a round of ``explore``, a window of ``load`` or ``validate``,
            ``profile`` (``mup host``), or a ``probe`` of nothing else.
        run: Common to the lines of one exploration, or of one measured load with all its repeats.
        seconds: How long.
        monitored: Units of ``mup.workload.speed_monitor`` per second; None = unknown.
        probed: Units of ``mup.workload.speed`` per second, before and after; None = unknown.
        utilization: Busy share of the machine, 0 to 1; None = unknown.
        stolen: Share of the machine that its hypervisor withheld; None = unknown.
        disturbed: Why this says nothing about the machine alone, or "".
    """

    time: datetime
    since_boot: float
    boot: str
    machine: Identity
    kind: Kind
    run: str
    seconds: float
    monitored: float | None = None
    probed: float | None = None
    utilization: float | None = None
    stolen: float | None = None
    disturbed: str = ""
    format: Literal["mup-speed/2"] = FORMAT

    def __post_init__(self) -> None:
        for name in ("seconds", "monitored", "probed"):
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise ValueError(f"{name} must be > 0, got {value!r}")
        if self.time.tzinfo is None:
            raise ValueError("time must have an offset from UTC")


@dataclass(frozen=True, slots=True)
class History:
    """What a history file holds.

    Attributes:
        records: In the order of the file.
        notes: What could not be read, one sentence each.
    """

    records: tuple[SpeedRecord, ...] = ()
    notes: tuple[str, ...] = ()


def history_path() -> Path:
    """Return where the history of this machine is kept."""
    return cache_folder() / "speed-history.jsonl"


def record(
    kind: Kind,
    run: str,
    seconds: float,
    *,
    monitored: float | None = None,
    probed: float | None = None,
    utilization: float | None = None,
    stolen: float | None = None,
    disturbed: str = "",
) -> SpeedRecord:
    """Return a record of what ended just now on this machine; the arguments are those of ``SpeedRecord``."""
    return SpeedRecord(
        time=datetime.now(UTC),
        since_boot=round(since_boot(), 3),
        boot=boot_id(),
        machine=this_machine(),
        kind=kind,
        run=run,
        seconds=round(seconds, 3),
        monitored=monitored,
        probed=probed,
        utilization=utilization,
        stolen=stolen,
        disturbed=disturbed,
    )


def append(*records: SpeedRecord, path: Path | None = None) -> bool:
    """Write records behind all others; returns whether they could be.

    Args:
        records: What to write.
        path: Where; None = the history of this machine.
    """
    target = path or history_path()
    text = b"".join(msgspec.json.encode(each) + b"\n" for each in records)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _locked(target) as descriptor:
            size = os.fstat(descriptor).st_size
            # A process may have been killed in the middle of a line.
            torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
            _write(descriptor, b"\n" * torn + text)
            if size + len(text) > MAX_BYTES:
                lines = target.read_bytes().splitlines(keepends=True)
                kept = b"".join(lines[len(lines) // 2 :]).decode("utf-8", "replace")
                write_whole(target, kept)
    except (OSError, MupError):
        return False
    return True


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    """Hold the lock of the file that has this name now; yields a descriptor that appends."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            current = -1
            with suppress(FileNotFoundError):
                current = path.stat().st_ino
            if os.fstat(descriptor).st_ino == current:
                yield descriptor
                return
            # Another process has put a shorter file in its place meanwhile.
        finally:
            os.close(descriptor)


def read_history(path: Path | None = None) -> History:
    """Read a history; what is broken in it, or of an earlier version, is left out, and a note says so.

    Args:
        path: Of which file; None = the history of this machine. One that does not exist is empty.
    """
    target = path or history_path()
    try:
        lines = target.read_bytes().split(b"\n")
    except FileNotFoundError:
        return History()
    except OSError as error:
        return History((), (f"{target}: cannot read the history of the machine's speed: {error.strerror}",))
    found: list[SpeedRecord] = []
    broken: list[tuple[int, str]] = []
    earlier = 0
    decoder = msgspec.json.Decoder(SpeedRecord)
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        if EARLIER in line[:MAX_LINE]:
            earlier += 1
            continue
        try:
            if len(line) > MAX_LINE:
                raise ValueError(f"longer than {MAX_LINE} bytes")
            found.append(decoder.decode(line))
        except (msgspec.DecodeError, ValueError) as error:
            broken.append((number, str(error)))
    notes = []
    if earlier:
        notes.append(f"records of an earlier version left out, whose speeds are in other units: {earlier}")
    if broken:
        number, why = broken[0]
        more = f", and {len(broken) - 1} more lines" if len(broken) > 1 else ""
        what = f"not a record of the machine's speed ({why}); left out, delete it"
        notes.append(f"{target}, line {number}{more}: {what}")
    return History(tuple(found), tuple(notes))
