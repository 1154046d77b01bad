"""Uncertainty of a model with a station in it, from that of its parts and of the station.

Both bring replicates: alternatives to their numbers, found independently of each other. A replicate of the
composed model is one of each. Which ones meet does not matter as long as it is by chance: resamples drawn
with the same seed would otherwise go up and down together.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from mup.lqn.json_io import model_to_json
from mup.lqn.model import Entry, Model, Task
from mup.lqn.refs import ActivityRef, Names
from mup.lqn.uncertainty import KINDS, Replicate, Uncertainty, apply
from mup.lqn.visits import activity_visits

__all__ = ["STATIONS", "Moved", "Split", "certain_tasks", "composed_uncertainty", "work_of"]

STATIONS: Final = "stations"
"""Under this key of a model's provenance: where its stations come from, by task."""

OF_TASKS: Final = ("fronts", "setups")
"""Kinds of numbers that go by the task they belong to; the others by an activity."""


@dataclass(frozen=True, slots=True)
class Moved:
    """What the parts of a station are called in the composed model.

    Attributes:
        old, new: Name of its task there and here.
        served: Entry of the station by entry here.
    """

    old: str
    new: str
    served: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Split:
    """A delay that stood for a station: it is the station's work and a rest.

    Attributes:
        activity: Which activity has it.
        delay, rest: Mean seconds before the station entered, and of what remained.
    """

    activity: ActivityRef
    delay: float
    rest: float


def composed_uncertainty(
    model: Model, tasks: Iterable[Task], station: Model, moved: Moved, split: Split | None = None
) -> Uncertainty | None:
    """Return how sure a composed model is; None if neither part knows.

    If only one part has replicates, the numbers of the other are the same in all. If one has fewer, they are
    repeated. A discrepancy is not kept: it was that of other models.

    Args:
        model: Before the station came.
        tasks: Of the composed model.
        station: The station's own model.
        moved: What became of its names.
        split: If it entered where a delay stood for it.
    """
    tasks = tuple(tasks)
    names = Names(tasks)
    own = _kept(model, tasks, moved.new, names)
    brought = _brought(station, moved, split, names)
    work = _work(station, moved, split)
    replicates = tuple(
        _joined(
            own[i % len(own)] if own else Replicate(),
            *(brought[i % len(brought)] if brought else (Replicate(), work)),
            split,
            "" if split is None else names.activity(split.activity),
        )
        for i in range(max(len(own), len(brought)))
    )
    if not replicates:
        return None
    return Uncertainty(replicates=replicates, batches=_batches(own, model, brought, station))


def _batches(own: Sequence[object], model: Model, brought: Sequence[object], station: Model) -> int | None:
    """Return the fewest batches of the parts that have replicates; None if neither says how many it had."""
    known = [
        of.uncertainty.batches for some, of in ((own, model), (brought, station)) if some and of.uncertainty
    ]
    return min((count for count in known if count is not None), default=None)


def certain_tasks(model: Model) -> tuple[str, ...]:
    """Return the tasks that the replicates of a composed model take as certain without evidence.

    These are stations that came without replicates, or all other tasks if only stations came with some. There
    are none in a model without replicates (nothing is known of any task), or without stations.
    """
    stations = model.provenance.get(STATIONS, {})
    if not isinstance(stations, Mapping) or not stations or model.uncertainty is None:
        return ()
    # What is left of a delay where a station entered varies with the station: that says nothing of the rest.
    places = {("delays", s.get("entered")) for s in stations.values() if isinstance(s, Mapping)}
    owners = Names(model.tasks).by_key
    uncertain = {
        key if kind in OF_TASKS else owners[key].task
        for replicate in model.uncertainty.replicates
        for kind in KINDS
        for key in getattr(replicate, kind)
        if (kind, key) not in places
    }
    if not uncertain:
        return ()
    others = {t.name for t in model.tasks if t.name not in stations}
    sure = {name for name in stations if name not in uncertain}
    if not others & uncertain:
        sure |= others
    return tuple(t.name for t in model.tasks if t.name in sure and not t.is_reference)


