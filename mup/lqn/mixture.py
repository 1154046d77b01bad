"""One model made of two versions of it: of each entry and task, the old one or the new one.

Both versions have to call the same things by the same names (``in_common_names``). What a mixture takes from
one version is exactly what that version has, so two models that share an entry have its numbers, and the
replicates of these, in common: whatever differs between them comes from what was taken from the other
version.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, Literal, TypeVar

from mup.lqn.edits import with_admission, with_pool, with_replicas
from mup.lqn.matching import in_names_of
from mup.lqn.model import Entry, LoadDependence, Model, Processor, Task
from mup.lqn.refs import ActivityRef, EntryRef, Names, WorkNames
from mup.lqn.uncertainty import Replicate, Uncertainty

__all__ = ["FRONT", "in_common_names", "mixture"]

T = TypeVar("T")

BY_ACTIVITY: Final = ("demands", "delays", "demand_spreads", "delay_spreads", "probabilities", "counts")
"""What replicates say about activities."""
BY_STRUCTURE: Final = ("probabilities", "counts")
PASSIVE: Final = ("network", "database")
"""Roles of tasks whose entries belong to those who call them."""
FRONT: Final = "front"
"""What load dependence and set-up call both halves of a front together."""


def in_common_names(old: Model, new: Model) -> Model:
    """Return the new version with everything that it has in common with the old one called as there.

    Unlike `mup.lqn.matching.in_names_of` with all that refers to activities by name: also records of paths,
    and replicates.
    """
    tasks = in_names_of(old, new)
    names: dict[ActivityRef, ActivityRef] = {}
    renamed = []
    for was, now in zip(new.tasks, tasks, strict=True):
        entries = []
        for one, other in zip(was.entries, now.entries, strict=True):
            pairs = {a.name: b.name for a, b in zip(one.activities, other.activities, strict=True)}
            names |= {
                ActivityRef(was.name, one.name, a): ActivityRef(now.name, other.name, b)
                for a, b in pairs.items()
            }
            exchanges = {
                a.entry: b.entry
                for x, y in zip(one.activities, other.activities, strict=True)
                for a, b in zip(x.calls, y.calls, strict=True)
            }
            entries.append(replace(other, paths=tuple(_record(p, pairs, exchanges) for p in other.paths)))
        renamed.append(replace(now, entries=tuple(entries)))
    known = new.uncertainty
    if known is not None:
        before, after = Names(new.tasks), Names(renamed)

        def text(key: str) -> str:
            return after.activity(names[before.by_key[key]])

        known = replace(known, replicates=tuple(_rekeyed(draw, text) for draw in known.replicates))
    return replace(new, tasks=tuple(renamed), uncertainty=known)


def _record(
    path: Mapping[str, Any], names: Mapping[str, str], exchanges: Mapping[str, str]
) -> Mapping[str, Any]:
    """Return the record of a path with other names of activities."""

    def changed(value: Any, known: Mapping[str, str]) -> Any:
        if isinstance(value, str):
            return known.get(value, value)
        if isinstance(value, Mapping):
            return {key: changed(each, known) for key, each in value.items()}
        return [changed(each, known) for each in value]

    fields = ("first", "segments", "registry", "communication", "think", "loops", "choices", "tasks")
    found = {field: changed(path[field], names) for field in fields if field in path}
    if "exchange" in path:
        found["exchange"] = changed(path["exchange"], exchanges)
    return {**path, **found}


def _rekeyed(draw: Replicate, text: Callable[[str], str]) -> Replicate:
    changed = {kind: {text(key): value for key, value in getattr(draw, kind).items()} for kind in BY_ACTIVITY}
    return replace(draw, **changed)


def mixture(
    old: Model,
    new: Model,
    *,
    entries: Collection[EntryRef] = (),
    deployed: Collection[str] = (),
    running: Collection[str] = (),
    gone: bool = True,
) -> Model:
    """Return a model of parts of two versions.

    Args:
        old: A version.
        new: Another one, in names of the old (``in_common_names``).
        entries: Those of services and clients that are taken from the new version, with the exchanges and
            queries that they use. What only one version has is taken from it.
        deployed: Tasks that have the pool, replicas and admission of the new version.
        running: Tasks that run as in the new version: processor and front are taken from there.
        gone: Whether what only the old version has is in it, which then may never be asked.
    """
    taken = frozenset(entries)
    before, after = ({t.name: t for t in m.tasks} for m in (old, new))
    tasks = {}
    for name in dict.fromkeys((*after, *(before if gone else ()))):
        task = after.get(name) or before[name]
        if task.role not in PASSIVE:
            tasks[name] = _active(before.get(name), after.get(name), taken, run=name in running, gone=gone)
    used = {target for task in tasks.values() for _, target in _calls(task)}
    passive = {task.name for model in (old, new) for task in model.tasks if task.role in PASSIVE}
    targets = {
        target
        for model in (old, new)
        for task in model.tasks
        for entry, target in _calls(task)
        if target.task in passive and EntryRef(task.name, entry) in taken
    }
    for name in dict.fromkeys((*after, *before)):
        task = after.get(name) or before[name]
        if task.role in PASSIVE:
            found = _passive(name, before.get(name), after.get(name), targets, None if gone else used)
            if found is not None:
                tasks[name] = found
    processors = _processors(old, new, tasks, running)
    mixed = Model(
        name=new.name,
        processors=processors,
        tasks=tuple(tasks.values()),
        provenance=old.provenance,
        uncertainty=_uncertainty(old, new, tuple(tasks.values()), taken, targets, running),
    )
    for name in deployed:
        if name in before and name in after and before[name].role == "service":
            mixed = _redeployed(mixed, after[name])
    return mixed


def _redeployed(model: Model, like: Task) -> Model:
    task = model.task(like.name)
    if task.threads != like.threads:
        model = with_pool(model, like.name, like.threads)
    if task.replicas != like.replicas:
        model = with_replicas(model, like.name, like.replicas)
    if task.admission != like.admission:
        model = with_admission(model, like.name, like.admission)
    return model


def _calls(task: Task) -> Iterator[tuple[str, EntryRef]]:
    """Yield what the entries of a task call, with the entry."""
    for entry in task.entries:
        for activity in entry.activities:
            for call in activity.calls:
                yield entry.name, EntryRef(call.task, call.entry)


def _active(
    old: Task | None, new: Task | None, taken: Collection[EntryRef], *, run: bool, gone: bool
) -> Task:
    """Return a service or a client."""
    if old is None or new is None:
        only = new if old is None else old
        assert only is not None  # noqa: S101 - one version has it
        return only
    known = {entry.name: entry for entry in old.entries}
    entries = [
        new_entry if new_entry.name not in known or EntryRef(new.name, new_entry.name) in taken
        else known[new_entry.name]
        for new_entry in new.entries
    ]  # fmt: skip
    there = {entry.name for entry in new.entries}
    entries += [entry for entry in old.entries if gone and entry.name not in there]
    mixed = replace(old, entries=tuple(entries), load_dependence=None, setup=None)
    if run:
        mixed = replace(mixed, processor=new.processor, front=new.front)
    from_new = {e.name for e in entries if EntryRef(new.name, e.name) in taken or e.name not in known}
    return replace(
        mixed,
        load_dependence=_added("load_dependence", old, new, mixed.entries, from_new, run=run),
        setup=_added("setup", old, new, mixed.entries, from_new, run=run),
    )


def _passive(
    name: str,
    old: Task | None,
    new: Task | None,
    taken: Collection[EntryRef],
    used: Collection[EntryRef] | None,
) -> Task | None:
    """Return the network or a database; None if nothing of it is used.

    Args:
        name: Of the task.
        old: The old version; None = it has none.
        new: The new one; likewise.
        taken: Entries that come from the new version.
        used: Those that are wanted; None = all.
    """
    known = {} if old is None else {entry.name: entry for entry in old.entries}
    now = {} if new is None else {entry.name: entry for entry in new.entries}
    entries = []
    for each in dict.fromkeys((*now, *known)):
        ref = EntryRef(name, each)
        if used is None or ref in used:
            entries.append(now[each] if each in now and (each not in known or ref in taken) else known[each])
    whole = old if old is not None else new
    if whole is None or not entries:
        return None
    from_new = {e.name for e in entries if e.name not in known or EntryRef(name, e.name) in taken}
    mixed = replace(whole, entries=tuple(entries), load_dependence=None, setup=None)
    both, changed = ((whole, whole), set[str]()) if old is None or new is None else ((old, new), from_new)
    added = _added("load_dependence", *both, mixed.entries, changed, run=False)
    return replace(mixed, load_dependence=added)


def _added(
    field: Literal["load_dependence", "setup"],
    old: Task,
    new: Task,
    entries: tuple[Entry, ...],
    from_new: Collection[str],
    *,
    run: bool,
) -> Any:
    """Return what load or sleep adds to times: nothing if the old version does not know it."""
    one, other = getattr(old, field), getattr(new, field)
    if one is None:
        return None
    if isinstance(one, LoadDependence) and other is not None and len(other.rates) != len(one.rates):
        other = None
    demands, delays = (
        _keyed(
            (old, getattr(one, kind)),
            (new, {} if other is None else getattr(other, kind)),
            entries,
            from_new,
            run=run,
        )
        for kind in ("demands", "delays")
    )
    return replace(one, demands=demands, delays=delays)


def _keyed(
    old: tuple[Task, Mapping[str, T]],
    new: tuple[Task, Mapping[str, T]],
    entries: tuple[Entry, ...],
    from_new: Collection[str],
    *,
    run: bool,
) -> dict[str, T]:
    """Return what is known per activity of a mixture of two versions of a task."""
    texts = WorkNames(entries).texts
    found: dict[str, T] = {}
    for (task, values), is_new in ((old, False), (new, True)):
        pairs = WorkNames(task.entries).pairs
        for key, value in values.items():
            if key not in pairs:
                if key == FRONT and is_new == run:
                    found[key] = value
            elif pairs[key] in texts and (pairs[key][0] in from_new) == is_new:
                found[texts[pairs[key]]] = value
    return found


def _processors(
    old: Model, new: Model, tasks: Mapping[str, Task], running: Collection[str]
) -> tuple[Processor, ...]:
    """Return the processors that are needed, those of the old version where it has them.

    A part of a processor that a task has for itself comes from the version that the task runs as.
    """
    known = {p.name: p for p in new.processors} | {p.name: p for p in old.processors}
    for name in running:
        place = next((task.processor for task in new.tasks if task.name == name), None)
        if place is not None and all(t.processor != place for t in new.tasks if t.name != name):
            known[place] = new.processor(place)
    needed: set[str] = set()
    for task in tasks.values():
        place = task.processor
        while place is not None and place not in needed:
            needed.add(place)
            place = known[place].parent
    needed |= {p.name for p in known.values() if p.parent is None}
    return tuple(p for p in known.values() if p.name in needed)


def _uncertainty(
    old: Model,
    new: Model,
    tasks: tuple[Task, ...],
    taken: Collection[EntryRef],
    targets: Collection[EntryRef],
    running: Collection[str],
) -> Uncertainty | None:
    """Return how sure the numbers are: the k-th replicate is made of the k-th of both versions."""
    if old.uncertainty is None:
        return None
    names = Names(tasks)
    known = set(names.activities())
    was = {EntryRef(task.name, entry.name) for task in old.tasks for entry in task.entries}
    from_new = {ref for ref in names.entries if ref in taken or ref in targets or ref not in was}
    fronts = {task.name for task in tasks if task.front is not None}
    there = {task.name for task in old.tasks}
    before, after = Names(old.tasks), Names(new.tasks)
    draws = []
    theirs = () if new.uncertainty is None else new.uncertainty.replicates
    # A new version whose times are those of the old one is as sure as that is.
    borrowed = not theirs
    for one, other in zip(old.uncertainty.replicates, theirs or old.uncertainty.replicates, strict=False):
        kinds: dict[str, dict[str, Any]] = {kind: {} for kind in BY_ACTIVITY}
        sources = ((one, before.by_key, False), (other, before.by_key if borrowed else after.by_key, True))
        for draw, by_key, is_new in sources:
            for kind, values in kinds.items():
                if is_new and borrowed and kind in BY_STRUCTURE:
                    continue
                for key, value in getattr(draw, kind).items():
                    ref = by_key[key]
                    if ref in known and (ref.owner in from_new) == is_new:
                        values[names.activity(ref)] = value
        factors = {
            name: value
            for draw, is_new in ((one, False), (other, True))
            for name, value in draw.fronts.items()
            if name in fronts and (name in running or name not in there) == is_new
        }
        setups = {task.name: one.setups[task.name] for task in tasks if task.name in one.setups}
        draws.append(Replicate(fronts=factors, setups=setups, **kinds))
    return replace(old.uncertainty, replicates=tuple(draws))
