"""Where does a compiler put the code, and the tables it points into?"""

from __future__ import annotations

from collections.abc import Iterable

from mup.lqn.distributions import Distribution
from mup.lqn.lowered import Lowered, targets
from mup.lqn.model import Entry, Task
from mup.lqn.refs import ActivityRef, CallRef, EntryRef, Names
from simulator.program.instructions import (
    BY_REPLICA,
    BY_WORKER,
    CHOICE,
    DELAY,
    ENDS,
    SERVED,
    THINK,
    THOUGHT,
    USE,
    Instruction,
)
from simulator.program.servers import servers_of
from simulator.program.tables import ActivitySpec, Choice, EntryCode, JoinSpec, SiteSpec

__all__ = ["Emitter", "cumulative"]


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

    def spend(self, task: Task, demand: Distribution, purpose: int, by: int = BY_WORKER) -> None:
        """Emit processor time; where there is a core for every thread, it is a delay.

        Args:
            task: Whose.
            demand: How much.
            purpose: The timed activity it belongs to, or UNTIMED.
            by: BY_WORKER or BY_FRONT.
        """
        if demand.mean > 0:
            if task.processor in self.server_index:
                server = self.server_index[task.processor]
                if self.servers[server].copies > 1:
                    by = BY_REPLICA  # never a front: those are on no part
                self.emit(USE, server, self.distribution(demand), by)
                if purpose >= 0:
                    self.emit(SERVED, purpose, server)
            else:
                speed = 1.0 if task.processor is None else self.model.processor(task.processor).speed
                self.emit(DELAY, b=self.distribution(demand if speed == 1.0 else demand.scaled(1 / speed)))

    def pause(self, delay: Distribution, *, think: bool) -> None:
        """Emit a delay, or think time."""
        if delay.mean > 0:
            self.emit(THINK if think else DELAY, b=self.distribution(delay))
            if think:
                self.emit(THOUGHT)

    def _request_priorities(self) -> set[int]:
        """Return the priority of every request that can be sent (task of the caller plus entry)."""
        found = {e.priority for t in self.model.tasks for e in t.entries}
        # Of a caller without a priority of its own they are those of the entries.
        for task in (t for t in self.model.tasks if t.priority != 0):
            for entry in task.entries:
                asked = (self.lowered.target(*target)[1] for target in targets(entry))
                found.update(task.priority + target.priority for target in asked)
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
