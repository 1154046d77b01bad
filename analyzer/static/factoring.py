"""When may several ways through a piece of code become one, by a choice among what they did?

Ways are told apart by their operations. Enumerating them is exact, but 40 successive branches have 2 to the
40 ways. Ways that nothing can tell apart later are therefore folded: they go on as one, whose last
operation is a *choice* between what each of them did. Its bodies are complete, that is, no operation behind
it waits for a call inside and none inside for a call before it; where that is not so, the choice begins
earlier, or the ways stay apart.

What is lost is which body goes with which value of a variable, and with which body of the next choice: every
combination is accepted, so no sequence that can happen is missed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from analyzer.static.application import Operation, Path
from analyzer.static.repetition import Repetition
from analyzer.static.state import Flow, State, merge
from analyzer.static.values import LOST, Value, alternatives, futures
from mup.events.sites import Site

__all__ = ["fold"]

Operations = tuple[Operation, ...]
Lines = tuple[int, ...]
Way = tuple[Operations, Lines]
"""Operations that wait for each other only, and the lines of the local work around them."""

Live = Sequence[Collection[str] | None]
"""Per frame the names that may still be read; None = all of them."""


def fold(flows: Sequence[Flow], base: int, live: Live, site: Site) -> list[Flow]:
    """Return the flows with those folded, in place, that nothing can tell apart later.

    Folded flows have equal operations; merging them is left to the caller.

    Args:
        flows: Ways on from one place, all of which end alike.
        base: How many operations they have in common at least; these are not touched.
        live: What the code that follows may still read.
        site: The place of the choice.
    """
    groups: dict[tuple[Operations, int], list[int]] = {}
    for number, flow in enumerate(flows):
        operations = flow.state.operations
        pinned = _pinned(flow, base, live)
        # A second response on one way must not be confused with the first one on another.
        groups.setdefault((operations[:pinned], _responses(operations[base:])), []).append(number)
    found = list(flows)
    for (prefix, _), numbers in groups.items():
        folded = _folded([flows[n] for n in numbers], len(prefix), live, site)
        for number, flow in zip(numbers, folded, strict=True):
            found[number] = flow
    return found


def _folded(flows: list[Flow], least: int, live: Live, site: Site) -> list[Flow]:
    states = [flow.state for flow in flows]
    done = [state.operations for state in states]
    if len(set(done)) < 2:
        return flows
    cut = _closed(done, _shared(done))
    if cut < least:
        return flows
    ways, line = _split([(state.operations, state.local_lines) for state in states], cut)
    first = states[0]
    before = replace(first, operations=first.operations[:cut], local_lines=(*first.local_lines[:cut], line))
    choice = Repetition(before, Operation("choice", site, bodies=_bodies(ways, site)))
    ended = [choice.end(flow) for flow in flows]
    forgotten = _lost(merge(flow.state for flow in ended)[0], live)
    # Ways stay apart if what they have in store for later would become unknown together.
    return ended if forgotten <= set().union(*(_lost(state, live) for state in states)) else flows


def _shared(done: Sequence[Operations]) -> int:
    """Return how many operations all have in common at the beginning."""
    shortest = min(done, key=len)
    return next((n for n, o in enumerate(shortest) if any(d[n] != o for d in done)), len(shortest))


def _closed(done: Iterable[Operations], cut: int) -> int:
    """Return the last place up to ``cut`` behind which nothing waits for an operation before it."""
    waits = [(n, o.of) for operations in done for n, o in enumerate(operations) if o.of is not None]
    while crossing := [of for n, of in waits if of < cut <= n]:
        cut = min(crossing)
    return cut


def _split(ways: Iterable[Way], cut: int) -> tuple[dict[Operations, Lines], int]:
    """Return what each way did from ``cut`` on, and the line of the local work they share there."""
    ways = list(ways)
    starts = {lines[cut] for _, lines in ways}
    line = starts.pop() if len(starts) == 1 else 0
    rest: dict[Operations, Lines] = {}
    for operations, lines in ways:
        tail = tuple(o if o.of is None else replace(o, of=o.of - cut) for o in operations[cut:])
        own = (0 if line else lines[cut], *lines[cut + 1 :])
        rest[tail] = _first_lines(rest.get(tail, own), own)
    return rest, line


def _first_lines(one: Lines, other: Lines) -> Lines:
    return tuple(min(filter(None, pair), default=0) for pair in zip(one, other, strict=True))


def _bodies(ways: dict[Operations, Lines], site: Site) -> tuple[Path, ...]:
    """Return the bodies of a choice: what ways begin with in common is not repeated."""
    found: dict[Operations, Lines] = {}
    for operations, lines in _tree(list(ways.items()), 0, site):
        several = operations[0].bodies if len(operations) == 1 and operations[0].op == "choice" else ()
        # A choice of nothing but choices is one choice.
        for body in several or (Path(operations, "return", 0, lines),):
            own = body.local_lines
            if several and not own[0]:
                own = (lines[0], *own[1:])
            found[body.operations] = _first_lines(found.get(body.operations, own), own)
    if () in found:
        found[()] = found.pop(())  # nothing comes last
    return tuple(Path(operations, "return", 0, lines) for operations, lines in found.items())


def _tree(ways: list[Way], at: int, site: Site) -> Iterator[Way]:
    """Yield ways that are equal up to operation ``at``, with common beginnings written once."""
    groups: dict[Operation | None, list[Way]] = {}
    for way in ways:
        groups.setdefault(way[0][at] if at < len(way[0]) else None, []).append(way)
    for group in groups.values():
        if len(group) == 1:
            yield group[0]
            continue
        done = [operations for operations, _ in group]
        shared = _shared(done)
        cut = _closed(done, shared)
        if cut == 0:
            yield from _tree(group, shared, site)
            continue
        rest, line = _split(group, cut)
        nested = Operation("choice", site, bodies=_bodies(rest, site))
        lines = group[0][1][:cut]
        for _, other in group:
            lines = _first_lines(lines, other[:cut])
        yield (*done[0][:cut], nested), (*lines, line, 0)


def _responses(operations: Operations) -> int:
    """Return how often a way responds; all bodies of a choice do it equally often."""
    return sum(
        1 if o.op == "respond" else _responses(o.bodies[0].operations) if o.op == "choice" else 0
        for o in operations
    )


def _pinned(flow: Flow, base: int, live: Live) -> int:
    """Return how much of a way must stay as it is, because what it called may yet be waited for."""
    state = flow.state
    pending = (i for value in _reachable(flow, live) for i in futures(value) if i not in state.joined)
    return max(base, 1 + max(pending, default=-1))


def _reachable(flow: Flow, live: Live) -> Iterator[Value]:
    yield flow.value
    for _, value in _named(flow.state, live):
        yield value
    for content in flow.state.heap.values():
        if isinstance(content, Value):
            yield content
        else:
            yield from (value for _, value in content)


def _named(state: State, live: Live) -> Iterator[tuple[tuple[int, str], Value]]:
    for depth, frame in enumerate(state.frames):
        names = live[depth] if depth < len(live) else None
        for name, value in frame.items():
            if names is None or name in names:
                yield (depth, name), value


def _lost(state: State, live: Live) -> set[tuple[int, str]]:
    """Return the variables, lists and dicts that may hold a future nobody knows any more."""
    found = {place for place, value in _named(state, live) if LOST in alternatives(value)}
    return found | {(number, "") for number, content in state.heap.items() if content == LOST}
