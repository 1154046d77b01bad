"""Positions of all elements on the page, and the courses of arrows."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from mup.lqn.drawing.grid import activity_grid
from mup.lqn.drawing.labels import (
    activity_text,
    entry_extras,
    entry_text,
    folded_text,
    front_text,
    processor_text,
    task_text,
)
from mup.lqn.drawing.layers import MAX_WIDTH, Channel, Placement, arrange, call_links, task_layers
from mup.lqn.drawing.shapes import (
    ACTIVITY_HEIGHT,
    GAP,
    LANE_GAP,
    LINE,
    PADDING,
    ROW_GAP,
    TITLE,
    Box,
    text_width,
)
from mup.lqn.model import Entry, Model, Processor, Task

__all__ = ["Picture", "Point", "is_folded", "layout"]

MAX_DETAILED_ENTRIES = 24
MAX_DETAILED_ACTIVITIES = 160
MAX_EXCHANGES = 12
"""A network with more entries is folded: one line says how many there are."""
BLOCK_WIDTH = 1150
MIN_PROCESSOR_ROW = 700
LAYER_GAP = 56
MAX_LAYER_GAP = 130

Point = tuple[float, float]


@dataclass(slots=True)
class _EntryPicture:
    """An entry with its activities, relative to its own corner."""

    entry: Entry
    width: float
    height: float
    activities: dict[str, Box] = field(default_factory=dict)


@dataclass(slots=True)
class _TaskPicture:
    """A task with its entries, relative to its own corner; ``rows`` as they stand."""

    width: float
    height: float
    entries: list[tuple[_EntryPicture, float, float]]


@dataclass(slots=True)
class Picture:
    """Where everything is.

    Attributes:
        width: Of the whole picture.
        height: Of the whole picture.
        tasks: Per task.
        entries: Per (task, entry).
        activities: Per (task, entry, activity); empty where an entry is drawn without.
        processors: Per processor; one that is part of another lies inside it.
        rows: Upper and lower edge of every row of tasks.
        row_of: The row of every task.
        tracks: Per (task, entry, row): where arrows to that entry pass the row.
    """

    width: float = 0
    height: float = 0
    tasks: dict[str, Box] = field(default_factory=dict)
    entries: dict[tuple[str, str], Box] = field(default_factory=dict)
    activities: dict[tuple[str, str, str], Box] = field(default_factory=dict)
    processors: dict[str, Box] = field(default_factory=dict)
    rows: list[tuple[float, float]] = field(default_factory=list)
    row_of: dict[str, int] = field(default_factory=dict)
    tracks: dict[tuple[str, str, int], float] = field(default_factory=dict)


def layout(model: Model) -> Picture:
    """Place every element; task boxes never overlap."""
    entries = [(task, entry) for task in model.tasks for entry in task.entries]
    working = [(t, e) for t, e in entries if t.role not in ("network", "database")]
    detailed = (
        len(working) <= MAX_DETAILED_ENTRIES
        and sum(len(e.activities) for _, e in working) <= MAX_DETAILED_ACTIVITIES
    )
    called = _callers(model)
    inside: dict[str, list[_EntryPicture]] = {}
    for task in model.tasks:
        with_activities = detailed and task.role not in ("network", "database")
        inside[task.name] = (
            []
            if is_folded(task)
            else [
                _detailed_entry(model, e) if with_activities else _compact_entry(task, e)
                for e in task.entries
            ]
        )
    sizes = {t.name: _pack_entries(t, inside[t.name]) for t in model.tasks}
    links = call_links(model)
    placement = arrange(
        task_layers(model, links),
        {name: size.width for name, size in sizes.items()},
        links,
        {t.name: sum((t.name, e.name) in called for e in t.entries) for t in model.tasks},
        GAP,
    )
    picture = Picture()
    _place_rows(picture, model, placement, inside, called)
    _place_tracks(picture, model, placement, called)
    _shift(picture)
    y = (picture.rows[-1][1] if picture.rows else 0.0) + LAYER_GAP
    width = picture.width
    picture.height = _place_processors(picture, model, y)
    picture.width = max(picture.width, 360)
    _move(picture, (picture.width - width) / 2)
    return picture


def is_folded(task: Task) -> bool:
    """Tell whether the entries of a task are not drawn one by one: exchanges are many and alike."""
    return task.role == "network" and len(task.entries) > MAX_EXCHANGES


def _callers(model: Model) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """Return the entries that call or forward to each entry."""
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for task in model.tasks:
        for entry in task.entries:
            targets = [(c.task, c.entry) for a in entry.activities for c in a.calls]
            for target in targets + [(f.task, f.entry) for f in entry.forwards]:
                found.setdefault(target, []).append((task.name, entry.name))
    return found


def _place_rows(
    picture: Picture,
    model: Model,
    placement: Placement,
    inside: dict[str, list[_EntryPicture]],
    called: dict[tuple[str, str], list[tuple[str, str]]],
) -> None:
    arrows = _arrows_below(model, placement)
    y: float = PADDING
    for index, row in enumerate(placement.rows):
        bottom = y
        for item in row:
            if isinstance(item, Channel):
                continue
            task = model.task(item)
            left = placement.left[item]
            size = _pack_entries(task, _by_callers(picture, task, inside[item], called))
            picture.row_of[item] = index
            picture.tasks[item] = Box(left, y, size.width, size.height)
            for entry, dx, dy in size.entries:
                key = (item, entry.entry.name)
                picture.entries[key] = Box(left + dx, y + dy, entry.width, entry.height)
                for name, box in entry.activities.items():
                    picture.activities[(*key, name)] = box.moved(left + dx, y + dy)
            if is_folded(task):
                for entry_of in task.entries:
                    picture.entries[item, entry_of.name] = picture.tasks[item]
            bottom = max(bottom, y + size.height)
        picture.rows.append((y, bottom))
        y = bottom + min(LAYER_GAP + 2.0 * arrows[index], MAX_LAYER_GAP)


def _arrows_below(model: Model, placement: Placement) -> list[int]:
    """Return per row how many arrows pass the gap below it."""
    row_of = {item: i for i, row in enumerate(placement.rows) for item in row}
    found = [0] * len(placement.rows)
    for (caller, callee), number in call_links(model).items():
        for index in range(row_of[caller], row_of[callee]):
            found[index] += number
    return found


def _by_callers(
    picture: Picture,
    task: Task,
    inside: list[_EntryPicture],
    called: dict[tuple[str, str], list[tuple[str, str]]],
) -> list[_EntryPicture]:
    """Return entries drawn without activities in the order of those above that call them."""
    if any(e.activities for e in inside):
        return inside

    def above(entry: _EntryPicture) -> float:
        keys = [k for k in called.get((task.name, entry.entry.name), ()) if k in picture.entries]
        return sum(picture.entries[k].middle for k in keys) / len(keys) if keys else math.inf

    return sorted(inside, key=above)


def _place_tracks(
    picture: Picture,
    model: Model,
    placement: Placement,
    called: dict[tuple[str, str], list[tuple[str, str]]],
) -> None:
    """Give every entry its own line in the channels of its task, in the order in which they stand."""
    for row in placement.rows:
        for item in row:
            if isinstance(item, Channel):
                task = item.target
                names = [e.name for e in model.task(task).entries if (task, e.name) in called]
                names.sort(key=lambda name, t=task: picture.entries[t, name].middle)  # type: ignore[misc]
                step = placement.widths[item] / max(len(names), 1)
                for i, name in enumerate(names):
                    picture.tracks[task, name, item.row] = placement.left[item] + (i + 0.5) * step


def _shift(picture: Picture) -> None:
    """Move everything so that the picture begins at the left edge."""
    lefts = [box.x for box in picture.tasks.values()] + list(picture.tracks.values())
    if not lefts:
        return
    _move(picture, PADDING - min(lefts))
    rights = [box.right for box in picture.tasks.values()] + list(picture.tracks.values())
    picture.width = max(rights) + PADDING


def _move(picture: Picture, by: float) -> None:
    """Move all tasks to the right."""
    picture.tasks = {k: box.moved(by, 0) for k, box in picture.tasks.items()}
    picture.entries = {k: box.moved(by, 0) for k, box in picture.entries.items()}
    picture.activities = {k: box.moved(by, 0) for k, box in picture.activities.items()}
    picture.tracks = {k: x + by for k, x in picture.tracks.items()}


def _place_processors(picture: Picture, model: Model, y: float) -> float:
    """Place processors in rows, each with its parts inside; return the end of the page."""
    parts: dict[str | None, list[Processor]] = {}
    for processor in model.processors:
        parts.setdefault(processor.parent, []).append(processor)

    def size(processor: Processor) -> tuple[float, float]:
        inner = [size(p) for p in parts.get(processor.name, [])]
        width = text_width(*processor_text(processor)) + 3 * PADDING
        if not inner:
            return width, TITLE + LINE
        return (
            max(width, sum(w for w, _ in inner) + PADDING * (len(inner) + 1)),
            TITLE + LINE + max(h for _, h in inner) + PADDING,
        )

    def place(processor: Processor, x: float, top: float) -> None:
        picture.processors[processor.name] = Box(x, top, *size(processor))
        x += PADDING
        for part in parts.get(processor.name, []):
            place(part, x, top + TITLE + LINE)
            x += size(part)[0] + PADDING

    x: float = PADDING
    tallest: float = 0
    for processor in parts.get(None, []):
        width, height = size(processor)
        if x + width > max(picture.width, MIN_PROCESSOR_ROW) and x > PADDING:
            x, y, tallest = PADDING, y + tallest + GAP, 0
        place(processor, x, y)
        tallest = max(tallest, height)
        x += width + GAP
        picture.width = max(picture.width, x - GAP + PADDING)
    return y + (tallest + PADDING if model.processors else 0)


def _header(task: Task) -> float:
    return TITLE + LINE + (LINE if task.front else 0) + PADDING / 2


def _pack_entries(task: Task, inside: list[_EntryPicture]) -> _TaskPicture:
    """Place the entries of a task in rows."""
    compact = all(not e.activities for e in inside)
    folded = folded_text(task) if is_folded(task) else ""
    width = text_width(*task_text(task), front_text(task), folded) * 1.1 + 2 * PADDING
    top = _header(task)
    if not inside:
        return _TaskPicture(width, top + LINE, [])
    if compact:
        # One row if it fits, so that no arrow has to pass another entry; else columns, filled one by one.
        column = max(e.width for e in inside) + PADDING
        area = column * sum(e.height + PADDING for e in inside)
        limit = max(BLOCK_WIDTH, min(math.sqrt(area) * 2, MAX_WIDTH))
        rows = math.ceil(len(inside) / max(int(limit // column), 1))
        columns = math.ceil(len(inside) / rows)
        placed = []
        for index, entry in enumerate(inside):
            at, row = divmod(index, rows)
            entry.width = column - PADDING
            placed.append((entry, PADDING + at * column, top + row * (entry.height + PADDING)))
        height = top + rows * (inside[0].height + PADDING)
        return _TaskPicture(max(width, PADDING + columns * column), height, placed)
    placed = []
    x, tallest = float(PADDING), 0.0
    for entry in inside:
        if x > PADDING and x + entry.width > MAX_WIDTH:
            x, top, tallest = float(PADDING), top + tallest + PADDING, 0.0
        placed.append((entry, x, top))
        x += entry.width + PADDING
        tallest = max(tallest, entry.height)
        width = max(width, x)
    return _TaskPicture(width, top + tallest + PADDING, placed)


def _compact_entry(task: Task, entry: Entry) -> _EntryPicture:
    width = text_width(*entry_text(task, entry)) + 2 * PADDING
    return _EntryPicture(entry, width, 2 * LINE + PADDING)


def _detailed_entry(model: Model, entry: Entry) -> _EntryPicture:
    lanes, rows = activity_grid(entry)
    widths: dict[int, float] = {}
    for activity in entry.activities:
        text = (
            text_width(*activity_text(model, activity)) + PADDING + (2 * PADDING if activity.replies else 0)
        )
        lane = lanes[activity.name]
        widths[lane] = max(widths.get(lane, 64), text)
    left: dict[int, float] = {}
    x: float = PADDING
    for lane in range(max(lanes.values()) + 1):
        left[lane] = x
        x += widths.get(lane, 24) + LANE_GAP
    extras = entry_extras(entry)
    top = TITLE + 4 + (LINE if extras else 0)
    picture = _EntryPicture(entry, 0, 0)
    for activity in entry.activities:
        lane, row = lanes[activity.name], rows[activity.name]
        y = top + row * (ACTIVITY_HEIGHT + ROW_GAP)
        picture.activities[activity.name] = Box(left[lane], y, widths[lane], ACTIVITY_HEIGHT)
    picture.width = max(x - LANE_GAP + PADDING, text_width(entry.name, extras) + 2 * PADDING)
    bottom = max(rows.values()) + 1
    picture.height = top + bottom * ACTIVITY_HEIGHT + (bottom - 1) * ROW_GAP + PADDING
    return picture
