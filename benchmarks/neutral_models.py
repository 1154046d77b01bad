"""Native models of reference models in neutral JSON.

The neutral form has steps instead of activities: a list of steps runs in order; ``cpu`` and ``delay`` take
time, ``call`` waits for another entry, ``fork`` starts a branch beside the main flow and ``join`` waits for
it, ``choice`` takes one of several lists. Its figures are means over independent runs with 95 % half-widths.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mup.errors import ModelError
from mup.lqn.distribution_json import distribution_from_json
from mup.lqn.distributions import Constant, Distribution
from mup.lqn.model import Activity, Call, Entry, Model, Precedence, Processor, Task

__all__ = ["ReferenceModel", "load_reference_model"]

CLIENTS = "Clients"
"""Name of the reference task."""

NOTHING = Constant(0.0)


@dataclass(frozen=True, slots=True)
class ReferenceModel:
    """A model and what it should predict.

    Attributes:
        model: With the number of clients of the file.
        rows: Per number of clients: ``clients``, ``throughput``, ``response_time``, ``tasks``.
    """

    model: Model
    rows: list[dict[str, Any]]

    def with_clients(self, clients: int) -> Model:
        """Return the model with another number of clients."""
        return self.model.with_task(replace(self.model.task(CLIENTS), threads=clients))


def load_reference_model(path: Path) -> ReferenceModel:
    """Read a model in neutral JSON.

    Raises:
        ModelError: A step is of no known kind, or replicas share something the file says they do not.
    """
    data = json.loads(path.read_text())
    owners = {e["name"]: e["task"] for e in data["entries"]}
    entries = {e["name"]: _graph(e["name"], e["steps"], owners) for e in data["entries"]}
    tasks, processors = [], []
    for task in data["tasks"]:
        name, processor = task["name"], task["processor"]
        if processor["kind"] == "ps" and task["replicas"] > 1:
            raise ModelError(
                "replicas with a processor each are not supported", where=f"{path}: task {name!r}"
            )
        cores = processor.get("cores", math.inf)
        discipline = "ps" if processor["kind"] == "ps" else "infinite"
        processors.append(Processor(name=f"cpu-{name}", cores=cores, discipline=discipline))  # type: ignore[arg-type]
        tasks.append(
            Task(
                name=name,
                threads=math.inf if task["threads"] is None else task["threads"],
                replicas=task["replicas"],
                processor=f"cpu-{name}",
                entries=tuple(entries[e["name"]] for e in data["entries"] if e["task"] == name),
            )
        )
    clients = Task(
        name=CLIENTS,
        role="reference",
        threads=data["clients"],
        think=_time(data["think"]),
        entries=(_graph("scenario", data["scenario"], owners),),
    )
    model = Model(name=data["name"], processors=tuple(processors), tasks=(clients, *tasks))
    return ReferenceModel(model, data["reference"]["rows"])


def _time(data: dict[str, Any]) -> Distribution | None:
    return distribution_from_json({"family": data["distribution"], "mean": data["mean"]})


def _graph(name: str, steps: list[dict[str, Any]], owners: dict[str, str]) -> Entry:
    """Return the entry whose activity graph does these steps."""
    builder = _Builder(owners)
    start, _ = builder.chain(steps)
    return Entry(
        name=name,
        start=start,
        activities=tuple(builder.activities),
        precedences=tuple(builder.precedences),
    )


class _Builder:
    """Collects the activities and precedences of one entry: one activity per step, and empty ones between."""

    def __init__(self, owners: dict[str, str]) -> None:
        self.owners = owners
        self.activities: list[Activity] = []
        self.precedences: list[Precedence] = []
        self.branches: dict[int, str] = {}

    def add(self, **what: Any) -> str:
        """Add an activity with a demand, a delay, calls, or nothing at all; return its name."""
        name = f"a{len(self.activities)}"
        self.activities.append(Activity(name=name, **{"demand": NOTHING, "delay": NOTHING, **what}))
        return name

    def then(self, last: str, following: str) -> str:
        """Let one activity follow another; return the second."""
        self.precedences.append(Precedence(pre=(last,), post=(following,)))
        return following

    def chain(self, steps: list[dict[str, Any]]) -> tuple[str, str]:
        """Add the activities of some steps; return the first and the last."""
        first = last = self.add()
        for step in steps:
            last = self.step(step, last)
        return first, last

    def step(self, step: dict[str, Any], last: str) -> str:
        """Add the activities of a step behind ``last``; return the last of them."""
        if "cpu" in step:
            return self.then(last, self.add(demand=_time(step["cpu"])))
        if "delay" in step:
            return self.then(last, self.add(delay=_time(step["delay"])))
        if "call" in step:
            call = Call(task=self.owners[step["call"]], entry=step["call"])
            return self.then(last, self.add(calls=(call,)))
        if "fork" in step:
            main = self.add()
            branch, self.branches[step["fork"]] = self.chain(step["steps"])
            self.precedences.append(Precedence(pre=(last,), post=(main, branch), fork="and"))
            return main
        if "join" in step:
            joined = self.add()
            pre = (last, self.branches[step["join"]])
            self.precedences.append(Precedence(pre=pre, post=(joined,), join="and"))
            return joined
        if "choice" in step:
            return self.choice(step["choice"], last)
        raise ModelError(f"a step of no known kind: {sorted(step)}", where="steps")

    def choice(self, options: list[dict[str, Any]], last: str) -> str:
        """Add a choice between lists of steps; return the activity where they meet."""
        ends = [self.chain(option["steps"]) for option in options]
        if len(ends) == 1:
            self.then(last, ends[0][0])
            return ends[0][1]
        odds = tuple(option["probability"] for option in options)
        heads, tails = tuple(head for head, _ in ends), tuple(tail for _, tail in ends)
        self.precedences.append(Precedence(pre=(last,), post=heads, fork="or", probabilities=odds))
        merged = self.add()
        self.precedences.append(Precedence(pre=tails, post=(merged,), join="or"))
        return merged
