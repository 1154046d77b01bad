"""Errors of repeats during which the machine's speed changed, beside those of the others.

Response times, each times the mean speed meanwhile, are compared with those of the same point whose speed
hardly changed. Where larger changes do not scatter more, there is no reason to throw such repeats away.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

__all__ = ["CLASSES", "Deviation", "deviations", "jump_table"]

CLASSES = (0.04, 0.08, 0.16, math.inf)
"""Upper ends of the classes of relative change from the first half of a repeat to its second."""
STEADY = 0.08
"""Repeats of up to this change are what the others are compared with."""

Deviation = tuple[float, float]
"""Size of the change; logarithm of the speed-corrected response time minus that of its steady siblings."""


def deviations(records: Sequence[Mapping[str, Any]]) -> list[Deviation]:
    """Return how far each repeat of one point is from its steady siblings.

    Repeats that are void for another reason than the speed are left out. A deviation is divided by what the
    few siblings add to it, so that its standard deviation is that of one repeat.
    """
    known = []
    for record in records:
        measurement = record["measurement"]
        monitored = measurement["runs"][0]["monitored"] if measurement else None
        if monitored is None or (record["void"] and "speed changed" not in record["void"]):
            continue
        response = measurement["response_time"]["mean"]
        known.append((abs(monitored["jump"]), math.log(response * monitored["speed"])))
    found = []
    for index, (jump, value) in enumerate(known):
        siblings = [v for i, (j, v) in enumerate(known) if j <= STEADY and i != index]
        if siblings:
            found.append((jump, (value - fmean(siblings)) / math.sqrt(1 + 1 / len(siblings))))
    return found


def jump_table(found: Sequence[Deviation]) -> list[tuple[str, str, str]]:
    """Return, per class of changes, how many repeats there are and their root mean square deviation."""
    lines = []
    lower = 0.0
    for upper in CLASSES:
        inside = [value for jump, value in found if lower <= jump < upper]
        name = f"above {lower:.0%}" if upper == math.inf else f"{lower:.0%} to {upper:.0%}"
        if inside:
            spread = math.sqrt(fmean(value * value for value in inside))
            lines.append((name, str(len(inside)), f"{spread:.1%}"))
        lower = upper
    return lines
