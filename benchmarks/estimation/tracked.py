"""False alarms of tracking, and its delay after a jump: systems whose demands change once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from analyzer.estimation.samples import Trace
from analyzer.estimation.tracking import track
from estimation.station import simulate, system

__all__ = ["PERIOD", "tracking_rows"]

PERIOD = 5.0
"""Seconds; mean demands are 0.1 and 0.05 s."""
CASES = ((40, 1.0, 1.3), (100, 1.0, 1.2), (100, 1.0, 1.3), (100, 4.0, 1.3), (160, 1.0, 1.3), (160, 4.0, 1.3))
"""Users, squared coefficient of variation of demands (above 1 hyperexponential), and by what demands grow."""
SAMPLES = 3000
"""Requests per class before the jump, and after it."""


def _joined(first: Trace, second: Trace) -> tuple[Trace, float]:
    """Return one trace after the other, and the moment of the change."""
    change = float(first.end.max()) + 0.01
    shift = change - float(second.start.min())
    joined = Trace(
        first.classes,
        np.concatenate([first.kind, second.kind]),
        np.concatenate([first.owner, second.owner + len(first.kind)]),
        np.concatenate([first.start, second.start + shift]),
        np.concatenate([first.end, second.end + shift]),
    )
    return joined, change


def tracking_rows(repeats: int) -> Iterator[tuple[int, float, float, float, float, float, float, float]]:
    """Yield a row per load and size of the jump.

    Users, scv, factor, false alarms per 1000 periods, share of jumps noticed within 10 and 20 periods, median
    delay of those in periods, and mean error in % from 20 periods after the jump on.
    """
    for users, scv, factor in CASES:
        before = system(4, 16, users, scv=scv)
        after = replace(before, demand=before.demand * factor)
        periods, false, delays, errors = 0, 0, [], []
        for seed in range(repeats):
            runs = [simulate(m, SAMPLES, seed + s).trace for m, s in ((before, 0), (after, 1000))]
            data, change = _joined(*runs)
            found = track(data, cores=4, period=PERIOD)
            ends = [float(found.end[alarm.period]) for alarm in found.alarms]
            true = [e for e in ends if change < e <= change + 20 * PERIOD]
            periods += len(found.end)
            false += len(ends) - len(true)
            delays += [(end - change) / PERIOD for end in true[:1]]
            late = found.end > change + 20 * PERIOD
            errors.append(float(np.abs(found.demand[late] / after.demand - 1).mean()))
        yield (
            users,
            scv,
            factor,
            1e3 * false / periods,
            sum(delay <= 10 for delay in delays) / repeats,
            len(delays) / repeats,
            float(np.median(delays)) if delays else float("nan"),
            100 * float(np.mean(errors)),
        )
