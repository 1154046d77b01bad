"""Size of a model.

Counts follow Table 3 of Garbi's thesis. They depend on few quantities: services, endpoints, paths, calls
and queries on them, endpoints with several paths. Paths with equal sequences of operations count once.
Three views:

- *Table 3*: what a workload reaches and was observed; databases are opaque (no query entry), one database
  task; the branches of a fork or join count as one arc.
- *full*: the same paths with every query, every arc and every database counted.
- *all paths*: as full, with everything the source can do, reached or not.

A choice inside a path (the thesis has none) counts as two OR-nodes, where its branches part and where they
meet, with an arc per end; each branch, and what lies behind the choice, is an activity more. What else mup
adds to the thesis's form (activities after the response, variants of an entry per calling site) is not
counted. A model that did not
come from source code has no paths; it is counted element by element.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from mup.lqn.lowered import Graph, Lowered
from mup.lqn.model import Entry, Model, Task
from mup.lqn.refs import Names

__all__ = ["Size", "Statistics", "reached_entries", "statistics"]


@dataclass(frozen=True, slots=True)
class Size:
    """Counts of one view, in the order of Table 3."""

    tasks: int
    entries: int
    activities: int
    nodes: int
    or_nodes: int
    arcs: int
    paths: int


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counts of a model.

    Attributes:
        table3: As the thesis counts.
        correct_arcs: Arcs of the Table 3 view with every branch of a fork or join counted.
        full: With queries and databases.
        all_paths: With unreached endpoints and unobserved paths too.
    """

    table3: Size
    correct_arcs: int
    full: Size
    all_paths: Size

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object of ``mup stats --json``."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class _Path:
    """What matters of a path: calls and queries, and how many of each are waited for; branches of choices."""

    key: tuple[object, ...]
    calls: int
    calls_joined: int
    queries: int
    queries_joined: int
    targets: frozenset[str]
    choices: int
    branches: int


def statistics(model: Model) -> Statistics:
    """Return the size of a model in all views."""
    if not any(entry.paths for task in model.tasks for entry in task.entries):
        size = _elements(model)
        return Statistics(table3=size, correct_arcs=size.arcs, full=size, all_paths=size)
    reached = reached_entries(model)
    observed = []
    for task, variants in _endpoints(model):
        paths = [p for e in variants if (task.name, e.name) in reached for p in _observed(e)]
        if any((task.name, e.name) in reached for e in variants):
            # Variants have the same paths, and those with equal operations count once anyway.
            observed.append((task.name, _merged(paths)))
    everything = [(task.name, _merged(variants[0].paths)) for task, variants in _endpoints(model)]
    table3, correct_arcs = _table3(observed)
    names = Names(model.tasks)
    return Statistics(table3, correct_arcs, _full(observed, names), _full(everything, names))


_VARIANT = re.compile(r"@\d+$")


def _endpoints(model: Model) -> Iterator[tuple[Task, list[Entry]]]:
    """Yield every endpoint, with all entries it was split into for its callers (``/epB/``, ``/epB/@2``)."""
    for task in model.tasks:
        if task.role == "service":
            endpoints: dict[str, list[Entry]] = {}
            for entry in task.entries:
                endpoints.setdefault(_VARIANT.sub("", entry.name), []).append(entry)
            for variants in endpoints.values():
                yield task, variants


def _probabilities(entry: Entry) -> list[float | None]:
    """Return the probability of each path of an entry, None where it was never measured."""
    for precedence in entry.precedences:
        if precedence.pre == (entry.start,) and precedence.fork == "or":
            if precedence.probabilities is None:
                return [None] * len(entry.paths)
            chosen = dict(zip(precedence.post, precedence.probabilities, strict=True))
            return [chosen.get(str(path.get("first"))) for path in entry.paths]
    return [None] * len(entry.paths)


def _observed(entry: Entry) -> list[Mapping[str, Any]]:
    """Return the paths that were taken, without branches that were not; all if nothing was measured."""
    odds = zip(entry.paths, _probabilities(entry), strict=True)
    taken = [path for path, share in odds if share is None or share > 0]
    possible = possible_activities(entry)
    return [_pruned(path, possible) if "choices" in path else path for path in taken]


def _pruned(path: Mapping[str, Any], possible: set[str]) -> Mapping[str, Any]:
    """Return a path without the bodies of its choices that begin with an impossible activity.

    What is gone leaves None behind, for operations are known by their index.
    """
    choices: dict[str, list[list[str]]] = {
        place: [segments if segments[0] in possible else [] for segments in bodies]
        for place, bodies in path["choices"].items()
    }
    operations: list[Mapping[str, Any] | None] = []
    for operation in path["operations"]:
        gone = False
        if "inside" in operation:
            around, body = operation["inside"]
            bodies = choices.get(str(around))
            gone = operations[around] is None or (bodies is not None and not bodies[body])
        operations.append(None if gone else operation)
    return {**path, "operations": operations, "choices": choices}


