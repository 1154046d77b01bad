"""SVG charts of predictions against measurements, and of several predictions.

Predictions are a line with a band (their 95 % interval), measurements are points with bars.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mup.cli.output.chart_theme import LIGHT, begin, grid_lines, series, text

__all__ = ["Curve", "Mark", "Panel", "draw_chart", "draw_panels", "nice_ticks"]

WIDTH, HEIGHT = 600, 380
FONT = 15
"""Large enough that a chart as wide as a phone can be read."""
LEFT, RIGHT, TOP, BOTTOM = 76, 22, 48, 56
PREDICTED, MEASURED = 0, 1
"""Numbers of series."""
LEGEND_LINE = 20
LABEL_GAP = 8.5
"""SVG units a character of a label takes, about: labels of values that are too close are left out."""
BEYOND = 1.25
"""A mark that is no further than so many times the last value is drawn: the axis goes on to it."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Values over x, each between two bounds (None where there are none)."""

    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float | None]
    high: Sequence[float | None]

    @property
    def lows(self) -> list[float]:
        """The lower bounds, or the values themselves, at least 0."""
        return [max(0.0, y if low is None else low) for y, low in zip(self.y, self.low, strict=True)]

    @property
    def highs(self) -> list[float]:
        """The upper bounds, or the values themselves."""
        return [y if high is None else high for y, high in zip(self.y, self.high, strict=True)]


def nice_ticks(high: float, count: int = 5) -> list[float]:
    """Return round values from 0 to at least ``high``."""
    if high <= 0:
        return [0.0, 1.0]
    raw = high / count
    magnitude = 10 ** math.floor(math.log10(raw))
    step = next(m * magnitude for m in (1, 2, 2.5, 5, 10) if m * magnitude >= raw)
    return [i * step for i in range(math.ceil(high / step - 1e-9) + 1)]


