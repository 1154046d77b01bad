"""Does an endpoint behave differently depending on who calls it, and from where?

The *calling site* of an execution is the operation that caused it: entry of the caller, path the caller took,
and index of the call in that path. It is known from request ids alone (``mup.events.ids.child_id``), so it
does not matter when the reply was picked up. If the paths of an endpoint (or the iterations of its loops)
are not equally frequent for all its calling sites, the entry is split into *variants*: the same activities,
with probabilities and loop counts of their own. Probabilities per calling site survive that way, and so
does the correlation between the path of a caller and the path of what it calls.

Callers come first: a variant of a caller is a calling site of its own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

from analyzer.calibration.matching import (
    Match,
    Matched,
    OperationKey,
    body_counts,
    count_distribution,
    loop_counts,
)
from analyzer.static.translate import PathPlan
from mup.events.ids import child_id
from mup.lqn import Activity, Call, Distribution, Entry, Model, Precedence, entry_label

__all__ = [
    "Behaviour",
    "CallingSite",
    "Table",
    "Variant",
    "calling_sites",
    "differs",
    "redirect",
    "split",
    "variant_name",
    "variants",
    "with_frequencies",
]

SIGNIFICANCE = 1e-3
"""Probability of splitting any entry of a model although its callers make no difference."""

EFFECT = 0.05
"""Total variation below which a difference is not worth a variant."""

FEW = 20
"""A calling site seen less often than this decides nothing; it goes with the majority."""

MAX_VARIANTS = 8


class CallingSite(NamedTuple):
    """The operation that causes executions of an entry.

    Attributes:
        entry: Label of the caller's entry (``A/epA/``, ``User.scenario``).
        variant: Number of the caller's variant, from 1.
        path: Number of the path the caller took.
        operation: The call on that path.
    """

    entry: str
    variant: int
    path: int
    operation: OperationKey


Behaviour: TypeAlias = tuple[int, tuple[tuple[OperationKey, int], ...]]
"""Path, and per loop the iterations in powers of two (0, 1, 2-3, 4-7, ...)."""

Table: TypeAlias = Mapping[CallingSite | None, Mapping[Behaviour, int]]
"""How often executions caused by each site behaved how; the site is None where the caller is not known."""


@dataclass(frozen=True, slots=True)
class Variant:
    """Executions of one entry that are alike.

    Attributes:
        number: From 1; 1 is the one most executions belong to, and the one of every other caller.
        sites: Who causes them.
        taken: Per path the executions.
    """

    number: int
    sites: frozenset[CallingSite]
    taken: tuple[list[Match], ...]


def calling_sites(matched: Mapping[str, Matched]) -> dict[str, Table]:
    """Return for every entry (by label) how its executions behaved, per calling site."""
    caused = _Caused()
    for label, found in matched.items():
        caused.add(label, 1, found.taken)
    return {label: _table(found.taken, caused) for label, found in matched.items()}


def differs(table: Table, *, tests: int = 1) -> bool:
    """Return whether the calling sites of an entry see it behave differently.

    They do if a likelihood-ratio (G) test of independence says so, at 1e-3 divided by the number of tests,
    and a site's behaviour is further than 0.05 (total variation) from that of all sites together. Sites with
    less than 20 executions, and unknown callers, do not take part; rare behaviours are pooled.

    Args:
        table: Executions per calling site and behaviour.
        tests: How many entries are tested.
    """
    rows = [row for site, row in table.items() if site is not None and sum(row.values()) >= FEW]
    if len(rows) < 2:
        return False
    total: Counter[Behaviour] = Counter()
    for row in rows:
        total.update(row)
    rare = {behaviour for behaviour, number in total.items() if number < FEW}
    cells = [_pooled(row, rare) for row in rows]
    columns = _pooled(total, rare)
    everything = sum(columns.values())
    if len(columns) < 2:
        return False
    statistic = 0.0
    furthest = 0.0
    for row in cells:
        share = sum(row.values()) / everything
        distance = 0.0
        for behaviour, expected in columns.items():
            seen = row.get(behaviour, 0)
            if seen:
                statistic += 2 * seen * math.log(seen / (expected * share))
            distance += abs(seen / (share * everything) - expected / everything) / 2
        furthest = max(furthest, distance)
    from scipy.stats import chi2  # noqa: PLC0415  (slow to import; most entries have one caller)

    freedom = (len(cells) - 1) * (len(columns) - 1)
    return furthest > EFFECT and float(chi2.sf(statistic, freedom)) < SIGNIFICANCE / tests


def variants(matched: Mapping[str, Matched]) -> dict[str, tuple[Variant, ...]]:
    """Return the variants of every entry that needs more than one, by label, callers first."""
    order = _callers_first(matched)
    tests = sum(1 for label in order if len(matched[label].plans) > 1 or _has_loops(matched[label])) or 1
    caused = _Caused()
    found: dict[str, tuple[Variant, ...]] = {}
    for label in order:
        taken = matched[label].taken
        table = _table(taken, caused)
        groups = _groups(table, tests) if differs(table, tests=tests) else []
        if len(groups) < 2:
            caused.add(label, 1, taken)
            continue
        number_of = {site: number for number, group in enumerate(groups, 1) for site in group}
        shares: list[tuple[list[Match], ...]] = [tuple([] for _ in taken) for _ in groups]
        for path, matches in enumerate(taken):
            for one in matches:
                site = caused.site(one)
                # A caller that is not known says nothing about any calling site.
                if site is not None:
                    shares[number_of[site] - 1][path].append(one)
        found[label] = tuple(
            Variant(number, frozenset(group), share)
            for number, (group, share) in enumerate(zip(groups, shares, strict=True), 1)
        )
        for variant in found[label]:
            caused.add(label, variant.number, variant.taken)
    return found


def variant_name(entry: str, number: int) -> str:
    """Return the name of a variant of an entry: ``/epB/``, ``/epB/@2``, ``/epB/@3``."""
    return entry if number == 1 else f"{entry}@{number}"


def split(
    model: Model,
    plans: Mapping[tuple[str, str], Sequence[PathPlan]],
    found: Mapping[str, Sequence[Variant]],
) -> Model:
    """Give every variant an entry of its own, and let each calling site call its variant.

    Args:
        model: Calibrated; the times of its entries hold for all their variants.
        plans: From ``translate_with_plan``.
        found: From ``variants``.
    """
    targets: dict[tuple[str, int], list[tuple[CallingSite, str, str]]] = {}
    for label, several in found.items():
        task_name, entry_name = _place(plans, label)
        for variant in several:
            for site in variant.sites:
                if variant.number > 1:
                    target = (site, task_name, variant_name(entry_name, variant.number))
                    targets.setdefault((site.entry, site.variant), []).append(target)
    tasks = []
    for task in model.tasks:
        entries: list[Entry] = []
        for entry in task.entries:
            label = entry_label(task.name, entry.name)
            own = plans.get((task.name, entry.name), ())
            if label not in found:
                entries.append(redirect(entry, own, targets.get((label, 1), ())))
            for variant in found.get(label, ()):
                one = with_frequencies(entry, own, variant.taken)
                one = redirect(one, own, targets.get((label, variant.number), ()))
                entries.append(replace(one, name=variant_name(entry.name, variant.number)))
        tasks.append(replace(task, entries=tuple(entries)))
    return replace(model, tasks=tuple(tasks))


def with_frequencies(entry: Entry, plans: Sequence[PathPlan], taken: Sequence[Sequence[Match]]) -> Entry:
    """Return an entry with the probabilities and loop counts that these executions show.

    Loops nobody came to keep what they have; so does the choice between paths if there is no execution.
    """
    odds: dict[str, tuple[float, ...]] = {}
    counts: dict[str, Distribution] = {}
    everything = sum(len(matches) for matches in taken)
    if len(plans) > 1 and everything:
        odds[entry.start] = tuple(len(matches) / everything for matches in taken)
    for plan, matches in zip(plans, taken, strict=True):
        parts = dict(plan.parts())
        for (place, index), numbers in loop_counts(matches).items():
            counts[parts[place].loops[index].pre] = count_distribution(numbers)
        for (place, index), bodies in body_counts(matches, plan).items():
            loop = parts[place].loops[index]
            if loop.choice and sum(bodies):
                odds[loop.choice] = tuple(b / sum(bodies) for b in bodies)

    def changed(precedence: Precedence) -> Precedence:
        name = precedence.pre[0]
        if precedence.fork == "or" and name in odds:
            return replace(precedence, probabilities=odds[name])
        if precedence.fork == "loop" and name in counts:
            return replace(precedence, counts=(counts[name],))
        return precedence

    return replace(entry, precedences=tuple(changed(p) for p in entry.precedences))


def redirect(
    entry: Entry, plans: Sequence[PathPlan], targets: Iterable[tuple[CallingSite, str, str]]
) -> Entry:
    """Return an entry whose calls at these sites go to the given (task, entry) instead."""
    moved: dict[str, tuple[str, str]] = {}
    for site, task, name in targets:
        place, index = site.operation
        moved[dict(plans[site.path].parts())[place].communication[index]] = (task, name)

    def changed(activity: Activity) -> Activity:
        if activity.name not in moved:
            return activity
        task, name = moved[activity.name]
        return replace(activity, calls=tuple(_to(c, task, name) for c in activity.calls))

    return replace(entry, activities=tuple(changed(a) for a in entry.activities)) if moved else entry


def _to(call: Call, task: str, entry: str) -> Call:
    # The other call of such an activity goes to the network.
    return replace(call, entry=entry) if call.task == task else call


class _Caused:
    """Which operation caused which request."""

    def __init__(self) -> None:
        self._sites: dict[int, CallingSite] = {}

    def add(self, label: str, variant: int, taken: Sequence[Sequence[Match]]) -> None:
        """Note what the executions of one (variant of an) entry caused."""
        for path, matches in enumerate(taken):
            known: dict[OperationKey, CallingSite] = {}
            for one in matches:
                request = one.execution.request
                for step, key in zip(one.execution.steps, one.shape.steps, strict=True):
                    if step.op == "call":
                        site = known.get(key)
                        if site is None:
                            site = known[key] = CallingSite(label, variant, path, key)
                        self._sites[child_id(request, step.seq)] = site

    def site(self, one: Match) -> CallingSite | None:
        """Return what caused an execution."""
        return self._sites.get(one.execution.request)


def _table(taken: Sequence[Sequence[Match]], caused: _Caused) -> dict[CallingSite | None, Counter[Behaviour]]:
    table: dict[CallingSite | None, Counter[Behaviour]] = {}
    for path, matches in enumerate(taken):
        for one in matches:
            iterations: Counter[OperationKey] = Counter()
            for loop in one.shape.loops:
                iterations[loop.loop] += len(loop.bodies)
            behaviour = (path, tuple(sorted((key, n.bit_length()) for key, n in iterations.items())))
            table.setdefault(caused.site(one), Counter())[behaviour] += 1
    return table


def _pooled(row: Mapping[Behaviour, int], rare: set[Behaviour]) -> dict[Behaviour, int]:
    pooled = {behaviour: number for behaviour, number in row.items() if behaviour not in rare}
    rest = sum(number for behaviour, number in row.items() if behaviour in rare)
    return {**pooled, (-1, ()): rest} if rest else pooled


def _groups(table: Table, tests: int) -> list[list[CallingSite]]:
    """Put sites that behave alike into one group, the largest group first."""
    sites = [site for site in table if site is not None]
    sites.sort(key=lambda site: (-sum(table[site].values()), site))
    groups: list[tuple[list[CallingSite], Counter[Behaviour]]] = []
    few = [site for site in sites if sum(table[site].values()) < FEW]
    for site in sites:
        if site in few:
            continue
        row = table[site]
        closest = sorted(groups, key=lambda group: _distance(group[1], row))
        fitting = [g for g in closest if not differs({g[0][0]: g[1], site: row}, tests=tests)]
        if not fitting and len(groups) < MAX_VARIANTS:
            groups.append(([site], Counter(row)))
            continue
        group = (fitting or closest)[0]
        group[0].append(site)
        group[1].update(row)
    groups.sort(key=lambda group: -sum(group[1].values()))
    if groups:
        groups[0][0].extend(few)
    return [group for group, _ in groups]


def _distance(one: Mapping[Behaviour, int], other: Mapping[Behaviour, int]) -> float:
    first, second = sum(one.values()), sum(other.values())
    return sum(abs(one.get(b, 0) / first - other.get(b, 0) / second) for b in {*one, *other}) / 2


def _has_loops(matched: Matched) -> bool:
    return any(part.loops for plan in matched.plans for _, part in plan.parts())


def _callers_first(matched: Mapping[str, Matched]) -> list[str]:
    """Return the labels in an order in which callers come before what they call."""
    order: list[str] = []
    done: set[str] = set()

    def visit(label: str) -> None:
        if label in done or label not in matched:
            return
        done.add(label)
        for plan in matched[label].plans:
            for operation in plan.path.walk():
                if operation.op == "call":
                    visit(operation.target)
        order.append(label)

    for label in matched:
        visit(label)
    return order[::-1]


def _place(plans: Mapping[tuple[str, str], Sequence[PathPlan]], label: str) -> tuple[str, str]:
    return next(key for key in plans if entry_label(*key) == label)
