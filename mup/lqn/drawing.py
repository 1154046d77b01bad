"""What does a model look like? A ``Model`` in, an SVG picture out; nothing but Python needed.

Tasks are boxes in layers: clients on top, everything else below those that call it, the network
at the bottom. Inside a task are its entries, inside an entry its activity graph from top to
bottom: every branch of a fork has a lane of its own. Big models show their entries as boxes without
activities. What a workload never reached is grey.

All coordinates are in SVG user units; x grows to the right, y downwards.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from html import escape

from mup.lqn.distributions import Distribution
from mup.lqn.model import Activity, Entry, Model, Precedence, Processor, Task, entry_label
from mup.lqn.statistics import possible_activities, reached_entries

__all__ = ["Box", "Picture", "draw", "layout"]

MAX_DETAILED_ENTRIES = 24
MAX_DETAILED_ACTIVITIES = 160
MAX_WIDTH = 1800
CHARACTER = 6.6  # width of an average character; bold ones are wider
BOLD = 7.4
LINE = 14
ACTIVITY_HEIGHT = 36
ROW_GAP = 26
LANE_GAP = 18
PADDING = 12
GAP = 24
LAYER_GAP = 56
TITLE = 24
LONGEST_LABEL = 34


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float

    def moved(self, dx: float, dy: float) -> Box:
        """Return the box somewhere else."""
        return replace(self, x=self.x + dx, y=self.y + dy)

    @property
    def middle(self) -> float:
        """Return x of the vertical middle line."""
        return self.x + self.width / 2

    @property
    def bottom(self) -> float:
        """Return y of the lower edge."""
        return self.y + self.height

    def overlaps(self, other: Box) -> bool:
        """Return whether the two have a common area."""
        return (
            self.x < other.x + other.width
            and other.x < self.x + self.width
            and self.y < other.y + other.height
            and other.y < self.y + self.height
        )


@dataclass(slots=True)
class _EntryPicture:
    """An entry with its activities, relative to its own corner."""

    entry: Entry
    width: float
    height: float
    activities: dict[str, Box] = field(default_factory=dict)


@dataclass(slots=True)
class Picture:
    """Where everything is.

    Attributes:
        width: Of the whole picture.
        height: Of the whole picture.
        tasks: Per task.
        entries: Per (task, entry).
        activities: Per (task, entry, activity); empty where an entry is drawn without.
        processors: Per processor.
    """

    width: float = 0
    height: float = 0
    tasks: dict[str, Box] = field(default_factory=dict)
    entries: dict[tuple[str, str], Box] = field(default_factory=dict)
    activities: dict[tuple[str, str, str], Box] = field(default_factory=dict)
    processors: dict[str, Box] = field(default_factory=dict)


def milliseconds(time: Distribution | None) -> str:
    """Return the mean of a time for display, ``?`` if it was never measured."""
    return "?" if time is None else _milliseconds(time.mean)


def _milliseconds(seconds: float) -> str:
    value = seconds * 1e3
    return f"{value:.0f} ms" if value >= 100 else f"{value:.3g} ms"


def activity_text(model: Model, activity: Activity) -> tuple[str, str]:
    """Return the two lines an activity shows: its name, and its times or whom it calls."""
    parts = []
    if activity.kind == "think":
        parts.append(f"think {milliseconds(activity.delay)}")
    elif activity.kind == "choice":
        parts.append("one path")
    elif not (activity.calls and activity.calibrated and _zero(activity)):
        if activity.demand is None and activity.delay is None:
            parts.append("" if activity.calls else "?")
        else:
            parts.append(f"CPU {milliseconds(activity.demand)}")
            if activity.delay is None or activity.delay.mean:
                parts.append(f"wait {milliseconds(activity.delay)}")
    networks = {t.name for t in model.tasks if t.role == "network"}
    parts += [f"→ {entry_label(c.task, c.entry)}" for c in activity.calls if c.task not in networks]
    return _short(activity.name), _short(", ".join(p for p in parts if p))


def _zero(activity: Activity) -> bool:
    return not any(t is not None and t.mean for t in (activity.demand, activity.delay))


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_LABEL else text[: LONGEST_LABEL - 1] + "…"


def _text_width(name: str, *texts: str) -> float:
    """Return the width of a bold name with plain lines below it."""
    return max(len(name) * BOLD, *(len(t) * CHARACTER for t in texts), 0)


# Layout.


def layout(model: Model) -> Picture:
    """Place every element; task boxes never overlap."""
    entries = [(task, entry) for task in model.tasks for entry in task.entries]
    working = [(t, e) for t, e in entries if t.role not in ("network", "database")]
    detailed = (
        len(working) <= MAX_DETAILED_ENTRIES
        and sum(len(e.activities) for _, e in working) <= MAX_DETAILED_ACTIVITIES
    )
    pictures: dict[str, tuple[list[tuple[_EntryPicture, float, float]], float, float]] = {}
    for task in model.tasks:
        with_activities = detailed and task.role not in ("network", "database")
        inside = [
            _detailed_entry(model, e) if with_activities else _compact_entry(task, e) for e in task.entries
        ]
        pictures[task.name] = _pack_entries(task, inside)
    picture = Picture()
    y: float = PADDING
    for layer in _layers(model):
        for row in _rows(layer, {name: width for name, (_, width, _) in pictures.items()}):
            x: float = PADDING
            tallest: float = 0
            for task in row:
                placed, width, height = pictures[task.name]
                picture.tasks[task.name] = Box(x, y, width, height)
                for inside_entry, dx, dy in placed:
                    _place_entry(picture, task, inside_entry, x + dx, y + dy)
                x += width + GAP
                tallest = max(tallest, height)
            picture.width = max(picture.width, x - GAP + PADDING)
            y += tallest + GAP
        y += LAYER_GAP - GAP
    y = _place_processors(picture, model, y)
    picture.height = y
    picture.width = max(picture.width, 360)
    _center(picture, model)
    return picture


def _place_entry(picture: Picture, task: Task, inside: _EntryPicture, x: float, y: float) -> None:
    picture.entries[task.name, inside.entry.name] = Box(x, y, inside.width, inside.height)
    for name, box in inside.activities.items():
        picture.activities[task.name, inside.entry.name, name] = box.moved(x, y)


def _place_processors(picture: Picture, model: Model, y: float) -> float:
    x: float = PADDING
    for processor in model.processors:
        width = _text_width(*processor_text(processor)) + 3 * PADDING
        if x + width > MAX_WIDTH and x > PADDING:
            x, y = PADDING, y + TITLE + LINE + GAP
        picture.processors[processor.name] = Box(x, y, width, TITLE + LINE)
        x += width + GAP
        picture.width = max(picture.width, x - GAP + PADDING)
    return y + (TITLE + LINE + PADDING if model.processors else 0)


def processor_text(processor: Processor) -> tuple[str, str]:
    """Return the two lines a processor shows."""
    cores = "∞" if processor.cores == math.inf else f"{processor.cores:g}"
    kind = {"ps": "processor sharing", "fcfs": "first come first served", "infinite": "no contention"}
    speed = "" if processor.speed == 1 else f", speed {processor.speed:g}"
    plural = "" if processor.cores == 1 else "s"
    return processor.name, f"{cores} core{plural}, {kind[processor.discipline]}{speed}"


def _center(picture: Picture, model: Model) -> None:
    """Centre every row of tasks: boxes of one row share their y."""
    by_row: dict[float, list[str]] = {}
    for name, box in picture.tasks.items():
        by_row.setdefault(box.y, []).append(name)
    for row in by_row.values():
        right = max(picture.tasks[n].x + picture.tasks[n].width for n in row)
        shift = (picture.width - PADDING - right) / 2
        for name in row:
            picture.tasks[name] = picture.tasks[name].moved(shift, 0)
            for entry in model.task(name).entries:
                picture.entries[name, entry.name] = picture.entries[name, entry.name].moved(shift, 0)
                for activity in entry.activities:
                    key = (name, entry.name, activity.name)
                    if key in picture.activities:
                        picture.activities[key] = picture.activities[key].moved(shift, 0)


def _layers(model: Model) -> list[list[Task]]:
    """Return tasks by depth: the longest chain of calls from a client; the network last."""
    depth = {t.name: 0 if t.is_reference else 1 for t in model.tasks}
    passive = {t.name for t in model.tasks if t.role == "network"}
    calls = {
        (task.name, call.task)
        for task, _, activity in model.walk()
        for call in activity.calls
        if call.task not in passive and call.task != task.name
    }
    # Two tasks may call each other (through different entries): stop raising after as many rounds as tasks.
    for _ in model.tasks:
        for caller, callee in sorted(calls):
            if depth[callee] <= depth[caller] < len(model.tasks):
                depth[callee] = depth[caller] + 1
    levels = sorted({depth[t.name] for t in model.tasks if t.name not in passive})
    layers = [[t for t in model.tasks if depth[t.name] == d and t.name not in passive] for d in levels]
    # The network comes last: calls through it are labels, so no arrow has to cross it.
    last = [t for t in model.tasks if t.name in passive]
    return [*layers, *([last] if last else [])]


def _rows(layer: Iterable[Task], widths: Mapping[str, float]) -> list[list[Task]]:
    """Break a layer into rows that fit the picture."""
    rows: list[list[Task]] = [[]]
    used = 0.0
    for task in layer:
        if rows[-1] and used + widths[task.name] > MAX_WIDTH:
            rows.append([])
            used = 0
        rows[-1].append(task)
        used += widths[task.name] + GAP
    return rows


def task_text(task: Task) -> tuple[str, str]:
    """Return the two lines of a task's title."""
    if task.is_reference:
        think = "" if task.think is None else f", think {milliseconds(task.think)}"
        return task.name, f"{task.threads:g} client{'' if task.threads == 1 else 's'}{think}"
    threads = "∞ threads" if task.threads == math.inf else f"pool {task.threads:g}"
    replicas = f", {task.replicas} replicas" if task.replicas > 1 else ""
    what = {"network": "network, ", "database": "database, "}.get(task.role, "")
    return task.name, f"{what}{threads}{replicas}" + (f", on {task.processor}" if task.processor else "")


