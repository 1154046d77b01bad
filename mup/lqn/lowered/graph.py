"""What does each activity of an entry lead to, and how often does it run per request?

The activities and precedences of an entry as explicit steps: only what a request can get to, what it cannot
(probability 0, a count of 0) left out. Whatever two engines could understand differently about forks, joins,
choices and loops is decided here; docs/explanation/simulation.md lists the rules.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from mup.lqn.distributions import Distribution, Geometric
from mup.lqn.model import ONCE, Activity, Entry, Precedence

__all__ = ["Arc", "Block", "Choice", "Fork", "Graph", "Join", "Loop", "Repeated", "Then", "Unmeasured"]

Ways = tuple[tuple[str, float], ...]
"""Activities, and how often each runs whenever the arc is taken, on average."""


@dataclass(frozen=True, slots=True)
class Then:
    """One activity follows."""

    activity: str

    @property
    def ways(self) -> Ways:
        """The activity, once."""
        return ((self.activity, 1.0),)

    @property
    def carriers(self) -> tuple[str, ...]:
        """The activities that the flow itself may go on with."""
        return (self.activity,)


@dataclass(frozen=True, slots=True)
class Fork:
    """The flow goes on as the first branch, and a new one starts for each of the others."""

    first: str
    others: tuple[str, ...]

    @property
    def ways(self) -> Ways:
        """Every branch, once."""
        return tuple((name, 1.0) for name in (self.first, *self.others))

    @property
    def carriers(self) -> tuple[str, ...]:
        """The activities that the flow itself may go on with."""
        return (self.first,)


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several alternatives follows; those of probability 0 are left out."""

    ways: Ways

    @property
    def carriers(self) -> tuple[str, ...]:
        """The activities that the flow itself may go on with."""
        return tuple(name for name, _ in self.ways)


@dataclass(frozen=True, slots=True)
class Repeated:
    """The body of a loop: its first activity, and how often it is repeated."""

    start: str
    count: Distribution


@dataclass(frozen=True, slots=True)
class Loop:
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
    def ways(self) -> Ways:
        """The bodies by their mean counts, and what follows."""
        bodies = tuple((body.start, body.count.mean) for body in self.bodies)
        return bodies if self.continuation is None else (*bodies, (self.continuation, 1.0))

    @property
    def carriers(self) -> tuple[str, ...]:
        """The activities that the flow itself may go on with."""
        return tuple(name for name, _ in self.ways)


@dataclass(frozen=True, slots=True)
class Join:
    """Several branches meet.

    Attributes:
        branches: Their last activities.
        needed: How many of them have to arrive.
        quorum: Whether that is less than all: the others run to the join and end there.
        carried: The flow that holds the thread may be one of them.
    """

    branches: tuple[str, ...]
    needed: int
    quorum: bool
    carried: bool


@dataclass(frozen=True, slots=True)
class Arc:
    """What follows the end of one or several activities.

    Attributes:
        index: Of the precedence.
        arriving: The activities it follows, of those a request can get to.
        join: How they meet; None if any one of them is enough.
        then: What follows.
    """

    index: int
    arriving: tuple[str, ...]
    join: Join | None
    then: Then | Fork | Choice | Loop

    @property
    def path(self) -> str:
        """Where the entry has it."""
        return f"precedences[{self.index}]"


