"""Which executions tell how often each path of an entry is taken.

Those of one user do. Several users at once make each other's calls late and fill each other's caches. Where
they take the paths as one user does all the same, their executions make it known more surely.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

from analyzer.calibration.callsites import Table, behaviour, differs
from analyzer.calibration.matching import Match, Matched

__all__ = ["alike", "clearly_unlike"]

LEVEL = 0.05
"""Probability of leaving bursts out although users make no difference; all it costs is their executions."""


def alike(one: Matched, several: Matched) -> bool:
    """Return whether several users at once seem to take the paths of an entry as one user does.

    They do not where they reach what one user did not: there are no times for it.

    Args:
        one: Executions of rounds of one user.
        several: Executions of rounds of several users at once.
    """
    same = not differs(_table(one, several), significance=LEVEL, effect=0.0)
    return same and _reached(several) <= _reached(one)


def clearly_unlike(one: Matched, several: Matched) -> bool:
    """Return whether the difference is worth a word: certain, and not small.

    Args:
        one: As for `alike`.
        several: As for `alike`.
    """
    return differs(_table(one, several))


def _table(one: Matched, several: Matched) -> Table:
    return {"one": _ways(one), "several": _ways(several)}


def _ways(found: Matched) -> Counter[Hashable]:
    return Counter(_way(match) for taken in found.taken for match in taken)


def _way(match: Match) -> Hashable:
    return behaviour(match.shape.plan, match), match.shape.choices


def _reached(found: Matched) -> set[Hashable]:
    """Return the paths, and the bodies of choices and loops in them, that were taken."""
    reached: set[Hashable] = set()
    for shape in {id(match.shape): match.shape for taken in found.taken for match in taken}.values():
        reached.add(shape.plan)
        reached.update((shape.plan, decision) for decision in shape.choices)
        reached.update((shape.plan, entry.loop, body) for entry in shape.loops for body in entry.bodies)
    return reached
