"""Which semaphores and locks does a path hold, from operation to operation?

Operations say what is held while they are done. A model takes what is not held yet right before an operation,
and gives back what the next one does not hold right behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from analyzer.static.application import Held, Operation

__all__ = ["Holding", "common", "held_at", "held_in_bodies"]

Holding = tuple[Held, ...]
"""What is held, the first taken first."""


def common(holdings: Iterable[Holding]) -> Holding:
    """Return what all of them begin with; nothing of none."""
    first, *others = [*holdings] or [()]
    size = len(first)
    for other in others:
        size = next((n for n in range(min(size, len(other))) if first[n] != other[n]), min(size, len(other)))
    return first[:size]


def held_at(operations: Sequence[Operation], index: int, around: Holding, before: Holding) -> Holding:
    """Return what is held while an operation is done.

    Args:
        operations: Of the path.
        index: The place of the operation.
        around: What is held around the path: it stays held.
        before: What is held behind the operation before it.
    """
    operation = operations[index]
    if operation.op != "choice":
        return (*around, *(one for one in operation.holding if one not in around))
    inside = [
        held_at(body.operations, place, around, around)
        for body in operation.bodies
        for place in range(len(body.operations))
    ]
    # A body that does nothing takes nothing.
    empty = any(not body.operations for body in operation.bodies)
    return common([*inside, *([before] if empty or not inside else [])])


def held_in_bodies(operation: Operation, holding: Holding) -> Holding:
    """Return what is held around the bodies of an operation, which itself holds this: tasks are others."""
    by_tasks = operation.op in ("task", "race") or (operation.op == "fan-out" and operation.target != "flow")
    return () if by_tasks else holding
