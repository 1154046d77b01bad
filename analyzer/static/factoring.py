"""Join several ways through a piece of code into a choice among what they did.

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
from dataclasses import dataclass, replace

from analyzer.static.application import Operation, Path
from analyzer.static.repetition import Repetition, first_lines
from analyzer.static.state import Flow, State, grouped, held_in, united
from analyzer.static.values import LOST, Value, alternatives
from mup.events.sites import Site

__all__ = ["as_trees", "fold", "responses"]

MAX_DEPTH = 60
"""Choices that begin with the same operations are nested this deep; deeper ones repeat them."""

Operations = tuple[Operation, ...]
Lines = tuple[int, ...]

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
        groups.setdefault((operations[:pinned], responses(operations[base:])), []).append(number)
    found = list(flows)
    for (prefix, _), numbers in groups.items():
        folded = _folded([flows[n] for n in numbers], len(prefix), live, site)
        for number, flow in zip(numbers, folded, strict=True):
            found[number] = flow
    return found


def as_trees(paths: Sequence[Path]) -> tuple[Path, ...]:
    """Return paths with their common beginnings written once; they end with a choice of how to go on."""
    groups: dict[tuple[str, int, int], list[Path]] = {}
    for path in paths:
        groups.setdefault((path.ends, path.end_line, responses(path.operations)), []).append(path)
    found: list[Path] = []
    for (ends, line, _), group in groups.items():
        traces = [_Trace.of(path.operations, path.local_lines) for path in group]
        # Where an exception leaves is part of a whole path, not of a body.
        merged = (
            _tree(traces, 0, 0, None, 0) if ends == "return" else ((w.operations, w.lines) for w in traces)
        )
        found += (Path(operations, group[0].ends, line, lines) for operations, lines in merged)
    return tuple(found)


def _folded(flows: list[Flow], least: int, live: Live, site: Site) -> list[Flow]:
    states = [flow.state for flow in flows]
    # What is left to be done may differ where what was done does not.
    ways: dict[Operations, Lines] = {}
    for state in states:
        lines = state.local_lines
        ways[state.operations] = first_lines(ways.get(state.operations, lines), lines)
    traces = [_Trace.of(operations, lines) for operations, lines in ways.items()]
    if len(traces) < 2:
        return flows
    cut = _closed(traces, _shared(traces, least))
    if cut < least:
        return flows
    line = _common_line(traces, cut)
    first = states[0]
    before = replace(first, operations=first.operations[:cut], local_lines=(*first.local_lines[:cut], line))
    choice = Repetition(before, Operation("choice", site, bodies=_bodies(traces, cut, site)))
    ended = [choice.end(flow) for flow in flows]
    forgotten = _lost(united(flow.state for flow in ended), live)
    # Ways stay apart if what they have in store for later would become unknown together.
    return ended if forgotten <= set().union(*(_lost(state, live) for state in states)) else flows


@dataclass(frozen=True, slots=True)
class _Trace:
    """What one way has done.

    Attributes:
        operations: From the begin of the endpoint on.
        lines: Of the local work around them.
        waits: Places of waits, each with the place of what is waited for.
    """

    operations: Operations
    lines: Lines
    waits: tuple[tuple[int, int], ...]

    @staticmethod
    def of(operations: Operations, lines: Lines) -> _Trace:
        """Return a way that did these operations."""
        waits = [(n, o.of) for n, o in enumerate(operations) if o.of is not None]
        waits += [(n, n + place) for n, o in enumerate(operations) for place in o.outward()]
        return _Trace(operations, lines, tuple(waits))

    def part(self, start: int, end: int | None = None) -> Operations:
        """Return the operations of a stretch, counted from its first."""
        stretch = self.operations[start:end]
        # Invariant: a stretch begins where `_closed` found nothing that waits for what is before.
        assert all(o.of is None or o.of >= start for o in stretch)  # noqa: S101
        return tuple(o if o.of is None else replace(o, of=o.of - start) for o in stretch)


def _shared(traces: Sequence[_Trace], known: int) -> int:
    """Return how many operations all have in common at the beginning, if so many are known to be."""
    shortest = min((trace.operations for trace in traces), key=len)
    others = [trace.operations for trace in traces]
    for n in range(known, len(shortest)):
        if any(operations[n] != shortest[n] for operations in others):
            return n
    return len(shortest)


def _closed(traces: Iterable[_Trace], cut: int) -> int:
    """Return the last place up to ``cut`` behind which nothing waits for an operation before it."""
    waits = {wait for trace in traces for wait in trace.waits}
    while crossing := [of for n, of in waits if of < cut <= n]:
        cut = min(crossing)
    return cut


def _common_line(traces: Iterable[_Trace], cut: int) -> int:
    """Return the line of the local work that all ways have in common before operation ``cut``."""
    lines = {trace.lines[cut] for trace in traces}
    return lines.pop() if len(lines) == 1 else 0


def _bodies(traces: Sequence[_Trace], cut: int, site: Site | None, depth: int = 0) -> tuple[Path, ...]:
    """Return the bodies of a choice between what ways did from operation ``cut`` on."""
    shared_line = _common_line(traces, cut)
    found: dict[Operations, Lines] = {}
    for operations, lines in _tree(traces, cut, cut, site, depth):
        several = operations[0].bodies if len(operations) == 1 and operations[0].op == "choice" else ()
        # A choice of nothing but choices is one choice.
        for body in several or (Path(operations, "return", 0, lines),):
            start = (body.local_lines[0] or lines[0]) if several else lines[0]
            own = (0 if start == shared_line else start, *body.local_lines[1:])
            found[body.operations] = first_lines(found.get(body.operations, own), own)
    if () in found:
        found[()] = found.pop(())  # nothing comes last
    return tuple(Path(operations, "return", 0, lines) for operations, lines in found.items())


def _tree(
    traces: Sequence[_Trace], start: int, at: int, site: Site | None, depth: int
) -> Iterator[tuple[Operations, Lines]]:
    """Yield what ways, equal up to ``at``, did from ``start`` on; common beginnings are written once."""
    for group in grouped(
        traces, (one.operations[at] if at < len(one.operations) else None for one in traces)
    ):
        if len(group) == 1 or depth == MAX_DEPTH:
            yield from ((trace.part(start), trace.lines[start:]) for trace in group)
            continue
        shared = _shared(group, at)
        cut = _closed(group, shared)
        if cut == start:
            yield from _tree(group, start, shared, site, depth)
            continue
        place = site or _first_site(group, cut)
        nested = Operation("choice", place, bodies=_bodies(group, cut, site, depth + 1))
        lines = group[0].lines[start:cut]
        for trace in group:
            lines = first_lines(lines, trace.lines[start:cut])
        yield (*group[0].part(start, cut), nested), (*lines, _common_line(group, cut), 0)


def _first_site(traces: Iterable[_Trace], cut: int) -> Site:
    """Return the place of a choice that no single piece of code makes: the first thing done in it."""
    sites = [trace.operations[cut].site for trace in traces if cut < len(trace.operations)]
    return replace(min(sites, key=lambda site: site.line), ordinal=0)


def responses(operations: Operations) -> int:
    """Return how often a way responds; all bodies of a choice do it equally often."""
    return sum(
        1 if o.op == "respond" else responses(o.bodies[0].operations) if o.op in ("choice", "task") else 0
        for o in operations
    )


def _pinned(flow: Flow, base: int, live: Live) -> int:
    """Return how much of a way must stay as it is, because what it called may yet be waited for."""
    state = flow.state
    pending = (i for value in _reachable(flow, live) for i in value.futures() if i not in state.joined)
    return max(base, 1 + max(pending, default=-1))


def _reachable(flow: Flow, live: Live) -> Iterator[Value]:
    yield flow.value
    for _, value in _named(flow.state, live):
        yield value
    for content in flow.state.heap.values():
        yield from held_in(content)


def _named(state: State, live: Live) -> Iterator[tuple[tuple[int, str], Value]]:
    for depth, frame in enumerate(state.frames):
        names = live[depth] if depth < len(live) else None
        for name, value in frame.items():
            # No code mentions the variables of the analyzer's own, which it may still read.
            if names is None or name in names or name.startswith("<"):
                yield (depth, name), value


def _lost(state: State, live: Live) -> set[tuple[int, str]]:
    """Return the variables, lists and dicts that may hold a future that is not tracked any more."""
    found = {place for place, value in _named(state, live) if LOST in alternatives(value)}
    return found | {(number, "") for number, content in state.heap.items() if content == LOST}
