"""What does a change do, as far as the calibrated model of the old version knows?

The new version has the structure of its source and the numbers of the old one's model: of everything that
both do, and of a further call of something the network and lookup times of another call. Work that is in the
new version alone takes no time, and local work that changed takes what it took; what is not known at all (how
often a new loop goes round, which branch is taken how often) stays unknown.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Final, TypeVar

from analyzer.effect.touched import Touched
from analyzer.effect.two_models import TwoModels, refs_of
from analyzer.static.project_version import Version
from analyzer.static.translate import translate
from mup.lqn import EntryRef, Model
from mup.lqn.distributions import Constant
from mup.lqn.mixture import in_common_names, mixture
from mup.lqn.model import Activity, Entry, LoadDependence, Precedence, Setup, Task
from mup.lqn.refs import WorkNames

__all__ = ["predicted_from"]

NOTHING: Final = Constant(0.0)
FRONT: Final = "front"

Dependence = TypeVar("Dependence", LoadDependence | None, Setup | None)


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


def _filled(task: Task, known: Model, new: Model) -> Task:
    old = {entry.name: entry for each in known.tasks if each.name == task.name for entry in each.entries}
    if task.role == "network":
        return replace(task, entries=tuple(_exchange(entry, old, known, new) for entry in task.entries))
    entries = tuple(_entry(entry, old.get(entry.name), known) for entry in task.entries)
    filled = replace(task, entries=entries)
    was = next((each for each in known.tasks if each.name == task.name), None)
    if was is None:
        return filled
    keys = {*WorkNames(entries).pairs, FRONT}
    return replace(
        filled,
        front=was.front,
        load_dependence=_of_works(was.load_dependence, keys),
        setup=_of_works(was.setup, keys),
    )


def _of_works(times: Dependence, keys: Collection[str]) -> Dependence:
    """Return what sleep or load adds to works that the new version has, too."""
    if times is None:
        return times
    demands, delays = (
        {key: value for key, value in values.items() if key in keys}
        for values in (times.demands, times.delays)
    )
    return replace(times, demands=demands, delays=delays)


def _entry(entry: Entry, old: Entry | None, known: Model) -> Entry:
    if old is None:
        return entry
    before = {activity.name: activity for activity in old.activities}
    activities = tuple(_activity(a, before.get(a.name), old, known) for a in entry.activities)
    precedences = tuple(_precedence(arc, old) for arc in entry.precedences)
    return replace(entry, activities=activities, precedences=precedences)


def _activity(activity: Activity, old: Activity | None, entry: Entry, known: Model) -> Activity:
    if old is None and activity.kind in ("registry", "communication"):
        targets = {(call.task, call.entry) for call in activity.calls}
        # Of those that fit as well, one of the same endpoint: looking up takes clients another time.
        others = [*entry.activities, *(a for _, _, a in known.walk())]
        old = max(
            (a for a in others if a.kind == activity.kind and a.calibrated),
            key=lambda a: len(targets & {(call.task, call.entry) for call in a.calls}),
            default=None,
        )
    if old is not None:
        return replace(activity, demand=old.demand, delay=old.delay)
    if activity.kind == "think":
        return replace(activity, demand=activity.demand or NOTHING)
    return replace(activity, demand=NOTHING, delay=NOTHING)


def _precedence(arc: Precedence, old: Entry) -> Precedence:
    """Return an arc with the probabilities or counts of the same one in the old version."""
    same = next((a for a in old.precedences if a.pre == arc.pre and a.fork == arc.fork), None)
    if same is None or len(same.post) != len(arc.post):
        return arc
    return replace(arc, probabilities=same.probabilities, counts=same.counts)


def _exchange(entry: Entry, old: Mapping[str, Entry], known: Model, new: Model) -> Entry:
    """Return the network time of a call: its own, or that of another call of the same thing."""
    like = old.get(entry.name)
    if like is None:
        targets = set(_targets(new, entry.name))
        like = next((e for e in old.values() if targets & set(_targets(known, e.name))), None)
        like = like or next(iter(old.values()), None)
    if like is None or len(like.activities) != 1:
        return entry
    (activity,) = entry.activities
    (source,) = like.activities
    return replace(entry, activities=(replace(activity, demand=source.demand, delay=source.delay),))


def _targets(model: Model, exchange: str) -> Iterator[EntryRef]:
    """Yield what is called together with an exchange of the network."""
    networks = {task.name for task in model.tasks if task.role == "network"}
    for _, _, activity in model.walk():
        if any(call.task in networks and call.entry == exchange for call in activity.calls):
            yield from (
                EntryRef(call.task, call.entry) for call in activity.calls if call.task not in networks
            )
