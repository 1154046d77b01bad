"""Share of a cycle's time per activity and entry, as far as the model knows it."""

from __future__ import annotations

from collections import defaultdict

from mup.errors import MupError
from mup.lqn.model import Activity, Entry, Model
from mup.lqn.visits import activity_visits, entry_rates

__all__ = ["Weights", "own_time", "weights_of"]

Weights = dict[tuple[str, ...], float]
"""Share of all work and waiting of its own, per (task, entry) and (task, entry, activity)."""


def _seconds(activity: Activity) -> float | None:
    if activity.kind == "think":
        return 0.0
    if activity.demand is None or activity.delay is None:
        return None
    return activity.demand.mean + activity.delay.mean


def own_time(entry: Entry) -> float | None:
    """Return the mean seconds an entry works and waits itself per request; None if that was not measured."""
    try:
        visits = activity_visits(entry)
    except MupError:
        return None
    total = 0.0
    for activity in entry.activities:
        seconds = _seconds(activity)
        if visits[activity.name] and seconds is None:
            return None
        total += visits[activity.name] * (seconds or 0.0)
    return total


def weights_of(model: Model) -> Weights:
    """Return the shares; empty for a model without numbers or without load."""
    rates: dict[tuple[str, str], float] = defaultdict(float)
    try:
        for targets in entry_rates(model).values():
            for key, rate in targets.items():
                rates[key] += rate
    except MupError:
        return {}
    found: Weights = {}
    for task in model.tasks:
        for entry in task.entries:
            rate = rates.get((task.name, entry.name), 0.0)
            if not rate:
                continue
            visits = activity_visits(entry)
            of_entry = 0.0
            for activity in entry.activities:
                amount = rate * visits[activity.name] * (_seconds(activity) or 0.0)
                found[task.name, entry.name, activity.name] = amount
                of_entry += amount
            found[task.name, entry.name] = of_entry
    total = sum(amount for key, amount in found.items() if len(key) == 2)
    return {key: amount / total for key, amount in found.items()} if total else {}
