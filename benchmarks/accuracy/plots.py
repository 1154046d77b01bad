"""SVG pictures of errors: one system over its loads, and all errors over utilization."""

from __future__ import annotations

import math
from collections.abc import Sequence
from xml.sax.saxutils import escape

from accuracy.judge import Row

__all__ = ["draw_errors", "draw_system"]

WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 70, 24, 46, 52
PREDICTED, MEASURED, TRAINING = "#1f6fb2", "#c2410c", "#6b7280"
GRID, TEXT = "#e5e7eb", "#1f2937"
WORST_SHOWN = 0.3


class _Canvas:
    """A chart area with linear y and linear or logarithmic x."""

    def __init__(self, title: str, x: tuple[float, float], y: tuple[float, float], *, log: bool) -> None:
        self.x, self.y, self.log = x, y, log
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
            f'<g font-family="system-ui, sans-serif" font-size="13"><title>{escape(title)}</title>',
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
            f'<text x="{LEFT}" y="20" font-size="15" font-weight="600" fill="{TEXT}">{escape(title)}</text>',
        ]

    def px(self, value: float) -> float:
        low, high = self.x
        if self.log:
            low, high, value = math.log(low), math.log(high), math.log(value)
        return LEFT + (WIDTH - LEFT - RIGHT) * (value - low) / (high - low or 1.0)

    def py(self, value: float) -> float:
        low, high = self.y
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - low) / (high - low or 1.0)

    def grid(self, ticks: Sequence[float], labels: Sequence[str]) -> None:
        for tick, label in zip(ticks, labels, strict=True):
            y = self.py(tick)
            self.parts += [
                f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="{GRID}"/>',
                f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" fill="#4b5563">{label}</text>',
            ]

    def below(self, values: Sequence[float]) -> None:
        for value in values:
            x = self.px(value)
            self.parts.append(
                f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle" fill="#4b5563">'
                f"{value:g}</text>"
            )

    def names(self, x: str, y: str) -> None:
        middle = (TOP + HEIGHT - BOTTOM) / 2
        self.parts += [
            f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 12}" text-anchor="middle" fill="{TEXT}">',
            f"{escape(x)}</text>",
            f'<text transform="translate(18 {middle}) rotate(-90)" text-anchor="middle" fill="{TEXT}">',
            f"{escape(y)}</text>",
        ]

    def bar(self, x: float, low: float, high: float, colour: str) -> None:
        px, below, above = self.px(x), self.py(low), self.py(high)
        path = f"M{px:.1f} {above:.1f}V{below:.1f}M{px - 4:.1f} {above:.1f}h8M{px - 4:.1f} {below:.1f}h8"
        self.parts.append(f'<path d="{path}" stroke="{colour}" stroke-width="1.5" fill="none"/>')

    def dot(self, x: float, y: float, colour: str, *, hollow: bool = False, title: str = "") -> None:
        fill = "#ffffff" if hollow else colour
        text = f"<title>{escape(title)}</title>" if title else ""
        self.parts.append(
            f'<circle cx="{self.px(x):.1f}" cy="{self.py(y):.1f}" r="4" fill="{fill}" stroke="{colour}"'
            f' stroke-width="1.5">{text}</circle>'
        )

    def legend(self, items: Sequence[tuple[str, str, bool]]) -> None:
        x = float(WIDTH - RIGHT)
        for text, colour, hollow in reversed(items):
            x -= 7.2 * len(text)
            self.parts.append(f'<text x="{x:.0f}" y="38" fill="{TEXT}">{escape(text)}</text>')
            x -= 12
            fill = "#ffffff" if hollow else colour
            self.parts.append(f'<circle cx="{x:.0f}" cy="34" r="4" fill="{fill}" stroke="{colour}"/>')
            x -= 18

    def done(self) -> str:
        return "\n".join([*self.parts, "</g></svg>", ""])


def _ticks(high: float) -> list[float]:
    raw = high / 5
    magnitude = 10 ** math.floor(math.log10(raw))
    step = next(m * magnitude for m in (1, 2, 2.5, 5, 10) if m * magnitude >= raw)
    return [step * k for k in range(math.ceil(high / step - 1e-9) + 1)]


def draw_system(name: str, rows: Sequence[Row]) -> str:
    """Return the picture of one system: response times over clients, predicted and measured."""
    clients = [int(r.change.split()[0]) for r in rows]
    tops = [1000 * max(r.predicted * (1 + (r.width or 0)), r.measured.response) for r in rows]
    ticks = _ticks(1.05 * max(tops))
    canvas = _Canvas(name, (min(clients), max(clients)), (0.0, ticks[-1]), log=True)
    canvas.grid(ticks, [f"{t:g}" for t in ticks])
    canvas.below(sorted(set(clients)))
    canvas.names("clients", "mean response time in ms")
    pairs = [(n, r) for n, r in zip(clients, rows, strict=True) if not _changed(r)]
    curve = sorted(pairs, key=lambda pair: pair[0])
    line = " ".join(f"{canvas.px(n):.1f},{canvas.py(1000 * r.predicted):.1f}" for n, r in curve)
    canvas.parts.append(f'<polyline points="{line}" fill="none" stroke="{PREDICTED}" stroke-width="2"/>')
    for n, r in zip(clients, rows, strict=True):
        changed = _changed(r)
        if r.width is not None:
            low, high = (1000 * r.predicted * (1 + sign * r.width) for sign in (-1, 1))
            canvas.bar(n, max(0.0, low), high, PREDICTED)
        canvas.dot(n, 1000 * r.predicted, PREDICTED, hollow=changed, title=f"predicted: {r.change}")
        value, width = 1000 * r.measured.response, min(r.measured.response_width, 1.0)
        canvas.bar(n, value * (1 - width), value * (1 + width), MEASURED)
        canvas.dot(n, value, MEASURED, hollow=changed, title=f"measured: {r.change}, {r.corrected:+.1%}")
    canvas.legend(
        [("predicted", PREDICTED, False), ("measured", MEASURED, False), ("with a change", TEXT, True)]
    )
    return canvas.done()


def _changed(row: Row) -> bool:
    """Return whether more than the number of users is another one."""
    return "," in row.change


def draw_errors(rows: Sequence[Row]) -> str:
    """Return the picture of all corrected errors of the mean response time over the predicted load."""
    limit = WORST_SHOWN
    canvas = _Canvas("Error of the mean response time", (0.0, 1.0), (-limit, limit), log=False)
    ticks = [-0.3, -0.2, -0.1, 0.0, 0.1, 0.2, 0.3]
    canvas.grid(ticks, [f"{t:+.0%}" if t else "0" for t in ticks])
    canvas.below([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
    canvas.names("predicted utilization of what is busiest", "(predicted - measured) / measured")
    for r in rows:
        colour = MEASURED if r.half == "test" else TRAINING
        title = f"{r.system} {r.point}: {r.corrected:+.1%}"
        # What is further off than the picture reaches stays on its edge, hollow.
        shown = min(max(r.corrected, -limit), limit)
        canvas.dot(min(r.load, 1.0), shown, colour, hollow=shown != r.corrected, title=title)
    canvas.legend([("test", MEASURED, False), ("training", TRAINING, False), ("beyond", TEXT, True)])
    return canvas.done()
