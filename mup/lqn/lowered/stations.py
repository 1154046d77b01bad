"""Resources that requests can wait for: processors, cores and fronts."""

from __future__ import annotations

import math
from collections.abc import Iterator

from mup.lqn.lowered.graph import Graph
from mup.lqn.model import Model, Processor, Task

__all__ = ["has_front", "held_by_front", "is_limited", "machines", "pinned_together", "speeds_of", "wholes"]


def is_limited(processor: Processor) -> bool:
    """Tell whether there may be more threads than cores; a part may wait for its parent all the same."""
    return processor.discipline != "infinite" and processor.cores < math.inf


def wholes(model: Model) -> set[str]:
    """Return the processors that others are parts of."""
    return {p.parent for p in model.processors if p.parent is not None}


def machines(model: Model, name: str | None) -> Iterator[Processor]:
    """Yield a processor and those it is a part of, from the inside out."""
    while name is not None:
        processor = model.processor(name)
        yield processor
        name = processor.parent


def speeds_of(model: Model) -> dict[str, float]:
    """Return the speed of every processor, that of what it is a part of included."""
    named = {p.name: p for p in model.processors}

    def speed(name: str) -> float:
        processor = named[name]
        return processor.speed * (1.0 if processor.parent is None else speed(processor.parent))

    return {name: speed(name) for name in named}


def pinned_together(model: Model) -> dict[tuple[str, int], list[Processor]]:
    """Return the parts that share the one core they are pinned to, by the whole and the core."""
    found: dict[tuple[str, int], list[Processor]] = {}
    named = {p.name: p for p in model.processors}
    for part in model.processors:
        if part.parent is not None:
            core = part.pinned_core(named[part.parent])
            if core is not None:
                found.setdefault((part.parent, core), []).append(part)
    return {place: parts for place, parts in found.items() if len(parts) > 1}


def has_front(task: Task) -> bool:
    """Tell whether requests pass a front: one without times is never in the way, clients have none."""
    front = task.front
    if front is None or task.is_reference:
        return False
    if task.setup is not None and any(task.setup.demands.get("front", ())):
        return True
    return any(time is None or time.mean > 0 for time in (front.request, front.reply))


def held_by_front(task: Task, graph: Graph) -> frozenset[str]:
    """Return the activities of an entry behind which the thread is held until the front has sent the reply.

    All that reply, or none: then the front sends replies while the thread may be busy with the next request.
    """
    holds = task.front is not None and task.front.holds and has_front(task)
    return graph.replies_last if holds else frozenset()
