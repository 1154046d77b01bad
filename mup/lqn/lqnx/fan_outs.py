"""Spell out fan-outs, for which lqnx has no word: a choice between widths, each a fork of as many copies."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Final

from mup.lqn.distributions import Constant, Distribution, Geometric
from mup.lqn.graph_rules import reached
from mup.lqn.lqnx.flows import flow_ends
from mup.lqn.lqnx.losses import Losses, free_name
from mup.lqn.model import Activity, Entry, Model, Precedence

__all__ = ["without_fan_outs"]

RARE: Final = 1e-4
"""Probability of wider fan-outs that are written as the widest one."""
COPIES: Final = 2000
"""Activities that all copies of a branch may take, at most."""
NOTHING: Final = Constant(0.0)


def without_fan_outs(model: Model, losses: Losses) -> Model:
    """Return the model with every fan-out spelt out; what is lost by that is added to ``losses``."""
    tasks = tuple(
        replace(task, entries=tuple(_spelt(entry, task.name, losses) for entry in task.entries))
        for task in model.tasks
    )
    return model if tasks == model.tasks else replace(model, tasks=tasks, uncertainty=None)


def _spelt(entry: Entry, task: str, losses: Losses) -> Entry:
    where = f"tasks[{task!r}].entries[{entry.name!r}]"
    while fan := _innermost(entry):
        place = task, entry.name, fan.pre[0]
        spot = f"{where}: the width of the fan-out behind {fan.pre[0]!r}"
        width = losses.measured(fan.counts[0], place, spot, Constant(0))
        entry = _Spelling(entry, fan, width, losses, where).entry()
    return entry


def _innermost(entry: Entry) -> Precedence | None:
    """Return a fan-out with no other one in its branch; None if there is none."""
    fans = [p for p in entry.precedences if p.fork == "fan-out"]
    for fan in fans:
        inside = _branch(entry, fan)
        if not any(other.pre[0] in inside for other in fans):
            return fan
    return None


def _branch(entry: Entry, fan: Precedence) -> set[str]:
    """Return the activities of the branch of a fan-out."""
    return reached({name: p.post for p in entry.precedences for name in p.pre}, fan.bodies[0])


class _Spelling:
    """One fan-out of an entry, written as a choice between widths."""

    def __init__(
        self, entry: Entry, fan: Precedence, width: Distribution, losses: Losses, where: str
    ) -> None:
        self._entry, self._fan, self._width = entry, fan, width
        self._losses = losses
        self._where = f"{where}: the fan-out behind {fan.pre[0]!r}"
        self._inside = _branch(entry, fan)
        self._ends, self._before_loops = flow_ends(entry, fan.bodies[0])
        self._taken = {a.name for a in entry.activities}
        self._activities: list[Activity] = []
        self._arcs: list[Precedence] = []

    def entry(self) -> Entry:
        """Return the entry without it."""
        fan, losses = self._fan, self._losses
        chances = self._chances()
        copies = sum(width for width, chance in chances if chance > 0) * len(self._inside)
        if copies > COPIES:
            what = f"its widths have {copies} activities together, more than {COPIES}"
            losses.problem(what, self._where)
            chances = [(0, 1.0)]  # to go on: there may be other problems
        if fan.limit is not None and chances[-1][0] > fan.limit:
            losses.nearly(f"at most {fan.limit} copies at once", "all at once", self._where)
        losses.note(f"{self._where} is written as a choice between its widths")
        behind = self._add("fan_end") if fan.continuation is None else fan.continuation
        ends = []
        starts = []
        for width, chance in chances:
            if chance > 0:
                first = self._add(f"fan_{width}")
                starts.append((first, chance))
                ends.append(self._of_width(first, width))
        if len(starts) == 1:
            self._arcs += [
                replace(fan, post=(starts[0][0],), fork="sequence", counts=(), first=None, limit=None)
            ]
            self._arcs += [Precedence(pre=(ends[0],), post=(behind,))]
        else:
            self._arcs += [
                replace(
                    fan,
                    post=tuple(name for name, _ in starts),
                    fork="or",
                    probabilities=tuple(chance for _, chance in starts),
                    counts=(),
                    first=None,
                    limit=None,
                ),
                Precedence(pre=tuple(ends), post=(behind,), join="or"),
            ]
        kept = [a for a in self._entry.activities if a.name not in self._inside]
        arcs = [p for p in self._entry.precedences if p is not fan and not self._inside.intersection(p.pre)]
        return replace(
            self._entry,
            activities=(*kept, *self._activities),
            precedences=(*arcs, *self._arcs),
            paths=(),
        )

    def _chances(self) -> list[tuple[int, float]]:
        """Return widths, ascending, and how likely they are."""
        width = self._width
        if not isinstance(width, Geometric):
            values = getattr(width, "values", None) or (width.mean,)
            return [(int(w), n / len(values)) for w, n in sorted(Counter(values).items())]
        if width.mean == 0:
            return [(0, 1.0)]
        ratio = width.mean / (1 + width.mean)
        widest = math.ceil(math.log(RARE) / math.log(ratio))
        self._losses.nearly(
            "a width that is geometric",
            f"no wider than {widest}, with what is left of its probability",
            self._where,
        )
        return [*((n, (1 - ratio) * ratio**n) for n in range(widest)), (widest, ratio**widest)]

    def _add(self, name: str) -> str:
        name = free_name(name, self._taken)
        self._taken.add(name)
        self._activities.append(Activity(name=name, demand=NOTHING, delay=NOTHING))
        return name

    def _of_width(self, start: str, width: int) -> str:
        """Add so many copies behind an activity; return the one behind them."""
        first = self._fan.first
        if width == 0:
            return start
        copies = [self._copy(f"#{width}.{number}") for number in range(1, width + 1)]
        if first is None or first >= width:
            end = self._add(f"fan_{width}_end")
            several = width > 1
            self._arcs += [
                Precedence(
                    pre=(start,), post=tuple(b for b, _ in copies), fork="and" if several else "sequence"
                ),
                Precedence(
                    pre=tuple(e for _, e in copies), post=(end,), join="and" if several else "sequence"
                ),
            ]
            return end
        own = self._add(f"fan_{width}_wait")
        self._arcs.append(Precedence(pre=(start,), post=(own, *(b for b, _ in copies)), fork="and"))
        if first == 0:
            return own
        end = self._add(f"fan_{width}_end")
        pre = (own, *(e for _, e in copies))
        self._arcs.append(Precedence(pre=pre, post=(end,), join="and", quorum=first + 1))
        return end

    def _copy(self, suffix: str) -> tuple[str, str]:
        """Add a copy of the branch; return its first and its last activity."""
        names = {}
        for activity in self._entry.activities:
            if activity.name in self._inside:
                name = free_name(activity.name + suffix, self._taken)
                self._taken.add(name)
                names[activity.name] = name
                self._activities.append(replace(activity, name=name))
        arcs = [
            replace(p, pre=tuple(names[n] for n in p.pre), post=tuple(names[n] for n in p.post))
            for p in self._entry.precedences
            if p.pre[0] in names
        ]
        start = names[self._fan.bodies[0]]
        ends = [names[n] for n in self._ends]
        looping = {names[n] for n in self._before_loops}
        for number, arc in enumerate(arcs):
            if arc.pre[0] in looping:
                ends.append(self._add(f"fan{suffix}_looped"))
                arcs[number] = replace(arc, post=(*arc.post, ends[-1]))
        self._arcs += arcs
        if len(ends) == 1:
            return start, ends[0]
        last = self._add(f"fan{suffix}_end")
        self._arcs.append(Precedence(pre=tuple(sorted(ends)), post=(last,), join="or"))
        return start, last
