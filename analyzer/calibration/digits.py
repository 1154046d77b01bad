"""Number of significant digits of a measured time.

Clocks count nanoseconds. What is computed of their readings has sixteen digits all the same, and a model of a
large application has a hundred thousand of them.
"""

from __future__ import annotations

from dataclasses import replace

from mup.lqn import Activity, Distribution, Empirical, Model

__all__ = ["with_meaningful_digits"]

DIGITS = 7
"""Of a time of 1 ms the last one is a tenth of a nanosecond."""


def with_meaningful_digits(model: Model) -> Model:
    """Return a model whose empirical times have seven significant digits."""

    def short(time: Distribution | None) -> Distribution | None:
        if not isinstance(time, Empirical):
            return time
        return Empirical(tuple(float(f"{value:.{DIGITS}g}") for value in time.values))

    def activity(old: Activity) -> Activity:
        return replace(old, demand=short(old.demand), delay=short(old.delay))

    tasks = tuple(
        replace(
            task,
            entries=tuple(
                replace(entry, activities=tuple(activity(a) for a in entry.activities))
                for entry in task.entries
            ),
        )
        for task in model.tasks
    )
    return replace(model, tasks=tasks)