def front_text(task: Task) -> str:
    """Return what a task shows about framework work per request, "" if it was not measured."""
    if task.front is None:
        return ""
    return f"front: {milliseconds(task.front.request)} in, {milliseconds(task.front.reply)} out"


def _header(task: Task) -> float:
    return TITLE + LINE + (LINE if task.front else 0) + PADDING / 2


def _pack_entries(
    task: Task, inside: list[_EntryPicture]
) -> tuple[list[tuple[_EntryPicture, float, float]], float, float]:
    """Place the entries of a task in rows; return them with their offsets, and the size of the task."""
    placed = []
    # Compact entries look best in a block that is about as high as wide.
    compact = all(not e.activities for e in inside)
    area = sum((e.width + PADDING) * (e.height + PADDING) for e in inside)
    limit = max(math.sqrt(area) * 2, 420) if compact else MAX_WIDTH
    x, y = float(PADDING), _header(task)
    tallest = 0.0
    width = _text_width(*task_text(task), front_text(task)) * 1.1 + 2 * PADDING
    for entry in inside:
        if x > PADDING and x + entry.width > limit:
            x, y, tallest = float(PADDING), y + tallest + PADDING, 0.0
        placed.append((entry, x, y))
        x += entry.width + PADDING
        tallest = max(tallest, entry.height)
        width = max(width, x)
    return placed, width, y + tallest + PADDING


