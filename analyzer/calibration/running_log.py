"""What has been logged since the last look? Reads the logs of a run while it is still going on.

Every record is read once: a run of any length costs a time proportional to its length. Services write
their buffers when they are full and about once a second, so the newest second may be missing until the
next look; an execution whose end has not been seen is kept until it has.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import numpy.typing as npt

from analyzer.calibration.executions import Execution, collect
from mup.errors import LogError
from mup.events.reader import DTYPE, Log, read_log
from mup.events.record import DEFINE_NAME, MAGIC, RECORD, Event, padded
from mup.events.sites import Site

__all__ = ["RunningLogs"]


class RunningLogs:
    """The logs of workers and clients in a folder, growing. Fronts tell nothing about paths."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._logs: dict[Path, _RunningLog] = {}

    def executions(self) -> Iterator[Execution]:
        """Yield the executions whose last record has appeared since the last look."""
        # A worker that is replaced opens a new file, so the folder is looked at each time.
        for path in sorted(self._folder.glob("*.mlog")):
            if path.name.endswith(".front.mlog"):
                continue
            if path not in self._logs:
                with suppress(LogError):  # its header is still on its way
                    self._logs[path] = _RunningLog(path)
            if path in self._logs:
                yield from self._logs[path].executions()


class _RunningLog:
    def __init__(self, path: Path) -> None:
        first = read_log(path)
        self._path = path
        self._header = first.header
        self._names: dict[int, str] = {}
        self._sites: dict[int, Site] = {}
        with path.open("rb") as file:
            file.seek(len(MAGIC))
            self._at = len(MAGIC) + 4 + int.from_bytes(file.read(4), "little")
        self._open = np.empty(0, DTYPE)

    def executions(self) -> list[Execution]:
        records = np.concatenate([self._open, self._new_records()])
        done = records["request"][records["event"] == Event.DONE]
        begun = records["request"][records["event"] == Event.BEGIN]
        # What follows an end (a query nobody waited for) or has lost its begin will never be complete.
        self._open = records[np.isin(records["request"], np.setdiff1d(begun, done))]
        complete = records[np.isin(records["request"], np.intersect1d(begun, done))]
        return collect(
            [Log(self._header, self._names, self._sites, complete, truncated=False, path=self._path)]
        )

    def _new_records(self) -> npt.NDArray[np.void]:
        """Return the records that are wholly on disk, without definitions; remember these."""
        with self._path.open("rb") as file:
            file.seek(self._at)
            data = file.read()
        usable = len(data) // RECORD.size
        records = np.frombuffer(data, DTYPE, usable)
        keep = np.ones(usable, dtype=bool)
        after = 0
        for index in np.flatnonzero(records["event"] == Event.DEFINE).tolist():
            if index < after:
                continue  # text that looks like a record
            length = int(records[index]["request"])
            after = index + 1 + padded(length) // RECORD.size
            if after > usable:
                usable = index
                break
            text = data[(index + 1) * RECORD.size :][:length]
            number = int(records[index]["name"])
            if records[index]["site"] == DEFINE_NAME:
                self._names[number] = text.decode()
            else:
                self._sites[number] = Site(**json.loads(text))
            keep[index:after] = False
        self._at += usable * RECORD.size
        # A copy, for a view would keep everything that was read.
        return records[:usable][keep[:usable]].copy()
