"""How does a study look, step by step? An SVG in the style of Figs. 26 and 27 of the thesis.

One column per step, panels below each other; a circle for what was predicted, a dot for what is predicted for
the machine's speed in the run, a cross for what was measured, grey where the bottleneck is a new one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from mup.cli.chart import nice_ticks

__all__ = ["Marks", "StepPanel", "draw_steps"]

COLUMN, LEFT, RIGHT, TOP = 46, 78, 20, 52
PANEL, GAP, LABELS = 190, 26, 96
TEXT, GRID, GREY = "#1f2937", "#e5e7eb", "#e2e4e9"
COLOURS = {"predicted": "#2563eb", "measured": "#111827", "error": "#dc2626", "corrected": "#059669"}

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
    kinds = [k for k in COLOURS if any(k in panel.marks for panel in panels)]
    begin = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" '
        f'font-family="system-ui, sans-serif" font-size="12" role="img" aria-label="{escape(title)}">'
    )
    parts = [
        begin,
        f'<rect width="{width:.0f}" height="{height}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="20" font-size="15" font-weight="600" fill="{TEXT}">{escape(title)}</text>',
    ]
    for index, kind in enumerate(kinds):
        x = LEFT + 6 + 110 * index
        parts += [_mark(kind, x, 35), f'<text x="{x + 12}" y="39" fill="{TEXT}">{kind}</text>']
    centres = [LEFT + column * (i + 0.5) for i in range(len(names))]
    for row, panel in enumerate(panels):
        parts += _panel(panel, TOP + (PANEL + GAP) * row, width, column, centres, shifted)
    bottom = TOP + (PANEL + GAP) * len(panels) - GAP
    parts += [
        f'<text transform="translate({x + 4:.1f} {bottom + 10}) rotate(-50)" text-anchor="end" fill="{TEXT}">'
        f"{escape(name)}</text>"
        for x, name in zip(centres, names, strict=True)
    ]
    parts.append(
        f'<text x="{(LEFT + width - RIGHT) / 2:.0f}" y="{height - 8}" text-anchor="middle" fill="{TEXT}">'
        f"{escape(x_label)}</text></svg>"
    )
    return "\n".join(parts)


def _panel(
    panel: StepPanel, top: int, width: float, column: float, centres: Sequence[float], shifted: Sequence[bool]
) -> list[str]:
    values = [v for marks in panel.marks.values() for v in marks if v is not None]
    lowest, highest = min([*values, *panel.lines, 0.0]), max([*values, *panel.lines, 0.0])
    ticks = nice_ticks(highest)
    if lowest < 0:
        ticks = [-t for t in nice_ticks(-lowest)[:0:-1]] + ticks
    low, high = ticks[0], ticks[-1]
    bottom, right = top + PANEL, width - RIGHT

    def y_of(value: float) -> float:
        return bottom - PANEL * (value - low) / (high - low)

    parts = [
        f'<rect x="{x - column / 2:.1f}" y="{top}" width="{column:.1f}" height="{PANEL}" fill="{GREY}"/>'
        for x, is_new in zip(centres, shifted, strict=True)
        if is_new
    ]
    for tick in ticks:
        y = y_of(tick)
        parts += [
            f'<line x1="{LEFT}" x2="{right:.1f}" y1="{y:.1f}" y2="{y:.1f}" stroke="{GRID}"/>',
            f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" fill="{TEXT}">{tick:g}</text>',
        ]
    parts += [
        f'<line x1="{LEFT}" x2="{right:.1f}" y1="{y_of(v):.1f}" y2="{y_of(v):.1f}" stroke="{TEXT}"'
        ' stroke-dasharray="4 4"/>'
        for v in panel.lines
    ]
    parts.append(
        f'<text transform="translate(18 {(top + bottom) / 2:.0f}) rotate(-90)" text-anchor="middle"'
        f' fill="{TEXT}">{escape(panel.label)}</text>'
    )
    parts += [
        _mark(kind, x, y_of(value))
        for kind in COLOURS
        for x, value in zip(centres, panel.marks.get(kind, ()), strict=kind in panel.marks)
        if value is not None
    ]
    return parts


def _mark(kind: str, x: float, y: float) -> str:
    colour = COLOURS[kind]
    if kind == "predicted":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="none" stroke="{colour}" stroke-width="1.6"/>'
    if kind == "corrected":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colour}"/>'
    shape = "l8 8m0 -8l-8 8" if kind == "measured" else "m0 4h8m-4 -4v8"
    return f'<path d="M{x - 4:.1f} {y - 4:.1f}{shape}" stroke="{colour}" stroke-width="1.6" fill="none"/>'
