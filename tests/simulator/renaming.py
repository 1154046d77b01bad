"""The same model under other names: of its tasks, entries and activities."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mup.lqn import Activity, ActivityRef, Entry, EntryRef, Model, Names, Precedence, Replicate, Task
from mup.lqn.refs import CallRef, JoinRef, WorkNames

__all__ = ["Renaming", "nasty"]

PARTS = (
    "a",
    "b",
    ":",
    "/",
    ".",
    " -> ",
    "&",
    "->",
    ">",
    '"',
    "'",
    " ",
    "front.request",
    "forward",
    "join ",
    "[",
)
"""What names are made of: what stands between names elsewhere, and what results say beside names."""


def nasty(random_: random.Random, count: int) -> list[str]:
    """Return different names that are hard to tell apart once they stand in one text."""
    found: dict[str, None] = {}
    while len(found) < count:
        found["".join(random_.choices(PARTS, k=random_.randint(1, 3)))] = None
    return list(found)


@dataclass(frozen=True, slots=True)
class Renaming:
    """New names of everything in a model."""

    tasks: Mapping[str, str]
    entries: Mapping[tuple[str, str], str]
    activities: Mapping[tuple[str, str, str], str]

    @classmethod
    def of(cls, model: Model, seed: int) -> Renaming:
        """Return nasty names for a model."""
        drawn = random.Random(seed)
        tasks = _pairs([t.name for t in model.tasks], drawn)
        entries: dict[tuple[str, str], str] = {}
        activities: dict[tuple[str, str, str], str] = {}
        for task in model.tasks:
            for name, new in _pairs([e.name for e in task.entries], drawn).items():
                entries[task.name, name] = new
                old = [a.name for a in task.entry(name).activities]
                for activity, other in _pairs(old, drawn).items():
                    activities[task.name, name, activity] = other
        return cls(tasks, entries, activities)

    def entry(self, ref: EntryRef) -> EntryRef:
        """Return what an entry is called now."""
        return EntryRef(self.tasks[ref.task], self.entries[ref])

    def activity(self, ref: ActivityRef) -> ActivityRef:
        """Return what an activity is called now."""
        return ActivityRef(*self.entry(ref.owner), self.activities[ref])

    def model(self, model: Model) -> Model:
        """Return the model under its new names."""
        tasks = tuple(self._task(task) for task in model.tasks)
        sure = model.uncertainty
        if sure is not None:
            before, after = Names(model.tasks), Names(tasks)
            keys = {before.activity(r): after.activity(self.activity(r)) for r in before.activities()}
            sure = replace(sure, replicates=tuple(self._replicate(r, keys) for r in sure.replicates))
        return replace(model, tasks=tasks, uncertainty=sure)

    def _task(self, task: Task) -> Task:
        entries = tuple(self._entry(task.name, entry) for entry in task.entries)
        load_dependence = task.load_dependence
        before, after = WorkNames(task.entries).texts, WorkNames(entries).texts
        keys = {
            text: after[self.entries[task.name, e], self.activities[task.name, e, a]]
            for (e, a), text in before.items()
        }
        if load_dependence is not None:
            load_dependence = replace(
                load_dependence,
                demands={keys.get(k, k): v for k, v in load_dependence.demands.items()},
                delays={keys.get(k, k): v for k, v in load_dependence.delays.items()},
            )
        setup = task.setup
        if setup is not None:
            setup = replace(
                setup,
                demands={keys.get(k, k): v for k, v in setup.demands.items()},
                delays={keys.get(k, k): v for k, v in setup.delays.items()},
            )
        return replace(
            task, name=self.tasks[task.name], entries=entries, load_dependence=load_dependence, setup=setup
        )

    def _entry(self, task: str, entry: Entry) -> Entry:
        def new(names: Iterable[str]) -> tuple[str, ...]:
            return tuple(self.activities[task, entry.name, name] for name in names)

        def arc(old: Precedence) -> Precedence:
            return replace(old, pre=new(old.pre), post=new(old.post))

        def target(old: Any) -> Any:
            return replace(old, task=self.tasks[old.task], entry=self.entries[old.task, old.entry])

        def activity(old: Activity) -> Activity:
            (name,) = new([old.name])
            return replace(old, name=name, calls=tuple(map(target, old.calls)))

        return replace(
            entry,
            name=self.entries[task, entry.name],
            start=new([entry.start])[0],
            activities=tuple(map(activity, entry.activities)),
            precedences=tuple(map(arc, entry.precedences)),
            forwards=tuple(map(target, entry.forwards)),
        )

    def _replicate(self, old: Replicate, keys: Mapping[str, str]) -> Replicate:
        kinds = ("demands", "delays", "probabilities", "counts")
        moved = {kind: {keys[k]: v for k, v in getattr(old, kind).items()} for kind in kinds}
        return Replicate(**moved, fronts={self.tasks[name]: v for name, v in old.fronts.items()})

    def labels(self, model: Model) -> dict[str, dict[str, str]]:
        """Return, per group of a result, the texts of the renamed model by those of the model."""
        before, after = Names(model.tasks), Names(self.model(model).tasks)
        found: dict[str, dict[str, str]] = {
            "tasks": dict(self.tasks),
            "entries": {label: after.entries[self.entry(ref)] for ref, label in before.entries.items()},
            "activities": {before.activity(r): after.activity(self.activity(r)) for r in before.activities()},
            "calls": {},
            "joins": {},
        }
        for ref in before.entries:
            for what in ("front.request", "front.reply"):
                old, new = before.beside(ref, what), after.beside(self.entry(ref), what)
                found["activities"][before.activity(old)] = after.activity(new)
        for task in model.tasks:
            sources = (e for e in task.entries if e.arrivals is not None)
            for one in sources:
                ref = EntryRef(task.name, one.name)
                old_name = task.name if task.is_reference else before.source(ref)
                new_name = self.tasks[task.name] if task.is_reference else after.source(self.entry(ref))
                found["calls"][f"-> {old_name}"] = f"-> {new_name}"
            for one in task.entries:
                owner = EntryRef(task.name, one.name)
                places = [(ActivityRef(*owner, a.name), c) for a in one.activities for c in a.calls]
                calls = [(place, self.activity(place), EntryRef(c.task, c.entry)) for place, c in places]
                calls += [
                    (
                        before.beside(owner, "forward"),
                        after.beside(self.entry(owner), "forward"),
                        EntryRef(f.task, f.entry),
                    )
                    for f in one.forwards
                ]
                for place, moved, to in calls:
                    text = before.call(CallRef(place, to))
                    found["calls"][text] = after.call(CallRef(moved, self.entry(to)))
                for arc in one.precedences:
                    pre = tuple(self.activities[*owner, name] for name in arc.pre)
                    text = before.join(JoinRef(owner, arc.pre))
                    found["joins"][text] = after.join(JoinRef(self.entry(owner), pre))
        return found


def _pairs(old: list[str], drawn: random.Random) -> dict[str, str]:
    return dict(zip(old, nasty(drawn, len(old)), strict=True))
