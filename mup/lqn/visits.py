"""Mean number of runs of each activity per request, and of each entry per cycle of the clients.

Exact for what a model can say: probabilities multiply along an OR, every branch of an AND runs, an OR merge
adds, an AND join runs as often as its rarest branch arrives (a quorum join: as the last one it needs), a loop
repeats its bodies by their mean counts, a fan-out runs its branch by its mean width. The rules are those of
`mup.lqn.lowered`.
"""

from __future__ import annotations

from collections import defaultdict

from mup.lqn.lowered import EntryKey, Graph, Lowered, check_graph, per_request
from mup.lqn.model import Entry, Model

__all__ = ["EntryKey", "activity_visits", "entry_rates", "entry_requests"]


def activity_visits(entry: Entry) -> dict[str, float]:
    """Return the mean number of executions per request of every activity.

    Raises:
        UncalibratedError: An OR that can be reached has several branches and no probabilities, or a loop
            no count.
    """
    graph = Graph(entry)
    check_graph(graph)
    return {a.name: graph.visits.get(a.name, 0.0) for a in entry.activities}


def entry_requests(entry: Entry) -> dict[EntryKey, float]:
    """Return the mean number of requests that one request of an entry sends to each other entry.

    Calls of all kinds count, and so does handing the request on, which only happens to one whose reply
    is awaited.

    Raises:
        UncalibratedError: A probability or count that can be reached was never measured.
    """
    found: dict[EntryKey, float] = defaultdict(float)
    for (task, name, _), rate in per_request(Graph(entry), waited=True).items():
        found[task, name] += rate
    return dict(found)


def entry_rates(model: Model) -> dict[EntryKey, dict[EntryKey, float]]:
    """Return, per source of load, the mean number of requests to each entry that it causes.

    A source is the entry of a reference task (per cycle, or per arrival) or an entry with arrivals of its own
    (per arrival). The source itself is included, with 1. Entries that are never reached are left out.

    Raises:
        UncalibratedError: A probability or count that can be reached was never measured.
        ModelError: Around a cycle with a send, every request causes at least one more on average.
    """
    return Lowered(model).requests_per_cycle()
