"""Put a station from elsewhere into a model.

A station is a model with one task that serves: identified behind a URL, estimated from response times,
fitted, learned, or written by hand. It *replaces* a task (all requests to that task then go to the station),
or it *enters* at an activity: the delay of that activity, which so far stood for it, becomes a call.

What the station brings is its task, the processors that runs on, how sure its numbers are, and where it comes
from. Its own load stays behind: in a composed model requests come from callers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mup.errors import UsageError, did_you_mean
from mup.lqn.composed_uncertainty import (
    STATIONS,
    Moved,
    Split,
    certain_tasks,
    composed_uncertainty,
    work_of,
)
from mup.lqn.distributions import Constant
from mup.lqn.lowered import tasks_behind, tasks_with_sources
from mup.lqn.model import Activity, Call, Entry, Model, Processor, Task, entry_label
from mup.lqn.refs import ActivityRef, Names, WorkNames
from mup.lqn.routing_edits import place_of
from mup.lqn.uncertainty import Uncertainty

__all__ = ["Composition", "certain_tasks", "compose"]


@dataclass(frozen=True, slots=True)
class Composition:
    """A model with a station in it.

    Attributes:
        model: The new model. task: Name of the station's task in it. dropped: Tasks that are not called any
        more, now that the task that called them is replaced; they are gone. served: Which entry of the
        station does the work of each entry of the replaced task, or the only one of
            the station where it entered.
    """

    model: Model
    task: str
    dropped: tuple[str, ...]
    served: Mapping[str, str]


def compose(model: Model, place: str, station: Model, source: str) -> Composition:
    """Put a station into a model.

    Args:
        model: Any; it is not changed.
        place: A task of the model, which is replaced; or an activity of it (``A/epA/:comp_8``), where the
            station enters: by what its delay is longer than the station's work, it remains a delay.
        station: A model with one task that serves; its reference tasks and arrivals do not count.
        source: Where the station comes from, for provenance and messages.

    Raises:
        UsageError: There is no such place, the station has no or several tasks that serve, or it is not
            clear which of its entries serves what.
        UncalibratedError: Where the station enters, how often its activities run is not known.
    """
    server = _server(station, source)
    tasks = [t.name for t in model.tasks]
    if place in tasks:
        return _replaced(model, model.task(place), station, server, source)
    if ":" not in place:
        raise UsageError(
            f"the model has no task {place!r}; {did_you_mean(place, tasks)}",
            hint="name a task to replace it, or an activity such as A/epA/:comp_8 to enter there",
        )
    return _entered(model, place, station, server, source)


def _extras(server: Task, entries: Sequence[Entry], served: Mapping[str, str]) -> dict[str, Any]:
    """Return load dependence and set-up of a task with new names of entries; ``served``: old ones by new."""
    before, after = WorkNames(server.entries).texts, WorkNames(entries).texts
    new: dict[str, list[str]] = {"front": ["front"]}
    for (entry, activity), text in after.items():
        new.setdefault(before[served[entry], activity], []).append(text)

    def moved(of: Mapping[str, Any]) -> dict[str, Any]:
        return {text: seconds for key, seconds in of.items() for text in new.get(key, [])}

    found = {"load_dependence": server.load_dependence, "setup": server.setup}
    return {
        name: None
        if extra is None
        else replace(extra, demands=moved(extra.demands), delays=moved(extra.delays))
        for name, extra in found.items()
    }


def _server(station: Model, source: str) -> Task:
    """Return the only task of a station that serves."""
    servers = [t for t in station.tasks if not t.is_reference]
    if len(servers) != 1:
        names = ", ".join(t.name for t in servers)
        raise UsageError(
            f"a station has one task that serves, this model has {names or 'none'}",
            where=source,
        )
    return servers[0]


def _replaced(model: Model, old: Task, station: Model, server: Task, source: str) -> Composition:
    if old.is_reference:
        raise UsageError(f"{old.name!r} stands for clients, and a station cannot be put in their place")
    served = {entry.name: _matching(entry.name, old.name, server, source) for entry in old.entries}
    processors, processor = _brought(model, station, server, old.name)
    entries = tuple(
        replace(
            _own(server.entry(served[entry.name]), server.name, old.name),
            name=entry.name,
            arrivals=entry.arrivals,
            priority=entry.priority,
        )
        for entry in old.entries
    )
    new = replace(server, name=old.name, role=old.role, processor=processor, load_dependence=None, setup=None)
    new = replace(new, entries=entries, **_extras(server, entries, served))
    tasks = tuple(new if t.name == old.name else t for t in model.tasks)
    dropped = tuple(sorted(_reached(model.tasks) - _reached(tasks)))
    tasks = tuple(t for t in tasks if t.name not in dropped)
    what = {"replaced": {"threads": _plain(old.threads), "replicas": old.replicas}, "dropped": list(dropped)}
    known = composed_uncertainty(model, tasks, station, Moved(server.name, old.name, served))
    composed = _composed(model, tasks, processors, station, old.name, source, what, known)
    return Composition(composed, old.name, dropped, served)


def _entered(model: Model, place: str, station: Model, server: Task, source: str) -> Composition:
    found = place_of(model, place)
    if any(t.name == server.name for t in model.tasks):
        raise UsageError(
            f"the model has a task {server.name!r} already",
            where=source,
            hint="give the station's task another name",
        )
    if len(server.entries) != 1:
        names = ", ".join(e.name for e in server.entries)
        raise UsageError(
            f"which of its entries is called at {place!r}? It has {names}, and must have one", where=source
        )
    entry = replace(server.entries[0], arrivals=None)
    processors, processor = _brought(model, station, server, server.name)
    activity = found.activity
    delay = activity.delay.mean if activity.delay is not None else 0.0
    rest = Constant(max(delay - work_of(entry), 0.0))
    call = Call(task=server.name, entry=entry.name)
    changed = replace(activity, delay=rest, calls=(*activity.calls, call))
    caller = replace(
        found.task,
        entries=tuple(_with_activity(e, changed) if e is found.entry else e for e in found.task.entries),
    )
    tasks = (
        *(caller if t.name == caller.name else t for t in model.tasks),
        replace(server, processor=processor, entries=(entry,)),
    )
    ref = ActivityRef(found.task.name, found.entry.name, activity.name)
    what = {"entered": Names(tasks).activity(ref), "delay": {"before": delay, "after": rest.value}}
    known = composed_uncertainty(
        model,
        tasks,
        station,
        Moved(server.name, server.name, {entry.name: entry.name}),
        Split(ref, delay, rest.value),
    )
    composed = _composed(model, tasks, processors, station, server.name, source, what, known)
    return Composition(composed, server.name, (), {place: entry.name})


def _matching(name: str, task: str, server: Task, source: str) -> str:
    """Return the station's entry that does the work of one of this name: the one so named, or the only."""
    names = [e.name for e in server.entries]
    if name in names:
        return name
    if len(names) == 1:
        return names[0]
    raise UsageError(
        f"which entry serves {entry_label(task, name)!r}? The station has {', '.join(names)}",
        where=source,
        hint="name its entries like those of the task it replaces, or leave it with one",
    )


