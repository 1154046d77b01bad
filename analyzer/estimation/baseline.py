"""BL: work of each request, when every admission and completion is known."""

from __future__ import annotations

import numpy as np

from analyzer.estimation.fit import Fit
from analyzer.estimation.samples import FloatArray, IntArray, Trace

__all__ = ["baseline", "demands", "utilization"]

MOST_UNITS = 10_000
"""Groups of consecutive requests that are drawn in a bootstrap; of fewer requests, each is a group."""
SLICE = 1 << 20
"""Events looked at together: a log of 10^7 requests has 2 x 10^7 of them."""


def _work(trace: Trace, cores: float) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return the moments of all events, and two figures for each; all of shape (E,).

    The work that a request in process all the time has got by then, and the requests in process from then on.
    """
    # Ends first, and a stable order: of two events at the same moment, the departure comes first.
    moment = np.concatenate([trace.end, trace.start])
    # Half the memory: there are less than 2^31 events.
    order = np.argsort(moment, kind="stable").astype(np.int32)
    moment = moment[order]
    inside = np.where(order < len(trace.end), np.int32(-1), np.int32(1))
    del order
    np.cumsum(inside, out=inside)
    work = np.zeros(len(moment))
    for first in range(0, len(moment) - 1, SLICE):
        last = min(first + SLICE, len(moment) - 1)
        share = np.minimum(1.0, cores / np.maximum(inside[first:last], 1))
        work[first + 1 : last + 1] = np.diff(moment[first : last + 1]) * share
    np.cumsum(work, out=work)
    return moment, work, inside


def demands(trace: Trace, cores: float) -> FloatArray:
    """Return the work of every request of a trace, s; shape (I,).

    With n requests in process each gets min(1, cores / n) of a core.

    Source: Perez, Casale, Pacheco-Sanchez, section 4.1, equation 1 and its form for several processors.
    """
    moment, work, _ = _work(trace, cores)
    got = np.interp(trace.end, moment, work)
    got -= np.interp(trace.start, moment, work)
    if len(got) == len(trace.kind):
        return np.asarray(got, dtype=np.float64)
    return np.bincount(trace.owner, got, minlength=len(trace.kind)).astype(np.float64)


def utilization(trace: Trace, cores: float) -> float:
    """Return the mean share of the cores that was busy between the first and the last event."""
    moment, _, inside = _work(trace, cores)
    period = float(moment[-1] - moment[0])
    busy = float(np.sum(np.diff(moment) * np.minimum(inside[:-1], cores)))
    return busy / (period * cores) if period > 0 else 0.0


def baseline(trace: Trace, cores: float) -> Fit:
    """Estimate demands as the mean work of the requests of each class that count (method BL).

    Args:
        trace: Every request of a period.
        cores: Cores the requests share.

    Source: Perez, Casale, Pacheco-Sanchez, section 4.1.
    """
    mine = trace.counts_mask
    work, kind = demands(trace, cores)[mine], trace.kind[mine]
    units, kinds = min(len(kind), MOST_UNITS), len(trace.classes)
    # Sums over groups of consecutive requests are all a resample needs.
    unit = np.arange(len(kind)) * units // max(len(kind), 1)
    unit *= kinds
    unit += kind
    sums = np.bincount(unit, work, minlength=units * kinds).reshape(units, kinds)
    counts = np.bincount(unit, minlength=units * kinds).reshape(units, kinds).astype(np.float64)

    def resampled(drawn: FloatArray) -> FloatArray:
        with np.errstate(invalid="ignore", divide="ignore"):
            mean: FloatArray = (drawn @ sums) / (drawn @ counts)
        return mean

    return Fit(resampled(np.ones((1, units)))[0], resampled, units=units, work=work)