def entry_text(task: Task, entry: Entry) -> tuple[str, str]:
    """Return the two lines of an entry that is drawn without its activities."""
    if task.role in ("network", "database") and len(entry.activities) == 1:
        activity = entry.activities[0]
        if activity.demand is None or activity.delay is None:
            return _short(entry.name), "?"
        return _short(entry.name), _milliseconds(activity.demand.mean + activity.delay.mean)
    paths = f"{len(entry.paths)} paths, " if len(entry.paths) > 1 else ""
    return _short(entry.name), f"{paths}{len(entry.activities)} activities"


def _compact_entry(task: Task, entry: Entry) -> _EntryPicture:
    width = _text_width(*entry_text(task, entry)) + 2 * PADDING
    return _EntryPicture(entry, width, 2 * LINE + PADDING)


def _detailed_entry(model: Model, entry: Entry) -> _EntryPicture:
    lanes, rows = _grid(entry)
    widths: dict[int, float] = {}
    for activity in entry.activities:
        text = (
            _text_width(*activity_text(model, activity)) + PADDING + (2 * PADDING if activity.replies else 0)
        )
        lane = lanes[activity.name]
        widths[lane] = max(widths.get(lane, 64), text)
    left: dict[int, float] = {}
    x: float = PADDING
    for lane in range(max(lanes.values()) + 1):
        left[lane] = x
        x += widths.get(lane, 24) + LANE_GAP
    top = TITLE + 4
    picture = _EntryPicture(entry, 0, 0)
    for activity in entry.activities:
        lane, row = lanes[activity.name], rows[activity.name]
        y = top + row * (ACTIVITY_HEIGHT + ROW_GAP)
        picture.activities[activity.name] = Box(left[lane], y, widths[lane], ACTIVITY_HEIGHT)
    picture.width = max(x - LANE_GAP + PADDING, _text_width(entry.name) + 2 * PADDING)
    bottom = max(rows.values()) + 1
    picture.height = top + bottom * ACTIVITY_HEIGHT + (bottom - 1) * ROW_GAP + PADDING
    return picture


