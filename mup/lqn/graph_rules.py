"""Rules for the activity graph of one entry.

An activity has one way in and one way out, everything is reachable, nothing is a cycle. A loop is no cycle:
its bodies are graphs of their own that end in themselves. So is the branch of a fan-out, whose copies share
nothing: what forks in it is joined in it, it has no reply, and no think time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from mup.errors import ModelError
from mup.lqn.model import Entry, Precedence

__all__ = [
    "MAX_WIDTH",
    "PROBABILITY_TOLERANCE",
    "graph_problems",
    "main_flow",
    "precedence_problems",
    "reached",
]

PROBABILITY_TOLERANCE = 1e-9
MAX_WIDTH = 100_000
"""Copies of the branch of a fan-out on average, at most: simulations have all of them at once."""

Arcs = Mapping[str, tuple[str, ...]]
"""The activities that can follow each activity."""


def precedence_problems(precedence: Precedence, names: set[str], where: str) -> Iterator[ModelError]:
    """Yield what is wrong with one precedence of a graph whose activities have these names."""
    for side in ("pre", "post"):
        ends: tuple[str, ...] = getattr(precedence, side)
        if not ends:
            yield ModelError("needs at least one activity", where=f"{where}.{side}")
        for name in ends:
            if name not in names:
                yield ModelError(f"no activity is named {name!r}", where=f"{where}.{side}")
    for field, ends, loop in (
        ("join", precedence.pre, ()),
        ("fork", precedence.post, ("loop", "fan-out")),
    ):
        kind: str = getattr(precedence, field)
        known = ("sequence", "and", "or", *loop)
        if kind not in known:
            listing = f"{', '.join(map(repr, known[:-1]))} or {known[-1]!r}"
            yield ModelError(f"must be {listing}, got {kind!r}", where=f"{where}.{field}")
        if kind == "sequence" and len(ends) > 1:
            yield ModelError(f"a sequence has one activity on each side, got {len(ends)}", where=where)
    yield from _count_problems(precedence, where)
    yield from _quorum_problems(precedence, where)
    yield from _fan_out_problems(precedence, where)
    yield from _probability_problems(precedence, where)


def _count_problems(precedence: Precedence, where: str) -> Iterator[ModelError]:
    counts, ends = len(precedence.counts), len(precedence.post)
    if not precedence.repeats:
        if counts:
            yield ModelError("only a 'loop' has counts, and a 'fan-out'", where=f"{where}.counts")
    elif precedence.fork == "fan-out":
        if counts != 1 or not 1 <= ends <= 2:
            yield ModelError(
                f"a fan-out has one branch, at most one activity behind it, and one count, its width: got"
                f" {counts} counts for {ends} in 'post'",
                where=f"{where}.counts",
            )
    elif counts == 0 or not ends - 1 <= counts <= ends:
        yield ModelError(
            f"a loop has one count per body and at most one activity behind it: {counts} counts for"
            f" {ends} in 'post'",
            where=f"{where}.counts",
        )


def _fan_out_problems(precedence: Precedence, where: str) -> Iterator[ModelError]:
    for name, least in (("first", 0), ("limit", 1)):
        value = getattr(precedence, name)
        if value is None:
            continue
        if precedence.fork != "fan-out":
            yield ModelError(f"only a 'fan-out' has {name!r}", where=f"{where}.{name}")
        elif isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MAX_WIDTH:
            yield ModelError(
                f"must be a whole number from {least} to {MAX_WIDTH}, got {value!r}", where=f"{where}.{name}"
            )
        elif name == "limit" and precedence.first is not None:
            yield ModelError(
                "a fan-out that does not wait for all copies cannot limit how many run at once",
                where=f"{where}.limit",
            )
    if precedence.fork != "fan-out":
        return
    for index, width in enumerate(precedence.counts):
        if width is not None and not width.mean <= MAX_WIDTH:
            yield ModelError(
                f"a fan-out has at most {MAX_WIDTH} copies on average, got {width.mean:g}",
                where=f"{where}.counts[{index}]",
            )


def _quorum_problems(precedence: Precedence, where: str) -> Iterator[ModelError]:
    quorum = precedence.quorum
    if quorum is None:
        return
    if precedence.join != "and":
        yield ModelError("only an 'and' join has a quorum", where=f"{where}.quorum")
    elif isinstance(quorum, bool) or not isinstance(quorum, int) or not 1 <= quorum < len(precedence.pre):
        yield ModelError(
            f"must be a whole number from 1 to {len(precedence.pre) - 1}, less than the branches joined,"
            f" got {quorum!r}",
            where=f"{where}.quorum",
        )


def _probability_problems(precedence: Precedence, where: str) -> Iterator[ModelError]:
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


def graph_problems(entry: Entry, where: str) -> Iterator[ModelError]:
    """Yield what is wrong with how the activities of an entry are connected."""
    after: dict[str, tuple[str, ...]] = {}
    entered: Counter[str] = Counter()
    sound = True
    for index, precedence in enumerate(entry.precedences):
        for name in precedence.pre:
            if name in after:
                sound = False
                yield ModelError(
                    f"activity {name!r} already has a successor", where=f"{where}.precedences[{index}].pre"
                )
            after[name] = precedence.post
        entered.update(precedence.post)
    for name, count in entered.items():
        if count > 1:
            sound = False
            yield ModelError(f"activity {name!r} has {count} ways in; merge them with 'or'", where=where)
    if entered[entry.start]:
        sound = False
        yield ModelError(f"the start {entry.start!r} cannot follow another activity", where=where)
    found = reached(after, entry.start)
    lost = [a.name for a in entry.activities if a.name not in found]
    if lost:
        sound = False
        yield ModelError(f"activities are not reachable from the start: {', '.join(lost)}", where=where)
    if _has_cycle(after):
        sound = False
        yield ModelError("the activity graph has a cycle", where=where)
    if sound and {entry.start, *entered, *after} <= {a.name for a in entry.activities}:
        yield from _loop_problems(entry, after, where)
        yield from _branch_problems(entry, after, where)
        yield from _reply_problems(entry, where)


def reached(after: Arcs, start: str) -> set[str]:
    """Return an activity and all that can follow it."""
    found: set[str] = set()
    stack = [start]
    while stack:
        name = stack.pop()
        if name not in found:
            found.add(name)
            stack.extend(after.get(name, ()))
    return found


def _has_cycle(after: Arcs) -> bool:
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


def main_flow(entry: Entry, start: str | None = None) -> set[str]:
    """Return the activities that the flow from ``start`` (of the entry) can run itself.

    A fork goes on as its first branch; the activity behind a join is run by that flow if it comes there. The
    branch of a fan-out is run by other flows.
    """
    after = {name: p for p in entry.precedences for name in p.pre}
    found: set[str] = set()
    stack = [entry.start if start is None else start]
    while stack:
        name = stack.pop()
        if name in found:
            continue
        found.add(name)
        if name in after:
            stack.extend(_carried_on(after[name]))
    return found


def _carried_on(precedence: Precedence) -> tuple[str, ...]:
    """Return the activities that a flow may go on with behind an arc."""
    if precedence.fork == "and":
        return precedence.post[:1]
    return precedence.post[len(precedence.counts) :] if precedence.fork == "fan-out" else precedence.post


def _loop_problems(entry: Entry, after: Arcs, where: str) -> Iterator[ModelError]:
    """Check that the bodies of loops end in themselves and can be run again and again."""
    arcs = list(enumerate(entry.precedences))
    replying = {a.name for a in entry.activities if a.replies}
    found: dict[str, str] = {}  # by path: what is wrong in a body is also wrong in the body around it
    for _, loop in arcs:
        for body in loop.bodies:
            inside = reached(after, body)
            carried = main_flow(entry, body)
            # Copies of a fan-out in it have joins of their own, whatever the round.
            copies = {
                name
                for _, fan in arcs
                if fan.fork == "fan-out" and fan is not loop and fan.pre[0] in inside
                for first in fan.bodies
                for name in reached(after, first)
            }
            for index, precedence in arcs:
                if not inside.isdisjoint(precedence.pre) and not copies.issuperset(precedence.pre):
                    problem = _repeated_join_problem(loop, precedence, after, body, inside, carried)
                    if problem:
                        found.setdefault(f"{where}.precedences[{index}]", problem)
            for name in sorted(replying & inside):
                found[f"{where}.activities[{name!r}].replies"] = (
                    f"a reply inside a {loop.fork} could be sent twice"
                )
    for spot, problem in found.items():
        yield ModelError(problem, where=spot)


def _repeated_join_problem(
    loop: Precedence, join: Precedence, after: Arcs, body: str, inside: set[str], carried: set[str]
) -> str:
    """Return why a precedence with a start inside a body cannot be there, "" if it can."""
    outside = [name for name in join.pre if name not in inside]
    if outside:
        return (
            f"the {loop.fork} body that starts with {body!r} is joined with {outside[0]!r} outside it; a"
            f" body ends in itself, what follows the {loop.fork} is the last of its 'post'"
        )
    if join.quorum is not None:
        return "a quorum join cannot be repeated: its late branches would meet those of the next round"
    if join.first is not None:
        return "a fan-out that does not wait for all copies cannot be repeated: late ones would meet the next"
    several = join.join == "and" and len(join.pre) > 1
    if several and carried.isdisjoint(reached(after, join.post[0])):
        return (
            f"the {loop.fork} body that starts with {body!r} does not wait for this join, so its branches"
            " could meet those of the next round; join it within the body"
        )
    return ""


def _branch_problems(entry: Entry, after: Arcs, where: str) -> Iterator[ModelError]:
    """Check that the copies of the branch of a fan-out leave nothing behind, and do not think."""
    behind = {name: p.post[len(p.counts) :] for p in entry.precedences for name in p.pre}
    thinking = {a.name for a in entry.activities if a.kind == "think"}
    reported: set[str] = set()  # ends: what is wrong in a branch is also wrong in the branch around it
    for index, fan in enumerate(entry.precedences):
        if fan.fork != "fan-out" or not fan.bodies:
            continue
        inside = reached(after, fan.bodies[0])
        bodies = [*fan.bodies, *(b for p in entry.precedences if p.pre[0] in inside for b in p.bodies)]
        for body in bodies:
            ends = {name for name in reached(behind, body) if not behind.get(name)}
            left = sorted(ends - main_flow(entry, body) - reported)
            if left:
                reported.add(left[0])
                yield ModelError(
                    f"the branch that ends with {left[0]!r} is not joined within the copy that starts it",
                    where=f"{where}.precedences[{index}].post",
                )
                break
        for name in sorted(thinking & inside):
            yield ModelError(
                "a fan-out has no think time in it; give the activity another kind",
                where=f"{where}.activities[{name!r}].kind",
            )
        thinking -= inside


def _reply_problems(entry: Entry, where: str) -> Iterator[ModelError]:
    """Refuse a second reply that is certain: behind another one, or on a branch beside another one."""
    replying = {a.name for a in entry.activities if a.replies}
    if len(replying) < 2:
        return
    order = _in_order(entry)
    replied: dict[str, bool] = {entry.start: False}
    """Whether a reply has certainly been sent when the activity starts."""
    for precedence in order:
        sent = [name in replying or replied[name] for name in precedence.pre]
        if precedence.join == "or" and len(sent) > 1:
            certain = all(sent)
        elif precedence.quorum is not None:
            certain = sum(sent) > len(sent) - precedence.quorum
        else:
            certain = any(sent)
        for name in precedence.post:
            replied[name] = certain
    follows: dict[str, bool] = {}
    """Whether a reply is certainly sent by the activity or behind it, up to the next join."""

    def will(name: str) -> bool:
        return follows.get(name, name in replying)

    for precedence in reversed(order):
        below = [will(name) for name in precedence.post]
        if precedence.fork == "or":
            certain = all(below)
        elif precedence.repeats:
            certain = len(below) > len(precedence.counts) and below[-1]
        else:
            certain = any(below)
        joined = precedence.join == "and" and len(precedence.pre) > 1
        for name in precedence.pre:
            follows[name] = name in replying or (certain and not joined)
    for activity in entry.activities:
        if activity.name in replying and replied[activity.name]:
            yield ModelError(
                "a reply was already sent on the way here",
                where=f"{where}.activities[{activity.name!r}].replies",
            )
    for index, precedence in enumerate(entry.precedences):
        if precedence.fork == "and" and not replied[precedence.post[0]]:
            branches = [name for name in precedence.post if will(name)]
            if len(branches) > 1:
                yield ModelError(
                    f"the branches {' and '.join(map(repr, branches))} both reply",
                    where=f"{where}.precedences[{index}].post",
                )


def _in_order(entry: Entry) -> list[Precedence]:
    """Return the precedences of a graph without cycles, those behind others later."""
    missing = {i: len(p.pre) for i, p in enumerate(entry.precedences)}
    after = {name: i for i, p in enumerate(entry.precedences) for name in p.pre}
    found: list[Precedence] = []
    stack = [entry.start]
    while stack:
        name = stack.pop()
        if name in after:
            index = after[name]
            missing[index] -= 1
            if missing[index] == 0:
                found.append(entry.precedences[index])
                stack.extend(entry.precedences[index].post)
    return found
