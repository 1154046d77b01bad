"""Exact figures of a small model, by its Markov chain: the oracle of the simulator's tests.

With exponential, Erlang and hyperexponential times a model is a continuous-time Markov chain. This module
explores its states from the model itself, by the semantics that ``mup.lqn.model`` and
``docs/explanation/simulation.md`` state (it shares no code with the simulator), and solves for the steady
state. Closed models only: with open arrivals or requests that are not awaited there is no end of states.

A state is a forest: requests, their flows, and under a flow that waits for a reply the request it made.
Flows that look alike are alike, so a state is encoded as nested, sorted tuples; who is where in a queue is a
number in its flow. Random choices made in no time (branches, replicas, counts) fan out one transition:
``_Machine.choose`` is answered from a script, and every script is played.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.linalg import spsolve

from mup.lqn.distributions import (
    Constant,
    Distribution,
    Empirical,
    Erlang,
    Exponential,
    Geometric,
    Hyperexponential,
)
from mup.lqn.model import Activity, Entry, Model, Precedence, Processor, Task, entry_label

__all__ = ["Exact", "TooManyStatesError", "UnsupportedError", "solve"]


class UnsupportedError(Exception):
    """The model has an element without a finite Markov chain, or one this module leaves out."""


class TooManyStatesError(Exception):
    """There are more states than the caller wants to wait for."""


@dataclass
class Exact:
    """Steady-state means; throughputs per second, times in seconds.

    Attributes:
        states: How many there are.
        throughput: Of every task: cycles of a reference task, requests served of others; of a
            semaphore or lock only what acquires counts.
        busy: Held threads of every task (of a lock not what is held between its entries); of a reference
            task, clients that do not think.
        queue: Requests of every task that wait for a thread.
        entry_throughput, entry_response: By label, without the entries of reference tasks.
        utilization: Of every processor with finitely many cores.
        cycle_throughput, cycle_response: All reference tasks together; response without think time.
    """

    states: int
    throughput: dict[str, float] = field(default_factory=dict)
    busy: dict[str, float] = field(default_factory=dict)
    queue: dict[str, float] = field(default_factory=dict)
    entry_throughput: dict[str, float] = field(default_factory=dict)
    entry_response: dict[str, float] = field(default_factory=dict)
    utilization: dict[str, float] = field(default_factory=dict)
    cycle_throughput: float = 0.0
    cycle_response: float = 0.0


def solve(model: Model, *, max_states: int = 20_000) -> Exact:
    """Return the exact steady state of a model.

    Raises:
        UnsupportedError: See there.
        TooManyStatesError: There are more than ``max_states``.
    """
    plan = _Plan(model)
    start = _explore(plan, None, None)
    index: dict[Any, int] = {}
    first: list[float] = []
    for state, probability, _ in start:
        index.setdefault(state, len(index))
        first.append(probability)
    states = list(index)
    rows: list[int] = []
    columns: list[int] = []
    rates: list[float] = []
    counted: list[dict[Any, float]] = []
    levels: list[dict[Any, float]] = []
    for number, state in enumerate(states):  # grows while it is read
        machine = _Machine(plan, state, ())
        if len(machine.flows) > MAX_FLOWS:
            raise TooManyStatesError(f"more than {MAX_FLOWS} flows: work that is not awaited piles up")
        levels.append(machine.levels())
        rewards: dict[Any, float] = {}
        for flow, rate in enumerate(machine.rates()):
            if rate == 0:
                continue
            for following, probability, events in _explore(plan, state, flow):
                weight = rate * probability
                for event, times in events.items():
                    rewards[event] = rewards.get(event, 0.0) + weight * times
                if following not in index:
                    index[following] = len(index)
                    states.append(following)
                    if len(states) > max_states:
                        raise TooManyStatesError(f"more than {max_states} states")
                rows.append(number)
                columns.append(index[following])
                rates.append(weight)
        counted.append(rewards)
    steady = _steady(len(states), rows, columns, rates)
    return _figures(plan, steady, levels, counted)


def _steady(size: int, rows: list[int], columns: list[int], rates: list[float]) -> np.ndarray[Any, Any]:
    """Solve pi Q = 0 with sum(pi) = 1."""
    if size == 1:
        return np.ones(1)
    moves = coo_matrix((rates, (rows, columns)), shape=(size, size)).tocsr()
    out = np.asarray(moves.sum(axis=1)).ravel()
    balance = moves.T.tolil()
    balance.setdiag(balance.diagonal() - out)
    balance[size - 1, :] = 1.0
    right = np.zeros(size)
    right[size - 1] = 1.0
    return np.asarray(spsolve(balance.tocsc(), right))


def _figures(
    plan: _Plan, steady: np.ndarray[Any, Any], levels: list[dict[Any, float]], counted: list[dict[Any, float]]
) -> Exact:
    def mean(tables: list[dict[Any, float]], key: Any) -> float:
        return float(sum(p * t.get(key, 0.0) for p, t in zip(steady, tables, strict=True)))

    found = Exact(states=len(steady))
    active = 0.0
    for task in plan.model.tasks:
        name = task.name
        found.throughput[name] = mean(counted, ("task", name))
        if task.is_reference:
            thinking = mean(levels, ("thinking", name))
            found.busy[name] = task.threads - thinking
            active += found.busy[name]
            found.cycle_throughput += found.throughput[name]
            continue
        found.busy[name] = mean(levels, ("busy", name))
        found.queue[name] = mean(levels, ("queue", name))
        for entry in task.entries:
            label = entry_label(name, entry.name)
            rate = mean(counted, ("entry", label))
            if entry.token in GIVE_BACK:
                found.throughput[name] -= rate
            found.entry_throughput[label] = rate
            if rate > 0:
                found.entry_response[label] = mean(levels, ("inside", label)) / rate
    for processor in plan.model.processors:
        if processor.discipline != "infinite" and processor.cores < math.inf:
            found.utilization[processor.name] = mean(levels, ("cores", processor.name)) / processor.cores
    found.cycle_response = active / found.cycle_throughput
    return found


GIVE_BACK = ("release", "read-unlock", "write-unlock")
MAX_OUTCOMES = 200
MAX_FLOWS = 40

# The model, prepared


Phases = tuple[tuple[float, tuple[float, ...]], ...]
"""Alternatives: probability and the mean seconds of the phases that follow each other."""


def _phases(time: Distribution | None) -> Phases:
    if time is None:
        raise UnsupportedError("a time is unknown")
    if time.mean == 0:
        return ((1.0, ()),)
    if isinstance(time, Exponential):
        return ((1.0, (time.mean,)),)
    if isinstance(time, Erlang):
        return ((1.0, (time.mean / time.stages,) * time.stages),)
    if isinstance(time, Hyperexponential):
        pairs = zip(time.probabilities, time.means, strict=True)
        return tuple((p, (m,) if m > 0 else ()) for p, m in pairs)
    raise UnsupportedError(f"{time.family} is not made of exponential phases")


ONCE = Constant(1)


@dataclass(frozen=True)
class _Stage:
    """One step of an activity: ``use``, ``delay``, ``think``, ``call``, or ``mix`` (of interleaved calls)."""

    kind: str
    phases: Phases = ()
    target: int = -1
    releasing: bool = False
    count: Distribution | None = None
    odds: tuple[float, ...] = ()


class _EntryPlan:
    """An entry, with everything looked up."""

    def __init__(self, plan: _Plan, number: int, task: Task, entry: Entry) -> None:
        self.number = number
        self.task = task
        self.entry = entry
        self.label = entry_label(task.name, entry.name)
        self.names = {a.name: i for i, a in enumerate(entry.activities)}
        self.start = self.names[entry.start]
        self.replies = [a.replies and not task.is_reference for a in entry.activities]
        self.successor: list[int] = [-1] * len(entry.activities)
        for index, precedence in enumerate(entry.precedences):
            for name in precedence.pre:
                self.successor[self.names[name]] = index
        self.stages = [tuple(self.prepare(plan, a)) for a in entry.activities]
        carried = self.find_carried()
        self.replies_beside = any(
            r and a.name not in carried for r, a in zip(self.replies, entry.activities, strict=True)
        )
        self.passes_on = [p.quorum is not None and not carried.isdisjoint(p.pre) for p in entry.precedences]
        if task.front is not None:
            if entry.forwards:
                raise UnsupportedError("a front before an entry that forwards")
            self.front = (_phases(task.front.request), _phases(task.front.reply))

    def prepare(self, plan: _Plan, activity: Activity) -> Iterator[_Stage]:
        think = activity.kind == "think" and self.task.is_reference
        pause = _Stage("think" if think else "delay", _phases(activity.delay))
        if any(c.kind == "send" for c in activity.calls):
            raise UnsupportedError("requests that are not awaited")
        calls = [
            _Stage(
                "call", target=plan.numbers[c.task, c.entry], releasing=c.kind == "releasing", count=c.count
            )
            for c in activity.calls
        ]
        demand = activity.demand
        if not (activity.interleaved and calls) or demand is None:
            yield _Stage("use", _phases(demand))
            yield pause
            yield from calls
            return
        means = [c.count.mean if c.count is not None else 0.0 for c in calls]
        pieces = 1 + sum(means)
        slice_ = _Stage("use", _phases(demand.scaled(1 / pieces)))
        if all(isinstance(c.count, Geometric) for c in calls):
            yield pause
            yield slice_
            yield _Stage("mix", odds=tuple(m / pieces for m in (*means, 1.0)))
            yield from calls
            return
        yield pause
        yield slice_
        for call in calls:
            for _ in range(int(call.count.mean if call.count is not None else 0)):
                yield replace(call, count=ONCE)
                yield slice_

    def find_carried(self) -> set[str]:
        """Return the activities that the flow holding the thread may run."""
        carried: set[str] = set()
        waiting = [self.entry.start]
        while waiting:
            name = waiting.pop()
            if name in carried:
                continue
            carried.add(name)
            for precedence in self.entry.precedences:
                if name in precedence.pre:
                    waiting += precedence.post[:1] if precedence.fork == "and" else precedence.post
        return carried


class _Plan:
    """A model, with everything looked up."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.tasks = {t.name: t for t in model.tasks}
        self.processors = {p.name: p for p in model.processors}
        self.copies = {p.name: self._copies(p) for p in model.processors}
        pairs = [(t, e) for t in model.tasks for e in t.entries]
        self.numbers = {(t.name, e.name): i for i, (t, e) in enumerate(pairs)}
        for processor in model.processors:
            if processor.discipline == "cores":
                raise UnsupportedError("threads that stick to cores")
        for _, entry in pairs:
            if entry.arrivals is not None:
                raise UnsupportedError("open arrivals")
        self.entries = [_EntryPlan(self, i, t, e) for i, (t, e) in enumerate(pairs)]
        self.think = {
            t.name: _phases(t.think if t.think is not None else Constant(0)) for t in model.reference_tasks
        }

    def _copies(self, processor: Processor) -> int:
        """Return among how many replicas the cores of a part are divided; 1 if they are not."""
        users = [t for t in self.model.tasks if t.processor == processor.name]
        whole = any(p.parent == processor.name for p in self.model.processors)
        if processor.parent is None or whole or len(users) != 1 or users[0].is_reference:
            return 1
        return users[0].replicas if processor.cores % users[0].replicas == 0 else 1


