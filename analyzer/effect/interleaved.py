"""Explore two versions of a project in turns on this machine.

A machine is not equally fast from one minute to the next, and a process is not equally fast from one start to
the next (where its memory lies, which core it begins on). So the versions take turns, base and head, head and
base, each turn with fresh services; both versions of a turn get the same random choices of the client. What
is left of the machine's speed is corrected by calibration, which knows it for every round.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from analyzer.calibration.explore import INTERRUPTED, ExploreSettings, explore
from analyzer.calibration.rundir import load_info
from analyzer.static.application import Application
from mup.errors import DeploymentError, LogError, UsageError
from mup.project import Project

__all__ = ["Side", "explore_in_turns"]

NEVER: Final = 1e-9
"""A relative half-width that no run reaches: the time decides."""
FEWEST_TURNS: Final = 3
"""From so many on an interval contains how much starts of the services differ."""
FEWEST_FROM: Final = 60.0
"""Seconds of budget from which on so many are made, also where a busy machine needs longer for them."""
LOAD_SECONDS: Final = 9.0
"""Under load, of each version in each turn, if there is time for ``FEWEST_TURNS``."""
SHORTEST_LOAD: Final = 3.0
"""Two rounds: one without think times, one with."""
START_SECONDS: Final = 6.0
"""What starting, warming up and stopping a version takes, until it is known."""
ROUND_SECONDS: Final = 1.5
WARMUP_SECONDS: Final = 1.0
IDLE_SECONDS: Final = 0.5
MOST_TURNS: Final = 12
"""More starts of the services tell hardly more."""
SEEDS: Final = 1000
"""Between the seeds of two turns: every round has one of its own."""


@dataclass(frozen=True, slots=True)
class Side:
    """A version that can be started.

    Attributes:
        role: ``BASE`` or ``HEAD``.
        name: What the user calls it.
        project: Its project.
        application: Its analysis.
    """

    role: str
    name: str
    project: Project
    application: Application


def explore_in_turns(
    base: Side,
    head: Side,
    folder: Path,
    *,
    budget: float,
    seed: int = 0,
    clock: Callable[[], float] = time.monotonic,
    on_turn: Callable[[str], None] = lambda _: None,
) -> Mapping[str, list[Path]]:
    """Explore both versions, in turns, until the time is up.

    Turns are shorter where that makes three of them. From 60 s on three are made, however long they take.

    Args:
        base: The old version.
        head: The new version.
        folder: Where run directories are created.
        budget: Seconds of wall time, starts of the services included. At least one turn is made.
        seed: Of the client's choices.
        clock: Tells the time.
        on_turn: Called with what is going on, one sentence each.

    Returns:
        The run directories by role, in the order of the turns.

    Raises:
        UsageError: One of the versions does not start, or cannot be measured; the message names it.
    """
    around = START_SECONDS
    fewest = FEWEST_TURNS if budget >= FEWEST_FROM else 1
    settings = ExploreSettings(
        width=NEVER,
        max_seconds=load_seconds(budget, FEWEST_TURNS, around),
        round_seconds=ROUND_SECONDS,
        warmup_seconds=WARMUP_SECONDS,
        idle_seconds=IDLE_SECONDS,
    )
    # A project is called by its folder unless it says otherwise; both are the same project.
    sides = (base, replace(head, project=replace(head.project, name=base.project.name)))
    runs: dict[str, list[Path]] = {side.role: [] for side in sides}
    started = clock()
    for turn in range(MOST_TURNS):
        begin = clock()
        if turn >= fewest and begin - started + 2 * (around + settings.max_seconds) > budget:
            break
        for side in sides if turn % 2 == 0 else sides[::-1]:
            on_turn(f"{clock() - started:.0f} of at most {budget:g} s: turn {turn + 1}, {side.role}")
            run = _explored(
                side, folder / f"{turn:02d}-{side.role}", replace(settings, seed=seed + SEEDS * turn)
            )
            runs[side.role].append(run)
            if settings.think_scale is None:
                # Equal pauses in all turns: a slower version would get others.
                scales = [w.think_scale for w in load_info(run).windows if w.phase == "cold"]
                settings = replace(settings, think_scale=scales[0]) if scales else settings
        now = clock()
        around = max(around if turn else 0.0, (now - begin) / 2 - settings.max_seconds)
        load = load_seconds(budget - (now - started), FEWEST_TURNS - turn - 1, around)
        settings = replace(settings, max_seconds=load)
    return runs


def load_seconds(left: float, turns: int, around: float) -> float:
    """Return how long each version is under load in a turn.

    Args:
        left: Seconds for all turns that are still to come.
        turns: That have to be made in them.
        around: Seconds that a version takes in a turn besides.
    """
    if turns < 1:
        return LOAD_SECONDS
    return min(LOAD_SECONDS, max(SHORTEST_LOAD, left / turns / 2 - around))


def _explored(side: Side, directory: Path, settings: ExploreSettings) -> Path:
    try:
        run = explore(side.project, side.application, settings, directory=directory)
    except DeploymentError as error:
        raise UsageError(
            f"{side.role} does not start: {error.message}",
            where=side.name,
            hint=error.hint or "of a commit there is only what was committed; a folder has all its files",
        ) from error
    except LogError as error:
        raise UsageError(
            f"{side.role} cannot be measured: {error.message}", where=side.name, hint=error.hint
        ) from error
    if load_info(run).stop == INTERRUPTED:
        raise KeyboardInterrupt
    return run
