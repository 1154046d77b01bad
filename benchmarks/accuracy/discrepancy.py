"""By how much is the model itself off? Standard deviation and bias of the training half's errors, over load.

What calibration, simulation and the measurement explain is taken off; what is left is the model's own. A
point whose measurement has no interval says nothing about that, but counts for the bias. Loads are cut into
bands with about as many points each, and neighbouring bands are linked by straight lines.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import fmean, variance

from accuracy.deploy import ROOT
from accuracy.judge import NORMAL, Row
from accuracy.report import Selection, rows_of
from accuracy.store import Results
from mup.errors import UsageError
from mup.lqn.uncertainty import Discrepancy, LoadPoint

__all__ = ["estimate", "write_discrepancy"]

FEWEST = 6
"""Points a band needs for its standard deviation to mean anything."""
BANDS = 4

Explained = Callable[[Row], float]
"""The standard deviation of an error that is not the model's; infinite where nobody knows."""


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
    count = max(1, min(BANDS, len(ordered) // FEWEST))
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
    bias = fmean(error(r) for r in band)
    known = [r for r in band if math.isfinite(explained(r))]
    own = 0.0
    if len(known) > 1:
        own = max(0.0, variance(error(r) for r in known) - fmean(explained(r) ** 2 for r in known))
    return (_load(band), round(math.sqrt(own), 4), round(max(bias, -0.99), 4))


def write_discrepancy(results: Results, selection: Selection, kind: str, output: Path | None) -> Path:
    """Estimate from the training half and write the file calibration reads; return its path."""
    rows = [r for r in rows_of(results, selection, kind) if r.half == "train"]
    found = estimate(rows, source=f"benchmarks/accuracy, predictions {kind!r}, training half")
    path = output or ROOT / "analyzer" / "calibration" / "discrepancy.json"
    path.write_text(json.dumps(found.to_json(), indent=1) + "\n", encoding="utf-8")
    return path
