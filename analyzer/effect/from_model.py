"""What does a change do, as far as the calibrated model of the old version knows?

The new version has the structure of its source and the numbers of the old one's model: of everything that
both do, and of a further call of something the network and lookup times of another call. Work that is in the
new version alone takes no time, and local work that changed takes what it took; what is not known at all (how
often a new loop goes round, which branch is taken how often) stays unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, Literal, NamedTuple

from analyzer.effect.touched import Touched
from analyzer.effect.two_models import TwoModels, refs_of
from analyzer.static.project_version import Version
from analyzer.static.translate import translate
from mup.lqn import EntryRef, Model
from mup.lqn.distributions import Constant
from mup.lqn.mixture import FRONT, in_common_names, mixture
from mup.lqn.model import Activity, Entry, LoadDependence, Precedence, Setup, Task
from mup.lqn.refs import WorkNames

__all__ = ["predicted_from"]

NOTHING: Final = Constant(0.0)


def predicted_from(known: Model, after: Version, touched: Touched) -> TwoModels:
    """Return the model of the old version, and that of the new one as far as the old one tells.

    Args:
        known: The calibrated model of the old version.
        after: The new version.
        touched: What may take another time than before.
    """
    client = known.reference_tasks[0].name
    new = in_common_names(known, translate(after.application, name=known.name, client=client))
    filled = replace(new, tasks=tuple(_filled(task, known, new) for task in new.tasks))
    mixed = mixture(
        known,
        filled,
        entries=refs_of(filled, touched.endpoints),
        deployed=[task.name for task in filled.tasks],
    )
    # Replicates name activities, and those of the old version are in the mixture by the same names.
    uncertainty = known.uncertainty
    return TwoModels(known, mixed, 1 if uncertainty is None else uncertainty.freedom)


class _Source(NamedTuple):
    """A work of the old version that tells the times of one of the new."""

    task: Task
    entry: str
    activity: Activity


_Sources = Mapping[tuple[str, str], _Source]
"""By entry and activity of a task of the new version."""


def _filled(task: Task, known: Model, new: Model) -> Task:
    was = next((each for each in known.tasks if each.name == task.name), None)
    old = {} if was is None else {entry.name: entry for entry in was.entries}
    if was is not None and task.role == "network":
        sources = dict(_exchange_sources(task, was, known, new))
    else:
        sources = dict(_sources(task, old, known))
    entries = tuple(_entry(entry, old.get(entry.name), sources, task.role) for entry in task.entries)
    filled = replace(task, entries=entries)
    if was is None:
        return filled
    return replace(
        filled,
        front=was.front,
        load_dependence=_of_works(was, "load_dependence", WorkNames(entries), sources),
        setup=_of_works(was, "setup", WorkNames(entries), sources),
    )


def _of_works(
    was: Task, field: Literal["load_dependence", "setup"], works: WorkNames, sources: _Sources
) -> Any:
    """Return what load or sleep adds to works of the new version: what it adds to those they are like.

    Of a work of another task only if that knows it at the same rates, or gaps.
    """
    times = getattr(was, field)
    if times is None:
        return None
    added: dict[str, dict[str, Any]] = {"demands": {}, "delays": {}}
    tasks = {source.task.name: source.task for source in sources.values()}
    texts = {name: WorkNames(task.entries).texts for name, task in tasks.items()}
    for kind, found in added.items():
        if FRONT in getattr(times, kind):
            found[FRONT] = getattr(times, kind)[FRONT]
        for pair, source in sources.items():
            theirs = getattr(source.task, field)
            key = texts[source.task.name][source.entry, source.activity.name]
            if theirs is not None and _grid(theirs) == _grid(times) and key in getattr(theirs, kind):
                found[works.texts[pair]] = getattr(theirs, kind)[key]
    return replace(times, **added)


def _grid(times: LoadDependence | Setup) -> tuple[object, ...]:
    if isinstance(times, LoadDependence):
        return times.rates, times.by_thread
    return times.gaps, times.worker, times.core, times.by_thread


def _sources(task: Task, old: Mapping[str, Entry], known: Model) -> Iterator[tuple[tuple[str, str], _Source]]:
    """Yield what tells the times of the works of a service, a client or a database."""
    for entry in task.entries:
        if entry.name not in old:
            continue
        was = known.task(task.name)
        before = {activity.name: activity for activity in old[entry.name].activities}
        for activity in entry.activities:
            if activity.name in before:
                source = _Source(was, entry.name, before[activity.name])
            elif activity.kind in ("registry", "communication"):
                found = _like(activity, was, entry.name, known)
                if found is None:
                    continue
                source = found
            else:
                continue
            yield (entry.name, activity.name), source


def _like(activity: Activity, task: Task, entry: str, known: Model) -> _Source | None:
    """Return the lookup or call that is most like a further one.

    Of those that fit as well, one of the same endpoint: looking up takes clients another time.
    """
    targets = {(call.task, call.entry) for call in activity.calls}
    own = [_Source(task, entry, a) for a in task.entry(entry).activities]
    every = [_Source(each, of.name, a) for each, of, a in known.walk()]
    return max(
        (s for s in own + every if s.activity.kind == activity.kind and s.activity.calibrated),
        key=lambda s: len(targets & {(call.task, call.entry) for call in s.activity.calls}),
        default=None,
    )


def _exchange_sources(
    task: Task, was: Task, known: Model, new: Model
) -> Iterator[tuple[tuple[str, str], _Source]]:
    """Yield what tells the network time of calls: their own, or that of another call of the same thing."""
    old = {entry.name: entry for entry in was.entries}
    for entry in task.entries:
        like = old.get(entry.name)
        if like is None:
            targets = set(_targets(new, entry.name))
            like = next((e for e in old.values() if targets & set(_targets(known, e.name))), None)
            like = like or next(iter(old.values()), None)
        if like is not None and len(like.activities) == 1:
            (activity,) = entry.activities
            yield (entry.name, activity.name), _Source(was, like.name, like.activities[0])


def _entry(entry: Entry, old: Entry | None, sources: _Sources, role: str) -> Entry:
    """Return an entry with the times of its sources; what else is new in an old entry takes none."""
    activities = []
    for activity in entry.activities:
        source = sources.get((entry.name, activity.name))
        if source is not None:
            changed = replace(activity, demand=source.activity.demand, delay=source.activity.delay)
        elif old is None or role == "network":
            changed = activity
        elif activity.kind == "think":
            changed = replace(activity, demand=activity.demand or NOTHING)
        else:
            changed = replace(activity, demand=NOTHING, delay=NOTHING)
        activities.append(changed)
    if old is None:
        return replace(entry, activities=tuple(activities))
    precedences = tuple(_precedence(arc, old) for arc in entry.precedences)
    return replace(entry, activities=tuple(activities), precedences=precedences)


def _precedence(arc: Precedence, old: Entry) -> Precedence:
    """Return an arc with the probabilities or counts of the same one in the old version."""
    same = next((a for a in old.precedences if a.pre == arc.pre and a.fork == arc.fork), None)
    if same is None or len(same.post) != len(arc.post):
        return arc
    return replace(arc, probabilities=same.probabilities, counts=same.counts)


def _targets(model: Model, exchange: str) -> Iterator[EntryRef]:
    """Yield what is called together with an exchange of the network."""
    networks = {task.name for task in model.tasks if task.role == "network"}
    for _, _, activity in model.walk():
        if any(call.task in networks and call.entry == exchange for call in activity.calls):
            yield from (
                EntryRef(call.task, call.entry) for call in activity.calls if call.task not in networks
            )
