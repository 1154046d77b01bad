"""Read the logs of a run while it is still going on, each time what is new.

Every record is read once: a run of any length costs a time proportional to its length. Services write
their buffers when they are full and about once a second, so the newest second may be missing until the
next look; an execution whose end has not been seen is kept until it has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import numpy.typing as npt

from analyzer.calibration.executions import Execution, collect
from mup.errors import LogError
from mup.events.reader import DTYPE, Log, RecordDecoder, log_files, read_header
from mup.events.record import Event

__all__ = ["RunningLogs"]

AFTERMATH = 200_000_000
"""Nanoseconds in which tasks of an event loop end that their endpoint has left behind; what takes longer
counts as it was by then, until `mup model` reads the whole log."""


class RunningLogs:
    """The logs of workers and clients in a folder, growing. Fronts tell nothing about paths."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._logs: dict[Path, _RunningLog] = {}

    def executions(self) -> Iterator[Execution]:
        """Yield the executions whose last record has appeared since the last look."""
        # A worker that is replaced opens a new file, so the folder is looked at each time.
        for paths in log_files(self._folder):
            first = paths[0]
            if first not in self._logs:
                with suppress(LogError):  # its header is still on its way
                    self._logs[first] = _RunningLog(first)
            if first in self._logs and not self._logs[first].of_front:
                yield from self._logs[first].executions(paths)


class _RunningLog:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._header, self._at = read_header(path)
        self._segment = 0
        self._decoder = RecordDecoder(path)
        self._open = np.empty(0, DTYPE)

    @property
    def of_front(self) -> bool:
        return self._header.get("role") == "front"

    def executions(self, segments: Sequence[Path]) -> list[Execution]:
        records = np.concatenate([self._open, *self._new_records(segments)])
        done = records["request"][records["event"] == Event.DONE]
        begun = records["request"][records["event"] == Event.BEGIN]
        if self._header.get("runtime") == "async" and len(records):
            # A task may go on when its endpoint has ended: it gets a moment to do so.
            ended = records[records["event"] == Event.DONE]
            done = ended["request"][ended["time"] <= records["time"].max() - AFTERMATH]
        # What follows an end (a query that is not waited for) or has lost its begin will never be complete.
        self._open = records[np.isin(records["request"], np.setdiff1d(begun, done))]
        complete = records[np.isin(records["request"], np.intersect1d(begun, done))]
        names, sites = self._decoder.names, self._decoder.sites
        return collect([Log(self._header, names, sites, complete, truncated=False, path=self._path)])

    def _new_records(self, segments: Sequence[Path]) -> Iterator[npt.NDArray[np.void]]:
        """Yield the records that are wholly on disk; remember these."""
        while True:
            with segments[self._segment].open("rb") as file:
                file.seek(self._at)
                data = file.read()
            records, used = self._decoder.decode(data, self._at)
            self._at += used
            # A copy, for a view would keep everything that was read.
            yield records.copy()
            if self._segment + 1 == len(segments):
                return
            try:
                start = read_header(segments[self._segment + 1])[1]
            except LogError:  # its header is still on its way
                return
            self._segment += 1
            self._at = start
