"""Variants of an endpoint by caller and call site, where its behaviour depends on them.

The *calling site* of an execution is the operation that caused it: entry of the caller, path the caller took,
and index of the call in that path. It is known from request ids alone (``mup.events.ids.child_id``), so it
does not matter when the reply was picked up. The chain of calling sites up to the client is the *context* of
an execution. If the paths of an endpoint (or the iterations of its loops, or the bodies of one of its
choices) are not equally frequent in all contexts, or one of its paths takes longer in some of them, it is
split into *variants*: entries with the same activities, and with probabilities, loop counts and times
(``analyzer.calibration.variant_times``) of their own; and so is whatever lies between it and where the
contexts part. What happens per calling site survives that way, and so does the correlation between the path
of a caller and the path of what it calls.

What does not survive: that two calls of one execution tend to take the same path, or equally long, if the
caller's own path does not depend on it; and that queries of one name take longer for some callers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

from scipy.special import chdtrc

from analyzer.calibration.matching import (
    Match,
    Matched,
    OperationKey,
    body_counts,
    count_distribution,
    loop_counts,
)
from analyzer.calibration.own_times import OwnTimes, own_time, times_differ
from analyzer.static.translate import PathPlan
from mup.events.ids import attempt_of, child_id
from mup.lqn import Activity, Call, Distribution, Entry, Model, Precedence, entry_label

__all__ = [
    "Behaviour",
    "CallingSite",
    "Table",
    "Variant",
    "behaviour",
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
"""A caller seen less often than this decides nothing; it goes with those it resembles most."""

HARDLY = 5
"""A caller seen less often than this is compared with none; it goes with the majority."""

MAX_VARIANTS = 8
"""Of the paths of one endpoint by who called it; rarer callers share one."""


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

Aspects: TypeAlias = Mapping[Any, Counter[Any]]
"""How often executions behaved how, in several respects: as a whole, and at each choice."""

Times: TypeAlias = Mapping[int, OwnTimes]
"""How long the work of executions took, by path."""

Table: TypeAlias = Mapping[Any, Mapping[Any, int]]
"""How often executions behaved how, per calling site or context; None where the caller is not known."""


@dataclass(frozen=True, slots=True)
class Variant:
    """Executions of one entry that are alike.

    Attributes:
        number: From 1; 1 is the one most executions belong to, and the one of every other caller.
        sites: Who causes them.
        taken: Per path the executions.
        own_times: Executions of other variants of the entry take longer, or less long.
    """

    number: int
    sites: frozenset[CallingSite]
    taken: tuple[list[Match], ...]
    own_times: bool = False


def calling_sites(matched: Mapping[str, Matched]) -> dict[str, dict[CallingSite | None, Counter[Behaviour]]]:
    """Return for every entry (by label) how its executions behaved, per calling site."""
    tables: dict[str, dict[CallingSite | None, Counter[Behaviour]]] = {label: {} for label in matched}
    for context in _contexts(matched):
        site = None
        if context.caller is not None:
            site = CallingSite(context.caller.label, 1, context.path, context.operation)
        tables[context.label].setdefault(site, Counter()).update(context.behaviours)
    return tables


def differs(
    table: Table, *, tests: int = 1, significance: float = SIGNIFICANCE, effect: float = EFFECT
) -> bool:
    """Return whether an entry behaves differently for different callers.

    It does if a likelihood-ratio (G) test of independence says so, and if the behaviour in one row is far
    from that of all together. Rows with less than 20 executions, and unknown callers, do not take part; rare
    behaviours are pooled.

    Args:
        table: Executions per caller and behaviour.
        tests: How many entries are tested.
        significance: Probability of finding a difference in any of them where there is none.
        effect: Total variation below which a difference does not count.
    """
    rows = [row for caller, row in table.items() if caller is not None and sum(row.values()) >= FEW]
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
        for behaviour, seen in row.items():
            statistic += 2 * seen * math.log(seen / (columns[behaviour] * share))
        furthest = max(furthest, _distance(row, columns))
    freedom = (len(cells) - 1) * (len(columns) - 1)
    return furthest > effect and float(chdtrc(freedom, statistic)) < significance / tests


def variants(matched: Mapping[str, Matched]) -> dict[str, tuple[Variant, ...]]:
    """Return the variants of every entry that needs more than one, by label, callers first.

    Args:
        matched: The good executions of every entry, clients' scenarios included, by label.
    """
    contexts = _contexts(matched)
    by_label: dict[str, list[_Context]] = {}
    for context in contexts:
        by_label.setdefault(context.label, []).append(context)
    tests = sum(
        len({behaviour for row in table.values() for behaviour in row}) > 1
        for own in by_label.values()
        for table in _by_aspect({number: c.aspects for number, c in enumerate(own)})
    )
    tests += sum(
        sum(path in context.times for context in own) > 1
        for own in by_label.values()
        for path in range(own[0].paths)
    )
    own_times: set[str] = set()
    for label, own in by_label.items():
        known = {number: c for number, c in enumerate(own) if c.caller is not None}
        table = {number: _Row(context.aspects, context.times) for number, context in known.items()}
        if _differ(table, tests):
            for group, numbers in enumerate(_groups(table, tests), 1):
                for number in numbers:
                    known[number].group = group
        if _times_differ(table, tests):
            own_times.add(label)
    for context in reversed(contexts):
        # Callers come first in the list, so here whatever a context calls is finished.
        context.kind = (context.group, frozenset(context.unusual))
        if context.caller is not None and context.kind != USUAL:
            context.caller.unusual.add((context.path, context.operation, context.label, context.kind))
    found: dict[str, tuple[Variant, ...]] = {}
    for label, own in by_label.items():
        executions: Counter[_Kind] = Counter()
        for context in own:
            if context.caller is not None:
                executions[context.kind] += sum(context.behaviours.values())
        kinds = [kind for kind, _ in executions.most_common(MAX_VARIANTS)]
        for context in own:
            context.variant = kinds.index(context.kind) + 1 if context.kind in kinds else 1
        if len(kinds) > 1:
            apart = label in own_times
            found[label] = tuple(_variant(n, own, own_times=apart) for n in range(1, len(kinds) + 1))
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

    Loops that are not reached keep their numbers; so does the choice between paths if there is no execution.
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
            inside = parts[place].inside[index]
            if inside.choice and sum(bodies):
                odds[inside.choice] = tuple(b / sum(bodies) for b in bodies)

    def changed(precedence: Precedence) -> Precedence:
        name = precedence.pre[0]
        if precedence.fork == "or" and name in odds:
            return replace(precedence, probabilities=odds[name])
        if precedence.repeats and name in counts:
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


_Kind: TypeAlias = tuple[int, frozenset[Any]]
"""Group of a context by its own behaviour, and which of its calls lead to an unusual kind."""

USUAL: _Kind = (1, frozenset())


@dataclass(eq=False, slots=True)
class _Context:
    """A chain of calling sites; the executions of one entry that it caused.

    Attributes:
        label: The entry.
        caller: The chain without its last element; None if the caller is not known, or there is none.
        path, operation: The last element: the call on the path that the caller took.
    """

    label: str
    caller: _Context | None = None
    path: int = 0
    operation: OperationKey = ((), 0)
    taken: dict[int, list[Match]] = field(default_factory=dict)
    paths: int = 0
    behaviours: Counter[Behaviour] = field(default_factory=Counter)
    decisions: dict[tuple[int, OperationKey], Counter[int]] = field(default_factory=dict)
    times: dict[int, OwnTimes] = field(default_factory=dict)
    group: int = 1
    unusual: set[Any] = field(default_factory=set)
    kind: _Kind = USUAL
    variant: int = 1

    @property
    def aspects(self) -> Aspects:
        """How often its executions behaved how: as a whole, and at each choice (path and operation)."""
        return {None: self.behaviours, **self.decisions}


def _contexts(matched: Mapping[str, Matched]) -> list[_Context]:
    """Return all contexts with their executions, callers before what they call."""
    contexts: dict[tuple[object, ...], _Context] = {}
    caused: dict[int, tuple[_Context, int, OperationKey]] = {}
    for label in _callers_first(matched):
        for path, matches in enumerate(matched[label].taken):
            for one in matches:
                request = one.execution.request
                origin = caused.get(request)
                key = (label,) if origin is None else (id(origin[0]), *origin[1:], label)
                context = contexts.get(key)
                if context is None:
                    context = _Context(label) if origin is None else _Context(label, *origin)
                    context.paths = len(matched[label].plans)
                    contexts[key] = context
                context.taken.setdefault(path, []).append(one)
                context.behaviours[behaviour(path, one)] += 1
                context.times.setdefault(path, OwnTimes()).add(own_time(one.execution))
                for decision in one.shape.choices:
                    context.decisions.setdefault((path, decision.choice), Counter())[decision.body] += 1
                for step, operation in zip(one.execution.steps, one.shape.steps, strict=True):
                    if step.op == "call":
                        for number in range(one.execution.operations[step.seq].attempt + 1):
                            seq = attempt_of(step.seq, number)
                            caused[child_id(request, seq)] = (context, path, operation)
    return list(contexts.values())


def behaviour(path: int, one: Match) -> Behaviour:
    """Return how an execution behaved that took this path."""
    if not one.shape.loops:
        return path, ()
    iterations: Counter[OperationKey] = Counter()
    for loop in one.shape.loops:
        iterations[loop.loop] += len(loop.bodies)
    return path, tuple(sorted((key, n.bit_length()) for key, n in iterations.items()))


def _variant(number: int, contexts: Iterable[_Context], *, own_times: bool) -> Variant:
    own = [c for c in contexts if c.variant == number and c.caller is not None]
    sites = frozenset(
        CallingSite(c.caller.label, c.caller.variant, c.path, c.operation)
        for c in own
        if c.caller is not None
    )
    taken = tuple([m for c in own for m in c.taken.get(path, ())] for path in range(own[0].paths))
    return Variant(number, sites, taken, own_times)


def _pooled(row: Mapping[Behaviour, int], rare: set[Behaviour]) -> dict[Behaviour, int]:
    pooled = {behaviour: number for behaviour, number in row.items() if behaviour not in rare}
    rest = sum(number for behaviour, number in row.items() if behaviour in rare)
    return {**pooled, (-1, ()): rest} if rest else pooled


@dataclass(slots=True)
class _Row:
    """What the executions of a context, or of several, were like."""

    aspects: Aspects
    times: Times

    @property
    def size(self) -> int:
        return int(self.aspects[None].total())

    def joined(self, other: _Row) -> _Row:
        """Return what both together were like."""
        names = dict.fromkeys((*self.aspects, *other.aspects))
        paths = dict.fromkeys((*self.times, *other.times))
        nothing: Counter[Any] = Counter()
        return _Row(
            {name: self.aspects.get(name, nothing) + other.aspects.get(name, nothing) for name in names},
            {p: self.times.get(p, OwnTimes()).joined(other.times.get(p, OwnTimes())) for p in paths},
        )


def _by_aspect(table: Mapping[int, Aspects]) -> list[dict[int, Counter[Any]]]:
    """Return a table per aspect."""
    names = dict.fromkeys(name for aspects in table.values() for name in aspects)
    return [{row: aspects.get(name, Counter()) for row, aspects in table.items()} for name in names]


def _differ(table: Mapping[int, _Row], tests: int) -> bool:
    aspects = _by_aspect({number: row.aspects for number, row in table.items()})
    return any(differs(one, tests=tests) for one in aspects) or _times_differ(table, tests)


def _times_differ(table: Mapping[int, _Row], tests: int) -> bool:
    by_path: dict[int, list[OwnTimes]] = {}
    for row in table.values():
        for path, times in row.times.items():
            if times.count >= FEW:
                by_path.setdefault(path, []).append(times)
    # Where nothing can differ there is no test, and no caller beside another one.
    return any(times_differ(rows, chance=SIGNIFICANCE / max(1, tests)) for rows in by_path.values())


def _far(one: _Row, other: _Row) -> float:
    """Return the distance in the aspect in which two rows differ most, 0 to 1."""
    behaviours = [
        _distance(row, other.aspects[name])
        for name, row in one.aspects.items()
        if row and other.aspects.get(name)
    ]
    times = [seen.distance(other.times[path]) for path, seen in one.times.items() if path in other.times]
    return max(behaviours + times)


def _groups(table: Mapping[int, _Row], tests: int) -> list[list[int]]:
    """Put rows that behave alike into one group, the largest group first."""
    groups: list[tuple[list[int], _Row]] = []
    for number in sorted((r for r in table if table[r].size >= FEW), key=lambda r: (-table[r].size, r)):
        row = table[number]
        closest = sorted(range(len(groups)), key=lambda g: _far(groups[g][1], row))
        fitting = [g for g in closest if not _differ({0: groups[g][1], 1: row}, tests)]
        if not fitting and len(groups) < MAX_VARIANTS:
            groups.append(([number], row))
            continue
        at = (fitting or closest)[0]
        groups[at] = ([*groups[at][0], number], groups[at][1].joined(row))
    groups.sort(key=lambda group: -group[1].size)
    for number in (r for r in table if table[r].size < FEW):
        alike = [_far(row, table[number]) for _, row in groups]
        groups[alike.index(min(alike)) if table[number].size >= HARDLY else 0][0].append(number)
    return [group for group, _ in groups]


def _distance(one: Mapping[Behaviour, int], other: Mapping[Behaviour, int]) -> float:
    first, second = sum(one.values()), sum(other.values())
    return sum(abs(one.get(b, 0) / first - other.get(b, 0) / second) for b in {*one, *other}) / 2


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
