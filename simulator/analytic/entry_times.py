"""How long does an entry hold its thread and its caller, given the times of its activities?

Times are carried as mean (seconds) and variance (seconds squared). A sequence adds them, an OR mixes
them, a loop adds a random number of them, and an AND join takes the maximum of branches that are assumed
to be independent since the fork they have in common, each with a gamma distribution of its moments.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, gammainc, gammaincc

from mup.lqn.distributions import Distribution
from mup.lqn.model import Entry

__all__ = ["ActivityGraph", "EntryTimes", "Moments", "Overlap", "latest", "meeting"]

Moments = tuple[float, float]
"""Mean and variance of a time or of a count."""
FloatArray = npt.NDArray[np.float64]

GRID = np.linspace(0.0, 1.0, 161) ** 2
WEIGHTS = np.convolve(np.diff(GRID), (0.5, 0.5))  # trapezoidal rule
NODES, NODE_WEIGHTS = (
    (np.polynomial.legendre.leggauss(4)[0] + 1) / 2,
    np.polynomial.legendre.leggauss(4)[1] / 2,
)
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
    top = max(m + 10 * math.sqrt(v) for m, v in times)
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
    top = max(m + 10 * math.sqrt(max(v, 0.0)) for m, v in times)
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


def _outlasts(time: Moments, rival: Moments, more: int) -> float:
    """Return how likely a time whose gamma shape is raised by so much is later than another one."""
    (mean, variance), (limit, noise) = time, rival
    if variance <= CERTAIN * mean * mean:
        return float(gammainc(limit * limit / noise, mean * limit / noise))
    shape = mean * mean / variance + more
    if noise <= CERTAIN * limit * limit:
        return float(gammaincc(shape, limit * mean / variance))
    scale, other_scale = variance / mean, noise / limit
    return float(betainc(limit * limit / noise, shape, scale / (scale + other_scale)))


def _over(time: Moments, at: FloatArray) -> FloatArray:
    """Return how likely a gamma time of these moments is over at some instants."""
    mean, variance = time
    if variance <= CERTAIN * mean * mean:
        return np.asarray(at >= mean, dtype=float)
    return np.asarray(gammainc(mean * mean / variance, at * (mean / variance)))


@dataclass(frozen=True, slots=True)
class Overlap:
    """Two branches of a fork that are joined later.

    Attributes:
        one, other: Their activities.
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


@dataclass(slots=True)
class _Block:
    """Activities between a start and what follows nothing; bodies of loops are blocks of their own."""

    start: str
    order: list[int]
    bodies: dict[int, list[_Block]]


