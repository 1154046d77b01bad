"""Colours of charts on light and dark backgrounds, in a style that affects charts alone.

Every selector begins with ``.mup-chart``: a chart can stand inside any page. Colours are attributes as well,
for programs that draw SVG without style sheets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

__all__ = ["CHART_CLASS", "DARK", "LIGHT", "Palette", "begin", "series", "style", "text"]

CHART_CLASS = "mup-chart"
FONT = 'system-ui, -apple-system, "Segoe UI", "DejaVu Sans", Arial, sans-serif'


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours on one background; those of ``series`` are of curves that have to be told apart."""

    paper: str
    ink: str
    soft: str
    grid: str
    shade: str
    series: tuple[str, ...]


LIGHT = Palette(
    paper="#ffffff",
    ink="#1f2937",
    soft="#4b5563",
    grid="#e5e7eb",
    shade="#e2e4e9",
    series=("#1f6fb2", "#c2410c", "#15803d", "#7e22ce", "#b45309", "#0f766e", "#be185d", "#4b5563"),
)
DARK = Palette(
    paper="#171b20",
    ink="#e4e7eb",
    soft="#a7b1bc",
    grid="#3a424c",
    shade="#2a3038",
    series=("#6cb2f0", "#fb923c", "#4ade80", "#c084fc", "#fbbf24", "#2dd4bf", "#f472b6", "#a7b1bc"),
)


def _rules(palette: Palette) -> list[str]:
    rules = {
        ".paper": f"fill: {palette.paper}",
        "text": f"fill: {palette.ink}",
        "text.soft": f"fill: {palette.soft}",
        ".grid": f"stroke: {palette.grid}",
        ".mark": f"stroke: {palette.soft}",
        ".shade": f"fill: {palette.shade}",
    }
    for number, colour in enumerate(palette.series):
        rules |= {f".s{number}": f"stroke: {colour}", f".f{number}": f"fill: {colour}"}
        rules[f"text.t{number}"] = f"fill: {colour}"
    return [f".{CHART_CLASS} {selector} {{ {rule}; }}" for selector, rule in rules.items()]


def style() -> str:
    """Return the ``<style>`` element of a chart."""
    light = [f".{CHART_CLASS} {{ color-scheme: light dark; }}", *_rules(LIGHT)]
    return "\n".join(
        ["<style>", *light, "@media (prefers-color-scheme: dark) {", *_rules(DARK), "}", "</style>"]
    )


def begin(title: str, width: float, height: float, *, left: float, font: int = 13) -> list[str]:
    """Return the start of a stand-alone SVG: its style, its background and its title."""
    box = f'viewBox="0 0 {width:.0f} {height:.0f}"'
    look = f'font-family="{escape(FONT)}" font-size="{font}" role="img" aria-label="{escape(title)}"'
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{CHART_CLASS}" {box} {look}>',
        style(),
        f'<rect width="{width:.0f}" height="{height:.0f}" class="paper" fill="{LIGHT.paper}"/>',
        text(f'x="{left:.0f}" y="20" font-size="{font + 2}" font-weight="600"', title),
    ]


def text(place: str, words: str, *, soft: bool = False, number: int | None = None) -> str:
    """Return a text at a place, in the colour of text, or in that of a curve."""
    if number is not None:
        look = f'class="t{number % len(LIGHT.series)}" fill="{LIGHT.series[number % len(LIGHT.series)]}"'
    else:
        look = f'class="soft" fill="{LIGHT.soft}"' if soft else f'fill="{LIGHT.ink}"'
    return f"<text {place} {look}>{escape(words)}</text>"


def series(number: int, *, fill: bool = False) -> str:
    """Return the attributes of something drawn in the colour of a curve."""
    index = number % len(LIGHT.series)
    what, name = ("fill", "f") if fill else ("stroke", "s")
    return f'class="{name}{index}" {what}="{LIGHT.series[index]}"'


def grid_lines(ticks: Sequence[tuple[float, float]], left: float, right: float) -> list[str]:
    """Return horizontal lines with what they stand for, from (place, value) of each."""
    parts = []
    for y, value in ticks:
        line = f'x1="{left:.0f}" x2="{right:.1f}" y1="{y:.1f}" y2="{y:.1f}"'
        parts.append(f'<line {line} class="grid" stroke="{LIGHT.grid}"/>')
        parts.append(text(f'x="{left - 8:.0f}" y="{y + 4:.1f}" text-anchor="end"', f"{value:g}", soft=True))
    return parts
