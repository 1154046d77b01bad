"""The requests of an access log as the trace of a station.

A log that is written when requests end is cut off at both ends: those that were in process at its last line
are not in it, nor are those that ended before its first. What was in process together is therefore complete
from the first logged end on, until the last one minus the time that (nearly) all requests need; demands are
those of the requests that were admitted in between. The others only count as company.
"""

from __future__ import annotations

import numpy as np

from analyzer.access_logs.formats import UNITS
from analyzer.access_logs.requests import Requests
from analyzer.access_logs.resolution import Resolution, check_resolution, resolution_of
from analyzer.estimation.samples import FloatArray, Trace, admitted
from mup.errors import UsageError

__all__ = ["MOST_CLASSES", "check_fractions", "trace_of_requests", "window"]

NEARLY_ALL = 0.99
"""Part of the requests that are done within the time left out at the end."""
LAST = 0.03
"""Part of the requests left out at the end where that time is most of the log."""
FEWEST = 100
"""Requests of a log whose ends are treated; of a shorter one nothing would be left."""
MOST_CLASSES = 1000
"""Of requests; more are ids in paths that were not recognised."""


def check_fractions(requests: Requests) -> None:
    """Refuse moments in whole seconds.

    Raises:
        UsageError: They are.
    """
    if not requests.fractions:
        raise UsageError(
            "moments are whole seconds: they cannot say which requests were in process together",
            where=requests.where,
            hint="log fractions: nginx $msec, Apache %{end:usec}t, Envoy %START_TIME%",
        )


def window(begin: FloatArray, end: FloatArray) -> tuple[float, float]:
    """Return between which moments of admission everything that was in process is in the log.

    Args:
        begin: Of every request of a log that is written when they end, s; shape (I,).
        end: Of the same requests.
    """
    if len(begin) < FEWEST:
        return -np.inf, np.inf
    low = float(end.min())
    high = float(end.max() - np.quantile(end - begin, NEARLY_ALL))
    inside = np.count_nonzero((begin >= low) & (begin <= high))
    if inside < len(begin) / 2:
        high = float(np.quantile(begin, 1 - LAST))
    return low, high


def trace_of_requests(requests: Requests, threads: float) -> Trace:
    """Return the trace of a log.

    Args:
        requests: Of the log.
        threads: Of the pool: says when a request that arrived was admitted.

    Raises:
        UsageError: Moments are whole seconds, durations are below what the clock can tell, there are too many
            classes, or the requests cannot have been served by so few threads.
    """
    check_fractions(requests)
    names, kind = requests.classes.names, requests.classes.codes
    if len(names) > MOST_CLASSES:
        raise UsageError(
            f"{len(names)} classes of requests, such as {names[0]!r}: too many to tell apart",
            where=requests.where,
            hint="put them together: --group product='^GET /product/' --group other=.",
        )
    resolution = resolution_of(requests.end - requests.begin)
    check_resolution(resolution, requests.where)
    order = np.argsort(requests.begin, kind="stable").astype(np.int32)
    begin, end, kind = requests.begin[order], requests.end[order], kind[order]
    del order
    counted = window(begin, end) if requests.at_end else (-np.inf, np.inf)
    origin = float(begin[0])
    begin -= origin
    end -= origin
    try:
        start = admitted(begin, end, threads)
    except ValueError as error:
        raise UsageError(
            str(error), where=requests.where, hint="give the --pool the station really has, or leave it out"
        ) from error
    trace = Trace(
        names,
        kind,
        np.arange(len(kind), dtype=np.int32),
        start,
        end,
        counted=(counted[0] - origin, counted[1] - origin),
    )
    return trace.with_notes(_notes(requests, resolution, trace))


def _notes(requests: Requests, resolution: Resolution, trace: Trace) -> list[str]:
    notes = []
    if skipped := requests.skipped.total:
        reasons = ", ".join(f"{count} {reason}" for reason, count in requests.skipped.counts.items())
        example = f"; the first is {requests.skipped.example}" if requests.skipped.example else ""
        notes.append(f"{skipped} of {requests.lines} lines are left out: {reasons}{example}")
    if resolution.coarse:
        notes.append(
            f"the mean duration, {resolution.mean * 1e3:.3g} ms, is few steps of the clock, "
            f"{(resolution.step or 0) / UNITS['ms']:g} ms: short requests may be wrong by that"
        )
    inside = int(np.count_nonzero(trace.counts_mask))
    if inside < len(trace.kind):
        notes.append(
            f"{len(trace.kind) - inside} requests at the ends of the log only count as company: what "
            "else was in process then is not in it"
        )
    return notes
