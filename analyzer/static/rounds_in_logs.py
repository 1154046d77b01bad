"""Can a log tell the copies of a fan-out from everything else that the endpoint does?

A log shows the operations of an execution in order, with their call sites, but not which copy did them. How
many copies there were is the number of their first operations. That is only so if these operations happen
nowhere else, in another fan-out or in a copy already under way, and if those of one round are over when those
of the next begin. Any other fan-out would get a width that is wrong, and nothing would say so.

Where the flow itself begins all copies and then waits for one after the other, the first wait shows that no
more of them begin. Where coroutines of a ``gather``, or tasks, make their first calls before they wait for
anything, none begins once a wait of another is over. So rounds of these in a loop are told apart, several
such fan-outs one after the other, and other paths that do the same one by one. Only of one copy alone other
code may have done as much: where there is such code, it counts as having done so.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from analyzer.static.application import LEFT, Operation, Path
from mup.events.sites import Site

__all__ = ["also_one_by_one", "needs_times", "not_told_apart"]

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


def needs_times(paths: Iterable[Path]) -> bool:
    """Return whether the order of operations does not tell all copies apart, but when waits are over does."""
    listed = list(paths)
    at_once = [o for path in listed for o in path.walk() if o.op == "fan-out" and o.target == "at once"]
    if not at_once:
        return False
    doubtful = {o for path in listed for o in _in_loops(path, in_loop=False)} | _shared(listed, at_once)
    return any(fan_out in doubtful or _comes_again(fan_out, to_wait=False) for fan_out in at_once)


def also_one_by_one(paths: Iterable[Path]) -> set[Site]:
    """Return the places of the fan-outs told apart by waits whose calls are also made outside of fan-outs."""
    listed = list(paths)
    fan_outs = [o for path in listed for o in path.walk() if o.op == "fan-out" and _in_order(o)]
    if not fan_outs:
        return set()
    plain = {key for key, _ in _plain(listed, {fan_out.site for fan_out in fan_outs})}
    return {fan_out.site for fan_out in fan_outs if not plain.isdisjoint(_keys(fan_out))}


def _found(paths: list[Path]) -> Iterator[tuple[Operation, str]]:
    elsewhere = "its calls are also made by other code of the endpoint, at the same place in the source"
    fan_outs = [o for path in paths for o in path.walk() if o.op == "fan-out"]
    shared = _shared(paths, fan_outs)
    beside = {fan_out for path in paths for fan_out in _beside(path)}
    plain = set(_plain(paths, {fan_out.site for fan_out in fan_outs}))
    # What is waited for anywhere is left behind by an exception alone.
    forgotten = {key for key, waited in plain if not waited and (key, True) not in plain}
    for fan_out in fan_outs:
        told = forgotten.isdisjoint(_keys(fan_out)) if _in_order(fan_out) else fan_out not in shared
        if fan_out in beside or not told:
            yield fan_out, elsewhere
        if _comes_again(fan_out, to_wait=fan_out.target == "at once"):
            yield fan_out, "what a copy begins with may also come later in it"
    for path in paths:
        for fan_out in _left_early(path, in_loop=False):
            yield fan_out, "it is in a loop, whose next round may begin before all of its copies have ended"


def _shared(paths: Iterable[Path], fan_outs: Iterable[Operation]) -> set[Operation]:
    """Return the fan-outs whose calls other code makes, too, or that an execution may come to twice."""
    makers: defaultdict[_Key, set[Site | None]] = defaultdict(set)
    repeated: set[_Key] = set()
    for path in paths:
        _collect(path, None, makers)
        repeated |= {key for key, number in _times(path).items() if number > 1}
    found = {key for key, made_by in makers.items() if len(made_by) > 1} | repeated
    return {fan_out for fan_out in fan_outs if not found.isdisjoint(_keys(fan_out))}


def _comes_again(fan_out: Operation, *, to_wait: bool) -> bool:
    """Return whether what a copy begins with may also come later in it; ``to_wait``: before it waits."""
    firsts, laters = _order(fan_out.bodies, to_wait=to_wait)
    return not firsts.isdisjoint(laters)


def _in_order(fan_out: Operation) -> bool:
    """Return whether the flow begins all copies before it waits for the first."""
    return fan_out.target in ("flow", "at once")


def _beside(path: Path) -> Iterator[Operation]:
    """Yield the fan-outs beside which, while copies are under way, other code makes the same calls."""
    for index, operation in enumerate(path.operations):
        for body in operation.bodies:
            yield from _beside(body)
        if _begins_tasks(operation):
            for other in path.operations[index + 1 : _end(path, index)]:
                # A log shows which of these calls are waited for.
                if other.target != LEFT and not _keys(operation).isdisjoint(_keys(other)):
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


def _collect(path: Path, maker: Site | None, makers: defaultdict[_Key, set[Site | None]]) -> None:
    for operation in path.operations:
        if operation.op in ("call", "query"):
            makers[_key(operation)].add(maker)
        for body in operation.bodies:
            _collect(body, operation.site if operation.op == "fan-out" else maker, makers)


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


def _order(bodies: Iterable[Path], *, to_wait: bool) -> tuple[set[_Key], set[_Key]]:
    """Return what a copy may begin with, and what may follow in it; ``to_wait``: before it waits."""
    orders = [_order_of(body, to_wait=to_wait) for body in bodies]
    return {key for one in orders for key in one.firsts}, {key for one in orders for key in one.laters}


@dataclass
class _Order:
    """The same of one path.

    Attributes:
        nothing: It may do nothing.
        waits: It may not come to its end without a wait.
    """

    firsts: set[_Key] = field(default_factory=set)
    laters: set[_Key] = field(default_factory=set)
    nothing: bool = True
    waits: bool = False


def _order_of(path: Path, *, to_wait: bool) -> _Order:
    found = _Order()
    something = False  # may have come before
    for operation in path.operations:
        if operation.op in ("call", "query"):
            one = _Order({_key(operation)}, nothing=False)
        elif operation.bodies:
            inner = [_order_of(body, to_wait=to_wait) for body in operation.bodies]
            one = _Order({k for o in inner for k in o.firsts}, {k for o in inner for k in o.laters})
            one.nothing = operation.op != "choice" or any(o.nothing for o in inner)
            one.waits = operation.op == "choice" and all(o.waits for o in inner)
            if operation.op != "choice" and not (
                to_wait and operation.op == "loop" and all(o.waits for o in inner)
            ):
                # A loop comes to its first again; what a task does may come later than what follows it.
                one.laters |= one.firsts
        else:
            if to_wait and operation.op == "get":
                found.waits = True
                break
            continue
        if found.nothing:
            found.firsts |= one.firsts
        else:
            found.laters |= one.firsts
        if something:
            found.laters |= one.firsts
        found.laters |= one.laters
        found.nothing, something = found.nothing and one.nothing, True
        if to_wait and one.waits:
            found.waits = True
            break
    return found


def _in_loops(path: Path, *, in_loop: bool) -> Iterator[Operation]:
    """Yield the fan-outs in loops."""
    for operation in path.operations:
        if in_loop and operation.op == "fan-out":
            yield operation
        for body in operation.bodies:
            yield from _in_loops(body, in_loop=in_loop or operation.op == "loop")


def _left_early(path: Path, *, in_loop: bool) -> Iterator[Operation]:
    """Yield the fan-outs in loops of which copies may do something when the flow has gone on."""
    for operation in path.operations:
        if in_loop and operation.op == "join" and operation.target == "early" and operation.of is not None:
            left = path.operations[operation.of] if operation.of >= 0 else None
            if left is not None and left.op == "fan-out" and not all(map(_waits_last, left.bodies)):
                yield left
        for body in operation.bodies:
            yield from _left_early(body, in_loop=in_loop or operation.op == "loop")


def _waits_last(copy: Path) -> bool:
    """Return whether a copy begins nothing once it has waited for something."""
    ops = [operation.op for operation in copy.operations]
    return "get" not in ops or set(ops[ops.index("get") :]) == {"get"}
