"""Time that an entry holds its thread and its caller, given the times of its activities.

Times are carried as mean (seconds) and variance (seconds squared). A sequence adds them, an OR mixes
them, a loop adds a random number of them, and an AND join takes the maximum of branches that are assumed
to be independent since the fork they have in common, each with a gamma distribution of its moments. A
fan-out takes the maximum of a random number of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from mup.lqn.distributions import Constant
from mup.lqn.lowered import Arc, Block, FanOut, Fork, Graph, Loop
from simulator.analytic.entries.widths import companions, most, unfinished, widths_of

__all__ = ["ActivityGraph", "EntryTimes", "Moments", "Overlap", "fanned", "latest", "meeting"]

Moments = tuple[float, float]
"""Mean and variance of a time or of a count."""
FloatArray = npt.NDArray[np.float64]

GRID = np.linspace(0.0, 1.0, 161) ** 2
WEIGHTS = np.convolve(np.diff(GRID), (0.5, 0.5))  # trapezoidal rule
NODES, NODE_WEIGHTS = (
    (np.polynomial.legendre.leggauss(4)[0] + 1) / 2,
    np.polynomial.legendre.leggauss(4)[1] / 2,
)
INTEGRATED = 10
"""Standard deviations beyond the mean at which the integral over a maximum ends."""
LOST = 1e-9
"""Probability of a graph's ends that rounding may lose."""
CERTAIN = 1e-6
"""Squared coefficient of variation below which a time counts as constant."""


def latest(times: Sequence[Moments], needed: int | None = None) -> Moments:
    """Return the moments of the time at which all (or ``needed``) of independent times are over."""
    times = [(max(m, 0.0), max(v, 0.0)) for m, v in times]
    count = len(times) if needed is None else needed
    if len(times) == 1:
        return times[0]
    if all(v <= CERTAIN * m * m for m, v in times):
        return sorted(times)[count - 1]
    if len(times) == 2:
        first, second = _later(times[0], times[1])
        if count == 1:
            # The earlier one is what the later one is not.
            first = sum(m for m, _ in times) - first
            second = sum(v + m * m for m, v in times) - second
        return first, max(second - first * first, 0.0)
    top = max(m + INTEGRATED * math.sqrt(v) for m, v in times)
    at = GRID * top
    # at_most[k] = probability that exactly k branches are over.
    over = [np.ones_like(at)] + [np.zeros_like(at) for _ in times]
    for mean, variance in times:
        done = _over((mean, variance), at)
        for k in range(len(times), 0, -1):
            over[k] = over[k] * (1 - done) + over[k - 1] * done
        over[0] = over[0] * (1 - done)
    tail = sum(over[:count], np.zeros_like(at))
    first = top * float(WEIGHTS @ tail)
    second = 2 * top * float(WEIGHTS @ (at * tail))
    return first, max(second - first * first, 0.0)


def fanned(time: Moments, fan: FanOut) -> Moments:
    """Return the moments of the time that a flow waits for copies of a branch which each take such a time."""
    width, first, limit = fan.body.count, fan.first, fan.limit
    mean, variance = max(time[0], 0.0), max(time[1], 0.0)
    if limit is not None and most(width, None) > limit:
        return _in_turns((mean, variance), fan, limit)
    if variance <= CERTAIN * mean * mean:
        widths, chances = widths_of(width)
        some = 0.0 if first == 0 else float(chances[widths > 0].sum())
        return some * mean, some * variance + some * (1 - some) * mean * mean
    widest = most(width, None)
    widest = widest if math.isfinite(widest) else width.mean * 2 * INTEGRATED
    # Tails are those of exponential times at most, nearly: the maximum of n is some log n longer.
    top = mean + math.sqrt(variance) * (INTEGRATED + math.log1p(widest) * max(math.sqrt(variance) / mean, 1))
    at = GRID * top
    tail = unfinished(_over((mean, variance), at), width, first)
    found = top * float(WEIGHTS @ tail)
    second = 2 * top * float(WEIGHTS @ (at * tail))
    return found, max(second - found * found, 0.0)


