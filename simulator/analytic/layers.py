"""Which stations does a model consist of, and who sends how much work to which of them?

A *station* is anything requests queue for: the threads of a task, its front, the cores of a processor.
A *plan* is one entry (or one of the two works of a front) with means and variances in place of
distributions. A task whose threads never run out, or are never held for any time, is no station: its callers
use what it uses.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from mup.errors import ModelError
from mup.lqn.distributions import Constant, Distribution
from mup.lqn.lowered import (
    Graph,
    Lowered,
    Passed,
    check_sources,
    has_front,
    held_by_front,
    is_awaited,
    is_limited,
    machines,
    measured,
    onward,
    pinned_together,
    requests_of,
    slices_of,
    wholes,
)
from mup.lqn.model import LOCK, Activity, CallKind, Entry, Front, Model, Processor, Task
from mup.lqn.refs import EntryRef, Names
from simulator.analytic.entries.entry_times import ActivityGraph, Moments

__all__ = ["CallPlan", "Layers", "Plan", "Populations", "Station", "Step", "targets"]

SECOND_PHASES = 3
MOST_VARIABLE = 1e12
"""Squared coefficient of variation, at most."""
NOTHING = Constant(0.0)


@dataclass(frozen=True, slots=True)
class CallPlan:
    """A call: the plan it goes to, how often (mean, variance), and what the caller does meanwhile."""

    target: int
    count: Moments
    kind: CallKind

    @property
    def awaited(self) -> bool:
        """Whether the caller waits for the reply."""
        return is_awaited(self.kind)


@dataclass(frozen=True, slots=True)
class Step:
    """An activity: visits to the processor with a demand each (seconds of a core), delay, calls."""

    name: str
    slices: float
    demand: Moments
    delay: Moments
    calls: tuple[CallPlan, ...]
    think: bool


@dataclass(slots=True)
class Plan:
    """What one request to an entry does.

    Attributes:
        task: Index of the task.
        label: For display.
        graph, steps: Its activities, and how they hang together.
        station: The station whose server it holds; None for clients and where servers never run out.
        processor: The station of its processor; None if demands are delays.
        forwards: Other plans that take over with a probability.
        before, behind: Plans of the front, for requests and for replies that no thread is held for; those
            it is held for are called by the steps that reply.
        arrivals: Requests per second from outside.
        entry: The entry, or which half of the front: ``request`` or ``reply``.
        is_front: Whether it is one of the works of a front.
    """

    task: int
    label: str
    graph: ActivityGraph
    steps: tuple[Step, ...]
    processor: int | None
    station: int | None = None
    forwards: tuple[tuple[int, float], ...] = ()
    before: int | None = None
    behind: int | None = None
    arrivals: float = 0.0
    entry: str = ""
    is_front: bool = False


@dataclass(slots=True)
class Station:
    """Servers with a queue in front of each replica.

    Attributes:
        name: For messages.
        servers, replicas: Per replica; number of replicas.
        shared: Requests share the servers (PS) instead of waiting first come first served.
        task: Index of the task if the servers are its threads (or its front).
        parent: The station whose servers its own run on, if it is a part of another processor.
        processor: Whose cores the servers are, all of them.
        is_front: Whether the servers are fronts.
    """

    name: str
    servers: float
    replicas: int
    shared: bool
    task: int | None = None
    parent: int | None = None
    processor: str | None = None
    is_front: bool = False


@dataclass(slots=True)
class Layers:
    """A model as stations and plans; plans are listed such that callers come before what they call.

    Attributes:
        order: Indices of all plans, callers before what they call.
        roots: The plans of reference tasks.
        caused, handed: Per plan, the requests each of its own causes, and where they are handed on to.
    """

    model: Model
    stations: list[Station] = field(default_factory=list)
    plans: list[Plan] = field(default_factory=list)
    order: list[int] = field(default_factory=list)
    roots: list[int] = field(default_factory=list)
    caused: list[tuple[Passed, ...]] = field(default_factory=list)
    handed: list[tuple[tuple[int, float], ...]] = field(default_factory=list)
    of_task: dict[int, list[int]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    @staticmethod
    def of(model: Model) -> Layers:
        """Take a model apart.

        Raises:
            UncalibratedError: A number a client can reach was never measured; all of them are listed.
            ModelError: An element has no analytic estimate; its path is named.
            SimulationError: The model has no reference task, or a cycle that takes no time.
        """
        return _Builder(model).build()


class _Builder:
    def __init__(self, model: Model) -> None:
        self.model = model
        self.lowered = Lowered(model)
        self.wholes = wholes(model)
        self.pinned = pinned_together(model)
        self.layers = Layers(model)
        self.tasks = {t.name: i for i, t in enumerate(model.tasks)}
        self.names = Names(model.tasks)
        self.plan_of: dict[tuple[str, str], int] = {}
        self.processor_station: dict[str, int] = {}
        self.core_station: dict[tuple[str, int], int] = {}
        self.fronts: dict[str, tuple[int | None, int | None]] = {}

    def build(self) -> Layers:
        model, layers = self.model, self.layers
        check_sources(model)
        self.lowered.check_measured()
        for processor in model.processors:
            self.processor(processor)
        for source in self.lowered.sources:
            plan = self.plan(source.task, source.entry)
            layers.plans[plan].arrivals = source.rate
            if source.task.is_reference:
                layers.roots.append(plan)
        self.sort()
        layers.caused = [tuple(_caused(plan)) for plan in layers.plans]
        layers.handed = [plan.forwards for plan in layers.plans]
        self.pools()
        return layers

    def processor(self, processor: Processor) -> int | None:
        """Return the station of a processor; None if it has a core for every thread."""
        if processor.name in self.processor_station:
            return self.processor_station[processor.name]
        parent = None
        if processor.parent is not None:
            parent = self.whole(processor, self.model.processor(processor.parent))
        if not is_limited(processor):
            return parent
        station = Station(
            name=f"processors[{processor.name!r}]",
            servers=processor.cores,
            replicas=1,
            shared=processor.discipline in ("ps", "pp", "cores"),
            parent=parent,
            processor=processor.name,
        )
        if processor.discipline in ("hol", "pp"):
            found = "first come first served" if processor.discipline == "hol" else "processor sharing"
            self.layers.warnings.append(f"{station.name}: priorities are not estimated, taken as {found}")
        if processor.migration is not None:
            self.layers.warnings.append(f"{station.name}: threads are taken to move to idle cores at once")
        whole = processor.name in self.wholes
        if processor.discipline == "cores" and processor.migration is None and not whole:
            # Threads that never move: one queue per core, as good as chosen at random.
            station.servers, station.replicas = 1, int(processor.cores)
        self.layers.stations.append(station)
        self.processor_station[processor.name] = len(self.layers.stations) - 1
        return self.processor_station[processor.name]

    def whole(self, part: Processor, parent: Processor) -> int | None:
        """Return the station a part is a part of: the core it is pinned to with others, or all cores."""
        station = self.processor(parent)
        core = part.pinned_core(parent)
        if core is None or (parent.name, core) not in self.pinned:
            return station
        if (parent.name, core) not in self.core_station:
            name = f"core {core} of processors[{parent.name!r}]"
            self.layers.stations.append(
                Station(name=name, servers=1, replicas=1, shared=True, parent=station)
            )
            self.core_station[parent.name, core] = len(self.layers.stations) - 1
        return self.core_station[parent.name, core]

    def _parent_speed(self, processor: Processor) -> float:
        speed = 1.0
        for above in machines(self.model, processor.parent):
            speed *= above.speed * above.available
        return speed

    def place(self, task: Task) -> tuple[int | None, float]:
        """Return the station of a task's processor and the speed that work in the background leaves."""
        if task.processor is None:
            return None, 1.0
        processor = self.model.processor(task.processor)
        own = processor.speed * processor.available
        return self.processor(processor), own * self._parent_speed(processor)

    def plan(self, task: Task, entry: Entry) -> int:
        """Return the index of the plan of an entry; make it if it is new."""
        plans = self.layers.plans
        if (task.name, entry.name) in self.plan_of:
            return self.plan_of[task.name, entry.name]
        where = f"tasks[{task.name!r}].entries[{entry.name!r}]"
        if entry.token:
            kind = "lock" if entry.token in LOCK else "semaphore"
            raise ModelError(
                f"no analytic estimate of a {kind} (token {entry.token!r})",
                where=f"{where}.token",
                hint="simulate the model instead",
            )
        lowered = self.lowered.graph(task.name, entry.name)
        graph = ActivityGraph(lowered)
        index = len(plans)
        self.plan_of[task.name, entry.name] = index
        station, speed = self.place(task)
        label = self.names.entries[EntryRef(task.name, entry.name)]
        plan = Plan(self.tasks[task.name], label, graph, (), station, entry=entry.name)
        plans.append(plan)
        self.layers.of_task.setdefault(plan.task, []).append(index)
        plan.steps = tuple(self.step(task, a, speed) for a in entry.activities if a.name in graph.visits)
        plan.forwards = tuple(
            (self.plan(*self.lowered.target(forward.task, forward.entry)), forward.probability)
            for forward in onward(entry)
        )
        if task.front is not None and has_front(task):
            plan.before, behind = self.front(task, task.front)
            held = held_by_front(task, lowered)
            if held and behind is not None:
                sending = CallPlan(behind, (1.0, 0.0), "synchronous")
                plan.steps = tuple(
                    replace(step, calls=(*step.calls, sending)) if step.name in held else step
                    for step in plan.steps
                )
            else:
                plan.behind = behind
        return index

    def step(self, task: Task, activity: Activity, speed: float) -> Step:
        demand, delay = measured(activity.demand), measured(activity.delay)
        requests = requests_of(activity)
        calls = []
        for request in requests:
            plan = self.plan(*self.lowered.target(request.call.task, request.call.entry))
            calls.append(CallPlan(plan, (request.count.mean, request.count.variance), request.call.kind))
        cut = slices_of(activity, requests)
        slices = 1.0 if cut is None else cut.number
        mean, variance = demand.mean / speed / slices, _variance(demand) / (speed * slices) ** 2
        return Step(
            activity.name,
            slices if mean > 0 else 0.0,
            (mean, variance),
            (delay.mean, _variance(delay)),
            tuple(calls),
            activity.kind == "think" and task.is_reference,
        )

    def front(self, task: Task, front: Front) -> tuple[int | None, int | None]:
        """Return the plans of a front: for the request, for the reply; None where it takes no time."""
        if task.name in self.fronts:
            return self.fronts[task.name]
        home = replace(task, processor=self.model.front_processor(task))
        station, speed = self.place(home)
        made: list[int | None] = []
        for phase in ("request", "reply"):
            time = measured(getattr(front, phase))
            if time.mean == 0:
                made.append(None)
                continue
            activity = Activity(name=phase, demand=time, delay=NOTHING)
            entry = Entry(name=phase, start=phase, activities=(activity,))
            plan = Plan(
                self.tasks[task.name],
                f"{task.name}.front.{phase}",
                ActivityGraph(Graph(entry)),
                (self.step(home, activity, speed),),
                station,
                entry=phase,
                is_front=True,
            )
            self.layers.plans.append(plan)
            made.append(len(self.layers.plans) - 1)
        if made[0] is not None or made[1] is not None:
            self.layers.stations.append(
                Station(
                    f"tasks[{task.name!r}].front",
                    1,
                    task.replicas,
                    shared=False,
                    task=self.tasks[task.name],
                    is_front=True,
                )
            )
            for number in made:
                if number is not None:
                    self.layers.plans[number].station = len(self.layers.stations) - 1
        self.fronts[task.name] = made[0], made[1]
        return self.fronts[task.name]

    def sort(self) -> None:
        """Order plans: every caller before what it calls."""
        layers = self.layers
        done: set[int] = set()
        order: list[int] = []
        for root in range(len(layers.plans)):
            stack = [(root, False)]
            while stack:
                plan, leaving = stack.pop()
                if leaving:
                    order.append(plan)
                elif plan not in done:
                    done.add(plan)
                    stack.append((plan, True))
                    stack.extend((p, False) for p in targets(layers.plans[plan]) if p not in done)
        layers.order = order[::-1]

    def pools(self) -> None:
        """Make a station of every task whose threads can run out."""
        layers, model = self.layers, self.model
        for index in Populations(layers.plans, layers.order).limited(model.tasks):
            task = model.tasks[index]
            layers.stations.append(
                Station(f"tasks[{task.name!r}]", task.threads, task.replicas, False, index)
            )
            if task.admission == "hol" and len(self._ranks(index)) > 1:
                layers.warnings.append(
                    f"tasks[{task.name!r}]: priorities of admission are not estimated, taken as first come"
                    " first served: the mean over all its requests is right, but response times of its"
                    " entries, and of those who call them, can be many tens of percent off; simulate it"
                )
            for number in layers.of_task[index]:
                layers.plans[number].station = len(layers.stations) - 1

    def _ranks(self, index: int) -> set[int]:
        """Return the priorities that requests for the threads of a task have."""
        layers, tasks = self.layers, self.model.tasks
        own = {self.plan_of.get((tasks[index].name, e.name)): e.priority for e in tasks[index].entries}
        here = {number: own[number] for number in layers.of_task[index]}
        found = {rank for number, rank in here.items() if layers.plans[number].arrivals}
        for plan in layers.plans:
            targets = [c.target for s in plan.steps for c in s.calls] + [
                target for target, _ in plan.forwards
            ]
            found |= {tasks[plan.task].priority + here[target] for target in targets if target in here}
        return found


