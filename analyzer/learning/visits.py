"""From visits of clients to stations, as logs tell them, to traces of queue lengths.

A visit is a client at a station from a start to an end, waiting included: a line of an access log with start
and duration, or a request in an event log of mup from its arrival until the worker is done. A *run* is one
execution from a known state; runs of the same trace began in the same state, and their mean is the trace.

Clients that are at no station of which there is a log are somewhere all the same: at the station of the
*rest* (those that think). For that their number has to be known, and a client must be at one station at a
time: where services call each other, a client whose request waits at the caller is at the callee, too.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from analyzer.learning.traces import FloatArray, Traces
from mup.errors import LogError, UsageError
from mup.events.reader import log_files, read_log
from mup.events.record import Event
from mup.lqn.refs import service_of

__all__ = ["Run", "queue_lengths", "read_runs", "traces_of_runs"]

VISITS = ("trace", "run", "station", "start", "duration")
RUNS = ("trace", "folder")
CLIENTS = "clients"
BEGIN = "begin"
Visits = list[tuple[float, float]]
Calls = frozenset[tuple[str, str]]
"""Stations whose requests made others at other stations: (caller, callee)."""

WITHOUT_REST = (
    "leave --rest out and learn with 'mup learn lqn': columns may overlap there, and the model knows the"
    " clients; --leave-out drops a station that only passes requests on"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One execution.

    Attributes:
        trace: Which runs began in the same state.
        clients: How many there are; None if unknown.
        visits: Per station, start and end of every visit in seconds from the beginning of the run; a client
            who was there at the beginning came at 0 or before, one who is there at the end leaves at ``inf``.
        calls: Which stations were seen to call which; access logs do not tell.
    """

    trace: str
    clients: int | None
    visits: Mapping[str, Visits]
    calls: Calls = frozenset()

    def without(self, stations: Iterable[str]) -> Run:
        """Return the run as if these stations had not been watched."""
        dropped = set(stations)
        return replace(
            self,
            visits={name: found for name, found in self.visits.items() if name not in dropped},
            calls=frozenset(pair for pair in self.calls if not dropped.intersection(pair)),
        )


def queue_lengths(
    visits: Iterable[tuple[float, float]], moments: FloatArray, servers: float
) -> tuple[FloatArray, FloatArray]:
    """Return the clients at a station, and the integral of its busy servers.

    Args:
        visits: Start and end of each, seconds.
        moments: Ascending, the first is 0; shape (H,).
        servers: How many clients are served at once.

    Returns:
        Both of shape (H,); a client who comes at a moment is there, one who leaves is not.
    """
    given = list(visits)
    starts = np.sort([s for s, _ in given])
    ends = np.sort([e for _, e in given])
    present = np.searchsorted(starts, moments, side="right") - np.searchsorted(ends, moments, side="right")
    inner = np.concatenate((starts, ends))
    times = np.unique(np.concatenate((moments, inner[(inner > 0) & (inner < moments[-1])])))
    level = np.searchsorted(starts, times, side="right") - np.searchsorted(ends, times, side="right")
    # Between two changes the level stays, so the integral is linear there.
    area = np.concatenate(([0.0], np.cumsum(np.minimum(level[:-1], servers) * np.diff(times))))
    return present.astype(float), np.interp(moments, times, area)


def traces_of_runs(
    runs: Sequence[Run],
    *,
    dt: float,
    seconds: float,
    servers: Mapping[str, float] | None,
    rest: str | None = None,
) -> Traces:
    """Return the mean queue lengths of runs, with busy times.

    Args:
        runs: At least one.
        dt: Seconds between samples.
        seconds: Length of a trace.
        servers: Per station; all stations are named here, and none else. None = the stations are those that
            were visited, and how many clients they serve at once is for a model to know: no busy times.
        rest: Station of the clients that are nowhere else; None if visits of all stations are known.

    Raises:
        UsageError: A station is not named, the clients of a run are not known but needed, or stations call
            each other and so do not tell who is at the rest.
    """
    if not (0 < dt <= seconds < math.inf):
        raise UsageError(f"dt and the length of a trace must be seconds > 0, got {dt!r} and {seconds!r}")
    visited = {name for run in runs for name in run.visits}
    calls = sorted(pair for run in runs for pair in run.calls)
    if rest is not None and calls:
        caller, callee = calls[0]
        raise UsageError(
            f"{caller} calls {callee}: a client whose request waits there for its answer is counted at both,"
            f" so how many are at the rest, {rest!r}, cannot be told",
            hint=WITHOUT_REST,
        )
    if servers is None:
        many = dict.fromkeys(sorted(visited | ({rest} if rest is not None else set())), math.inf)
    else:
        many = dict(servers)
    names = tuple(many)
    unknown = sorted(visited - set(names))
    if unknown:
        raise UsageError(
            f"no servers given for {', '.join(unknown)}", hint=f"for example --servers {unknown[0]}=4"
        )
    if rest is not None and rest not in names:
        raise UsageError(f"no servers given for the rest, {rest!r}", hint=f"for example --servers {rest}=inf")
    moments = np.arange(round(seconds / dt) + 1, dtype=np.float64) * dt
    groups: dict[str, list[tuple[FloatArray, FloatArray]]] = {}
    for run in runs:
        groups.setdefault(run.trace, []).append(_observed(run, moments, many, rest))
    means = [np.mean(group, axis=0) for group in groups.values()]
    return Traces(
        x=np.array([x for x, _ in means]),
        dt=dt,
        names=names,
        servers=None if servers is None else np.array(list(servers.values()), dtype=float),
        busy=None if servers is None else np.array([busy for _, busy in means]),
        runs=np.array([len(group) for group in groups.values()], dtype=float),
    )


