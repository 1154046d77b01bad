"""Cut observations of a station into periods, and say what each of them measures.

What a period measures is linear in the demands x (R,), y = H x + noise:

    every request    y_r = mean work of the requests of class r              H = 1
    arrival samples  y_r = mean response time of class r                     H = mean of max(1, seen / V)
    windows          y   = busy cores                                        H = throughputs

Nothing in a period depends on a later one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analyzer.estimation.baseline import demands
from analyzer.estimation.methods import Observations
from analyzer.estimation.samples import FloatArray, IntArray, Trace, Windows
from mup.errors import UsageError

__all__ = ["POWERS", "Measurement", "measurements", "powers_of", "varied"]

POWERS = (1.0, 1 / 2, 1 / 4, 1 / 8)
"""Of the work of a request: the mean of a small power says more about a step where demands vary much."""
ENOUGH = 0.95
"""Share of the most that some power says about a step, with which the smallest such power is taken: its means
are nearest to normal. With 0.9, 90 instead of 94 % of steps of 30 % are noticed within ten periods of 52
exponential requests; with 0.98 as many as with 0.95, and false alarms double."""


@dataclass(frozen=True)
class Measurement:
    """What one period says; m numbers, linear in the demands.

    Attributes:
        end: Of the period, s since the first one began.
        value: y, shape (m,).
        weight: H, shape (m, R).
        kinds: Class each value is of, shape (m,); empty where a value is of all of them.
        share: Standard deviation of a value, where that of one request of its class is 1, relative to what it
            measures; shape (m,).
        sums: Number, sum and sum of squares of the requests of each class, shape (3, R).
    """

    end: float
    value: FloatArray
    weight: FloatArray
    kinds: IntArray
    share: FloatArray
    sums: FloatArray


def measurements(
    data: Observations, *, cores: float, period: float, powers: Sequence[float] = (1.0,)
) -> list[list[Measurement]]:
    """Return what each period measures, of the mean of each power of the demands.

    Args:
        data: Every request, arrival samples with moments, or windows (each is a period).
        cores: Cores the requests share.
        period: Length of a period, s; of windows, their length.
        powers: Of what a request needs. Only every request tells others than 1.

    Raises:
        UsageError: Samples have no moments.
    """
    if isinstance(data, Windows):
        nothing = np.zeros((3, len(data.classes)))
        none = np.zeros(0, dtype=np.int64)
        return [
            [
                Measurement(
                    (k + 1) * period,
                    data.utilization[k : k + 1] * cores,
                    data.throughput[k : k + 1],
                    none,
                    np.ones(1),
                    nothing,
                )
                for k in range(len(data.utilization))
            ]
        ]
    if isinstance(data, Trace):
        # A request counts when it is complete: nothing about it is known before.
        last = np.zeros(len(data.kind))
        np.maximum.at(last, data.owner, data.end)
        mine = data.counts_mask
        moment, value = last[mine], demands(data, cores)[mine]
        stretch, kind = np.ones(len(value)), data.kind[mine]
    elif data.time is None:
        raise UsageError("the samples have no moments", hint="add a column 'time' (seconds) to the file")
    else:
        moment, value = data.time + data.response_time, data.response_time
        stretch, kind = np.maximum(1.0, data.total / cores), data.kind
    number = ((moment - moment.min()) / period).astype(np.int64)
    order = np.argsort(number, kind="stable")
    bounds = np.flatnonzero(np.diff(number[order])) + 1
    rows, count = np.split(order, bounds), len(data.classes)
    return [
        [_period(kind[r], value[r] ** p, stretch[r], count, float((number[r[0]] + 1) * period)) for r in rows]
        for p in powers
    ]


def _period(kind: IntArray, value: FloatArray, stretch: FloatArray, count: int, end: float) -> Measurement:
    """Return what the requests of one period say."""
    number = np.bincount(kind, minlength=count).astype(np.float64)
    kinds = np.flatnonzero(number)
    stretched = np.bincount(kind, stretch, minlength=count)[kinds]
    weight = np.zeros((len(kinds), count))
    weight[np.arange(len(kinds)), kinds] = stretched / number[kinds]
    ratio = value / stretch
    return Measurement(
        end=end,
        value=np.bincount(kind, value, minlength=count)[kinds] / number[kinds],
        weight=weight,
        kinds=kinds,
        share=np.sqrt(np.bincount(kind, stretch**2, minlength=count)[kinds]) / stretched,
        sums=np.array(
            [
                number,
                np.bincount(kind, ratio, minlength=count),
                np.bincount(kind, ratio**2, minlength=count),
            ]
        ),
    )


def varied(periods: Sequence[Measurement]) -> FloatArray:
    """Return the standard deviation of one request around its mean, relative to that; shape (R,).

    1 where nothing is known: windows do not tell requests apart. A class seen less than twice is taken to
    vary like the others.
    """
    number, total, squares = np.sum([one.sums for one in periods], axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = total / number
        found = np.sqrt(np.maximum(squares - number * mean**2, 0) / (number - 1)) / mean
    known = np.isfinite(found) & (number > 1)
    others = float(found[known].mean()) if known.any() else 1.0
    return np.maximum(np.where(known, found, others), 1e-6)


def powers_of(learning: Sequence[Sequence[Measurement]], powers: Sequence[float]) -> int:
    """Return the number of the power whose means are taken to look for steps.

    Means of a small power are nearer to normal, and where few requests need most of the work they say more.
    A step by the factor 1 + e moves the mean of a power p by e p of itself, so that p over the relative
    standard deviation of a request is what it says.

    Args:
        learning: Of each power, the periods that are learned from.
        powers: Descending.
    """
    said = []
    for power, periods in zip(powers, learning, strict=True):
        number = np.sum([one.sums[0] for one in periods], axis=0)
        said.append(power * math.sqrt(float(np.sum(number / varied(periods) ** 2) / np.sum(number))))
    return max(i for i, one in enumerate(said) if one >= ENOUGH * max(said))