def work_of(entry: Entry) -> float:
    """Return the mean seconds of an entry's own demands and delays."""
    visits = activity_visits(entry)
    times = ((visits[a.name], t) for a in entry.activities for t in (a.demand, a.delay) if t is not None)
    return math.fsum(visited * t.mean for visited, t in times)


def _work(station: Model, moved: Moved, split: Split | None) -> float:
    """Return the seconds that a station works where it entered; 0 where it replaced a task."""
    if split is None:
        return 0.0
    (entry,) = set(moved.served.values())
    return work_of(station.task(moved.old).entry(entry))


def _kept(model: Model, tasks: Sequence[Task], station: str, names: Names) -> tuple[Replicate, ...]:
    """Return what replicates say of tasks that are still there."""
    there = [t for t in tasks if t.name != station]
    entries = {(t.name, e.name) for t in there for e in t.entries}
    same = {t.name: t.name for t in there}
    keys = {key: names.activity(ref) for key, ref in _keys(model).items() if ref.owner in entries}
    replicates = () if model.uncertainty is None else model.uncertainty.replicates
    return _telling(_under(replicate, keys, same) for replicate in replicates)


def _keys(model: Model) -> dict[str, ActivityRef]:
    """Return the activities of a model by their texts in it."""
    names = Names(model.tasks)
    return {names.activity(ref): ref for ref in names.activities()}


def _under(replicate: Replicate, keys: Mapping[str, str], tasks: Mapping[str, str]) -> Replicate:
    """Return what a replicate says of some activities and tasks, under their new texts."""

    def moved(kind: str) -> dict[str, Any]:
        new = tasks if kind in OF_TASKS else keys
        return {new[key]: value for key, value in getattr(replicate, kind).items() if key in new}

    return Replicate(**{kind: moved(kind) for kind in KINDS})


def _brought(
    station: Model, moved: Moved, split: Split | None, names: Names
) -> list[tuple[Replicate, float]]:
    """Return what a station's replicates say of its task, and how long it works in each, in any order.

    The order depends on the station alone: in two places, it errs in both alike.
    """
    replicates = () if station.uncertainty is None else station.uncertainty.replicates
    # An entry of the station may serve several here; each of them is as sure as it is.
    served: dict[str, list[str]] = {}
    for new, old in moved.served.items():
        served.setdefault(old, []).append(new)
    renamings = [
        {
            key: names.activity(ActivityRef(moved.new, served[ref.entry][place], ref.activity))
            for key, ref in _keys(station).items()
            if ref.task == moved.old and place < len(served.get(ref.entry, ()))
        }
        for place in range(max(map(len, served.values()), default=0))
    ]
    tasks = {moved.old: moved.new}
    renamed = [_together(_under(replicate, keys, tasks) for keys in renamings) for replicate in replicates]
    if not _telling(renamed):
        return []
    pairs = [
        (new, _work(apply(station, old), moved, split)) for new, old in zip(renamed, replicates, strict=True)
    ]
    content = json.dumps(model_to_json(station), sort_keys=True)
    random.Random(hashlib.sha256(content.encode()).digest()).shuffle(pairs)
    return pairs


def _together(replicates: Iterable[Replicate]) -> Replicate:
    """Return one replicate that says what several say of different things."""
    found: dict[str, dict[str, Any]] = {kind: {} for kind in KINDS}
    for replicate in replicates:
        for kind in KINDS:
            found[kind].update(getattr(replicate, kind))
    return Replicate(**found)


def _telling(replicates: Iterable[Replicate]) -> tuple[Replicate, ...]:
    """Return replicates, or none if they say nothing."""
    found = tuple(replicates)
    return found if any(getattr(r, kind) for r in found for kind in KINDS) else ()


def _joined(own: Replicate, brought: Replicate, work: float, split: Split | None, place: str) -> Replicate:
    """Return a replicate of both; ``place``: the text of the activity whose delay was split."""
    both = _together((own, brought))
    if split is None:
        return both
    delays = dict(both.delays)
    factor = delays.pop(place, 1.0)
    if split.rest > 0:
        # What was measured is the whole delay: the longer the station works, the shorter is the rest.
        rest = max(split.delay * factor - work, 0.0) / split.rest
        if rest != 1:
            delays[place] = rest
    return replace(both, delays=delays)
