"""Traces in files: NPZ (arrays) and CSV (one line per sample).

NPZ: ``x`` (R, H, M), ``dt``, ``names`` (M,); optional ``servers`` (M,), ``busy`` (R, H, M), ``runs`` (one
number, or (R,)), and ``start`` (R, K) with ``start_names`` (K,).
CSV: columns ``trace``, ``time`` and one per station; optional ``busy:STATION``, and ``start:COLUMN``, of
which the line of time 0 counts. A line ``servers,,30,25,inf`` anywhere gives the servers of the stations, a
line ``runs,200`` how many executions a trace is the mean of.
"""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from analyzer.learning.traces import FloatArray, Start, Traces
from mup.errors import UsageError

__all__ = ["read_traces", "write_traces"]

REQUIRED = ("x", "dt", "names")
TEXTS = ("names", "start_names")
KNOWN = (*REQUIRED, "servers", "busy", "runs", "start", "start_names")
LINES = ("servers", "runs")
"""Lines of a table that are no samples; they may be shorter."""
BUSY, START = "busy:", "start:"
UNEVEN = 1e-6
"""Steps of time may differ by this part of them: decimal numbers in a file are rounded."""


def read_traces(path: str | Path, *, servers: Sequence[float] | None = None) -> Traces:
    """Read a file of traces; its name ends in ``.npz`` or ``.csv``.

    Args:
        path: The file.
        servers: Replace those of the file.

    Raises:
        UsageError: The file cannot be read, or what is in it breaks a rule; the message names the file.
    """
    file = Path(path)
    readers = {".npz": _from_npz, ".csv": _from_csv}
    if file.suffix not in readers:
        raise UsageError(
            "cannot tell what kind of traces this is", where=str(path), hint="name a file in .npz or .csv"
        )
    try:
        traces = readers[file.suffix](file)
        if servers is not None:
            traces = replace(traces, servers=np.asarray(servers, dtype=float))
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror or error}", where=str(path)) from error
    except UsageError as error:
        raise UsageError(error.message, where=str(path), hint=error.hint) from error
    return traces


def write_traces(path: str | Path, traces: Traces) -> None:
    """Write traces as NPZ; the file is there whole or not at all.

    Raises:
        UsageError: It cannot be written.
    """
    arrays: dict[str, Any] = {"x": traces.x, "dt": traces.dt, "names": np.array(traces.names)}
    if traces.servers is not None:
        arrays["servers"] = traces.servers
    if traces.busy is not None:
        arrays["busy"] = traces.busy
    if traces.runs is not None:
        arrays["runs"] = traces.runs
    if traces.start is not None:
        arrays["start"], arrays["start_names"] = traces.start.x, np.array(traces.start.names)
    target = Path(path)
    # Under another name first, so that a crash leaves the old file or the new one, never half of one.
    unfinished = target.with_name(f".{target.name}.tmp")
    try:
        with unfinished.open("wb") as file:
            np.savez_compressed(file, **arrays)
        unfinished.replace(target)
    except OSError as error:
        raise UsageError(f"cannot write the traces: {error.strerror}", where=str(path)) from error
    finally:
        unfinished.unlink(missing_ok=True)


def _from_npz(file: Path) -> Traces:
    try:
        with np.load(file, allow_pickle=False) as archive:
            found: dict[str, Any] = {name: archive[name] for name in archive.files if name in KNOWN}
    except (ValueError, zipfile.BadZipFile, EOFError) as error:
        raise UsageError(f"is not a file of numpy arrays (.npz): {error}") from error
    return _from_arrays(found)


def _from_arrays(found: Mapping[str, Any]) -> Traces:
    missing = [name for name in REQUIRED if name not in found]
    if missing:
        raise UsageError(
            f"has no {' and no '.join(missing)}",
            hint="x: mean queue lengths (traces, samples, stations); dt: seconds; names: of the stations",
        )
    numbers = {name: _numbers(name, found[name]) for name in KNOWN if name in found and name not in TEXTS}
    if ("start" in found) != ("start_names" in found):
        raise UsageError("start and start_names belong together, and one of them is missing")
    if numbers["dt"].size != 1:
        raise UsageError(f"dt: must be one number of seconds, got the shape {numbers['dt'].shape}")
    return Traces(
        x=numbers["x"],
        dt=float(numbers["dt"].reshape(-1)[0]),
        names=tuple(str(n) for n in np.atleast_1d(found["names"]).tolist()),
        servers=numbers.get("servers"),
        busy=numbers.get("busy"),
        runs=numbers.get("runs"),
        start=Start(
            names=tuple(str(n) for n in np.atleast_1d(found["start_names"]).tolist()), x=numbers["start"]
        )
        if "start" in numbers
        else None,
    )


