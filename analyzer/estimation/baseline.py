"""BL: work of each request, when every admission and completion is known."""

from __future__ import annotations

import numpy as np

from analyzer.estimation.fit import Fit
from analyzer.estimation.samples import FloatArray, Trace

__all__ = ["baseline", "demands", "utilization"]


def _work(trace: Trace, cores: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the moments of all events, and two figures for each; all of shape (E,).

    The work that a request in process all the time has got by then, and the requests in process from then on.
    """
    moment = np.concatenate([trace.start, trace.end])
    change = np.concatenate([np.ones(len(trace.start)), -np.ones(len(trace.end))])
    order = np.lexsort((change, moment))
    moment, inside = moment[order], np.cumsum(change[order])
    share = np.minimum(1.0, cores / np.maximum(inside, 1.0))
    return moment, np.concatenate([[0.0], np.cumsum(np.diff(moment) * share[:-1])]), inside


def demands(trace: Trace, cores: float) -> FloatArray:
    """Return the work of every request of a trace, s; shape (I,).

    With n requests in process each gets min(1, cores / n) of a core.

    Source: Perez, Casale, Pacheco-Sanchez, section 4.1, equation 1 and its form for several processors.
    """
    moment, work, _ = _work(trace, cores)
    got = np.interp(trace.end, moment, work) - np.interp(trace.start, moment, work)
    return np.bincount(trace.owner, got, minlength=len(trace.kind)).astype(np.float64)


def utilization(trace: Trace, cores: float) -> float:
    """Return the mean share of the cores that was busy between the first and the last event."""
    moment, _, inside = _work(trace, cores)
    period = float(moment[-1] - moment[0])
    busy = float(np.sum(np.diff(moment) * np.minimum(inside[:-1], cores)))
    return busy / (period * cores) if period > 0 else 0.0


def baseline(trace: Trace, cores: float) -> Fit:
    """Estimate demands as the mean work of the requests of each class (method BL).

    Args:
        trace: Every request of a period.
        cores: Cores the requests share.

    Source: Perez, Casale, Pacheco-Sanchez, section 4.1.
    """
    work = demands(trace, cores)
    mine = np.eye(len(trace.classes))[trace.kind]

    def resampled(counts: FloatArray) -> FloatArray:
        with np.errstate(invalid="ignore", divide="ignore"):
            mean: FloatArray = (counts @ (mine * work[:, None])) / (counts @ mine)
        return mean

    return Fit(resampled(np.ones((1, len(work))))[0], resampled)
