"""Divide the activities of a task among its entries.

In lqnx all activity graphs of a task stand in one list; the graph of an entry is what can be reached from
the activity that is bound to it. Two entries that share an activity, or meet in a join, would be one
graph with two starts, which a model cannot express.
"""

from __future__ import annotations

import math

from mup.errors import did_you_mean
from mup.lqn.distributions import Distribution, Geometric
from mup.lqn.graph_rules import PROBABILITY_TOLERANCE
from mup.lqn.lqnx.elements import Element
from mup.lqn.lqnx.reading import Report
from mup.lqn.model import Connection, Precedence

__all__ = ["TaskGraph"]

ROUNDED = 1e-5
"""Probabilities that were printed with few digits may miss 1 by this much; they are scaled to sum to 1."""

_JOINS: dict[str, Connection] = {"pre": "sequence", "pre-OR": "or", "pre-AND": "and"}
_FORKS: dict[str, Connection] = {
    "post": "sequence",
    "post-OR": "or",
    "post-AND": "and",
    "post-LOOP": "loop",
}


class TaskGraph:
    """The activity graphs of one task.

    Attributes:
        starts: Entry: its first activity.
        replies: Entry: the activities behind which its reply leaves.
    """

    def __init__(self, task: Element, report: Report, where: str) -> None:
        self.report = report
        self.where = where
        parts = [p for block in task.all("task-activities") for p in block.children]
        self.elements: dict[str, Element] = {}
        self.starts: dict[str, str] = {}
        self.replies: dict[str, list[str]] = {}
        self.arcs: list[Precedence] = []
        self.entry_of: dict[str, str] = {}
        for part in parts:
            if part.tag == "activity":
                self._add_activity(part)
        for part in parts:
            if part.tag == "precedence":
                self._add_precedence(part)
            elif part.tag == "reply-entry":
                self._add_reply(part)
        self.leaving: dict[str, list[Precedence]] = {}
        for arc in self.arcs:
            for name in arc.pre:
                self.leaving.setdefault(name, []).append(arc)

    def _add_activity(self, element: Element) -> None:
        where = f"line {element.line}: activity {element.attributes.get('name', '')!r}"
        name = self.report.name(element, where)
        if not name:
            return
        if name in self.elements:
            self.report.problem("a second activity of the task has this name", where)
        self.elements[name] = element
        entry = element.attributes.get("bound-to-entry")
        if entry is None:
            return
        if entry in self.starts:
            self.report.problem(f"entry {entry!r} already starts with {self.starts[entry]!r}", where)
        self.starts[entry] = name

    def _names(self, side: Element) -> tuple[str, ...]:
        """Return the activities on one side of a precedence; unknown ones are a problem."""
        names = [self.report.name(a, f"line {a.line}: {side.tag}") for a in side.all("activity")]
        if not names:
            self.report.problem("needs at least one activity", f"line {side.line}: {side.tag}")
        if side.tag == "post-LOOP" and "end" in side.attributes:
            names.append(side.attributes["end"])
        for name in names:
            if name and name not in self.elements:
                self.report.problem(
                    f"no activity is named {name!r}; {did_you_mean(name, list(self.elements))}",
                    f"line {side.line}: {side.tag}",
                )
        return tuple(names)

    def _add_precedence(self, element: Element) -> None:
        before = [c for c in element.children if c.tag in _JOINS]
        behind = [c for c in element.children if c.tag in _FORKS]
        where = f"line {element.line}: precedence"
        if len(before) != 1 or len(behind) > 1:
            self.report.problem("has one <pre...> and at most one <post...>", where)
            return
        pre, join = self._names(before[0]), _JOINS[before[0].tag]
        if not behind:
            return  # the last activities of a graph may be listed without anything behind them
        post, fork = self._names(behind[0]), _FORKS[behind[0].tag]
        if (join == "sequence" and len(pre) > 1) or (fork == "sequence" and len(post) > 1):
            self.report.problem("<pre> and <post> hold one activity", where)
            return
        quorum = int(self.report.whole(before[0], "quorum", where, 0, low=0))
        if quorum > len(pre):
            self.report.problem(f"a quorum of {quorum} of {len(pre)} branches", f"{where}.quorum")
        arc = Precedence(
            pre=pre,
            post=post,
            join=join if len(pre) > 1 else "sequence",
            fork=fork if len(post) > 1 or fork == "loop" else "sequence",
            probabilities=self._probabilities(behind[0], where) if fork == "or" and len(post) > 1 else None,
            counts=self._counts(behind[0], where) if fork == "loop" else (),
            quorum=quorum if 0 < quorum < len(pre) else None,
        )
        self.arcs.append(arc)

    def _probabilities(self, side: Element, where: str) -> tuple[float, ...]:
        odds = tuple(self.report.number(a, "prob", where, 1.0) for a in side.all("activity"))
        total = math.fsum(odds)
        if abs(total - 1) > ROUNDED:
            self.report.problem(f"the probabilities sum to {total:.9g}, not to 1", f"{where}.prob")
        elif abs(total - 1) > PROBABILITY_TOLERANCE:
            self.report.note("probabilities that were rounded in the file were scaled to sum to 1")
            odds = tuple(p / total for p in odds)
        return odds

    def _counts(self, side: Element, where: str) -> tuple[Distribution | None, ...]:
        return tuple(Geometric(self.report.number(a, "count", where, 1.0)) for a in side.all("activity"))

    def _add_reply(self, element: Element) -> None:
        entry = self.report.name(element, f"line {element.line}: reply-entry")
        for part in element.all("reply-activity"):
            name = self.report.name(part, f"line {part.line}: reply-activity")
            if name and name not in self.elements:
                self.report.problem(
                    f"no activity is named {name!r}; {did_you_mean(name, list(self.elements))}",
                    f"line {part.line}: reply-activity",
                )
            self.replies.setdefault(entry, []).append(name)

    def of_entry(self, entry: str, where: str) -> tuple[str, tuple[Element, ...], tuple[Precedence, ...]]:
        """Return start, activities and precedences of an entry, in file order.

        Shared activities and joins with the graph of another entry are reported.
        """
        start = self.starts[entry]
        found: set[str] = set()
        stack = [start]
        while stack:
            name = stack.pop()
            if name in found or name not in self.elements:
                continue
            found.add(name)
            if name in self.entry_of:
                self.report.problem(
                    f"activity {name!r} also belongs to entry {self.entry_of[name]!r}: entries that share "
                    "activities, or meet in a join, are not supported (one request would wait for another)",
                    where,
                )
            self.entry_of[name] = entry
            for arc in self.leaving.get(name, ()):
                stack.extend(arc.post)
        for name in self.replies.get(entry, ()):
            if name in self.elements and name not in found:
                self.report.problem(f"the reply activity {name!r} is not part of its graph", where)
        arcs = tuple(a for a in self.arcs if not found.isdisjoint(a.pre))
        return start, tuple(e for n, e in self.elements.items() if n in found), arcs

    def report_unused(self, entries: list[str]) -> None:
        """Report what belongs to no entry of the task; call it when all graphs were read."""
        for entry in (*self.starts, *self.replies):
            if entry not in entries:
                self.report.problem(
                    f"the task has no entry {entry!r}; {did_you_mean(entry, entries)}", self.where
                )
        lost = [name for name in self.elements if name not in self.entry_of]
        if lost and not self.report.problems:
            self.report.problem(f"activities cannot be reached: {', '.join(lost)}", self.where)
