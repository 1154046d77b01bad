"""Rows of all counts so far, in the order of ``simulator.machine.recording.Layout``."""

from __future__ import annotations

from typing import Any

from mup.native.binding import compiled, inlined
from mup.native.shapes import Floats1, Floats2, Longs1
from simulator.machine.compiled.accounts import server_accounts
from simulator.machine.compiled.interpreter import advance
from simulator.machine.compiled.state import (
    DONE,
    EVENTS,
    L_AREA,
    L_CONTENT,
    L_ENTERED,
    L_LAST,
    L_LEFT,
    L_SINCE,
    L_TIME,
    State,
)

__all__ = ["record_bins", "write_snapshot"]


@compiled
def record_bins(
    s: State,
    first: int,
    width: float,
    most_events: int,
    sizes: Longs1,
    counts: Longs1,
    now: Floats1,
    rows: Floats2,
) -> int:
    """Execute bin after bin, and write what was counted in each; return how that ended.

    Args:
        s: Of the run.
        first: Bins before these.
        width: Of a bin, in seconds.
        most_events: No bin begins after so many events.
        sizes: How many levels, servers, sites, joins, activities, setups there are.
        counts: Its first number becomes that of the bins that were finished.
        now: The snapshot at the end of the bin before these; that of the last one afterwards.
        rows: A row for each of the bins.
    """
    counts[0] = 0
    columns = len(now)
    for k in range(len(rows)):
        end = (first + k + 1) * width
        status = advance(s, end)
        if status != DONE:
            return status
        row = rows[k]
        write_snapshot(s, end, sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[5], row)
        for column in range(columns):
            total = row[column]
            row[column] = total - now[column]
            now[column] = total
        counts[0] = k + 1
        if s.scalars[EVENTS] >= most_events:
            break
    return DONE


@compiled
def write_snapshot(
    s: State,
    now: float,
    levels: int,
    servers: int,
    sites: int,
    joins: int,
    activities: int,
    setups: int,
    row: Floats1,
) -> None:
    """Write all sums as of now: of that many levels, servers, ..., for the arrays may have a row of zeros."""
    at = 0
    source = s.records.levels
    for level in range(levels):
        content = source[level, L_CONTENT]
        row[at] = source[level, L_ENTERED]
        row[at + 1] = source[level, L_LEFT]
        row[at + 2] = content
        row[at + 3] = source[level, L_AREA] + content * (now - source[level, L_LAST])
        row[at + 4] = source[level, L_TIME] + (content * now - source[level, L_SINCE])
        row[at + 5] = source[level, L_TIME]
        at += 6  # LEVEL_WIDTH
    for server in range(servers):
        row[at], row[at + 1] = server_accounts(s.servers, s.flows, server, now)
        at += 2
    at = _copied(s.records.cycles, len(s.records.cycles), row, at)
    at = _copied(s.records.site_sums, sites, row, at)
    at = _copied(s.records.join_sums, joins, row, at)
    at = _copied(s.records.activity_sums, activities, row, at)
    at = _copied(s.sleeps.sums, setups, row, at)


@inlined
def _copied(source: Any, rows: int, row: Any, at: int) -> int:
    """Copy the first rows of some sums; return the place behind them."""
    for i in range(rows):
        for k in range(source.shape[1]):
            row[at] = source[i, k]
            at += 1
    return at
