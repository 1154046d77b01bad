"""How is a curve drawn? SVG charts of predictions against measurements, and of several predictions.

Predictions are a line with a band (their 95 % interval), measurements are points with bars.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

__all__ = ["Curve", "Panel", "draw_chart", "draw_panels"]

WIDTH, HEIGHT = 720, 380
LEFT, RIGHT, TOP, BOTTOM = 70, 30, 44, 52
PREDICTED, MEASURED = "#1f6fb2", "#c2410c"
COLOURS = (PREDICTED, MEASURED, "#15803d", "#7e22ce", "#b45309", "#0f766e", "#be185d", "#4b5563")
LEGEND_LINE = 18


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
    """Return a stand-alone SVG; x is spread logarithmically, y starts at 0.

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

    def px(x: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (math.log(x) - low) / span

    def py(y: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * y / ticks[-1]

    right, bottom, middle = WIDTH - RIGHT, HEIGHT - BOTTOM, (TOP + HEIGHT - BOTTOM) / 2
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="system-ui, sans-serif" font-size="13" role="img" aria-label="{escape(title)}">'
    )
    parts = [
        head,
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="20" font-size="15" font-weight="600" fill="#1f2937">{escape(title)}</text>',
    ]
    for tick in ticks:
        y = py(tick)
        parts += [
            f'<line x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e5e7eb"/>',
            f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" fill="#4b5563">{tick:g}</text>',
        ]
    parts += [
        f'<text x="{px(x):.1f}" y="{bottom + 20}" text-anchor="middle" fill="#4b5563">{x:g}</text>'
        for x in xs
    ]
    parts += [
        f'<text x="{(LEFT + right) / 2:.1f}" y="{HEIGHT - 10}" text-anchor="middle" fill="#1f2937">',
        f"{escape(x_label)}</text>",
        f'<text transform="translate(18 {middle:.1f}) rotate(-90)" text-anchor="middle" fill="#1f2937">',
        f"{escape(y_label)}</text>",
    ]
    upper = [f"{px(x):.1f},{py(y):.1f}" for x, y in zip(predicted.x, predicted.highs, strict=True)]
    lower = [f"{px(x):.1f},{py(y):.1f}" for x, y in zip(predicted.x, predicted.lows, strict=True)]
    line = " ".join(f"{px(x):.1f},{py(y):.1f}" for x, y in zip(predicted.x, predicted.y, strict=True))
    parts.append(
        f'<polygon points="{" ".join(upper + lower[::-1])}" fill="{PREDICTED}" opacity="0.18"/>'
        f'<polyline points="{line}" fill="none" stroke="{PREDICTED}" stroke-width="2"/>'
    )
    if corrected:
        dashed = " ".join(f"{px(x):.1f},{py(y):.1f}" for x, y in zip(predicted.x, corrected, strict=True))
        parts.append(
            f'<polyline points="{dashed}" fill="none" stroke="{PREDICTED}" stroke-dasharray="5 4"/>'
            f'<text x="{WIDTH - 270}" y="36" fill="#4b5563">dashed: at the measured speed</text>'
        )
    for x, y, low_end, high_end in zip(measured.x, measured.y, measured.lows, measured.highs, strict=True):
        cx, cy = px(x), py(y)
        if high_end > low_end:
            above, below = py(high_end), py(low_end)
            bar = f"M{cx:.1f} {above:.1f}V{below:.1f}M{cx - 5:.1f} {above:.1f}h10M{cx - 5:.1f} {below:.1f}h10"
            parts.append(f'<path d="{bar}" stroke="{MEASURED}" stroke-width="1.5" fill="none"/>')
        parts.append(f'<circle cx="{cx:.1f}" cy="{cy:.1f}" r="4" fill="{MEASURED}"/>')
    parts.append(
        f'<line x1="{WIDTH - 300}" x2="{WIDTH - 276}" y1="16" y2="16" stroke="{PREDICTED}" stroke-width="2"/>'
        f'<text x="{WIDTH - 270}" y="20" fill="#1f2937">predicted, 95 %</text>'
        f'<circle cx="{WIDTH - 146}" cy="16" r="4" fill="{MEASURED}"/>'
        f'<text x="{WIDTH - 136}" y="20" fill="#1f2937">measured, 95 %</text></svg>'
    )
    return "\n".join(parts)


@dataclass(frozen=True, slots=True)
class Panel:
    """One chart of several: curves by name, all over the same x, and what their y is."""

    y_label: str
    curves: Mapping[str, Curve]


def draw_panels(title: str, x_label: str, x_names: Sequence[str], panels: Sequence[Panel]) -> str:
    """Return a stand-alone SVG of charts below each other; x is one step per value, y starts at 0.

    Args:
        title: Of all.
        x_label: What the values of x are.
        x_names: The values of x as text; the x of a curve are positions in this list.
        panels: At least one; curves of the same name have the same colour.
    """
    names = list(dict.fromkeys(name for panel in panels for name in panel.curves))
    colours = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(names)}
    head = TOP + LEGEND_LINE * (len(names) if len(names) > 1 else 0)
    height = head + HEIGHT * len(panels)
    begin = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'font-family="system-ui, sans-serif" font-size="13" role="img" aria-label="{escape(title)}">'
    )
    parts = [
        begin,
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="20" font-size="15" font-weight="600" fill="#1f2937">{escape(title)}</text>',
    ]
    if len(names) > 1:
        for row, name in enumerate(names):
            y = TOP + LEGEND_LINE * row
            line = f'x1="{LEFT}" x2="{LEFT + 24}" y1="{y - 4}" y2="{y - 4}"'
            parts += [
                f'<line {line} stroke="{colours[name]}" stroke-width="2"/>',
                f'<text x="{LEFT + 32}" y="{y}" fill="#1f2937">{escape(name)}</text>',
            ]
    for index, panel in enumerate(panels):
        parts += _panel(panel, x_label, x_names, colours, head + HEIGHT * index)
    parts.append("</svg>")
    return "\n".join(parts)