# States


THINK_STAGE = -1
FRONT_IN = -2
FRONT_OUT = -3
ADMIT = -4
"""Where a flow is that is at no activity."""


@dataclass(eq=False)
class _Flow:
    """A thread of control. ``order`` says who came first wherever it queues; ``stack`` holds open loops."""

    request: _Request
    at: int
    carries: bool
    stage: int = 0
    status: str = "run"
    alternative: int = 0
    phase: int = 0
    left: int = -1  # calls still to be made at this stage; -1 = not drawn
    order: int = 0
    serving: bool = False
    stack: tuple[tuple[int, int, int], ...] = ()
    base: int = 0  # loops that were open when it was forked
    child: _Request | None = None


@dataclass(eq=False)
class _Request:
    """An execution of an entry; a client's cycle is one, too."""

    entry: _EntryPlan
    replica: int
    caller: _Flow | None
    rank: int  # priority where requests queue by it
    thread: str = "none"
    replied: bool = False
    ended: bool = False  # the thread-holding flow is over
    joins: dict[int, tuple[int, int]] = field(default_factory=dict)  # arrived, lowest base
    flows: list[_Flow] = field(default_factory=list)


class _NeedChoiceError(Exception):
    def __init__(self, odds: Sequence[float]) -> None:
        super().__init__()
        self.odds = odds


