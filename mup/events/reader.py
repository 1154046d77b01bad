"""Read an event log into numpy arrays, whole or in batches; never imported by services."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from mup.errors import LogError
from mup.events.record import DEFINE_NAME, DEFINE_SITE, MAGIC, RECORD, Event, padded
from mup.events.segments import segments_in
from mup.events.sites import Site

__all__ = ["DTYPE", "Log", "LogStream", "RecordDecoder", "log_files", "read_header", "read_log"]

DTYPE = np.dtype(
    [
        ("request", "<u8"),
        ("trace", "<u8"),
        ("time", "<i8"),
        ("cpu", "<i8"),
        ("seq", "<u2"),
        ("site", "<u2"),
        ("name", "<u2"),
        ("event", "u1"),
        ("flags", "u1"),
    ]
)

_HINT = "record a new one with 'mup explore'"
_LONGEST_TEXT = 2**20
"""Bytes of a header or a definition; more is damage."""


@dataclass(frozen=True, slots=True)
class Log:
    """The event log of one process.

    Attributes:
        header: ``role``, ``service``, ``replica``, ``worker``, ``pid``, ``clock``, ``sample``, ``segment``.
        names: Text of each name id; 0 is not in it.
        sites: Site of each site id; 0 is not in it.
        records: Structured array of type ``DTYPE``, in file order, without definitions.
        truncated: It ends in the middle of a record (its process was killed): the rest is complete.
        path: The file, or the first of its segments.
        missing: Records between two of its segments that could not be written.
    """

    header: dict[str, Any]
    names: dict[int, str]
    sites: dict[int, Site]
    records: npt.NDArray[np.void]
    truncated: bool
    path: Path
    missing: int = 0


class RecordDecoder:
    """Cuts the bytes behind a header into records; fed piece by piece.

    Args:
        path: For messages.

    Attributes:
        names, sites: What has been defined so far. A definition stands before its uses.
        ended: What comes from here on is a lost tail that the disk has filled with zeros.
    """

    def __init__(self, path: Path) -> None:
        self.names: dict[int, str] = {}
        self.sites: dict[int, Site] = {}
        self.ended = False
        self._path = path

    def decode(self, data: bytes, offset: int) -> tuple[npt.NDArray[np.void], int]:
        """Return the records of a piece, and how many of its bytes they took.

        Args:
            data: Starts with a record. An incomplete one at the end is left for the next piece.
            offset: Of the piece in the file.

        Raises:
            LogError: The file is damaged, or of a newer version.
        """
        usable = len(data) // RECORD.size
        records = np.frombuffer(data, DTYPE, usable)
        keep = np.ones(usable, dtype=bool)
        end = usable
        after = 0  # first record that is not text of the definition before it
        for index in np.flatnonzero(records["event"] == Event.DEFINE).tolist():
            if index < after:
                continue
            kind, number, length = (int(records[index][field]) for field in ("site", "name", "request"))
            text_at = (index + 1) * RECORD.size
            where = f"{self._path} at byte {offset + text_at}"
            if kind and length > _LONGEST_TEXT:
                raise LogError("a definition is damaged", where=where, hint=_HINT)
            after = index + 1 + padded(length) // RECORD.size
            if after > usable or kind == 0:
                self.ended = kind == 0
                end = index
                break
            keep[index:after] = False
            self._define(kind, number, data[text_at : text_at + length], where)
        unknown = np.flatnonzero((records["event"][:end] > max(Event)) & keep[:end])
        if len(unknown):
            first = int(unknown[0])
            raise LogError(
                f"unknown event {int(records['event'][first])}",
                where=f"{self._path} at byte {offset + first * RECORD.size}",
                hint=f"the file is damaged or of a newer mup; {_HINT}",
            )
        return records[:end][keep[:end]], end * RECORD.size

    def _define(self, kind: int, number: int, text: bytes, where: str) -> None:
        try:
            if kind == DEFINE_NAME:
                self.names[number] = text.decode()
            elif kind == DEFINE_SITE:
                self.sites[number] = Site(**json.loads(text))
            else:
                raise LogError(f"unknown definition {kind}", where=where, hint=_HINT)
        except (ValueError, TypeError) as error:
            raise LogError("a definition is damaged", where=where, hint=_HINT) from error


class LogStream:
    """The log of one process, batch by batch, in constant memory. Iterate over it once.

    Args:
        path: The file, or the segments of one process in their order.
        batch: Bytes read at once.

    Attributes:
        header: Of the first segment.
        names, sites: What has been defined up to the last batch: enough to understand it.
        truncated: A segment read so far ends in the middle of a record.
        missing: Records before a segment read so far that could not be written.
        path: The first segment.

    Raises:
        LogError: The first segment cannot be read, is empty, or is no event log.
    """

    def __init__(self, path: str | Path | Sequence[Path], *, batch: int = 4 * 2**20) -> None:
        self._paths = [Path(path)] if isinstance(path, str | Path) else list(path)
        self._batch = max(batch // RECORD.size, 1) * RECORD.size
        self.path = self._paths[0]
        self.header = read_header(self.path)[0]
        self.names: dict[int, str] = {}
        self.sites: dict[int, Site] = {}
        self.truncated = False
        self.missing = 0

    def __iter__(self) -> Iterator[npt.NDArray[np.void]]:
        """Yield arrays of type ``DTYPE``.

        Raises:
            LogError: A segment cannot be read, or is damaged before its end.
        """
        for path in self._paths:
            if path is self._paths[-1] is not self.path and _is_torn(path):
                # Its process was killed while it began a segment.
                self.truncated = True
                return
            yield from self._segment(path)

    def _segment(self, path: Path) -> Iterator[npt.NDArray[np.void]]:
        header, offset = read_header(path)
        self.missing += header.get("missing", 0)
        decoder = RecordDecoder(path)
        # Every segment repeats the definitions before it, with the same numbers.
        decoder.names, decoder.sites = self.names, self.sites
        rest = b""
        with _opened(path) as file:
            file.seek(offset)
            while not decoder.ended and (data := file.read(self._batch)):
                data = rest + data
                records, used = decoder.decode(data, offset)
                offset += used
                rest = data[used:]
                if len(records):
                    yield records
        self.truncated = self.truncated or bool(rest) or decoder.ended


def read_log(path: str | Path | Sequence[Path], *, gaps: bool = False) -> Log:
    """Read one log as a whole.

    Args:
        path: The file, or the segments of one process in their order.
        gaps: Whether records may be missing between segments. Counts of records, and quotients with
            such counts, would then be wrong by an unknown amount.

    Raises:
        LogError: A file cannot be read, is empty, is no event log, or is damaged before its end; or the log
            was off for a while.
    """
    stream = LogStream(path)
    batches = list(stream)
    if stream.missing and not gaps:
        raise LogError(
            f"{stream.missing} records are missing in this log: it could not be written for a while",
            where=str(stream.path),
            hint=f"give the disk of the logs room; {_HINT} ('mup log' shows what there is)",
        )
    records = np.concatenate(batches) if batches else np.empty(0, DTYPE)
    return Log(
        stream.header, stream.names, stream.sites, records, stream.truncated, stream.path, stream.missing
    )


def log_files(folder: Path) -> list[list[Path]]:
    """Return the segments of every process that has logged to a folder, by name."""
    processes: dict[tuple[str, int], list[Path]] = {}
    for segment in segments_in(folder):
        processes.setdefault((segment.stem, segment.process), []).append(segment.path)
    return list(processes.values())


def read_header(path: Path) -> tuple[dict[str, Any], int]:
    """Return the header of a file and the offset of its first record.

    Raises:
        LogError: It cannot be read, is empty, or is no event log.
    """
    with _opened(path) as file:
        start = file.read(len(MAGIC) + 4)
        length = int.from_bytes(start[len(MAGIC) :], "little")
        # A foreign file may announce anything.
        data = start + (file.read(min(length, _LONGEST_TEXT)) if start.startswith(MAGIC) else b"")
    return _header(data, path)


def _is_torn(path: Path) -> bool:
    """Return whether a file ends within its header."""
    with _opened(path) as file:
        start = file.read(len(MAGIC) + 4)
        size = file.seek(0, 2)
    whole = len(MAGIC) + 4 + int.from_bytes(start[len(MAGIC) :], "little")
    return MAGIC.startswith(start[: len(MAGIC)]) and size < whole


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise LogError(f"cannot read the log: {error.strerror}", where=str(path)) from error


def _header(data: bytes, path: Path) -> tuple[dict[str, Any], int]:
    """Return the header and the offset of the first record."""
    if not data:
        raise LogError("the log is empty", where=str(path), hint=_HINT)
    if not data.startswith(MAGIC):
        if data[:6] == MAGIC[:6]:
            version = data[6:8].decode(errors="replace")
            raise LogError(
                f"event log of format {version}, expected 01", where=f"{path} at byte 6", hint=_HINT
            )
        problem = "the log ends inside its header" if MAGIC.startswith(data) else "not an event log of mup"
        raise LogError(problem, where=f"{path} at byte 0", hint=_HINT)
    size_end = len(MAGIC) + 4
    length = int.from_bytes(data[len(MAGIC) : size_end], "little")
    if len(data) < size_end + length:
        raise LogError("the log ends inside its header", where=f"{path} at byte {len(data)}", hint=_HINT)
    try:
        header = json.loads(data[size_end : size_end + length])
    except ValueError as error:
        raise LogError("the header is damaged", where=f"{path} at byte {size_end}", hint=_HINT) from error
    if not isinstance(header, dict):
        raise LogError("the header is not a JSON object", where=f"{path} at byte {size_end}", hint=_HINT)
    return header, size_end + length
