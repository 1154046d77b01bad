"""How often does each activity run per request, and each entry per cycle of the clients, on average?

Exact for what a model can say: probabilities multiply along an OR, every branch of an AND runs, an OR merge
adds, an AND join runs as often as its rarest branch arrives (a quorum join: as the last one it needs), a loop
repeats its bodies by their mean counts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

from mup.errors import ModelError, UncalibratedError
from mup.lqn.distributions import Distribution
from mup.lqn.model import Entry, Model, Precedence, entry_label

__all__ = ["EntryKey", "activity_visits", "entry_rates", "entry_requests"]

EntryKey = tuple[str, str]
"""Task and entry."""

MAX_ROUNDS = 100_000


def activity_visits(entry: Entry) -> dict[str, float]:
    """Return the mean number of executions per request of every activity.

    Raises:
        UncalibratedError: An OR that can be reached has several branches and no probabilities, or a loop
            no count.
    """
    visits = dict.fromkeys((a.name for a in entry.activities), 0.0)
    visits[entry.start] = 1.0
    missing = {index: len(p.pre) for index, p in enumerate(entry.precedences)}
    follows = {name: index for index, p in enumerate(entry.precedences) for name in p.pre}
    # The graph has no cycle (a rule of the model), so every activity gets its turn when its own are known.
    known = [entry.start]
    while known:
        index = follows.get(known.pop(), -1)
        if index < 0:
            continue
        missing[index] -= 1
        if missing[index] == 0:
            precedence = entry.precedences[index]
            arrivals = sorted((visits[name] for name in precedence.pre), reverse=True)
            needed = precedence.quorum or len(arrivals)
            flow = sum(arrivals) if precedence.join == "or" else arrivals[needed - 1]
            for name, factor in zip(precedence.post, _factors(entry, index, flow), strict=True):
                visits[name] = flow * factor
            known += precedence.post
    return visits


def _factors(entry: Entry, index: int, flow: float) -> tuple[float, ...]:
    """Return how often each ``post`` of a precedence runs, each time its fork is reached."""
    precedence: Precedence = entry.precedences[index]
    where = f"{entry.name}.precedences[{index}]"
    if flow == 0:
        return (0.0,) * len(precedence.post)
    if precedence.fork == "loop":
        bodies = tuple(_mean(count, where) for count in precedence.counts)
        return bodies + (1.0,) * (len(precedence.post) - len(bodies))
    if precedence.fork == "or" and len(precedence.post) > 1:
        if precedence.probabilities is None:
            raise UncalibratedError("the probabilities were never measured", where=where)
        return precedence.probabilities
    return (1.0,) * len(precedence.post)


def _mean(count: Distribution | None, where: str) -> float:
    if count is None:
        raise UncalibratedError("the count was never measured", where=where)
    return count.mean


def entry_requests(entry: Entry) -> dict[EntryKey, float]:
    """Return the mean number of requests that one request of an entry sends to each other entry.

    Calls of all kinds count, and so does handing the request on, which only happens to one that somebody
    waits for.

    Raises:
        UncalibratedError: A probability or count that can be reached was never measured.
    """
    found: dict[EntryKey, float] = defaultdict(float)
    for (task, name, _), rate in _sent(entry, waited=True).items():
        found[task, name] += rate
    return dict(found)


_Node = tuple[str, str, bool]
"""Task and entry, and whether somebody waits for the reply: only then is a request handed on."""


def _sent(entry: Entry, *, waited: bool) -> dict[_Node, float]:
    """Return the mean number of requests that one request of an entry causes directly."""
    found: dict[_Node, float] = defaultdict(float)
    visits = activity_visits(entry)
    for activity in entry.activities:
        often = visits[activity.name]
        if often > 0:
            for call in activity.calls:
                where = f"{entry.name}.activities[{activity.name!r}]"
                found[call.task, call.entry, call.kind != "send"] += often * _mean(call.count, where)
    for forward in entry.forwards if waited else ():
        found[forward.task, forward.entry, True] += forward.probability
    return {key: rate for key, rate in found.items() if rate > 0}


def entry_rates(model: Model) -> dict[EntryKey, dict[EntryKey, float]]:
    """Return, per source of load, the mean number of requests to each entry that it causes.

    A source is the entry of a reference task (per cycle, or per arrival) or an entry with arrivals of its own
    (per arrival). The source itself is included, with 1. Entries that are never reached are left out.

    Raises:
        UncalibratedError: A probability or count that can be reached was never measured.
        ModelError: Around a cycle with a send, every request causes at least one more on average.
    """
    entries = {(task.name, entry.name): entry for task in model.tasks for entry in task.entries}
    sources = [
        (task.name, entry.name)
        for task in model.tasks
        for entry in task.entries
        if task.is_reference or entry.arrivals is not None
    ]
    sent: dict[_Node, dict[_Node, float]] = {}
    rates: dict[EntryKey, dict[EntryKey, float]] = {}
    for source in sources:
        root = (*source, False)
        reached = [root]
        for key in reached:  # grows on the way
            if key not in sent:
                try:
                    sent[key] = _sent(entries[key[:2]], waited=key[2])
                except UncalibratedError as error:
                    error.where = f"tasks[{key[0]!r}].{error.where}"
                    raise
            reached += [target for target in sent[key] if target not in reached]
        found: dict[EntryKey, float] = {}
        rates[source] = found
        for (task, name, _), rate in _spread(root, {key: sent[key] for key in reached}).items():
            found[task, name] = found.get((task, name), 0.0) + rate
    return rates


def _spread(source: _Node, sent: Mapping[_Node, Mapping[_Node, float]]) -> dict[_Node, float]:
    """Return the total number of requests per entry if one arrives at the source."""
    total = dict.fromkeys(sent, 0.0)
    waiting = Counter(target for targets in sent.values() for target in targets)
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
        nxt: dict[_Node, float] = {}
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
