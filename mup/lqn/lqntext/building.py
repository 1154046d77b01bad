"""Build the elements of an lqnx file from an LQNS text model.

A text names its processors, tasks, entries and activities in sections of their own; in lqnx they stand
inside each other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from mup.errors import ModelError, did_you_mean
from mup.lqn.lqntext.tokens import FORMAT_HINT, Token, Tokens
from mup.lqn.lqnx.elements import Element
from mup.lqn.lqnx.reading import join_problems

__all__ = ["PHASES", "Draft", "Graph"]

PHASES = 3

_WORK = ("host-demand-mean", "think-time")


@dataclass(slots=True)
class _Entry:
    """An entry, and its phases by number."""

    element: Element
    phases: dict[int, Element] = field(default_factory=dict)

    def phase(self, number: int, line: int) -> Element:
        """Return the element of a phase; named as LQNS names it when it writes lqnx."""
        if number not in self.phases:
            name = f"{self.element.attributes['name']}_{number}"
            self.phases[number] = Element("activity", {"name": name, "phase": str(number)}, line=line)
        return self.phases[number]

    def finish(self, *, has_graph: bool) -> None:
        """Put the phases into the entry; those in which nothing happens are only there to count."""
        for phase in self.phases.values():
            phase.children = [c for c in phase.children if not _is_zero(c.attributes.get("calls-mean", "1"))]
        kept = {n: p for n, p in self.phases.items() if _has_work(p)}
        if not kept and not has_graph and self.phases:
            kept = {1: self.phase(1, self.element.line)}
        if kept:
            phases = [kept[number] for number in sorted(kept)]
            self.element.children.append(Element("entry-phase-activities", {}, phases, self.element.line))


def _is_zero(text: str) -> bool:
    return float(text) == 0


def _has_work(phase: Element) -> bool:
    demands = any(not _is_zero(phase.attributes.get(name, "0")) for name in _WORK)
    return demands or any("calls-mean" in c.attributes for c in phase.children)


@dataclass(slots=True)
class Graph:
    """The activities of a task.

    Attributes:
        parts: Precedences and replies, in file order.
    """

    activities: dict[str, Element] = field(default_factory=dict)
    parts: list[Element] = field(default_factory=list)

    def activity(self, name: Token, line: int) -> Element:
        """Return the element of an activity."""
        found = self.activities.get(name.text)
        if found is None:
            found = self.activities[name.text] = Element("activity", {"name": name.text}, line=line)
        return found


class Draft:
    """Collects what a text says, and which names in it stand for nothing."""

    def __init__(self, tokens: Tokens) -> None:
        self._where = tokens.where
        self._problems: list[ModelError] = []
        self._processors: dict[str, Element] = {}
        self._groups: dict[str, Element] = {}
        self._tasks: dict[str, Element] = {}
        self._entries: dict[str, _Entry] = {}
        self._owners: dict[str, str] = {}
        self._graphs: dict[str, Graph] = {}
        self._starts: dict[str, dict[str, Token]] = {}

    def _problem(self, message: str, line: int) -> None:
        self._problems.append(ModelError(message, where=f"line {line}", hint=FORMAT_HINT))

    def _unknown(self, what: str, name: Token, known: Iterable[str]) -> None:
        self._problem(f"no {what} is named {name.text!r}; {did_you_mean(name.text, list(known))}", name.line)

    def processor(self, name: Token, line: int) -> Element:
        """Add a processor."""
        if name.text in self._processors:
            self._problem(f"a second processor is named {name.text!r}", line)
        element = Element("processor", {"name": name.text}, line=line)
        self._processors[name.text] = element
        return element

    def group(self, name: Token, share: str, processor: Token, line: int) -> None:
        """Add a group of tasks of a processor."""
        if processor.text not in self._processors:
            self._unknown("processor", processor, self._processors)
            return
        group = Element("group", {"name": name.text, "share": share}, line=line)
        self._groups[name.text] = group
        self._processors[processor.text].children.append(group)

    def task(
        self,
        name: Token,
        attributes: dict[str, str],
        entries: list[Token],
        processor: Token,
        group: Token | None,
        line: int,
    ) -> None:
        """Add a task with the names of its entries."""
        if name.text in self._tasks:
            self._problem(f"a second task is named {name.text!r}", line)
        element = Element("task", {"name": name.text, **attributes}, line=line)
        self._tasks[name.text] = element
        home = self._processors.get(processor.text)
        if home is None:
            self._unknown("processor", processor, self._processors)
        if group is not None:
            home = self._groups.get(group.text)
            if home is None:
                self._unknown("group", group, self._groups)
        if home is not None:
            home.children.append(element)
        for entry in entries:
            if entry.text in self._entries:
                self._problem(f"a second entry is named {entry.text!r}", entry.line)
                continue
            made = Element("entry", {"name": entry.text}, line=entry.line)
            element.children.append(made)
            self._entries[entry.text] = _Entry(made)
            self._owners[entry.text] = name.text

    def fan(self, kind: Token, source: Token, target: Token, value: str) -> None:
        """Add how many replicas of a task call one replica of another (I), or are called by one (O)."""
        inward = kind.text in "Ii"
        task, other = (target, source) if inward else (source, target)
        if task.text not in self._tasks:
            self._unknown("task", task, self._tasks)
            return
        tag, attribute = ("fan-in", "source") if inward else ("fan-out", "dest")
        attributes = {attribute: other.text, "value": value}
        children = self._tasks[task.text].children
        known = [c.attributes["value"] for c in children if c.attributes.get(attribute) == other.text]
        if any(v != value for v in known):
            self._problem(f"a second {tag} of {task.text!r} and {other.text!r} is {value}", kind.line)
        children.append(Element(tag, attributes, line=kind.line))

    def owner(self, entry: Token) -> Token | None:
        """Return the name of the task of an entry; None, and a problem, if no task has it."""
        task = self._owners.get(entry.text)
        if task is None:
            self._unknown("entry", entry, self._entries)
            return None
        return replace(entry, text=task)

    def entry(self, name: Token) -> _Entry:
        """Return an entry of a task; one that no task has is a problem, and is forgotten."""
        if name.text not in self._entries:
            self._unknown("entry", name, self._entries)
            return _Entry(Element("entry", {"name": name.text}, line=name.line))
        return self._entries[name.text]

    def start(self, entry: Token, activity: Token) -> None:
        """Say which activity an entry begins with."""
        owner = self._owners.get(entry.text)
        if owner is not None:
            self._starts.setdefault(owner, {})[entry.text] = activity

    def graph(self, task: Token) -> Graph:
        """Return the activities of a task."""
        if task.text not in self._tasks:
            self._unknown("task", task, self._tasks)
            return Graph()
        return self._graphs.setdefault(task.text, Graph())

    def element(self) -> Element:
        """Return the element of the whole file.

        Raises:
            ModelError: Names stand for nothing; all of them are listed.
        """
        for task, starts in self._starts.items():
            self._bind(starts, self._graphs.setdefault(task, Graph()).activities)
        if self._problems:
            raise join_problems(self._problems, self._where)
        for name, entry in self._entries.items():
            entry.finish(has_graph=name in self._starts.get(self._owners[name], {}))
        for name, graph in self._graphs.items():
            task_element = self._tasks[name]
            parts = [*graph.activities.values(), *graph.parts]
            task_element.children.append(Element("task-activities", {}, parts, task_element.line))
        return Element("lqn-model", {}, list(self._processors.values()))

    def _bind(self, starts: dict[str, Token], activities: dict[str, Element]) -> None:
        """Mark the first activity of every entry of a task."""
        for entry, name in starts.items():
            first = activities.get(name.text)
            if first is None:
                self._unknown("activity", name, activities)
            elif "bound-to-entry" in first.attributes:
                other = first.attributes["bound-to-entry"]
                self._problem(f"activity {name.text!r} already begins entry {other!r}", name.line)
            else:
                first.attributes["bound-to-entry"] = entry
