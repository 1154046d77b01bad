"""Write the work of one entry as phases or as an activity graph."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise

from mup.lqn.distributions import Constant, Distribution, Exponential, Geometric, with_scv
from mup.lqn.graph_rules import graph_problems
from mup.lqn.lqnx.elements import Element
from mup.lqn.lqnx.flows import flow_ends, has_unjoined_branches
from mup.lqn.lqnx.losses import Losses, free_name, number_text
from mup.lqn.lqnx.shapes import arrival_rate
from mup.lqn.model import ONCE, Activity, Call, Entry, Front, Precedence, Task

__all__ = ["EntryWriter"]

PHASES = 3

_TOKENS = {
    "acquire": ("semaphore", "wait"),
    "release": ("semaphore", "signal"),
    "read-lock": ("rwlock", "r-lock"),
    "read-unlock": ("rwlock", "r-unlock"),
    "write-lock": ("rwlock", "w-lock"),
    "write-unlock": ("rwlock", "w-unlock"),
}
"""Attribute and its value."""
_JOINS = {"sequence": "pre", "or": "pre-OR", "and": "pre-AND", "loop": ""}
_FORKS = {"sequence": "post", "or": "post-OR", "and": "post-AND", "loop": "post-LOOP"}
_NOTHING = Constant(0.0)

Label = dict[tuple[str, str], str]
"""Task and entry: the name of the entry in the file."""


@dataclass(slots=True)
class _Part:
    """An activity as lqnx has it: its calls, if any, are interleaved with its demand.

    Attributes:
        of: The activity of the model it comes from, "" if it was added.
        name: In the file.
    """

    of: str
    name: str
    demand: Distribution = _NOTHING
    think: float = 0.0
    calls: tuple[Call, ...] = ()
    replies: bool = False


@dataclass(slots=True)
class _Shape:
    """The parts of an entry and the arcs between them, by their names in the file."""

    start: str
    parts: list[_Part] = field(default_factory=list)
    arcs: list[Precedence] = field(default_factory=list)

    def chain(self) -> list[_Part]:
        """Return all parts in order if they are a chain without forks and joins, else nothing."""
        if any(arc.fork != "sequence" or len(arc.pre) > 1 for arc in self.arcs):
            return []
        following = {arc.pre[0]: arc.post[0] for arc in self.arcs}
        by_name = {part.name: part for part in self.parts}
        name: str | None = self.start
        found = []
        while name is not None:
            found.append(by_name[name])
            name = following.get(name)
        return found


class EntryWriter:
    """Writes the entries of one task.

    Args:
        task: The task.
        scheduling: Its scheduling in the file, which says how demands are distributed.
        losses: Where everything goes that cannot be said.
        labels: The names of all entries in the file.
        answered: The entries whose reply is waited for.
    """

    def __init__(
        self, task: Task, scheduling: str, losses: Losses, labels: Label, *, answered: set[tuple[str, str]]
    ) -> None:
        self.task = task
        self.scheduling = scheduling
        self.losses = losses
        self.labels = labels
        self.answered = answered
        self.taken: set[str] = set()

    def write(self, element: Element) -> None:
        """Add all entries, and their activity graphs, to the element of the task."""
        graphs = Element("task-activities")
        arcs: list[Element] = []
        replies: list[Element] = []
        for entry in self.task.entries:
            where = f"tasks[{self.task.name!r}].entries[{entry.name!r}]"
            child = self.entry(entry, where)
            element.children.append(child)
            shape = self.shape(entry, where)
            chain = shape.chain()
            if 0 < len(chain) <= PHASES and self.replies_behind_first(chain):
                child.attributes["type"] = "PH1PH2"
                phases = child.add("entry-phase-activities")
                for number, part in enumerate(chain, 1):
                    phases.children.append(self.part(part, where, phase=str(number)))
                continue
            child.attributes["type"] = "NONE"
            self.unique_names(entry, shape)
            for part in shape.parts:
                bound = {"bound-to-entry": child.attributes["name"]} if part.name == shape.start else {}
                graphs.children.append(self.part(part, where, **bound))
            arcs += [self.precedence(arc, entry, shape, where) for arc in shape.arcs]
            names = [part.name for part in shape.parts if part.replies]
            if names:
                reply = Element("reply-entry", {"name": child.attributes["name"]})
                for name in names:
                    reply.add("reply-activity", name=name)
                replies.append(reply)
        graphs.children += arcs + replies
        if graphs.children:
            element.children.append(graphs)

    def replies_behind_first(self, chain: list[_Part]) -> bool:
        """Return True if a chain means the same as phases."""
        if self.task.is_reference:
            return True
        replying = [part.replies for part in chain]
        return (len(chain) == 1) if not any(replying) else replying[0]

    def entry(self, entry: Entry, where: str) -> Element:
        """Return the element of an entry without its work."""
        losses = self.losses
        element = Element("entry", {"name": self.labels[self.task.name, entry.name]})
        if entry.priority:
            element.attributes["priority"] = str(entry.priority)
        if entry.token:
            attribute, value = _TOKENS[entry.token]
            element.attributes[attribute] = value
        if entry.arrivals is not None:
            interval = Exponential(losses.exponential(entry.arrivals, f"{where}.arrivals"))
            element.attributes["open-arrival-rate"] = number_text(arrival_rate(interval))
        for forward in entry.forwards:
            target = self.labels[forward.task, forward.entry]
            element.add("forwarding", dest=target, prob=number_text(forward.probability))
        if entry.paths or entry.fingerprint:
            losses.note("left out: execution paths and fingerprints of entries")
        if any(a.kind != "local" or a.line for a in entry.activities):
            losses.note("left out: kinds and source lines of activities (for display)")
        return element

    # From activities to parts.

    def shape(self, entry: Entry, where: str) -> _Shape:
        """Return the work of an entry as lqnx can say it."""
        first: dict[str, str] = {}
        last: dict[str, str] = {}
        parts: list[_Part] = []
        arcs: list[Precedence] = []
        names = {a.name for a in entry.activities}
        for activity in entry.activities:
            own = self.parts(entry, activity, names, f"{where}.activities[{activity.name!r}]")
            own[-1].replies = activity.replies and not self.task.is_reference
            parts += own
            arcs += [Precedence(pre=(a.name,), post=(b.name,)) for a, b in pairwise(own)]
            first[activity.name], last[activity.name] = own[0].name, own[-1].name
        for arc in entry.precedences:
            pre, post = tuple(last[n] for n in arc.pre), tuple(first[n] for n in arc.post)
            arcs.append(replace(arc, pre=pre, post=post))
        shape = _Shape(first[entry.start], parts, arcs)
        unjoined = has_unjoined_branches(entry)
        if unjoined and not entry.waits:
            self.losses.nearly(
                "a branch that may outlive the flow, whose thread is free then",
                "the thread is held until all branches have ended",
                where,
            )
        if self.task.front is not None:
            self.add_front(self.task.front, entry, shape, where)
        marked = any(a.replies for a in entry.activities)
        answered = (self.task.name, entry.name) in self.answered
        if answered and not marked and len(shape.chain()) != 1:
            self.mark_ends(entry, shape, last, where)
        return shape

    def mark_ends(self, entry: Entry, shape: _Shape, last: dict[str, str], where: str) -> None:
        """Let the reply leave at the end of the flow; behind a loop an activity is added for that."""
        ends, before_loops = flow_ends(entry)
        marked = replace(
            entry, activities=tuple(replace(a, replies=a.name in ends) for a in entry.activities)
        )
        if any(graph_problems(marked, where)):
            self.losses.problem("its reply leaves at an end that is also one of an auxiliary branch", where)
        replying = {last[name] for name in ends}
        before = {last[name] for name in before_loops}
        taken = {part.name for part in shape.parts}
        for index, arc in enumerate(shape.arcs):
            if arc.fork == "loop" and arc.continuation is None and before & set(arc.pre):
                end = _Part("", free_name(f"{arc.pre[0]}_end", taken), replies=True)
                taken.add(end.name)
                shape.parts.append(end)
                shape.arcs[index] = replace(arc, post=(*arc.post, end.name))
        for part in shape.parts:
            part.replies = part.replies or part.name in replying

    def add_front(self, front: Front, entry: Entry, shape: _Shape, where: str) -> None:
        """Let the worker do the framework's work, before its own."""
        place, spot = (self.task.name, entry.name, entry.start), f"tasks[{self.task.name!r}].front"
        times = (
            self.losses.measured(front.request, place, f"{spot}.request", _NOTHING),
            self.losses.measured(front.reply, place, f"{spot}.reply", _NOTHING),
        )
        mean, variance = sum(t.mean for t in times), sum(t.variance for t in times)
        if mean == 0:
            return
        self.losses.nearly(
            "framework work outside the worker", "the worker does it first", f"{where} with {spot}"
        )
        name = free_name("front", {part.name for part in shape.parts})
        shape.parts.insert(0, _Part("", name, with_scv(mean, variance / mean**2)))
        shape.arcs.insert(0, Precedence(pre=(name,), post=(shape.start,)))
        shape.start = name

    def parts(self, entry: Entry, activity: Activity, taken: set[str], where: str) -> list[_Part]:
        """Return one part with the work of an activity, and more for the calls behind it."""
        losses, place = self.losses, (self.task.name, entry.name, activity.name)
        demand = losses.measured(activity.demand, place, f"{where}.demand", _NOTHING)
        delay = losses.measured(activity.delay, place, f"{where}.delay", _NOTHING)
        think = losses.exponential(delay, f"{where}.delay") if delay.mean > 0 else 0.0
        work = _Part(activity.name, activity.name, demand, think)
        calls = [
            self.call(call, place, f"{where}.calls[{index}]") for index, call in enumerate(activity.calls)
        ]
        calls = [c for c in calls if c.count is not None and c.count.mean > 0]
        if activity.interleaved:
            work.calls = tuple(calls)
            return [work]
        groups = _groups(calls)
        result = [work]
        if groups and demand.mean == 0:
            work.calls = groups.pop(0)
        for number, group in enumerate(groups, 1):
            name = free_name(f"{activity.name}_call{number}", taken)
            taken.add(name)
            result.append(_Part(activity.name, name, calls=group))
        return result

    def call(self, call: Call, place: tuple[str, str, str], where: str) -> Call:
        """Return a call as lqnx can make it."""
        losses = self.losses
        kind = call.kind
        if kind == "releasing":
            losses.nearly("a call that gives its thread back", "the thread waits", f"{where}.kind")
            kind = "synchronous"
        count = losses.measured(call.count, place, f"{where}.count", ONCE)
        if not isinstance(count, Constant | Geometric):
            losses.nearly(f"a count that is {count.family}", "geometric with its mean", f"{where}.count")
            count = Geometric(count.mean)
        return replace(call, kind=kind, count=count)

    def unique_names(self, entry: Entry, shape: _Shape) -> None:
        """Rename the parts of a graph whose names another graph of the task has."""
        renamed: dict[str, str] = {}
        own = {part.name for part in shape.parts}
        for part in shape.parts:
            if part.name in self.taken:
                label = self.labels[self.task.name, entry.name]
                renamed[part.name] = free_name(f"{label}:{part.name}", self.taken | own)
                self.losses.note(
                    f"activity {part.name!r} of entry {label!r} is called {renamed[part.name]!r}: the names "
                    "are unique in a task"
                )
                part.name = renamed[part.name]
            self.taken.add(part.name)
        shape.start = renamed.get(shape.start, shape.start)
        shape.arcs = [
            replace(
                arc,
                pre=tuple(renamed.get(n, n) for n in arc.pre),
                post=tuple(renamed.get(n, n) for n in arc.post),
            )
            for arc in shape.arcs
        ]

    # From parts to elements.

    def part(self, part: _Part, where: str, **attributes: str) -> Element:
        """Return the element of one activity or phase."""
        losses = self.losses
        spot = f"{where}.activities[{part.of or part.name!r}]"
        element = Element("activity", {"name": part.name, **attributes})
        mean, scv = losses.moments(part.demand, self.scheduling, f"{spot}.demand")
        element.attributes["host-demand-mean"] = number_text(mean)
        if mean > 0 and scv != 1:
            element.attributes["host-demand-cvsq"] = number_text(scv)
        if part.think:
            element.attributes["think-time"] = number_text(part.think)
        if part.calls and all(isinstance(c.count, Constant) for c in part.calls):
            element.attributes["call-order"] = "DETERMINISTIC"
        for call in part.calls:
            tag = "synch-call" if call.kind == "synchronous" else "asynch-call"
            mean = 0.0 if call.count is None else call.count.mean
            element.children.append(
                Element(tag, {"dest": self.labels[call.task, call.entry], "calls-mean": number_text(mean)})
            )
        return element

    def precedence(self, arc: Precedence, entry: Entry, shape: _Shape, where: str) -> Element:
        """Return the element of an arc between parts."""
        losses = self.losses
        of = {part.name: part.of for part in shape.parts}
        place = (self.task.name, entry.name, of[arc.pre[0]])
        spot = f"{where}.precedences behind {of[arc.pre[0]]!r}"
        element = Element("precedence")
        pre = element.add("pre" if len(arc.pre) == 1 else _JOINS[arc.join])
        if arc.quorum is not None:
            pre.attributes["quorum"] = str(arc.quorum)
        for name in arc.pre:
            pre.add("activity", name=name)
        post = element.add("post" if len(arc.post) == 1 and arc.fork != "loop" else _FORKS[arc.fork])
        if post.tag == "post-OR":
            odds = arc.probabilities
            if odds is None:
                odds = (1 / len(arc.post),) * len(arc.post)
                if place in losses.reached:
                    losses.problem("the probabilities were never measured", spot)
                else:
                    losses.nearly("the probabilities were never measured, nor reached", "equal ones", spot)
            for name, chance in zip(arc.post, odds, strict=True):
                post.add("activity", name=name, prob=number_text(chance))
        elif post.tag == "post-LOOP":
            for name, count in zip(arc.bodies, arc.counts, strict=True):
                known = losses.measured(count, place, f"{spot}.counts", Constant(0))
                if not isinstance(known, Geometric) and known.mean > 0:
                    losses.nearly(
                        f"a loop whose count is {known.family}", "geometric with its mean", f"{spot}.counts"
                    )
                post.add("activity", name=name, count=number_text(known.mean))
            if arc.continuation is not None:
                post.attributes["end"] = arc.continuation
        else:
            for name in arc.post:
                post.add("activity", name=name)
        return element


def _groups(calls: list[Call]) -> list[tuple[Call, ...]]:
    """Return calls in groups that lqnx makes in order: those of a fixed number together, others alone."""
    groups: list[tuple[Call, ...]] = []
    for call in calls:
        fixed = isinstance(call.count, Constant)
        if groups and fixed and isinstance(groups[-1][-1].count, Constant):
            groups[-1] += (call,)
        else:
            groups.append((call,))
    return groups