def _grid(entry: Entry) -> tuple[dict[str, int], dict[str, int]]:
    """Return lane and row of every activity.

    An activity's row is the longest chain before it. The first branch of a fork goes straight on; every other
    one gets the next lane that is free from the fork down to where the branch ends or joins.
    """
    after = {name: p for p in entry.precedences for name in p.pre}
    rows = _longest_chains(entry)
    ends = _branch_ends(entry, after, rows)
    lanes: dict[str, int] = {}
    taken: dict[int, list[tuple[int, int]]] = {}

    def free(lane: int, first: int, last: int) -> bool:
        return all(last < a or b < first for a, b in taken.get(lane, []))

    def walk(name: str, lane: int) -> int:
        """Place a chain and what branches off it; return the rightmost lane used."""
        widest = lane
        first = rows[name]
        chain = [name]
        pending: list[Precedence] = []
        while name in after:
            precedence = after[name]
            if len(precedence.pre) > 1 and name != precedence.pre[0]:
                break
            if precedence.fork == "or" and len(precedence.post) > 1:
                pending.append(precedence)
                break
            if len(precedence.post) > 1:
                pending.append(precedence)
            name = precedence.post[0]
            chain.append(name)
        for member in chain:
            lanes[member] = lane
        last = ends[chain[-1]]
        taken.setdefault(lane, []).append((first, last))
        for precedence in pending:
            if precedence.fork == "or":
                column = lane
                for branch in precedence.post:
                    widest = max(widest, walk(branch, column))
                    column = widest + 1
                continue
            for branch in precedence.post[1:]:
                column = lane + 1
                while not free(column, rows[branch], ends[branch]):
                    column += 1
                widest = max(widest, walk(branch, column))
        return widest

    walk(entry.start, 0)
    for activity in entry.activities:
        lanes.setdefault(activity.name, max(lanes.values()) + 1)
    return lanes, rows


