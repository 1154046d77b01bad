"""Successors of each activity of an entry, and how often it runs per request.

The activities and precedences of an entry as explicit steps: only what a request can get to, what it cannot
(probability 0, a count of 0) left out. Whatever two engines could understand differently about forks, joins,
choices and loops is decided here; docs/explanation/simulation.md lists the rules.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from mup.lqn.distributions import Distribution, Geometric
from mup.lqn.model import ONCE, Activity, Entry, Precedence

__all__ = [
    "Arc",
    "Block",
    "Choice",
    "FanOut",
    "Following",
    "Fork",
    "Graph",
    "Join",
    "Loop",
    "Repeated",
    "Then",
    "Unmeasured",
]

Successors = tuple[tuple[str, float], ...]
"""Activities, and how often each runs whenever the arc is taken, on average."""


class Then(NamedTuple):
    """One activity follows."""

    activity: str

    @property
    def successors(self) -> Successors:
        """The activity, once."""
        return ((self.activity, 1.0),)

    @property
    def carriers(self) -> tuple[str, ...]:
        """The activities that the flow itself may go on with."""
        return (self.activity,)


class Fork(NamedTuple):
    """The flow goes on as the first branch, and a new one starts for each of the others."""

    first: str
    others: tuple[str, ...]

    @property
    def successors(self) -> Successors:
        """Every branch, once."""
        return tuple((name, 1.0) for name in (self.first, *self.others))

    @property
    def carriers(self) -> tuple[str, ...]:
        """The activities that the flow itself may go on with."""
        return (self.first,)


class Choice(NamedTuple):
    """One of several alternatives follows; those of probability 0 are left out."""

    successors: Successors

    @property
    def carriers(self) -> tuple[str, ...]:
        """The activities that the flow itself may go on with."""
        return tuple(name for name, _ in self.successors)


@dataclass(frozen=True, slots=True)
class Repeated:
    """The body of a loop: its first activity, and how often it is repeated."""

    start: str
    count: Distribution


class Loop(NamedTuple):
    """Bodies are repeated; those with a count of 0 are left out.

    Attributes:
        bodies: In order.
        continuation: What follows the loop, if anything.
        mixed: Before every round one of the bodies, or the end, is drawn in proportion mean counts : 1.
            Otherwise each body is repeated in turn, as often as its count says when the loop gets to it.
    """

    bodies: tuple[Repeated, ...]
    continuation: str | None
    mixed: bool

    @property
    def successors(self) -> Successors:
        """The bodies by their mean counts, and what follows."""
        bodies = tuple((body.start, body.count.mean) for body in self.bodies)
        return bodies if self.continuation is None else (*bodies, (self.continuation, 1.0))

    @property
    def carriers(self) -> tuple[str, ...]:
        """The activities that the flow itself may go on with."""
        return tuple(name for name, _ in self.successors)


class FanOut(NamedTuple):
    """Copies of a branch run in parallel, each a flow of its own; the flow itself waits for them.

    Attributes:
        body: The branch, and how many copies of it there are.
        continuation: What follows when they have been waited for, if anything.
        first: How many are waited for (all if there are fewer); None = all.
        limit: How many run at once; None = all. The others begin one by one, as earlier ones end.
    """

    body: Repeated
    continuation: str | None
    first: int | None
    limit: int | None

    @property
    def successors(self) -> Successors:
        """The branch by its mean width, and what follows."""
        branch = (self.body.start, self.body.count.mean)
        return (branch,) if self.continuation is None else (branch, (self.continuation, 1.0))

    @property
    def carriers(self) -> tuple[str, ...]:
        """The activities that the flow itself may go on with."""
        return () if self.continuation is None else (self.continuation,)


Following = Then | Fork | Choice | Loop | FanOut
"""What follows an arc."""


class Join(NamedTuple):
    """Several branches meet.

    Attributes:
        branches: Their last activities.
        needed: How many of them have to arrive.
        quorum: Whether that is less than all: the others run to the join and end there.
    """

    branches: tuple[str, ...]
    needed: int
    quorum: bool


class Arc(NamedTuple):
    """What follows the end of one or several activities.

    Attributes:
        number: Of the precedence.
        arriving: The activities it follows, of those a request can get to.
        join: How they meet; None if any one of them is enough.
        then: What follows.
    """

    number: int
    arriving: tuple[str, ...]
    join: Join | None
    then: Following

    @property
    def path(self) -> str:
        """Where the entry has it."""
        return f"precedences[{self.number}]"


class Unmeasured(NamedTuple):
    """A number that was never measured: the element of the entry, and its field."""

    where: str
    field: str

    @property
    def path(self) -> str:
        """Of the number, within the entry."""
        return f"{self.where}.{self.field}"


@dataclass(frozen=True, slots=True)
class Block:
    """The arcs behind an activity, those behind others later; the bodies of loops are blocks of their own.

    Arcs that are never taken, because a join they need never happens, are left out. The branch of a fan-out
    is a body, too.
    """

    start: str
    arcs: list[Arc]
    bodies: dict[int, list[Block]]


class Graph:
    """The activities of an entry that a request can get to, and how they hang together.

    A number that was never measured may be anything, so what depends on it can be reached: alternatives of
    a choice without probabilities are taken to be equally likely, a loop without a count to run once. All
    such numbers are in ``unmeasured``.

    Attributes:
        entry: What this is the graph of.
        activities: All activities of the entry, by name.
        reached: Those a request can get to.
        after: What follows an activity; none for the last ones.
        joins: All joins of several branches, by the numbers of their arcs, in order of the file.
        carried: Activities that the flow which holds the thread may run.
        replying: Activities that the reply may leave behind; if there is none, it leaves at the end.
        unmeasured: Probabilities and counts that were never measured.

    Invariants: exactly one arc leads to every activity of ``reached`` but the start, which none leads to;
    ``after``, ``carried`` and ``replying`` name activities of ``reached``. There are no cycles: every arc
    gets its turn once all that arrives at it is known (``_Walk``).
    """

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self.activities: dict[str, Activity] = {a.name: a for a in entry.activities}
        self.unmeasured: list[Unmeasured] = []
        self.after: dict[str, Arc] = {}
        self.joins: dict[int, Join] = {}
        self._forks = False
        self._walked: _Walk | None = None
        self.reached = self._connect()
        self.carried = self.flow_from(entry.start) if self._forks else self.reached
        assert self.carried <= self.reached  # noqa: S101 - invariant
        self.replying = frozenset([a.name for a in entry.activities if a.replies and a.name in self.reached])

    @property
    def start(self) -> str:
        """The first activity."""
        return self.entry.start

    @property
    def replies_elsewhere(self) -> bool:
        """Tell whether a flow other than the one that holds the thread may send the reply."""
        return not self.carried.issuperset(self.replying)

    @property
    def replies_last(self) -> frozenset[str]:
        """The activities that reply, if the thread has next to nothing left to do behind any; else none.

        Nothing at all, or activities of kind ``after`` that call nobody: the end of an endpoint's method.
        """
        entry = self.entry
        if entry.waits or entry.forwards or self.replies_elsewhere:
            return frozenset()
        return self.replying if all(map(self._only_ends, self.replying)) else frozenset()

    def _only_ends(self, name: str) -> bool:
        """Tell whether nothing but activities of kind ``after``, without calls, follow one."""
        while (arc := self.after.get(name)) is not None:
            if arc.join is not None or not isinstance(arc.then, Then):
                return False
            name = arc.then.activity
            if self.activities[name].kind != "after" or self.activities[name].calls:
                return False
        return True

    @cached_property
    def into(self) -> dict[str, Arc]:
        """The one arc that leads to an activity; none for the start."""
        return {name: arc for arc in self.arcs.values() for name, _ in arc.then.successors}

    @cached_property
    def arcs(self) -> dict[int, Arc]:
        """All arcs a request can get to, by their indices, in order of the file."""
        return dict(sorted({arc.number: arc for arc in self.after.values()}.items()))

    @property
    def visits(self) -> dict[str, float]:
        """Mean executions per request, of every activity that ever runs."""
        return self._walk.visits

    @property
    def ends(self) -> set[str]:
        """Activities behind which a flow is over."""
        return self._walk.ends

    @property
    def top(self) -> Block:
        """All arcs that are taken, in order."""
        return self._walk.top

    @property
    def _walk(self) -> _Walk:
        if self._walked is None:
            self._walked = _Walk(self)
        return self._walked

    @property
    def forks(self) -> dict[int, int]:
        """Per join, the last fork that all of its branches come from; joins without one are left out."""
        return self._last_forks if self.joins else {}

    @cached_property
    def _last_forks(self) -> dict[int, int]:
        behind: dict[str, frozenset[int]] = {self.start: frozenset()}
        found: dict[int, int] = {}
        order = self._walk.order
        position = {arc.number: at for at, arc in enumerate(order)}
        for arc in order:
            forks = common = behind[arc.arriving[0]]
            for name in arc.arriving[1:]:
                forks, common = forks | behind[name], common & behind[name]
            if arc.join is not None and common:
                found[arc.number] = max(common, key=position.__getitem__)
            if isinstance(arc.then, Fork):
                forks |= {arc.number}
            for name, _ in arc.then.successors:
                behind[name] = forks
        return found

    def flow_from(self, start: str) -> frozenset[str]:
        """Return the activities that the flow which starts here may run itself, loop bodies included."""
        found: set[str] = set()
        stack = [start]
        while stack:
            name = stack.pop()
            if name not in found:
                found.add(name)
                if name in self.after:
                    stack.extend(self.after[name].then.carriers)
        return frozenset(found)

    def _connect(self) -> frozenset[str]:
        """Find out what a request can get to; note what follows what."""
        precedences = self.entry.precedences
        if not precedences:
            return frozenset((self.entry.start,))
        of = {name: index for index, p in enumerate(precedences) for name in p.pre}
        several: dict[int, Following] = {}
        reached: set[str] = set()
        stack = [self.entry.start]
        while stack:
            name = stack.pop()
            if name in reached:
                continue
            reached.add(name)
            index = of.get(name)
            if index is None or index in several:
                continue
            precedence = precedences[index]
            then = self._then(index, precedence)
            if len(precedence.pre) == 1:
                self.after[name] = Arc(index, precedence.pre, None, then)
            else:
                several[index] = then
            if isinstance(then, Then):
                stack.append(then.activity)
            else:
                stack.extend([target for target, _ in then.successors])
        for index, then in sorted(several.items()):
            arriving = tuple(name for name in precedences[index].pre if name in reached)
            join = _join(precedences[index])
            if join is not None:
                self.joins[index] = join
            arc = Arc(index, arriving, join, then)
            self.after.update(dict.fromkeys(arriving, arc))
        return frozenset(reached)

    def _then(self, index: int, precedence: Precedence) -> Following:
        post = precedence.post
        if precedence.fork == "sequence":
            return Then(post[0])
        if precedence.fork == "and":
            self._forks = True
            return Fork(post[0], post[1:])
        if precedence.repeats:
            bodies = []
            for number, (body, count) in enumerate(zip(precedence.bodies, precedence.counts, strict=True)):
                if count is None:
                    self.unmeasured.append(Unmeasured(f"precedences[{index}]", f"counts[{number}]"))
                if count is None or count.mean > 0:
                    bodies.append(Repeated(body, ONCE if count is None else count))
            if precedence.fork == "fan-out" and bodies:
                self._forks = True
                return FanOut(bodies[0], precedence.continuation, precedence.first, precedence.limit)
            mixed = bool(bodies) and all(isinstance(body.count, Geometric) for body in bodies)
            return Loop(tuple(bodies), precedence.continuation, mixed)
        if len(post) == 1:
            return Then(post[0])
        odds = precedence.probabilities
        if odds is None:
            self.unmeasured.append(Unmeasured(f"precedences[{index}]", "probabilities"))
            odds = (1 / len(post),) * len(post)
        return Choice(tuple((name, chance) for name, chance in zip(post, odds, strict=True) if chance > 0))


def _join(precedence: Precedence) -> Join | None:
    branches, quorum = precedence.pre, precedence.quorum
    if precedence.join != "and" or len(branches) < 2:
        return None
    return Join(branches, len(branches) if quorum is None else quorum, quorum is not None)


class _Walk:
    """A graph from its start to its ends, in order.

    Attributes:
        order: All arcs, those behind others later.
        top, visits, ends: See ``Graph``.
    """

    def __init__(self, graph: Graph) -> None:
        self._after = graph.after
        self._often: dict[str, float] = {}
        self.order: list[Arc] = []
        self.ends: set[str] = set()
        self.top = self._block(graph.start, 1.0)
        self.visits = {name: often for name, often in self._often.items() if often > 0}

    def _block(self, start: str, runs: float) -> Block:
        """Order the arcs behind an activity that runs so often; note visits and ends on the way.

        The graph has no cycle (a rule of the model), so every arc gets its turn when all that
        arrives is known.
        """
        block = Block(start, [], {})
        after, often = self._after, self._often
        often[start] = runs
        fresh = [start]
        seen: set[int] = set()
        while fresh:
            name = fresh.pop()
            arc = after.get(name)
            if arc is None:
                self.ends.add(name)
                continue
            index, arriving, _, then = arc
            if len(arriving) == 1 and arc.join is None:
                flow = often[name]
            elif index in seen or any(n not in often for n in arriving):
                continue
            else:
                seen.add(index)
                flow = self._flow(arc)
            self.order.append(arc)
            if flow > 0:
                block.arcs.append(arc)
            else:
                self.ends.update(arriving)
            if isinstance(then, Then):
                often[then.activity] = flow
                fresh.append(then.activity)
                continue
            if isinstance(then, Loop | FanOut):
                bodies = then.bodies if isinstance(then, Loop) else (then.body,)
                block.bodies[index] = [self._block(b.start, flow * b.count.mean) for b in bodies]
                if then.continuation is None:
                    self.ends.update(arriving)
                else:
                    often[then.continuation] = flow
                    fresh.append(then.continuation)
                continue
            for target, factor in then.successors:
                often[target] = flow * factor
                fresh.append(target)
        return block

    def _flow(self, arc: Arc) -> float:
        """Return how often an arc is taken per request."""
        if arc.join is None:
            return sum(self._often[name] for name in arc.arriving)
        # As often as the last branch arrives that is needed; one that never runs never arrives.
        arrivals = sorted((self._often.get(name, 0.0) for name in arc.join.branches), reverse=True)
        return arrivals[arc.join.needed - 1]
