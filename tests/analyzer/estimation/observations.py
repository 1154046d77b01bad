"""Observations of systems with known demands, and hand-made ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from estimation.station import Observed, simulate, system

from analyzer.estimation.samples import ArrivalSamples, Trace


def observed(
    cores: int,
    threads: int,
    users: int,
    *,
    samples: int = 100,
    seed: int = 1,
    windows: int = 0,
    classes: int = 2,
) -> Observed:
    """Run a small system: as many runs as a test has are quicker interpreted than compiled."""
    model = system(cores, threads, users, classes)
    return simulate(model, samples, seed, windows=windows, warmup=2 * users, compiled=False)


def trace(*requests: tuple[str, float, float]) -> Trace:
    """Return the trace of requests (class, start, end) of one segment each."""
    classes = tuple(sorted({name for name, _, _ in requests}))
    kind = np.array([classes.index(name) for name, _, _ in requests])
    start = np.array([begin for _, begin, _ in requests], dtype=float)
    end = np.array([end for _, _, end in requests], dtype=float)
    return Trace(classes, kind, np.arange(len(requests)), start, end)


def samples(*rows: tuple[int, float, Sequence[int]]) -> ArrivalSamples:
    """Return samples (class, response time, seen) of as many classes as are seen."""
    classes = tuple("abc"[: len(rows[0][2])])
    kind = np.array([row[0] for row in rows])
    times = np.array([row[1] for row in rows], dtype=float)
    return ArrivalSamples(classes, kind, times, np.array([row[2] for row in rows]))
