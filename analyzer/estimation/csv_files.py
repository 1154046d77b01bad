"""Read observations from CSV; the header says which kind they are.

- ``class,response_time,n_CLASS...`` (and ``time``, optional): arrival samples
- ``arrival,departure,class``: every request
- ``utilization,throughput_CLASS...,response_time_CLASS...`` (the last optional): windows

Times are in seconds, throughputs per second, utilization is between 0 and 1.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from analyzer.estimation.methods import Observations
from analyzer.estimation.samples import ArrivalSamples, FloatArray, Trace, Windows, admitted
from mup.errors import UsageError

__all__ = ["FORMATS", "read_csv", "trace_of"]

FORMATS = (
    "the header must be 'class,response_time,n_CLASS...' (and 'time', if known), 'arrival,departure,class', "
    "or 'utilization,throughput_CLASS...,response_time_CLASS...'"
)


class _Table:
    """The cells of a file, by column, with the lines they stand on."""

    def __init__(self, path: Path, header: Sequence[str], rows: Sequence[tuple[int, list[str]]]) -> None:
        self.path = path
        self.header = list(header)
        self.rows = rows

    def texts(self, column: str) -> list[str]:
        """Return a column as it is written, without surrounding blanks."""
        at = self.header.index(column)
        result = [row[at].strip() for _, row in self.rows]
        for (line, _), text in zip(self.rows, result, strict=True):
            if not text:
                raise self.error(line, column, "is empty")
        return result

    def numbers(
        self, column: str, high: float = math.inf, *, missing: bool = False, whole: bool = False
    ) -> FloatArray:
        """Return a column of numbers from 0 (``time`` columns: any) to a limit; empty cells may be NaN."""
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
            if column not in ("time", "arrival", "departure") and not 0 <= result[i] <= high:
                limit = "" if math.isinf(high) else f" and <= {high:g}"
                raise self.error(line, column, f"must be >= 0{limit}, got {text}")
            if whole and result[i] != int(result[i]):
                raise self.error(line, column, f"must be a whole number, got {text}")
        return result

    def error(self, line: int, column: str, message: str) -> UsageError:
        """Return an error about one cell."""
        return UsageError(message, where=f"{self.path}: line {line}, column {column!r}")


def read_csv(path: Path, text: str, threads: float) -> Observations:
    """Return the observations in a CSV file.

    Args:
        path: For messages.
        text: Of the file.
        threads: Of the pool: says when a request that arrived was admitted.

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
    table = _Table(path, header, rows)
    names = set(header)
    if names == {"arrival", "departure", "class"}:
        read: Callable[[_Table, float], Observations] = _requests
    elif {"class", "response_time"} <= names and any(n.startswith("n_") for n in names):
        read = _samples
    elif "utilization" in names and any(n.startswith("throughput_") for n in names):
        read = _windows
    else:
        raise UsageError(f"no columns of this form: {', '.join(header)[:200]}", where=str(path), hint=FORMATS)
    if not rows:
        raise UsageError("has a header and nothing else", where=str(path))
    return read(table, threads)


def _unknown(table: _Table, known: set[str]) -> None:
    if more := [name for name in table.header if name not in known]:
        raise UsageError(f"unknown column {more[0]!r}", where=f"{table.path}: line 1", hint=FORMATS)


def _samples(table: _Table, _threads: float) -> ArrivalSamples:
    classes = tuple(name[2:] for name in table.header if name.startswith("n_"))
    _unknown(table, {"class", "response_time", "time", *(f"n_{name}" for name in classes)})
    kinds = []
    for (line, _), name in zip(table.rows, table.texts("class"), strict=True):
        if name not in classes:
            raise table.error(
                line, "class", f"there is no column 'n_{name}' with what was seen of class {name!r}"
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
    time = table.numbers("time") if "time" in table.header else None
    rates = None
    if time is not None and time.max() > time.min():
        rates = np.bincount(kinds, minlength=len(classes)) / (time.max() - time.min())
    return ArrivalSamples(classes, np.array(kinds), table.numbers("response_time"), seen, rates, time)


def _requests(table: _Table, threads: float) -> Trace:
    arrival, departure = table.numbers("arrival"), table.numbers("departure")
    for (line, _), came, left in zip(table.rows, arrival.tolist(), departure.tolist(), strict=True):
        if left < came:
            raise table.error(
                line, "departure", f"must not be before the arrival, got {left:g} after {came:g}"
            )
    return trace_of(str(table.path), table.texts("class"), arrival, departure, threads)


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
    _unknown(table, {"utilization", *(f"throughput_{name}" for name in classes), *timed})
    throughput = np.column_stack([table.numbers(f"throughput_{name}") for name in classes])
    times = [
        table.numbers(f"response_time_{name}", missing=True)
        if f"response_time_{name}" in table.header
        else np.full(len(table.rows), np.nan)
        for name in classes
    ]
    return Windows(classes, table.numbers("utilization", 1.0), throughput, np.column_stack(times))
