"""States that a request can be in, and the transitions between them.

A *state* is what one client (or one request that is not awaited) is doing: the tree of the requests it
is engaged in, every one with the positions of its flows. All calls are inlined (Garbi's thesis, section
4.1.1), so the same activity occurs once per way of getting there, and the branches of a fork are tracked
together, so a join matches siblings. Only states in which time passes are kept: what happens at once is
followed here, with its probabilities, until something takes time or may have to wait.

Where that makes more than ``MAX_INLINED`` states, calls are not inlined: a caller waits in a state of its own
for "a reply of this entry", and replies go to the waiting callers in proportion to their numbers. Mean
response times stay the same; the variance a join sees is that of an exponential time.

Branches that outlive their request, and requests sent without a reply, go on as states of their own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from mup.errors import SimulationError
from simulator.fluid.code import Code, Do, Op

__all__ = [
    "Admission",
    "Effects",
    "Move",
    "Outcomes",
    "Request",
    "State",
    "StateSpace",
    "build_states",
    "engaged",
    "in_order",
]

MAX_INLINED: Final = 3000
MAX_STATES: Final = 8000
MAX_STEPS: Final = 100_000
NEGLIGIBLE: Final = 1e-13
"""Probability of a state that is not followed further: near the rounding of the sum of all."""

# Whether the reply of a request is awaited.
ANSWERED: Final = 0
AWAITED: Final = 1
SENT: Final = 2  # it never was awaited

# What a state belongs to.
CLIENT: Final = 0  # a client of population ``owner``
SCENARIO: Final = 1  # a scenario started by an arrival, of population ``owner``
LOOSE: Final = 2  # to no client, scenario or caller
SHARED: Final = 3  # callers of entry ``owner``, none in particular
SOURCE: Final = 4  # the arrivals of population ``owner``
PARKED: Final = 5  # a branch that has arrived at anonymous join ``owner``


class Request(NamedTuple):
    """One execution of an entry; ``joins`` are (join, arrivals so far)."""

    entry: int
    held: bool
    reply: int
    joins: tuple[tuple[int, int], ...]
    flows: tuple[Flow, ...]


class Flow(NamedTuple):
    """A position in the code; a flow parked at join j has address -1 - j; ``child`` is what it called."""

    address: int
    carries: bool
    child: Request | SharedCall | None = None


class SharedCall(NamedTuple):
    """The flow waits for any reply of a pool."""

    pool: int


class State(NamedTuple):
    """A client, or something that is not awaited, and all it is doing."""

    kind: int
    owner: int
    request: Request | None


class Outcomes(NamedTuple):
    """One of the things that can happen at an event, in whole numbers.

    Attributes:
        probability: That it is this one.
        targets, released: States that are entered, pools that get a place back; once per time.
    """

    probability: float
    targets: tuple[int, ...]
    released: tuple[int, ...]


@dataclass(slots=True)
class Effects:
    """What happens besides the change of state, as expected numbers per event."""

    released: dict[int, float] = field(default_factory=dict)  # pool -> places given back
    done: dict[int, float] = field(default_factory=dict)  # task -> requests that freed their thread
    replied: dict[int, float] = field(default_factory=dict)  # entry -> replies
    cycles: dict[int, float] = field(default_factory=dict)  # population -> cycles or scenarios
    targets: dict[int, float] = field(default_factory=dict)  # state -> masses that enter it
    outcomes: list[Outcomes] = field(default_factory=list)  # what happens together, if that was asked for


@dataclass(frozen=True, slots=True)
class Move:
    """The end of a stage: from a state, at ``rate`` per second of full speed, on a processor (-1: none).

    ``entry`` and ``op`` say of what it is a stage.
    """

    state: int
    processor: int
    rate: float
    effects: Effects
    entry: int
    op: Op


@dataclass(frozen=True, slots=True)
class Admission:
    """A flow of a state gets a place in a pool; ``previous`` admission of the same state (-1: the first)."""

    state: int
    pool: int
    previous: int
    effects: Effects


@dataclass(slots=True)
class StateSpace:
    """The states and what moves between them.

    Attributes:
        states: In the order of discovery.
        moves, admissions: The events.
        start: State and mass at time 0: all clients begin a cycle.
        shared: Pools that stand for the replies of entries whose calls are not inlined: pool -> entry.
    """

    code: Code
    states: list[State] = field(default_factory=list)
    index: dict[State, int] = field(default_factory=dict)
    moves: list[Move] = field(default_factory=list)
    admissions: list[Admission] = field(default_factory=list)
    start: list[dict[int, float]] = field(default_factory=list)
    shared: dict[int, int] = field(default_factory=dict)


class _TooManyError(Exception):
    """The limit of states is exceeded."""


def build_states(code: Code) -> StateSpace:
    """Explore the states that load can reach.

    Raises:
        SimulationError: There are too many, time stands still, or a join can never complete.
    """
    try:
        return _Explorer(code, limit=MAX_INLINED, inline=True).explore()
    except _TooManyError:
        pass
    try:
        return _Explorer(code, limit=MAX_STATES, inline=False).explore()
    except _TooManyError:
        raise SimulationError(
            f"the fluid model needs more than {MAX_STATES} states: an entry has too many parallel branches",
            where=code.model.name,
            hint="simulate the model instead ('mup simulate')",
        ) from None


Advance = tuple[float, Request | None, bool]
"""Probability, what is left of the request, and whether its caller has got the reply."""


class _Explorer:
    """Finds the states load can reach; a subclass may look at more than expected numbers (``follow``)."""

    def __init__(self, code: Code, *, limit: int, inline: bool) -> None:
        self.code = code
        self.limit = limit
        self.inline = inline
        self.space = StateSpace(code)
        self.reply_pools: dict[int, int] = {}
        # Of the step being taken:
        self.spawned: list[State] = []
        self.notes: list[tuple[str, int]] = []
        self.pool_count = len(code.pools)

    def explore(self) -> StateSpace:
        space = self.space
        for number, population in enumerate(self.code.populations):
            first = Effects()
            if population.source >= 0:
                flow = Flow(population.source, carries=False)
                request = Request(population.entry, held=False, reply=SENT, joins=(), flows=(flow,))
                self.follow([(1.0, State(SOURCE, number, request))], first)
                space.start.append(first.targets)
            else:
                self.follow([(1.0, self.cycle(number))], first)
                space.start.append({s: p * population.clients for s, p in first.targets.items()})
        done = 0
        while done < len(space.states):
            self.expand(done)
            done += 1
        return space

    def cycle(self, population: int) -> State:
        return State(CLIENT, population, self.request(self.code.populations[population].entry, AWAITED))

    def request(self, entry: int, reply: int) -> Request:
        flow = Flow(self.code.entries[entry].start, carries=True)
        return Request(entry, held=False, reply=reply, joins=(), flows=(flow,))

    def number(self, state: State) -> int:
        index = self.space.index.get(state)
        if index is None:
            index = len(self.space.states)
            if index >= self.limit:
                raise _TooManyError
            self.space.index[state] = index
            self.space.states.append(state)
        return index

    def expand(self, index: int) -> None:
        """Find the events of a state."""
        space = self.space
        state = space.states[index]
        if state.kind == PARKED or state.request is None:
            return
        previous = -1
        alive = False
        for path, entry, op in self.waiting(state.request):
            alive = True
            effects = Effects()
            self.follow(self.step(state, path), effects)
            if op.do == Do.STAGE:
                space.moves.append(Move(index, op.a, op.rate, effects, entry, op))
            else:
                if op.do == Do.AWAIT:
                    parked = self.number(State(PARKED, op.a, None))
                    effects.targets[parked] = effects.targets.get(parked, 0.0) - 1.0
                space.admissions.append(Admission(index, op.a, previous, effects))
                previous = len(space.admissions) - 1
        if not alive:
            label = self.code.labels[state.request.entry]
            raise SimulationError(f"a join of {label} waits for a branch that can never arrive", where=label)

    def waiting(self, request: Request) -> Iterator[tuple[tuple[int, ...], int, Op]]:
        """Yield paths (one flow per level) to all that takes time or may have to wait; with entry, step."""
        for i, flow in enumerate(request.flows):
            if isinstance(flow.child, Request):
                for path, entry, op in self.waiting(flow.child):
                    yield (i, *path), entry, op
            elif isinstance(flow.child, SharedCall):
                yield (i,), request.entry, Op(Do.TAKE, flow.child.pool)
            elif flow.address >= 0:
                yield (i,), request.entry, self.code.ops[flow.address]

    def at_once(self, request: Request) -> tuple[int, ...] | None:
        """Return the path to a flow that goes on without any time passing, if there is one."""
        for i, flow in enumerate(request.flows):
            if isinstance(flow.child, Request):
                path = self.at_once(flow.child)
                if path is not None:
                    return (i, *path)
            elif flow.child is None and flow.address >= 0 and not self.takes_time(flow):
                return (i,)
        return None

    def takes_time(self, flow: Flow) -> bool:
        op = self.code.ops[flow.address]
        if op.do == Do.ADMIT:
            return flow.carries and op.a >= 0
        return op.do in (Do.STAGE, Do.TAKE, Do.AWAIT)

    def follow(self, begin: list[tuple[float, State]], effects: Effects) -> None:
        """Follow states until time passes in all of them; add up what happens on the way."""
        self.note(1.0, effects)
        todo: deque[State] = deque()
        mass: dict[State, float] = {}

        def push(probability: float, state: State) -> None:
            if state in mass:
                mass[state] += probability
            else:
                mass[state] = probability
                todo.append(state)

        for probability, state in begin:
            push(probability, state)
        for state in self.take_spawned():
            push(1.0, state)
        steps = 0
        while todo:
            state = todo.popleft()
            weight = mass.pop(state)
            if weight < NEGLIGIBLE:
                continue
            steps += 1
            if steps > MAX_STEPS:
                where = self.code.labels[state.request.entry] if state.request else self.code.model.name
                raise SimulationError(
                    "a cycle takes no time at all, so it would repeat for ever at once",
                    where=where,
                    hint="give it a think time, or some demand or delay on the way",
                )
            path = None if state.request is None else self.at_once(state.request)
            if path is None:
                target = self.number(state)
                effects.targets[target] = effects.targets.get(target, 0.0) + weight
                continue
            for probability, following in self.step(state, path):
                push(weight * probability, following)
            self.note(weight, effects)
            for spawned in self.take_spawned():
                push(weight, spawned)

    def take_spawned(self) -> list[State]:
        found, self.spawned = self.spawned, []
        return found

    def note(self, weight: float, effects: Effects) -> None:
        for kind, which in self.notes:
            counts: dict[int, float] = getattr(effects, kind)
            counts[which] = counts.get(which, 0.0) + weight
        self.notes.clear()

    def step(self, state: State, path: tuple[int, ...]) -> list[tuple[float, State]]:
        """Let one flow take one step; spawned states and notes are left in the attributes."""
        assert state.request is not None  # noqa: S101 - parked branches take no steps
        if state.kind == SOURCE:
            return self.step_source(state, path)
        found: list[tuple[float, State]] = []
        for probability, rest, replied in self.advance(state.request, path):
            if not replied:
                if rest is not None:
                    found.append((probability, State(state.kind, state.owner, rest)))
                continue
            # Only a request of a client, a scenario or a shared call has a receiver of its reply up here;
            # their steps that reply have no alternatives, so spawning is not conditional.
            if rest is not None:
                self.spawn(rest)
            if state.kind == CLIENT:
                self.notes.append(("cycles", state.owner))
                found.append((probability, self.cycle(state.owner)))
            elif state.kind == SCENARIO:
                self.notes.append(("cycles", state.owner))
            elif state.kind == SHARED:
                self.notes.append(("released", state.owner))
        return found

    def step_source(self, state: State, path: tuple[int, ...]) -> list[tuple[float, State]]:
        request = state.request
        assert request is not None  # noqa: S101 - a source has code
        flow = request.flows[path[0]]
        op = self.code.ops[flow.address]
        if op.do == Do.CHOICE:
            choices = [(p, a) for p, a in op.targets]
        elif op.do == Do.GOTO:
            choices = [(1.0, op.a)]
        else:
            choices = [(1.0, flow.address + 1)]
        if op.do == Do.ARRIVE:
            entry = self.code.populations[op.a].entry
            task = self.code.model.tasks[self.code.entries[entry].task]
            if task.is_reference:
                self.spawned.append(State(SCENARIO, op.a, self.request(entry, AWAITED)))
            else:
                self.spawned.append(State(LOOSE, 0, self.request(entry, AWAITED)))
        return [
            (p, State(SOURCE, state.owner, request._replace(flows=(flow._replace(address=a),))))
            for p, a in choices
        ]

    def spawn(self, request: Request) -> None:
        self.spawned.append(State(LOOSE, 0, request))

    def advance(self, request: Request, path: tuple[int, ...]) -> list[Advance]:
        i = path[0]
        flow = request.flows[i]
        if len(path) == 1:
            if isinstance(flow.child, SharedCall):
                return [(1.0, self.moved(request, i, flow.address + 1), False)]
            return self.execute(request, i, self.code.ops[flow.address])
        assert isinstance(flow.child, Request)  # noqa: S101 - a longer path leads into a call
        outcomes: list[Advance] = []
        for probability, child, replied in self.advance(flow.child, path[1:]):
            if replied:
                if child is not None:
                    self.spawn(child)
                outcomes.append((probability, self.moved(request, i, flow.address + 1), False))
            else:
                outcomes.append((probability, _with(request, i, flow._replace(child=child)), False))
        return outcomes

    def moved(self, request: Request, i: int, address: int) -> Request:
        return _with(request, i, Flow(address, request.flows[i].carries))

    def execute(self, request: Request, i: int, op: Op) -> list[Advance]:
        """Carry out one instruction of flow i."""
        flow = request.flows[i]
        do = op.do
        following = flow.address + 1
        if do == Do.CHOICE:
            return [(p, self.moved(request, i, a), False) for p, a in op.targets]
        if do == Do.GOTO:
            return [(1.0, self.moved(request, i, op.a), False)]
        if do == Do.ADMIT and flow.carries:
            return [(1.0, self.moved(request, i, following)._replace(held=True), False)]
        if do == Do.YIELD and flow.carries:
            self.release(request)
            return [(1.0, self.moved(request, i, following)._replace(held=False), False)]
        if do == Do.GIVE:
            self.notes.append(("released", op.a))
        if do == Do.CALL:
            return [(1.0, _with(request, i, flow._replace(child=self.call(op.a))), False)]
        if do == Do.SEND:
            self.spawn(self.request(op.a, SENT))
        if do == Do.FORK:
            branch = Flow(op.a, carries=False)
            moved = self.moved(request, i, following)
            if self.code.entries[request.entry].anonymous:
                self.spawn(Request(request.entry, held=False, reply=ANSWERED, joins=(), flows=(branch,)))
                return [(1.0, moved, False)]
            return [(1.0, in_order(moved._replace(flows=(*moved.flows, branch))), False)]
        if do == Do.JOIN:
            return [(1.0, self.join(request, i, op), False)]
        if do == Do.DEPOSIT:
            self.notes.append(("released", op.a))
            self.spawned.append(State(PARKED, op.a, None))
            return self.end(request, i)
        # A request that is not awaited has no reply that could be handed on: it is not forwarded.
        unasked = do == Do.FORWARD and request.reply == SENT
        if unasked or (do == Do.REPLY and request.reply):
            if self.ends_next(request, i):
                return self.end(request, i)
            return self.reply(self.moved(request, i, following))
        if do == Do.FORWARD and request.reply:
            self.notes.append(("replied", request.entry))
            self.spawn(self.moved(request, i, following)._replace(reply=ANSWERED))
            return [(1.0, self.request(op.a, request.reply), False)]
        if do == Do.END:
            return self.end(request, i)
        if do == Do.RETURN:
            self.notes.append(("replied", request.entry))
            return [(1.0, None, True)]
        return [(1.0, self.moved(request, i, following), False)]

    def call(self, entry: int) -> Request | SharedCall:
        if self.inline:
            return self.request(entry, AWAITED)
        pool = self.reply_pools.setdefault(entry, self.pool_count + len(self.reply_pools))
        self.space.shared[pool] = entry
        self.spawned.append(State(SHARED, pool, self.request(entry, AWAITED)))
        return SharedCall(pool)

    def release(self, request: Request) -> None:
        pool = self.code.entries[request.entry].pool
        if request.held and pool >= 0:
            self.notes.append(("released", pool))

    def join(self, request: Request, i: int, op: Op) -> Request:
        flow = request.flows[i]
        joins = dict(request.joins)
        arrived = joins.pop(op.a, 0) + 1
        if arrived < op.b:
            joins[op.a] = arrived
            waiting = request._replace(joins=tuple(sorted(joins.items())))
            if flow.carries:
                return self.moved(waiting, i, -1 - op.a)
            return _without(waiting, i)
        full = request._replace(joins=tuple(sorted(joins.items())))
        for k, other in enumerate(request.flows):
            if other.address == -1 - op.a:
                carrying = self.moved(full, k, flow.address + 1)
                # Sorting may have moved the flow that arrived last.
                last = carrying.flows.index(flow)
                return _without(carrying, last)
        return self.moved(full, i, flow.address + 1)

    def ends_next(self, request: Request, i: int) -> bool:
        """Tell whether nothing follows this instruction of the flow that carries the thread."""
        ops = self.code.ops
        address = request.flows[i].address + 1
        while ops[address].do == Do.GOTO:
            address = ops[address].a
        carries = request.flows[i].carries
        return (
            carries and ops[address].do == Do.END and not self.code.entries[request.entry].replies_elsewhere
        )

    def end(self, request: Request, i: int) -> list[Advance]:
        spec = self.code.entries[request.entry]
        carries = request.flows[i].carries
        rest = _without(request, i)
        last = not rest.flows
        keeps = spec.waits and not last
        if carries and spec.client:
            self.notes.append(("done", spec.task))
            return [(1.0, None if last else rest._replace(reply=ANSWERED), True)]
        if (carries and not keeps) or (last and rest.held):
            if rest.held:
                self.notes.append(("done", spec.task))
            self.release(rest)
            rest = rest._replace(held=False)
        replies = rest.reply and (last or (carries and not spec.replies_elsewhere))
        if replies:
            return self.reply(rest)
        return [(1.0, None if last else rest, False)]

    def reply(self, request: Request) -> list[Advance]:
        """Let the reply leave: it goes its own way, and what is left of the request another."""
        spec = self.code.entries[request.entry]
        rest = request._replace(reply=ANSWERED) if request.flows else None
        if request.reply == SENT:
            self.notes.append(("replied", request.entry))
            return [(1.0, rest, False)]
        if self.code.ops[spec.epilogue].do == Do.RETURN:
            self.notes.append(("replied", request.entry))
            return [(1.0, rest, True)]
        if rest is not None:
            self.spawn(rest)
        way = Flow(spec.epilogue, carries=False)
        return [(1.0, Request(request.entry, held=False, reply=AWAITED, joins=(), flows=(way,)), False)]


def engaged(root: Request | None) -> list[Request]:
    """Return a request and all that it waits for."""
    found = [] if root is None else [root]
    for request in found:
        found.extend(f.child for f in request.flows if isinstance(f.child, Request))
    return found


def _with(request: Request, i: int, flow: Flow) -> Request:
    flows = request.flows
    return in_order(request._replace(flows=(*flows[:i], flow, *flows[i + 1 :])))


def _without(request: Request, i: int) -> Request:
    return request._replace(flows=request.flows[:i] + request.flows[i + 1 :])


def in_order(request: Request) -> Request:
    """Put flows in a standard order, so that symmetric states are one."""
    if len(request.flows) < 2:
        return request
    return request._replace(flows=tuple(sorted(request.flows, key=_order)))


def _order(flow: Flow) -> tuple[int, bool, str]:
    return flow.address, flow.carries, repr(flow.child)
