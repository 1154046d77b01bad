"""Were the tasks of a race stopped before they had asked for anything?

Where a path waits for the first of several tasks, the model lets each of them ask: the others go on. A task
that waits for something else first, like a lock, may be cancelled before. Then the model has requests that
were never made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analyzer.calibration.matching import Match
from analyzer.static.translate import PathPlan
from mup.lqn.model import entry_label

__all__ = ["stopped_before"]

RARE = 0.02
"""A share of executions in which a task has not asked that is not worth a word."""


def stopped_before(plan: PathPlan, matches: Sequence[Match]) -> Iterator[str]:
    """Yield a warning for each task of a race that was stopped before its first request.

    Args:
        plan: A path.
        matches: The executions that took it.
    """
    for place, part in plan.parts():
        for index, tasks in part.races.items():
            asked = [
                sum(((*place, index, number), 0) in one.shape.steps for one in matches)
                for number in range(len(tasks))
            ]
            most = max(asked)
            for task, times in zip(tasks, asked, strict=True):
                if times < (1 - RARE) * most:
                    target, line = task.operations[0].target, part.operations[index].site.line
                    yield (
                        f"{entry_label(plan.task, plan.entry)}: where it waits for the first of several tasks"
                        f" (line {line}), {target} was asked in {times} of {most} executions before another"
                        " had ended; the model always asks it, so its load is too high. Let each task ask"
                        " before it waits for anything else"
                    )
