"""Chart of a study, step by step: an SVG in the style of Figs. 26 and 27 of the thesis.

One column per step, panels below each other; a circle for what was predicted, a dot for what is predicted for
the machine's speed in the run, a cross for what was measured, grey where the bottleneck is a new one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mup.cli.output.chart import nice_ticks
from mup.cli.output.chart_theme import LIGHT, begin, grid_lines, series, text

__all__ = ["Marks", "StepPanel", "draw_steps"]

COLUMN, LEFT, RIGHT, TOP = 46, 78, 20, 52
PANEL, GAP, LABELS = 190, 26, 96
SERIES = {"predicted": 0, "measured": 7, "error": 1, "corrected": 2}
"""Numbers of the colours."""

Marks = Sequence[float | None]
"""One value per step; None where there is none."""


@dataclass(frozen=True, slots=True)
class StepPanel:
    """One panel: values by kind (``predicted``, ``measured``, ``error``, ``corrected``), and what they are.

    Attributes:
        label: Of the vertical axis, with its unit.
        marks: What to draw.
        lines: Values at which to draw a line across.
    """

    label: str
    marks: Mapping[str, Marks]
    lines: Sequence[float] = ()


def draw_steps(
    title: str, x_label: str, names: Sequence[str], shifted: Sequence[bool], panels: Sequence[StepPanel]
) -> str:
    """Return a stand-alone SVG.

    Args:
        title: Of all.
        x_label: What the names of steps are.
        names: One per step.
        shifted: Which steps have a grey background.
        panels: At least one.
    """
    width = max(560, LEFT + RIGHT + COLUMN * len(names))
    column = (width - LEFT - RIGHT) / max(1, len(names))
    height = TOP + (PANEL + GAP) * len(panels) + LABELS
    kinds = [k for k in SERIES if any(k in panel.marks for panel in panels)]
    parts = begin(title, width, height, left=LEFT, font=12)
    for index, kind in enumerate(kinds):
        x = LEFT + 6 + 110 * index
        parts += [_mark(kind, x, 35), text(f'x="{x + 12}" y="39"', kind)]
    centres = [LEFT + column * (i + 0.5) for i in range(len(names))]
    for row, panel in enumerate(panels):
        parts += _panel(panel, TOP + (PANEL + GAP) * row, width, column, centres, shifted)
    bottom = TOP + (PANEL + GAP) * len(panels) - GAP
    parts += [
        text(f'transform="translate({x + 4:.1f} {bottom + 10}) rotate(-50)" text-anchor="end"', name)
        for x, name in zip(centres, names, strict=True)
    ]
    place = f'x="{(LEFT + width - RIGHT) / 2:.0f}" y="{height - 8}" text-anchor="middle"'
    parts += [text(place, x_label), "</svg>"]
    return "\n".join(parts)


def _panel(
    panel: StepPanel, top: int, width: float, column: float, centres: Sequence[float], shifted: Sequence[bool]
) -> list[str]:
    values = [v for marks in panel.marks.values() for v in marks if v is not None]
    lowest, highest = min([*values, *panel.lines, 0.0]), max([*values, *panel.lines, 0.0])
    # One step on both sides of 0: of the side that reaches further.
    step = nice_ticks(max(highest, -lowest))[1]
    below, above = (math.ceil(end / step - 1e-9) for end in (-lowest, highest))
    ticks = [i * step for i in range(-below, max(above, 1 - below) + 1)]
    low, high = ticks[0], ticks[-1]
    bottom, right = top + PANEL, width - RIGHT

    def y_of(value: float) -> float:
        return bottom - PANEL * (value - low) / (high - low)

    parts = [
        f'<rect x="{x - column / 2:.1f}" y="{top}" width="{column:.1f}" height="{PANEL}" class="shade"'
        f' fill="{LIGHT.shade}"/>'
        for x, is_new in zip(centres, shifted, strict=True)
        if is_new
    ]
    parts += grid_lines([(y_of(tick), tick) for tick in ticks], LEFT, right)
    parts += [
        f'<line x1="{LEFT}" x2="{right:.1f}" y1="{y_of(v):.1f}" y2="{y_of(v):.1f}" class="mark"'
        f' stroke="{LIGHT.soft}" stroke-dasharray="4 4"/>'
        for v in panel.lines
    ]
    place = f'transform="translate(18 {(top + bottom) / 2:.0f}) rotate(-90)" text-anchor="middle"'
    parts.append(text(place, panel.label))
    parts += [
        _mark(kind, x, y_of(value))
        for kind in SERIES
        for x, value in zip(centres, panel.marks.get(kind, ()), strict=kind in panel.marks)
        if value is not None
    ]
    return parts


def _mark(kind: str, x: float, y: float) -> str:
    line = series(SERIES[kind])
    if kind == "predicted":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="none" {line} stroke-width="1.6"/>'
    if kind == "corrected":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" {series(SERIES[kind], fill=True)}/>'
    shape = "l8 8m0 -8l-8 8" if kind == "measured" else "m0 4h8m-4 -4v8"
    return f'<path d="M{x - 4:.1f} {y - 4:.1f}{shape}" {line} stroke-width="1.6" fill="none"/>'