def _own(entry: Entry, old: str, new: str) -> Entry:
    """Return an entry whose calls to its own task go to the task's new name."""
    activities = tuple(
        replace(a, calls=tuple(replace(c, task=new) if c.task == old else c for c in a.calls))
        for a in entry.activities
    )
    return replace(entry, activities=activities)


def _brought(
    model: Model, station: Model, server: Task, name: str
) -> tuple[tuple[Processor, ...], str | None]:
    """Return the processors the station's task needs, under names that are free, and the one it runs on."""
    taken = {p.name for p in model.processors}
    chain: list[Processor] = []
    needed = server.processor
    while needed is not None:
        chain.append(station.processor(needed))
        needed = chain[-1].parent
    names = {p.name: p.name if p.name not in taken else _free(f"{name}-{p.name}", taken) for p in chain}
    brought = tuple(
        replace(p, name=names[p.name], parent=None if p.parent is None else names[p.parent]) for p in chain
    )
    return brought, None if server.processor is None else names[server.processor]


def _free(name: str, taken: set[str]) -> str:
    number = 2
    candidate = name
    while candidate in taken:
        candidate, number = f"{name}-{number}", number + 1
    return candidate


def _reached(tasks: Iterable[Task]) -> set[str]:
    """Return the names of the tasks that requests can get to."""
    by_name = {t.name: t for t in tasks}
    return tasks_behind(tasks_with_sources(by_name.values()), by_name)


def _with_activity(entry: Entry, activity: Activity) -> Entry:
    return replace(
        entry, activities=tuple(activity if a.name == activity.name else a for a in entry.activities)
    )


def _composed(
    model: Model,
    tasks: tuple[Task, ...],
    processors: tuple[Processor, ...],
    station: Model,
    name: str,
    source: str,
    what: Mapping[str, Any],
    uncertainty: Uncertainty | None,
) -> Model:
    stations = dict(model.provenance.get(STATIONS, {}))
    stations[name] = {"source": source, **what, "provenance": dict(station.provenance)}
    return Model(
        name=model.name,
        processors=(*model.processors, *processors),
        tasks=tasks,
        provenance={**model.provenance, STATIONS: stations},
        uncertainty=uncertainty,
    )


def _plain(threads: float) -> float | str:
    return "inf" if threads == math.inf else threads