def _observed(
    run: Run, moments: FloatArray, servers: Mapping[str, float], rest: str | None
) -> tuple[FloatArray, FloatArray]:
    """Return queue lengths and busy times of one run; each of shape (H, M)."""
    visits = {name: list(run.visits.get(name, ())) for name in servers}
    if rest is not None:
        if run.clients is None:
            raise UsageError(
                f"how many clients trace {run.trace!r} has is not known, so how many are at {rest!r} is not"
                " either",
                hint=f"add a column '{CLIENTS}'",
            )
        visits[rest] = _elsewhere(visits, run, rest)
    both = [queue_lengths(visits[name], moments, count) for name, count in servers.items()]
    return np.array([x for x, _ in both]).T, np.array([busy for _, busy in both]).T


def _elsewhere(visits: Mapping[str, Visits], run: Run, rest: str) -> Visits:
    """Return visits to the station of the rest; who begins which does not matter.

    Raises:
        UsageError: More clients are seen at once than there are.
    """
    changes = sorted(
        [(max(s, 0.0), 1) for name, v in visits.items() if name != rest for s, _ in v]
        + [(e, -1) for name, v in visits.items() if name != rest for _, e in v if e < math.inf]
    )
    free = [0.0] * (run.clients or 0)
    found: Visits = []
    for time, change in changes:
        if change < 0:
            free.append(time)
        elif free:
            found.append((free.pop(0), time))
        else:
            raise UsageError(
                f"trace {run.trace!r}: more than its {run.clients} clients are seen at {time:g} s; is the"
                f" column '{CLIENTS}' too small, or do stations call each other, so that one client is at"
                " several?",
                hint=f"in the second case {WITHOUT_REST}",
            )
    return found + [(time, math.inf) for time in free]


def read_runs(path: str | Path, *, by_entry: bool = False) -> list[Run]:
    """Read a table of runs.

    Either ``trace, run, station, start, duration``, a line per visit, seconds from the beginning of the run
    (no duration: still there at the end), or ``trace, folder``, a line per run with the folder of its event
    logs, relative to the table. Both may have a column ``clients``. Where several runs are in the same logs,
    one after another, ``begin`` tells when each began, in seconds of the logs' (monotonic) clock.

    Args:
        path: Of the table.
        by_entry: What event logs tell are visits to endpoints (``A/path/``), not to services.

    Raises:
        UsageError: It cannot be read; the message names file and line.
        LogError: An event log cannot be read.
    """
    file = Path(path)
    try:
        with file.open(encoding="utf-8", newline="") as stream:
            reader = csv.DictReader(stream, restkey="", restval="")
            rows = list(reader)
            columns = set(reader.fieldnames or ())
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"cannot be read: {error}", where=str(path)) from error
    if not columns >= set(VISITS) and not columns >= set(RUNS):
        raise UsageError(
            f"must have the columns {', '.join(VISITS)}, or {', '.join(RUNS)};"
            f" got {', '.join(sorted(columns))}",
            where=str(path),
        )
    if not rows:
        raise UsageError("has no lines below the first", where=str(path))
    if columns >= set(VISITS):
        return _runs_of_visits(file, rows)
    return _runs_of_logs(file, rows, by_entry=by_entry)


def _runs_of_logs(file: Path, rows: Sequence[Mapping[str, str]], *, by_entry: bool) -> list[Run]:
    begins = [
        _seconds(row, BEGIN, file, line) if row.get(BEGIN) else None for line, row in enumerate(rows, 2)
    ]
    logs: dict[str, LoggedVisits] = {}
    runs = []
    for line, (row, begin) in enumerate(zip(rows, begins, strict=True), 2):
        folder = row["folder"]
        if folder not in logs:
            logs[folder] = visits_and_calls(file.parent / folder, by_entry=by_entry)
        logged = logs[folder]
        visits: Mapping[str, Visits] = logged.visits
        if begin is not None:
            others = zip(rows, begins, strict=True)
            later = [b for r, b in others if r["folder"] == folder and b is not None and b > begin]
            end = min(later, default=math.inf)
            visits = _between(visits, begin - logged.began, end - logged.began)
        clients = _clients(row, file, line)
        runs.append(Run(trace=row["trace"], clients=clients, visits=visits, calls=logged.calls))
    return runs


