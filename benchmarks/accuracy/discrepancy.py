"""Discrepancy of the model: deviation and bias of the training half's errors, over load.

What calibration, simulation and the measurement explain differs from point to point; what is left is the
model's own. Both are told apart as in a meta-analysis with random effects (R. C. Paule and J. Mandel, 1982,
*Consensus values and weighting factors*): points that are known well count for more, and those whose
measurement has no interval not at all. Loads are cut into bands with about as many points each, and
neighbouring bands are linked by straight lines.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import fmean

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from accuracy.deploy import ROOT
from accuracy.judge import NORMAL, Row
from accuracy.report import Selection, rows_of
from accuracy.store import Results
from mup.errors import UsageError
from mup.lqn.uncertainty import Discrepancy, LoadPoint

__all__ = ["estimate", "write_discrepancy"]

FEWEST = 6
"""Points without which there is no estimate."""
BAND = 12
"""Points of a band: a standard deviation from that many is known to about a fifth of itself."""
BANDS = 4

RESOLUTION = 1e-4
"""Nothing is known better than that: keeps weights finite."""

Explained = Callable[[Row], float]
"""The standard deviation of an error that is not the model's; infinite where unknown."""


def estimate(rows: Sequence[Row], *, source: str) -> Discrepancy:
    """Return the discrepancy that some rows show.

    Raises:
        UsageError: There are too few of them.
    """
    if len(rows) < FEWEST:
        raise UsageError(f"{len(rows)} measured points say too little, at least {FEWEST} are needed")

    def explained(figure: str, width: Callable[[Row], float]) -> Explained:
        return lambda row: math.hypot(width(row) / NORMAL, row.known.get(figure, 0.0))

    figures: dict[str, tuple[Callable[[Row], float], Explained]] = {
        "response_time": (
            lambda r: r.corrected,
            explained("response_time", lambda r: r.measured.response_width),
        ),
        "p95": (lambda r: r.p95, explained("p95", lambda r: r.measured.p95_width)),
        "throughput": (
            lambda r: r.throughput,
            explained("throughput", lambda r: r.measured.throughput_width),
        ),
        "utilization": (
            lambda r: max(r.shares.values(), key=abs, default=0.0),
            explained("utilization", lambda _: 0.0),
        ),
    }
    bands = _bands(rows)
    points = {
        name: tuple(_point(band, error, explained) for band in bands)
        for name, (error, explained) in figures.items()
    }
    systems = len({r.system for r in rows})
    return Discrepancy(points=points, source=source, systems=systems, points_used=len(rows))


def _bands(rows: Sequence[Row]) -> list[list[Row]]:
    """Return the rows in bands of ascending load; no two bands have the same mean load."""
    ordered = sorted(rows, key=lambda r: r.load)
    count = max(1, min(BANDS, len(ordered) // BAND))
    cuts = [round(len(ordered) * k / count) for k in range(count + 1)]
    bands = [ordered[a:b] for a, b in pairwise(cuts)]
    distinct = [bands[0]]
    for band in bands[1:]:
        if _load(band) > _load(distinct[-1]):
            distinct.append(band)
        else:
            distinct[-1] = [*distinct[-1], *band]
    return distinct


def _load(band: Sequence[Row]) -> float:
    return round(min(1.0, fmean(r.load for r in band)), 3)


def _point(band: Sequence[Row], error: Callable[[Row], float], explained: Explained) -> LoadPoint:
    known = [row for row in band if math.isfinite(explained(row))]
    if len(known) < 2:
        return (_load(band), 0.0, _factor(fmean(error(r) for r in band)))
    errors = np.array([error(row) for row in known])
    variances = np.array([max(explained(row), RESOLUTION) ** 2 for row in known])
    own = _own_variance(errors, variances)
    weights = 1.0 / (variances + own)
    bias = float(np.average(errors, weights=weights))
    # The bias is only known as well as so many systems tell it: points of one of them are not independent.
    per_system = len(known) / len({row.system for row in known})
    return (_load(band), round(math.sqrt(own + per_system / float(weights.sum())), 4), _factor(bias))


def _factor(bias: float) -> float:
    return round(max(bias, -0.99), 4)


def _own_variance(errors: npt.NDArray[np.float64], variances: npt.NDArray[np.float64]) -> float:
    """Return the variance beside the known ones with which weighted squares are what chance lets expect."""

    def excess(own: float) -> float:
        weights = 1.0 / (variances + own)
        around = errors - np.average(errors, weights=weights)
        return float(weights @ around**2) - (len(errors) - 1)

    if excess(0.0) <= 0.0:
        return 0.0
    # With the whole variance of the errors as the model's own, their squares cannot exceed what is expected.
    return float(brentq(excess, 0.0, float(errors.var(ddof=1)) * 1.001))


def write_discrepancy(results: Results, selection: Selection, kind: str, output: Path | None) -> Path:
    """Estimate from the training half and write the file calibration reads; return its path."""
    rows = [r for r in rows_of(results, selection, kind) if r.half == "train" and r.covered]
    found = estimate(rows, source=f"benchmarks/accuracy, predictions {kind!r}, training half")
    path = output or ROOT / "analyzer" / "calibration" / "discrepancy.json"
    path.write_text(json.dumps(found.to_json(), indent=1) + "\n", encoding="utf-8")
    return path
