"""Read observations from CSV; the header says which kind they are.

- ``class,response_time,n_CLASS...`` (and ``time``, optional): arrival samples
- ``arrival,departure,class``: every request; also ``start,end`` or ``start,duration``, columns of other
  names (``--field``), dates instead of seconds, and further columns, which are not used
- ``utilization,throughput_CLASS...,response_time_CLASS...`` (the last optional): windows; a column ``time``
  is for the reader of the file

Times are in seconds unless ``--field`` has another unit, throughputs per second; utilization is from 0 to 1.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from analyzer.access_logs.formats import UNITS, Wanted
from analyzer.access_logs.moments import Moments
from analyzer.access_logs.resolution import check_resolution, resolution_of
from analyzer.estimation.methods import Observations
from analyzer.estimation.samples import ArrivalSamples, FloatArray, Trace, Windows, admitted
from mup.errors import UsageError, did_you_mean

__all__ = ["FORMATS", "read_csv", "trace_of"]

LATE = 1e6
"""Moments after this are not counted from the beginning of a run."""

FORMATS = (
    "the header must be 'class,response_time,n_CLASS...' (and 'time', if known), 'arrival,departure,class', "
    "or 'utilization,throughput_CLASS...,response_time_CLASS...'"
)


COLUMNS: Mapping[str, tuple[str, ...]] = {
    "start": ("arrival", "start"),
    "end": ("departure", "end"),
    "duration": ("duration", "response_time"),
    "class": ("class",),
}
"""What columns are called that --field does not name."""


class _Table:
    """The cells of a file, by column, with the lines they stand on."""

    def __init__(
        self,
        path: Path,
        header: Sequence[str],
        rows: Sequence[tuple[int, list[str]]],
        fields: Mapping[str, Wanted],
    ) -> None:
        self.path = path
        self.header = list(header)
        self.rows = rows
        self.fields = fields

    def column(self, role: str) -> str | None:
        """Return the column that has a role, None if there is none.

        Raises:
            UsageError: The user names one that is not there.
        """
        if role in self.fields:
            name = self.fields[role].name
            if name not in self.header:
                raise UsageError(
                    f"--field {role}={name}: there is no such column; {did_you_mean(name, self.header)}",
                    where=str(self.path),
                )
            return name
        return next((name for name in COLUMNS[role] if name in self.header), None)

    def unit(self, role: str) -> float:
        """Return the unit of a role in seconds."""
        return UNITS[self.fields[role].unit] if role in self.fields and self.fields[role].unit else 1.0

    def moments(self, role: str, column: str) -> FloatArray:
        """Return a column of moments in seconds: numbers, or dates."""
        first = self.rows[0][1][self.header.index(column)].strip() if self.rows else ""
        if not first[:4].isdecimal() or first[4:5] != "-":
            return self.numbers(column, signed=True) * self.unit(role)
        found = Moments("iso").seconds(self.texts(column))
        if np.isnan(found).any():
            line = self.rows[int(np.argmax(np.isnan(found)))][0]
            raise self.error(line, column, "must be a date such as 2026-01-31T10:00:00.250Z")
        return found

    def texts(self, column: str) -> list[str]:
        """Return a column as it is written, without surrounding blanks."""
        at = self.header.index(column)
        result = [row[at].strip() for _, row in self.rows]
        for (line, _), text in zip(self.rows, result, strict=True):
            if not text:
                raise self.error(line, column, "is empty")
        return result

    def numbers(
        self,
        column: str,
        high: float = math.inf,
        *,
        missing: bool = False,
        whole: bool = False,
        signed: bool = False,
    ) -> FloatArray:
        """Return a column of numbers from 0 (if not signed) to a limit; empty cells may be NaN."""
        at = self.header.index(column)
        result = np.empty(len(self.rows))
        for i, (line, row) in enumerate(self.rows):
            text = row[at].strip()
            if missing and not text:
                result[i] = math.nan
                continue
            try:
                result[i] = float(text)
            except ValueError:
                raise self.error(line, column, f"must be a number, got {text!r}") from None
            if not math.isfinite(result[i]):
                raise self.error(line, column, f"must be finite, got {text!r}")
            if not signed and not 0 <= result[i] <= high:
                limit = "" if math.isinf(high) else f" and <= {high:g}"
                raise self.error(line, column, f"must be >= 0{limit}, got {text}")
            if whole and result[i] != int(result[i]):
                raise self.error(line, column, f"must be a whole number, got {text}")
        return result

    def error(self, line: int, column: str, message: str) -> UsageError:
        """Return an error about one cell."""
        return UsageError(message, where=f"{self.path}: line {line}, column {column!r}")


def read_csv(
    path: Path, text: str, threads: float, fields: Mapping[str, Wanted] | None = None
) -> Observations:
    """Return the observations in a CSV file.

    Args:
        path: For messages.
        text: Of the file.
        threads: Of the pool: says when a request that arrived was admitted.
        fields: Columns of other names or units.

    Raises:
        UsageError: The header is unknown, or a cell cannot be what it should be.
    """
    lines = csv.reader(text.splitlines())
    header = [name.strip() for name in next(lines, [])]
    rows = []
    for number, row in enumerate(lines, start=2):
        if not row or (len(row) == 1 and not row[0].strip()):
            continue
        if len(row) != len(header):
            raise UsageError(
                f"has {len(row)} columns, the header {len(header)}", where=f"{path}: line {number}"
            )
        rows.append((number, row))
    if len(set(header)) != len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise UsageError(f"column {twice!r} comes twice", where=f"{path}: line 1")
    table = _Table(path, header, rows, fields or {})
    names = set(header)
    if _tells_requests(table):
        read: Callable[[_Table, float], Observations] = _requests
    elif table.column("class") and table.column("duration") and any(n.startswith("n_") for n in names):
        read = _samples
    elif "utilization" in names and any(n.startswith("throughput_") for n in names):
        read = _windows
    else:
        raise UsageError(f"no columns of this form: {', '.join(header)[:200]}", where=str(path), hint=FORMATS)
    if not rows:
        raise UsageError("has a header and nothing else", where=str(path))
    return read(table, threads)


def _tells_requests(table: _Table) -> bool:
    """Return whether there is a class, and two of start, end and duration, of every request."""
    known = [role for role in ("start", "end", "duration") if table.column(role)]
    return bool(len(known) > 1 and table.column("class"))


def _unknown(table: _Table, known: set[str]) -> None:
    if more := [name for name in table.header if name not in known]:
        raise UsageError(f"unknown column {more[0]!r}", where=f"{table.path}: line 1", hint=FORMATS)


def _samples(table: _Table, _threads: float) -> ArrivalSamples:
    classes = tuple(name[2:] for name in table.header if name.startswith("n_"))
    kind_column, time_column = table.column("class") or "", table.column("duration") or ""
    _unknown(table, {kind_column, time_column, "time", *(f"n_{name}" for name in classes)})
    kinds = []
    for (line, _), name in zip(table.rows, table.texts(kind_column), strict=True):
        if name not in classes:
            raise table.error(
                line, kind_column, f"there is no column 'n_{name}' with what was seen of class {name!r}"
            )
        kinds.append(classes.index(name))
    seen = np.column_stack([table.numbers(f"n_{name}", whole=True) for name in classes]).astype(np.int64)
    for i, (line, _) in enumerate(table.rows):
        if seen[i, kinds[i]] < 1:
            raise table.error(
                line,
                f"n_{classes[kinds[i]]}",
                "must be >= 1: the request itself counts as seen (if yours does not, add 1 to its own class)",
            )
    time = table.numbers("time", signed=True) if "time" in table.header else None
    rates = None
    if time is not None and time.max() > time.min():
        rates = np.bincount(kinds, minlength=len(classes)) / (time.max() - time.min())
    response_time = table.numbers(time_column) * table.unit("duration")
    return ArrivalSamples(classes, np.array(kinds), response_time, seen, rates, time)


def _requests(table: _Table, threads: float) -> Trace:
    columns = {role: table.column(role) for role in ("start", "end", "duration")}
    start, end, duration = columns["start"], columns["end"], columns["duration"]
    took = None if duration is None else table.numbers(duration) * table.unit("duration")
    arrival = None if start is None else table.moments("start", start)
    departure = None if end is None else table.moments("end", end)
    if took is not None and departure is None and arrival is not None:
        departure = arrival + took
    elif took is not None and arrival is None and departure is not None:
        arrival = departure - took
    if arrival is None or departure is None:
        raise UsageError("has no moments", where=str(table.path), hint=FORMATS)
    for (line, _), came, left in zip(table.rows, arrival.tolist(), departure.tolist(), strict=True):
        if left < came:
            raise table.error(line, end or "", f"must not be before the arrival, got {left:g} after {came:g}")
    begin = float(np.floor(arrival.min()))
    # Seconds since 1970 leave few digits behind the point.
    if begin > LATE:
        arrival, departure = arrival - begin, departure - begin
    check_resolution(resolution_of(departure - arrival), str(table.path))
    kind = table.column("class") or ""
    trace = trace_of(str(table.path), table.texts(kind), arrival, departure, threads)
    unused = [name for name in table.header if name not in (*columns.values(), kind)]
    return trace.with_notes([f"columns that are not used: {', '.join(unused)}"] if unused else [])


def trace_of(
    where: str, names: Sequence[str], arrival: FloatArray, departure: FloatArray, threads: float
) -> Trace:
    """Return the trace of requests that arrived in front of a pool of threads, first come first served.

    Raises:
        UsageError: They cannot have been served by so few threads.
    """
    classes = tuple(sorted(set(names)))
    order = np.argsort(arrival, kind="stable")
    arrival, departure = arrival[order], departure[order]
    number = {name: r for r, name in enumerate(classes)}
    kind = np.array([number[name] for name in names], dtype=np.int64)[order]
    try:
        start = admitted(arrival, departure, threads)
    except ValueError as error:
        raise UsageError(
            str(error), where=where, hint="give the --pool the station really has, or leave it out"
        ) from error
    return Trace(classes, kind, np.arange(len(kind)), start, departure)


def _windows(table: _Table, _threads: float) -> Windows:
    classes = tuple(name[11:] for name in table.header if name.startswith("throughput_"))
    timed = {f"response_time_{name}" for name in classes}
    _unknown(table, {"time", "utilization", *(f"throughput_{name}" for name in classes), *timed})
    throughput = np.column_stack([table.numbers(f"throughput_{name}") for name in classes])
    times = [
        table.numbers(f"response_time_{name}", missing=True)
        if f"response_time_{name}" in table.header
        else np.full(len(table.rows), np.nan)
        for name in classes
    ]
    return Windows(classes, table.numbers("utilization", 1.0), throughput, np.column_stack(times))