class Populations:
    """How many requests may be at the tasks of some plans at once?

    Args:
        plans: Of a model.
        order: Their indices, callers before what they call.
    """

    def __init__(self, plans: Sequence[Plan], order: Sequence[int]) -> None:
        self._of_task: dict[int, list[int]] = {}
        # width[target][caller]: how many calls one thread of the caller may have there at once.
        self._width: dict[int, dict[int, float]] = {}
        self._second: set[int] = set()
        for number, plan in enumerate(plans):
            graph, width = plan.graph, self._width
            if not plan.is_front:
                self._of_task.setdefault(plan.task, []).append(number)
            for step in plan.steps:
                for call in step.calls:
                    if plans[call.target].is_front:
                        continue  # of the same request
                    endless = not call.awaited or step.name not in graph.held
                    callers = width.setdefault(plans[call.target].task, {})
                    callers[plan.task] = max(callers.get(plan.task, 0), math.inf if endless else graph.width)
            for target, _ in plan.forwards:
                width.setdefault(plans[target].task, {})[plan.task] = math.inf
            if plan.arrivals:
                width.setdefault(plan.task, {})[plan.task] = math.inf
            if graph.awaited != graph.held:
                self._second.add(plan.task)
        timeless = _timeless(plans, order)
        self._timeless = {task for task, found in self._of_task.items() if timeless.issuperset(found)}

    def limited(self, tasks: Sequence[Task]) -> list[int]:
        """Return the indices of the tasks whose threads can run out, given how many threads all have."""
        population = dict.fromkeys(self._of_task, 0.0)
        # Threads at work behind their reply come on top of those whose reply is awaited. How many there are
        # at once has no bound; that many are rare.
        for _ in population:
            before = dict(population)
            for index in population:
                task = tasks[index]
                if task.is_reference:
                    population[index] = math.inf if task.is_open else task.threads
                else:
                    population[index] = sum(
                        _threads(tasks[caller], population[caller]) * times
                        for caller, times in self._width.get(index, {}).items()
                        if times == math.inf or caller != index
                    )
            if population == before:
                break
        found = []
        for index, most in population.items():
            task = tasks[index]
            enough = most * (SECOND_PHASES if index in self._second else 1)
            if task.is_reference or task.threads == math.inf or task.threads >= enough:
                continue
            if index not in self._timeless:
                found.append(index)
        return found


