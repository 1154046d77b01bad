"""Lower a whole model: sources of load, the graphs they reach, and requests per cycle."""

from __future__ import annotations

from mup.errors import UncalibratedError
from mup.lqn.lowered.graph import Graph
from mup.lqn.lowered.refusals import refuse_unmeasured
from mup.lqn.lowered.requests import EntryKey, Node, is_made, onward, per_request, spread
from mup.lqn.lowered.sources import Source, sources_of
from mup.lqn.lowered.stations import has_front
from mup.lqn.model import Entry, Model, Task

__all__ = ["Lowered"]


class Lowered:
    """A model as engines read it; every graph is made once, when it is first asked for.

    Attributes:
        model: What this is the meaning of.
        sources: Where load comes from, in order of the file.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.sources = sources_of(model)
        self._tasks: dict[str, Task] = {task.name: task for task in model.tasks}
        self._entries: dict[EntryKey, Entry] = {(t.name, e.name): e for t in model.tasks for e in t.entries}
        self._graphs: dict[EntryKey, Graph] = {}
        self._sent: dict[Node, dict[Node, float]] = {}

    def graph(self, task: str, entry: str) -> Graph:
        """Return the graph of an entry."""
        key = task, entry
        if key not in self._graphs:
            self._graphs[key] = Graph(self._entries[key])
        return self._graphs[key]

    def target(self, task: str, entry: str) -> tuple[Task, Entry]:
        """Return what a call or forward names."""
        return self._tasks[task], self._entries[task, entry]

    def reached(self) -> set[EntryKey]:
        """Return the entries that load can get to."""
        found: set[EntryKey] = set()
        stack = [source.key for source in self.sources]
        while stack:
            key = stack.pop()
            if key in found:
                continue
            found.add(key)
            graph = self.graph(*key)
            for activity in graph.entry.activities:
                if activity.calls and activity.name in graph.reached:
                    stack.extend([(call.task, call.entry) for call in activity.calls if is_made(call)])
            stack.extend([(forward.task, forward.entry) for forward in onward(graph.entry)])
        return found

    def unmeasured(self) -> list[str]:
        """Return the paths of the numbers that load can get to and that were never measured."""
        reached = self.reached()
        found: list[str] = []
        for task in self.model.tasks:
            where = f"tasks[{task.name!r}]"
            entries = [entry for entry in task.entries if (task.name, entry.name) in reached]
            for entry in entries:
                found += self._unmeasured(
                    self.graph(task.name, entry.name), f"{where}.entries[{entry.name!r}]"
                )
            if entries and task.front is not None and has_front(task):
                times = {"request": task.front.request, "reply": task.front.reply}
                found += [f"{where}.front.{phase}" for phase, time in times.items() if time is None]
        return found

    @staticmethod
    def _unmeasured(graph: Graph, where: str) -> list[str]:
        found = []
        for activity in graph.entry.activities:
            if (activity.calibrated and not activity.calls) or activity.name not in graph.reached:
                continue
            missing = [f"calls[{k}].count" for k, call in enumerate(activity.calls) if call.count is None]
            if not activity.calibrated:
                times = {"demand": activity.demand, "delay": activity.delay}
                missing = [name for name, time in times.items() if time is None] + missing
            found += [f"{where}.activities[{activity.name!r}].{field}" for field in missing]
        return found + [f"{where}.{number.path}" for number in graph.unmeasured]

    def check_measured(self) -> None:
        """Refuse a model that lacks numbers.

        Raises:
            UncalibratedError: A number that load can get to was never measured; all of them are listed.
        """
        if all(map(_complete, self.model.tasks)):
            return  # as most models are, whatever load gets to
        missing = self.unmeasured()
        if missing:
            refuse_unmeasured(self.model, missing)

    def requests_per_cycle(self) -> dict[EntryKey, dict[EntryKey, float]]:
        """Return, per source of load, the mean number of requests to each entry that it causes.

        The source itself is included, with 1. Entries that are never reached are left out.

        Raises:
            UncalibratedError: A probability or count that can be reached was never measured.
            ModelError: Around a cycle with a send, every request causes at least one more on average.
        """
        rates: dict[EntryKey, dict[EntryKey, float]] = {}
        for source in self.sources:
            found: dict[EntryKey, float] = {}
            rates[source.key] = found
            for (task, name, _), rate in self.requests_from(source).items():
                found[task, name] = found.get((task, name), 0.0) + rate
        return rates

    def requests_from(self, source: Source) -> dict[Node, float]:
        """Return the mean number of requests that one cycle, or arrival, of a source causes.

        Raises:
            UncalibratedError: A probability or count that can be reached was never measured.
            ModelError: Around a cycle with a send, every request causes at least one more on average.
        """
        root = (*source.key, False)
        # Invariant: what is in `stack` is in `reached`, and the other way round, each once.
        reached = {root: None}  # in order of discovery
        stack = [root]
        for key in stack:  # grows on the way
            if key not in self._sent:
                try:
                    self._sent[key] = per_request(self.graph(*key[:2]), waited=key[2])
                except UncalibratedError as error:
                    error.where = f"tasks[{key[0]!r}].{error.where}"
                    raise
            stack += [target for target in self._sent[key] if target not in reached]
            reached.update(dict.fromkeys(self._sent[key]))
        return spread(root, {key: self._sent[key] for key in reached})


def _complete(task: Task) -> bool:
    """Tell whether a task lacks no number at all."""
    if task.front is not None and (task.front.request is None or task.front.reply is None):
        return False
    for entry in task.entries:
        for activity in entry.activities:
            if activity.demand is None or activity.delay is None:
                return False
            if activity.calls and any(call.count is None for call in activity.calls):
                return False
        for precedence in entry.precedences:
            if precedence.fork == "or" and precedence.probabilities is None:
                return False
            if None in precedence.counts:
                return False
    return True
