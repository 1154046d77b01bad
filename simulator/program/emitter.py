"""Output of the compiler: code, and the tables it points into."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from mup.lqn.distributions import Constant, Distribution
from mup.lqn.lowered import Lowered, targets
from mup.lqn.model import Entry, Task
from mup.lqn.refs import ActivityRef, CallRef, EntryRef, Names
from simulator.program.instructions import (
    BY_FRONT,
    BY_REPLICA,
    BY_WORKER,
    CHOICE,
    DELAY,
    ENDS,
    REST,
    SERVED,
    SETUP_STEP,
    THINK,
    THOUGHT,
    USE,
    WAKE,
    Instruction,
)
from simulator.program.servers import servers_of
from simulator.program.tables import (
    UNTIMED,
    ActivitySpec,
    Choice,
    EntryCode,
    JoinSpec,
    SetupSpec,
    SiteSpec,
    SleepSpec,
)

__all__ = ["Emitter", "Pair", "cumulative"]

Pair = tuple[float, float]
"""Seconds of set-up: of the worker, and of the core."""


RESUMED: Final = Constant(1e-12)
"""What going on takes: so little that it changes nothing but who waits."""


class Emitter:
    """The code so far, with its tables, and what is still wanted or missing.

    Attributes:
        names: Of the elements, as results have them.
        timed: Whether every execution of every activity is timed.
        ranks: All priorities, the most urgent first: a rank is an index.
        compiled: What is known of the entries that load reaches, by index.
        wanted: Those of them whose code is still to be emitted.
        timers, registers, slots: How many a request needs.
    """

    def __init__(self, lowered: Lowered, *, activities: bool) -> None:
        self.lowered = lowered
        self.model = model = lowered.model
        self.names = Names(model.tasks)
        self.timed = activities
        self.code: list[Instruction] = []
        self.distributions: list[Distribution] = []
        self._known_distributions: dict[Distribution, int] = {}
        self.choices: list[Choice] = []
        self.joins: list[JoinSpec] = []
        self.sites: list[SiteSpec] = []
        self.activities: list[ActivitySpec] = []
        self.timers = self.registers = self.slots = 0
        self.ranks = sorted({t.priority for t in model.tasks} | self._request_priorities(), reverse=True)
        self.servers = servers_of(model)
        self.server_index = {s.name: i for i, s in enumerate(self.servers) if s.copy == 0}
        self.tasks = {t.name: i for i, t in enumerate(model.tasks)}
        self.entries = {
            (t.name, e.name): i for i, (t, e) in enumerate((t, e) for t in model.tasks for e in t.entries)
        }
        self.sleeps = [
            SleepSpec(
                self.tasks[t.name],
                t.setup.gaps,
                t.setup.worker,
                t.setup.core,
                t.setup.by_thread and t.threads < math.inf and not t.is_reference,
            )
            for t in model.tasks
            if t.setup is not None
        ]
        self.sleep_index = {s.task: i for i, s in enumerate(self.sleeps)}
        self.setups: list[SetupSpec] = []
        self.compiled: dict[int, EntryCode] = {}
        self.wanted: list[tuple[Task, Entry]] = []

    def want(self, task: Task, entry: Entry) -> int:
        """Note that an entry is reachable; return its index."""
        index = self.entries[task.name, entry.name]
        if index not in self.compiled:
            label = self.names.entries[EntryRef(task.name, entry.name)]
            ends = ENDS[entry.token]
            self.compiled[index] = EntryCode(self.tasks[task.name], label, 0, 0, False, entry.waits, ends)
            self.wanted.append((task, entry))
        return index

    def site(self, caller: Task, place: ActivityRef, target: tuple[str, str]) -> int:
        """Add a place that requests come from; return its index."""
        task, entry = self.lowered.target(*target)
        rank = self.ranks.index(caller.priority + entry.priority)
        name = self.names.call(CallRef(place, EntryRef(*target)))
        self.sites.append(SiteSpec(name, self.want(task, entry), rank, -1))
        return len(self.sites) - 1

    def emit(self, operation: int, a: int = 0, b: int = 0, c: int = 0) -> int:
        """Append an instruction; return its address."""
        self.code.append((operation, a, b, c))
        return len(self.code) - 1

    def emit_choice(self, probabilities: Iterable[float], addresses: Iterable[int]) -> int:
        """Append a CHOICE between known addresses; return its address."""
        self.choices.append(Choice(cumulative(probabilities), tuple(addresses)))
        return self.emit(CHOICE, len(self.choices) - 1)

    def distribution(self, distribution: Distribution) -> int:
        """Return the index of a distribution; equal ones share it."""
        index = self._known_distributions.setdefault(distribution, len(self.distributions))
        if index == len(self.distributions):
            self.distributions.append(distribution)
        return index

    def sleep(self, task: Task) -> int:
        """Return the index of what the work of a task costs after sleep; -1 if that does not matter."""
        return self.sleep_index.get(self.tasks[task.name], -1)

    def wake(self, task: Task) -> None:
        """Emit that the worker of a request begins, if it matters how long it slept."""
        sleep = self.sleep(task)
        if sleep >= 0:
            server = -1 if task.processor is None else self.server_index.get(task.processor, -1)
            shared = server >= 0 and self.servers[server].copies > 1
            self.emit(WAKE, sleep, server, BY_REPLICA if shared else BY_WORKER)

    def rest(self, task: Task) -> None:
        """Emit that a client has nothing to do, if it matters for how long."""
        if self.sleep(task) >= 0:
            self.emit(REST)

    def _setup(self, task: Task, seconds: Pair, server: int, *, pause: bool, by_front: bool = False) -> int:
        """Return 1 more than the index of what is added after sleep; 0 if nothing is."""
        if not any(seconds):
            return 0
        self.setups.append(SetupSpec(self.sleep(task), server, pause, by_front, *seconds))
        return len(self.setups)

    def spend(
        self,
        task: Task,
        demand: Distribution,
        purpose: int,
        by: int = BY_WORKER,
        setup: Pair = (0.0, 0.0),
    ) -> None:
        """Emit processor time; where there is a core for every thread, it is a delay.

        Args:
            task: Whose.
            demand: How much.
            purpose: The timed activity it belongs to, or UNTIMED.
            by: BY_WORKER or BY_FRONT.
            setup: Seconds on top where the worker, and where the core is fully cold.
        """
        by_front = by == BY_FRONT
        if demand.mean > 0 or any(setup):
            if task.processor in self.server_index:
                server = self.server_index[task.processor]
                if self.servers[server].copies > 1:
                    by = BY_REPLICA  # never a front: those are on no part
                more = self._setup(task, setup, server, pause=False, by_front=by_front)
                self.emit(USE, server, self.distribution(demand), by + more * SETUP_STEP)
                if purpose >= 0:
                    self.emit(SERVED, purpose, server)
            else:
                speed = 1.0 if task.processor is None else self.model.processor(task.processor).speed
                seconds = (setup[0] / speed, setup[1] / speed)
                more = self._setup(task, seconds, -1, pause=False, by_front=by_front)
                time = demand if speed == 1.0 else demand.scaled(1 / speed)
                self.emit(DELAY, b=self.distribution(time), c=more)

    def pause(self, task: Task, delay: Distribution, *, think: bool, setup: Pair = (0.0, 0.0)) -> None:
        """Emit a delay, or think time.

        Args:
            task: Whose.
            delay: How long.
            think: It is think time.
            setup: Seconds on top where the worker, and where the core is fully cold.
        """
        if think and delay.mean > 0:
            client = not task.is_open
            if client:
                self.rest(task)
            self.emit(THINK, b=self.distribution(delay))
            self.emit(THOUGHT)
            if client:
                self.wake(task)
        elif delay.mean > 0 or any(setup):
            self.emit(DELAY, b=self.distribution(delay), c=self._setup(task, setup, -1, pause=True))

    def resume(self, task: Task) -> None:
        """Emit that an event loop goes on with what has slept, once nothing else works on it."""
        part = None if task.processor is None else self.model.processor(task.processor)
        if part is not None and part.is_loop:
            self.spend(task, RESUMED, UNTIMED)

    def _request_priorities(self) -> set[int]:
        """Return the priority of every request that can be sent (task of the caller plus entry)."""
        found = {e.priority for t in self.model.tasks for e in t.entries}
        # Of a caller without a priority of its own they are those of the entries.
        for task in (t for t in self.model.tasks if t.priority != 0):
            for entry in task.entries:
                callees = (self.lowered.target(*target)[1] for target in targets(entry))
                found.update(task.priority + target.priority for target in callees)
        return found


def cumulative(probabilities: Iterable[float]) -> tuple[float, ...]:
    """Return the sums of the first 1, 2, ... probabilities, the last of them exactly 1."""
    sums: list[float] = []
    total = 0.0
    for chance in probabilities:
        total += chance
        sums.append(total)
    sums[-1] = 1.0  # rounding must not leave a draw without a branch
    return tuple(sums)