def reached_entries(model: Model) -> set[tuple[str, str]]:
    """Return every (task, entry) that requests of clients or from outside can arrive at.

    Without any source of requests everything is reached. Branches of probability 0 lead nowhere, neither do
    loops and calls repeated 0 times.
    """
    lowered = Lowered(model)
    if not lowered.sources:
        return {(task.name, entry.name) for task in model.tasks for entry in task.entries}
    return lowered.reached()


def possible_activities(entry: Entry) -> set[str]:
    """Return the activities of an entry that no branch of probability 0 (or loop of count 0) cuts off."""
    return set(Graph(entry).reached)


def _merged(paths: Iterable[Mapping[str, Any]]) -> list[_Path]:
    """Return the paths that differ in what they do, whatever branch of the source they took."""
    found: dict[tuple[object, ...], _Path] = {}
    for record in paths:
        operations = {i: o for i, o in enumerate(record["operations"]) if o is not None}
        key = (
            *((o["op"], o["target"], o["of"], *o.get("inside", ())) for o in operations.values()),
            record.get("ends", "return"),
        )
        waited = {o["of"] for o in operations.values() if o["op"] == "get"}
        calls = [i for i, o in operations.items() if o["op"] == "call"]
        queries = [i for i, o in operations.items() if o["op"] == "query"]
        choices = record.get("choices", {})
        branches = [sum(map(bool, choices[str(i)])) for i, o in operations.items() if o["op"] == "choice"]
        found[key] = _Path(
            key=key,
            calls=len(calls),
            calls_joined=sum(i in waited for i in calls),
            queries=len(queries),
            queries_joined=sum(i in waited for i in queries),
            targets=frozenset(operations[i]["target"] for i in queries),
            choices=len(branches),
            branches=sum(branches),
        )
    return list(found.values())


def _table3(endpoints: list[tuple[str, list[_Path]]]) -> tuple[Size, int]:
    services = len({task for task, _ in endpoints})
    paths = [path for _, found in endpoints for path in found]
    several = sum(len(found) > 1 for _, found in endpoints)
    calls, joined = sum(p.calls for p in paths), sum(p.calls_joined for p in paths)
    choices, branches = sum(p.choices for p in paths), sum(p.branches for p in paths)
    arcs = len(endpoints) + len(paths) + 2 * (choices + branches)
    size = Size(
        tasks=services + 2,
        entries=len(endpoints) + calls,
        activities=len(paths) + 3 * calls + joined + several + choices + branches,
        nodes=len(endpoints) + calls + joined,
        or_nodes=len(endpoints) + 2 * choices,
        # Per call: into the fork, out of it (both branches as one), registry to call, two calls; per join:
        # into it (both branches as one), out of it.
        arcs=arcs + 5 * calls + 2 * joined,
        paths=len(paths),
    )
    return size, arcs + 6 * calls + 3 * joined


def _full(endpoints: list[tuple[str, list[_Path]]], names: Names) -> Size:
    services = len({task for task, _ in endpoints})
    paths = [path for _, found in endpoints for path in found]
    several = sum(len(found) > 1 for _, found in endpoints)
    calls, queries = sum(p.calls for p in paths), sum(p.queries for p in paths)
    joined, fetched = sum(p.calls_joined for p in paths), sum(p.queries_joined for p in paths)
    choices, branches = sum(p.choices for p in paths), sum(p.branches for p in paths)
    targets = {target for p in paths for target in p.targets}
    databases = {names.database(target) for target in targets}
    return Size(
        tasks=services + bool(calls) + len(databases),
        entries=len(endpoints) + calls + len(targets),
        activities=len(paths) + 3 * (calls + queries) + joined + fetched + several + choices + branches,
        nodes=len(endpoints) + calls + queries + joined + fetched,
        or_nodes=len(endpoints) + 2 * choices,
        # A query calls only the database: one arc less than a call.
        arcs=len(endpoints)
        + len(paths)
        + 6 * calls
        + 5 * queries
        + 3 * (joined + fetched)
        + 2 * (choices + branches),
        paths=len(paths),
    )


def _elements(model: Model) -> Size:
    """Count the elements of a model that did not come from source code; clients are not counted.

    A loop is a node like a fork, and so is a fan-out; a call is one arc however often it is made, and so
    is a forward.
    """
    tasks = [task for task in model.tasks if not task.is_reference]
    entries = [entry for task in tasks for entry in task.entries]
    precedences = [p for entry in entries for p in entry.precedences]
    forks = [p for p in precedences if len(p.post) > 1 or p.repeats]
    joins = [p for p in precedences if len(p.pre) > 1]
    calls = sum(len(a.calls) for entry in entries for a in entry.activities)
    calls += sum(len(entry.forwards) for entry in entries)
    arcs = sum(
        1 if len(p.pre) == len(p.post) == 1 and not p.repeats else len(p.pre) + len(p.post)
        for p in precedences
    )
    return Size(
        tasks=len(tasks),
        entries=len(entries),
        activities=sum(len(entry.activities) for entry in entries),
        nodes=len(forks) + len(joins),
        or_nodes=sum(p.fork == "or" for p in forks) + sum(p.join == "or" for p in joins),
        # Entry to its first activity, between activities (through a node: one in or out per branch), calls.
        arcs=len(entries) + arcs + calls,
        paths=0,
    )
