"""Length of the window of a step, and of its run.

A run of a step is one draw: users begin at random, and choose at random. What chance does to a single run is
known before it: the repeats of its rehearsal differ by nothing else. A window is long enough if that is
little beside the errors that are asked for; a longer one would show the same. Chance adds to the error of a
prediction more often than not, so short windows do not make it look better than it is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from case_studies.judge import (
    CYCLE_GOAL,
    LIGHT,
    LIGHT_CYCLE_GOAL,
    RESPONSE_GOAL,
    RESPONSE_GOAL_OF_CYCLE,
    UTILIZATION_GOAL,
)
from mup.lqn import Model
from simulator.figures.result import Figure
from simulator.studies.rehearsal import Rehearsal, cycle_seconds

__all__ = ["LONGEST_WINDOW", "chance", "fitting_window", "longer_window", "shortest_window", "step_seconds"]

SHORTEST_WINDOW: Final = 10.0
LONGEST_WINDOW: Final = 60.0
"""Seconds."""
CYCLES: Final = 1.2
"""A window is at least so many times as long as a cycle of one user: each begins one in it."""
CHANCE: Final = 0.25
"""Part of the errors asked for that chance may make, 19 times of 20."""
FAMILY_SECONDS: Final = 27 * 60.0
"""All steps of a family, each run once: half an hour with the time predictions take."""
START_SECONDS: Final = 10.0
"""Starting and stopping services and database, and probing the machine."""


def shortest_window(model: Model) -> float:
    """Return how many seconds a window has at least: whole fives."""
    return max(SHORTEST_WINDOW, 5.0 * math.ceil(CYCLES * cycle_seconds(model) / 5))


def chance(seen: Rehearsal) -> float:
    """Return how far a single run lands from its mean, as a part of the errors asked for; 19 times of 20."""
    cycle = seen.cycle_time.mean
    light = all(share.mean < LIGHT for share in seen.utilization.values())
    allowed = [
        (seen.cycle_time, (LIGHT_CYCLE_GOAL if light else CYCLE_GOAL) * cycle),
        (
            seen.response_time,
            max(RESPONSE_GOAL * seen.response_time.mean, RESPONSE_GOAL_OF_CYCLE * cycle),
        ),
        *((share, UTILIZATION_GOAL) for share in seen.utilization.values()),
    ]
    return max(seen.of_one_run(Figure(f.mean, f.ci95)).ci95 / error for f, error in allowed)


def longer_window(seen: Rehearsal, longest: float = LONGEST_WINDOW) -> float:
    """Return the window with which chance makes no more than `CHANCE` of the errors asked for, if one can.

    What chance does falls with the root of the length.

    Args:
        seen: A rehearsal with a window.
        longest: Seconds.

    Returns:
        Whole fives of seconds, not less than that window, else at most the longest.
    """
    too_much = max(1.0, chance(seen) / CHANCE)
    wanted = 5.0 * math.ceil(min(seen.seconds * too_much**2, longest) / 5)
    return max(seen.seconds, wanted)


def fitting_window(steps: Sequence[Mapping[str, Any]]) -> float:
    """Return the longest window, in whole fives of seconds, with which a family takes `FAMILY_SECONDS`.

    Args:
        steps: With windows of at most `LONGEST_WINDOW`, unless a cycle takes longer.
    """
    longest = LONGEST_WINDOW
    while longest > SHORTEST_WINDOW:
        cut = sum(max(step["seconds"] - longest, 0.0) for step in steps)
        if sum(map(step_seconds, steps)) - cut <= FAMILY_SECONDS:
            break
        longest -= 5.0
    return longest


def step_seconds(step: Mapping[str, Any]) -> float:
    """Return about how long one run of a step takes, until the cycles begun in its window are over."""
    seconds: float = START_SECONDS + step["warmup"] + step["seconds"] + step["cycle_time"]["mean"]
    return seconds