class ActivityGraph:
    """The activities of an entry that can be reached, in an order in which times can be evaluated.

    Attributes:
        start, ends: Its first activity, and all that nothing follows.
        visits: Mean executions per request, of every activity that can be reached.
        held: Activities the thread waits for.
        awaited: Activities the caller waits for.
        width: At most how many flows of a request are under way at once.
        missing: Probabilities (index of the precedence) and counts that were never measured.
    """

    def __init__(self, entry: Entry) -> None:
        self._entry = entry
        self._after = {name: i for i, p in enumerate(entry.precedences) for name in p.pre}
        self._behind: dict[str, list[int]] = {}
        for index, precedence in enumerate(entry.precedences):
            for name in precedence.post:
                self._behind.setdefault(name, []).append(index)
        self.visits: dict[str, float] = {}
        self.missing: list[str] = []
        self.width = 1  # raised on the way
        self.start = entry.start
        self.ends: set[str] = set()
        self._reached: set[str] = set()
        self._reach(entry.start)
        self._top = self._block(entry.start, 1.0)
        self._carried = self._follow(entry.start)
        replying = {a.name for a in entry.activities if a.replies and a.name in self.visits}
        self.held = set(self.visits) if entry.waits else self._before(self._carried)
        self.awaited = self._before(replying) if replying else set(self.held)
        self._replying = sorted(replying)
        self._branches: dict[int, list[frozenset[str]]] = {}
        self._shares: dict[str, float] = {}
        self._overlaps: list[Overlap] = []

    def times(self, moments: Mapping[str, Moments]) -> EntryTimes:
        """Evaluate the graph for activities of these times."""
        if len(self.visits) == 1:
            only = moments[self._entry.start]
            return EntryTimes(only, only)
        self._shares, self._overlaps = {}, []
        tokens = self._run(self._top, moments)
        end = self._end(self._top, tokens)
        if self._entry.waits:
            others = [tokens[n] for n in self.ends if n in tokens and n not in self._carried]
            if others:
                mean, variance = latest([(t.mean, t.variance) for t in (end, *others)])
                end = _Token(1.0, (), mean, variance)
        replies = [tokens[n] for n in self._replying if n in tokens]
        known = sum(t.chance for t in replies)
        if known < 1 - 1e-9:
            replies.append(_Token(1 - known, (), end.mean, end.variance))
        reply = _mixed(replies)
        return EntryTimes(
            (reply.mean, reply.variance), (end.mean, end.variance), self._shares, tuple(self._overlaps)
        )

    def links(self) -> Iterator[tuple[str, str, float, tuple[str, ...]]]:
        """Yield which activity follows which in the same flow, how often per request, and beside what.

        The flow goes with the one branch that calls somebody, if the others of its fork only compute until
        they are joined: that is what waiting for the answer to a call at once looks like. The last of a link
        are the activities that have to be over, too.
        """
        for index, precedence in enumerate(self._entry.precedences):
            arriving = [n for n in precedence.pre if n in self.visits]
            beside: tuple[str, ...] = ()
            if precedence.join == "and" and len(precedence.pre) > 1:
                beside = tuple(n for n in arriving if self._computes(n))
                arriving = [n for n in arriving if n not in beside]
                if len(arriving) != 1:
                    continue
            following = self._next(index)
            if precedence.fork == "and":
                calling = [n for n in following if not self._computes(n)]
                following = calling if len(calling) == 1 else following[:1]
            flow = sum(self.visits[n] for n in arriving)
            for name in arriving:
                for post in following:
                    if flow > 0 and post in self.visits:
                        yield name, post, min(self.visits[name] / flow, 1.0) * self.visits[post], beside

    def _computes(self, name: str) -> bool:
        """Tell whether a branch is one activity that calls nobody and then waits to be joined."""
        index = self._after.get(name)
        joined = index is not None and self._entry.precedences[index].join == "and"
        return joined and not self._entry.activity(name).calls

    def _odds(self, index: int) -> Sequence[float]:
        precedence = self._entry.precedences[index]
        if precedence.fork != "or" or len(precedence.post) == 1:
            return (1.0,) * len(precedence.post)
        if precedence.probabilities is None:
            path = f"precedences[{index}].probabilities"
            if path not in self.missing:
                self.missing.append(path)
            return (1 / len(precedence.post),) * len(precedence.post)
        return precedence.probabilities

    def _counts(self, index: int) -> list[Moments]:
        found = []
        for k, count in enumerate(self._entry.precedences[index].counts):
            if count is None:
                path = f"precedences[{index}].counts[{k}]"
                if path not in self.missing:
                    self.missing.append(path)
            found.append(_moments(count))
        return found

    def _next(self, index: int) -> list[str]:
        """Return the activities a precedence may continue with, bodies of loops included."""
        precedence = self._entry.precedences[index]
        if precedence.fork == "loop":
            bodies = [b for b, n in zip(precedence.bodies, self._counts(index), strict=True) if n[0] > 0]
            return bodies + ([precedence.continuation] if precedence.continuation else [])
        return [n for n, p in zip(precedence.post, self._odds(index), strict=True) if p > 0]

    def _reach(self, start: str) -> None:
        stack = [start]
        while stack:
            name = stack.pop()
            if name not in self._reached:
                self._reached.add(name)
                if name in self._after:
                    stack.extend(self._next(self._after[name]))

    def _block(self, start: str, visits: float) -> _Block:
        """Order the precedences behind an activity; note visits, ends and width on the way."""
        block = _Block(start, [], {})
        self.visits[start] = visits
        fresh = [start]
        seen: set[int] = set()
        while fresh:
            name = fresh.pop()
            index = self._after.get(name)
            if index is None:
                self.ends.add(name)
                continue
            precedence = self._entry.precedences[index]
            arriving = [n for n in precedence.pre if n in self._reached]
            if index in seen or any(n not in self.visits for n in arriving):
                continue
            seen.add(index)
            block.order.append(index)
            flows = [self.visits[n] for n in arriving]
            flow = sum(flows) if precedence.join == "or" else min(flows)
            if precedence.fork == "loop":
                bodies = []
                for body, count in zip(precedence.bodies, self._counts(index), strict=True):
                    if count[0] > 0:
                        bodies.append(self._block(body, flow * count[0]))
                block.bodies[index] = bodies
                if precedence.continuation:
                    self.visits[precedence.continuation] = flow
                    fresh.append(precedence.continuation)
                else:
                    self.ends.update(arriving)
                continue
            if precedence.fork == "and":
                self.width += max(sum(not self._idle(n) for n in precedence.post), 1) - 1
            for post, chance in zip(precedence.post, self._odds(index), strict=True):
                if chance > 0:
                    self.visits[post] = flow * chance
                    fresh.append(post)
        return block

    def _idle(self, name: str) -> bool:
        """Tell whether a branch consists of an activity that does nothing: it only waits to be joined."""
        activity = self._entry.activity(name)
        index = self._after.get(name)
        busy = activity.calls or any(t is None or t.mean > 0 for t in (activity.demand, activity.delay))
        return not busy and index is not None and self._entry.precedences[index].join == "and"

    def _follow(self, start: str) -> set[str]:
        """Return what the flow that starts here can reach itself, loop bodies included."""
        reached: set[str] = set()
        stack = [start]
        while stack:
            name = stack.pop()
            if name in reached or name not in self.visits:
                continue
            reached.add(name)
            index = self._after.get(name)
            if index is not None:
                precedence = self._entry.precedences[index]
                stack.extend(precedence.post[:1] if precedence.fork == "and" else precedence.post)
        return reached

    def _before(self, goals: set[str]) -> set[str]:
        """Return these activities and everything they come after."""
        found: set[str] = set()
        stack = list(goals)
        while stack:
            name = stack.pop()
            if name in found:
                continue
            found.add(name)
            for index in self._behind.get(name, ()):
                stack.extend(n for n in self._entry.precedences[index].pre if n in self.visits)
            following = self._after.get(name)
            if following is not None and self._entry.precedences[following].fork == "loop":
                for body in self._entry.precedences[following].bodies:
                    stack.extend(self._follow(body))
        return found

    def _run(self, block: _Block, moments: Mapping[str, Moments]) -> dict[str, _Token]:
        """Return the tokens at the end of every activity of a block, from time 0 at its start."""
        mean, variance = moments[block.start]
        tokens = {block.start: _Token(1.0, (), mean, variance)}
        for index in block.order:
            precedence = self._entry.precedences[index]
            arriving = [tokens[n] for n in precedence.pre if n in tokens]
            token = self._joined(index, arriving)
            if precedence.fork == "loop":
                token = self._looped(index, block.bodies[index], token, moments)
                if precedence.continuation is None:
                    tokens[precedence.pre[0]] = token
                    continue
                ends, odds = [precedence.continuation], [1.0]
            else:
                ends, odds = list(precedence.post), list(self._odds(index))
            forks = token.forks
            if precedence.fork == "and" and len(ends) > 1:
                forks = (*forks, (index, token.mean, token.variance))
            for name, chance in zip(ends, odds, strict=True):
                if chance > 0:
                    more, noise = moments[name]
                    tokens[name] = _Token(
                        token.chance * chance, forks, token.mean + more, token.variance + noise
                    )
        return tokens

    def _joined(self, index: int, arriving: list[_Token]) -> _Token:
        precedence = self._entry.precedences[index]
        if len(arriving) == 1:
            return arriving[0]
        if precedence.join == "or":
            return _mixed(arriving)
        common = _common(arriving)
        fork, start, noise = common[-1] if common else (-1, 0.0, 0.0)
        times = [(t.mean - start, t.variance - noise) for t in arriving]
        needed = None if precedence.quorum is None else min(precedence.quorum, len(arriving))
        mean, variance = latest(times, needed)
        if fork >= 0 and min(m for m, _ in times) > 0:
            self._share(index, fork, times, mean, None if needed else mean)
        return _Token(min(t.chance for t in arriving), common, start + mean, noise + variance)

    def _share(self, index: int, fork: int, times: list[Moments], mean: float, last: float | None) -> None:
        """Note how the branches that meet here share the time until then.

        Args:
            index: The precedence that joins them.
            fork: The one they come from.
            times: Of each, since the fork.
            mean: Until they are joined.
            last: Until all are over, if that is known.
        """
        if index not in self._branches:
            before = self._before(set(self._entry.precedences[fork].pre))
            sets = [
                self._before({n}) - before for n in self._entry.precedences[index].pre if n in self.visits
            ]
            alone = [s - set().union(*(o for o in sets if o is not s)) for s in sets]
            self._branches[index] = [frozenset(s) for s in alone]
        branches = self._branches[index]
        counted, together = meeting(times, last)
        scale = mean / sum(counted)
        for branch, share, (time, _) in zip(branches, counted, times, strict=True):
            for name in branch:
                self._shares[name] = self._shares.get(name, 1.0) * min(share * scale / time, 1.0)
        forks = self.visits[self._entry.precedences[fork].post[0]]
        for i, one in enumerate(branches):
            for j in range(i + 1, len(branches)):
                pair = times[i][0], times[j][0]
                self._overlaps.append(Overlap(one, branches[j], forks, pair, together[i][j]))

    def _looped(
        self, index: int, bodies: list[_Block], token: _Token, moments: Mapping[str, Moments]
    ) -> _Token:
        counts = [c for c in self._counts(index) if c[0] > 0]
        mean, variance = token.mean, token.variance
        for (times, spread), body in zip(counts, bodies, strict=True):
            end = self._end(body, self._run(body, moments))
            mean += times * end.mean
            variance += times * end.variance + spread * end.mean**2
        return _Token(token.chance, token.forks, mean, variance)

    def _end(self, block: _Block, tokens: dict[str, _Token]) -> _Token:
        carried = self._carried if block is self._top else self._follow(block.start)
        return _mixed([t for n, t in tokens.items() if n in self.ends and n in carried])


def _moments(count: Distribution | None) -> Moments:
    return (1.0, 0.0) if count is None else (count.mean, count.variance)


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