def _in_turns(time: Moments, fan: FanOut, limit: int) -> Moments:
    """Return the same where at most so many copies run at once; see ``widths``."""
    mean, variance = time
    rigid = 1 - min(variance / (mean * mean), 1.0) if mean > 0 else 0.0
    widths, chances = widths_of(fan.body.count)
    first = second = 0.0
    known: dict[int, Moments] = {}
    for width, chance in zip(widths.tolist(), chances.tolist(), strict=True):
        once = min(int(width), limit)
        if once not in known:
            known[once] = fanned(time, FanOut(replace(fan.body, count=Constant(once)), None, None, None))
        wait, noise = known[once]
        more = max(width - limit, 0.0)
        # Of constant times the last turn is as long as the others, however few are left.
        wait += more / limit * mean + rigid * (math.ceil(width / limit) - width / limit) * mean * (more > 0)
        noise += more * variance / limit**2
        first += chance * wait
        second += chance * (noise + wait * wait)
    return first, max(second - first * first, 0.0)


def meeting(times: Sequence[Moments], last: float | None = None) -> tuple[list[float], list[list[float]]]:
    """Return how independent times that start together share the time until all are over.

    Args:
        times: Of the branches.
        last: The mean time until all are over, if it is known.

    Returns:
        The time of each, a moment at which n go on counted as 1 / n for each of them (their sum is the
        mean of the maximum), and the mean time that each goes on together with each other.
    """
    if len(times) == 2:
        (one, _), (other, _) = times
        both = min(max(one + other - (latest(times)[0] if last is None else last), 0.0), one, other)
        return [one - both / 2, other - both / 2], [[one, both], [both, other]]
    top = max(m + INTEGRATED * math.sqrt(max(v, 0.0)) for m, v in times)
    at = GRID * top
    left = np.array([1 - _over(t, at) for t in times])
    shares = np.zeros(len(times))
    for node, weight in zip(NODES, NODE_WEIGHTS, strict=True):
        going = 1 - left + left * node
        shares += weight * ((left * going.prod(axis=0) / going) @ WEIGHTS)
    together = (left * WEIGHTS) @ left.T
    return list(top * shares), (top * together).tolist()


def _later(one: Moments, other: Moments) -> tuple[float, float]:
    """Return the first two moments of the later of two independent times, exactly.

    Most joins are of two branches: a call, and what its caller does meanwhile. Of a gamma time T of shape a,
    E[T^k; T > U] = E[T^k] P(T' > U), with T' of shape a + k and the same scale.
    """
    first = second = 0.0
    for (mean, variance), rival in ((one, other), (other, one)):
        first += mean * _outlasts((mean, variance), rival, 1)
        second += (variance + mean * mean) * _outlasts((mean, variance), rival, 2)
    return first, second


@cache
def _special() -> Any:
    """Return scipy's special functions: their import takes as long as a small simulation."""
    from scipy import special  # noqa: PLC0415

    return special


def _outlasts(time: Moments, rival: Moments, more: int) -> float:
    """Return how likely a time whose gamma shape is raised by so much is later than another one."""
    (mean, variance), (limit, noise) = time, rival
    if variance <= CERTAIN * mean * mean:
        return float(_special().gammainc(limit * limit / noise, mean * limit / noise))
    shape = mean * mean / variance + more
    if noise <= CERTAIN * limit * limit:
        return float(_special().gammaincc(shape, limit * mean / variance))
    scale, other_scale = variance / mean, noise / limit
    return float(_special().betainc(limit * limit / noise, shape, scale / (scale + other_scale)))


def _over(time: Moments, at: FloatArray) -> FloatArray:
    """Return how likely a gamma time of these moments is over at some instants."""
    mean, variance = time
    if variance <= CERTAIN * mean * mean:
        return np.asarray(at >= mean, dtype=float)
    return np.asarray(_special().gammainc(mean * mean / variance, at * (mean / variance)))


@dataclass(frozen=True, slots=True)
class Overlap:
    """Two branches of a fork that are joined later.

    Attributes:
        one, other: Their activities; of copies of one branch the same.
        forks: Executions of the fork per request.
        times: Mean time of either, per execution.
        together: Mean time that both go on, per execution.
    """

    one: frozenset[str]
    other: frozenset[str]
    forks: float
    times: tuple[float, float]
    together: float