def _panel(
    panel: Panel, x_label: str, x_names: Sequence[str], colours: Mapping[str, str], offset: int
) -> list[str]:
    top, bottom, right = offset + 10, offset + HEIGHT - BOTTOM, WIDTH - RIGHT
    ticks = nice_ticks(max((y for c in panel.curves.values() for y in c.highs), default=1.0))
    step = (right - LEFT) / max(1, len(x_names))

    def px(x: float) -> float:
        return LEFT + step * (x + 0.5)

    def py(y: float) -> float:
        return bottom - (bottom - top) * y / ticks[-1]

    parts = []
    for tick in ticks:
        parts += [
            f'<line x1="{LEFT}" x2="{right}" y1="{py(tick):.1f}" y2="{py(tick):.1f}" stroke="#e5e7eb"/>',
            f'<text x="{LEFT - 8}" y="{py(tick) + 4:.1f}" text-anchor="end" fill="#4b5563">{tick:g}</text>',
        ]
    parts += [
        f'<text x="{px(i):.1f}" y="{bottom + 20}" text-anchor="middle" fill="#4b5563">{escape(name)}</text>'
        for i, name in enumerate(x_names)
    ]
    middle = (top + bottom) / 2
    for place, label in (
        (f'x="{(LEFT + right) / 2:.1f}" y="{bottom + 42}"', x_label),
        (f'transform="translate(18 {middle:.1f}) rotate(-90)"', panel.y_label),
    ):
        parts.append(f'<text {place} text-anchor="middle" fill="#1f2937">{escape(label)}</text>')
    for name, curve in panel.curves.items():
        points = [
            (px(x), py(low), py(y), py(high))
            for x, low, y, high in zip(curve.x, curve.lows, curve.y, curve.highs, strict=True)
        ]
        upper = [f"{x:.1f},{high:.1f}" for x, _, _, high in points]
        lower = [f"{x:.1f},{min(low, bottom):.1f}" for x, low, _, _ in points]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, _, y, _ in points)
        colour = colours[name]
        parts += [
            f'<polygon points="{" ".join(upper + lower[::-1])}" fill="{colour}" opacity="0.18"/>',
            f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>',
        ]
        for x, low, y, high in points:
            parts += [
                f'<path d="M{x:.1f} {high:.1f}V{min(low, bottom):.1f}" stroke="{colour}"/>',
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>',
            ]
    return parts
