"""How sure is a model with a station in it? As sure as its other parts and the station are, together.

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
from mup.lqn.model import Entry, Model, Task, entry_label, key_parts
from mup.lqn.uncertainty import FACTORS, Replicate, Uncertainty, apply
from mup.lqn.visits import activity_visits

__all__ = ["STATIONS", "Moved", "Split", "certain_tasks", "composed_uncertainty", "work_of"]

STATIONS: Final = "stations"
"""Under this key of a model's provenance: where its stations come from, by task."""

KINDS: Final = (*FACTORS, "probabilities")


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
        activity: Label of the activity.
        delay, rest: Mean seconds before the station entered, and of what remained.
    """

    activity: str
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
    own = _kept(model, tasks, moved.new)
    brought = _brought(station, moved, split)
    work = _work(station, moved, split)
    replicates = tuple(
        _joined(
            own[i % len(own)] if own else Replicate(),
            *(brought[i % len(brought)] if brought else (Replicate(), work)),
            split,
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
    """Return the tasks that the replicates of a composed model take as certain, though nobody knows that.

    These are stations that came without replicates, or all other tasks if only stations came with some. There
    are none in a model without replicates (nothing is known of any task), or without stations.
    """
    stations = model.provenance.get(STATIONS, {})
    if not isinstance(stations, Mapping) or not stations or model.uncertainty is None:
        return ()
    # What is left of a delay where a station entered varies with the station: that says nothing of the rest.
    places = {("delays", s.get("entered")) for s in stations.values() if isinstance(s, Mapping)}
    named = {
        key
        for replicate in model.uncertainty.replicates
        for kind in KINDS
        for key in getattr(replicate, kind)
        if (kind, key) not in places
    }
    if not named:
        return ()
    uncertain = {t.name for t in model.tasks if any(_belongs(key, t) for key in named)}
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


def _belongs(key: str, task: Task) -> bool:
    labels = {label for label, _ in key_parts(key)}
    return key == task.name or any(entry_label(task.name, e.name) in labels for e in task.entries)


def _work(station: Model, moved: Moved, split: Split | None) -> float:
    """Return the seconds that a station works where it entered; nobody asks where it replaced a task."""
    if split is None:
        return 0.0
    (entry,) = set(moved.served.values())
    return work_of(station.task(moved.old).entry(entry))


def _kept(model: Model, tasks: Iterable[Task], station: str) -> tuple[Replicate, ...]:
    """Return what replicates say of tasks that are still there."""
    there = [t for t in tasks if t.name != station]
    labels = {entry_label(t.name, e.name) for t in there for e in t.entries}
    fronts = {t.name for t in there if t.front is not None}

    def kept(replicate: Replicate) -> Replicate:
        return Replicate(
            **{
                kind: {
                    key: value
                    for key, value in getattr(replicate, kind).items()
                    if (
                        key in fronts
                        if kind == "fronts"
                        else any(label in labels for label, _ in key_parts(key))
                    )
                }
                for kind in KINDS
            }
        )

    return _telling(map(kept, () if model.uncertainty is None else model.uncertainty.replicates))


def _brought(station: Model, moved: Moved, split: Split | None) -> list[tuple[Replicate, float]]:
    """Return what a station's replicates say of its task, and how long it works in each, in any order.

    The order depends on the station alone: in two places, it errs in both alike.
    """
    replicates = () if station.uncertainty is None else station.uncertainty.replicates
    renamed = [_renamed(replicate, moved) for replicate in replicates]
    if not _telling(renamed):
        return []
    pairs = [
        (new, _work(apply(station, old), moved, split)) for new, old in zip(renamed, replicates, strict=True)
    ]
    content = json.dumps(model_to_json(station), sort_keys=True)
    random.Random(hashlib.sha256(content.encode()).digest()).shuffle(pairs)
    return pairs


def _telling(replicates: Iterable[Replicate]) -> tuple[Replicate, ...]:
    """Return replicates, or none if they say nothing."""
    found = tuple(replicates)
    return found if any(getattr(r, kind) for r in found for kind in KINDS) else ()


def _renamed(replicate: Replicate, moved: Moved) -> Replicate:
    labels: dict[str, list[str]] = {}
    for new, old in moved.served.items():
        labels.setdefault(entry_label(moved.old, old), []).append(entry_label(moved.new, new))

    def renamed(values: Mapping[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in values.items():
            for label, activity in key_parts(key):
                found.update((f"{new}:{activity}", value) for new in labels.get(label, ()))
        return found

    kinds = {kind: renamed(getattr(replicate, kind)) for kind in KINDS if kind != "fronts"}
    fronts = {moved.new: replicate.fronts[moved.old]} if moved.old in replicate.fronts else {}
    return Replicate(**kinds, fronts=fronts)


def _joined(own: Replicate, brought: Replicate, work: float, split: Split | None) -> Replicate:
    both = Replicate(**{kind: getattr(own, kind) | getattr(brought, kind) for kind in KINDS})
    if split is None:
        return both
    delays = dict(both.delays)
    factor = delays.pop(split.activity, 1.0)
    if split.rest > 0:
        # What was measured is the whole delay: the longer the station works, the shorter is the rest.
        rest = max(split.delay * factor - work, 0.0) / split.rest
        if rest != 1:
            delays[split.activity] = rest
    return replace(both, delays=delays)