def _longest_chains(entry: Entry) -> dict[str, int]:
    rows = {a.name: 0 for a in entry.activities}
    # Precedences form no cycle (validation), so this settles after at most as many rounds as activities.
    changed = True
    while changed:
        changed = False
        for precedence in entry.precedences:
            row = max(rows[name] for name in precedence.pre) + 1
            for name in precedence.post:
                if rows[name] < row:
                    rows[name] = row
                    changed = True
    return rows


def _branch_ends(entry: Entry, after: Mapping[str, Precedence], rows: Mapping[str, int]) -> dict[str, int]:
    """Return per activity the last row its chain needs: where it ends, or just above its join."""
    ends: dict[str, int] = {}
    for activity in entry.activities:
        name = activity.name
        while name in after and len(after[name].pre) == 1 and len(after[name].post) == 1:
            name = after[name].post[0]
        ends[activity.name] = rows[after[name].post[0]] - 1 if name in after else rows[name]
    return ends


# Drawing.

STYLE = """
 svg { color-scheme: light dark; }
 text { font-family: system-ui, "Segoe UI", "DejaVu Sans", Arial, sans-serif; font-size: 11px;
        fill: #1f2933; }
 .paper { fill: #ffffff; }
 .title { font-size: 14px; font-weight: 600; }
 .name { font-weight: 600; }
 .soft { fill: #5b6773; }
 .task { fill: #f3f5f8; stroke: #8794a1; stroke-width: 1.2; }
 .reference { fill: #eef6ee; } .network, .database { fill: #f7f3ea; }
 .entry { fill: #ffffff; stroke: #b5bfc9; }
 .activity { fill: #e8f0fa; stroke: #7c9cc4; }
 .registry, .communication { fill: #fdf1dc; stroke: #cda65b; }
 .think, .choice, .after { fill: #efeff1; stroke: #a5a8ae; }
 .processor { fill: #e9e4f5; stroke: #9483bd; }
 .flow { fill: none; stroke: #5b6773; stroke-width: 1.2; }
 .bar { stroke: #37424d; stroke-width: 3; }
 .call { fill: none; stroke: #b7791f; stroke-width: 1.3; opacity: .65; }
 .head { fill: #b7791f; } .flowhead { fill: #5b6773; }
 .reply { fill: #2f855a; font-weight: 700; }
 .grey { opacity: .38; }
 @media (prefers-color-scheme: dark) {
  text { fill: #e4e7eb; } .soft { fill: #a7b1bc; } .paper { fill: #171b20; }
  .task { fill: #222830; stroke: #6b7784; } .reference { fill: #1f2c23; }
  .network, .database { fill: #2c281f; }
  .entry { fill: #1a1f25; stroke: #4a545f; } .activity { fill: #22344a; stroke: #5d82b0; }
  .registry, .communication { fill: #3d3220; stroke: #a98a4a; }
  .think, .choice, .after { fill: #2d3036; stroke: #6d7178; }
  .processor { fill: #2e2840; stroke: #7c6bab; } .flow { stroke: #a7b1bc; } .flowhead { fill: #a7b1bc; }
  .bar { stroke: #d5dae0; } .call { stroke: #e0a94a; } .head { fill: #e0a94a; } .reply { fill: #68d391; }
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

    def line(self, points: Iterable[tuple[float, float]], kind: str, *, head: str = "") -> None:
        marker = f' marker-end="url(#{head})"' if head else ""
        path = " L ".join(f"{x:.1f} {y:.1f}" for x, y in points)
        self.parts.append(f'<path d="M {path}" class="{kind}"{marker}/>')

    def curve(self, start: tuple[float, float], end: tuple[float, float], kind: str, *, title: str) -> None:
        (x0, y0), (x1, y1) = start, end
        bend = max(40.0, abs(y1 - y0) / 2)
        path = (
            f"M {x0:.1f} {y0:.1f} C {x0 + bend / 2:.1f} {y0:.1f} {x1:.1f} {y1 - bend:.1f} {x1:.1f} {y1:.1f}"
        )
        tip = f"<title>{escape(title)}</title>"
        self.parts.append(f'<path d="{path}" class="{kind}" marker-end="url(#head)">{tip}</path>')


def draw(model: Model) -> str:
    """Return the model as an SVG document."""
    picture = layout(model)
    reached = reached_entries(model)
    canvas = _Canvas()
    for task in model.tasks:
        _draw_task(canvas, picture, task)
    # Arrows run over entries that show their activities, and below everything that has text on it.
    entries = [(task, entry) for task in model.tasks for entry in task.entries]
    for task, entry in entries:
        if _is_detailed(picture, task, entry):
            _draw_entry(canvas, picture, task, entry, grey=(task.name, entry.name) not in reached)
    for arrow in _arrows(model, picture, reached):
        canvas.curve(arrow.start, arrow.end, "call grey" if arrow.grey else "call", title=arrow.label)
    for task, entry in entries:
        used = (task.name, entry.name) in reached
        if _is_detailed(picture, task, entry):
            _draw_activities(canvas, model, picture, task, entry, reached=used)
        else:
            _draw_entry(canvas, picture, task, entry, grey=not used)
    for processor in model.processors:
        box = picture.processors[processor.name]
        name, what = processor_text(processor)
        canvas.rect(box, "processor", radius=10)
        canvas.text(box.x + PADDING, box.y + 16, name, "name")
        canvas.text(box.x + PADDING, box.y + 16 + LINE, what, "soft")
    width, height = math.ceil(picture.width), math.ceil(picture.height)
    return "\n".join(
        [
            (
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}"'
                f' height="{height}" role="img" aria-label="{escape(model.name)}">'
            ),
            f"<title>{escape(model.name)}</title>",
            f"<style>{STYLE}</style>",
            "<defs>",
            *(
                f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"'
                f' orient="auto"><path d="M 0 0 L 8 4 L 0 8 z" class="{kind}"/></marker>'
                for name, kind in (("head", "head"), ("flowhead", "flowhead"))
            ),
            "</defs>",
            f'<rect width="{width}" height="{height}" class="paper"/>',
            *canvas.parts,
            "</svg>",
            "",
        ]
    )


def _draw_task(canvas: _Canvas, picture: Picture, task: Task) -> None:
    box = picture.tasks[task.name]
    name, what = task_text(task)
    canvas.rect(box, f"task {task.role}", radius=8)
    canvas.text(box.x + PADDING, box.y + 18, name, "title")
    canvas.text(box.x + PADDING, box.y + 18 + LINE, what, "soft")
    if task.front:
        canvas.text(box.x + PADDING, box.y + 18 + 2 * LINE, front_text(task), "soft")


def _is_detailed(picture: Picture, task: Task, entry: Entry) -> bool:
    return (task.name, entry.name, entry.start) in picture.activities


def _draw_entry(canvas: _Canvas, picture: Picture, task: Task, entry: Entry, *, grey: bool) -> None:
    box = picture.entries[task.name, entry.name]
    shade = " grey" if grey else ""
    canvas.rect(box, "entry", title=entry_label(task.name, entry.name))
    name, what = (entry.name, "") if _is_detailed(picture, task, entry) else entry_text(task, entry)
    canvas.text(box.x + PADDING, box.y + 17, name, f"name{shade}")
    if what:
        canvas.text(box.x + PADDING, box.y + 17 + LINE, what, f"soft{shade}")


@dataclass(frozen=True, slots=True)
class _Arrow:
    """A call to draw: what is equal is drawn once."""

    start: tuple[float, float]
    end: tuple[float, float]
    label: str
    grey: bool


def _arrows(model: Model, picture: Picture, reached: set[tuple[str, str]]) -> list[_Arrow]:
    """Return an arrow per call; a network exchange is the label of the call it carries.

    Where entries are drawn without activities, queries leave from the task: every endpoint has some, and the
    picture would be black.
    """
    roles = {t.name: t.role for t in model.tasks}
    found: dict[_Arrow, None] = {}
    for task, entry, activity in model.walk():
        targets = [c for c in activity.calls if roles[c.task] != "network"] or list(activity.calls)
        used = (task.name, entry.name) in reached and activity.name in possible_activities(entry)
        carried = "".join(f", through {c.entry}" for c in activity.calls if roles[c.task] == "network")
        for call in targets:
            target = picture.entries[call.task, call.entry]
            to = entry_label(call.task, call.entry)
            box = picture.activities.get((task.name, entry.name, activity.name))
            label = f"{entry_label(task.name, entry.name)} {activity.name} → {to}{carried}"
            if box is None:
                query = roles[call.task] == "database"
                box = picture.tasks[task.name] if query else picture.entries[task.name, entry.name]
                label = f"{task.name if query else entry_label(task.name, entry.name)} → {to}"
            start = (box.x + box.width, box.y + box.height / 2)
            found[_Arrow(start, (target.middle, target.y), label, not used)] = None
    return [a for a in found if not a.grey or replace(a, grey=False) not in found]


def _draw_activities(
    canvas: _Canvas, model: Model, picture: Picture, task: Task, entry: Entry, *, reached: bool
) -> None:
    boxes = {a.name: picture.activities.get((task.name, entry.name, a.name)) for a in entry.activities}
    known = {name: box for name, box in boxes.items() if box is not None}
    if not known:
        return
    possible = possible_activities(entry) if reached else set()
    for precedence in entry.precedences:
        _draw_precedence(canvas, precedence, known, possible)
    for activity in entry.activities:
        box = known[activity.name]
        shade = "" if activity.name in possible else " grey"
        kind = "activity" if activity.kind == "local" else activity.kind
        name, what = activity_text(model, activity)
        canvas.rect(box, f"{kind}{shade}", title=_tip(activity))
        canvas.text(box.middle, box.y + 15, name, f"name{shade}", middle=True)
        canvas.text(box.middle, box.y + 15 + LINE, what, f"soft{shade}", middle=True)
        if activity.replies:
            canvas.text(box.x + box.width - 9, box.y + 12, "↩", f"reply{shade}", middle=True)


def _tip(activity: Activity) -> str:
    flags = [f for f in ("replies", "detached") if getattr(activity, f)]
    return f"{activity.name} ({activity.kind}{', line ' + str(activity.line) if activity.line else ''})" + (
        f": {', '.join(flags)}" if flags else ""
    )


def _draw_precedence(
    canvas: _Canvas, precedence: Precedence, boxes: Mapping[str, Box], possible: set[str]
) -> None:
    pre = [boxes[n] for n in precedence.pre]
    post = [boxes[n] for n in precedence.post]
    shade = "" if set(precedence.pre) <= possible else " grey"
    y = min(b.y for b in post) - ROW_GAP / 2
    centers = [b.middle for b in (*pre, *post)]
    several = len(pre) > 1 or len(post) > 1
    for box in pre:
        if several:
            canvas.line([(box.middle, box.bottom), (box.middle, y)], f"flow{shade}")
    if several:
        kind = "bar" if "and" in (precedence.fork, precedence.join) else "flow"
        canvas.line([(min(centers), y), (max(centers), y)], f"{kind}{shade}")
    odds = precedence.probabilities or (None,) * len(post)
    for name, box, chance in zip(precedence.post, post, odds, strict=True):
        unlikely = "" if name in possible else " grey"
        if several:
            canvas.line([(box.middle, y), (box.middle, box.y)], f"flow{unlikely}", head="flowhead")
        else:
            start = (pre[0].middle, pre[0].bottom)
            points = [start, (pre[0].middle, y), (box.middle, y), (box.middle, box.y)]
            canvas.line(points, f"flow{unlikely}", head="flowhead")
        if precedence.fork == "or" and len(post) > 1:
            label = "p = ?" if chance is None else f"p = {chance:.3g}"
            canvas.text(box.middle + 5, box.y - 3, label, f"soft{unlikely}")
