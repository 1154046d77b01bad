"""Visits as events: who was at which station from when to when, from tables and from access logs.

A *visit* begins when a client comes to a station and ends when it leaves; waiting is part of it. A *run* is
one stretch of time that was watched; moments of different runs are not compared. Ids say which visits belong
together: those of a *client*, who is always somewhere, or those of a *trace*, which one request has caused.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from analyzer.access_logs.formats import UNITS, Wanted
from analyzer.access_logs.reading import Source, first_lines, is_access_log, read_requests
from analyzer.estimation.access_logs import check_fractions, window
from analyzer.learning.traces import FloatArray
from mup.errors import UsageError, did_you_mean

__all__ = ["Ids", "VisitTable", "read_visits"]

IntArray = npt.NDArray[np.int64]
Ids = Literal["client", "trace", ""]

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "station": ("station", "service"),
    "start": ("start", "arrival", "begin"),
    "end": ("end", "departure"),
    "duration": ("duration",),
    "client": ("client", "user", "session"),
    "trace": ("trace", "trace_id", "request"),
    "run": ("run",),
}
HINT = (
    "columns: station, start, duration (or end), and client or trace if you have ids; run if there are "
    "several. "
    "--field names others"
)


@dataclass(frozen=True)
class VisitTable:
    """I visits.

    Attributes:
        stations: Their names, M.
        station: Of each visit, by number; shape (I,).
        begin, end: Of each visit, s; the end is ``inf`` if it was still going on. Shape (I,).
        run: Of each visit, from 0; shape (I,).
        windows: Of each run, between which moments all visits that were going on are in the table.
        ids: What ``id`` identifies; "" = there are none.
        id: Of each visit, by number, different in different runs; shape (I,).
        notes: What the reader should know about the data.
    """

    stations: tuple[str, ...]
    station: IntArray
    begin: FloatArray
    end: FloatArray
    run: IntArray
    windows: tuple[tuple[float, float], ...]
    ids: Ids
    id: IntArray
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        count = len(self.station)
        if not count == len(self.begin) == len(self.end) == len(self.run) == len(self.id):
            raise ValueError("columns of visits must be equally long")

    @property
    def inside(self) -> npt.NDArray[np.bool_]:
        """Whether each visit began within the window of its run; shape (I,)."""
        low, high = np.array(self.windows)[self.run].T
        found: npt.NDArray[np.bool_] = (self.begin >= low) & (self.begin <= high)
        return found


def read_visits(paths: Sequence[Path], source: Source) -> VisitTable:
    """Read a table of visits, or access logs.

    Args:
        paths: One table; or access logs. The station of a line is what the format says, else the name of its
            file.
        source: Format, and where roles are found.

    Raises:
        UsageError: A file cannot be read, or is neither; names file, line and column.
    """
    lines = first_lines(paths[0])
    if not lines:
        raise UsageError("is empty", where=str(paths[0]), hint=HINT)
    if source.log_format or is_access_log(lines):
        return _of_logs(paths, source)
    if len(paths) > 1:
        raise UsageError("several files must be access logs", where=str(paths[0]), hint="put tables together")
    return _of_table(paths[0], source.fields)


def _of_logs(paths: Sequence[Path], source: Source) -> VisitTable:
    stations: list[str] = []
    number: dict[str, int] = {}
    known: dict[str, int] = {}
    columns: dict[str, list[np.ndarray]] = {"station": [], "begin": [], "end": [], "id": []}
    windows, notes = [], []
    ids: Ids = ""
    origin: float | None = None
    for path in paths:
        found = read_requests(path, source)
        check_fractions(found)
        origin = found.origin if origin is None else origin
        begin, end = found.begin + (found.origin - origin), found.end + (found.origin - origin)
        named = found.labels.get("station")
        names = (path.name.split(".")[0],) if named is None else named.names
        for name in names:
            if name not in number:
                number[name] = len(stations)
                stations.append(name)
        codes = np.zeros(len(begin), dtype=np.int64) if named is None else named.codes
        columns["station"].append(np.array([number[name] for name in names], dtype=np.int64)[codes])
        columns["begin"].append(begin)
        columns["end"].append(end)
        mine: Ids = "client" if "client" in source.fields else "trace" if "trace" in found.labels else ""
        if mine:
            ids = mine
            label = found.labels[mine]
            place = np.array([known.setdefault(name, len(known)) for name in label.names], dtype=np.int64)
            columns["id"].append(place[label.codes])
        else:
            columns["id"].append(np.zeros(len(begin), dtype=np.int64))
        windows.append(window(begin, end))
        if found.skipped.total:
            notes.append(f"{path}: {found.skipped.total} of {found.lines} lines are left out")
    joined = {name: np.concatenate(parts) for name, parts in columns.items()}
    both = (max(low for low, _ in windows), min(high for _, high in windows))
    return VisitTable(
        tuple(stations),
        joined["station"],
        joined["begin"],
        joined["end"],
        np.zeros(len(joined["station"]), dtype=np.int64),
        (both,),
        ids,
        joined["id"],
        tuple(notes),
    )


class _Columns:
    """What the columns of a table mean."""

    def __init__(self, path: Path, header: Sequence[str], fields: Mapping[str, Wanted]) -> None:
        self.path = path
        self.header = list(header)
        self.fields = fields
        self.found = {role: name for role in COLUMNS if (name := self._name(role)) is not None}
        # The tables of 'mup learn traces' call a group of runs a trace.
        self.grouped = {"trace", "run"} <= set(self.found) and "trace" not in fields
        if "station" not in self.found or "start" not in self.found:
            raise UsageError(f"no columns of visits: {', '.join(header)[:200]}", where=str(path), hint=HINT)
        if not {"end", "duration"} & set(self.found):
            raise UsageError("no column says how long visits took", where=str(path), hint=HINT)

    def _name(self, role: str) -> str | None:
        if role in self.fields:
            name = self.fields[role].name
            if name not in self.header:
                raise UsageError(
                    f"--field {role}={name}: there is no such column; {did_you_mean(name, self.header)}",
                    where=str(self.path),
                )
            return name
        return next((name for name in COLUMNS[role] if name in self.header), None)

    def seconds(self, role: str, row: Sequence[str], line: int) -> float:
        """Return a time in seconds; an empty end or duration is ``inf``."""
        text = row[self.header.index(self.found[role])].strip()
        if not text and role != "start":
            return math.inf
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if math.isnan(value):
            raise UsageError(
                f"must be a number of seconds, got {text!r}",
                where=f"{self.path}: line {line}, column {self.found[role]!r}",
            )
        unit = self.fields[role].unit if role in self.fields else ""
        return value * UNITS[unit or "s"]

    def text(self, role: str, row: Sequence[str]) -> str:
        """Return a cell, "" if there is no such column."""
        return row[self.header.index(self.found[role])].strip() if role in self.found else ""


def _of_table(path: Path, fields: Mapping[str, Wanted]) -> VisitTable:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = list(csv.reader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"cannot be read: {error}", where=str(path)) from error
    columns = _Columns(path, [name.strip() for name in lines[0]], fields)
    ids: Ids = "client" if "client" in columns.found else ""
    if not ids and "trace" in columns.found and not columns.grouped:
        ids = "trace"
    stations: dict[str, int] = {}
    runs: dict[tuple[str, str], int] = {}
    known: dict[tuple[int, str], int] = {}
    rows: list[tuple[int, float, float, int, int]] = []
    for line, row in enumerate(lines[1:], 2):
        if not any(cell.strip() for cell in row):
            continue
        if len(row) != len(columns.header):
            raise UsageError(
                f"has {len(row)} columns, the header {len(columns.header)}", where=f"{path}: line {line}"
            )
        begin = columns.seconds("start", row, line)
        last = columns.seconds("end", row, line) if "end" in columns.found else math.inf
        if "duration" in columns.found:
            last = begin + columns.seconds("duration", row, line)
        if last < begin:
            raise UsageError("a visit must not end before it starts", where=f"{path}: line {line}")
        group = columns.text("trace", row) if columns.grouped else ""
        run = runs.setdefault((group, columns.text("run", row)), len(runs))
        who = known.setdefault((run, columns.text(ids, row)), len(known)) if ids else 0
        station = stations.setdefault(columns.text("station", row), len(stations))
        rows.append((station, begin, last, run, who))
    if not rows:
        raise UsageError("has a header and nothing else", where=str(path))
    station_of, begin_of, end_of, run_of, id_of = (np.array(column) for column in zip(*rows, strict=True))
    return VisitTable(
        tuple(stations),
        station_of,
        begin_of,
        end_of,
        run_of,
        tuple(_window(begin_of[run_of == r], end_of[run_of == r]) for r in range(len(runs))),
        ids,
        id_of,
    )


def _window(begin: FloatArray, end: FloatArray) -> tuple[float, float]:
    """Return what was watched of a run: all of it if visits that had not ended are listed."""
    known = end[np.isfinite(end)]
    if not len(known):
        return float(begin.min()), float(begin.max())
    if len(known) < len(end):
        return float(begin.min()), float(max(known.max(), begin.max()))
    low, high = window(begin, end)
    return max(low, float(begin.min())), min(high, float(end.max()))
