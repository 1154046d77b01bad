"""Copies of a fan-out that some ways through an endpoint leave behind.

``try: replies = await asyncio.gather(*calls)``: if something else goes wrong before the wait, the calls have
been made and nothing waits for them. On such a way they are a loop; on the others they are a fan-out. A log
counts the copies by their first calls, so they have to be a fan-out on each of these ways: there the wait for
them stands at the end, and is early.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from analyzer.static.application import LEFT, Operation, Path
from mup.events.sites import Site

__all__ = ["with_copies_left_behind"]


def with_copies_left_behind(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Return paths with a fan-out for each loop whose calls another path waits for."""
    listed = tuple(paths)
    fan_outs: dict[Site, list[tuple[Operation, Operation]]] = {}
    for path in listed:
        for join in path.operations:
            waited = None if join.op != "join" or join.of is None else path.operations[join.of]
            if waited is not None and waited.op == "fan-out" and join.target != "first":
                fan_outs.setdefault(waited.site, []).append((waited, join))
    return tuple(_with_fan_outs(path, fan_outs) for path in listed)


def _with_fan_outs(path: Path, fan_outs: dict[Site, list[tuple[Operation, Operation]]]) -> Path:
    operations, joins = list(path.operations), list[Operation]()
    waited = {o.of for o in operations if o.of is not None}
    for index, loop in enumerate(path.operations):
        if loop.op != "loop" or loop.target == LEFT or index in waited:
            continue
        for fan_out, join in fan_outs.get(loop.site, ()):
            if all(any(_begins(body, copy, fan_out) for copy in fan_out.bodies) for body in loop.bodies):
                operations[index] = fan_out
                joins.append(replace(join, target="early", of=index))
                break
    if not joins:
        return path
    return replace(
        path, operations=(*operations, *joins), local_lines=(*path.local_lines, *(0 for _ in joins))
    )


def _begins(body: Path, copy: Path, fan_out: Operation) -> bool:
    """Return whether an iteration begins what a copy does, and does no more."""
    match body.operations:
        case [Operation(op="task", bodies=(task,))] if fan_out.target != "flow":
            return task.operations == copy.operations
        case begun if fan_out.target == "flow":
            rest = copy.operations[len(begun) :]
            return copy.operations[: len(begun)] == begun and all(o.op in ("get", "join") for o in rest)
    return False
