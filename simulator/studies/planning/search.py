"""Which deployment is the cheapest that meets the objectives, among more than can be looked at?

More threads, replicas or cores are taken to help: a deployment that has no more of anything than one that
fails, fails too. So every deployment that fails rules out all below it, and the search looks at the cheapest
one that nothing rules out, until that one meets the objectives. (As more can harm, deployments one step below
the answer are simulated as well.)

What is ruled out should be much. From a deployment that fails, as many axes as possible are set to their
largest value while it goes on failing: a smallest set of values that is to blame is left (QuickXplain;
U. Junker, "QuickXplain: preferred explanations and relaxations for over-constrained problems", 2004). Those
are then raised, too, one after the other.

The cheapest deployment that nothing rules out has to exceed each of those that failed in some axis. Which
one is a branch; branches are followed in the order of their cost, which never falls along a branch. So
spaces of any size are searched without listing them.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from simulator.studies.planning.judge import Judge
from simulator.studies.planning.slo import Verdict
from simulator.studies.planning.space import Point, Space

__all__ = ["Found", "Frontier", "blame", "cheapest"]

MOST_BRANCHES: Final = 200_000
"""Branches after which a search ends without a proof."""


@dataclass(slots=True)
class Found:
    """What a search has found.

    Attributes:
        best: The cheapest deployment that meets the objectives; None if there is none, or none so far.
        proven: Every cheaper one fails, or is ruled out.
        close: Cheaper ones that are too close to call.
        failed: What rules out others, in the order in which it was found.
    """

    best: Point | None = None
    proven: bool = True
    close: list[Point] = field(default_factory=list)
    failed: list[Point] = field(default_factory=list)


class Frontier:
    """The deployments that nothing rules out yet, cheapest first.

    Args:
        space: The deployments.
        failed: Those that fail, and with them all below.
    """

    def __init__(self, space: Space, failed: Sequence[Point] = ()) -> None:
        self._space = space
        self._failed = list(failed)
        self._open = [space.rank(space.smallest)]
        self._known = {space.smallest}
        self._largest = space.largest
        self.branches = 0

    def rule_out(self, point: Point) -> None:
        """Take note that a deployment fails, and with it all below."""
        # What is below it says nothing more.
        self._failed = [f for f in self._failed if not _below(f, point)]
        self._failed.append(point)

    def take(self) -> Point | None:
        """Return the cheapest deployment left; it stays unless it is ruled out. None if there is none."""
        while self._open and self.branches < MOST_BRANCHES:
            *_, corner = self._open[0]
            above = [f for f in self._failed if _below(corner, f)]
            if not above:
                return corner
            heapq.heappop(self._open)
            self.branches += 1
            # The one that leaves the fewest ways.
            blamed = min(above, key=self._options_below)
            for axis, at in enumerate(blamed):
                if at < self._largest[axis]:
                    self._add((*corner[:axis], at + 1, *corner[axis + 1 :]))
        return None

    @property
    def ended(self) -> bool:
        """Whether there was too much to branch."""
        return self.branches >= MOST_BRANCHES

    def _options_below(self, point: Point) -> int:
        return sum(at < most for at, most in zip(point, self._largest, strict=True))

    def _add(self, point: Point) -> None:
        if point not in self._known:
            self._known.add(point)
            heapq.heappush(self._open, self._space.rank(point))


def _below(one: Point, other: Point) -> bool:
    """Tell whether a deployment has no more of anything than another one."""
    return all(a <= b for a, b in zip(one, other, strict=True))


def cheapest(
    judge: Judge, *, scale: float = 1.0, failed: Sequence[Point] = (), most: int | None = None
) -> Found:
    """Search the cheapest deployment that meets the objectives.

    Args:
        judge: Knows the deployments and the objectives; it has begun.
        scale: Loosen all limits by this factor.
        failed: Deployments that are known to fail.
        most: Look at so many candidates at most, and at none again with other random numbers.

    Raises:
        LimitError: The budget is used up.
    """
    space = judge.space
    frontier, found = Frontier(space, failed), Found(failed=list(failed))

    def fails(point: Point) -> bool:
        return judge.clearly_fails(point, scale)

    def ahead(points: Sequence[Point]) -> None:
        judge.look_ahead(points, scale)

    def rule_out(point: Point) -> None:
        frontier.rule_out(point)
        found.failed.append(point)

    looked = 0
    while (candidate := frontier.take()) is not None:
        if scale <= 1 and judge.lacks(candidate):
            judge.effort.bounded += 1
            rule_out(blame(candidate, space.largest, judge.lacks))
            continue
        if most is not None and looked >= most:
            return Found(None, proven=False, failed=found.failed)
        if candidate not in judge.seen and fails(candidate):
            # An estimate, or a first simulation: it need not be simulated any more precisely.
            rule_out(blame(candidate, space.largest, fails, ahead))
            continue
        looked += 1
        (seen,) = judge.simulate([candidate], scale)
        verdict = seen.verdict(judge.slos, scale)
        if verdict is Verdict.MEETS and (most is not None or judge.confirmed(candidate)):
            found.best = candidate
            break
        if verdict is Verdict.FAILS and fails(candidate):
            rule_out(blame(candidate, space.largest, fails, ahead))
            continue
        # It fails by a hair, or is too close to tell: what is below it does no better, and more is not said.
        if verdict is not Verdict.FAILS:
            found.close.append(candidate)
        rule_out(candidate)
    found.proven = not frontier.ended
    return found


def blame(
    point: Point,
    largest: Point,
    fails: Callable[[Point], bool],
    ahead: Callable[[Sequence[Point]], None] = lambda _: None,
) -> Point:
    """Return a deployment that fails and has as much as possible of everything.

    Args:
        point: A deployment that fails.
        largest: The most of everything; it does not fail.
        fails: Tells whether a deployment fails beyond doubt.
        ahead: Is told which deployments are asked about next, so that they can be looked at side by side.
    """

    def with_low(axes: Sequence[int]) -> Point:
        """Return the largest deployment but for these axes."""
        return tuple(point[i] if i in axes else most for i, most in enumerate(largest))

    def explain(fixed: tuple[int, ...], changed: bool, axes: tuple[int, ...]) -> tuple[int, ...]:
        """Return the fewest of some axes that, low together with the fixed ones, make it fail."""
        if changed and fails(with_low(fixed)):
            return ()
        if len(axes) == 1:
            return axes
        half = len(axes) // 2
        first, second = axes[:half], axes[half:]
        ahead([with_low((*fixed, *first)), with_low((*fixed, *second))])
        right = explain((*fixed, *first), True, second)
        left = explain((*fixed, *right), bool(right), first)
        return (*left, *right)

    low = tuple(i for i, (at, most) in enumerate(zip(point, largest, strict=True)) if at < most)
    if not low:
        return point
    guilty = explain((), False, low)
    found = with_low(guilty)
    if not fails(found):
        return point  # more does harm here: nothing else follows from it
    for axis in guilty:
        good, bad = largest[axis], found[axis]
        while good - bad > 1:
            middle = (good + bad) // 2
            if fails((*found[:axis], middle, *found[axis + 1 :])):
                bad = middle
            else:
                good = middle
        found = (*found[:axis], bad, *found[axis + 1 :])
    return found
