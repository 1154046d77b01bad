"""Files of times: recorded think times and traces of arrivals, in seconds.

Either a JSON list of numbers, or text with one time per line: the first column of a CSV file. A first line
that is no number is a heading; empty lines and lines that begin with ``#`` are left out.
"""

from __future__ import annotations

import itertools
import math
from pathlib import Path

from mup.errors import UsageError
from mup.json_text import parse_json

__all__ = ["read_times", "read_trace"]


def read_times(path: str | Path) -> tuple[float, ...]:
    """Return the times of a file, in its order, in seconds.

    Raises:
        UsageError: The file cannot be read, holds no time, or something that is no time >= 0.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(f"cannot read times: {reason}", where=str(path)) from error
    times = _from_json(text, path) if text.lstrip().startswith("[") else _from_lines(text, path)
    if not times:
        raise UsageError("there is no time in this file", where=str(path), hint="one per line, in seconds")
    return tuple(times)


def read_trace(path: str | Path) -> tuple[float, ...]:
    """Return the arrival times of a trace in seconds since its first arrival.

    Raises:
        UsageError: As `read_times`; or times go backwards.
    """
    times = read_times(path)
    for number, (before, after) in enumerate(itertools.pairwise(times), start=2):
        if after < before:
            raise UsageError(
                f"arrival {number} at {after!r} is before the one above it at {before!r}",
                where=str(path),
                hint="sort the trace by time",
            )
    return tuple(time - times[0] for time in times)


def _from_json(text: str, path: str | Path) -> list[float]:
    try:
        values = parse_json(text)
    except ValueError as error:
        raise UsageError(f"not a JSON list: {error}", where=str(path)) from error
    for number, value in enumerate(values, start=1):
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
            raise UsageError(f"a time must be a number >= 0, got {value!r}", where=f"{path} item {number}")
    return [float(value) for value in values]


def _from_lines(text: str, path: str | Path) -> list[float]:
    times: list[float] = []
    heading = True
    for number, line in enumerate(text.splitlines(), start=1):
        field = line.replace(";", ",").replace("\t", ",").partition(",")[0].strip().strip('"')
        if not line.strip() or field.startswith("#"):
            continue
        try:
            value = float(field)
        except ValueError:
            if heading:
                heading = False
                continue
            value = math.nan
        heading = False
        if not 0 <= value < math.inf:
            raise UsageError(f"a time must be a number >= 0, got {field!r}", where=f"{path} line {number}")
        times.append(value)
    return times
