"""Compare the machine's speed for services with that for the speed monitor.

A nominal millisecond of a generated system is a fixed number of loop iterations. The processor seconds that
endpoints take for one, times the monitored speed, should be the same in the exploration and in every repeat,
whatever the speed of the machine. Where they are not, corrections for speed cannot be right, or chance gave
one of them more work than the other: the second table says how much chance alone can do.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import sqrt
from statistics import median
from typing import Any

from accuracy.deploy import generated
from accuracy.judge import usable
from accuracy.nominal import nominal
from accuracy.predictions import points_of
from accuracy.store import Results, read_json
from analyzer.validation import host_slowness
from mup.lqn import Model, load_model
from mup.lqn.visits import activity_visits, entry_rates

__all__ = ["ENDPOINT_HEAD", "HEAD", "SPEED", "endpoint_work", "endpoint_works", "work_speeds"]

SPEED = 1500.0
"""Monitored speed that figures are given for."""


HEAD = (
    f"CPU ms per nominal ms at speed {SPEED:.0f}",
    "exploration",
    "repeats, median",
    "range",
    "explored, valid of all s",
    "change of speed meanwhile",
)
ENDPOINT_HEAD = (
    "system",
    "endpoint",
    f"CPU ms at speed {SPEED:.0f}, repeats",
    "exploration",
    "standard error",
    "executions",
)
DRIVER = "comm_"
"""What names of operations under way begin with: those of queries have their drivers' work."""
LEAST = 0.005
"""s; the framework is part of an endpoint's work in a model, but not in a repeat: quick ones tell nothing."""


def work_speeds(results: Results, kind: str, names: Sequence[str]) -> list[tuple[str, ...]]:
    """Return, per generated system, ms per nominal ms at ``SPEED``: exploration, median and range of repeats.

    Behind them, how much of the exploration was valid, and by how much the probes before and after it differ.

    Queries and calls are work of endpoints, too, but have no nominal time: systems with little other work
    have larger figures.
    """
    lines: list[tuple[str, ...]] = []
    for name in names:
        system = generated(name)
        if system is None:
            continue
        model = load_model(results.model(kind, name))
        work = nominal(system).work
        folder = results.system(name)
        repeats = [r for p in points_of(folder) for r in usable(folder.repeats(p.name)) if r.get("monitored")]
        found = [_taken(r) / work * r["monitored"] * _slowness(model, r) / SPEED for r in repeats]
        provenance, explored = model.provenance or {}, read_json(folder.explored)
        if not found or provenance.get("monitored_speed") is None:
            continue
        before = 1000 * endpoint_work(model) / work * provenance["monitored_speed"] / SPEED
        lines.append(
            (
                name,
                f"{before:.2f}",
                f"{median(found):.2f}",
                f"{min(found):.2f} to {max(found):.2f}",
                f"{provenance['observed_seconds']:.0f} of {explored['seconds']:.0f}",
                f"{explored['jump']:+.0%}",
            )
        )
    return lines


def endpoint_works(results: Results, kind: str, names: Sequence[str]) -> list[tuple[str, ...]]:
    """Return, per endpoint with much work, by how much its mean CPU time was longer in the exploration.

    At the same speed, without the work of database drivers (the clock of workers does not see it), and with
    the standard error that comes from the amounts of work being random and executions finite.
    """
    lines: list[tuple[str, ...]] = []
    for name in names:
        model, folder = load_model(results.model(kind, name)), results.system(name)
        explored = read_json(folder.run / "run.json")["widths"]
        speed = (model.provenance or {}).get("monitored_speed")
        repeats = [r for p in points_of(folder) for r in usable(folder.repeats(p.name)) if r.get("monitored")]
        seen: dict[str, list[tuple[Mapping[str, Any], float]]] = defaultdict(list)
        for record in repeats:
            for label, figures in record["entries"].items():
                seen[label].append((figures, record["monitored"]))
        for task, entry in ((t, e) for t in model.tasks if t.role == "service" for e in t.entries):
            label = task.name + entry.name
            before, found = explored.get(label), seen.get(label)
            if speed is None or before is None or not found:
                continue
            count = sum(f["count"] for f, _ in found)
            cpu = sum(f["count"] * f["cpu"] * monitored for f, monitored in found) / count / SPEED
            if cpu * SPEED / speed < LEAST:
                continue
            spread = sum(f["count"] * f["cpu_cv"] for f, _ in found) / count
            visits = activity_visits(entry)
            own = (a for a in entry.activities if a.demand and not a.name.startswith(DRIVER))
            work = sum(visits[a.name] * a.demand.mean for a in own if a.demand) * speed / SPEED
            error = spread * sqrt(1 / count + 1 / before["executions"])
            executions = f"{before['executions']}, {count}"
            lines.append(
                (name, label, f"{1000 * cpu:.1f}", f"{work / cpu - 1:+.1%}", f"{error:.1%}", executions)
            )
    return lines


def _taken(record: Mapping[str, Any]) -> float:
    """Return the CPU ms of endpoints per cycle of a repeat."""
    seconds = sum(float(e["count"]) * float(e["cpu"]) for e in record["entries"].values())
    return 1000 * seconds / int(record["measurement"]["cycles"])


def _slowness(model: Model, record: Mapping[str, Any]) -> float:
    return host_slowness(model, record["measurement"]["cpu"]["host_utilization"])


def endpoint_work(model: Model) -> float:
    """Return the processor seconds of all endpoints per cycle of a model with one kind of client."""
    ((_, rates),) = entry_rates(model).items()
    total = 0.0
    for task in model.tasks:
        if task.role != "service":
            continue
        for entry in task.entries:
            visits = activity_visits(entry)
            demands = {a.name: a.demand.mean if a.demand else 0.0 for a in entry.activities}
            rate = rates.get((task.name, entry.name), 0.0)
            total += rate * sum(visits[name] * demand for name, demand in demands.items())
    return total
