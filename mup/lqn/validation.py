"""The rules every model obeys, checked all at once; each violation names the element's path."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from mup.errors import ModelError, did_you_mean
from mup.lqn.model import Entry, Model, Precedence, Task, entry_label

PROBABILITY_TOLERANCE = 1e-9


def problems(model: Model) -> list[ModelError]:
    """Return every violated rule of a model whose single elements are already valid."""
    found: list[ModelError] = []
    found += _duplicates((p.name for p in model.processors), "processors")
    found += _duplicates((t.name for t in model.tasks), "tasks")
    for task in model.tasks:
        found += _task_problems(model, task)
    if not found:
        found += _call_cycles(model)
    return found


def _duplicates(names: Iterable[str], where: str) -> Iterator[ModelError]:
    for name, count in Counter(names).items():
        if count > 1:
            yield ModelError(f"{count} elements are named {name!r}; names must be unique", where=where)
        if not name:
            yield ModelError("a name is empty", where=where)


def _task_problems(model: Model, task: Task) -> Iterator[ModelError]:
    where = f"tasks[{task.name!r}]"
    processors = [p.name for p in model.processors]
    if task.processor is not None and task.processor not in processors:
        yield ModelError(
            f"no processor is named {task.processor!r}; {did_you_mean(task.processor, processors)}",
            where=f"{where}.processor",
        )
    if not task.entries:
        yield ModelError("a task needs at least one entry", where=f"{where}.entries")
    if task.is_reference and len(task.entries) > 1:
        yield ModelError("a reference task has exactly one entry", where=f"{where}.entries")
    if task.is_reference and task.replicas != 1:
        yield ModelError("a reference task has no replicas; raise its clients", where=f"{where}.replicas")
    if task.think is not None and not task.is_reference:
        yield ModelError("only a reference task has a think time", where=f"{where}.think")
    yield from _duplicates((e.name for e in task.entries), f"{where}.entries")
    for entry in task.entries:
        yield from _entry_problems(model, entry, f"{where}.entries[{entry.name!r}]")


def _entry_problems(model: Model, entry: Entry, where: str) -> Iterator[ModelError]:
    yield from _duplicates((a.name for a in entry.activities), f"{where}.activities")
    names = {a.name for a in entry.activities}
    if entry.start not in names:
        yield ModelError(f"no activity is named {entry.start!r}", where=f"{where}.start")
    tasks = {t.name: t for t in model.tasks}
    for activity in entry.activities:
        for index, call in enumerate(activity.calls):
            spot = f"{where}.activities[{activity.name!r}].calls[{index}]"
            target = tasks.get(call.task)
            if target is None:
                yield ModelError(
                    f"no task is named {call.task!r}; {did_you_mean(call.task, list(tasks))}", where=spot
                )
            elif target.is_reference:
                yield ModelError(f"{call.task!r} is a reference task and cannot be called", where=spot)
            elif call.entry not in {e.name for e in target.entries}:
                known = [e.name for e in target.entries]
                yield ModelError(
                    f"task {call.task!r} has no entry {call.entry!r}; {did_you_mean(call.entry, known)}",
                    where=spot,
                )
    for index, precedence in enumerate(entry.precedences):
        yield from _precedence_problems(precedence, names, f"{where}.precedences[{index}]")
    yield from _graph_problems(entry, where)


def _precedence_problems(precedence: Precedence, names: set[str], where: str) -> Iterator[ModelError]:
    for side in ("pre", "post"):
        ends: tuple[str, ...] = getattr(precedence, side)
        if not ends:
            yield ModelError("needs at least one activity", where=f"{where}.{side}")
        for name in ends:
            if name not in names:
                yield ModelError(f"no activity is named {name!r}", where=f"{where}.{side}")
    for field, ends in (("join", precedence.pre), ("fork", precedence.post)):
        kind: str = getattr(precedence, field)
        if kind not in ("sequence", "and", "or"):
            yield ModelError(f"must be 'sequence', 'and' or 'or', got {kind!r}", where=f"{where}.{field}")
        if kind == "sequence" and len(ends) > 1:
            yield ModelError(f"a sequence has one activity on each side, got {len(ends)}", where=where)
    odds = precedence.probabilities
    if odds is None:
        return
    if precedence.fork != "or":
        yield ModelError("only an 'or' fork has probabilities", where=f"{where}.probabilities")
    elif len(odds) != len(precedence.post):
        yield ModelError(
            f"{len(odds)} probabilities for {len(precedence.post)} branches", where=f"{where}.probabilities"
        )
    elif any(not 0 <= p <= 1 for p in odds) or abs(sum(odds) - 1) > PROBABILITY_TOLERANCE:
        yield ModelError(
            f"must be between 0 and 1 and sum to 1, got {list(odds)} (sum {sum(odds):.12g})",
            where=f"{where}.probabilities",
        )


def _graph_problems(entry: Entry, where: str) -> Iterator[ModelError]:
    """Check that every activity has one way in and one way out, is reachable, and that nothing loops."""
    after: dict[str, tuple[str, ...]] = {}
    entered: Counter[str] = Counter()
    for index, precedence in enumerate(entry.precedences):
        for name in precedence.pre:
            if name in after:
                yield ModelError(
                    f"activity {name!r} already has a successor", where=f"{where}.precedences[{index}].pre"
                )
            after[name] = precedence.post
        entered.update(precedence.post)
    for name, count in entered.items():
        if count > 1:
            yield ModelError(f"activity {name!r} has {count} ways in; merge them with 'or'", where=where)
    if entered[entry.start]:
        yield ModelError(f"the start {entry.start!r} cannot follow another activity", where=where)
    reached: set[str] = set()
    stack = [entry.start]
    while stack:
        name = stack.pop()
        if name not in reached:
            reached.add(name)
            stack.extend(after.get(name, ()))
    lost = [a.name for a in entry.activities if a.name not in reached]
    if lost:
        yield ModelError(f"activities are not reachable from the start: {', '.join(lost)}", where=where)
    if _has_cycle(after):
        yield ModelError("the activity graph has a cycle", where=where)


def _has_cycle(after: dict[str, tuple[str, ...]]) -> bool:
    """Depth-first search with three colours, without recursion (graphs can be long chains)."""
    done: set[str] = set()
    for root in tuple(after):
        if root in done:
            continue
        open_: set[str] = {root}
        stack = [(root, iter(after[root]))]
        while stack:
            name, rest = stack[-1]
            nxt = next(rest, None)
            if nxt is None:
                stack.pop()
                open_.discard(name)
                done.add(name)
            elif nxt in open_:
                return True
            elif nxt not in done:
                open_.add(nxt)
                stack.append((nxt, iter(after.get(nxt, ()))))
    return False


def _call_cycles(model: Model) -> Iterator[ModelError]:
    """A cycle of synchronous calls can deadlock on its own threads: report each once."""
    graph: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for task, entry, activity in model.walk():
        graph.setdefault((task.name, entry.name), []).extend((c.task, c.entry) for c in activity.calls)
    done: set[tuple[str, str]] = set()
    for root in tuple(graph):
        if root in done:
            continue
        trail = [root]
        stack = [iter(graph[root])]
        while stack:
            nxt = next(stack[-1], None)
            if nxt is None:
                stack.pop()
                done.add(trail.pop())
            elif nxt in trail:
                ring = [*trail[trail.index(nxt) :], nxt]
                names = " -> ".join(entry_label(*node) for node in ring)
                yield ModelError(f"synchronous calls form a cycle: {names}", where="tasks")
                return
            elif nxt not in done:
                trail.append(nxt)
                stack.append(iter(graph.get(nxt, [])))