def draw_chart(
    title: str,
    x_label: str,
    y_label: str,
    predicted: Curve,
    measured: Curve,
    corrected: Sequence[float] = (),
) -> str:
    """Return a stand-alone SVG; x is spread logarithmically, which its label says, y starts at 0.

    Args:
        title: Of the chart.
        x_label: What x is.
        y_label: What y is.
        predicted: A line with a band.
        measured: Points with bars.
        corrected: Other predictions at the same x, drawn as a dashed line; may be empty.
    """
    xs = sorted({*predicted.x, *measured.x})
    ticks = nice_ticks(max([*predicted.highs, *measured.highs, *corrected], default=1.0))
    low, high = math.log(xs[0]), math.log(xs[-1])
    span = high - low or 1.0
    top = TOP + LEGEND_LINE * (2 if corrected else 1)

    def px(x: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (math.log(x) - low) / span

    def py(y: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - top - BOTTOM) * y / ticks[-1]

    right, bottom, middle = WIDTH - RIGHT, HEIGHT - BOTTOM, (top + HEIGHT - BOTTOM) / 2
    if len(xs) > 1:
        x_label += ", logarithmic axis"
    parts = begin(title, WIDTH, HEIGHT, left=LEFT, font=FONT)
    parts += grid_lines([(py(tick), tick) for tick in ticks], LEFT, right)
    parts += _x_labels([(px(x), f"{x:g}") for x in xs], bottom)
    parts += [
        text(f'x="{(LEFT + right) / 2:.1f}" y="{HEIGHT - 10}" text-anchor="middle"', x_label),
        text(f'transform="translate(18 {middle:.1f}) rotate(-90)" text-anchor="middle"', y_label),
    ]
    upper = [f"{px(x):.1f},{py(y):.1f}" for x, y in zip(predicted.x, predicted.highs, strict=True)]
    lower = [f"{px(x):.1f},{py(y):.1f}" for x, y in zip(predicted.x, predicted.lows, strict=True)]
    line = " ".join(f"{px(x):.1f},{py(y):.1f}" for x, y in zip(predicted.x, predicted.y, strict=True))
    parts.append(
        f'<polygon points="{" ".join(upper + lower[::-1])}" {series(PREDICTED, fill=True)} opacity="0.2"/>'
        f'<polyline points="{line}" fill="none" {series(PREDICTED)} stroke-width="2"/>'
    )
    if corrected:
        dashed = " ".join(f"{px(x):.1f},{py(y):.1f}" for x, y in zip(predicted.x, corrected, strict=True))
        parts.append(
            f'<polyline points="{dashed}" fill="none" {series(PREDICTED)} stroke-dasharray="5 4"/>'
            + text(
                f'x="{LEFT}" y="{TOP + LEGEND_LINE}"', "dashed: corrected for the machine's speed", soft=True
            )
        )
    for x, y, low_end, high_end in zip(measured.x, measured.y, measured.lows, measured.highs, strict=True):
        cx, cy = px(x), py(y)
        if high_end > low_end:
            above, below = py(high_end), py(low_end)
            bar = f"M{cx:.1f} {above:.1f}V{below:.1f}M{cx - 5:.1f} {above:.1f}h10M{cx - 5:.1f} {below:.1f}h10"
            parts.append(f'<path d="{bar}" {series(MEASURED)} stroke-width="1.5" fill="none"/>')
        parts.append(f'<circle cx="{cx:.1f}" cy="{cy:.1f}" r="4" {series(MEASURED, fill=True)}/>')
    parts += [
        f'<path d="M{LEFT} {TOP - 4}h24" {series(PREDICTED)} stroke-width="2"/>',
        text(f'x="{LEFT + 30}" y="{TOP}"', "predicted, 95 %"),
        f'<circle cx="{LEFT + 176}" cy="{TOP - 4}" r="4" {series(MEASURED, fill=True)}/>',
        text(f'x="{LEFT + 186}" y="{TOP}"', "measured, 95 %"),
        "</svg>",
    ]
    return "\n".join(parts)


@dataclass(frozen=True, slots=True)
class Mark:
    """A vertical line at some x, of all curves or of one.

    Attributes:
        x: Where, in the unit of the axis.
        label: What it stands for.
        curve: The name of the curve it is about; empty: all of them.
    """

    x: float
    label: str
    curve: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """One chart of several: curves by name, all over the same x, and what their y is."""

    y_label: str
    curves: Mapping[str, Curve]


@dataclass(frozen=True, slots=True)
class _Axis:
    """Where the values of x stand."""

    places: tuple[float, ...]
    """Of the values, from 0 (left) to 1 (right)."""
    first: float = 0.0
    length: float = 1.0
    """In the unit of x: what 0 stands for, and how much lies between 0 and 1."""

    def px(self, place: float) -> float:
        return LEFT + 12 + (WIDTH - LEFT - RIGHT - 24) * place

    def of_index(self, index: float) -> float:
        return self.px(self.places[int(index)])

    def of_value(self, value: float) -> float:
        return self.px((value - self.first) / self.length)


def _axis(count: int, values: Sequence[float] | None, marks: Sequence[Mark]) -> _Axis:
    """Return equal steps, or positions proportional to values."""
    if values is None or len(set(values)) < 2:
        return _Axis(tuple((i + 0.5) / max(1, count) for i in range(count)))
    low, high = min(values), max(values)
    inside = [m.x for m in marks if m.x <= BEYOND * high]
    high = max([high, *inside])
    low = min(0.0, low) if low <= high / 2 else low
    return _Axis(tuple((v - low) / (high - low) for v in values), low, high - low)


def draw_panels(
    title: str,
    x_label: str,
    x_names: Sequence[str],
    panels: Sequence[Panel],
    *,
    values: Sequence[float] | None = None,
    marks: Sequence[Mark] = (),
    notes: Sequence[str] = (),
) -> str:
    """Return a stand-alone SVG of charts below each other; y starts at 0.

    Args:
        title: Of all.
        x_label: What the values of x are.
        x_names: The values of x as text; the x of a curve are positions in this list.
        panels: At least one; curves of the same name have the same colour.
        values: The values of x as numbers: distances on the axis are proportional to theirs. None: x is one
            step per value.
        marks: Vertical lines; only with values. One beyond the axis becomes a note.
        notes: Sentences below the title.
    """
    names = list(dict.fromkeys(name for panel in panels for name in panel.curves))
    numbers = {name: i for i, name in enumerate(names)}
    axis = _axis(len(x_names), values, marks)
    shown = [m for m in marks if values is not None and axis.of_value(m.x) <= WIDTH - RIGHT]
    notes = [*notes, *(f"{m.label}: beyond this axis" for m in marks if m not in shown)]
    legend = names if len(names) > 1 else []
    head = TOP + LEGEND_LINE * (len(legend) + len(notes))
    parts = begin(title, WIDTH, head + HEIGHT * len(panels), left=LEFT, font=FONT)
    for row, note in enumerate(notes):
        parts.append(text(f'x="{LEFT}" y="{TOP + LEGEND_LINE * row}"', note, soft=True))
    for row, name in enumerate(legend, start=len(notes)):
        y = TOP + LEGEND_LINE * row
        thick = _thickness(numbers[name], len(names))
        parts += [
            f'<path d="M{LEFT} {y - 4}h24" {series(numbers[name])} stroke-width="{thick:.1f}"/>',
            text(f'x="{LEFT + 32}" y="{y}"', name),
        ]
    for index, panel in enumerate(panels):
        parts += _panel(panel, x_label, x_names, numbers, axis, shown, head + HEIGHT * index)
    parts.append("</svg>")
    return "\n".join(parts)


def _thickness(number: int, count: int) -> float:
    """Return the width of a line: the first ones are wider, so that curves that coincide are both seen."""
    return 2.0 + (min(2.0, 6 / (count - 1)) * (count - 1 - number) if count > 1 else 0.0)


def _x_labels(places: Sequence[tuple[float, str]], bottom: float) -> list[str]:
    """Return the labels of x that do not run into each other; the last one is always there."""
    kept: list[tuple[float, str]] = []
    for x, name in reversed(places):
        room = kept[-1][0] - x if kept else math.inf
        if room >= LABEL_GAP * (len(name) + len(kept[-1][1] if kept else "")) / 2 + 4:
            kept.append((x, name))
    return [
        text(f'x="{x:.1f}" y="{bottom + 20:.0f}" text-anchor="middle"', name, soft=True)
        for x, name in reversed(kept)
    ]


def _panel(
    panel: Panel,
    x_label: str,
    x_names: Sequence[str],
    numbers: Mapping[str, int],
    axis: _Axis,
    marks: Sequence[Mark],
    offset: int,
) -> list[str]:
    top, bottom, right = offset + 10, offset + HEIGHT - BOTTOM, WIDTH - RIGHT
    ticks = nice_ticks(max((y for c in panel.curves.values() for y in c.highs), default=1.0))

    def py(y: float) -> float:
        return bottom - (bottom - top) * y / ticks[-1]

    parts = grid_lines([(py(tick), tick) for tick in ticks], LEFT, right)
    places = [axis.px(place) for place in axis.places]
    parts += _x_labels([(x, name) for x, name in sorted(zip(places, x_names, strict=True)) if name], bottom)
    for x in places:
        tick = f"M{x:.1f} {bottom}v5"
        parts.append(f'<path d="{tick}" class="mark" stroke="{LIGHT.soft}"/>')
    middle = (top + bottom) / 2
    for place, label in (
        (f'x="{(LEFT + right) / 2:.1f}" y="{bottom + 42}"', x_label),
        (f'transform="translate(18 {middle:.1f}) rotate(-90)"', panel.y_label),
    ):
        parts.append(text(f'{place} text-anchor="middle"', label))
    for row, mark in enumerate(marks):
        parts += _mark(mark, numbers, axis.of_value(mark.x), top, bottom, row)
    for name, curve in panel.curves.items():
        number = numbers[name]
        points = [
            (axis.of_index(x), py(low), py(y), py(high))
            for x, low, y, high in sorted(
                zip(curve.x, curve.lows, curve.y, curve.highs, strict=True),
                key=lambda point: axis.of_index(point[0]),
            )
        ]
        upper = [f"{x:.1f},{high:.1f}" for x, _, _, high in points]
        lower = [f"{x:.1f},{min(low, bottom):.1f}" for x, low, _, _ in points]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, _, y, _ in points)
        thick = _thickness(number, len(numbers))
        parts += [
            f'<polygon points="{" ".join(upper + lower[::-1])}" {series(number, fill=True)} opacity="0.18"/>',
            f'<polyline points="{line}" fill="none" {series(number)} stroke-width="{thick:.1f}"/>',
        ]
        for x, low, y, high in points:
            bar = (
                f"M{x:.1f} {high:.1f}V{min(low, bottom):.1f}M{x - 4:.1f} {high:.1f}h8M{x - 4:.1f} {low:.1f}h8"
            )
            parts += [
                f'<path d="{bar}" {series(number)}/>',
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" {series(number, fill=True)}/>',
            ]
    return parts


def _mark(mark: Mark, numbers: Mapping[str, int], x: float, top: float, bottom: float, row: int) -> list[str]:
    """Return a vertical line with its label, on the side that has room for it."""
    number = numbers.get(mark.curve)
    look = f'class="mark" stroke="{LIGHT.soft}"' if number is None else series(number)
    left = x > WIDTH / 2
    anchor = f'x="{x - 5 if left else x + 5:.1f}" y="{top + 14 + 16 * row:.0f}"'
    return [
        f'<path d="M{x:.1f} {top}V{bottom}" {look} stroke-width="1.5" stroke-dasharray="6 4"/>',
        text(f'{anchor} text-anchor="{"end" if left else "start"}"', mark.label, soft=True),
    ]
