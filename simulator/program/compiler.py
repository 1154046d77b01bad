"""Compile a model, entry by entry, beginning with those that load arrives at.

Engines know nothing of activities and precedences; whatever two engines could understand differently is
decided here and in `simulator.program.body`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Final

from mup.errors import SimulationError, UsageError
from mup.lqn.distributions import Constant, Distribution, Exponential, Uniform
from mup.lqn.lowered import Lowered, Source, check_sources, has_front, held_by_front, measured, onward
from mup.lqn.model import LOCK, Entry, Model, Task
from mup.lqn.refs import FORWARD as HANDING_ON
from mup.lqn.refs import EntryRef
from simulator.program.body import Body
from simulator.program.emitter import Emitter
from simulator.program.instructions import (
    ADMIT,
    ADMITS,
    BEGIN,
    BY_FRONT,
    BY_WORKER,
    CYCLE,
    DELAY,
    END,
    FIFO,
    FINISH,
    FORK,
    FORWARD,
    FRONT_GIVE,
    FRONT_TAKE,
    GOTO,
    LOCKED,
    PLAIN,
    PRIORITY,
    RANDOM,
    RETURN,
    SEND,
    STICKY,
    THINK,
    THOUGHT,
    USE,
)
from simulator.program.limits import check_size
from simulator.program.means import nominal_of
from simulator.program.servers import with_seats
from simulator.program.tables import (
    UNTIMED,
    ActivitySpec,
    EntryCode,
    Nominal,
    Population,
    Program,
    SiteSpec,
    TaskSpec,
)

__all__ = ["compile_model"]

SLICE: Final = 0.002
"""Seconds of processor time that work in the background takes at once: a heartbeat, a look around."""
MAX_SLICES: Final = 100
"""Per cycle. Where cycles are few and far between slices are longer: they hardly meet any request."""


def compile_model(model: Model, *, activities: bool = False, arrive_within: float | None = None) -> Program:
    """Compile a model.

    Args:
        model: What to compile. Its processor times must not depend on the load (`simulator.preparing`).
        activities: Time every execution of every activity.
        arrive_within: Seconds in which all clients have come. Default: as long as a cycle takes when none
            waits.

    Raises:
        UsageError: The model has not been prepared.
        UncalibratedError: A number a client can reach was never measured; all of them are listed.
        SimulationError: Nothing creates load, or a cycle takes no time.
        ModelError: It is too large for any machine's memory.
    """
    check_sources(model)
    by_load = any(t.load_dependence is not None for t in model.tasks)
    if by_load or any(p.depends_on_utilization for p in model.processors):
        raise UsageError(
            "processor times depend on the load, which is not known here",
            where=model.name,
            hint="prepare the model first (simulator.preparing.prepared)",
        )
    check_size(model)
    lowered = Lowered(model)
    lowered.check_measured()
    return _Compiler(lowered, activities=activities, arrive_within=arrive_within).program()


class _Compiler:
    """Emits the code of everything that load reaches, one entry at a time."""

    def __init__(self, lowered: Lowered, *, activities: bool, arrive_within: float | None) -> None:
        self.lowered = lowered
        self.model = lowered.model
        self.arrive_within = arrive_within
        self.out = Emitter(lowered, activities=activities)
        self.starts: dict[str, int] = {}

    def program(self) -> Program:
        model = self.model
        self.out.emit(END)  # at LATE
        sources = self.lowered.sources
        populations = [self.source(source, index) for index, source in enumerate(sources)]
        while self.out.wanted:
            self.compile_entry(*self.out.wanted.pop())
        rates = self.lowered.requests_per_cycle()
        finished = []
        for source, population in zip(sources, populations, strict=True):
            task = source.task
            nominal = nominal_of(self.lowered, task, rates[source.key], self.out.servers, self.out.entries)
            if nominal.total <= 0 and not population.is_open:
                raise SimulationError(
                    "a cycle takes no time at all, so it would repeat for ever at time 0",
                    where=f"tasks[{task.name!r}]",
                    hint="give it a think time, or some demand or delay on the way",
                )
            start = population.start if population.is_open else self.starts[task.name]
            # A single client meets no other; it comes at its moment only where a run is repeated.
            least = 2 if self.arrive_within is None else 1
            first = self.entrance(start, nominal) if population.clients >= least else start
            finished.append(replace(population, start=start, first=first, nominal=nominal))
        cycles = sum(p.rate if p.is_open else p.clients / p.nominal.total for p in finished)
        background = tuple(
            at for i in range(len(self.out.servers)) if (at := self.background(i, cycles)) >= 0
        )
        self.check_capacity(finished)
        tasks = tuple(self.task_spec(t) for t in model.tasks)
        unreached = partial(
            EntryCode, start=-1, epilogue=-1, replies_elsewhere=False, waits=False, token=PLAIN
        )
        return Program(
            name=model.name,
            code=tuple(self.out.code),
            distributions=tuple(self.out.distributions),
            choices=tuple(self.out.choices),
            joins=tuple(self.out.joins),
            tasks=tasks,
            entries=tuple(
                self.out.compiled.get(
                    i, unreached(task=self.out.tasks[t], label=self.out.names.entries[EntryRef(t, e)])
                )
                for (t, e), i in self.out.entries.items()
            ),
            sites=tuple(self.out.sites),
            activities=tuple(self.out.activities),
            servers=with_seats(model, self.out.servers, tasks),
            populations=tuple(finished),
            background=background,
            timers=self.out.timers,
            registers=self.out.registers,
            slots=self.out.slots,
            ranks=len(self.out.ranks),
            sleeps=tuple(self.out.sleeps),
            setups=tuple(self.out.setups),
        )

    def sticky(self, processor: str | None) -> int:
        """Return the server of a processor if threads stick to its cores, else -1."""
        server = -1 if processor is None else self.out.server_index.get(processor, -1)
        return server if server >= 0 and self.out.servers[server].kind == STICKY else -1

    def task_spec(self, task: Task) -> TaskSpec:
        admission = {"fifo": FIFO, "random": RANDOM, "hol": PRIORITY}[task.admission]
        return TaskSpec(
            name=task.name,
            threads=task.threads,
            replicas=task.replicas,
            admission=LOCKED if any(e.token in LOCK for e in task.entries) else admission,
            rank=self.out.ranks.index(task.priority),
            server=self.sticky(task.processor),
            front=has_front(task),
            front_server=self.sticky(self.model.front_processor(task)),
            sleep=self.out.sleep(task),
        )

    def source(self, source: Source, index: int) -> Population:
        """Note where load comes from; emit the code that creates it if it is open."""
        task, entry = source.task, source.entry
        target = self.out.want(task, entry)
        nothing = Nominal(0.0, (), 0.0)
        if entry.arrivals is None:
            return Population(
                task.name, self.out.tasks[task.name], target, int(task.threads), -1, -1, nothing
            )
        label = task.name if task.is_reference else self.out.names.source(EntryRef(*source.key))
        rank = self.out.ranks.index(entry.priority)
        self.out.sites.append(SiteSpec(f"-> {label}", target, rank, index))
        start = self.out.emit(DELAY, b=self.out.distribution(entry.arrivals))
        self.out.emit(SEND, target, len(self.out.sites) - 1)
        self.out.emit(GOTO, start)
        owner = self.out.tasks[task.name] if task.is_reference else -1
        return Population(label, owner, target, 0, start, start, nothing, source.rate)

    def background(self, index: int, cycles: float) -> int:
        """Emit what works on a processor without being asked; return where it starts, or -1.

        Each slice of it waits for a core like any other work, but the next one comes nevertheless: operating
        systems do not let those starve who want little.

        Args:
            index: Of the processor.
            cycles: So many begin per second if none waits.
        """
        server = self.out.servers[index]
        if not server.background:
            return -1
        work = max(SLICE, server.background / (MAX_SLICES * cycles))
        start = self.out.emit(DELAY, b=self.out.distribution(Exponential(work / server.background)))
        self.out.emit(FORK, start + 3)
        self.out.emit(GOTO, start)
        self.out.emit(USE, index, self.out.distribution(Constant(work)), BY_WORKER)
        self.out.emit(END)
        return start

    def entrance(self, start: int, nominal: Nominal) -> int:
        """Emit how a client comes: at a random moment of the first cycle or warm-up, as in a measured load.

        If all came at once, clients whose work always takes equally long would meet again and again.
        """
        within = nominal.total if self.arrive_within is None else self.arrive_within
        first = self.out.emit(THINK, b=self.out.distribution(Uniform(0.0, within)))
        self.out.emit(THOUGHT)
        self.out.emit(GOTO, start)
        return first

    def check_capacity(self, populations: list[Population]) -> None:
        """Refuse open load that a processor can never serve."""
        for index, server in enumerate(self.out.servers):
            if server.copy > 0:
                continue  # as much comes to each copy
            load = server.copies * sum(p.rate * p.nominal.demand[index] for p in populations if p.is_open)
            offered = server.copies * server.cores * server.speed - server.background
            if load >= offered and load > 0:
                raise SimulationError(
                    f"open arrivals alone demand {load:.6g} core-seconds per second of processor "
                    f"{server.name!r}, which offers {offered:g}: queues would only grow",
                    where=f"processors[{server.name!r}]",
                    hint="lower the arrival rate, or add cores or speed",
                )

    def compile_entry(self, task: Task, entry: Entry) -> None:
        index = self.out.entries[task.name, entry.name]
        where = f"tasks[{task.name!r}].entries[{entry.name!r}]"
        client = task.is_reference and not task.is_open
        start = len(self.out.code)
        graph = self.lowered.graph(task.name, entry.name)
        held = held_by_front(task, graph)
        body = Body(self.out, task, graph, where, held, lambda: self.front(task, body, "reply"))
        if client:
            if task.think is not None and task.think.mean > 0:
                self.out.emit(THINK, b=self.out.distribution(task.think))
                self.out.emit(THOUGHT)
            self.out.wake(task)
            self.starts[task.name] = start
        else:
            self.front(task, body, "request")
            self.out.emit(ADMIT, ADMITS[entry.token])
            self.out.wake(task)
        body.emit()
        epilogue = len(self.out.code)
        if client:
            self.out.rest(task)
            self.out.emit(CYCLE)
        else:
            if not held:
                self.front(task, body, "reply")
            self.hand_on(task, entry)
            self.out.emit(RETURN)
        self.out.compiled[index] = replace(
            self.out.compiled[index],
            start=start,
            epilogue=epilogue,
            replies_elsewhere=not client and body.graph.replies_elsewhere,
        )

    def hand_on(self, task: Task, entry: Entry) -> None:
        """Emit where the reply turns into a request to another entry."""
        chances = onward(entry)
        if not chances:
            return
        first = len(self.out.code) + 1
        rest = 1 - math.fsum(f.probability for f in chances)
        odds = [f.probability for f in chances] + ([rest] if rest > 1e-12 else [])
        self.out.emit_choice(odds, range(first, first + len(odds)))
        place = self.out.names.beside(EntryRef(task.name, entry.name), HANDING_ON)
        for forward in chances:
            site = self.out.site(task, place, (forward.task, forward.entry))
            self.out.emit(FORWARD, self.out.sites[site].entry, site)

    def front(self, task: Task, body: Body, phase: str) -> None:
        """Emit what the front does with a request or its reply; timed, it is an activity of the entry."""
        if not has_front(task):
            return
        time: Distribution | None = getattr(task.front, phase)
        home = replace(task, processor=self.model.front_processor(task))
        number = UNTIMED
        if self.out.timed:
            number = len(self.out.activities)
            # Behind the clocks of the activities, which may still go on when the reply leaves.
            clock = len(body.timers) + len(body.graph.activities)
            self.out.timers = max(self.out.timers, clock + 1)
            names = self.out.names
            self.out.activities.append(ActivitySpec(names.activity(names.beside(body.ref, f"front.{phase}"))))
            self.out.emit(BEGIN, number, clock)
        self.out.emit(FRONT_TAKE)
        worker, core = (0.0, 0.0) if task.setup is None else task.setup.demands.get("front", (0.0, 0.0))
        # The two halves of the front share what is known of both together.
        self.out.spend(home, measured(time), number, BY_FRONT, (worker / 2, core / 2))
        self.out.emit(FRONT_GIVE)
        if number != UNTIMED:
            self.out.emit(FINISH, number, clock)
