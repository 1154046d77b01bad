"""Part of a run's client cycles: a run as if only every k-th cycle had been logged.

Reading a log takes a time proportional to its records, and a fast service writes a million a minute. Whole
cycles are left out, with everything they caused, every k-th in the order of time: so each round keeps as many
as it had, divided by k, and what is counted per cycle stays what it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import msgspec
import numpy as np
import numpy.typing as npt

from analyzer.calibration.rundir import Part, Phase, Run
from mup.events.reader import Log
from mup.events.record import Event

__all__ = ["thinned"]

PHASES: tuple[Phase, ...] = ("hot", "cold", "burst")

Traces = npt.NDArray[np.uint64]


def thinned(run: Run, most: int) -> Run:
    """Return a run with about so many records at most in the rounds of each kind.

    Parts are divided by the kind of their rounds, for these may be thinned differently.

    Args:
        run: To thin.
        most: Records per kind of rounds.
    """
    parts = [part for old in run.parts for part in _by_phase(old, most)]
    info = msgspec.structs.replace(run.info, parts=[part.info for part in parts])
    return replace(run, info=info, parts=tuple(parts))


def _by_phase(part: Part, most: int) -> Iterator[Part]:
    begun = [_begun(log) for log in part.logs if log.header.get("role") == "client"]
    cycles = np.concatenate([*begun, np.empty(0, _CYCLE)])
    cycles.sort(order="time")
    sizes = dict(zip(*_records_of(part), strict=True))
    for phase in PHASES:
        windows = [window for window in part.windows if window.phase == phase]
        if not windows:
            continue
        inside = [cycles["trace"][_between(cycles["time"], w.start, w.end)] for w in windows]
        records = sum(sizes.get(trace, 0) for traces in inside for trace in traces.tolist())
        every = max(1, -(-records // most))
        kept = np.concatenate([traces[::every] for traces in inside])
        yield replace(
            part,
            info=msgspec.structs.replace(part.info, windows=windows, sample=part.info.sample * every),
            logs=tuple(replace(log, records=log.records[_chosen(log, kept)]) for log in part.logs),
        )


_CYCLE = np.dtype([("time", "<i8"), ("trace", "<u8")])


def _begun(log: Log) -> npt.NDArray[np.void]:
    """Return when the cycles of a client began, and the number everything they caused goes by."""
    records = log.records[log.records["event"] == Event.BEGIN]
    found = np.empty(len(records), _CYCLE)
    found["time"], found["trace"] = records["time"], records["trace"]
    return found


def _records_of(part: Part) -> tuple[list[int], list[int]]:
    """Return the numbers of all cycles, and how many records each caused."""
    every = np.concatenate([*(log.records["trace"] for log in part.logs), np.empty(0, np.uint64)])
    traces, counts = np.unique(every, return_counts=True)
    return traces.tolist(), counts.tolist()


def _between(times: npt.NDArray[np.int64], start: int, end: int) -> npt.NDArray[np.bool_]:
    return (times >= start) & (times <= end)


def _chosen(log: Log, kept: Traces) -> npt.NDArray[np.bool_]:
    return np.isin(log.records["trace"], kept)