Outcome = tuple[Any, float, dict[Any, float]]
"""State, probability, what was counted on the way."""


def _explore(plan: _Plan, state: Any, flow: int | None) -> list[Outcome]:
    """Return all outcomes of the next phase's end of a flow; without a state, the initial ones."""
    found: list[Outcome] = []
    scripts: list[tuple[tuple[int, ...], float]] = [((), 1.0)]
    while scripts:
        if len(scripts) + len(found) > MAX_OUTCOMES:
            raise TooManyStatesError("too many random choices in no time")
        script, probability = scripts.pop()
        machine = _Machine(plan, state, script)
        try:
            if flow is None:
                machine.begin()
            else:
                machine.fire(flow)
        except _NeedChoiceError as need:
            scripts += [((*script, i), probability * p) for i, p in enumerate(need.odds) if p > 0]
            continue
        found.append((machine.encoded(), probability, machine.counts))
    return found


class _Machine:
    """A state, unfolded, that one event happens to."""

    def __init__(self, plan: _Plan, state: Any, script: tuple[int, ...]) -> None:
        self.plan = plan
        self.script = list(script)
        self.roots: list[_Request] = []
        self.flows: list[_Flow] = []
        self.created: deque[_Flow] = deque()
        self.woken: deque[_Flow] = deque()
        self.counts: dict[Any, float] = {}
        self.clock = 1 << 20  # order numbers of newcomers, above all that are in the state
        self.cycles = 0
        self.tokens: dict[str, int] = {}
        if state is not None:
            tokens, roots = state
            self.tokens = dict(tokens)
            for root in roots:
                self.roots.append(self.decode_request(root, None))

    # coding

    def decode_request(self, data: Any, caller: _Flow | None) -> _Request:
        number, replica, rank, thread, replied, ended, joins, flows = data
        request = _Request(self.plan.entries[number], replica, caller, rank, thread, replied, ended)
        request.joins = {j: (count, base) for j, count, base in joins}
        for item in flows:
            at, carries, stage, status, alternative, phase, left, order, serving, stack, base, child = item
            flow = _Flow(
                request, at, carries, stage, status, alternative, phase, left, order, serving, stack, base
            )
            request.flows.append(flow)
            self.flows.append(flow)
            if child:
                flow.child = self.decode_request(child, flow)
        return request

    def encoded(self) -> Any:
        queues: dict[Any, list[_Flow]] = {}
        for flow in self.flows:
            queues.setdefault(self.queue_of(flow), []).append(flow)
        for key, members in queues.items():
            members.sort(key=lambda f: f.order)
            for position, flow in enumerate(members):
                flow.order = 0 if key is None else position
        tokens = tuple(sorted((t, n) for t, n in self.tokens.items() if n))
        return tokens, tuple(sorted(self.encode_request(r) for r in self.roots))

    def queue_of(self, flow: _Flow) -> Any:
        """Return the queue in which the order of a flow matters, or None."""
        if flow.status == "proc":
            name = self.place_of(flow)
            assert name is not None
            kind = self.plan.processors[name].discipline
            return (name,) if kind in ("fcfs", "hol", "pp") else None
        if flow.status in ("thread", "front"):
            return (flow.status, flow.request.entry.task.name, flow.request.replica)
        return None

    def encode_request(self, request: _Request) -> Any:
        return (
            request.entry.number,
            request.replica,
            request.rank,
            request.thread,
            request.replied,
            request.ended,
            tuple(sorted((j, count, base) for j, (count, base) in request.joins.items())),
            tuple(
                sorted(
                    (
                        f.at, f.carries, f.stage, f.status, f.alternative, f.phase, f.left, f.order, f.serving,
                        f.stack, f.base, () if f.child is None else self.encode_request(f.child),
                    )
                    for f in request.flows
                )
            ),
        )  # fmt: skip

    # what a state is worth

    def requests(self) -> Iterator[_Request]:
        waiting = list(self.roots)
        while waiting:
            request = waiting.pop()
            yield request
            waiting += [f.child for f in request.flows if f.child is not None]

    def levels(self) -> dict[Any, float]:
        """Return how much of everything there is in this state."""
        found: dict[Any, float] = {}

        def add(key: Any, amount: float = 1.0) -> None:
            found[key] = found.get(key, 0.0) + amount

        for request in self.requests():
            task = request.entry.task
            if task.is_reference:
                continue
            if request.thread == "held" or (
                request.thread == "token" and request.entry.entry.token != "release"
            ):
                add(("busy", task.name))
            if request.caller is not None:
                add(("inside", request.entry.label))
        for name, taken in self.tokens.items():
            if " " not in name:  # of a semaphore
                add(("busy", name), taken)
        for flow in self.flows:
            if flow.status == "thread":
                add(("queue", flow.request.entry.task.name))
            elif flow.status == "think" and flow.carries:
                add(("thinking", flow.request.entry.task.name))
        for name, busy in self.shares()[1].items():
            add(("cores", name), busy)
        return found

    def shares(self) -> tuple[dict[_Flow, float], dict[str, float]]:
        """Return the speed of every flow on a processor, and the busy cores of every processor."""
        copies = self.plan.copies
        jobs: dict[tuple[str, int], list[_Flow]] = {
            (name, copy): [] for name in self.plan.processors for copy in range(copies[name])
        }
        for flow in self.flows:
            if flow.status == "proc":
                name = self.place_of(flow)
                assert name is not None
                jobs[name, flow.request.replica if copies[name] > 1 else 0].append(flow)
        parts: dict[tuple[str, int], list[tuple[str, int]]] = {unit: [] for unit in jobs}
        for unit in jobs:
            parent = self.plan.processors[unit[0]].parent
            if parent is not None:
                parts[parent, 0].append(unit)

        def cores_of(name: str) -> float:
            processor = self.plan.processors[name]
            return math.inf if processor.discipline == "infinite" else processor.cores / copies[name]

        def wanted(unit: tuple[str, int]) -> float:
            """Return how many threads want a core, those of each part up to its own cores."""
            return len(jobs[unit]) + sum(min(wanted(part), cores_of(part[0])) for part in parts[unit])

        share: dict[_Flow, float] = {}
        busy = dict.fromkeys(self.plan.processors, 0.0)
        for (name, copy), waiting in jobs.items():
            factor, speed, place, chain = 1.0, 1.0, self.plan.processors[name], [name]
            while True:
                speed *= place.speed
                if place.discipline in ("ps", "infinite") and waiting:
                    unit = (place.name, copy if place.name == name else 0)
                    factor *= min(1.0, cores_of(place.name) / wanted(unit))
                if place.parent is None:
                    break
                place = self.plan.processors[place.parent]
                chain.append(place.name)
            for flow in waiting:
                fraction = factor if self.served(flow, waiting) else 0.0
                share[flow] = fraction * speed
                for whole in chain:
                    busy[whole] += fraction
        return share, busy

    def place_of(self, flow: _Flow) -> str | None:
        """Return the processor a flow uses: fronts do not share the part their task is on."""
        name = flow.request.entry.task.processor
        if flow.at in (FRONT_IN, FRONT_OUT):
            while name is not None and (whole := self.plan.processors[name].parent) is not None:
                name = whole
        return name

    def served(self, flow: _Flow, rivals: list[_Flow]) -> bool:
        """Tell whether a flow on a processor has one of its cores (or a share of them)."""
        name = self.place_of(flow)
        assert name is not None
        processor = self.plan.processors[name]
        if processor.discipline == "hol":
            return flow.serving
        mine = (-flow.request.entry.task.priority if processor.discipline == "pp" else 0, flow.order)
        if processor.discipline in ("fcfs", "pp"):
            before = [
                (-f.request.entry.task.priority if processor.discipline == "pp" else 0, f.order)
                for f in rivals
            ]
            return sum(b < mine for b in before) < processor.cores / self.plan.copies[name]
        return True

    def rates(self) -> list[float]:
        """Return the rate at which every flow ends its present phase."""
        share = self.shares()[0]
        found = []
        for flow in self.flows:
            if flow.status in ("proc", "delay", "think"):
                mean = self.phases_of(flow)[flow.alternative][1][flow.phase]
                found.append(share.get(flow, 1.0) / mean)
            else:
                found.append(0.0)
        return found

    def phases_of(self, flow: _Flow) -> Phases:
        entry = flow.request.entry
        if flow.at == THINK_STAGE:
            return self.plan.think[entry.task.name]
        if flow.at in (FRONT_IN, FRONT_OUT):
            return entry.front[0 if flow.at == FRONT_IN else 1]
        return entry.stages[flow.at][flow.stage].phases

    # events

    def choose(self, odds: Sequence[float]) -> int:
        if len(odds) == 1:
            return 0
        if not self.script:
            raise _NeedChoiceError(odds)
        return self.script.pop(0)

    def count(self, *event: str) -> None:
        self.counts[event] = self.counts.get(event, 0.0) + 1

    def begin(self) -> None:
        """Make the initial state: every client is about to think."""
        for task in self.plan.model.reference_tasks:
            entry = self.plan.entries[self.plan.numbers[task.name, task.entries[0].name]]
            for _ in range(int(task.threads)):
                self.created.append(self.new_cycle(entry))
        self.settle()

    def new_cycle(self, entry: _EntryPlan) -> _Flow:
        request = _Request(entry, 0, None, 0)
        self.roots.append(request)
        return self.new_flow(request, THINK_STAGE, carries=True)

    def new_flow(self, request: _Request, at: int, *, carries: bool) -> _Flow:
        flow = _Flow(request, at, carries)
        request.flows.append(flow)
        self.flows.append(flow)
        return flow

    def fire(self, index: int) -> None:
        """Let a flow end its phase."""
        flow = self.flows[index]
        if flow.phase + 1 < len(self.phases_of(flow)[flow.alternative][1]):
            flow.phase += 1
            return
        if flow.status == "proc":
            self.leave_processor(flow)
        self.woken.append(flow)
        self.settle()

    def settle(self) -> None:
        """Run everything that takes no time: new flows first, then what was woken, in this order."""
        while self.created or self.woken:
            flow = (self.created or self.woken).popleft()
            status, flow.status = flow.status, "run"
            following: _Flow | None = flow
            if status == "joined":
                index = flow.request.entry.successor[flow.at]
                following = self.branch(flow, index, flow.request.entry.entry.precedences[index])
            elif status != "run":
                following = self.after_wait(flow)
            while following is not None:
                following = self.step(following)

    def wait(self, flow: _Flow, status: str) -> None:
        flow.status = status
        self.clock += 1
        flow.order = self.clock if status in ("proc", "thread", "front") else 0

    def after_wait(self, flow: _Flow) -> _Flow | None:
        """Continue behind what a flow has waited for; return who runs on."""
        flow.alternative = flow.phase = flow.order = 0
        if flow.at == THINK_STAGE:
            flow.at, flow.stage = flow.request.entry.start, 0
        elif flow.at in (FRONT_IN, FRONT_OUT):
            flow.stage = 0
            self.give_front(flow)
            if flow.at == FRONT_OUT:
                return self.hand_over(flow)
            flow.at = ADMIT
        elif flow.at == ADMIT:
            self.enter(flow)
        else:
            flow.stage += 1
        return flow

    def step(self, flow: _Flow) -> _Flow | None:
        """Do the next thing; return who runs on at once, or None if the flow waits or is over."""
        request, entry = flow.request, flow.request.entry
        if flow.at == THINK_STAGE:
            if self.take_time(flow, "think"):
                return None
            return self.after_wait(flow)
        if flow.at in (FRONT_IN, FRONT_OUT):
            if flow.stage == 0:
                if any(
                    f is not flow and f.at in (FRONT_IN, FRONT_OUT) and f.stage == 1
                    for f in self.copies(flow)
                ):
                    self.wait(flow, "front")
                    return None
                flow.stage = 1
            if self.take_time(flow, "proc"):
                return None
            return self.after_wait(flow)
        if flow.at == ADMIT:
            token = entry.entry.token
            if token in GIVE_BACK:
                request.thread = "token"  # works without a thread of its own
            elif token in ("read-lock", "write-lock"):
                self.wait(flow, "thread")
                self.come_to_lock(request)
                if flow.status == "thread":
                    return None
                self.woken.remove(flow)  # it has not waited: it goes on before others
                flow.status = "run"
            elif not self.take_thread(request):
                self.wait(flow, "thread")
                return None
            return self.after_wait(flow)
        if flow.stage == len(entry.stages[flow.at]):
            return self.activity_over(flow)
        stage = entry.stages[flow.at][flow.stage]
        if stage.kind == "mix":
            chosen = self.choose(stage.odds)
            if chosen == len(stage.odds) - 1:
                return self.activity_over(flow)
            flow.stage += 1 + chosen
            return self.call(flow, entry.stages[flow.at][flow.stage])
        if stage.kind == "call":
            return self.repeat_call(flow, stage)
        if self.take_time(flow, "proc" if stage.kind == "use" else stage.kind):
            return None
        return self.after_wait(flow)

    def take_time(self, flow: _Flow, status: str) -> bool:
        """Begin to wait for a time; False if it is 0."""
        phases = self.phases_of(flow)
        chosen = self.choose([p for p, _ in phases])
        if not phases[chosen][1]:
            return False
        flow.alternative, flow.phase = chosen, 0
        if status == "proc":
            name = self.place_of(flow)
            if name is None:
                self.wait(flow, "delay")
                return True
            processor = self.plan.processors[name]
            if processor.discipline == "hol":
                serving = sum(f.serving for f in self.flows if self.place_of(f) == name)
                flow.serving = serving < processor.cores
        self.wait(flow, status)
        return True

    def leave_processor(self, flow: _Flow) -> None:
        name = self.place_of(flow)
        flow.status = "left"
        if flow.serving:
            flow.serving = False
            waiting = [
                f for f in self.flows if f.status == "proc" and not f.serving and self.place_of(f) == name
            ]
            if waiting:
                min(waiting, key=lambda f: (-f.request.entry.task.priority, f.order)).serving = True

    def copies(self, flow: _Flow) -> Iterator[_Flow]:
        """Yield the flows of all requests at the same replica."""
        mine = flow.request
        for other in self.flows:
            if other.request.entry.task is mine.entry.task and other.request.replica == mine.replica:
                yield other

    def give_front(self, flow: _Flow) -> None:
        waiting = [f for f in self.copies(flow) if f.status == "front"]
        if waiting:
            head = min(waiting, key=lambda f: f.order)
            head.status, head.stage, head.order = "run", 1, 0
            self.woken.append(head)

    # threads

    def held(self, task: Task, replica: int) -> int:
        return self.tokens.get(task.name, 0) + sum(
            r.thread == "held" and r.entry.task is task and r.replica == replica for r in self.requests()
        )

    def take_thread(self, request: _Request) -> bool:
        task = request.entry.task
        if self.held(task, request.replica) >= task.threads:
            return False
        request.thread = "held"
        return True

    def enter(self, flow: _Flow) -> None:
        """Continue behind the admission: at the start, or behind a releasing call."""
        if flow.left == -2:
            flow.left, flow.at, flow.stage = flow.stack[-1]
            flow.stack = flow.stack[:-1]
            return
        flow.at, flow.stage = flow.request.entry.start, 0

    def give_thread(self, request: _Request) -> None:
        """Free a thread; the next in the queue has it from this moment on."""
        request.thread = "none"
        self.admit_next(request.entry.task, request.replica)

    def admit_next(self, task: Task, replica: int) -> None:
        waiting = [
            f
            for f in self.flows
            if f.status == "thread" and f.request.entry.task is task and f.request.replica == replica
        ]
        if not waiting or self.held(task, replica) >= task.threads:
            return
        waiting.sort(key=lambda f: f.order)
        if task.admission == "random":
            head = waiting[self.choose([1 / len(waiting)] * len(waiting))]
        elif task.admission == "hol":
            head = max(waiting, key=lambda f: (f.request.rank, -f.order))
        else:
            head = waiting[0]
        head.status = "woken"
        head.request.thread = "held"
        self.woken.append(head)

    # locks: a reader is "let in" from the moment from which it waits for a place only

    def at_lock(self, task: Task, token: str, thread: str) -> list[_Flow]:
        """Return the flows that wait for a lock, in order."""
        found = [
            f
            for f in self.flows
            if f.status == "thread" and f.request.entry.task is task
            and f.request.entry.entry.token == token and f.request.thread == thread
        ]  # fmt: skip
        return sorted(found, key=lambda f: f.order)

    def holders(self, task: Task, token: str) -> int:
        requests = (r for r in self.requests() if r.entry.task is task and r.entry.entry.token == token)
        return self.tokens.get(f"{task.name} {token}", 0) + sum(r.thread == "held" for r in requests)

    def come_to_lock(self, request: _Request) -> None:
        task = request.entry.task
        writers = self.holders(task, "write-lock") + len(self.at_lock(task, "write-lock", "none"))
        if request.entry.entry.token == "read-lock" and writers == 0:
            request.thread = "let in"
        self.pass_lock_on(task)

    def pass_lock_on(self, task: Task) -> None:
        """Admit all whose turn it is."""
        while True:
            readers, let_in = self.holders(task, "read-lock"), self.at_lock(task, "read-lock", "let in")
            writers = self.at_lock(task, "write-lock", "none")
            if let_in and readers < task.threads:
                self.admit_to_lock(let_in[0])
            elif writers and not (readers or let_in or self.holders(task, "write-lock")):
                self.admit_to_lock(writers[0])
            else:
                return

    def admit_to_lock(self, flow: _Flow) -> None:
        flow.status = "woken"
        flow.request.thread = "held"
        self.woken.append(flow)

    # calls and replies

    def repeat_call(self, flow: _Flow, stage: _Stage) -> _Flow:
        """Call once more, or go on."""
        count = stage.count
        if isinstance(count, Geometric):
            again = count.mean / (1 + count.mean)
            if self.choose([again, 1 - again]) == 0:
                return self.call(flow, stage)
            flow.left = -1
            flow.stage += 1
            return flow
        if flow.left == -1:
            if isinstance(count, Empirical):
                values = count.values
                flow.left = int(values[self.choose([1 / len(values)] * len(values))])
            elif count is not None:
                flow.left = int(count.mean)
        if flow.left == 0:
            flow.left = -1
            flow.stage += 1
            return flow
        flow.left -= 1
        return self.call(flow, stage)

    def call(self, flow: _Flow, stage: _Stage) -> _Flow:
        """Send a request; return the flow that works on it."""
        target = self.plan.entries[stage.target]
        flow.status = "call"
        request = self.arrive(target, flow, flow.request.entry.task.priority)
        if stage.releasing:
            self.give_thread(flow.request)
        return request

    def arrive(self, target: _EntryPlan, caller: _Flow, priority: int) -> _Flow:
        copies = target.task.replicas
        replica = self.choose([1 / copies] * copies)
        request = _Request(target, replica, caller, priority + target.entry.priority)
        if target.task.admission != "hol":
            request.rank = 0
        caller.child = request
        return self.new_flow(request, FRONT_IN if target.task.front is not None else ADMIT, carries=True)

    def reply(self, flow: _Flow) -> _Flow | None:
        """Let the reply leave with this flow; return who runs on."""
        request, entry = flow.request, flow.request.entry
        request.replied = True
        if entry.task.front is not None:
            flow.at, flow.stage, flow.carries, flow.stack, flow.base = FRONT_OUT, 0, False, (), 0
            return flow
        return self.hand_over(flow)

    def hand_over(self, flow: _Flow) -> _Flow | None:
        """End a flow; the caller goes on, or the entry that the request is forwarded to."""
        request = flow.request
        caller = request.caller
        assert caller is not None
        self.remove(flow)
        request.caller = None
        if request.flows:
            self.roots.append(request)
        self.count("entry", request.entry.label)
        forwards = request.entry.entry.forwards
        if forwards:
            odds = [f.probability for f in forwards]
            chosen = self.choose([*odds, max(0.0, 1 - sum(odds))])
            if chosen < len(forwards):
                target = self.plan.entries[self.plan.numbers[forwards[chosen].task, forwards[chosen].entry]]
                return self.arrive(target, caller, request.entry.task.priority)
        caller.child = None
        caller.status = "run"
        return self.resume(caller)

    def resume(self, caller: _Flow) -> _Flow:
        """Continue behind a call."""
        stages = caller.request.entry.stages[caller.at]
        mixed = next((i for i, s in enumerate(stages) if s.kind == "mix"), None)
        releasing = stages[caller.stage].releasing
        if mixed is not None:
            caller.stage = mixed - 1
        if releasing:
            # Remember the place; ``enter`` comes back to it.
            caller.stack = (*caller.stack, (caller.left, caller.at, caller.stage))
            caller.at, caller.stage, caller.left = ADMIT, 0, -2
        return caller

    def remove(self, flow: _Flow) -> None:
        flow.request.flows.remove(flow)
        self.flows.remove(flow)
        if not flow.request.flows and flow.request in self.roots:
            self.roots.remove(flow.request)

    # activity graphs

    def activity_over(self, flow: _Flow) -> _Flow | None:
        request, entry = flow.request, flow.request.entry
        flow.left = -1
        if entry.replies[flow.at] and not request.replied:
            # The reply leaves with a flow of its own that runs first; this one carries on behind it.
            messenger = self.new_flow(request, flow.at, carries=False)
            flow.status = "behind"
            self.created.append(self.behind(flow))
            return self.reply(messenger)
        return self.go_on(flow)

    def behind(self, flow: _Flow) -> _Flow:
        """Mark a flow as being behind its activity when it is taken up again."""
        flow.stage = len(flow.request.entry.stages[flow.at])
        flow.status = "run"
        return flow

    def go_on(self, flow: _Flow) -> _Flow | None:
        """Follow the arc behind a flow's activity."""
        entry = flow.request.entry
        index = entry.successor[flow.at]
        if index < 0:
            return self.scope_over(flow)
        precedence = entry.entry.precedences[index]
        if precedence.join == "and" and len(precedence.pre) > 1:
            arrived = self.join(flow, index, precedence)
            if arrived is None:
                return None
            flow = arrived
        return self.branch(flow, index, precedence)

    def branch(self, flow: _Flow, index: int, precedence: Precedence) -> _Flow | None:
        names = flow.request.entry.names
        post = [names[n] for n in precedence.post]
        if precedence.fork == "loop":
            flow.stack = (*flow.stack, (index, -1, 0))
            return self.iterate(flow)
        if precedence.fork == "or" and len(post) > 1:
            if precedence.probabilities is None:
                raise UnsupportedError("probabilities are unknown")
            return self.goto(flow, post[self.choose(precedence.probabilities)])
        for name in post[1:]:
            other = self.new_flow(flow.request, name, carries=False)
            other.stack, other.base = flow.stack, len(flow.stack)
            self.created.append(other)
        return self.goto(flow, post[0])

    def goto(self, flow: _Flow, at: int) -> _Flow:
        flow.at, flow.stage, flow.left = at, 0, -1
        return flow

    def join(self, flow: _Flow, index: int, precedence: Precedence) -> _Flow | None:
        """Arrive; return the flow that goes on at once."""
        request = flow.request
        count, base = request.joins.get(index, (0, len(flow.stack)))
        count, base = count + 1, min(base, flow.base)
        needed = len(precedence.pre) if precedence.quorum is None else precedence.quorum
        if count == len(precedence.pre):
            request.joins.pop(index, None)
        else:
            request.joins[index] = (count, base)
        if count != needed:
            if flow.carries:
                flow.status = "join"
            else:
                self.over(flow)
            return None
        parked = next((f for f in request.flows if f.status == "join"), None)
        if parked is not None and request.entry.successor[parked.at] == index:
            # It is woken, not run at once.
            parked.status = "joined"
            self.woken.append(parked)
            self.over(flow)
            return None
        flow.base = base
        if request.entry.passes_on[index] and not flow.carries:
            # A quorum was reached while the flow that carries the request is still on its way.
            for other in request.flows:
                other.carries = False
            flow.carries = True
        return flow

    def iterate(self, flow: _Flow) -> _Flow | None:
        """Start the next body of the innermost loop, or leave it."""
        index, body, left = flow.stack[-1]
        entry = flow.request.entry
        precedence = entry.entry.precedences[index]
        counts = precedence.counts
        if all(isinstance(c, Geometric) for c in counts):
            means = [c.mean if c is not None else 0.0 for c in counts]
            total = 1 + sum(means)
            body = self.choose([*(m / total for m in means), 1 / total])
            if body < len(counts):
                return self.goto(flow, entry.names[precedence.post[body]])
        else:
            while True:
                count = counts[body] if body >= 0 else None
                if isinstance(count, Geometric):
                    again = count.mean / (1 + count.mean)
                    more = self.choose([again, 1 - again]) == 0
                else:
                    more = left > 0
                    left -= more
                if more:
                    flow.stack = (*flow.stack[:-1], (index, body, left))
                    return self.goto(flow, entry.names[precedence.post[body]])
                body += 1
                if body == len(counts):
                    break
                left = self.times(counts[body])
        flow.stack = flow.stack[:-1]
        if precedence.continuation is not None:
            return self.goto(flow, entry.names[precedence.continuation])
        return self.scope_over(flow)

    def times(self, count: Distribution | None) -> int:
        if isinstance(count, Empirical):
            return int(count.values[self.choose([1 / len(count.values)] * len(count.values))])
        if isinstance(count, Constant):
            return int(count.value)
        return 0

    def scope_over(self, flow: _Flow) -> _Flow | None:
        """A chain of activities ends: a loop's body, or the flow."""
        if len(flow.stack) > flow.base:
            return self.iterate(flow)
        return self.over(flow)

    def over(self, flow: _Flow) -> _Flow | None:
        """End a flow; return who runs on with its reply, if it has one to bring."""
        request, entry = flow.request, flow.request.entry
        task = entry.task
        if task.is_reference:
            self.remove(flow)
            if not flow.carries:
                return None
            self.count("task", task.name)
            self.cycles += 1
            if self.cycles > 1000:
                raise UnsupportedError("cycles take no time")
            return self.new_cycle(entry)
        if flow.carries:
            request.ended = True
            flow.carries = False
        others = [f for f in request.flows if f is not flow and f.at != FRONT_OUT]
        if request.ended and request.thread != "gone" and not (entry.entry.waits and others):
            self.free(request)
        if request.replied or not request.ended or (entry.replies_beside and others):
            self.remove(flow)
            return None
        return self.reply(flow)

    def free(self, request: _Request) -> None:
        """The request needs its thread no longer."""
        task, token = request.entry.task, request.entry.entry.token
        self.count("task", task.name)
        if token == "acquire":
            self.tokens[task.name] = self.tokens.get(task.name, 0) + 1
            request.thread = "gone"
        elif token in ("read-lock", "write-lock"):
            self.tokens[f"{task.name} {token}"] = self.tokens.get(f"{task.name} {token}", 0) + 1
            request.thread = "gone"
        elif token in ("read-unlock", "write-unlock"):
            held = f"{task.name} {token.replace('unlock', 'lock')}"
            self.tokens[held] -= 1
            request.thread = "gone"
            if token == "write-unlock" and not self.at_lock(task, "write-lock", "none"):
                for flow in self.at_lock(task, "read-lock", "none"):
                    flow.request.thread = "let in"
            self.pass_lock_on(task)
        elif token == "release":
            self.tokens[task.name] -= 1
            request.thread = "gone"
            self.admit_next(task, request.replica)
        else:
            self.give_thread(request)
            request.thread = "gone"
