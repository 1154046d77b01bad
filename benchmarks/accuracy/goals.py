"""Compare results with goals: the halves apart, then by feature and by kind of point.

Raw is what a user sees: the prediction that was on disk, with its 95 % interval. Corrected is for the speed
the machine had. Points no model was asked about (more data than explored) are in a table of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import NormalDist, fmean, median
from typing import Final

from accuracy.deploy import generated
from accuracy.judge import Row

__all__ = [
    "GOALS",
    "data_lines",
    "feature_lines",
    "goal_lines",
    "kind_lines",
    "open_questions",
]

NAMES: Final = {"train": "development", "test": "held out"}
KNOWN = 0.05
"""Relative half-width to which a measured p95 has to be known to be compared."""
LARGE = 0.10
"""Corrected error from which on a point wants an explanation."""


def name_of(half: str) -> str:
    """Return what a half is called in headings."""
    return NAMES[half]


@dataclass(frozen=True, slots=True)
class Goal:
    """One figure of a half, and within which limits it was promised."""

    text: str
    low: float
    high: float
    figure: Callable[[Sequence[Row]], float | None]
    signed: bool = False

    @property
    def wanted(self) -> str:
        """The limits in words."""
        if self.low == -self.high:
            return f"within +-{self.high:.1%}"
        if self.high == 1.0:
            return f"at least {self.low:.0%}"
        if self.low == 0.0:
            return f"at most {self.high:.1%}"
        return f"{self.low:.0%} to {self.high:.0%}"

    def said(self, rows: Sequence[Row]) -> str:
        """Return the figure of some points, and whether it is within the limits."""
        found = self.figure(rows)
        if found is None:
            return "-"
        text = f"{found:+.1%}" if self.signed else f"{found:.1%}"
        return text if self.low <= found <= self.high else f"**{text}**"


def _share(of: Callable[[Row], bool | None]) -> Callable[[Sequence[Row]], float | None]:
    """Return the share of the points of which something is true, among those of which it is known."""

    def share(rows: Sequence[Row]) -> float | None:
        known = [found for row in rows if (found := of(row)) is not None]
        return sum(known) / len(known) if known else None

    return share


def _over(
    together: Callable[[list[float]], float], of: Callable[[Row], float | None]
) -> Callable[[Sequence[Row]], float | None]:
    def figure(rows: Sequence[Row]) -> float | None:
        known = [found for row in rows if (found := of(row)) is not None]
        return together(known) if known else None

    return figure


def _p95(row: Row) -> bool | None:
    return abs(row.p95) <= 0.15 if row.measured.p95_width <= KNOWN else None


WITHOUT: Final = "raw: half-width without the machine's part, median"

GOALS: Final = (
    Goal("raw: mean inside the printed interval", 0.90, 0.98, _share(lambda r: r.inside)),
    Goal("raw: p95 inside", 0.90, 0.98, _share(lambda r: r.inside_p95)),
    Goal("raw: throughput inside", 0.90, 0.98, _share(lambda r: r.inside_throughput)),
    Goal(WITHOUT, 0.0, 0.08, _over(median, lambda r: r.width_without)),
    Goal("raw: without it and the noise of the run", 0.0, 0.08, _over(median, lambda r: r.width_model)),
    Goal("raw: half-width with it, median", 0.0, 0.25, _over(median, lambda r: r.width)),
    Goal("raw: half-width with it, largest", 0.0, 0.60, _over(max, lambda r: r.width)),
    Goal("corrected: within 10 %", 0.94, 1.0, _share(lambda r: abs(r.corrected) <= 0.10)),
    Goal("corrected: within 5 %", 0.70, 1.0, _share(lambda r: abs(r.corrected) <= 0.05)),
    Goal("corrected: median", 0.0, 0.035, _over(median, lambda r: abs(r.corrected))),
    Goal("corrected: bias", -0.015, 0.015, _over(fmean, lambda r: r.corrected), signed=True),
    Goal("corrected: largest", 0.0, 0.25, _over(max, lambda r: abs(r.corrected))),
    Goal("p95 within 15 %, where known to 5 %", 0.90, 1.0, _share(_p95)),
)


def _exactly_within(limit: float, rows: Sequence[Row]) -> float | None:
    """Return the share of the points whose corrected error an exact model would have within a limit."""
    known = [row.noise for row in rows if row.noise]
    return fmean(2 * NormalDist(0, sd).cdf(limit) - 1 for sd in known) if known else None


def _exact_median(rows: Sequence[Row]) -> float | None:
    """Return the median of the sizes of the errors that an exact model would have."""
    low, high = 0.0, 2.0
    if _exactly_within(high, rows) is None:
        return None
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (low, middle) if (_exactly_within(middle, rows) or 0.0) >= 0.5 else (middle, high)
    return high


def _beside_noise(rows: Sequence[Row]) -> float | None:
    """Return the root mean square of the corrected errors in standard deviations of their noise."""
    known = [row.corrected / row.noise for row in rows if row.noise]
    return math.sqrt(fmean(z * z for z in known)) if known else None


EXACT: Final[Mapping[str, Callable[[Sequence[Row]], float | None]]] = {
    "within 10 %": partial(_exactly_within, 0.10),
    "within 5 %": partial(_exactly_within, 0.05),
    "median": _exact_median,
}
"""What an exact model would reach: exploration and measurement know their means only to some percent."""


def _exact_lines(halves: Mapping[str, Sequence[Row]]) -> list[tuple[str, ...]]:
    """Return what an exact model would reach, and how much larger the errors are, a column per half."""
    lines = []
    for text, figure in EXACT.items():
        found = [figure(rows) for rows in halves.values()]
        lines.append((f"an exact model: {text}", "", *("-" if f is None else f"{f:.1%}" for f in found)))
    sizes = [_beside_noise(rows) for rows in halves.values()]
    text = "errors in standard deviations of those of an exact model, root mean square"
    return [*lines, (text, "", *("-" if s is None else f"{s:.2f}" for s in sizes))]


def goal_lines(halves: Mapping[str, Sequence[Row]]) -> list[tuple[str, ...]]:
    """Return what was promised and what came, a column per half; bold is outside of the limits."""
    count = [f"{len({r.system for r in rows})}, {len(rows)}" for rows in halves.values()]
    known = [str(sum(r.measured.p95_width <= KNOWN for r in rows)) for rows in halves.values()]
    lines = [(goal.text, goal.wanted, *(goal.said(rows) for rows in halves.values())) for goal in GOALS]
    return [
        ("systems, points", "", *count),
        *lines,
        ("points whose p95 is known to 5 %", "", *known),
        *_exact_lines(halves),
    ]


GROUP_HEAD: Final = ("points", "within 10 %", "within 5 %", "median", "bias", "p95 within 15 %", "raw inside")


def _group(rows: Sequence[Row]) -> tuple[str, ...]:
    if not rows:
        return ("0", *["-"] * (len(GROUP_HEAD) - 1))
    errors = [r.corrected for r in rows]
    sizes = [abs(error) for error in errors]
    p95, inside = _share(_p95)(rows), _share(lambda r: r.inside)(rows)
    return (
        str(len(rows)),
        f"{sum(s <= 0.10 for s in sizes) / len(sizes):.0%}",
        f"{sum(s <= 0.05 for s in sizes) / len(sizes):.0%}",
        f"{median(sizes):.1%}",
        f"{fmean(errors):+.1%}",
        "-" if p95 is None else f"{p95:.0%}",
        "-" if inside is None else f"{inside:.0%}",
    )


def feature_lines(halves: Mapping[str, Sequence[Row]]) -> list[tuple[str, ...]]:
    """Return the corrected errors of the systems that have a feature, a line per feature and half."""
    features = {row.system: _features(row.system) for rows in halves.values() for row in rows}
    named = dict.fromkeys(f for found in features.values() for f in found)
    return [
        (feature, name_of(half), *_group([r for r in rows if feature in features[r.system]]))
        for feature in named
        for half, rows in halves.items()
    ]


def _features(system: str) -> tuple[str, ...]:
    found = generated(system)
    return found.features if found is not None else ()


def kind_lines(halves: Mapping[str, Sequence[Row]]) -> list[tuple[str, ...]]:
    """Return the corrected errors of the points of a name, a line per name and half."""
    names = dict.fromkeys(row.point for rows in halves.values() for row in rows)
    return [
        (name, name_of(half), *_group([r for r in rows if r.point == name]))
        for name in names
        for half, rows in halves.items()
    ]


DATA_HEAD: Final = ("system", "half", "point", "measured ms", "as explored", "the model, unchanged")


def data_lines(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """Return what more data does: measured against the same load with as much as explored; not predicted."""
    before = {row.system: row.measured.response for row in rows if row.point == "half"}
    return [
        (
            row.system,
            name_of(row.half),
            row.change,
            f"{1000 * row.measured.response:.2f}",
            f"{row.measured.response / before[row.system] - 1:+.1%}" if row.system in before else "-",
            f"{row.corrected:+.1%}",
        )
        for row in rows
        if not row.covered
    ]


def open_questions(rows: Sequence[Row]) -> list[str]:
    """Return a line per point that wants an explanation: outside of its interval, or corrected far off."""
    lines = []
    for row in rows:
        said = []
        for name, inside in (("mean", row.inside), ("p95", row.inside_p95), ("rate", row.inside_throughput)):
            if inside is False:
                said.append(f"{name} outside")
        if abs(row.corrected) > LARGE:
            said.append(f"corrected {row.corrected:+.1%}")
        if said:
            lines.append(
                f"- {row.system} {row.point} ({row.change}): {', '.join(said)}; machine at {row.ratio:.2f},"
                f" load {row.load:.2f}"
            )
    return lines
