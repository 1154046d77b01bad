"""Choice of the next rounds: those that narrow the predicted figures most for their time.

What is not known about a figure is the sum of what the rounds of each kind leave open, and each part shrinks
as the number of rounds of its kind grows. So the shortest way to a width spends rounds on a kind in
proportion to the standard deviation that a single one of them stands for (Neyman, "On the two different
aspects of the representative method", 1934). Rounds of all kinds are equally long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from analyzer.calibration.rundir import Phase

__all__ = ["LEAST_SHARE", "Need", "allocate"]

LEAST_SHARE = 0.2
"""Of the rounds, for every kind: it takes both kinds to see how processor times depend on the load, whatever
the figures asked for depend on, and a machine changes while one kind is neglected."""


@dataclass(frozen=True, slots=True)
class Need:
    """A figure that has to be known better.

    Attributes:
        variances: What the rounds so far of each kind leave open.
        goal: The sum of these at which it is known well enough.
    """

    variances: Mapping[Phase, float]
    goal: float

    def excess(self, now: Mapping[Phase, int], then: Mapping[Phase, int]) -> float:
        """Return by what factor the variance is above the goal with other numbers of rounds.

        Args:
            now: Rounds that the variances are from.
            then: Rounds there would be.
        """
        total = sum(self._left(phase, now, then) for phase in self.variances)
        return total / self.goal if self.goal > 0 else float("inf") if total > 0 else 0.0

    def gain(self, phase: Phase, now: Mapping[Phase, int], then: Mapping[Phase, int]) -> float:
        """Return by how much one more round of a kind would lower the variance."""
        left = self._left(phase, now, then) if phase in self.variances else 0.0
        return left / (then[phase] + 1)

    def _left(self, phase: Phase, now: Mapping[Phase, int], then: Mapping[Phase, int]) -> float:
        return self.variances[phase] * now[phase] / then[phase] if now.get(phase) else 0.0


def allocate(needs: Sequence[Need], counts: Mapping[Phase, int], limit: int) -> tuple[list[Phase], bool]:
    """Return the kinds of the rounds to come, and whether these are enough.

    Args:
        needs: Figures that have to be known.
        counts: Rounds so far of every kind that can be chosen, at least one of each.
        limit: Rounds there is time for.
    """
    then, planned = dict(counts), list[Phase]()
    while True:
        worst = max(needs, key=lambda need: need.excess(counts, then), default=None)
        if worst is None or worst.excess(counts, then) <= 1:
            return planned, True
        if len(planned) >= limit:
            return planned, False
        neglected = [p for p, n in then.items() if n < LEAST_SHARE * sum(then.values())]
        phase = max(neglected or then, key=lambda p: (worst.gain(p, counts, then), -then[p]))
        then[phase] += 1
        planned.append(phase)
