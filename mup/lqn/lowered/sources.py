"""Sources of the load of a model."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from mup.errors import SimulationError
from mup.lqn.lowered.requests import EntryKey
from mup.lqn.model import Entry, Model, Task

__all__ = ["Source", "check_sources", "clients_of", "is_source", "sources_of", "tasks_with_sources"]


@dataclass(frozen=True, slots=True)
class Source:
    """Clients of a reference task, or arrivals from outside: requests to an entry, or scenarios."""

    task: Task
    entry: Entry

    @property
    def is_open(self) -> bool:
        """Whether load arrives from outside, instead of clients that cycle."""
        return self.entry.arrivals is not None

    @property
    def rate(self) -> float:
        """Arrivals per second; 0 for clients."""
        return 0.0 if self.entry.arrivals is None else 1 / self.entry.arrivals.mean

    @property
    def key(self) -> EntryKey:
        """Task and entry."""
        return self.task.name, self.entry.name


def is_source(task: Task, entry: Entry) -> bool:
    """Tell whether load comes to an entry that nothing in the model calls."""
    return task.is_reference or entry.arrivals is not None


def sources_of(model: Model) -> tuple[Source, ...]:
    """Return everything load comes from, in order of the file."""
    return tuple(Source(t, e) for t in model.tasks for e in t.entries if is_source(t, e))


def tasks_with_sources(tasks: Iterable[Task]) -> list[str]:
    """Return the names of the tasks load comes to."""
    return [t.name for t in tasks if any(is_source(t, e) for e in t.entries)]


def clients_of(model: Model) -> float:
    """Return how many clients there are; infinite if requests come from outside, too."""
    sources = sources_of(model)
    if any(source.is_open for source in sources):
        return math.inf
    return math.fsum(source.task.threads * source.task.replicas for source in sources)


def check_sources(model: Model) -> tuple[Source, ...]:
    """Return everything load comes from.

    Raises:
        SimulationError: There is nothing.
    """
    sources = sources_of(model)
    if not sources:
        raise SimulationError(
            "the model has no reference task: nothing would ever happen",
            where=model.name,
            hint="add a task of role 'reference' with the clients that send requests, or arrivals",
        )
    return sources
