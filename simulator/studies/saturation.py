"""The task or processor that saturates first, and the load at which it does.

The classic asymptotes (Denning and Buzen, "The operational analysis of queueing network models", 1978): a
source alone with one client shows how long it keeps every resource busy per cycle without waiting. What is
busy for the largest share of its capacity per cycle is full first; the load at which it would be full is
where the line of unlimited throughput meets the limit. A thread is kept longer when those it waits for are
busy, so with one source the limit itself comes from a second short simulation, of twice that load, which also
confirms what is full.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from mup.errors import LimitError
from mup.lqn.distributions import Constant
from mup.lqn.lowered import is_awaited, onward, sources_of
from mup.lqn.model import Activity, Call, Entry, Model, Task
from mup.lqn.refs import EntryRef, Names, ResourceRef
from mup.lqn.visits import entry_rates
from simulator.api import Progress, compiled, simulate
from simulator.figures.result import Result
from simulator.machine.budget import Budget, Reached
from simulator.studies.whatif import causes, utilizations

__all__ = ["Saturation", "saturation"]

PRECISION: Final = 0.02
MAX_EVENTS: Final = 100_000
"""Timed steps of each short simulation: less than a tenth of a second."""
CYCLES_EACH: Final = 6
"""Cycles for which every client of an overload has time: the first ones fill queues."""
MOST_EVENTS: Final = 5_000_000
"""Timed steps of an overload at most: a second or two."""
ALL_EVENTS: Final = 50_000_000
ALL_SECONDS: Final = 120.0
"""Timed steps and wall time of all of them together at most."""
FULL: Final = 0.95
MOST_CLIENTS: Final = 200_000
"""Beyond this many clients the limit is not confirmed by a simulation: filling it would take too long."""
TRIES: Final = 3
"""Runs with more clients, each with four times as many, before what saturates counts as not confirmed."""

_Short = Callable[..., Result]
"""A short simulation of a model; further arguments are those of ``simulate``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Saturation:
    """What is full first when all load grows by the same factor.

    Attributes:
        resource: ``task B`` or ``processor host``; None if nothing in the model can be full.
        throughput: Cycles per second when it is full; of all sources together.
        load: Per source of load: clients, or arrivals per second, at which it is about full. For clients
            that is where unlimited throughput would exceed the limit; response times rise before.
        present: Per source of load: what the model has.
        is_open: The sources whose load is arrivals per second.
        bounds: Cycles per second at which each resource would be full without any waiting, lowest first.
        confirmed: A simulation of about twice that load found the resource full.
        cut: The limit of events or wall time that ended the study before that was known.
    """

    resource: str | None
    throughput: float | None
    load: Mapping[str, float]
    present: Mapping[str, float]
    is_open: frozenset[str]
    bounds: Mapping[str, float]
    confirmed: bool
    cut: Reached | None = None

    @property
    def scale(self) -> float | None:
        """The factor on the present load at which the resource is about full; None if nothing is ever."""
        source = next(iter(self.load), None)
        return None if source is None else self.load[source] / self.present[source]

    def to_json(self) -> dict[str, Any]:
        """Return the object under ``saturation``."""

        def loads(values: Mapping[str, float]) -> dict[str, dict[str, float]]:
            units = {name: "arrivals" if name in self.is_open else "clients" for name in values}
            return {name: {units[name]: value} for name, value in values.items()}

        return {
            "resource": self.resource,
            "throughput": self.throughput,
            "scale": self.scale,
            "load": loads(self.load),
            "present": loads(self.present),
            "bounds": dict(self.bounds),
            "confirmed": self.confirmed,
            "limit": None if self.cut is None else self.cut.to_json(),
        }

    @property
    def limit(self) -> str:
        """One sentence: what saturates first, and when."""
        if self.resource is None or self.throughput is None or self.scale is None:
            return "nothing saturates: every task and processor is infinite"
        if len(self.load) > 1:
            where = f"{_round(self.scale)} times the present load"
        else:
            ((name, value),) = self.load.items()
            where = f"{_round(value)} {'arrivals/s' if name in self.is_open else 'clients'}"
        return f"{self.resource} saturates first, at about {_round(self.throughput)} cycles/s = {where}"

    def __str__(self) -> str:
        cut = "" if self.cut is None else f"; not confirmed: {self.cut}"
        if self.resource is None or len(self.load) > 1:
            return f"{self.limit}{cut}"
        (value,) = self.present.values()
        return f"{self.limit} (now {_round(value)}){cut}"