@dataclass(frozen=True, slots=True)
class Unmeasured:
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

    Arcs that are never taken, because a join they need never happens, are left out.
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
        after: What follows an activity; none for the last ones.
        into: The one arc that leads to an activity; none for the start.
        visits: Mean executions per request, of every activity that ever runs.
        ends: Activities behind which a flow is over.
        top: All arcs that are taken, in order.
        unmeasured: Probabilities and counts that were never measured.
        carried: Activities that the flow which holds the thread may run.
        replying: Activities the reply may leave behind; none: it leaves at the end.
    """

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self.activities: dict[str, Activity] = {a.name: a for a in entry.activities}
        self.unmeasured: list[Unmeasured] = []
        self.after: dict[str, Arc] = {}
        self.into: dict[str, Arc] = {}
        self.ends: set[str] = set()
        self._order: list[Arc] = []
        self._often: dict[str, float] = {}
        self.reached = self._connect()
        self.top = self._walk(entry.start, 1.0)
        self.visits = {name: often for name, often in self._often.items() if often > 0}

    @property
    def start(self) -> str:
        """The first activity."""
        return self.entry.start

    @property
    def replies_elsewhere(self) -> bool:
        """Tell whether a flow other than the one that holds the thread may send the reply."""
        return not self.carried.issuperset(self.replying)

    @cached_property
    def replying(self) -> frozenset[str]:
        """The activities marked ``replies`` that a request can get to."""
        return frozenset(a.name for a in self.entry.activities if a.replies and a.name in self.reached)

    @cached_property
    def arcs(self) -> dict[int, Arc]:
        """All arcs a request can get to, by their indices, in order of the file."""
        return dict(sorted((arc.index, arc) for arc in self._order))

    @cached_property
    def joins(self) -> dict[int, Join]:
        """All joins of several branches, by the index of their arcs, in order of the file."""
        return {index: arc.join for index, arc in self.arcs.items() if arc.join is not None}

    @cached_property
    def forks(self) -> dict[int, int]:
        """Per join, the last fork that all of its branches come from; joins without one are left out."""
        if not self.joins:
            return {}
        behind: dict[str, frozenset[int]] = {self.start: frozenset()}
        found: dict[int, int] = {}
        position = {arc.index: at for at, arc in enumerate(self._order)}
        for arc in self._order:
            arriving = [behind[name] for name in arc.arriving]
            if arc.join is not None:
                common = frozenset.intersection(*arriving)
                if common:
                    found[arc.index] = max(common, key=position.__getitem__)
            forks = frozenset[int]().union(*arriving)
            if isinstance(arc.then, Fork):
                forks |= {arc.index}
            for name, _ in arc.then.ways:
                behind[name] = forks
        return found

    def flow_from(self, start: str) -> frozenset[str]:
        """Return the activities that the flow which starts here may run itself, loop bodies included."""
        return _followed(start, {name: arc.then for name, arc in self.after.items()})

    def _connect(self) -> frozenset[str]:
        """Find out what a request can get to; note what follows what."""
        precedences = self.entry.precedences
        if not precedences:
            self.carried = frozenset((self.entry.start,))
            return self.carried
        of = {name: index for index, p in enumerate(precedences) for name in p.pre}
        thens: dict[int, Then | Fork | Choice | Loop] = {}
        following: dict[str, Then | Fork | Choice | Loop] = {}
        reached: set[str] = set()
        stack = [self.entry.start]
        while stack:
            name = stack.pop()
            if name in reached:
                continue
            reached.add(name)
            index = of.get(name)
            if index is None:
                continue
            if index not in thens:
                thens[index] = self._then(index, precedences[index])
                stack.extend(target for target, _ in thens[index].ways)
            following[name] = thens[index]
        found = frozenset(reached)
        forked = any(isinstance(then, Fork) for then in thens.values())
        self.carried = _followed(self.entry.start, following) if forked else found
        for index, then in thens.items():
            precedence = precedences[index]
            arriving = precedence.pre
            if len(arriving) > 1:
                arriving = tuple(name for name in arriving if name in reached)
            arc = Arc(index, arriving, self._join(precedence), then)
            for name in arriving:
                self.after[name] = arc
            for name, _ in then.ways:
                self.into[name] = arc
        return found

    def _join(self, precedence: Precedence) -> Join | None:
        branches = precedence.pre
        if precedence.join != "and" or len(branches) < 2:
            return None
        quorum = precedence.quorum
        return Join(
            branches=branches,
            needed=len(branches) if quorum is None else quorum,
            quorum=quorum is not None,
            carried=not self.carried.isdisjoint(branches),
        )

    def _then(self, index: int, precedence: Precedence) -> Then | Fork | Choice | Loop:
        post = precedence.post
        if precedence.fork == "and":
            return Fork(post[0], post[1:])
        if precedence.fork == "loop":
            bodies = []
            for number, (body, count) in enumerate(zip(precedence.bodies, precedence.counts, strict=True)):
                if count is None:
                    self.unmeasured.append(Unmeasured(f"precedences[{index}]", f"counts[{number}]"))
                if count is None or count.mean > 0:
                    bodies.append(Repeated(body, ONCE if count is None else count))
            mixed = bool(bodies) and all(isinstance(body.count, Geometric) for body in bodies)
            return Loop(tuple(bodies), precedence.continuation, mixed)
        if precedence.fork != "or" or len(post) == 1:
            return Then(post[0])
        odds = precedence.probabilities
        if odds is None:
            self.unmeasured.append(Unmeasured(f"precedences[{index}]", "probabilities"))
            odds = (1 / len(post),) * len(post)
        return Choice(tuple((name, chance) for name, chance in zip(post, odds, strict=True) if chance > 0))

    def _walk(self, start: str, often: float) -> Block:
        """Order the arcs behind an activity that runs so often; note visits and ends on the way.

        The graph has no cycle (a rule of the model), so every arc gets its turn when all that
        arrives is known.
        """
        block = Block(start, [], {})
        self._often[start] = often
        fresh = [start]
        seen: set[int] = set()
        while fresh:
            name = fresh.pop()
            arc = self.after.get(name)
            if arc is None:
                self.ends.add(name)
                continue
            if len(arc.arriving) > 1 and (
                arc.index in seen or any(n not in self._often for n in arc.arriving)
            ):
                continue
            seen.add(arc.index)
            self._order.append(arc)
            flow = self._flow(arc)
            if flow > 0:
                block.arcs.append(arc)
            else:
                self.ends.update(arc.arriving)
            if isinstance(arc.then, Loop):
                block.bodies[arc.index] = [
                    self._walk(body.start, flow * body.count.mean) for body in arc.then.bodies
                ]
                if arc.then.continuation is None:
                    self.ends.update(arc.arriving)
                else:
                    self._often[arc.then.continuation] = flow
                    fresh.append(arc.then.continuation)
                continue
            for target, factor in arc.then.ways:
                self._often[target] = flow * factor
                fresh.append(target)
        return block

    def _flow(self, arc: Arc) -> float:
        """Return how often an arc is taken per request."""
        if arc.join is None:
            often = self._often
            return often[arc.arriving[0]] if len(arc.arriving) == 1 else sum(often[n] for n in arc.arriving)
        # As often as the last branch arrives that is needed; one that never runs never arrives.
        arrivals = sorted((self._often.get(name, 0.0) for name in arc.join.branches), reverse=True)
        return arrivals[arc.join.needed - 1]


def _followed(start: str, following: dict[str, Then | Fork | Choice | Loop]) -> frozenset[str]:
    """Return the activities that one flow may run, without those it starts other flows for."""
    found: set[str] = set()
    stack = [start]
    while stack:
        name = stack.pop()
        if name not in found:
            found.add(name)
            if name in following:
                stack.extend(following[name].carriers)
    return frozenset(found)
