"""Read observations of a station from a file of any format, with classes put together."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from analyzer.access_logs.reading import Source, first_lines, is_access_log, read_requests
from analyzer.estimation.access_logs import trace_of_requests
from analyzer.estimation.csv_files import FORMATS, read_csv
from analyzer.estimation.methods import Observations
from analyzer.estimation.samples import Trace, Windows
from mup.errors import UsageError
from mup.events.record import MAGIC

__all__ = ["grouped", "read_observations"]

SHOWN = 20
"""Classes that a message lists."""


def read_observations(
    path: str | Path,
    *,
    threads: float,
    services: Sequence[str] = (),
    source: Source | None = None,
) -> Observations:
    """Read event logs (a file or a folder), an access log, or CSV; classes are put together as asked.

    Args:
        path: What to read.
        threads: Of the pool: says when a request that arrived was admitted.
        services: Of event logs, those that count; empty = all.
        source: Format, fields and groups of classes.

    Raises:
        UsageError: It cannot be read, or is not what it should be; names line and column.
        LogError: An event log cannot be used.
    """
    file = Path(path)
    chosen = source or Source()
    if file.is_dir() or _is_event_log(file):
        from analyzer.estimation.event_logs import read_event_logs  # noqa: PLC0415  (most data is no event log)

        if chosen.log_format or chosen.fields:
            raise UsageError("--log-format and --field are for other files than event logs", where=str(path))
        return grouped(read_event_logs(file, services), chosen.groups)
    if services:
        raise UsageError("--service chooses from event logs, and this is none", where=str(path))
    lines = first_lines(file)
    if not lines:
        raise UsageError("is empty", where=str(path), hint=FORMATS)
    if chosen.log_format or is_access_log(lines):
        trace = trace_of_requests(read_requests(file, chosen), threads)
        for group, pattern in chosen.groups.items():
            if group not in trace.classes:
                raise _fits_none(pattern, trace.classes)
        return trace
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError("not UTF-8 text", where=str(path), hint=FORMATS) from error
    except OSError as error:
        raise UsageError(f"cannot read it: {error.strerror}", where=str(path)) from error
    return grouped(read_csv(file, text, threads, chosen.fields), chosen.groups)


def _is_event_log(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError as error:
        raise UsageError(f"cannot read it: {error.strerror}", where=str(path)) from error


def grouped(data: Observations, groups: Mapping[str, str]) -> Observations:
    """Return observations with classes put together.

    Args:
        data: The observations.
        groups: Name of a new class -> regular expression found in the names of its members. The first that
            fits counts; a class that none fits stays what it is.

    Raises:
        UsageError: An expression is none, or fits no class, or the data are windows, which cannot be put
            together.
    """
    if not groups:
        return data
    if isinstance(data, Windows):
        raise UsageError("--group does not fit windows: sum up throughputs where they are measured")
    new = [_group(name, groups) for name in data.classes]
    for group in groups:
        if group not in new:
            raise _fits_none(groups[group], data.classes)
    classes = tuple(sorted(set(new)))
    number = np.array([classes.index(name) for name in new], dtype=np.int64)
    kind = number[data.kind]
    if isinstance(data, Trace):
        return replace(data, classes=classes, kind=kind)
    merge = np.eye(len(classes), dtype=np.int64)[number]
    rates = None if data.rates is None else data.rates @ merge
    return replace(data, classes=classes, kind=kind, seen=data.seen @ merge, rates=rates)


def _fits_none(pattern: str, classes: Sequence[str]) -> UsageError:
    return UsageError(
        f"--group: {pattern!r} fits none of the classes left",
        hint=f"classes: {', '.join(classes[:SHOWN])}{', ...' if len(classes) > SHOWN else ''}",
    )


def _group(name: str, groups: Mapping[str, str]) -> str:
    for group, pattern in groups.items():
        try:
            if re.search(pattern, name):
                return group
        except re.error as error:
            raise UsageError(f"--group: {pattern!r} is no regular expression: {error}") from error
    return name