def _between(visits: Mapping[str, Visits], begin: float, end: float) -> dict[str, Visits]:
    """Return the visits of one of several runs, in seconds from its beginning."""
    return {
        station: [(s - begin, e - begin) for s, e in found if e > begin and s < end]
        for station, found in visits.items()
    }


def _runs_of_visits(file: Path, rows: Sequence[Mapping[str, str]]) -> list[Run]:
    visits: dict[tuple[str, str], dict[str, Visits]] = {}
    clients: dict[tuple[str, str], int | None] = {}
    for line, row in enumerate(rows, 2):
        key = (row["trace"], row["run"])
        start = _seconds(row, "start", file, line)
        duration = math.inf if not row["duration"].strip() else _seconds(row, "duration", file, line)
        if duration < 0:
            raise UsageError(
                f"must not be negative, got {duration:g}", where=f"{file}, line {line}, duration"
            )
        visits.setdefault(key, {}).setdefault(row["station"], []).append((start, start + duration))
        clients[key] = _clients(row, file, line)
    return [Run(trace=key[0], clients=clients[key], visits=found) for key, found in visits.items()]


def _seconds(row: Mapping[str, str], column: str, file: Path, line: int) -> float:
    try:
        return float(row[column])
    except ValueError:
        raise UsageError(
            f"must be a number of seconds, got {row[column]!r}", where=f"{file}, line {line}, {column}"
        ) from None


def _clients(row: Mapping[str, str], file: Path, line: int) -> int | None:
    text = row.get(CLIENTS, "").strip()
    if text and not text.isdecimal():
        raise UsageError(f"must be a whole number, got {text!r}", where=f"{file}, line {line}, {CLIENTS}")
    return int(text) if text else None


@dataclass(frozen=True, slots=True)
class LoggedVisits:
    """What the event logs of a folder tell.

    Attributes:
        began: When the first event was, seconds of the logs' clock.
        visits: Per station, start and end of each in seconds from the first event.
        calls: Which stations called which; only those that were visited.
    """

    began: float
    visits: Mapping[str, Visits]
    calls: Calls


def visits_of_logs(folder: Path, *, by_entry: bool = False) -> tuple[float, Mapping[str, Visits]]:
    """Return when the first event was, and the visits; arguments and errors of ``visits_and_calls``."""
    logged = visits_and_calls(folder, by_entry=by_entry)
    return logged.began, logged.visits


def visits_and_calls(folder: Path, *, by_entry: bool = False) -> LoggedVisits:
    """Return the visits that event logs tell of.

    A visit is from the arrival of a request until its worker is free, or it leaves the queue without one.

    Args:
        folder: Of the logs.
        by_entry: Visits to endpoints, not to services.

    Raises:
        LogError: There is no log, or one is damaged.
    """
    logs = [read_log(segments) for segments in log_files(folder)] if folder.is_dir() else []
    if not any(len(log.records) for log in logs):
        raise LogError("has no event logs (*.mlog)", where=str(folder))
    began = min(int(log.records["time"].min()) for log in logs if len(log.records))
    arrived: dict[int, float] = {}
    done: dict[int, float] = {}
    station: dict[int, str] = {}
    calls: set[tuple[int, str]] = set()
    for log in logs:
        if log.header["role"] == "client":
            continue
        service = str(log.header["service"])
        times = (log.records["time"] - began) / 1e9
        for event, times_of in ((Event.ARRIVE, arrived), (Event.DONE, done), (Event.LEFT, done)):
            chosen = log.records["event"] == event
            requests = log.records["request"][chosen].tolist()
            times_of.update(zip(requests, times[chosen].tolist(), strict=True))
            for request, name in zip(requests, log.records["name"][chosen].tolist(), strict=True):
                station[request] = log.names.get(name, service) if by_entry else service
        # The name of a call is that of what is called: SERVICE/path/, as the callee's own records have it.
        chosen = log.records["event"] == Event.COMM_START
        callees = {n: text if by_entry else service_of(text) for n, text in log.names.items()}
        requests = log.records["request"][chosen].tolist()
        for request, name in zip(requests, log.records["name"][chosen].tolist(), strict=True):
            if name in callees:
                calls.add((request, callees[name]))
    visits: dict[str, Visits] = {}
    for request, start in arrived.items():
        visits.setdefault(station[request], []).append((start, done.get(request, math.inf)))
    pairs = frozenset((station[r], callee) for r, callee in calls if r in station and callee in visits)
    return LoggedVisits(began / 1e9, visits, pairs)
