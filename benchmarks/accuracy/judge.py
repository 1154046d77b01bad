"""How far is a prediction from a measured point, and how sure is the measurement itself?

The measured value of a point is the median of its repeats. Its half-width is that of their mean: from all
batches together if repeats differ no more among each other than their batches let expect, else from the
repeats alone (the F test of a one-way analysis of variance decides).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Any

import numpy as np
from scipy import stats

__all__ = ["Measured", "Row", "half_width", "judge", "measured"]

POOLING_LEVEL = 0.10
"""Repeats that differ this unlikely by chance are not pooled."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The repeats of a point, together; times in seconds, half-widths as fractions of the value.

    Attributes:
        repeats, void: Valid ones, and those that say nothing.
        seconds: Observed in the valid ones.
    """

    repeats: int
    void: int
    seconds: float
    response: float
    response_width: float
    p95: float
    p95_width: float
    throughput: float
    utilization: dict[str, float]
    host: float
    speed: float | None


def usable(records: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the valid repeats."""
    return [r for r in records if not r["void"]]


def measured(records: Sequence[Mapping[str, Any]]) -> Measured | None:
    """Return the figures of a point; None if no repeat is valid."""
    valid = usable(records)
    if not valid:
        return None
    documents = [r["measurement"] for r in valid]
    response = median(d["response_time"]["mean"] for d in documents)
    tails = [d["response_time"]["p95"] for d in documents]
    speeds = [r["speed"] for r in valid if r["speed"] is not None]
    shares = [{n: _plain(t["utilization"]) for n, t in d["tasks"].items()} for d in documents]
    return Measured(
        repeats=len(valid),
        void=len(records) - len(valid),
        seconds=sum(d["window_seconds"] for d in documents),
        response=response,
        response_width=half_width([r["batches"] for r in valid]) / response,
        p95=median(tails),
        p95_width=_of_means(tails) / median(tails),
        throughput=median(_plain(d["throughput"]) or 0.0 for d in documents),
        utilization={n: median(s[n] or 0.0 for s in shares) for n in shares[0] if shares[0][n] is not None},
        host=median(d["cpu"]["host_utilization"] for d in documents),
        speed=fmean(speeds) if speeds else None,
    )


def _plain(figure: Any) -> float | None:
    """Return the mean of a figure that may or may not have an interval."""
    found: float | None = figure["mean"] if isinstance(figure, dict) else figure
    return found


def half_width(groups: Sequence[Sequence[float]]) -> float:
    """Return the 95 % half-width of the mean of grouped values, one group of batches per repeat.

    Infinite if there are too few values to tell.
    """
    groups = [g for g in groups if g]
    if len(groups) > 1 and sum(len(g) for g in groups) > len(groups):
        # Equal groups (nothing varies at all) have no F statistic.
        constant = all(len(set(g)) == 1 for g in groups)
        if not constant and stats.f_oneway(*groups).pvalue < POOLING_LEVEL:
            return _of_means([fmean(g) for g in groups])
    return _of_means([value for g in groups for value in g])


def _of_means(values: Sequence[float]) -> float:
    if len(values) < 2:
        return math.inf
    quantile = float(stats.t.ppf(0.975, len(values) - 1))
    return quantile * float(np.std(values, ddof=1)) / math.sqrt(len(values))


@dataclass(frozen=True, slots=True)
class Row:
    """One point, predicted and measured. Errors are (predicted - measured) / measured.

    Attributes:
        load: Predicted utilization of what is busiest.
        raw, corrected: Error of the mean response time; corrected = predicted at the measured speed.
        inside: Whether the measured value is inside the prediction interval; None without one.
        width: Half-width of that interval as a fraction of the prediction.
        utilization: The largest absolute error among services.
    """

    system: str
    half: str
    point: str
    change: str
    load: float
    predicted: float
    measured: Measured
    raw: float
    corrected: float
    p95: float
    throughput: float
    utilization: float
    host: float
    ratio: float
    inside: bool | None = None
    width: float | None = None
    simulation: float = 0.0
    shares: Mapping[str, float] = field(default_factory=dict)


def judge(
    system: str,
    half: str,
    point: str,
    change: str,
    record: Mapping[str, Any],
    found: Measured,
) -> Row:
    """Compare one point of a prediction record with what was measured."""
    raw = record["points"][point]
    fair = record["corrected"].get(point, raw)
    interval = raw.get("interval")
    predicted = raw["response_time"]["mean"]
    shares = {n.partition(" ")[2]: u for n, u in fair["utilization"].items() if n.startswith("task ")}
    gaps = {n: shares[n] - u for n, u in found.utilization.items() if n in shares}
    hosts = [u for n, u in fair["utilization"].items() if n.startswith("processor ")]
    return Row(
        system=system,
        half=half,
        point=point,
        change=change,
        load=raw["load"],
        predicted=predicted,
        measured=found,
        raw=predicted / found.response - 1,
        corrected=fair["response_time"]["mean"] / found.response - 1,
        p95=fair["response_time"]["p95"] / found.p95 - 1,
        throughput=fair["throughput"]["mean"] / found.throughput - 1,
        utilization=max(map(abs, gaps.values()), default=0.0),
        host=max(hosts, default=0.0) - found.host,
        ratio=fair.get("ratio", 1.0),
        inside=None if interval is None else interval["low"] <= found.response <= interval["high"],
        width=None if interval is None else (interval["high"] - interval["low"]) / 2 / predicted,
        simulation=raw["response_time"]["ci95"] / predicted,
        shares=gaps,
    )
