"""Pairs of figures of the two simulators, and whether they agree.

Two figures agree if they differ by at most three joint half-widths (the root of the sum of both squared)
and one percent. Since 95 % intervals miss by design, one joint half-width is the measure for all figures of
a run together: few may lie outside.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mup.lqn.model import Activity, Entry, Model, Task, entry_label
from simulator.figures.result import Figure, Result

__all__ = ["Elements", "Pair", "Uncompared", "UnknownElement", "compare", "pooled"]

MARGIN = 3
TOLERANCE = 0.01
PRINTED = 1e-5
"""Relative rounding of the printed figures: six digits."""

CLOCK = 1e-15
"""Resolution of the simulated clock, relative to where it stands; waits are differences of moments."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One figure of both.

    Attributes:
        section, element, name: For example ``entries``, ``e1``, ``throughput``.
        ours, theirs: The figure.
        scale: Of the times it is part of; a wait is judged against the time in which it happens.
        noise: What the resolution of the simulated clock adds.
    """

    section: str
    element: str
    name: str
    ours: Figure
    theirs: Figure
    scale: float
    noise: float

    @property
    def what(self) -> str:
        """For display."""
        return f"{self.section} {self.element} {self.name}"

    @property
    def difference(self) -> float:
        """Ours less theirs."""
        return self.ours.mean - self.theirs.mean

    @property
    def joint(self) -> float:
        """The joint half-width."""
        return math.hypot(self.ours.ci95, self.theirs.ci95)

    @property
    def excess(self) -> float:
        """How far apart they are, as a multiple of what is allowed."""
        allowed = MARGIN * self.joint + TOLERANCE * abs(self.theirs.mean) + PRINTED * self.scale + self.noise
        return abs(self.difference) / allowed if allowed else (math.inf if self.difference else 0.0)

    @property
    def agrees(self) -> bool:
        """Tell whether they agree."""
        return self.excess <= 1

    @property
    def random(self) -> bool:
        """Tell whether chance has a part in it; what is certain tells nothing about intervals."""
        return self.joint > PRINTED * abs(self.theirs.mean)

    @property
    def outside(self) -> bool:
        """Tell whether they differ by more than one joint half-width."""
        return abs(self.difference) > self.joint + PRINTED * self.scale + self.noise

    def to_json(self) -> dict[str, Any]:
        """Return the pair for the JSON output."""
        return {
            "what": self.what,
            "ours": self.ours.to_json(),
            "theirs": self.theirs.to_json(),
            "excess": self.excess,
        }


@dataclass(frozen=True, slots=True)
class Uncompared:
    """A figure that has no counterpart, and why."""

    what: str
    why: str


def pooled(figures: Sequence[Figure]) -> Figure:
    """Return the mean of independent estimates of one figure."""
    count = len(figures)
    return Figure(
        math.fsum(f.mean for f in figures) / count, math.sqrt(math.fsum(f.ci95**2 for f in figures)) / count
    )


def _plus(*figures: Figure) -> Figure:
    return Figure(math.fsum(f.mean for f in figures), math.hypot(*(f.ci95 for f in figures)))


def _minus(a: Figure, b: Figure) -> Figure:
    return Figure(a.mean - b.mean, math.hypot(a.ci95, b.ci95))


def _times(figure: Figure, factor: float) -> Figure:
    return Figure(figure.mean * factor, figure.ci95 * abs(factor))


def _product(a: Figure, b: Figure) -> Figure:
    return Figure(a.mean * b.mean, math.hypot(a.ci95 * b.mean, b.ci95 * a.mean))


class UnknownElement(Exception):  # noqa: N818
    """There is no such figure of ours; the message says why."""


class Elements:
    """Finds the elements of a model by the names the corpus uses."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.entries: dict[str, tuple[Task, Entry]] = {e.name: (t, e) for t in model.tasks for e in t.entries}
        self.phases: dict[str, dict[str, str]] = model.provenance["lqnx"]["phases"]

    def activity(self, key: str) -> tuple[Task, Entry, Activity]:
        """Return what ``entry#phase`` or ``task/activity`` means."""
        if "#" in key:
            name, _, phase = key.rpartition("#")
            task, entry = self.entries[name]
            own = self.phases[name].get(phase)
            if own is None:
                raise UnknownElement("a phase the model does not have")
            return task, entry, entry.activity(own)
        owner, _, name = key.partition("/")
        task = self.model.task(owner)
        for entry in task.entries:
            if any(a.name == name for a in entry.activities):
                return task, entry, entry.activity(name)
        raise UnknownElement("an activity no load reaches")

    def label(self, name: str) -> str:
        """Return how results call an entry."""
        task, entry = self.entries[name]
        return entry_label(task.name, entry.name)


