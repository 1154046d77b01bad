"""End of an entry's flow, forked branches that are never joined, and what is reached.

lqnx and the native model say different things by leaving something out, and these questions decide which:
a reply that is not marked leaves at the end of the flow, and a branch that is never joined either delays
the end of its entry (always in lqnx) or does not.
"""

from __future__ import annotations

import math

from mup.lqn.distributions import Distribution
from mup.lqn.model import Entry, Model, Precedence

__all__ = ["flow_ends", "has_unjoined_branches", "reached_activities"]

_END = -1


def _following(entry: Entry) -> dict[str, int]:
    """Return the index of the arc that leaves each activity."""
    return {name: index for index, arc in enumerate(entry.precedences) for name in arc.pre}


def flow_ends(entry: Entry, start: str | None = None) -> tuple[set[str], set[str]]:
    """Return where the flow that started at ``start`` (of the entry) can end.

    Returns:
        The last activities, and the activities in front of loops with nothing behind them.
    """
    following = _following(entry)
    last: set[str] = set()
    before_loops: set[str] = set()
    seen: set[str] = set()
    stack = [entry.start if start is None else start]
    while stack:
        name = stack.pop()
        if name in seen:
            continue
        seen.add(name)
        if name not in following:
            last.add(name)
            continue
        arc = entry.precedences[following[name]]
        if arc.fork != "loop":
            stack.extend(arc.post if arc.fork == "or" else arc.post[:1])
        elif arc.continuation is None:
            before_loops.update(arc.pre)
        else:
            stack.append(arc.continuation)
    return last, before_loops


def has_unjoined_branches(entry: Entry) -> bool:
    """Return True if a branch of an AND fork can still run when the flow has ended.

    Every activity leads, without passing an AND join, to some joins, or to an end. A fork is closed if all
    its branches lead to the same join and the join waits for all of them.
    """
    following = _following(entry)
    leads_to: dict[str, frozenset[int]] = {}
    behind: dict[int, frozenset[int]] = {}
    unjoined = False
    for name in reversed(_topological(entry)):
        index = following.get(name)
        if index is None:
            leads_to[name] = frozenset((_END,))
            continue
        arc = entry.precedences[index]
        if index not in behind:
            branches = [leads_to[post] for post in arc.post]
            if arc.fork == "loop":
                behind[index] = branches[-1] if arc.continuation is not None else frozenset((_END,))
            elif arc.fork == "and":
                joins = frozenset().union(*branches)
                join = next(iter(joins))
                if len(joins) == 1 and join != _END and entry.precedences[join].quorum is None:
                    behind[index] = behind[join]
                else:
                    unjoined = True
                    behind[index] = branches[0]
            else:
                behind[index] = frozenset().union(*branches)
        leads_to[name] = frozenset((index,)) if arc.join == "and" else behind[index]
    return unjoined


def _topological(entry: Entry) -> list[str]:
    """Return the activities in an order in which every arc points forward (the graph has no cycle)."""
    following = _following(entry)
    missing = {index: len(arc.pre) for index, arc in enumerate(entry.precedences)}
    order = []
    ready = [entry.start]
    while ready:
        name = ready.pop()
        order.append(name)
        index = following.get(name)
        if index is None:
            continue
        missing[index] -= 1
        if missing[index] == 0:
            ready.extend(entry.precedences[index].post)
    return order


def reached_activities(model: Model) -> set[tuple[str, str, str]]:
    """Return task, entry and name of every activity that the load can reach.

    Nothing goes through a branch of probability 0, or a call or loop whose mean count is 0; what was never
    measured is taken as possible.
    """
    entries = {(task.name, entry.name): entry for task in model.tasks for entry in task.entries}
    stack = [(t.name, e.name) for t in model.tasks for e in t.entries if t.is_reference or e.arrivals]
    seen = set(stack)
    reached = set()
    while stack:
        place = stack.pop()
        entry = entries[place]
        targets = [(f.task, f.entry) for f in entry.forwards if f.probability > 0]
        for name in _reached_in(entry):
            reached.add((*place, name))
            calls = entry.activity(name).calls
            targets += [(c.task, c.entry) for c in calls if _possible(c.count)]
        for target in targets:
            if target not in seen:
                seen.add(target)
                stack.append(target)
    return reached


def _reached_in(entry: Entry) -> set[str]:
    following = _following(entry)
    seen: set[str] = set()
    stack = [entry.start]
    while stack:
        name = stack.pop()
        if name in seen:
            continue
        seen.add(name)
        if name in following:
            stack.extend(_possible_ends(entry.precedences[following[name]]))
    return seen


def _possible_ends(arc: Precedence) -> list[str]:
    if arc.fork == "or" and arc.probabilities is not None:
        return [n for n, p in zip(arc.post, arc.probabilities, strict=True) if p > 0]
    if arc.repeats:
        bodies = [n for n, c in zip(arc.bodies, arc.counts, strict=True) if _possible(c)]
        return bodies if arc.continuation is None else [*bodies, arc.continuation]
    return list(arc.post)


def _possible(count: Distribution | None) -> bool:
    return (math.inf if count is None else count.mean) > 0
