"""Write a laid out model as an SVG document."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape

from mup.lqn.drawing.labels import (
    activity_text,
    activity_tip,
    branch_text,
    entry_extras,
    entry_text,
    folded_text,
    front_text,
    join_text,
    kind_text,
    processor_text,
    task_text,
)
from mup.lqn.drawing.layers import drawn_calls
from mup.lqn.drawing.layout import Picture, Point, is_folded, layout
from mup.lqn.drawing.shapes import LANE_GAP, LINE, PADDING, ROW_GAP, Box, text_width
from mup.lqn.drawing.weights import Weights, weights_of
from mup.lqn.model import Activity, Entry, Model, Precedence, Task, entry_label
from mup.lqn.statistics import possible_activities, reached_entries

__all__ = ["draw"]

WORTH_A_BAR = 0.01
"""Share of the time of a cycle from which on a box shows it."""

STYLE = """
 .mup-model { color-scheme: light dark; }
 .mup-model text {
   font-family: system-ui, "Segoe UI", "DejaVu Sans", Arial, sans-serif; font-size: 11px; fill: #1f2933; }
 .mup-model .paper { fill: #ffffff; }
 .mup-model .title { font-size: 14px; font-weight: 600; }
 .mup-model .halo { paint-order: stroke; stroke: #f3f5f8; stroke-width: 3px; stroke-linejoin: round; }
 .mup-model .reference-halo { stroke: #eef6ee; }
 .mup-model .network-halo, .mup-model .database-halo { stroke: #f7f3ea; }
 .mup-model .name { font-weight: 600; }
 .mup-model .soft { fill: #5b6773; }
 .mup-model .task { fill: #f3f5f8; stroke: #8794a1; stroke-width: 1.2; }
 .mup-model .plate { fill: #f3f5f8; stroke: none; }
 .mup-model .weight { fill: #c2410c; }
 .mup-model .reference { fill: #eef6ee; }
 .mup-model .network, .mup-model .database { fill: #f7f3ea; }
 .mup-model .entry { fill: #ffffff; stroke: #b5bfc9; }
 .mup-model .activity { fill: #e8f0fa; stroke: #7c9cc4; }
 .mup-model .registry, .mup-model .communication { fill: #fdf1dc; stroke: #cda65b; }
 .mup-model .think, .mup-model .choice, .mup-model .after { fill: #efeff1; stroke: #a5a8ae; }
 .mup-model .processor { fill: #e9e4f5; stroke: #9483bd; }
 .mup-model .flow { fill: none; stroke: #5b6773; stroke-width: 1.2; }
 .mup-model .bar { stroke: #37424d; stroke-width: 3; }
 .mup-model .call { fill: none; stroke: #b7791f; stroke-width: 1.3; opacity: .65; }
 .mup-model .send { stroke-dasharray: 6 4; }
 .mup-model .forward { stroke-dasharray: 1.5 4; stroke-linecap: round; opacity: .9; }
 .mup-model .releasing { stroke-dasharray: 10 3 2 3; }
 .mup-model .loop { stroke-dasharray: 5 3; }
 .mup-model .outside { fill: #2f855a; }
 .mup-model .head { fill: #b7791f; }
 .mup-model .flowhead { fill: #5b6773; }
 .mup-model .reply { fill: #2f855a; font-weight: 700; }
 .mup-model .grey { opacity: .38; }
 .mup-model text.grey { opacity: 1; fill: #66707a; }
 @media (prefers-color-scheme: dark) {
  .mup-model text { fill: #e4e7eb; }
  .mup-model .soft { fill: #a7b1bc; }
  .mup-model .paper { fill: #171b20; }
  .mup-model .halo { stroke: #222830; }
  .mup-model .reference-halo { stroke: #1f2c23; }
  .mup-model .network-halo, .mup-model .database-halo { stroke: #2c281f; }
  .mup-model .outside { fill: #68d391; }
  .mup-model text.grey { fill: #8f99a4; }
  .mup-model .task { fill: #222830; stroke: #6b7784; }
  .mup-model .plate { fill: #222830; }
  .mup-model .weight { fill: #fb923c; }
  .mup-model .reference { fill: #1f2c23; }
  .mup-model .network, .mup-model .database { fill: #2c281f; }
  .mup-model .entry { fill: #1a1f25; stroke: #4a545f; }
  .mup-model .activity { fill: #22344a; stroke: #5d82b0; }
  .mup-model .registry, .mup-model .communication { fill: #3d3220; stroke: #a98a4a; }
  .mup-model .think, .mup-model .choice, .mup-model .after { fill: #2d3036; stroke: #6d7178; }
  .mup-model .processor { fill: #2e2840; stroke: #7c6bab; }
  .mup-model .flow { stroke: #a7b1bc; }
  .mup-model .flowhead { fill: #a7b1bc; }
  .mup-model .bar { stroke: #d5dae0; }
  .mup-model .call { stroke: #e0a94a; }
  .mup-model .head { fill: #e0a94a; }
  .mup-model .reply { fill: #68d391; }
 }
"""


class _Canvas:
    """Collects SVG elements."""

    def __init__(self) -> None:
        self.parts: list[str] = []

    def rect(self, box: Box, kind: str, *, radius: float = 4, title: str = "") -> None:
        tip = f"<title>{escape(title)}</title>" if title else ""
        self.parts.append(
            f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}"'
            f' rx="{radius:g}" class="{kind}">{tip}</rect>'
        )

    def text(self, x: float, y: float, words: str, kind: str = "", *, middle: bool = False) -> None:
        anchor = ' text-anchor="middle"' if middle else ""
        style = f' class="{kind}"' if kind else ""
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}"{anchor}{style}>{escape(words)}</text>')

    def line(self, points: Iterable[Point], kind: str, *, head: str = "") -> None:
        marker = f' marker-end="url(#mup-{head})"' if head else ""
        path = " L ".join(f"{x:.1f} {y:.1f}" for x, y in points)
        self.parts.append(f'<path d="M {path}" class="{kind}"{marker}/>')

    def curve(self, points: Sequence[Point], kind: str, *, title: str) -> None:
        """Draw an arrow that is vertical at every point (the first of two equal x: a straight line)."""
        (x, y), *rest = points
        path = [f"M {x:.1f} {y:.1f}"]
        for x1, y1 in rest:
            if abs(x1 - x) < 0.5:
                path.append(f"L {x1:.1f} {y1:.1f}")
            else:
                half = (y + y1) / 2
                path.append(f"C {x:.1f} {half:.1f} {x1:.1f} {half:.1f} {x1:.1f} {y1:.1f}")
            x, y = x1, y1
        tip = f"<title>{escape(title)}</title>"
        self.parts.append(
            f'<path d="{" ".join(path)}" class="{kind}" marker-end="url(#mup-head)">{tip}</path>'
        )


def draw(model: Model, whole: Model | None = None) -> str:
    """Return the model as an SVG document.

    Args:
        model: What is drawn.
        whole: The model it is a part of: what the workload reaches, and how heavy it is, is read off that.
    """
    picture = layout(model)
    whole = model if whole is None else whole
    reached = reached_entries(whole)
    canvas = _Canvas()
    for task in model.tasks:
        canvas.rect(picture.tasks[task.name], f"task {task.role}", radius=8)
    # Arrows run over entries that show their activities, and below everything that has text on it.
    entries = [(task, entry) for task in model.tasks if not is_folded(task) for entry in task.entries]
    for task, entry in entries:
        if _is_detailed(picture, task, entry):
            _draw_entry(canvas, picture, task, entry, grey=(task.name, entry.name) not in reached)
    for arrow in _arrows(model, picture, reached):
        kind = f"call {arrow.kind}" + (" grey" if arrow.grey else "")
        canvas.curve(arrow.points, kind, title=arrow.label)
    for task, entry in entries:
        used = (task.name, entry.name) in reached
        if _is_detailed(picture, task, entry):
            _draw_activities(canvas, model, picture, task, entry, reached=used)
        else:
            _draw_entry(canvas, picture, task, entry, grey=not used)
    for task in model.tasks:
        _draw_title(canvas, picture, task)
    _draw_weights(canvas, model, picture, weights_of(whole))
    for processor in model.processors:
        box = picture.processors[processor.name]
        name, what = processor_text(processor)
        canvas.rect(box, "processor", radius=10)
        canvas.text(box.x + PADDING, box.y + 16, name, "name")
        canvas.text(box.x + PADDING, box.y + 16 + LINE, what, "soft")
    width, height = math.ceil(picture.width), math.ceil(picture.height)
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    about = f'role="img" aria-label="{escape(model.name)}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="mup-model" {size} {about}>',
            f"<title>{escape(model.name)}</title>",
            f"<style>{STYLE}</style>",
            "<defs>",
            *(
                f'<marker id="mup-{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7"'
                f' markerHeight="7" orient="auto"><path d="M 0 0 L 8 4 L 0 8 z" class="{kind}"/></marker>'
                for name, kind in (("head", "head"), ("flowhead", "flowhead"))
            ),
            "</defs>",
            f'<rect width="{width}" height="{height}" class="paper"/>',
            *canvas.parts,
            "</svg>",
            "",
        ]
    )


def _draw_weights(canvas: _Canvas, model: Model, picture: Picture, weights: Weights) -> None:
    """Draw how heavy a box is: a bar at its lower edge, as long as the box for the heaviest of its kind."""
    groups: list[list[tuple[tuple[str, ...], Box]]] = [
        [(key, box) for key, box in picture.activities.items()],
        [(key, box) for key, box in picture.entries.items() if _is_leaf(model, picture, key)],
    ]
    for boxes in groups:
        most = max((weights.get(key, 0.0) for key, _ in boxes), default=0.0)
        for key, box in boxes:
            share = weights.get(key, 0.0)
            if share >= WORTH_A_BAR:
                bar = Box(box.x + 2, box.bottom - 4, max(3.0, (box.width - 4) * share / most), 3)
                canvas.rect(bar, "weight", radius=1, title=f"{share:.0%} of the time of a cycle")


def _is_leaf(model: Model, picture: Picture, key: tuple[str, str]) -> bool:
    """Tell whether an entry is drawn, without activities."""
    task = model.task(key[0])
    return not is_folded(task) and not _is_detailed(picture, task, task.entry(key[1]))


def _draw_title(canvas: _Canvas, picture: Picture, task: Task) -> None:
    box = picture.tasks[task.name]
    name, what = task_text(task)
    halo = f"halo {task.role}-halo"  # arrows pass below the words
    lines = [what, *([front_text(task)] if task.front else [])]
    # Arrows end before the words and go on behind them.
    width = text_width(name, *lines) + 8
    plate = Box(box.x + PADDING - 4, box.y + 4, min(width, box.width - PADDING), 16 + LINE * len(lines))
    canvas.rect(plate, f"plate {task.role}", radius=3)
    canvas.text(box.x + PADDING, box.y + 18, name, f"title {halo}")
    canvas.text(box.x + PADDING, box.y + 18 + LINE, what, f"soft {halo}")
    if task.front:
        canvas.text(box.x + PADDING, box.y + 18 + 2 * LINE, front_text(task), f"soft {halo}")
    if is_folded(task):
        canvas.text(box.x + PADDING, box.y + 18 + (len(lines) + 1) * LINE, folded_text(task), f"soft {halo}")


def _is_detailed(picture: Picture, task: Task, entry: Entry) -> bool:
    return (task.name, entry.name, entry.start) in picture.activities


def _draw_entry(canvas: _Canvas, picture: Picture, task: Task, entry: Entry, *, grey: bool) -> None:
    box = picture.entries[task.name, entry.name]
    shade = " grey" if grey else ""
    canvas.rect(box, "entry", title=entry_label(task.name, entry.name))
    if _is_detailed(picture, task, entry):
        name, what = entry.name, entry_extras(entry)
    else:
        name, what = entry_text(task, entry)
    canvas.text(box.x + PADDING, box.y + 17, name, f"name{shade}")
    if what:
        kind = "outside" if entry.arrivals is not None else "soft"
        canvas.text(box.x + PADDING, box.y + 17 + LINE, what, f"{kind}{shade}")


# Arrows.


@dataclass(frozen=True, slots=True)
class _Arrow:
    """A call or forward to draw: what is equal is drawn once."""

    points: tuple[Point, ...]
    label: str
    kind: str
    grey: bool


def _arrows(model: Model, picture: Picture, reached: set[tuple[str, str]]) -> list[_Arrow]:
    """Return an arrow per call; a network exchange is the label of the call it carries.

    Where entries are drawn without activities, queries leave from the task: every endpoint has some, and the
    picture would be black.
    """
    roles = {t.name: t.role for t in model.tasks}
    networks = {name for name, role in roles.items() if role == "network"}
    found: dict[_Arrow, None] = {}
    tasks = {t.name: t for t in model.tasks}
    possible = {
        (task.name, entry.name): possible_activities(entry)
        for task in model.tasks
        for entry in task.entries
        if (task.name, entry.name) in reached
    }
    lines: dict[tuple[str, float], list[str]] = {}
    """Activities with arrows, per task and right edge: each gets a line of its own down to the row's end."""
    for task, entry, activity in model.walk():
        used = activity.name in possible.get((task.name, entry.name), ())
        carried = "".join(f", through {c.entry}" for c in activity.calls if c.task in networks)
        for call in drawn_calls(activity, networks):
            to = entry_label(call.task, call.entry)
            label = f"{entry_label(task.name, entry.name)} {activity.name} → {to}{carried}"
            start = picture.activities.get((task.name, entry.name, activity.name))
            if start is None:
                query = roles[call.task] == "database"
                label = f"{task.name if query else entry_label(task.name, entry.name)} → {to}"
                begin = _below_task(picture, task) if query else _below_entry(picture, task, entry)
            else:
                names = lines.setdefault((task.name, start.right), [])
                if activity.name not in names:
                    names.append(activity.name)
                begin = _beside_activity(picture, task, start, names.index(activity.name))
            kind = "" if call.kind == "synchronous" else call.kind
            label += kind_text(call)
            points = (*begin, *_route(picture, task, tasks[call.task], call.entry))
            found[_Arrow(points, label, kind, not used)] = None
    for task in model.tasks:
        for entry in task.entries:
            for forward in entry.forwards:
                begin = _below_entry(picture, task, entry)
                odds = "" if forward.probability == 1 else f", p = {forward.probability:.3g}"
                to = entry_label(forward.task, forward.entry)
                label = f"{entry_label(task.name, entry.name)} forwards to {to}{odds}"
                used = (task.name, entry.name) in reached and forward.probability > 0
                points = (*begin, *_route(picture, task, tasks[forward.task], forward.entry))
                found[_Arrow(points, label, "forward", not used)] = None
    return [a for a in found if not a.grey or replace(a, grey=False) not in found]


def _below_task(picture: Picture, task: Task) -> tuple[Point, ...]:
    box = picture.tasks[task.name]
    return _down_to_row(picture, task, box.middle, box.bottom)


def _below_entry(picture: Picture, task: Task, entry: Entry) -> tuple[Point, ...]:
    """Leave an entry at its lower edge; past entries below it, in the gap beside them."""
    box = picture.entries[task.name, entry.name]
    others = [b for b in _entries_of(picture, task) if b.y > box.y]
    if all(b.right <= box.x or box.right <= b.x for b in others):
        return ((box.middle, box.bottom), *_down_to_row(picture, task, box.middle, box.bottom))
    gap = box.right + PADDING / 2
    return (
        (box.middle, box.bottom),
        (gap, box.bottom + PADDING),
        *_down_to_row(picture, task, gap, box.bottom),
    )


def _beside_activity(picture: Picture, task: Task, box: Box, index: int) -> tuple[Point, ...]:
    """Leave an activity at its lower right corner and go down between the lanes."""
    gap = box.right + LANE_GAP / 2 - 6 + index % 4 * 4
    return (
        (box.right - 6, box.bottom),
        (gap, box.bottom + ROW_GAP / 2),
        *_down_to_row(picture, task, gap, box.bottom),
    )


def _down_to_row(picture: Picture, task: Task, x: float, y: float) -> tuple[Point, ...]:
    bottom = picture.rows[picture.row_of[task.name]][1]
    return ((x, max(y, bottom)),)


def _entries_of(picture: Picture, task: Task) -> list[Box]:
    return [picture.entries[task.name, entry.name] for entry in task.entries]


def _route(picture: Picture, task: Task, to: Task, entry: str) -> tuple[Point, ...]:
    """Return the points from below a task's row to the entry: in channels, then beside entries above it."""
    target = picture.entries[to.name, entry]
    points: list[Point] = []
    last = picture.row_of[to.name]
    for row in range(picture.row_of[task.name] + 1, last):
        x = picture.tracks[to.name, entry, row]
        top, bottom = picture.rows[row]
        points += [(x, top), (x, bottom)]
    if last <= picture.row_of[task.name]:
        return ((target.middle, target.bottom),)  # a cycle of sends: straight back up
    others = [b for b in _entries_of(picture, to) if b.y < target.y]
    if all(b.right <= target.x or target.right <= b.x for b in others):
        return (*points, (target.middle, picture.rows[last][0]), (target.middle, target.y))
    gap = target.x - PADDING / 2
    return (*points, (gap, picture.rows[last][0]), (gap, target.y - PADDING), (target.x + PADDING, target.y))


# Activities.


def _draw_activities(
    canvas: _Canvas, model: Model, picture: Picture, task: Task, entry: Entry, *, reached: bool
) -> None:
    boxes = {a.name: picture.activities[task.name, entry.name, a.name] for a in entry.activities}
    possible = possible_activities(entry) if reached else set()
    for precedence in entry.precedences:
        _draw_precedence(canvas, precedence, boxes, possible)
    for activity in entry.activities:
        _draw_activity(canvas, model, activity, boxes[activity.name], grey=activity.name not in possible)


def _draw_activity(canvas: _Canvas, model: Model, activity: Activity, box: Box, *, grey: bool) -> None:
    shade = " grey" if grey else ""
    kind = "activity" if activity.kind == "local" else activity.kind
    name, what = activity_text(model, activity)
    canvas.rect(box, f"{kind}{shade}", title=activity_tip(activity))
    canvas.text(box.middle, box.y + 15, name, f"name{shade}", middle=True)
    canvas.text(box.middle, box.y + 15 + LINE, what, f"soft{shade}", middle=True)
    if activity.replies:
        canvas.text(box.right - 9, box.y + 12, "↩", f"reply{shade}", middle=True)


def _draw_precedence(
    canvas: _Canvas, precedence: Precedence, boxes: Mapping[str, Box], possible: set[str]
) -> None:
    pre = [boxes[n] for n in precedence.pre]
    post = [boxes[n] for n in precedence.post]
    behind = precedence.continuation
    shade = "" if set(precedence.pre) <= possible else " grey"
    # Bodies of a loop, and the branch of a fan-out, hang on a line of their own, what follows
    # far below goes straight on.
    branches = [b for n, b in zip(precedence.post, post, strict=True) if n != behind]
    y = min(b.y for b in branches) - ROW_GAP / 2
    centers = [b.middle for b in (*pre, *branches)]
    several = len(pre) > 1 or len(post) > 1 or precedence.repeats
    for box in pre:
        if several:
            canvas.line([(box.middle, box.bottom), (box.middle, y)], f"flow{shade}")
    if several:
        kind = "bar" if {"and", "fan-out"} & {precedence.fork, precedence.join} else "flow"
        kind = "flow loop" if precedence.fork == "loop" and len(pre) == 1 else kind
        canvas.line([(min(centers), y), (max(centers), y)], f"{kind}{shade}")
    if precedence.quorum is not None:
        canvas.text(max(centers) + 5, y + 4, join_text(precedence), f"soft{shade}")
    for index, (name, box) in enumerate(zip(precedence.post, post, strict=True)):
        unlikely = "" if name in possible else " grey"
        looped = " loop" if precedence.fork == "loop" and name != behind else ""
        if several and name != behind:
            canvas.line([(box.middle, y), (box.middle, box.y)], f"flow{looped}{unlikely}", head="flowhead")
        else:
            start = (pre[0].middle, pre[0].bottom)
            above = box.y - ROW_GAP / 2
            points = [start, (pre[0].middle, above), (box.middle, above), (box.middle, box.y)]
            canvas.line(points, f"flow{unlikely}", head="flowhead")
        if label := branch_text(precedence, index):
            canvas.text(box.middle + 5, box.y - 3, label, f"soft{unlikely}")
