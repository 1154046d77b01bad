"""Lane and row of each activity of an entry.

A lane is a column. An activity's row is the longest chain before it. The first branch of a fork goes straight
on; every other one gets the next lane that is free from the fork down to where the branch ends or joins.
What follows a loop goes straight on too, below its bodies, which stand beside it.
"""

from __future__ import annotations

from collections.abc import Mapping

from mup.lqn.model import Entry, Precedence

__all__ = ["activity_grid"]


def activity_grid(entry: Entry) -> tuple[dict[str, int], dict[str, int]]:
    """Return lane and row of every activity."""
    after = {name: p for p in entry.precedences for name in p.pre}
    rows = _longest_chains(entry, after)
    ends = _branch_ends(entry, after, rows)
    lanes: dict[str, int] = {}
    taken: dict[int, list[tuple[int, int]]] = {}

    def free(lane: int, first: int, last: int) -> bool:
        return all(last < a or b < first for a, b in taken.get(lane, []))

    def walk(name: str, lane: int) -> int:
        """Place a chain, from this lane on, and what branches off it; return the rightmost lane used."""
        first = rows[name]
        chain = [name]
        pending: list[Precedence] = []
        while name in after:
            precedence = after[name]
            if len(precedence.pre) > 1 and name != precedence.pre[0]:
                break
            straight = _straight(precedence)
            if len(precedence.post) > 1 or straight is None:
                pending.append(precedence)
            if straight is None:
                break
            name = straight
            chain.append(name)
        last = ends[chain[-1]]
        while not free(lane, first, last):
            lane += 1
        for member in chain:
            lanes[member] = lane
        taken.setdefault(lane, []).append((first, last))
        widest = lane
        for precedence in pending:
            if precedence.fork == "or":
                column = lane
                for branch in precedence.post:
                    widest = max(widest, walk(branch, column))
                    column = widest + 1
                continue
            straight = _straight(precedence)
            for branch in precedence.post:
                if branch == straight:
                    continue
                widest = max(widest, walk(branch, lane + 1))
        return widest

    walk(entry.start, 0)
    for activity in entry.activities:
        lanes.setdefault(activity.name, max(lanes.values()) + 1)
    return lanes, rows


def _straight(precedence: Precedence) -> str | None:
    """Return the activity that goes on in the lane of the one before, None if all are branches."""
    if precedence.repeats:
        return precedence.continuation
    if precedence.fork == "or" and len(precedence.post) > 1:
        return None
    return precedence.post[0]


def _longest_chains(entry: Entry, after: Mapping[str, Precedence]) -> dict[str, int]:
    inside = {}
    """Per loop, everything in its bodies: what follows comes below all of it."""
    for index, precedence in enumerate(entry.precedences):
        if precedence.continuation is not None:
            found: set[str] = set()
            stack = list(precedence.bodies)
            while stack:
                name = stack.pop()
                found.add(name)
                stack += after[name].post if name in after else ()
            inside[index] = found
    rows = {a.name: 0 for a in entry.activities}
    # Precedences form no cycle (validation), so this settles after at most as many rounds as activities.
    changed = True
    while changed:
        changed = False
        for index, precedence in enumerate(entry.precedences):
            row = max(rows[name] for name in precedence.pre) + 1
            below = max((rows[name] for name in inside.get(index, ())), default=0) + 1
            for name in precedence.post:
                wanted = max(row, below) if name == precedence.continuation else row
                if rows[name] < wanted:
                    rows[name] = wanted
                    changed = True
    return rows


def _branch_ends(entry: Entry, after: Mapping[str, Precedence], rows: Mapping[str, int]) -> dict[str, int]:
    """Return per activity the last row its chain needs: where it ends, or just above its join."""
    ends: dict[str, int] = {}
    for activity in entry.activities:
        name = activity.name
        while name in after and len(after[name].pre) == 1 and len(after[name].post) == 1:
            name = after[name].post[0]
        last = rows[after[name].post[0]] - 1 if name in after else rows[name]
        ends[activity.name] = max(last, rows[activity.name])
    return ends