@dataclass(frozen=True, slots=True)
class EntryTimes:
    """Moments of the times until the reply is out and until the thread is free.

    Attributes:
        reply, hold: The moments.
        shares: Part of the time of an activity that counts where several run at once; 1 if not listed.
        overlaps: Pairs of parallel branches.
    """

    reply: Moments
    hold: Moments
    shares: Mapping[str, float] = field(default_factory=dict)
    overlaps: tuple[Overlap, ...] = ()


@dataclass(slots=True)
class _Token:
    """A flow at some point: its probability, the forks it comes from, the time since the start."""

    chance: float
    forks: tuple[tuple[int, float, float], ...]
    mean: float
    variance: float


class ActivityGraph:
    """The activities of an entry that a request can get to, with what is waited for.

    Attributes:
        start, ends: Its first activity, and all that nothing follows.
        visits: Mean executions per request, of every activity that ever runs.
        held: Activities the thread waits for.
        awaited: Activities the caller waits for.
        width: At most how many flows of a request are under way at once; infinite if nothing bounds it.
        waits: A thread is held until all flows are over.
        replying: Those of its activities that the reply may leave behind, by name.
        top, arcs, carried: Of the graph (``mup.lqn.lowered.Graph``).

    Args:
        graph: Of the entry; nothing in it is unmeasured.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.waits = graph.entry.waits
        self.top, self.arcs, self.carried = graph.top, graph.arcs, graph.carried
        self.start = graph.start
        self.ends = graph.ends
        self.visits = graph.visits
        self.width = self._width(graph.top)
        replying = {name for name in graph.replying if name in self.visits}
        self.held = set(self.visits) if self.waits else self._before(graph.carried)
        self.awaited = self._before(replying) if replying else set(self.held)
        self.replying = sorted(replying)
        self._branches: dict[int, list[frozenset[str]]] = {}
        self._shares: dict[str, float] = {}
        self._overlaps: list[Overlap] = []

    def times(self, moments: Mapping[str, Moments]) -> EntryTimes:
        """Evaluate the graph for activities of these times."""
        if len(self.visits) == 1:
            only = moments[self.start]
            return EntryTimes(only, only)
        self._shares, self._overlaps = {}, []
        top = self._graph.top
        tokens = self._run(top, moments)
        end = self._end(top, tokens)
        if self.waits:
            carried = self._graph.carried
            others = [tokens[n] for n in sorted(self.ends) if n in tokens and n not in carried]
            if others:
                mean, variance = latest([(t.mean, t.variance) for t in (end, *others)])
                end = _Token(1.0, (), mean, variance)
        replies = [tokens[n] for n in self.replying if n in tokens]
        known = sum(t.chance for t in replies)
        if known < 1 - LOST:
            replies.append(_Token(1 - known, (), end.mean, end.variance))
        reply = _mixed(replies)
        return EntryTimes(
            (reply.mean, reply.variance), (end.mean, end.variance), self._shares, tuple(self._overlaps)
        )

    def flow_from(self, start: str) -> frozenset[str]:
        """Return the activities that the flow which starts here may run itself, loop bodies included."""
        return self._graph.flow_from(start)

    def links(self) -> Iterator[tuple[str, str, float, tuple[str, ...]]]:
        """Yield which activity follows which in the same flow, how often per request, and beside what.

        The flow goes with the one branch that makes calls, if the others of its fork only compute until
        they are joined: that is what waiting for the answer to a call at once looks like. The last of a link
        are the activities that have to be over, too.
        """
        for arc in self._graph.arcs.values():
            arriving = [n for n in arc.arriving if n in self.visits]
            beside: tuple[str, ...] = ()
            if arc.join is not None:
                beside = tuple(n for n in arriving if self._computes(n))
                arriving = [n for n in arriving if n not in beside]
                if len(arriving) != 1:
                    continue
            following = [name for name, _ in arc.then.successors]
            if isinstance(arc.then, Fork):
                calling = [n for n in following if not self._computes(n)]
                following = calling if len(calling) == 1 else following[:1]
            flow = sum(self.visits[n] for n in arriving)
            for name in arriving:
                for post in following:
                    if flow > 0 and post in self.visits:
                        yield name, post, min(self.visits[name] / flow, 1.0) * self.visits[post], beside

    def _width(self, block: Block) -> float:
        """Return how many flows of a block are under way at once, at most."""
        width = 1.0
        for arc in block.arcs:
            then = arc.then
            if isinstance(then, Fork):
                width += max(sum(not self._idle(name) for name, _ in then.successors), 1) - 1
            inner = [self._width(body) for body in block.bodies.get(arc.number, ())]
            if isinstance(then, FanOut):
                width += max(most(then.body.count, then.limit) * inner[0] - (then.first is None), 0)
            else:
                width += sum(more - 1 for more in inner)
        return width

    def _joined_next(self, name: str) -> bool:
        """Tell whether nothing but a join of several branches follows an activity."""
        arc = self._graph.after.get(name)
        return arc is not None and arc.join is not None

    def _computes(self, name: str) -> bool:
        """Tell whether a branch is one activity that calls nothing and then waits to be joined."""
        return self._joined_next(name) and not self._graph.activities[name].calls

    def _idle(self, name: str) -> bool:
        """Tell whether a branch consists of an activity that does nothing: it only waits to be joined."""
        activity = self._graph.activities[name]
        busy = activity.calls or any(t is None or t.mean > 0 for t in (activity.demand, activity.delay))
        return not busy and self._joined_next(name)

    def _before(self, goals: Iterable[str]) -> set[str]:
        """Return these activities, of those that ever run, and everything they come after."""
        found: set[str] = set()
        stack = list(goals)
        while stack:
            name = stack.pop()
            if name in found or name not in self.visits:
                continue
            found.add(name)
            into = self._graph.into.get(name)
            if into is not None:
                stack.extend(into.arriving)
            following = self._graph.after.get(name)
            if following is not None and isinstance(following.then, Loop):
                for body in following.then.bodies:
                    stack.extend(self._graph.flow_from(body.start))
            elif following is not None and isinstance(following.then, FanOut) and following.then.first != 0:
                stack.extend(self._graph.flow_from(following.then.body.start))
        return found

    def _run(self, block: Block, moments: Mapping[str, Moments]) -> dict[str, _Token]:
        """Return the tokens at the end of every activity of a block, from time 0 at its start."""
        mean, variance = moments[block.start]
        tokens = {block.start: _Token(1.0, (), mean, variance)}
        for arc in block.arcs:
            arriving = [tokens[n] for n in arc.arriving if n in tokens]
            token = self._joined(arc, arriving)
            successors = arc.then.successors
            if isinstance(arc.then, Loop | FanOut):
                if isinstance(arc.then, Loop):
                    token = self._looped(arc.then, block.bodies[arc.number], token, moments)
                else:
                    token = self._fanned(arc.then, block.bodies[arc.number][0], token, tokens, moments)
                if arc.then.continuation is None:
                    tokens[arc.arriving[0]] = token
                    continue
                successors = ((arc.then.continuation, 1.0),)
            forks = token.forks
            if isinstance(arc.then, Fork) and len(successors) > 1:
                forks = (*forks, (arc.number, token.mean, token.variance))
            for name, chance in successors:
                more, noise = moments[name]
                tokens[name] = _Token(token.chance * chance, forks, token.mean + more, token.variance + noise)
        return tokens

    def _joined(self, arc: Arc, arriving: list[_Token]) -> _Token:
        if len(arriving) == 1:
            return arriving[0]
        if arc.join is None:
            return _mixed(arriving)
        common = _common(arriving)
        fork, start, noise = common[-1] if common else (-1, 0.0, 0.0)
        times = [(t.mean - start, t.variance - noise) for t in arriving]
        needed = min(arc.join.needed, len(arriving)) if arc.join.quorum else None
        mean, variance = latest(times, needed)
        if fork >= 0 and min(m for m, _ in times) > 0:
            self._share(arc, fork, times, mean, None if needed else mean)
        return _Token(min(t.chance for t in arriving), common, start + mean, noise + variance)

    def _share(self, arc: Arc, fork: int, times: list[Moments], mean: float, last: float | None) -> None:
        """Note how the branches that meet here share the time until then.

        Args:
            arc: What joins them.
            fork: Index of the arc they come from.
            times: Of each, since the fork.
            mean: Until they are joined.
            last: Until all are over, if that is known.
        """
        split = self._graph.arcs[fork]
        if arc.number not in self._branches:
            self._branches[arc.number] = self.branches(arc, split)
        branches = self._branches[arc.number]
        counted, together = meeting(times, last)
        scale = mean / sum(counted)
        for branch, share, (time, _) in zip(branches, counted, times, strict=True):
            for name in branch:
                self._shares[name] = self._shares.get(name, 1.0) * min(share * scale / time, 1.0)
        forks = self.visits[split.then.successors[0][0]]
        for i, one in enumerate(branches):
            for j in range(i + 1, len(branches)):
                pair = times[i][0], times[j][0]
                self._overlaps.append(Overlap(one, branches[j], forks, pair, together[i][j]))

    def branches(self, arc: Arc, split: Arc) -> list[frozenset[str]]:
        """Return the activities that run in one alone of the branches between a fork and what joins them."""
        before = self._before(split.arriving)
        sets = [self._before({n}) - before for n in arc.arriving if n in self.visits]
        alone = [s - set().union(*(o for o in sets if o is not s)) for s in sets]
        return [frozenset(s) for s in alone]

    def _looped(
        self, loop: Loop, bodies: list[Block], token: _Token, moments: Mapping[str, Moments]
    ) -> _Token:
        mean, variance = token.mean, token.variance
        for repeated, body in zip(loop.bodies, bodies, strict=True):
            times, spread = repeated.count.mean, repeated.count.variance
            end = self._end(body, self._run(body, moments))
            mean += times * end.mean
            variance += times * end.variance + spread * end.mean**2
        return _Token(token.chance, token.forks, mean, variance)

    def _fanned(
        self,
        fan: FanOut,
        body: Block,
        token: _Token,
        tokens: dict[str, _Token],
        moments: Mapping[str, Moments],
    ) -> _Token:
        """Return the token behind a fan-out; note how its copies share the time until then."""
        end = self._end(body, self._run(body, moments))
        time = end.mean, end.variance
        mean, variance = fanned(time, fan)
        names = frozenset(_names(body))
        if fan.first is not None:
            # The last of the others: whether that is waited for is up to the entry.
            last, noise = fanned(time, fan._replace(first=None))
            left = min(names & self.ends)
            tokens[left] = _Token(token.chance, (), token.mean + last, token.variance + noise)
        if end.mean > 0:
            width = fan.body.count
            share = min(mean / (width.mean * end.mean), 1.0) if fan.first != 0 else 1.0
            for name in names:
                self._shares[name] = self._shares.get(name, 1.0) * share
            others = companions(width, fan.limit)
            if others > 0:
                pair = end.mean if fan.limit is not None else meeting((time, time))[1][0][1]
                # It meets itself, so either side is counted, and there are as many as copies.
                copies = self.visits[fan.body.start]
                sides = end.mean, end.mean
                self._overlaps.append(Overlap(names, names, copies, sides, pair * others / 2))
        return _Token(token.chance, token.forks, token.mean + mean, token.variance + variance)

    def _end(self, block: Block, tokens: dict[str, _Token]) -> _Token:
        graph = self._graph
        carried = graph.carried if block is graph.top else graph.flow_from(block.start)
        return _mixed([t for n, t in tokens.items() if n in self.ends and n in carried])


def _names(block: Block) -> Iterator[str]:
    """Yield all activities of a block and of the bodies in it."""
    yield block.start
    for arc in block.arcs:
        inside = {body.start for body in block.bodies.get(arc.number, ())}
        yield from (name for name, _ in arc.then.successors if name not in inside)
    for bodies in block.bodies.values():
        for body in bodies:
            yield from _names(body)


def _common(tokens: Iterable[_Token]) -> tuple[tuple[int, float, float], ...]:
    """Return the forks that several tokens have in common."""
    first, *others = [t.forks for t in tokens]
    length = len(first)
    for forks in others:
        length = min(length, len(forks))
        while length and first[:length] != forks[:length]:
            length -= 1
    return first[:length]


def _mixed(tokens: list[_Token]) -> _Token:
    """Return the token of exclusive ones."""
    if len(tokens) == 1:
        return tokens[0]
    total = sum(t.chance for t in tokens)
    mean = sum(t.chance * t.mean for t in tokens) / total
    second = sum(t.chance * (t.variance + t.mean**2) for t in tokens) / total
    return _Token(total, _common(tokens), mean, max(second - mean * mean, 0.0))
