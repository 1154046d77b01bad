"""How much of a change comes from which line?

One changed thing at a time is taken from the new version, everything else from the old one, and the mixture
is simulated with the same random numbers as the old version. What the figure moves by is the share of that
thing; shares need not add up to the whole change, for two things that fill the same pool do more together.

Endpoints that the same lines changed are one thing. If several lines changed one endpoint, its operations
are told apart by what they call: what the calls of one endpoint or query cost is what the figure falls by
without them, in either version. Local work is what changes when work that both versions have takes the times
of the new one.

The interval of what a thing does is that of a difference of runs with the same random numbers, as for the
whole change (`analyzer.effect.paired`): of the mean of some seeds, and of some replicates of the calibration.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final

from analyzer.effect.paired import Effect, FigureKey, figures_of, interval_of
from analyzer.effect.touched import DONE, Touched
from analyzer.static.project_version import Difference
from mup.lqn.distributions import Constant
from mup.lqn.mixture import mixture
from mup.lqn.model import Entry, Model, entry_label
from mup.lqn.path_steps import Step, routes
from mup.lqn.refs import EntryRef
from mup.lqn.uncertainty import Replicate, apply

__all__ = ["Share", "shares"]

MOST_THINGS: Final = 20
"""Changed things that are told apart; the others are one."""
SEEDS: Final = 4
DRAWS: Final = 8
"""Replicates of the calibration that are simulated."""
NOTHING: Final = Constant(0.0)
FIGURES: Final = ("mean", "p95")


@dataclass(frozen=True, slots=True)
class Share:
    """What one changed thing does to the cycle alone.

    Attributes:
        differences: What it is, each with its place in the new version.
        effect: By figure, (with it - without it) / before.
        interval: By figure, the ends of its 95 % interval.
        share: By figure, the effect as a part of the whole change; None where that is not beyond doubt.
    """

    differences: tuple[Difference, ...]
    effect: dict[str, float]
    interval: dict[str, tuple[float, float]]
    share: dict[str, float | None]

    def to_json(self) -> dict[str, Any]:
        """Return the object of ``mup compare --json``."""
        return {
            "differences": [one.to_json() for one in self.differences],
            "effect": dict(self.effect),
            "interval": {figure: list(ends) for figure, ends in self.interval.items()},
            "share": dict(self.share),
        }


@dataclass(frozen=True, slots=True)
class _Thing:
    """A changed thing: what it does is the sum of the figures of models, each with a sign."""

    differences: tuple[Difference, ...]
    terms: tuple[tuple[int, Model], ...]


def shares(
    before: Model,
    after: Model,
    found: Sequence[Difference],
    touched: Touched,
    whole: Effect,
    *,
    freedom: int | None = None,
) -> list[Share]:
    """Return what each changed thing does, those that do most first.

    Args:
        before: The old version.
        after: The new one, in the same names.
        found: The differences.
        touched: What they touch.
        whole: What they do together.
        freedom: Degrees of freedom of what the replicates say; None = as their number.

    Raises:
        SimulationError: A mixture cannot be simulated under the load.
    """
    things = list(_things(before, after, found, touched))
    if len(things) == 1:
        ranges = {figure: whole.figures[FigureKey("", figure)].relative for figure in FIGURES}
        return [_share(things[0].differences, {f: (r.mean, r.low, r.high) for f, r in ranges.items()}, whole)]
    worlds = [(before, after, things)] * SEEDS
    for one, other in _draws(before, after):
        drawn = apply(before, one), apply(after, other)
        worlds.append((*drawn, list(_things(*drawn, found, touched))))
    seeds = [whole.seeds[number % len(whole.seeds)] for number in range(len(worlds))]
    runs: list[tuple[Model, int]] = []
    for (old, _, parts), seed in zip(worlds, seeds, strict=True):
        runs.append((old, seed))
        runs += [(model, seed) for thing in parts for _, model in thing.terms]
    values = iter(figures_of(runs, whole.horizon))
    # By thing and figure, one of each world.
    effects: list[dict[str, list[float]]] = [{figure: [] for figure in FIGURES} for _ in things]
    for _, _, parts in worlds:
        base = next(values)
        for thing, alone in zip(parts, effects, strict=True):
            terms = [(sign, next(values)) for sign, _ in thing.terms]
            for figure in FIGURES:
                key = FigureKey("", figure)
                alone[figure].append(math.fsum(sign * each[key] for sign, each in terms) / base[key])
    draws = len(worlds) - SEEDS
    most = max(1, (draws or SEEDS) - 1)
    freedom = most if freedom is None or not draws else min(freedom, most)
    result = []
    for thing, alone in zip(things, effects, strict=True):
        ranged = {}
        for figure, each in alone.items():
            mean, half = interval_of(each[:SEEDS], each[SEEDS:], freedom)
            ranged[figure] = mean, mean - half, mean + half
        result.append(_share(thing.differences, ranged, whole))
    return sorted(result, key=lambda share: -abs(share.effect["mean"]))


def _draws(before: Model, after: Model) -> list[tuple[Replicate, Replicate]]:
    """Return replicates that were made of the same draw of the measurements."""
    if before.uncertainty is None or after.uncertainty is None:
        return []
    both = zip(before.uncertainty.replicates, after.uncertainty.replicates, strict=False)
    return list(islice(both, DRAWS))


def _share(
    differences: tuple[Difference, ...], ranged: dict[str, tuple[float, float, float]], whole: Effect
) -> Share:
    parts: dict[str, float | None] = {}
    for figure, (value, _, _) in ranged.items():
        changed = whole.figures[FigureKey("", figure)]
        parts[figure] = value / changed.relative.mean if changed.sure else None
    return Share(
        differences,
        effect={figure: mean for figure, (mean, _, _) in ranged.items()},
        interval={figure: (low, high) for figure, (_, low, high) in ranged.items()},
        share=parts,
    )


def _things(before: Model, after: Model, found: Sequence[Difference], touched: Touched) -> Iterator[_Thing]:
    """Yield what changed: of each service its deployment, and what was changed by the same lines."""
    there = {task.name for task in before.tasks}
    for task in after.tasks:
        about = tuple(one for one in found if one.kind == "deployment" and task.name in one.subjects)
        if about and task.name in there:
            run = {task.name} & touched.redeployed
            own = [EntryRef(task.name, e.name) for e in task.entries] if run else []
            mixed = mixture(before, after, entries=own, deployed={task.name}, running=run)
            yield _Thing(about, ((1, mixed), (-1, before)))
    by_lines: dict[tuple[int, ...], list[EntryRef]] = {}
    for task in after.tasks:
        for entry in task.entries:
            label = entry_label(task.name, entry.name)
            lines = tuple(n for n, one in enumerate(found) if one.kind in DONE and label in one.subjects)
            if lines:
                by_lines.setdefault(lines, []).append(EntryRef(task.name, entry.name))
    groups = list(by_lines.items())
    if len(groups) > MOST_THINGS:
        last = groups[MOST_THINGS - 1 :]
        lines = tuple(sorted({n for some, _ in last for n in some}))
        groups[MOST_THINGS - 1 :] = [(lines, [ref for _, refs in last for ref in refs])]
    for lines, refs in groups:
        about = tuple(found[n] for n in lines)
        yield from (
            _inside(before, after, about, refs[0])
            if len(about) > 1 and len(refs) == 1
            else [_Thing(about, ((1, mixture(before, after, entries=refs)), (-1, before)))]
        )


def _inside(before: Model, after: Model, about: tuple[Difference, ...], ref: EntryRef) -> Iterator[_Thing]:
    """Yield what several lines changed in one endpoint."""
    mixed = mixture(before, after, entries=[ref])
    old, new = before.task(ref.task).entry(ref.entry), mixed.task(ref.task).entry(ref.entry)
    rest = list(about)
    counted: list[tuple[int, Model]] = []
    for target in dict.fromkeys(step.target for entry in (new, old) for step in _asking(entry)):
        mine = tuple(one for one in rest if one.kind == "calls" and one.text.startswith(f"{target} "))
        if mine:
            rest = [one for one in rest if one not in mine]
            terms: tuple[tuple[int, Model], ...] = (
                (1, mixed),
                (-1, _with(mixed, ref, _without(new, target))),
                (-1, before),
                (1, _with(before, ref, _without(old, target))),
            )
            counted += terms
            yield _Thing(mine, terms)
    work = tuple(one for one in rest if one.kind == "local work")
    if work and len(work) < len(about):
        rest = [one for one in rest if one not in work]
        terms = ((1, mixed), (-1, _with(mixed, ref, _with_times_of(old, new))))
        counted += terms
        yield _Thing(work, terms)
    if rest:
        others = ((1, mixed), (-1, before), *((-sign, model) for sign, model in counted))
        yield _Thing(tuple(rest), others)


def _asking(entry: Entry) -> Iterator[Step]:
    for route in routes(entry):
        for step, _ in route.walk():
            if step.op in ("call", "query"):
                yield step


def _without(entry: Entry, target: str) -> Entry:
    """Return an entry whose calls of something take no time and ask nothing."""
    names = {
        name
        for step in _asking(entry)
        if step.target == target
        for name in (step.registry, step.communication)
        if name
    }
    return _changed(entry, names)


def _changed(entry: Entry, muted: Collection[str]) -> Entry:
    activities = tuple(
        replace(a, demand=NOTHING, delay=NOTHING, calls=()) if a.name in muted else a
        for a in entry.activities
    )
    return replace(entry, activities=activities)


def _with_times_of(old: Entry, new: Entry) -> Entry:
    """Return the new entry with the times of the old one for local work that both have."""
    known = {activity.name: activity for activity in old.activities if activity.kind in ("local", "after")}
    activities = tuple(
        replace(a, demand=known[a.name].demand, delay=known[a.name].delay) if a.name in known else a
        for a in new.activities
    )
    return replace(new, activities=activities)


def _with(model: Model, ref: EntryRef, entry: Entry) -> Model:
    task = model.task(ref.task)
    entries = tuple(entry if e.name == ref.entry else e for e in task.entries)
    return replace(model, uncertainty=None).with_task(replace(task, entries=entries))
