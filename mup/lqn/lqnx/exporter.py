"""Export a model as lqnx, with a list of what cannot be expressed there.

Everything lqnx has no words for is named, all of it at once. Some of that has a nearest thing that lqnx
does have; it is written only if the caller asks for an approximation, and is listed then. What only
matters for display (roles, source lines, paths) is left out with a note.

An activity that makes its calls after its work becomes several: one with the work, then one for the calls
of a fixed number, one for each call of a geometric number. An entry without a fork whose reply leaves
behind its first activity is written as phases, every other one as an activity graph. A fan-out becomes a
choice between its widths.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from mup.errors import ModelError
from mup.lqn.distributions import Pareto, Uniform
from mup.lqn.lqnx.elements import Element
from mup.lqn.lqnx.entry_writer import EntryWriter
from mup.lqn.lqnx.fan_outs import without_fan_outs
from mup.lqn.lqnx.flows import reached_activities
from mup.lqn.lqnx.losses import Losses, free_name, number_text
from mup.lqn.lqnx.shapes import burst_scv
from mup.lqn.model import LOCK, Model, Processor, Task, entry_label
from mup.whole_file import write_whole

__all__ = ["Export", "model_to_lqnx", "save_lqnx"]

QUANTUM = 0.1
"""The simulator of the tools serves ``ps`` in turns; this part of the mean demand is near enough."""

_HEADER = '<?xml version="1.0" encoding="UTF-8"?>\n'
_SOLVER = {"comment": "", "conv_val": "1e-05", "it_limit": "50", "underrelax_coeff": "0.9", "print_int": "10"}
_ADMISSIONS = {"fifo": "fcfs", "hol": "hol", "random": "rand"}


@dataclass(frozen=True, slots=True)
class Export:
    """A model as lqnx.

    Attributes:
        text: The file.
        approximated: What lqnx cannot express and was written as the nearest thing it can.
        notes: What was left out or renamed without changing any figure.
    """

    text: str
    approximated: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def save_lqnx(model: Model, path: str | Path, *, approximate: bool = False) -> Export:
    """Write a model as lqnx, whole or not at all.

    Raises:
        ModelError: See :func:`model_to_lqnx`; or the file cannot be written.
    """
    export = model_to_lqnx(model, approximate=approximate)
    write_whole(path, export.text, what="the model", error=ModelError)
    return export


def model_to_lqnx(model: Model, *, approximate: bool = False) -> Export:
    """Return a model as lqnx.

    Args:
        model: Any model with something that generates load.
        approximate: Write what lqnx cannot express as the nearest thing it can.

    Raises:
        ModelError: Naming everything that lqnx cannot express, and what of it can be approximated.
    """
    losses = Losses(approximate=approximate, reached=reached_activities(model))
    spelt = without_fan_outs(model, losses)
    losses.reached = reached_activities(spelt)  # copies have names of their own
    root = _Exporter(spelt, losses).root()
    losses.raise_problems(model.name)
    return Export(_HEADER + root.text(), tuple(losses.approximated), losses.notes)


class _Exporter:
    """Writes one model; the lists fill up on the way."""

    def __init__(self, model: Model, losses: Losses) -> None:
        self.model = model
        self.losses = losses
        self.labels = self.entry_names()
        self.answered = self.entries_with_reply()
        self.demands = self.demands_by_processor()

    # Names.

    def entry_names(self) -> dict[tuple[str, str], str]:
        """Give every entry a name that is unique in the model."""
        names: dict[tuple[str, str], str] = {}
        count: dict[str, int] = {}
        for task in self.model.tasks:
            for entry in task.entries:
                count[entry.name] = count.get(entry.name, 0) + 1
        taken = {name for name, number in count.items() if number == 1}
        for task in self.model.tasks:
            for entry in task.entries:
                name = entry.name
                if count[name] > 1:
                    name = free_name(entry_label(task.name, entry.name), taken)
                    self.losses.note(f"entry {entry.name!r} of {task.name!r} is called {name!r}")
                taken.add(name)
                names[task.name, entry.name] = name
        return names

    def entries_with_reply(self) -> set[tuple[str, str]]:
        """Return the entries whose reply is waited for, directly or behind a forwarded request."""
        entries = {(t.name, e.name): e for t in self.model.tasks for e in t.entries}
        stack = [(c.task, c.entry) for _, _, a in self.model.walk() for c in a.calls if c.kind != "send"]
        found: set[tuple[str, str]] = set()
        while stack:
            place = stack.pop()
            if place not in found:
                found.add(place)
                stack.extend((f.task, f.entry) for f in entries[place].forwards)
        return found

    def demands_by_processor(self) -> dict[str | None, list[float]]:
        """Return the mean demands of the activities on every processor, those without any left out."""
        found: dict[str | None, list[float]] = {}
        for task, _, activity in self.model.walk():
            if activity.demand is not None and activity.demand.mean > 0:
                found.setdefault(task.processor, []).append(activity.demand.mean)
        return found

    # The model, processors, tasks.

    def root(self) -> Element:
        model = self.model
        root = Element("lqn-model", {"name": model.name})
        root.children.append(Element("solver-params", dict(_SOLVER)))
        if not any(t.is_reference or any(e.arrivals for e in t.entries) for t in model.tasks):
            self.losses.problem("nothing generates load: no reference task, no arrivals", "tasks")
        homes: dict[str | None, Element] = {}
        for processor in model.processors:
            homes[processor.name] = self.processor(processor)
            root.children.append(homes[processor.name])
        taken = {p.name for p in model.processors}
        for task in model.tasks:
            home = homes.get(task.processor)
            if home is None:
                name = free_name(task.name, taken)
                taken.add(name)
                home = root.add("processor", name=name, scheduling="inf")
                self.losses.note(f"task {task.name!r} has no processor; it got an infinite one, {name!r}")
            home.children.append(self.task(task))
        if any(k != "lqnx" for k in model.provenance):
            self.losses.note("left out: where the numbers come from (provenance)")
        return root

    def processor(self, processor: Processor) -> Element:
        where = f"processors[{processor.name!r}]"
        element = Element("processor", {"name": processor.name})
        scheduling: str = processor.discipline
        if processor.parent is not None:
            self.losses.problem(f"it is a part of {processor.parent!r}, and processors do not nest", where)
        if processor.background:
            what = f"{processor.background:g} s of work per second that no task asks for"
            self.losses.nearly(what, "slower cores", f"{where}.background")
        if scheduling == "cores":
            scheduling = "ps"
            if processor.cores > 1:
                what = "threads stick to their core" if processor.migration is None else "threads migrate"
                self.losses.nearly(what, "all cores are shared", f"{where}.discipline")
            if processor.turns is not None:
                self.losses.nearly("threads take turns", "cores are shared all the time", f"{where}.turns")
        elif scheduling == "pp":
            scheduling = "pri"  # "pp" of the schema is unknown to LQNS itself
        if scheduling == "infinite" or processor.cores == math.inf:
            scheduling = "inf"
        elif processor.cores > 1:
            element.attributes["multiplicity"] = number_text(processor.cores)
        element.attributes["scheduling"] = scheduling
        if scheduling == "ps":
            demands = self.demands.get(processor.name, [])
            element.attributes["quantum"] = number_text(QUANTUM * (fmean(demands) if demands else 1.0))
        speed = processor.speed * processor.available
        if speed != 1:
            element.attributes["speed-factor"] = number_text(speed)
        return element

    def task(self, task: Task) -> Element:
        where = f"tasks[{task.name!r}]"
        element = Element("task", {"name": task.name})
        scheduling = self.scheduling(task, where)
        element.attributes["scheduling"] = scheduling
        threads = task.threads
        if task.replicas > 1:
            what = f"{task.replicas} replicas, of which every request picks one"
            self.losses.nearly(what, "one task with the threads of all of them", f"{where}.replicas")
            threads *= task.replicas
        if threads not in (1, math.inf):
            element.attributes["multiplicity"] = number_text(threads)
        if task.priority:
            element.attributes["priority"] = str(task.priority)
        if task.think is not None and task.think.mean > 0:
            think = self.losses.exponential(task.think, f"{where}.think")
            element.attributes["think-time"] = number_text(think)
        if task.setup is not None:
            self.losses.nearly(
                "its work costs more after sleep", "it does not", f"tasks[{task.name!r}].setup"
            )
        if task.role not in ("reference", "service"):
            self.losses.note("left out: the roles of tasks other than reference tasks (for display)")
        EntryWriter(task, scheduling, self.losses, self.labels, answered=self.answered).write(element)
        return element

    def scheduling(self, task: Task, where: str) -> str:
        if task.is_open:
            self.losses.nearly(
                "a scenario that starts at arrivals",
                "a task of infinitely many threads with these arrivals, which is no reference task",
                where,
            )
            return "inf"
        if task.is_reference:
            times = [a.demand for e in task.entries for a in e.activities if a.demand is not None]
            times = [t for t in times if t.mean > 0]
            if times and all(isinstance(t, Pareto) and burst_scv(t) is not None for t in times):
                return "burst"
            if times and all(isinstance(t, Uniform) and t.low == 0 for t in times):
                return "uniform"
            return "ref"
        if any(e.token in LOCK for e in task.entries):
            if len(task.entries) > len(LOCK):
                self.losses.problem("a lock has four entries there, one of each kind", f"{where}.entries")
            return "rwlock"
        if any(e.token for e in task.entries):
            if len(task.entries) > 2:
                self.losses.problem("a semaphore has two entries there, one of each kind", f"{where}.entries")
            if task.admission != "fifo":
                self.losses.nearly(
                    f"a semaphore with {task.admission!r} admission", "'fifo'", f"{where}.admission"
                )
            return "semaphore"
        return "inf" if task.threads == math.inf else _ADMISSIONS[task.admission]
