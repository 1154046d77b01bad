"""What should be made faster? By how much figures move if a line, an endpoint, a query or a pool changes.

A *lever* is something that could be changed; its effect on a figure is simulated (a virtual speed-up, as
Coz does it to a running program: C. Curtsinger, E. Berger, "Coz: finding code that counts with causal
profiling", 2015; here across services, and without slowing anything down), in pairs of runs with and without
the change (`simulator.studies.planning.paired`).

Every endpoint and query is simulated in the order of the work it does, and so are the lines with most
work. Of other lines the effect is that of their endpoint, in proportion to their share in its work: exact for
small changes, where lines use the same processor one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from mup.errors import LimitError, SimulationError
from mup.lqn.edits import with_cores, with_pool
from mup.lqn.machine_speed import MachineSpeed
from mup.lqn.model import Activity, Entry, Model, Task
from mup.lqn.refs import ActivityRef, EntryRef, Names
from mup.lqn.time_edits import TimeKind, with_scaled_time
from mup.lqn.visits import activity_visits, entry_rates
from simulator.figures.result import Figure
from simulator.machine.budget import Budget, Reached
from simulator.studies.planning.paired import Edit, PairedRuns
from simulator.studies.planning.slo import Slo

__all__ = ["FASTER", "Lever", "Levers", "levers"]

FASTER: Final = 0.2
"""Part of its time that something is made faster by."""
LINES: Final = 12
"""Lines that are simulated themselves."""
ENTRIES: Final = 40
"""Endpoints and queries that are simulated."""
NOTHING: Final = 1e-12
"""Seconds, or a share: rounding."""


@dataclass(frozen=True, slots=True)
class Lever:
    """Something that could be changed, and what that does.

    Attributes:
        kind: ``line``, ``endpoint``, ``query``, ``network``, ``other``, ``pool`` or ``cores``.
        name: Of the activity, entry, task or processor, as results name it.
        line: Of the source, where it is known; else 0.
        change: What is changed.
        work: Seconds per cycle that it takes, without what it calls and without waiting; of pools 0.
        effects: By how much each objective's figure moves; the half-width is that of a 95 % interval.
        simulated: False if the effects are the share of a line in those of its endpoint.
    """

    kind: str
    name: str
    line: int
    change: str
    work: float
    effects: tuple[Figure, ...]
    simulated: bool

    def gain(self, slos: Sequence[Slo], which: int) -> float:
        """Return how much better a figure gets: positive is better."""
        mean = self.effects[which].mean
        return mean if slos[which].at_least else -mean

    def to_json(self, slos: Sequence[Slo], figures: Sequence[Figure]) -> dict[str, Any]:
        """Return an object of the list ``levers``."""
        return {
            "kind": self.kind,
            "name": self.name,
            "line": self.line or None,
            "change": self.change,
            "work_per_cycle": self.work,
            "simulated": self.simulated,
            "effects": [
                {
                    "slo": str(slo),
                    **effect.to_json(),
                    "relative": effect.mean / figure.mean if figure.mean else None,
                    "elasticity": None
                    if self.kind in ("pool", "cores") or not figure.mean
                    else effect.mean / figure.mean / -FASTER,
                }
                for slo, effect, figure in zip(slos, self.effects, figures, strict=True)
            ],
        }


@dataclass(frozen=True, slots=True)
class Levers:
    """The levers of a model, those that help most first.

    Attributes:
        slos: What the effects are about.
        ranked_by: Which of the objectives they are ranked by: the one nearest to its limit.
        figures: Of the model as it is, in the same runs.
        found: The levers.
        left_out: Names of what was not simulated for want of time or importance.
        limit: Of wall time, that ended the simulations.
        machine_left_out: Why the intervals do not have the machine's speed in them, though it may vary; "" if
            they have, or it does not.
    """

    slos: tuple[Slo, ...]
    ranked_by: int
    figures: tuple[Figure, ...]
    found: tuple[Lever, ...]
    left_out: tuple[str, ...]
    limit: Reached | None = None
    machine_left_out: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the object under ``explain``."""
        return {
            "faster": FASTER,
            "ranked_by": str(self.slos[self.ranked_by]),
            "figures": [
                {"slo": str(slo), **figure.to_json()}
                for slo, figure in zip(self.slos, self.figures, strict=True)
            ],
            "levers": [lever.to_json(self.slos, self.figures) for lever in self.found],
            "left_out": list(self.left_out),
            "machine_left_out": self.machine_left_out or None,
            "limit": None if self.limit is None else self.limit.to_json(),
        }


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A lever before it is simulated."""

    kind: str
    name: str
    line: int
    change: str
    work: float
    edit: Edit
    owner: str = ""


def levers(
    model: Model,
    slos: Sequence[Slo],
    *,
    machine: MachineSpeed | None = None,
    seed: int = 0,
    workers: int | None = None,
    max_seconds: float,
    progress: Callable[[int, int], None] | None = None,
) -> Levers:
    """Rank what could be changed in a model by what that does to figures.

    Args:
        model: With its load and deployment.
        slos: The objectives whose figures are meant; at least one.
        machine: The speeds its machine may have; None: the one it has in the model.
        seed: Of all simulations.
        workers: Simulations at once; None = one per core.
        max_seconds: Wall time; what is not simulated then is left out.
        progress: Called with (finished, all) levers.

    Raises:
        UncalibratedError: The model lacks numbers.
        LimitError: The time was over before the model itself was simulated.
        SimulationError: The model cannot run under its load.
    """
    budget = Budget("the study of what to make faster", seconds=max_seconds)
    machine_left_out = ""
    try:
        runs = PairedRuns(model, slos, machine=machine, seed=seed, workers=workers, budget=budget)
        before = runs.figures([None])[0]
    except SimulationError as error:
        if machine is None:
            raise
        # It may run at its own speed, if not on the slowest machine.
        machine_left_out = error.message
        runs = PairedRuns(model, slos, seed=seed, workers=workers, budget=budget)
        before = runs.figures([None])[0]
    entries, lines, resources = _candidates(model)
    owners = {c.name: c for c in entries}
    simulated: dict[str, Lever] = {}
    limit: Reached | None = None
    left_out: list[str] = []
    # The only line of an endpoint does what that does.
    alone = {c.owner for c in lines} - {
        c.owner for c in lines if c.work < owners[c.owner].work * (1 - NOTHING)
    }
    chosen = [c for c in lines if c.owner not in alone][:LINES]
    wanted = [*resources, *entries[:ENTRIES], *chosen]
    rest = [c for c in lines if c not in chosen]
    left_out += [c.name for c in entries[ENTRIES:]]
    for number, candidate in enumerate(wanted):
        try:
            after = runs.figures([candidate.edit])[0]
        except LimitError as error:
            limit = error.reached
            left_out += [c.name for c in wanted[number:] if c.kind != "line"]
            rest += [c for c in wanted[number:] if c.kind == "line"]
            break
        except SimulationError:
            left_out.append(candidate.name)  # the changed model cannot run: that is no advice
            continue
        effects = tuple(runs.difference(a, b) for a, b in zip(before, after, strict=True))
        simulated[f"{candidate.kind} {candidate.name}"] = _lever(candidate, effects, simulated=True)
        if progress is not None:
            progress(number + 1, len(wanted))
    by_share = []
    for candidate in rest:
        owner = owners[candidate.owner]
        known = simulated.get(f"{owner.kind} {owner.name}")
        if known is None or owner.work <= NOTHING:
            left_out.append(candidate.name)
            continue
        share = candidate.work / owner.work
        effects = tuple(Figure(share * e.mean, share * e.ci95) for e in known.effects)
        by_share.append(_lever(candidate, effects, simulated=False))
    figures = tuple(runs.figure(values) for values in before)
    limit_ratios = [slo.limit_ratio(figure.mean) for slo, figure in zip(slos, figures, strict=True)]
    ranked_by = limit_ratios.index(max(limit_ratios))
    found = sorted(
        [*simulated.values(), *by_share],
        key=lambda lever: (-lever.gain(slos, ranked_by), lever.kind, lever.name),
    )
    missing = tuple(dict.fromkeys(left_out))
    return Levers(tuple(slos), ranked_by, figures, tuple(found), missing, limit, machine_left_out)


def _lever(candidate: _Candidate, effects: tuple[Figure, ...], *, simulated: bool) -> Lever:
    return Lever(
        candidate.kind, candidate.name, candidate.line, candidate.change, candidate.work, effects, simulated
    )


# What could be changed.

ROLES: Final = {"service": "endpoint", "database": "query", "network": "network"}
BOTH: Final[tuple[TimeKind, ...]] = ("demand", "delay")


def _candidates(model: Model) -> tuple[list[_Candidate], list[_Candidate], list[_Candidate]]:
    """Return entries and lines, each by falling work, and what has a size."""
    names = Names(model.tasks)
    rates: dict[tuple[str, str], float] = {}
    for of_source in entry_rates(model).values():
        for key, rate in of_source.items():
            rates[key] = rates.get(key, 0.0) + rate
    entries, lines = [], []
    for task in model.tasks:
        if task.is_reference:
            continue
        for entry in task.entries:
            rate = rates.get((task.name, entry.name), 0.0)
            if rate == 0:
                continue
            label = names.entries[EntryRef(task.name, entry.name)]
            own = _works(task, entry, rate, names, label)
            work = math.fsum(line.work for line in own)
            if work <= NOTHING:
                continue
            kind = ROLES.get(task.role, "other")
            entries.append(_Candidate(kind, label, 0, _faster(), work, _scaled(label)))
            lines += own
    lines.sort(key=lambda c: (-c.work, c.name))
    entries.sort(key=lambda c: (-c.work, c.name))
    return entries, lines, _resources(model)


def _faster() -> str:
    return f"{100 * FASTER:.0f} % faster"


def _scaled(name: str) -> Edit:
    def edit(model: Model) -> Model:
        return with_scaled_time(model, BOTH, name, 1 - FASTER)

    return edit


def _works(task: Task, entry: Entry, rate: float, names: Names, label: str) -> list[_Candidate]:
    """Return the activities of an entry that take time."""
    visits = activity_visits(entry)
    found = []
    for activity in entry.activities:
        work = rate * visits[activity.name] * _seconds(activity)
        if work > NOTHING:
            name = names.activity(ActivityRef(task.name, entry.name, activity.name))
            found.append(_Candidate("line", name, activity.line, _faster(), work, _scaled(name), label))
    return found


def _seconds(activity: Activity) -> float:
    times = (activity.demand, activity.delay)
    return math.fsum(time.mean for time in times if time is not None)


def _resources(model: Model) -> list[_Candidate]:
    """Return pools and processors that could be larger."""
    found = []
    for task in model.tasks:
        if not task.is_reference and task.threads < math.inf:
            more = int(task.threads) + 1
            edit = partial(with_pool, task=task.name, threads=more)
            found.append(_Candidate("pool", task.name, 0, f"pool {more - 1} -> {more}", 0.0, edit))
    for processor in model.processors:
        if processor.parent is None and processor.cores < math.inf and processor.discipline != "infinite":
            more = int(processor.cores) + 1
            edit = partial(with_cores, processor=processor.name, cores=more)
            found.append(_Candidate("cores", processor.name, 0, f"cores {more - 1} -> {more}", 0.0, edit))
    return found