def _timeless(plans: Sequence[Plan], order: Sequence[int]) -> set[int]:
    """Return the plans that answer at the very moment they are asked: no thread is ever held for them."""
    found: set[int] = set()
    for index in reversed(order):
        plan = plans[index]
        waited = [c.target for s in plan.steps for c in s.calls if c.awaited]
        waited += [t for t in (*(f for f, _ in plan.forwards), plan.before, plan.behind) if t is not None]
        own = any(step.slices > 0 or step.delay[0] > 0 for step in plan.steps)
        if not own and all(target in found for target in waited):
            found.add(index)
    return found


def _threads(task: Task, population: float) -> float:
    """Return how many threads of a task can be busy at once; at least one if it is ever called."""
    return max(min(task.threads * task.replicas, population), 1.0)


def targets(plan: Plan) -> Iterator[int]:
    """Yield the plans that one calls, hands on to, or passes through."""
    for step in plan.steps:
        for call in step.calls:
            yield call.target
    for target, _ in plan.forwards:
        yield target
    for front in (plan.before, plan.behind):
        if front is not None:
            yield front


def _caused(plan: Plan) -> Iterator[Passed]:
    """Yield the requests that one request of a plan causes, those to its front included."""
    for step in plan.steps:
        visits = plan.graph.visits[step.name]
        for call in step.calls:
            yield Passed(call.target, visits, call.count[0], call.awaited)
    for front in (plan.before, plan.behind):
        if front is not None:
            yield Passed(front, 1.0, 1.0, awaited=False)


def _variance(time: Distribution) -> float:
    """A time of infinite variance is taken for a very variable one: its queue has a mean all the same."""
    return min(time.variance, MOST_VARIABLE * time.mean**2)
