"""Can a log tell the copies of a fan-out from everything else that the endpoint does?

A log shows the operations of an execution in order, with their call sites, but not which copy did them. How
many copies there were is the number of their first operations. That is only so if these operations happen
nowhere else, in another fan-out or in a copy already under way, and if those of one round are over when those
of the next begin. Any other fan-out would get a width that is wrong, and nothing would say so.

Where the flow itself begins all copies and then waits for one after the other, the first wait shows that no
more of them begin. So rounds of it in a loop are told apart, several such fan-outs one after the other, and
other paths that do the same in another order. Only an execution with at most one copy may be either.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator

from analyzer.static.application import Operation, Path
from mup.events.sites import Site

__all__ = ["not_told_apart"]

_Key = tuple[str, str, str, str, int]
"""What a log says of a call or query: operation, target and call site."""


def not_told_apart(paths: Iterable[Path]) -> Iterator[tuple[Operation, str]]:
    """Yield the fan-outs whose width a log would not tell, and why; each place in the source once."""
    seen: set[Site] = set()
    listed = list(paths)
    for fan_out, why in _found(listed):
        if fan_out.site not in seen:
            seen.add(fan_out.site)
            yield fan_out, why


def _found(paths: list[Path]) -> Iterator[tuple[Operation, str]]:
    elsewhere = "its calls are also made by other code of the endpoint, at the same place in the source"
    makers: defaultdict[_Key, set[Site | None]] = defaultdict(set)
    fan_outs: list[Operation] = []
    for path in paths:
        _collect(path, None, makers, fan_outs)
    repeated = {key for path in paths for key, number in _times(path).items() if number > 1}
    beside = {fan_out for path in paths for fan_out in _beside(path)}
    plain = set(_plain(paths, {fan_out.site for fan_out in fan_outs}))
    # What is waited for anywhere is left behind by an exception alone.
    forgotten = {key for key, waited in plain if not waited and (key, True) not in plain}
    for fan_out in fan_outs:
        keys = _keys(fan_out)
        shared = any(len(makers[key]) > 1 for key in keys) or not repeated.isdisjoint(keys)
        taken_for = not forgotten.isdisjoint(keys) if _in_order(fan_out) else shared
        if fan_out in beside or taken_for:
            yield fan_out, elsewhere
        firsts, laters = _order(fan_out.bodies)
        if not firsts.isdisjoint(laters):
            yield fan_out, "what a copy begins with may also come later in it"
    alone = len({fan_out.site for fan_out in fan_outs}) == 1 and len(paths) == 1
    for path in paths:
        if not alone:
            for fan_out in _in_loops(path, in_loop=False):
                yield fan_out, "it is in a loop, and the endpoint has other paths or fan-outs"
        for fan_out in _left_early(path, in_loop=False):
            yield fan_out, "it is in a loop, whose next round may begin before all of its copies have ended"


def _in_order(fan_out: Operation) -> bool:
    """Return whether the flow begins all copies before it waits for the first."""
    return fan_out.target == "flow"


def _beside(path: Path) -> Iterator[Operation]:
    """Yield the fan-outs beside which, while copies are under way, other code makes the same calls."""
    for index, operation in enumerate(path.operations):
        for body in operation.bodies:
            yield from _beside(body)
        if _begins_tasks(operation):
            for other in path.operations[index + 1 : _end(path, index)]:
                if not _keys(operation).isdisjoint(_keys(other)):
                    yield from (inner for one in (operation, other) for inner in _fan_outs(one))


def _plain(paths: Iterable[Path], begins: Collection[Site]) -> Iterator[tuple[_Key, bool]]:
    """Yield what is called outside of fan-outs, and whether it is waited for.

    Left out are loops that begin the copies of a fan-out: where a call cannot be made they leave some behind.
    """
    for path in paths:
        waited = {operation.of for operation in path.operations}
        for index, operation in enumerate(path.operations):
            if operation.op in ("call", "query"):
                yield _key(operation), index in waited
            elif operation.op != "fan-out" and operation.site not in begins:
                yield from _plain(operation.bodies, begins)


def _begins_tasks(operation: Operation) -> bool:
    """Return whether something may be under way behind an operation: it, or what is in its bodies."""
    if operation.op in ("loop", "choice"):
        return any(
            _begins_tasks(inner) and _end(body, index) is None
            for body in operation.bodies
            for index, inner in enumerate(body.operations)
        )
    return operation.op in ("task", "fan-out", "race")


def _end(path: Path, index: int) -> int | None:
    """Return where a path waits for what an operation has begun; None if it never does for all of it."""
    return next((n for n, o in enumerate(path.operations) if o.op == "join" and o.of == index), None)


def _fan_outs(operation: Operation) -> Iterator[Operation]:
    """Yield an operation, or what is in its bodies, if it is a fan-out."""
    if operation.op == "fan-out":
        yield operation
    for body in operation.bodies:
        yield from (inner for one in body.walk() for inner in [one] if inner.op == "fan-out")


def _key(operation: Operation) -> _Key:
    site = operation.site
    return operation.op, operation.target, site.file, site.function, site.ordinal


def _collect(
    path: Path, maker: Site | None, makers: defaultdict[_Key, set[Site | None]], fan_outs: list[Operation]
) -> None:
    for operation in path.operations:
        if operation.op in ("call", "query"):
            makers[_key(operation)].add(maker)
        if operation.op == "fan-out":
            fan_outs.append(operation)
        for body in operation.bodies:
            _collect(body, operation.site if operation.op == "fan-out" else maker, makers, fan_outs)


def _keys(operation: Operation) -> set[_Key]:
    own = {_key(operation)} if operation.op in ("call", "query") else set()
    return own.union(*(_keys(inner) for body in operation.bodies for inner in body.operations))


def _times(path: Path) -> Counter[_Key]:
    """Return how many fan-outs one execution may come to that make the same call."""
    found: Counter[_Key] = Counter()
    for operation in path.operations:
        if operation.op == "fan-out":
            found += Counter(_keys(operation))
            continue
        most: Counter[_Key] = Counter()
        for body in operation.bodies:
            most |= _times(body)
        found += most
    return found


def _order(bodies: Iterable[Path]) -> tuple[set[_Key], set[_Key]]:
    """Return what a copy may begin with, and what may follow something in it."""
    orders = [_order_of(body) for body in bodies]
    return {key for first, _, _ in orders for key in first}, {key for _, later, _ in orders for key in later}


def _order_of(path: Path) -> tuple[set[_Key], set[_Key], bool]:
    """Return the same of one path, and whether it may do nothing."""
    firsts: set[_Key] = set()
    laters: set[_Key] = set()
    nothing, something = True, False  # what may have come before
    for operation in path.operations:
        if operation.op in ("call", "query"):
            first, later, skipped = {_key(operation)}, set[_Key](), False
        elif operation.bodies:
            inner = [_order_of(body) for body in operation.bodies]
            first = {key for one in inner for key in one[0]}
            later = {key for one in inner for key in one[1]}
            skipped = operation.op != "choice" or any(one[2] for one in inner)
            if operation.op != "choice":
                # A loop comes to its first again; what a task does may come later than what follows it.
                later |= first
        else:
            continue
        if nothing:
            firsts |= first
        else:
            later |= first
        if something:
            later |= first
        laters |= later
        nothing, something = nothing and skipped, True
    return firsts, laters, nothing


def _in_loops(path: Path, *, in_loop: bool) -> Iterator[Operation]:
    """Yield the fan-outs in loops: rounds are taken together where other paths or fan-outs are tried."""
    for operation in path.operations:
        if in_loop and operation.op == "fan-out" and not _in_order(operation):
            yield operation
        for body in operation.bodies:
            yield from _in_loops(body, in_loop=in_loop or operation.op == "loop")


def _left_early(path: Path, *, in_loop: bool) -> Iterator[Operation]:
    """Yield the fan-outs in loops of which copies may go on when the flow does."""
    for operation in path.operations:
        if in_loop and operation.op == "join" and operation.target == "early" and operation.of is not None:
            left = path.operations[operation.of] if operation.of >= 0 else None
            if left is not None and left.op == "fan-out" and not _in_order(left):
                yield left
        for body in operation.bodies:
            yield from _left_early(body, in_loop=in_loop or operation.op == "loop")
