"""Layer, order and horizontal position of each task.

Layers follow the longest chain of calls from a client. An arrow that passes a layer gets a channel there, one
per task it leads to, so that it never runs behind a box. Within the layers tasks and channels are ordered by
the barycentres of what they are connected to (Sugiyama, Tagawa and Toda, "Methods for visual understanding of
hierarchical system structures", 1981), and placed as close to these as their neighbours allow.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from mup.lqn.model import Activity, Call, Model

__all__ = ["Channel", "Item", "Placement", "arrange", "call_links", "drawn_calls", "task_layers"]

MAX_WIDTH = 1800
SWEEPS = 12
TRACK = 5
MAX_CHANNEL = 70


@dataclass(frozen=True, slots=True)
class Channel:
    """Where arrows to a task pass a row that it is not in."""

    target: str
    row: int


Item = str | Channel
"""A task's name, or a channel."""


@dataclass(slots=True)
class Placement:
    """The rows from top to bottom, each from left to right, and where every item begins."""

    rows: list[list[Item]]
    left: dict[Item, float]
    widths: dict[Item, float]


def drawn_calls(activity: Activity, networks: Container[str]) -> tuple[Call, ...]:
    """Return the calls that get an arrow: a network exchange is the label of the call it carries."""
    return tuple(c for c in activity.calls if c.task not in networks) or activity.calls


def call_links(model: Model) -> dict[tuple[str, str], int]:
    """Return how many arrows lead from each task to each other one."""
    networks = {t.name for t in model.tasks if t.role == "network"}
    found: dict[tuple[str, str], int] = {}
    for task in model.tasks:
        for entry in task.entries:
            targets = [c.task for a in entry.activities for c in drawn_calls(a, networks)]
            for target in targets + [f.task for f in entry.forwards]:
                if target != task.name:
                    found[task.name, target] = found.get((task.name, target), 0) + 1
    return found