def _round(value: float) -> str:
    """Return three significant digits without an exponent."""
    return f"{float(f'{value:.3g}'):.10g}"


@dataclass(frozen=True, slots=True)
class _Source:
    """A reference task, or an entry requests come to from outside, as clients that can be counted.

    Attributes:
        name: For display.
        clients: Who come in their place.
        present: How many clients there are, or arrivals per second.
        is_open: Whether requests come from outside.
        answering: What the clients call instead of an entry that hands requests on, and its task.
    """

    name: str
    clients: Task
    present: float
    is_open: bool
    answering: tuple[str, Entry] | None = None


def saturation(
    model: Model,
    *,
    seed: int = 0,
    max_seconds: float = ALL_SECONDS,
    budget: Budget | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Saturation:
    """Find what limits a model, and from which load on.

    Args:
        model: Calibrated at least where clients can get to. How much load it has does not matter if there
            is one source; of several, their ratio does.
        seed: Of the short simulations.
        max_seconds: Wall time of all of them together.
        budget: Of what this study is part of.
        progress: Called now and then by each of them.

    Raises:
        UncalibratedError: The model lacks numbers.
        LimitError: A limit was reached before anything was known.
        SimulationError: It deadlocks, or a cycle takes no time.
    """
    own = Budget("the study of what saturates", events=ALL_EVENTS, seconds=max_seconds, outer=budget)
    # Load beyond the limit is the point here: messages that are not awaited may pile up.
    short = partial(
        simulate,
        precision=PRECISION,
        seed=seed,
        max_events=MAX_EVENTS,
        may_pile_up=True,
        budget=own,
        progress=progress,
    )
    sources = [_paced(model, source) for source in _sources(model)]
    # Rate of cycles per second that one client, or one arrival per second, of each source adds ...
    speeds: list[float] = []
    # ... and the share of each resource that is used at the present load.
    shares: dict[ResourceRef, float] = {}
    for source in sources:
        single = _with_clients(model, source, 1)
        alone = short(single)
        rate = alone.cycle.throughput.mean
        speeds.append(1.0 if source.is_open else rate)
        for ref, share in _shares(single, alone).items():
            shares[ref] = shares.get(ref, 0.0) + share * speeds[-1] * source.present
    present = {s.name: s.present for s in sources}
    is_open = frozenset(s.name for s in sources if s.is_open)
    total = math.fsum(speed * s.present for speed, s in zip(speeds, sources, strict=True))
    bounds = {ref: total / share for ref, share in shares.items() if share > 0}
    bounds = dict(sorted(bounds.items(), key=lambda item: item[1]))
    if not bounds:
        return Saturation(
            resource=None,
            throughput=None,
            load={},
            present=present,
            is_open=is_open,
            bounds={},
            confirmed=False,
        )
    resource, throughput, confirmed = next(iter(bounds)), next(iter(bounds.values())), False
    cut: Reached | None = None
    if len(sources) == 1:
        try:
            found = _overload(model, sources[0], bounds, alone, short)
        except LimitError as error:
            cut = error.reached
        else:
            if found is not None:
                (resource, throughput), confirmed = found, True
    load = {name: throughput / total * value for name, value in present.items()}
    return Saturation(
        resource=resource.label,
        throughput=throughput,
        load=load,
        present=present,
        is_open=is_open,
        bounds={ref.label: rate for ref, rate in bounds.items()},
        confirmed=confirmed,
        cut=cut,
    )


def _shares(model: Model, result: Result) -> dict[ResourceRef, float]:
    """Return how many seconds one cycle keeps each resource busy, divided by its capacity.

    Of a task: the time per request that was answered, times the requests of a cycle; should clients send
    messages faster than they are answered, the queue grows, but this stays right.
    """
    found = {}
    program = compiled(model)
    (requests,) = entry_rates(model).values()
    for ref, figure in utilizations(result).items():
        if ref.kind == "processor":
            index, server = next((i, s) for i, s in enumerate(program.servers) if s.name == ref.name)
            demand = program.populations[0].nominal.demand[index]
            found[ref] = demand / (server.speed * server.cores)
        elif result.tasks[ref.name].throughput.mean > 0:
            often = math.fsum(rate for (task, _), rate in requests.items() if task == ref.name)
            found[ref] = figure.mean / result.tasks[ref.name].throughput.mean * often
    return found


def _overload(
    model: Model, source: _Source, bounds: Mapping[ResourceRef, float], alone: Result, short: _Short
) -> tuple[ResourceRef, float] | None:
    """Return what is full under about twice the load that fills it, and the throughput then.

    ``alone``: what one client shows.
    """
    lowest = next(iter(bounds.values()))
    knee = lowest / alone.cycle.throughput.mean
    # As many timed steps as the other short simulations, if that is longer.
    cycles = MAX_EVENTS / alone.events * alone.simulated_seconds * alone.cycle.throughput.mean
    clients = 20 + math.ceil(2 * knee + 10 * math.sqrt(knee))
    for _ in range(TRIES):
        if clients > MOST_CLIENTS:
            break
        changed = _with_clients(model, source, clients)
        horizon = max(CYCLES_EACH * clients, cycles) / lowest
        result = short(changed, horizon=horizon, max_events=MOST_EVENTS)
        shares = utilizations(result)
        full = {ref for ref, figure in shares.items() if figure.mean >= FULL}
        if full:
            first = min(causes(changed, full), key=lambda ref: bounds.get(ref, math.inf))
            # Cycles that do not wait for what they sent can be more than are served. Without messages there
            # are no such cycles, and a bound may be too low: under load, code and data stay in caches.
            limit = bounds.get(first, math.inf) if _sends(model) else math.inf
            return first, min(result.cycle.throughput.mean, limit)
        clients *= 4
    return None


def _sends(model: Model) -> bool:
    """Return whether there are messages whose sender does not wait."""
    return any(not is_awaited(call.kind) for _, _, activity in model.walk() for call in activity.calls)


def _sources(model: Model) -> list[_Source]:
    """Return everything load comes from, each as clients that do not think before a cycle if it is open."""
    found = []
    names = Names(model.tasks)
    for source in sources_of(model):
        task, entry = source.task, source.entry
        if not source.is_open:
            found.append(_Source(task.name, task, task.threads, is_open=False))
            continue
        if task.is_reference:
            label = task.name
            clients = replace(task, threads=1, think=None, entries=(replace(entry, arrivals=None),))
        else:
            label = names.source(EntryRef(*source.key))
            if onward(entry):
                answering = _answering(task, entry)
                clients = _callers(model, task.name, answering.name)
                found.append(
                    _Source(label, clients, source.rate, is_open=True, answering=(task.name, answering))
                )
                continue
            clients = _callers(model, *source.key)
        found.append(_Source(label, clients, source.rate, is_open=True))
    return found


def _answering(task: Task, entry: Entry) -> Entry:
    """Return what requests from outside execute: their reply is not awaited, so they are not handed on."""
    name = f"{entry.name}'"
    while any(e.name == name for e in task.entries):
        name += "'"
    return replace(entry, name=name, arrivals=None, forwards=())


def _callers(model: Model, task: str, entry: str) -> Task:
    """Return clients that do nothing but call an entry."""
    name = "arrivals"
    while any(t.name == name for t in model.tasks):
        name += "'"
    none = Constant(0.0)
    ask = Activity(name="ask", demand=none, delay=none, calls=(Call(task=task, entry=entry),))
    return Task(
        name=name, role="reference", threads=1, entries=(Entry(name="cycle", start="ask", activities=(ask,)),)
    )


def _paced(model: Model, source: _Source) -> _Source:
    """Return an open source with clients that also wait for the time of everything they only send.

    A cycle that does nothing but send takes no time at all, and clients without any other thing to do would
    begin infinitely many. Waiting for that time comes before a cycle, so that nothing else becomes longer.
    """
    if not source.is_open or not _sends(model):
        return source
    (population,) = compiled(_with_clients(model, source, 1)).populations
    pace = Constant(population.nominal.total)
    return replace(source, clients=replace(source.clients, think=pace))


def _with_clients(model: Model, source: _Source, clients: int) -> Model:
    """Return the model with so many clients of one source and no other load."""
    tasks = [replace(source.clients, threads=clients)]
    for task in model.tasks:
        if not task.is_reference:
            entries = tuple(replace(e, arrivals=None) for e in task.entries)
            if source.answering is not None and source.answering[0] == task.name:
                entries = (*entries, source.answering[1])
            tasks.append(replace(task, entries=entries))
    return replace(model, tasks=tuple(tasks))
