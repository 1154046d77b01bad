"""Additional processor time per request of a mostly idle system.

The same numbers are taken from hot rounds (one client, back to back), from cold ones (with its think
times), and from bursts of several clients if there were any; their differences at the rates of requests of
each make the ``LoadDependence`` of a task.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from analyzer.calibration.callsites import Variant, variant_name
from analyzer.calibration.framework import FrameworkWork
from analyzer.calibration.observed import FloatArray, Observed
from analyzer.calibration.terms import Key, Kind, Terms
from mup.lqn import LoadDependence, Model, Task, entry_label
from mup.lqn.refs import WorkNames

__all__ = ["load_dependence", "shared_by_variants", "shown_by_bursts"]

APART = 1.5
"""Rates that differ by less are too close to tell a dependence from noise."""
FEWEST = 20
"""Requests a task must have had in a phase."""
LEAST = 1e-6
"""Seconds below which a difference is not worth a number."""

T = TypeVar("T")


def load_dependence(
    terms: Terms,
    observed: Observed,
    work: FrameworkWork,
    task: Task,
    *,
    by_thread: bool = False,
    bursts: bool = True,
    without: Collection[Key] = (),
) -> LoadDependence | None:
    """Return how the times of a calibrated task depend on the rate of its requests.

    Args:
        terms: What the model is made of.
        observed: What the run shows.
        work: That of the framework.
        task: The calibrated task.
        by_thread: Every thread of it is a process. One user asks one of them at a time, and always the one
            that was busy last, so a thread's rate is that of the replica in hot and cold rounds. In bursts
            it is not known; with them, times go by the rate of the replica.
        bursts: Rounds of several clients count.
        without: Times that depend on something else.

    Returns:
        None if the run does not show it: only one phase, too few requests, or rates that hardly differ.
    """
    phases = _phases(observed, work, task, bursts=bursts)
    hot = next((p for p in phases if p[0] == "hot"), None)
    if hot is None or len(phases) < 2:
        return None
    steady = observed.single
    keys = WorkNames(task.entries).texts
    role = {"reference": "client", "database": "database"}.get(task.role, "worker")
    relative = front = None
    if phases[-1][0] == "burst":
        relative = work.relative(role, task.name, phases[-1][2], hot[2])
        front = work.relative("front", task.name, phases[-1][2], hot[2])
    demands: dict[str, tuple[float, ...]] = {}
    delays: dict[str, tuple[float, ...]] = {}
    for entry, activity in [("", "front"), *keys]:
        label = keys[entry, activity] if entry else activity
        kinds: tuple[tuple[Kind, dict[str, tuple[float, ...]]], ...] = (
            ("demand", demands),
            ("delay", delays),
        )
        for kind, found in kinds:
            term = terms.times.get((kind, (task.name, entry, activity)))
            if term is None or (task.name, entry, activity) in without:
                continue
            values = [term.mean(weights, steady) for _, _, weights in phases]
            base = term.mean(hot[2], steady)
            if base is None or any(v is None for v in values):
                continue
            if phases[-1][0] == "burst":
                if kind == "delay":
                    # It holds what users wait for each other, which a simulation makes anew.
                    values[-1] = base
                elif entry and relative is not None:
                    values[-1] = relative * base
                elif not entry and front is not None:
                    # What callers do not wait for of it is work after the response, which is relative, too:
                    # that of the burst itself, which waits shorten, would be left out of both.
                    values[-1] = front * base
                elif term.shared:
                    # It holds what an event loop did for others meanwhile.
                    values[-1] = base
            extra = tuple(float(f"{v - base:.6g}") for v in values if v is not None)
            if any(abs(v) > LEAST for v in extra):
                found[label] = extra
    if not demands and not delays:
        return None
    rates = tuple(rate for _, rate, _ in phases)
    if phases[-1][0] == "burst":
        # The machine was busy: requests hardly come more often; what never sleeps gets no warmer.
        return LoadDependence(rates=rates, demands=demands, delays=delays, above=1.0)
    return LoadDependence(rates=rates, by_thread=by_thread, demands=demands, delays=delays)


def shown_by_bursts(observed: Observed, work: FrameworkWork, task: Task) -> bool:
    """Return whether a task had so many requests in bursts that its times depend on the rate up to there."""
    phases = _phases(observed, work, task, bursts=True)
    return bool(phases) and phases[-1][0] == "burst"


def _phases(
    observed: Observed, work: FrameworkWork, task: Task, *, bursts: bool
) -> list[tuple[str, float, FloatArray]]:
    """Return name, rate of requests per replica, and weights of every usable phase, by ascending rate."""
    found: list[tuple[str, float, FloatArray]] = []
    for name in ("cold", "hot", "burst") if bursts else ("cold", "hot"):
        weights = observed.phase(name)
        seconds = observed.seconds(weights)
        rate = _rate(work, task, weights, seconds)
        if rate * seconds * task.replicas < FEWEST:
            continue
        # The hot phase is what the model's own numbers are from; the others must differ from it.
        if found and rate < APART * found[-1][1]:
            if name == "hot":
                found[-1] = (name, rate, weights)
            continue
        found.append((name, rate, weights))
    return found


def _rate(work: FrameworkWork, task: Task, weights: FloatArray, seconds: float) -> float:
    if task.role == "network":
        # All exchanges together, for so the requests of that task are counted in a model.
        return work.exchange_rate(weights, seconds)
    return work.rate(task.name, weights, seconds) / task.replicas


def shared_by_variants(model: Model, found: Mapping[str, Sequence[Variant]]) -> Model:
    """Give the variants of an entry the set-up, or the load dependence, of the entry they were split from.

    Args:
        model: With an entry for every variant.
        found: Variants by label of their entry.
    """

    def task(old: Task) -> Task:
        if old.load_dependence is None and old.setup is None:
            return old
        names = {
            entry.name: [variant_name(entry.name, v.number) for v in found[label]]
            for entry in old.entries
            if (label := entry_label(old.name, entry.name)) in found
        }
        further = {name for several in names.values() for name in several} - names.keys()
        before = WorkNames(entry for entry in old.entries if entry.name not in further).pairs
        after = WorkNames(old.entries).texts

        def spread(values: Mapping[str, T]) -> dict[str, T]:
            result = {}
            for key, value in values.items():
                if key not in before:
                    result[key] = value  # of the front
                    continue
                entry, activity = before[key]
                result.update({after[name, activity]: value for name in names.get(entry, [entry])})
            return result

        load_dependence, setup = old.load_dependence, old.setup
        if load_dependence is not None:
            load_dependence = replace(
                load_dependence,
                demands=spread(load_dependence.demands),
                delays=spread(load_dependence.delays),
            )
        if setup is not None:
            setup = replace(setup, demands=spread(setup.demands), delays=spread(setup.delays))
        return replace(old, load_dependence=load_dependence, setup=setup)

    return replace(model, tasks=tuple(task(t) for t in model.tasks)) if found else model
