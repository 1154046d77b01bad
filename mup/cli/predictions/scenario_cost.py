"""Duration of simulations, printed before they begin if it is long enough to matter."""

from __future__ import annotations

import math
import os
import sys
from typing import TYPE_CHECKING

import click

from mup.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mup.lqn.model import Model
    from simulator.studies.whatif import Axis

__all__ = ["announce_clients", "announce_estimates", "announce_grid"]

ANNOUNCED_SCENARIOS = 50
"""From so many scenarios on, their number and time are said beforehand."""
CONFIRMED_SCENARIOS = 1000
"""More are not simulated without --yes."""
ANNOUNCED_CLIENTS = 200_000
"""From so many clients on, the time of one simulation is said beforehand."""
PILOT = 100
"""The pilot has so many times fewer clients; events per client hardly depend on their number."""
RUNS = {"saturation": 0.5, "interval": 1.5, "difference": 1.0}
"""Length of what else is simulated for a scenario, in simulations of it; by the option that asks for it."""


def announce_grid(
    model: Model,
    axes: Sequence[Axis],
    *,
    precision: float,
    seed: int,
    workers: int | None,
    elsewhere: bool,
    extras: Sequence[bool],
    difference: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Say how many scenarios a grid has and about how long they take; ask if they are very many.

    Args:
        model: The baseline; simulated once, to see how long that takes.
        axes: Those of the grid.
        precision: Of every scenario.
        seed: Of every scenario.
        workers: Simulations at once; None = one per core.
        elsewhere: Others simulate: how many at once is not known here.
        extras: Which of saturation and prediction interval are wanted, too.
        difference: Whether differences are wanted, by paired runs.
        yes: Do not ask.
        as_json: Standard output is a document: the user cannot be asked.

    Raises:
        UsageError: There are very many, and the user does not want them, or cannot be asked.
    """
    count = math.prod(len(axis) for axis in axes)
    if count < ANNOUNCED_SCENARIOS:
        return
    from simulator import simulate

    one = simulate(model, precision=precision, seed=seed).wall_seconds
    runs = 1 + sum(
        RUNS[part] for part, is_wanted in zip(RUNS, (*extras, difference), strict=True) if is_wanted
    )
    seconds = count * runs * one
    if elsewhere:
        text = f"{count:,} scenarios, about {_about(seconds)} of one core"
    else:
        text = f"{count:,} scenarios, about {_about(seconds / (workers or os.cpu_count() or 1))}"
    faster = [
        f"--no-{part}" for part, is_wanted in zip(RUNS, (*extras, difference), strict=True) if is_wanted
    ]
    hint = "" if not faster else f" ({' '.join(faster)} is faster, --engine analytic much faster)"
    _say_or_ask(f"{text}{hint}", count, yes=yes, as_json=as_json)


def announce_estimates(model: Model, axes: Sequence[Axis], engine: str, *, yes: bool, as_json: bool) -> None:
    """Say the same of a grid that is estimated.

    Args:
        model: The baseline; estimated once, to see how long that takes.
        axes: Those of the grid.
        engine: Which estimate.
        yes: Do not ask.
        as_json: Standard output is a document: the user cannot be asked.

    Raises:
        UsageError: There are very many, and the user does not want them, or cannot be asked.
    """
    count = math.prod(len(axis) for axis in axes)
    if count < ANNOUNCED_SCENARIOS:
        return
    import time

    from mup.cli.predictions.scenario_estimates import estimator

    solve = estimator(model, engine)
    # Twice: what is loaded or prepared for the first one is there for all others.
    for _ in range(2):
        started = time.perf_counter()
        solve(model)
    seconds = time.perf_counter() - started
    _say_or_ask(f"{count:,} scenarios, about {_about(count * seconds)}", count, yes=yes, as_json=as_json)


def _say_or_ask(text: str, count: int, *, yes: bool, as_json: bool) -> None:
    """Say how long a grid takes; ask if its scenarios are very many.

    Raises:
        UsageError: They are not wanted, or the user cannot be asked.
    """
    if count <= CONFIRMED_SCENARIOS or yes:
        click.echo(text, err=True)
        return
    if as_json or not sys.stdin.isatty():
        raise UsageError(
            f"{text}, and no terminal to ask whether that is wanted", hint="name fewer values, or add --yes"
        )
    if not click.confirm(f"{text}. Go on?", err=True):
        raise UsageError("nothing was computed", hint="name fewer values")


def announce_clients(model: Model, *, precision: float | None, horizon: float | None, seed: int) -> None:
    """Say about how long the simulation of very many clients takes, judging by a hundredth of them."""
    from mup.lqn.edits import with_clients
    from simulator import simulate

    sources = [task for task in model.reference_tasks if not task.is_open]
    if len(sources) != 1 or sources[0].threads < ANNOUNCED_CLIENTS:
        return
    clients = int(sources[0].threads)
    few = with_clients(model, clients // PILOT)
    pilot = simulate(few, precision=precision, horizon=horizon, seed=seed)
    click.echo(f"{clients:,} clients: about {_about(pilot.wall_seconds * PILOT)}; Ctrl-C stops", err=True)


def _about(seconds: float) -> str:
    """Return a duration with one significant unit, as an estimate deserves."""
    for unit, name in ((86400.0, "day"), (3600.0, "hour"), (60.0, "minute")):
        if seconds >= 1.5 * unit:
            return f"{seconds / unit:.0f} {name}s"
    return f"{max(1, round(seconds))} s"