def _numbers(name: str, values: Any) -> FloatArray:
    array = np.asarray(values)
    if array.dtype.kind not in "fiu":
        raise UsageError(f"{name}: must be numbers, got an array of {array.dtype}")
    return array.astype(np.float64)


def _from_csv(file: Path) -> Traces:
    try:
        lines = list(csv.reader(file.read_text("utf-8").splitlines()))
    except (UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"is not a table of text (.csv): {error}") from error
    if not lines:
        raise UsageError("is empty")
    head = [cell.strip() for cell in lines[0]]
    if head[:2] != ["trace", "time"] or len(head) < 3:
        raise UsageError(
            f"line 1: the columns must be trace, time, and one per station, got {', '.join(head)}"
        )
    names = [c for c in head[2:] if not c.startswith((BUSY, START))]
    begin = [c.removeprefix(START) for c in head[2:] if c.startswith(START)]
    busy = [c.removeprefix(BUSY) for c in head[2:] if c.startswith(BUSY)]
    if busy and sorted(busy) != sorted(names):
        raise UsageError(f"line 1: needs a column {BUSY}STATION for every station or for none")
    rows: dict[str, list[tuple[float, list[float]]]] = {}
    servers: FloatArray | None = None
    runs: FloatArray | None = None
    for number, cells in enumerate(lines[1:], 2):
        if not cells:
            continue
        if len(cells) > len(head) or (len(cells) < len(head) and cells[0].strip() not in LINES):
            raise UsageError(f"line {number}: {len(cells)} cells, but {len(head)} columns")
        if cells[0].strip() == "servers":
            columns = [head.index(n) for n in names if head.index(n) < len(cells)]
            servers = np.array([_number(cells[c], number, head[c]) for c in columns])
            continue
        if cells[0].strip() == "runs":
            if len(cells) < 2:
                raise UsageError(f"line {number}: how many runs every trace is the mean of is missing")
            runs = np.array(_number(cells[1], number, head[1]))
            continue
        values = [_number(c, number, h) for c, h in zip(cells[1:], head[1:], strict=True)]
        rows.setdefault(cells[0].strip(), []).append((values[0], values[1:]))
    x, dt = _stacked(rows)
    queue = [head.index(n) - 2 for n in names]
    integrals = [head.index(BUSY + n) - 2 for n in names] if busy else None
    return Traces(
        x=x[:, :, queue],
        dt=dt,
        names=tuple(names),
        servers=servers,
        busy=None if integrals is None else x[:, :, integrals],
        runs=runs,
        start=Start(names=tuple(begin), x=x[:, 0, [head.index(START + n) - 2 for n in begin]])
        if begin
        else None,
    )


def _number(text: str, line: int, column: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"line {line}, column {column}: must be a number, got {text!r}") from None


def _stacked(rows: Mapping[str, Sequence[tuple[float, list[float]]]]) -> tuple[FloatArray, float]:
    """Return the values as (traces, samples, columns), and the step of time."""
    if not rows:
        raise UsageError("has no lines below the first")
    lengths = {name: len(samples) for name, samples in rows.items()}
    first = next(iter(rows))
    for name, length in lengths.items():
        if length != lengths[first]:
            raise UsageError(f"trace {name!r} has {length} samples, trace {first!r} has {lengths[first]}")
    if lengths[first] < 2:
        raise UsageError(f"trace {first!r} has 1 sample; a trace needs at least 2")
    begin, second = (rows[first][i][0] for i in (0, 1))
    dt = second - begin
    for name, samples in rows.items():
        times = np.array([t for t, _ in samples])
        expected = begin + dt * np.arange(len(times))
        if begin != 0 or not dt > 0 or np.abs(times - expected).max() > UNEVEN * len(times) * dt:
            raise UsageError(
                f"trace {name!r}: times must begin at 0 and ascend in equal steps, the same in all traces"
            )
    return np.array([[values for _, values in samples] for samples in rows.values()]), dt
