"""Write events of a running service to disk without slowing it down.

Records are packed, collected, and written in blocks: when there are enough, on close, and when the worker
goes idle. Losing the log must never cost a request: a write error switches the log off with one warning, and
what has been written before stays readable. When there is room again, the log goes on with a new segment,
whose header says how much is missing before it.
"""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import os
import struct
import threading
import time as clock
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mup.events.record import DEFINE_NAME, DEFINE_SITE, MAGIC, RECORD, Event, padded
from mup.events.segments import SUFFIX, segment_path, segments_in
from mup.events.settings import MEGABYTE, LogSettings
from mup.events.sites import Site

__all__ = ["EventWriter", "open_log"]

_log = logging.getLogger("mup.events")
_BLOCK = 65536 // RECORD.size
"""Records (or definitions) that are written at once."""
_LAST = 0xFFFF  # ids and sequence numbers are u16

RETRY_SECONDS = 5.0
"""Time between two attempts to write a log again that is off."""

ROOM = 2**18
"""Bytes a disk has to have for that: with room for a header only it would be off again at once."""

_monotonic_ns = clock.monotonic_ns
_thread_time_ns = clock.thread_time_ns
_pack = RECORD.pack


class EventWriter:
    """Appends records to the log of one process; any thread may call any method.

    Args:
        path: First file to create. If an earlier process of the same worker has written it, ``-2``, ``-3``,
            ... is added to the stem.
        header: ``role``, ``service``, ``replica``, ``worker`` as the format wants them; ``pid``, ``clock``,
            ``sample`` and ``segment`` are added.
        settings: How large segments are, and how much is kept.

    Attributes:
        path: The file being written.
        problem: Why the log is off; "" while it is not.
        missing: Records that could not be written since the last one that was.
    """

    def __init__(self, path: Path, header: Mapping[str, Any], settings: LogSettings | None = None) -> None:
        self._settings = settings or LogSettings()
        self._lock = threading.Lock()  # of everything but the list of records
        # Appending to a list, its length and cutting its head off are atomic: writers need no lock.
        self._records: list[bytes] = []
        self._append = self._records.append
        self._fd: int | None = None
        self._size = 0
        self._pruned = False
        self._flushed = clock.monotonic()
        self._names: dict[str, int] = {}
        self._sites: dict[Site, int] = {}
        self._folder, self._stem = path.parent, path.stem
        self._process = 0  # not known before the folder has been seen
        self._number = 1
        self._retry = 0.0
        self._header = {
            "pid": os.getpid(),
            "clock": {"monotonic_ns": _monotonic_ns(), "unix_ns": clock.time_ns()},
            "sample": self._settings.sample,
            **header,
        }
        self.path = path
        self.problem = ""
        self.missing = 0
        try:
            self._begin()
        except OSError as error:
            self._disable(error)

    @property
    def active(self) -> bool:
        """Whether records still reach the file."""
        return self._fd is not None

    def write(
        self,
        event: Event | int,
        request: int,
        trace: int,
        seq: int = 0,
        site: int = 0,
        name: int = 0,
        flags: int = 0,
        time: int | None = None,
        cpu: int | None = None,
    ) -> None:
        """Append one record.

        Args:
            event: What happened.
            request: Id of the execution it happened in.
            trace: Id of the client cycle that caused it.
            seq: Number of the remote operation (numbers beyond u16 are stored as 65535).
            site: From :meth:`site`.
            name: From :meth:`name`.
            flags: ``FAILED``, ``CENSORED``, ``QUEUED``.
            time: Nanoseconds of the monotonic clock; now if None.
            cpu: Nanoseconds of this thread's CPU clock; now if None.
        """
        if time is None:
            time = _monotonic_ns()
        if cpu is None:
            cpu = _thread_time_ns()
        try:
            self._append(_pack(request, trace, time, cpu, seq, site, name, event, flags))
        except struct.error:
            if seq <= _LAST:
                raise
            self._append(_pack(request, trace, time, cpu, _LAST, site, name, event, flags))
        if len(self._records) >= _BLOCK:
            self.flush()

    def name(self, text: str) -> int:
        """Return the id of a name, defining it in the log at its first use; 0 when there are too many."""
        known = self._names.get(text)
        return known if known is not None else self._define(DEFINE_NAME, self._names, text, text)

    def site(self, site: Site) -> int:
        """Return the id of a site, defining it in the log at its first use; 0 when there are too many."""
        known = self._sites.get(site)
        return known if known is not None else self._define(DEFINE_SITE, self._sites, site, site.to_json())

    def flush(self) -> None:
        """Write out what is buffered."""
        with self._lock:
            self._flush()

    def flush_if_older(self, seconds: float) -> None:
        """Write out what is buffered if the last time was longer ago, so that a reader sees fresh data."""
        if self._records and clock.monotonic() - self._flushed >= seconds:
            self.flush()

    @property
    def pending(self) -> bool:
        """Whether something waits to be flushed."""
        return bool(self._records)

    def close(self) -> None:
        """Flush and close; records written later are dropped."""
        with self._lock:
            self._flush()
            if self.missing:
                # The last chance to say so where readers look.
                self._retry = 0.0
                self._try_again()
            self.problem = ""
            if self._fd is not None:
                os.close(self._fd)
                self._fd = None

    def _define(self, kind: int, table: dict[Any, int], key: str | Site, text: str) -> int:
        with self._lock:
            if key in table:  # another thread was first
                return table[key]
            number = len(table) + 1
            if number > _LAST:
                return 0
            # Before the number is known to others: a definition stands before its uses.
            self._append(_definition(kind, number, text))
            table[key] = number
            return number

    def _flush(self) -> None:
        records = self._records
        count = len(records)
        if count:
            data = b"".join(records[:count])
            del records[:count]
            self._write(data, count)
        self._flushed = clock.monotonic()

    def _write(self, data: bytes, count: int) -> None:
        if self.problem:
            self._try_again()
        if self._fd is None:
            self.missing += count
            return
        try:
            if self._size + len(data) > self._settings.segment_bytes and self._size > self._head:
                os.close(self._fd)
                self._fd = None
                self._number += 1
                self._open()
            self._put(data)
        except OSError as error:
            self.missing += count
            if self._fd is not None:
                self._number += 1
            self._disable(error)

    def _try_again(self) -> None:
        """Go on with a log that is off, if there is room and it is time to try."""
        now = clock.monotonic()
        if now < self._retry:
            return
        self._retry = now + RETRY_SECONDS
        missing = self.missing
        try:
            self._begin()
        except OSError:
            return
        self.problem = ""
        _log.warning("event log %s is on again: %d records are missing before it", self.path, missing)

    def _begin(self) -> None:
        """Create the first file, or the first one after a failure."""
        self._folder.mkdir(parents=True, exist_ok=True)
        disk = os.statvfs(self._folder)
        if self.problem and disk.f_bavail * disk.f_frsize < ROOM:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if not self._process:
            self._process = max((s.process for s in segments_in(self._folder, self._stem)), default=0) + 1
        self._open()

    def _open(self) -> None:
        """Create the next file; it can be read without the ones before it."""
        self._fd, self.path = self._create()
        described = {**self._header, "segment": self._number}
        if self.missing:
            described["missing"] = self.missing
        header = json.dumps(described).encode()
        names = [_definition(DEFINE_NAME, number, text) for text, number in self._names.items()]
        sites = [_definition(DEFINE_SITE, number, site.to_json()) for site, number in self._sites.items()]
        self._size = 0
        try:
            self._put(b"".join([MAGIC, len(header).to_bytes(4, "little"), header, *names, *sites]))
        except OSError:
            # To readers a file without a header is damage; and the next attempt needs its name.
            os.close(self._fd)
            self._fd = None
            self.path.unlink(missing_ok=True)
            raise
        self.missing = 0
        self._head = self._size
        if self._settings.keep:
            self._prune()

    def _create(self) -> tuple[int, Path]:
        """Create a file, never touching one that exists."""
        while True:
            path = segment_path(self._folder, self._stem, self._process, self._number)
            try:
                return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644), path
            except FileExistsError:
                self._process += 1

    def _put(self, data: bytes) -> None:
        """Append all of it, or nothing.

        Raises:
            OSError: It could not be written (disk full, file size limit).
        """
        assert self._fd is not None  # noqa: S101 - by the callers
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError:
            # Half a block would be half a record to readers.
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, self._size)
            raise
        self._size += len(data)

    def _prune(self) -> None:
        """Delete the oldest segments of this worker and its predecessors beyond what is to be kept."""
        segments = segments_in(self._folder, self._stem)
        sizes = {segment.path: segment.path.stat().st_size for segment in segments}
        # The new one will grow to its full size.
        total = sum(sizes.values()) + self._settings.segment_bytes
        for segment in segments:
            if total <= self._settings.keep or segment.path == self.path:
                break
            segment.path.unlink(missing_ok=True)
            total -= sizes[segment.path]
            if not self._pruned:
                _log.warning(
                    "event log %s: more than %g MB; the oldest segments are deleted from now on",
                    self._folder / self._stem,
                    self._settings.keep / MEGABYTE,
                )
                self._pruned = True

    def _disable(self, error: OSError) -> None:
        self.problem = error.strerror or str(error)
        self._retry = clock.monotonic() + RETRY_SECONDS
        _log.warning(
            "event log %s is off: %s; it is tried again every %g s", self.path, self.problem, RETRY_SECONDS
        )
        if self._fd is not None:
            with contextlib.suppress(OSError):
                os.close(self._fd)
        self._fd = None


def open_log(
    directory: str | Path | None, stem: str, header: Mapping[str, Any], settings: LogSettings | None = None
) -> EventWriter | None:
    """Return a writer for ``directory/stem.mlog``, or None when there is no directory to log to."""
    return EventWriter(Path(directory) / f"{stem}{SUFFIX}", header, settings) if directory else None


def _definition(kind: int, number: int, text: str) -> bytes:
    data = text.encode()
    record = _pack(len(data), 0, _monotonic_ns(), 0, 0, kind, number, Event.DEFINE, 0)
    return record + data.ljust(padded(len(data)), b"\0")
