"""Requests of an activity or an entry: whether replies are awaited, and how many per cycle.

A request whose reply is not awaited (sent, or from outside) is not forwarded, so an entry counts apart for
requests of either kind.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mup.errors import ModelError, UncalibratedError
from mup.lqn.distributions import Distribution, Geometric
from mup.lqn.lowered.graph import Graph
from mup.lqn.model import ONCE, Activity, Call, CallKind, Entry, Forward, Task, entry_label

__all__ = [
    "EntryKey",
    "Node",
    "Passed",
    "Request",
    "Slices",
    "check_graph",
    "is_awaited",
    "is_made",
    "onward",
    "passed_on",
    "per_request",
    "requests_of",
    "slices_of",
    "spread",
    "targets",
    "tasks_behind",
]

EntryKey = tuple[str, str]
"""Task and entry."""

Node = tuple[str, str, bool]
"""Task and entry, and whether the reply is awaited: only then is a request handed on."""

MAX_ROUNDS = 100_000
"""Of requests on cycles; those that go round 3000 times in the mean have died out by then."""


@dataclass(frozen=True, slots=True)
class Request:
    """A call that is made, as often as its count says; one with a count of 0 is none.

    Attributes:
        call: What is called.
        count: How often.
    """

    call: Call
    count: Distribution


def is_awaited(kind: CallKind) -> bool:
    """Tell whether the caller waits for the reply."""
    return kind != "send"


def is_made(call: Call) -> bool:
    """Tell whether a call is made at all; one whose count was never measured may be."""
    return call.count is None or call.count.mean > 0


def requests_of(activity: Activity) -> tuple[Request, ...]:
    """Return the calls an activity makes, in order; one whose count was never measured is taken to be one."""
    if not activity.calls:
        return ()
    return tuple(
        Request(call, ONCE if call.count is None else call.count) for call in activity.calls if is_made(call)
    )


@dataclass(frozen=True, slots=True)
class Slices:
    """How demand and calls alternate in an activity that interleaves them.

    Attributes:
        number: Slices the demand is cut into, on average.
        drawn: After every slice the end or one of the calls is drawn, in proportion 1 : mean counts.
            Otherwise the calls follow in order, as often as their constant counts say, each with a slice
            behind it.
    """

    number: float
    drawn: bool


def slices_of(activity: Activity, requests: Sequence[Request]) -> Slices | None:
    """Return how an activity that makes such requests is cut; None if its demand comes before its calls."""
    if not activity.interleaved or not activity.calls:
        return None
    drawn = bool(requests) and all(isinstance(request.count, Geometric) for request in requests)
    return Slices(1 + math.fsum(request.count.mean for request in requests), drawn)


def onward(entry: Entry) -> tuple[Forward, ...]:
    """Return where a request may be handed on instead of answered, if its reply is awaited."""
    return tuple(forward for forward in entry.forwards if forward.probability > 0)


def targets(entry: Entry) -> list[EntryKey]:
    """Return every entry that is called or handed on to, however seldom."""
    called = [(call.task, call.entry) for activity in entry.activities for call in activity.calls]
    return called + [(forward.task, forward.entry) for forward in entry.forwards]


def tasks_behind(starts: Iterable[str], tasks: Mapping[str, Task]) -> set[str]:
    """Return these tasks and all that are called or handed on to from there, directly or not."""
    found = set(starts)
    pending = list(found)
    while pending:
        for entry in tasks[pending.pop()].entries:
            for target, _ in targets(entry):
                if target not in found:
                    found.add(target)
                    pending.append(target)
    return found


def per_request(graph: Graph, *, waited: bool) -> dict[Node, float]:
    """Return the mean number of requests that one request of an entry causes directly.

    Args:
        graph: Of the entry.
        waited: Whether the reply to that request is awaited.

    Raises:
        UncalibratedError: A probability or count that can be reached was never measured.
    """
    found: dict[Node, float] = defaultdict(float)
    entry = graph.entry
    check_graph(graph)
    for activity in entry.activities:
        often = graph.visits.get(activity.name, 0.0)
        if often > 0:
            for call in activity.calls:
                if call.count is None:
                    where = f"{entry.name}.activities[{activity.name!r}]"
                    raise UncalibratedError("the count was never measured", where=where)
                found[call.task, call.entry, is_awaited(call.kind)] += often * call.count.mean
    for forward in onward(entry) if waited else ():
        found[forward.task, forward.entry, True] += forward.probability
    return {key: rate for key, rate in found.items() if rate > 0}


def check_graph(graph: Graph) -> None:
    """Refuse a graph whose visits are not known.

    Raises:
        UncalibratedError: A choice that can be reached has no probabilities, or a loop no count.
    """
    for number in graph.unmeasured:
        what = "probabilities were" if number.field == "probabilities" else "count was"
        raise UncalibratedError(f"the {what} never measured", where=f"{graph.entry.name}.{number.where}")


def spread(source: Node, sent: Mapping[Node, Mapping[Node, float]]) -> dict[Node, float]:
    """Return the total number of requests per entry if one arrives at the source.

    Args:
        source: Where it arrives.
        sent: What one request causes directly, for all that the source gets to.

    Raises:
        ModelError: Around a cycle with a send, every request causes at least one more on average.
    """
    total = dict.fromkeys(sent, 0.0)
    waiting = Counter(target for caused in sent.values() for target in caused)
    flow = {source: 1.0}
    ready = [source] if waiting[source] == 0 else []
    # Without a cycle one pass in the order of calls is exact.
    while ready:
        key = ready.pop()
        total[key] = flow.pop(key, 0.0)
        for target, often in sent[key].items():
            flow[target] = flow.get(target, 0.0) + total[key] * often
            waiting[target] -= 1
            if waiting[target] == 0:
                ready.append(target)
    # What is left lies on cycles or behind them: let the requests go round until none are left.
    for _ in range(MAX_ROUNDS):
        if not flow:
            return total
        nxt: dict[Node, float] = {}
        for key, amount in flow.items():
            total[key] += amount
            for target, often in sent[key].items():
                if amount * often > 1e-15:
                    nxt[target] = nxt.get(target, 0.0) + amount * often
        flow = nxt
        if sum(flow.values()) > 1e12:
            break
    names = ", ".join(sorted({entry_label(*key[:2]) for key in flow}))
    raise ModelError(f"requests multiply without end around a cycle of calls through {names}", where="tasks")


@dataclass(frozen=True, slots=True)
class Passed:
    """Requests that one request causes.

    Attributes:
        target: Index of what is asked.
        visits, count: How often on average: the product of the two.
        awaited: Whether the one that asks waits for the reply.
    """

    target: int
    visits: float
    count: float
    awaited: bool


def passed_on(
    order: Sequence[int],
    caused: Sequence[Sequence[Passed]],
    handed: Sequence[Sequence[tuple[int, float]]],
    arriving: Sequence[float],
) -> list[float]:
    """Return the rate of requests everywhere, if they arrive from outside at these rates.

    One pass, exact where what is asked comes later than what asks it.

    Args:
        order: All indices, those that ask before those they ask.
        caused: Per index, what each of its requests causes.
        handed: Per index, where a request whose reply is awaited is handed on to, and how likely.
        arriving: Per index, requests per second from outside; their replies are not awaited.
    """
    rates = [0.0] * len(arriving)
    waited = [0.0] * len(arriving)
    for index in order:
        rates[index] += arriving[index]
        for passed in caused[index]:
            more = rates[index] * passed.visits * passed.count
            rates[passed.target] += more
            if passed.awaited:
                waited[passed.target] += more
        for target, chance in handed[index]:
            rates[target] += waited[index] * chance
            waited[target] += waited[index] * chance
    return rates