class _Reader:
    """Reads figures from one result, under the names of the corpus."""

    def __init__(self, model: Model, result: Result) -> None:
        self.model = model
        self.result = result
        self.elements = Elements(model)

    def figure(self, section: str, key: str, name: str) -> Figure:
        """Return our figure.

        Raises:
            UnknownElement: There is none.
        """
        try:
            figure = getattr(self, section)(key, name)
        except KeyError as error:
            raise UnknownElement("no load reaches it") from error
        if not isinstance(figure, Figure):
            raise UnknownElement("nothing happened there")
        return figure

    def tasks(self, key: str, name: str) -> Figure | None:
        found, task = self.result.tasks[key], self.model.task(key)
        if name != "throughput":
            return found.busy
        if any(e.token for e in task.entries):
            # lqsim divides the throughput of a semaphore by the number of its entries, that of a lock by half
            # of it (task.cc, throughput).
            labels = [self.elements.label(e.name) for e in task.entries]
            return _times(_plus(*(self.result.entries[n].throughput for n in labels)), 1 / 2)
        return found.throughput

    def processors(self, key: str, _name: str) -> Figure | None:
        found = self.result.processors.get(key)
        if found is not None:
            return _times(found.utilization, found.cores)
        # An infinite processor: by the utilization law.
        processor = self.model.processor(key)
        used = []
        for task in self.model.tasks:
            if task.processor != key:
                continue
            for entry in task.entries:
                for activity in entry.activities:
                    if activity.demand is not None and activity.demand.mean > 0:
                        label = f"{entry_label(task.name, entry.name)}:{activity.name}"
                        rate = self.result.activities[label].throughput
                        used.append(_times(rate, activity.demand.mean / processor.speed))
        # Rates of one task rise and fall together, so half-widths add up.
        return Figure(math.fsum(u.mean for u in used), math.fsum(u.ci95 for u in used))

    def entries(self, key: str, name: str) -> Figure | None:
        task, _ = self.elements.entries[key]
        if task.is_reference:
            found = self.result.tasks[task.name]
            return found.throughput if name == "throughput" else found.response_time
        entry = self.result.entries[self.elements.label(key)]
        if name == "throughput":
            return entry.throughput
        if entry.response_time is None or name == "open_wait_time":
            return entry.response_time
        first = _minus(entry.response_time, self.queueing(key))
        if name == "phase1_service_time":
            return first
        if len(task.entries) > 1:
            raise UnknownElement("second phases of activity graphs are measured per task, not per entry")
        busy, rate = self.result.tasks[task.name].busy, entry.throughput
        held = Figure(busy.mean / rate.mean, math.hypot(busy.ci95, busy.mean * rate.relative) / rate.mean)
        return _minus(held, first)

    def queueing(self, entry: str) -> Figure:
        """Return how long requests of an entry wait for a thread, wherever they come from."""
        target = f"-> {self.elements.label(entry)}"
        sites = [c for label, c in self.result.calls.items() if label.endswith(target) and c.waiting]
        total = math.fsum(c.throughput.mean for c in sites)
        return _plus(*(_times(c.waiting, c.throughput.mean / total) for c in sites if c.waiting))

    def activities(self, key: str, name: str) -> Figure | None:
        task, entry, activity = self.elements.activity(key)
        found = self.result.activities[f"{entry_label(task.name, entry.name)}:{activity.name}"]
        if name == "throughput":
            return found.throughput
        if name == "proc_waiting":
            return found.processor_waiting
        if found.service_time is None:
            return None
        return (
            found.service_time if name == "service_time" else _product(found.throughput, found.service_time)
        )

    def calls(self, key: str, _name: str) -> Figure | None:
        source, _, target = key.partition("->")
        if target.endswith(":forward"):
            name = target.removesuffix(":forward")
            label = f"{self.elements.label(source)}:forward -> {self.elements.label(name)}"
        else:
            name = target.removesuffix(":async")
            task, entry, activity = self.elements.activity(source)
            label = f"{entry_label(task.name, entry.name)}:{activity.name} -> {self.elements.label(name)}"
        waiting = self.result.calls[label].waiting
        served = self.result.entries[self.elements.label(name)].response_time
        if waiting is None or served is None or not target.endswith(":async"):
            return waiting
        # What lqsim calls the waiting of a message ends with its service (task.cc, free_message).
        return _plus(waiting, _minus(served, self.queueing(name)))

    def joins(self, key: str, _name: str) -> Figure | None:
        task, _, names = key.partition("/")
        wanted = set(names.split("&"))
        for label, join in self.result.joins.items():
            for entry in self.model.task(task).entries:
                own = f"{entry_label(task, entry.name)}:"
                if label.startswith(own) and set(label.removeprefix(own).split("&")) == wanted:
                    return join.delay
        raise UnknownElement("no such join")


