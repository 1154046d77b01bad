"""Copies of a fan-out that try a call again, as a log shows them.

A call that cannot begin (no replica, no connection) is followed at once by the next attempt. A log shows two
calls at the same place one after the other, as of two copies the first of which has failed. They are taken
for that: such an attempt counts as a copy of its own. Where a semaphore limits copies, the next one begins
when another has ended, so a log does not tell it from the next attempt of that one either: there every
attempt counts as a copy. Without failures, which explorations rarely have, there is one attempt per copy.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from analyzer.static.application import Operation, Path

__all__ = [
    "could_not_begin",
    "is_complete",
    "single_attempts",
    "without_choices",
    "without_failed_beginnings",
]

MOST_WAYS = 64
"""Ways through one copy that are told apart where a choice may leave a call behind."""

REMOTE = ("call", "query")


def could_not_begin(path: Path, others: Iterable[Path]) -> bool:
    """Return whether a copy leaves nothing behind but calls that could not begin: others wait for them."""
    waited = _waited(path)
    left = [i for i, o in enumerate(path.operations) if o.op in REMOTE and i not in waited]
    known = [other.operations for other in others]
    return is_complete(path, left) and all(
        any(one[: at + 1] == path.operations[: at + 1] and any(o.of == at for o in one) for one in known)
        for at in left
    )


def is_complete(path: Path, but: Collection[int] = ()) -> bool:
    """Return whether a copy leaves nothing behind, and needs nothing of the path around it.

    Args:
        path: What it does.
        but: Places of operations that need not be waited for.
    """
    waited = _waited(path)
    for index, operation in enumerate(path.operations):
        if operation.op in ("respond", "think"):
            return False
        begins = operation.op in (*REMOTE, "task", "fan-out")
        if begins and index not in waited and index not in but:
            return False
        if operation.op in ("get", "join") and (operation.of is None or operation.of < 0):
            return False
        if not all(map(is_complete, operation.bodies)):
            return False
    return True


def without_choices(path: Path) -> tuple[Path, ...]:
    """Return the ways through a path, if it leaves something behind: which one does may depend on choices."""
    if is_complete(path) or all(o.op != "choice" for o in path.operations):
        return (path,)
    ways: list[tuple[Path, dict[int, int]]] = [
        (replace(path, operations=(), local_lines=path.local_lines[:1]), {})
    ]
    for index, operation in enumerate(path.operations):
        chosen = operation.op == "choice"
        parts = [Path((operation,), "return", 0, (0, 0))]
        if chosen:
            parts = [way for body in operation.bodies for way in without_choices(body)]
        if len(ways) * len(parts) > MOST_WAYS:
            return (path,)
        line = path.local_lines[index + 1]
        ways = [
            (
                _behind(way, part, places, line, chosen=chosen),
                places if chosen else {**places, index: _size(way)},
            )
            for way, places in ways
            for part in parts
        ]
    return tuple(way for way, _ in ways)


def _behind(way: Path, part: Path, places: Mapping[int, int], line: int, *, chosen: bool) -> Path:
    """Return a way with an operation, or the body of a choice, behind it; operations may have moved."""
    base = _size(way)

    def moved(operation: Operation) -> Operation:
        if operation.of is None:
            return operation
        return replace(
            operation, of=operation.of + base if chosen else places.get(operation.of, operation.of)
        )

    lines = (*way.local_lines[:-1], way.local_lines[-1] or part.local_lines[0], *part.local_lines[1:])
    operations = (*way.operations, *map(moved, part.operations))
    return replace(way, operations=operations, local_lines=(*lines[:-1], lines[-1] or line))


def _size(path: Path) -> int:
    return len(path.operations)


def without_failed_beginnings(path: Path) -> Path:
    """Return a path without the calls that nothing waits for and that are made again behind."""
    waited = _waited(path)
    again = {
        index
        for index, operation in enumerate(path.operations)
        if operation.op in REMOTE
        and index not in waited
        and any(_same(operation, other) for other in path.operations[index + 1 :])
    }
    return _without(path, again) if again else path


def single_attempts(bodies: Sequence[Path]) -> tuple[Path, ...]:
    """Return the bodies of copies without those that do what several others do, one after the other."""
    known = {_steps(path.operations) for path in bodies}
    return tuple(path for path in bodies if not _is_several(_steps(path.operations), known))


def _is_several(steps: tuple[object, ...], known: Iterable[tuple[object, ...]]) -> bool:
    """Return whether some steps are those of at least two known ones, one after the other."""
    shorter = [one for one in known if one and len(one) < len(steps)]
    reached = {0}
    for at in range(len(steps)):
        if at in reached:
            reached.update(at + len(one) for one in shorter if steps[at : at + len(one)] == one)
    return len(steps) in reached


def _steps(operations: Sequence[Operation]) -> tuple[object, ...]:
    """Return the operations of a path so that they are equal wherever in a path they stand."""
    return tuple(
        operation if operation.of is None else (replace(operation, of=None), index - operation.of)
        for index, operation in enumerate(operations)
    )


def _waited(path: Path) -> set[int | None]:
    return {operation.of for operation in path.operations}


def _same(one: Operation, other: Operation) -> bool:
    return (one.op, one.site, one.target) == (other.op, other.site, other.target)


def _without(path: Path, left: set[int]) -> Path:
    """Return a path without operations that nothing waits for."""
    places = {old: new for new, old in enumerate(i for i in range(len(path.operations)) if i not in left)}
    operations = tuple(
        operation if operation.of is None or operation.of < 0 else replace(operation, of=places[operation.of])
        for index, operation in enumerate(path.operations)
        if index not in left
    )
    lines = [path.local_lines[0]]
    for index, line in enumerate(path.local_lines[1:]):
        if index in left:
            lines[-1] = lines[-1] or line
        else:
            lines.append(line)
    return replace(path, operations=operations, local_lines=tuple(lines))
