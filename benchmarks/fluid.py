"""Error and time of the fluid, against exact results and reference simulations.

The reference models are not part of the repository: ``MUP_REFERENCE_DIR`` (default: ``shared`` beside it)
names the folder with ``models/running-example.json`` and ``models/teastore-size.json``; without it only the
single queue is shown.
"""

from __future__ import annotations

import json
import math
import os
import time
from pathlib import Path
from typing import Any

from machine import describe

from mup.lqn import (
    Activity,
    Call,
    Constant,
    Distribution,
    Entry,
    Exponential,
    Model,
    Precedence,
    Processor,
    Task,
)
from simulator.fluid import fluid

REFERENCE = Path(os.environ.get("MUP_REFERENCE_DIR", Path(__file__).parents[2] / "shared"))
ZERO = Constant(0.0)
THINK, SERVICE = 1.0, 0.05


def machine_repair(users: int, threads: int) -> float:
    """Return the exact throughput per second of M/M/threads//users."""
    weights = [1.0]
    for n in range(1, users + 1):
        weights.append(weights[-1] * (users - n + 1) / THINK / (min(n, threads) / SERVICE))
    busy = sum(w * min(n, threads) for n, w in enumerate(weights)) / sum(weights)
    return busy / SERVICE


def queue(users: int, threads: int) -> Model:
    """Return users that think, and one service."""
    work = Entry(
        name="e", start="w", activities=(Activity(name="w", demand=Exponential(SERVICE), delay=ZERO),)
    )
    ask = Activity(name="ask", demand=ZERO, delay=ZERO, calls=(Call(task="A", entry="e"),))
    cycle = Entry(name="cycle", start="ask", activities=(ask,))
    return Model(
        name="queue",
        tasks=(
            Task(name="U", role="reference", threads=users, think=Exponential(THINK), entries=(cycle,)),
            Task(name="A", threads=threads, entries=(work,)),
        ),
    )


class _Body:
    """Turns the steps of a reference model into the activities and precedences of one entry."""

    def __init__(self, name: str, steps: list[dict[str, Any]], owner: dict[str, str]) -> None:
        self.owner = owner
        self.activities: list[Activity] = []
        self.precedences: list[Precedence] = []
        self.branches: dict[int, str] = {}
        self.add_steps(steps, self.new())
        self.entry = Entry(
            name=name, start="0", activities=tuple(self.activities), precedences=tuple(self.precedences)
        )

    def new(self, **parts: Any) -> str:
        name = str(len(self.activities))
        self.activities.append(Activity(name=name, **{"demand": ZERO, "delay": ZERO} | parts))
        return name

    def link(self, pre: tuple[str, ...], post: tuple[str, ...], **kind: Any) -> None:
        self.precedences.append(Precedence(pre=pre, post=post, **kind))

    def add_steps(self, steps: list[dict[str, Any]], last: str) -> str:
        """Append steps behind an activity; return the last one."""
        for step in steps:
            if "fork" in step:
                carry, branch = self.new(), self.new()
                self.link((last,), (carry, branch), fork="and")
                self.branches[step["fork"]] = self.add_steps(step["steps"], branch)
                last = carry
            elif "join" in step:
                after = self.new()
                self.link((last, self.branches.pop(step["join"])), (after,), join="and")
                last = after
            elif "choice" in step:
                starts = tuple(self.new() for _ in step["choice"])
                odds = tuple(way["probability"] for way in step["choice"])
                self.link((last,), starts, fork="or", probabilities=odds)
                ends = [self.add_steps(w["steps"], s) for w, s in zip(step["choice"], starts, strict=True)]
                last = self.new()
                self.link(tuple(ends), (last,), join="or")
            else:
                following = self.new(**self.parts(step))
                self.link((last,), (following,))
                last = following
        return last

    def parts(self, step: dict[str, Any]) -> dict[str, Any]:
        if "call" in step:
            return {"calls": (Call(task=self.owner[step["call"]], entry=step["call"]),)}
        return {"demand": _time(step["cpu"])} if "cpu" in step else {"delay": _time(step["delay"])}


def _time(data: dict[str, Any]) -> Distribution:
    return Exponential(data["mean"]) if data["distribution"] == "exponential" else Constant(data["mean"])


def reference_model(data: dict[str, Any], users: int) -> Model:
    """Return the model that a reference file describes, with another number of clients."""
    owner = {e["name"]: e["task"] for e in data["entries"]}
    scenario = _Body("cycle", data["scenario"], owner).entry
    tasks = [
        Task(name="Users", role="reference", threads=users, think=_time(data["think"]), entries=(scenario,))
    ]
    processors = []
    for task in data["tasks"]:
        name = task["name"]
        shared = task["processor"]["kind"] == "ps"
        if shared:
            processors.append(Processor(name=name, cores=task["processor"]["cores"]))
        entries = [_Body(e["name"], e["steps"], owner).entry for e in data["entries"] if e["task"] == name]
        tasks.append(
            Task(
                name=name,
                threads=task["threads"] or math.inf,
                replicas=task["replicas"],
                processor=name if shared else None,
                entries=tuple(entries),
            )
        )
    return Model(name=data["name"], processors=tuple(processors), tasks=tuple(tasks))


def compare(label: str, model: Model, throughput: float, response: float) -> None:
    """Print the fluid's figures and their errors."""
    start = time.process_time()
    result = fluid(model)
    spent = time.process_time() - start
    x, r = result.cycle["throughput"] or math.nan, result.cycle["response_time"] or math.nan
    print(
        f"{label:<28} X {x:9.3f}/s {100 * (x / throughput - 1):+6.1f} %   "
        f"R {1e3 * r:9.2f} ms {100 * (r / response - 1):+6.1f} %   "
        f"{result.states:4d} states {1e3 * spent:4.0f} ms CPU"
    )


def main() -> None:
    """Print errors of throughput and response time, number of states and CPU time."""
    print(describe("mup-framework", "numpy", "scipy"))
    print(f"one queue, think {THINK:g} s, service {1e3 * SERVICE:g} ms, exponential; exact solution")
    for threads in (1, 4, 16):
        for load in (0.25, 0.5, 0.8, 1.0, 1.25, 2.0):
            users = max(1, round(load * threads * (1 + THINK / SERVICE)))
            exact = machine_repair(users, threads)
            label = f"{threads:2d} threads {users:4d} clients"
            compare(label, queue(users, threads), exact, users / exact - THINK)
    for name in ("running-example", "teastore-size", "teastore-size-ps"):
        file = REFERENCE / "models" / f"{name}.json"
        if not file.exists():
            print(f"{name}: skipped, there is no {file} (set MUP_REFERENCE_DIR)")
            continue
        data = json.loads(file.read_text())
        print(f"{name}, against means of {data['reference']['seeds']} simulations")
        for row in data["reference"]["rows"]:
            users = row["clients"]
            compare(
                f"{users:4d} clients",
                reference_model(data, users),
                row["throughput"]["mean"],
                row["response_time"]["mean"],
            )
    data_file = REFERENCE / "models" / "teastore-size.json"
    if data_file.exists():
        start = time.process_time()
        fluid(reference_model(json.loads(data_file.read_text()), 512), until=10.0)
        print(f"teastore-size, 512 clients, 10 s of transient: {time.process_time() - start:.2f} s CPU")


if __name__ == "__main__":
    main()