_FIGURES = {
    "tasks": ("throughput", "utilization"),
    "processors": ("utilization",),
    "entries": ("throughput", "phase1_service_time", "phase2_service_time", "open_wait_time"),
    "activities": ("throughput", "utilization", "service_time", "proc_waiting"),
    "calls": ("waiting",),
    "joins": ("join_waiting",),
}


def _theirs(reference: dict[str, Any]) -> Iterator[tuple[str, str, str, Figure, float]]:
    """Yield section, element, name, figure, and the scale on which it is judged."""
    worst = reference["max_relative_ci95_of_task_throughput"]
    for section, names in _FIGURES.items():
        for key, figures in reference.get(section, {}).items():
            for name in names:
                if name not in figures:
                    continue
                mean, half = figures[name]["mean"], figures[name]["ci95"]
                # What was corrected by the utilization law varies with the throughputs it comes from.
                figure = Figure(mean, worst * abs(mean) if half is None else half)
                scale = figures["service_time"]["mean"] if name == "proc_waiting" else abs(mean)
                yield section, key, name, figure, scale


def _incomparable(model: Model, section: str, key: str, name: str, elements: Elements) -> str:
    """Return why two figures of the same name mean different things; "" if they do not."""
    if section == "activities":
        try:
            task, _, activity = elements.activity(key)
        except UnknownElement:
            return ""
        if name == "proc_waiting":
            place = model.processor(task.processor) if task.processor else None
            if place is not None and place.discipline == "ps":
                return "waiting under processor sharing depends on the quantum"
        idle = not activity.calls and all(
            d is not None and d.mean == 0 for d in (activity.demand, activity.delay)
        )
        if idle:
            return "lqsim does not count activities that do nothing"
    return ""


def compare(
    model: Model, results: Sequence[Result], reference: dict[str, Any]
) -> tuple[list[Pair], list[Uncompared]]:
    """Pair every figure of the reference with ours.

    Args:
        model: As it was imported.
        results: Of independent runs.
        reference: What the corpus says.
    """
    readers = [_Reader(model, result) for result in results]
    noise = CLOCK * max(r.simulated_seconds for r in results)
    pairs, rest = [], []
    for section, key, name, theirs, scale in _theirs(reference):
        what = f"{section} {key} {name}"
        why = _incomparable(model, section, key, name, readers[0].elements)
        if why:
            rest.append(Uncompared(what, why))
            continue
        try:
            ours = pooled([reader.figure(section, key, name) for reader in readers])
        except UnknownElement as error:
            rest.append(Uncompared(what, str(error)))
            continue
        pairs.append(Pair(section, key, name, ours, theirs, scale, noise))
    return pairs, rest
