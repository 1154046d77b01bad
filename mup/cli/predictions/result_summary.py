"""Summary of a simulated scenario in some ten lines; the tables have the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mup.cli.output.display import say
from mup.cli.output.figures import interval
from mup.cli.output.tables import print_table

if TYPE_CHECKING:
    from rich.console import Console

    from mup.lqn.model import Model
    from mup.lqn.refs import ResourceRef

__all__ = ["print_summary"]

MAX_BUSY = 3
"""Servers that are shown besides the bottleneck."""
MAX_SOURCES = 4
"""Kinds of clients with lines of their own."""

Document = Mapping[str, Any]


def print_summary(out: Console, model: Model, document: Document, limit: str) -> None:
    """Print response time, throughput, bottleneck and saturation.

    Args:
        out: Where.
        model: What was simulated.
        document: The result's JSON; of an estimate, too.
        limit: What saturates first, as a sentence; empty if it was not asked for.
    """
    say(out, f"{model.name}: {_load(model)}")
    rows = _times("", document["cycle"])
    sources = {n: t for n, t in document["tasks"].items() if t.get("response_time") is not None}
    if 1 < len(sources) <= MAX_SOURCES:
        for name, cycle in sources.items():
            rows += _times(f" of {name}", cycle)
    rows += _busy(model, document)
    print_table(out, "", ["figure", "value", "unit"], rows, words=("unit",))
    if limit:
        say(out, limit)


def _load(model: Model) -> str:
    parts = []
    for task in model.tasks:
        if task.is_reference and not task.is_open:
            think = "" if task.think is None else f" that think {task.think.mean:.4g} s"
            number = f"{task.threads:g} client" + ("s" if task.threads != 1 else "")
            parts.append(f"{number}{think} ({task.name})")
        parts += [
            f"{1 / entry.arrivals.mean:.4g} arrivals/s at {task.name}"
            for entry in task.entries
            if entry.arrivals is not None
        ]
    return ", ".join(parts)


def _times(of: str, cycle: Document) -> list[list[str]]:
    """Return the rows of a kind of cycle."""
    time = cycle["response_time"]
    rows = [[f"response time{of}", interval(time, 1e3), "ms per cycle, think time excluded"]]
    if "p95" in time:
        rows.append([f"95 % of cycles{of}", interval(time["p95"], 1e3), "ms or less"])
    rows.append([f"throughput{of}", interval(cycle["throughput"]), "cycles/s"])
    return rows


def _busy(model: Model, document: Document) -> list[list[str]]:
    """Return a row for the bottleneck, and for what is used most besides it."""
    from mup.lqn.refs import ResourceRef
    from simulator.studies.whatif import NEARLY_FULL, causes

    elements = {ResourceRef("task", name): element for name, element in document["tasks"].items()}
    elements |= {ResourceRef("processor", n): element for n, element in document["processors"].items()}
    shares = {ref: e["utilization"] for ref, e in elements.items() if e["utilization"] is not None}
    if not shares:
        return []

    def mean(ref: ResourceRef) -> float:
        return float(shares[ref]["mean"])

    order = sorted(shares, key=mean, reverse=True)
    full = {ref for ref in shares if mean(ref) >= NEARLY_FULL * mean(order[0])}
    limiting = max(causes(model, full), key=lambda ref: (mean(ref), ref.label))
    order.remove(limiting)
    rows = [[f"bottleneck: {limiting.label}", interval(shares[limiting], 100), "% utilized"]]
    return rows + [[ref.label, interval(shares[ref], 100), "%"] for ref in order[:MAX_BUSY]]