def task_layers(model: Model, links: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Return tasks by depth: the longest chain of calls from a client; the network last."""
    below: dict[str, list[str]] = {t.name: [] for t in model.tasks}
    for caller, callee in links:
        below[caller].append(callee)
    order = _without_cycles(below)
    depth = {t.name: 0 if t.is_reference else 1 for t in model.tasks}
    position = {name: i for i, name in enumerate(order)}
    for caller in order:
        for callee in below[caller]:
            if position[callee] > position[caller]:
                depth[callee] = max(depth[callee], depth[caller] + 1)
    last = [t.name for t in model.tasks if t.role == "network"]
    levels = sorted({depth[t.name] for t in model.tasks if t.name not in last})
    layers = [[t.name for t in model.tasks if depth[t.name] == d and t.name not in last] for d in levels]
    # The network comes last: calls through it are labels, so no arrow has to cross it.
    return [*layers, *([last] if last else [])]


def _without_cycles(below: Mapping[str, Sequence[str]]) -> list[str]:
    """Return callers before callees, as far as that is possible (two tasks may call each other)."""
    done: dict[str, None] = {}
    seen: set[str] = set()
    for root in below:
        stack = [(root, iter(below[root]))] if root not in seen else []
        seen.add(root)
        while stack:
            name, rest = stack[-1]
            nxt = next((n for n in rest if n not in seen), None)
            if nxt is None:
                done[name] = None
                stack.pop()
            else:
                seen.add(nxt)
                stack.append((nxt, iter(below[nxt])))
    return list(reversed(done))


def _broken(layers: Iterable[Sequence[str]], widths: Mapping[str, float], gap: float) -> list[list[str]]:
    """Break layers that are too wide into rows."""
    rows: list[list[str]] = []
    for layer in layers:
        rows.append([])
        used = 0.0
        for name in layer:
            if rows[-1] and used + widths[name] > MAX_WIDTH:
                rows.append([])
                used = 0.0
            rows[-1].append(name)
            used += widths[name] + gap
    return rows


def arrange(
    layers: Iterable[Sequence[str]],
    widths: Mapping[str, float],
    links: Mapping[tuple[str, str], int],
    tracks: Mapping[str, int],
    gap: float,
) -> Placement:
    """Order and place the tasks.

    Args:
        layers: Names of tasks.
        widths: Of tasks.
        links: Number of arrows from task to task; only those that lead down get channels.
        tracks: How many arrows lie side by side in a channel, by the task they lead to.
        gap: Least distance between neighbours.
    """
    broken = _broken(layers, widths, gap)
    row_of = {name: index for index, row in enumerate(broken) for name in row}
    rows: list[list[Item]] = [list(row) for row in broken]
    all_widths: dict[Item, float] = {name: widths[name] for row in broken for name in row}
    down: dict[Item, dict[Item, float]] = {}
    for (caller, callee), weight in links.items():
        here: Item = caller
        for index in range(row_of[caller] + 1, row_of[callee]):
            channel = Channel(callee, index)
            if channel not in all_widths:
                all_widths[channel] = min(max(tracks[callee], 1) * TRACK, MAX_CHANNEL)
                rows[index].append(channel)
            _link(down, here, channel, weight)
            here = channel
        if row_of[callee] > row_of[caller]:
            _link(down, here, callee, weight)
    up: dict[Item, dict[Item, float]] = {}
    for item, targets in down.items():
        for target, link in targets.items():
            _link(up, target, item, link)
    placement = Placement(rows, {}, all_widths)
    for row in rows:
        _place(placement, row, {}, gap)
    best, fewest = [list(row) for row in rows], _crossings(rows, down)
    for sweep in range(SWEEPS):
        towards, order = (up, rows) if sweep % 2 == 0 else (down, rows[::-1])
        for row in order:
            wanted = _barycentres(placement, row, towards)
            row.sort(key=lambda item, w=wanted: w.get(item, _middle(placement, item)))  # type: ignore[misc]
            _place(placement, row, wanted, gap)
        crossings = _crossings(rows, down)
        if crossings < fewest:
            best, fewest = [list(row) for row in rows], crossings
    placement.rows = best
    for row in best:
        _place(placement, row, {}, gap)
    for sweep in range(SWEEPS):
        for row in best if sweep % 2 == 0 else best[::-1]:
            sides = [_barycentres(placement, row, towards) for towards in (up, down)]
            wanted = {
                item: sum(s[item] for s in sides if item in s) / sum(item in s for s in sides)
                for item in row
                if any(item in s for s in sides)
            }
            _place(placement, row, wanted, gap)
    _center_unlinked(placement, {*up, *down})
    return placement


def _center_unlinked(placement: Placement, linked: set[Item]) -> None:
    """Centre the rows that no arrow leads to or from under all the others."""
    ends = [(placement.left[i], placement.left[i] + placement.widths[i]) for i in linked]
    if not ends:
        return
    middle = (min(left for left, _ in ends) + max(right for _, right in ends)) / 2
    for row in placement.rows:
        if linked.isdisjoint(row):
            last = row[-1]
            by = middle - (placement.left[row[0]] + placement.left[last] + placement.widths[last]) / 2
            for item in row:
                placement.left[item] += by


def _link(links: dict[Item, dict[Item, float]], one: Item, other: Item, weight: float) -> None:
    targets = links.setdefault(one, {})
    targets[other] = targets.get(other, 0.0) + weight


def _middle(placement: Placement, item: Item) -> float:
    return placement.left[item] + placement.widths[item] / 2


def _barycentres(
    placement: Placement, row: Iterable[Item], links: Mapping[Item, Mapping[Item, float]]
) -> dict[Item, float]:
    found = {}
    for item in row:
        others = links.get(item, {})
        if others:
            total = sum(others.values())
            found[item] = sum(_middle(placement, other) * w for other, w in others.items()) / total
    return found


def _crossings(rows: Sequence[Sequence[Item]], down: Mapping[Item, Mapping[Item, float]]) -> float:
    """Return how many arrows cross between neighbouring rows."""
    total = 0.0
    for upper, lower in pairwise(rows):
        position = {item: i for i, item in enumerate(lower)}
        ends = [(position[t], w) for item in upper for t, w in down.get(item, {}).items() if t in position]
        starts = [i for i, item in enumerate(upper) for t in down.get(item, {}) if t in position]
        for i, (end, weight) in enumerate(ends):
            for j in range(i):
                if starts[j] < starts[i] and ends[j][0] > end:
                    total += weight * ends[j][1]
    return total


def _place(placement: Placement, row: Sequence[Item], wanted: Mapping[Item, float], gap: float) -> None:
    """Place a row in its order, as close to the wanted middles as possible (least squares).

    Neighbours that would overlap are pooled into a block that is placed as one (pool adjacent violators).
    """
    if not row:
        return
    offsets = [0.0]
    for item in row[:-1]:
        offsets.append(offsets[-1] + placement.widths[item] + gap)
    blocks: list[tuple[float, float, int]] = []  # sum of weighted positions, weight, items
    for item, offset in zip(row, offsets, strict=True):
        if item in wanted:
            aim, weight = wanted[item] - placement.widths[item] / 2, 1.0
        elif item in placement.left:
            aim, weight = placement.left[item], 0.05
        else:
            aim, weight = offset - (offsets[-1] + placement.widths[row[-1]]) / 2, 0.05
        if isinstance(item, Channel):
            weight *= 4  # long arrows are to be straight
        blocks.append(((aim - offset) * weight, weight, 1))
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] >= blocks[-1][0] / blocks[-1][1]:
            (a, b, n), (c, d, m) = blocks[-2:]
            blocks[-2:] = [(a + c, b + d, n + m)]
    index = 0
    for total, weight, count in blocks:
        for item, offset in zip(row[index : index + count], offsets[index : index + count], strict=True):
            placement.left[item] = total / weight + offset
        index += count
