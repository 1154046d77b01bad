"""How does the graph of an entry become a tape: operations on slots, in order?"""

from __future__ import annotations

from dataclasses import dataclass, field

from mup.lqn.lowered import Arc, Block, Fork, Loop
from simulator.analytic.compiled.records import ADD, BEGIN, JOIN, LOOPED, MIX
from simulator.analytic.entries.entry_times import LOST, ActivityGraph

__all__ = ["Tapes"]


@dataclass(frozen=True, slots=True)
class _Token:
    """A flow at some point: the slot of its time, its probability, the forks it comes from, their slots."""

    slot: int
    chance: float
    forks: tuple[tuple[int, int], ...]


@dataclass(slots=True)
class Tapes:
    """The tapes of all plans, one behind the other; see ``records.Layout`` for the lists.

    Attributes:
        slots: How many one plan uses at most.
    """

    op_first: list[int] = field(default_factory=lambda: [0])
    ops: list[tuple[int, ...]] = field(default_factory=list)
    arguments: list[int] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    hold_slot: list[int] = field(default_factory=list)
    reply_slot: list[int] = field(default_factory=list)
    branch_first: list[int] = field(default_factory=lambda: [0])
    branch_steps: list[int] = field(default_factory=list)
    overlap_first: list[int] = field(default_factory=lambda: [0])
    overlap_one: list[int] = field(default_factory=list)
    overlap_other: list[int] = field(default_factory=list)
    overlap_forks: list[float] = field(default_factory=list)
    slots: int = 1

    def add(self, graph: ActivityGraph, names: list[str]) -> None:
        """Add the tape of a plan with these steps."""
        hold = reply = 0
        if len(graph.visits) > 1:
            hold, reply = _Recorder(self, graph, names).record()
        self.hold_slot.append(hold)
        self.reply_slot.append(reply)
        self.op_first.append(len(self.ops))
        self.overlap_first.append(len(self.overlap_one))


class _Recorder:
    """Goes through one graph once, as ``ActivityGraph.times`` does in every round."""

    def __init__(self, tapes: Tapes, graph: ActivityGraph, names: list[str]) -> None:
        self._tapes, self._graph = tapes, graph
        self._steps = {name: number for number, name in enumerate(names)}
        self._used = 0

    def record(self) -> tuple[int, int]:
        """Return the slots of the time the thread is held, and of the time until the reply."""
        graph = self._graph
        tokens = self._run(graph.top)
        end = self._end(graph.top, tokens)
        if graph.waits:
            others = [tokens[n] for n in sorted(graph.ends) if n in tokens and n not in graph.carried]
            if others:
                end = _Token(self._join([end, *others], len(others) + 1), 1.0, ())
        replies = [tokens[n] for n in graph.replying if n in tokens]
        known = sum(t.chance for t in replies)
        if known < 1 - LOST:
            replies.append(_Token(end.slot, 1 - known, ()))
        return end.slot, self._mixed(replies).slot

    def _op(self, code: int, *rest: int) -> int:
        """Add an operation that writes to a slot of its own; return the slot."""
        out = self._used
        self._used += 1
        self._tapes.slots = max(self._tapes.slots, self._used)
        self._tapes.ops.append((code, out, *rest, *([0] * (7 - len(rest)))))
        return out

    def _slots(self, tokens: list[_Token]) -> int:
        first = len(self._tapes.arguments)
        self._tapes.arguments += [token.slot for token in tokens]
        return first

    def _run(self, block: Block) -> dict[str, _Token]:
        tokens = {block.start: _Token(self._op(BEGIN, self._steps[block.start]), 1.0, ())}
        for arc in block.arcs:
            token = self._joined(arc, [tokens[n] for n in arc.arriving if n in tokens])
            successors = arc.then.successors
            if isinstance(arc.then, Loop):
                token = self._looped(arc.then, block.bodies[arc.number], token)
                if arc.then.continuation is None:
                    tokens[arc.arriving[0]] = token
                    continue
                successors = ((arc.then.continuation, 1.0),)
            forks = token.forks
            if isinstance(arc.then, Fork) and len(successors) > 1:
                forks = (*forks, (arc.number, token.slot))
            for name, chance in successors:
                slot = self._op(ADD, token.slot, self._steps[name])
                tokens[name] = _Token(slot, token.chance * chance, forks)
        return tokens

    def _looped(self, loop: Loop, bodies: list[Block], token: _Token) -> _Token:
        ends = [self._end(body, self._run(body)) for body in bodies]
        weights = len(self._tapes.weights)
        for repeated in loop.bodies:
            self._tapes.weights += [repeated.count.mean, repeated.count.variance]
        slot = self._op(LOOPED, self._slots(ends), len(ends), token.slot, weights)
        return _Token(slot, token.chance, token.forks)

    def _end(self, block: Block, tokens: dict[str, _Token]) -> _Token:
        graph = self._graph
        carried = graph.carried if block is graph.top else graph.flow_from(block.start)
        return self._mixed([t for n, t in tokens.items() if n in graph.ends and n in carried])

    def _mixed(self, tokens: list[_Token]) -> _Token:
        if len(tokens) == 1:
            return tokens[0]
        total = sum(t.chance for t in tokens)
        weights = len(self._tapes.weights)
        self._tapes.weights += [t.chance / total for t in tokens]
        slot = self._op(MIX, self._slots(tokens), len(tokens), weights)
        return _Token(slot, total, _common(tokens))

    def _joined(self, arc: Arc, arriving: list[_Token]) -> _Token:
        if len(arriving) == 1:
            return arriving[0]
        if arc.join is None:
            return self._mixed(arriving)
        common = _common(arriving)
        needed = min(arc.join.needed, len(arriving)) if arc.join.quorum else len(arriving)
        slot = self._join(
            arriving, needed, quorum=arc.join.quorum, fork=common[-1] if common else None, arc=arc
        )
        return _Token(slot, min(t.chance for t in arriving), common)

    def _join(
        self,
        arriving: list[_Token],
        needed: int,
        *,
        quorum: bool = False,
        fork: tuple[int, int] | None = None,
        arc: Arc | None = None,
    ) -> int:
        overlap = branch = -1
        if fork is not None and arc is not None:
            overlap, branch = len(self._tapes.overlap_one), len(self._tapes.branch_first) - 1
            self._note_branches(arc, fork[0], branch)
        start = -1 if fork is None else fork[1]
        first = self._slots(arriving)
        return self._op(JOIN, first, len(arriving), start, needed, int(quorum), overlap, branch)

    def _note_branches(self, arc: Arc, fork: int, first: int) -> None:
        tapes, graph = self._tapes, self._graph
        split = graph.arcs[fork]
        branches = graph.branches(arc, split)
        for branch in branches:
            tapes.branch_steps += sorted(self._steps[name] for name in branch)
            tapes.branch_first.append(len(tapes.branch_steps))
        for i in range(len(branches)):
            for j in range(i + 1, len(branches)):
                tapes.overlap_one.append(first + i)
                tapes.overlap_other.append(first + j)
                tapes.overlap_forks.append(graph.visits[split.then.successors[0][0]])


def _common(tokens: list[_Token]) -> tuple[tuple[int, int], ...]:
    """Return the forks that several tokens have in common."""
    first, *others = [t.forks for t in tokens]
    length = len(first)
    for forks in others:
        length = min(length, len(forks))
        while length and first[:length] != forks[:length]:
            length -= 1
    return first[:length]
