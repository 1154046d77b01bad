"""How often is each activity of an entry executed per request, on average?

Exact for the activity graphs of a model: probabilities multiply along an OR, every branch of an AND
runs, an OR merge adds, and an AND join runs as often as its rarest branch arrives.
"""

from __future__ import annotations

from mup.errors import UncalibratedError
from mup.lqn.model import Entry

__all__ = ["activity_visits"]


def activity_visits(entry: Entry) -> dict[str, float]:
    """Return the mean number of executions per request of every activity.

    Raises:
        UncalibratedError: An OR that can be reached has several branches and no probabilities.
    """
    visits = dict.fromkeys((a.name for a in entry.activities), 0.0)
    visits[entry.start] = 1.0
    known = {entry.start}
    waiting = list(enumerate(entry.precedences))
    while waiting:
        # The graph has no cycle (a rule of the model), so every round makes progress.
        ready = [(i, p) for i, p in waiting if known.issuperset(p.pre)]
        waiting = [(i, p) for i, p in waiting if not known.issuperset(p.pre)]
        for index, precedence in ready:
            arrivals = [visits[name] for name in precedence.pre]
            flow = sum(arrivals) if precedence.join == "or" else min(arrivals)
            odds = precedence.probabilities
            if precedence.fork != "or" or len(precedence.post) == 1:
                odds = (1.0,) * len(precedence.post)
            elif odds is None and flow == 0:
                odds = (0.0,) * len(precedence.post)
            elif odds is None:
                raise UncalibratedError(
                    "the probabilities were never measured", where=f"{entry.name}.precedences[{index}]"
                )
            for name, chance in zip(precedence.post, odds, strict=True):
                visits[name] = flow * chance
                known.add(name)
    return visits
