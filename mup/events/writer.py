"""How do events get from a running service to disk without slowing it down?

Records are packed into a preallocated buffer and written when it is full, on close, and when the worker goes
idle. Losing the log must never cost a request: a write error switches the log off with one warning.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import threading
import time as clock
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mup.events.record import DEFINE_NAME, DEFINE_SITE, MAGIC, RECORD, Event, padded
from mup.events.sites import Site

__all__ = ["EventWriter", "open_log"]

_log = logging.getLogger("mup.events")
_SIZE = RECORD.size
_CAPACITY = 65536 // _SIZE * _SIZE
_LAST = 0xFFFF  # ids and sequence numbers are u16

_monotonic_ns = clock.monotonic_ns
_thread_time_ns = clock.thread_time_ns
_pack_into = RECORD.pack_into


class EventWriter:
    """Appends records to one log file; any thread may call any method.

    Args:
        path: File to create. If it exists (an earlier process of the same worker wrote it), ``-2``,
            ``-3``, ... is added to the stem.
        header: ``role``, ``service``, ``replica``, ``worker`` as the format wants them; ``pid`` and ``clock``
            are added.

    Attributes:
        path: The file written.
    """

    def __init__(self, path: Path, header: Mapping[str, Any]) -> None:
        self._lock = threading.Lock()
        self._buffer = bytearray(_CAPACITY)
        self._used = 0
        self._fd: int | None = None
        self._flushed = clock.monotonic()
        self._names: dict[str, int] = {}
        self._sites: dict[Site, int] = {}
        self.path = path
        try:
            self._fd, self.path = _create(path)
            complete = {
                "pid": os.getpid(),
                "clock": {"monotonic_ns": _monotonic_ns(), "unix_ns": clock.time_ns()},
                **header,
            }
            text = json.dumps(complete).encode()
            _write_all(self._fd, MAGIC + len(text).to_bytes(4, "little") + text)
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
        with self._lock:
            used = self._used
            if used == _CAPACITY:
                self._flush()
                used = 0
            _pack_into(
                self._buffer,
                used,
                request,
                trace,
                time,
                cpu,
                seq if seq < _LAST else _LAST,  # noqa: FURB136 - min() takes three times as long
                site,
                name,
                event,
                flags,
            )
            self._used = used + _SIZE

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
        if self._used and clock.monotonic() - self._flushed >= seconds:
            self.flush()

    @property
    def pending(self) -> bool:
        """Whether something waits to be flushed."""
        return self._used > 0

    def close(self) -> None:
        """Flush and close; records written later are dropped."""
        with self._lock:
            self._flush()
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
            data = text.encode()
            record = RECORD.pack(len(data), 0, _monotonic_ns(), 0, 0, kind, number, Event.DEFINE, 0)
            self._flush()
            self._write(record + data.ljust(padded(len(data)), b"\0"))
            table[key] = number
            return number

    def _flush(self) -> None:
        if self._used:
            self._write(memoryview(self._buffer)[: self._used])
            self._used = 0
        self._flushed = clock.monotonic()

    def _write(self, data: bytes | memoryview) -> None:
        if self._fd is None:
            return
        try:
            _write_all(self._fd, data)
        except OSError as error:
            self._disable(error)

    def _disable(self, error: OSError) -> None:
        _log.warning("event log %s is off: %s", self.path, error.strerror or error)
        if self._fd is not None:
            with contextlib.suppress(OSError):
                os.close(self._fd)
        self._fd = None


def open_log(directory: str | Path | None, stem: str, header: Mapping[str, Any]) -> EventWriter | None:
    """Return a writer for ``directory/stem.mlog``, or None when there is no directory to log to."""
    return EventWriter(Path(directory) / f"{stem}.mlog", header) if directory else None


def _create(path: Path) -> tuple[int, Path]:
    """Create the first free file of ``stem.mlog``, ``stem-2.mlog``, ..., never touching one that exists."""
    path.parent.mkdir(parents=True, exist_ok=True)
    number = 1
    candidate = path
    while True:
        try:
            return os.open(candidate, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644), candidate
        except FileExistsError:
            number += 1
            candidate = path.with_name(f"{path.stem}-{number}{path.suffix}")


def _write_all(fd: int, data: bytes | memoryview) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
