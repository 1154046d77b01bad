"""What a check of data says: findings, and how many samples a precision needs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from mup.statistics.student import t_quantile

__all__ = ["Checked", "Finding", "Needed", "State", "inflation", "needed", "trend"]

FloatArray = npt.NDArray[np.float64]
State = Literal["ok", "note", "problem"]

BATCHES = 20
"""Parts of consecutive samples whose means tell how far neighbours depend on each other."""
FEWEST = 2 * BATCHES
NORMAL_95 = 1.959964
BEYOND_CHANCE = 0.999


@dataclass(frozen=True)
class Finding:
    """The answer of one check.

    Attributes:
        check: What was looked at: ``lines``, ``clock``, ``resolution``, ``laws``, ``stationarity``, ``load``.
        state: ``ok``; ``note`` = good to know when results are read; ``problem`` = results would be wrong.
        text: One sentence.
    """

    check: str
    state: State
    text: str


@dataclass(frozen=True)
class Needed:
    """How many samples of a class there are, and how many a precision needs.

    Attributes:
        name: Of the class or station.
        samples: How many there are.
        mean: Of what is estimated, s.
        scv: Its squared coefficient of variation.
        half_width: Relative 95 % half-width of the mean with the samples there are; None = too few.
        needed: Samples for the precision; None likewise.
    """

    name: str
    samples: int
    mean: float
    scv: float
    half_width: float | None
    needed: int | None


@dataclass(frozen=True)
class Checked:
    """A file of data, checked.

    Attributes:
        kind: What it holds.
        facts: Figures of it by name, with units in the names.
        findings: In the order of the checks.
        samples: One line per class.
        precision: Relative half-width that ``needed`` is for.
    """

    kind: str
    facts: Mapping[str, float]
    findings: tuple[Finding, ...]
    samples: tuple[Needed, ...]
    precision: float

    @property
    def sound(self) -> bool:
        """Whether no check found a problem."""
        return all(finding.state != "problem" for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        """Return the document of ``mup data check --json``."""
        return {
            "kind": self.kind,
            "sound": self.sound,
            "facts": dict(self.facts),
            "findings": [{"check": f.check, "state": f.state, "text": f.text} for f in self.findings],
            "precision": self.precision,
            "samples": {
                n.name: {
                    "samples": n.samples,
                    "mean": n.mean,
                    "scv": n.scv if math.isfinite(n.scv) else None,
                    "half_width": n.half_width,
                    "needed": n.needed,
                }
                for n in self.samples
            },
        }


def inflation(values: FloatArray) -> float:
    """Return by how much the variance of a mean exceeds that of as many independent values; at least 1.

    Args:
        values: In the order of time, shape (I,).
    """
    if len(values) < FEWEST or values.var() == 0:
        return 1.0
    size = len(values) // BATCHES
    means = values[: size * BATCHES].reshape(BATCHES, size).mean(axis=1)
    return max(1.0, float(means.var(ddof=1)) * size / float(values.var(ddof=1)))


def needed(name: str, values: FloatArray, precision: float) -> Needed:
    """Return how many samples of a mean there are, and how many its precision needs.

    Neighbours that resemble each other count as fewer: the variance comes from means of batches.

    Args:
        name: Of the class.
        values: Seconds in the order of time, shape (I,).
        precision: Relative half-width of the 95 % interval of the mean.
    """
    count, mean = len(values), float(values.mean()) if len(values) else math.nan
    if count < 2 or mean <= 0:
        return Needed(name, count, mean, math.nan, None, None)
    scv = float(values.var(ddof=1)) / mean**2
    spread = scv * inflation(values)
    return Needed(
        name,
        count,
        mean,
        scv,
        NORMAL_95 * math.sqrt(spread / count),
        math.ceil((NORMAL_95 / precision) ** 2 * spread),
    )


def trend(means: FloatArray) -> tuple[float, bool]:
    """Return the relative change of a figure from the beginning to the end, and whether it is beyond chance.

    A line through the means of consecutive parts, with their scatter around it as their error; beyond chance
    is beyond 99.9 %.

    Args:
        means: Of equal parts in the order of time, NaN where a part has none; shape (P,).
    """
    known = np.flatnonzero(np.isfinite(means))
    if len(known) < BATCHES // 2:
        return 0.0, False
    x = known / (len(means) - 1) - 0.5
    y = means[known]
    slope, middle = np.polyfit(x, y, 1)
    rest = y - (slope * x + middle)
    freedom = len(known) - 2
    error = math.sqrt(float(rest @ rest) / freedom / float(((x - x.mean()) ** 2).sum()))
    change = float(slope / middle) if middle else 0.0
    return change, abs(slope) > t_quantile(freedom, BEYOND_CHANCE) * error
