"""One long run, until its figures are precise enough."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from mup.errors import LimitError
from simulator.figures.operational_laws import check_stability
from simulator.figures.output import BATCHES, Window, open_window
from simulator.figures.runs.engines import Engine
from simulator.figures.runs.repeat import stuck
from simulator.figures.runs.run import Progress, Run
from simulator.machine.budget import Budget, Reached, limit_error
from simulator.machine.recording import MAX_BINS, Bins, Layout, most_bins
from simulator.program import Program

__all__ = ["bin_width", "run_once", "within_limits"]

BINS_PER_CYCLE: Final = 5
FIRST_CHECK: Final = 1000
"""So many bins, 200 of the shortest cycles, are simulated before a run can end. Intervals of runs that
precision ends much earlier are too narrow (``benchmarks/interval_coverage.py`` prints how many hold)."""
CHECK_GROWTH: Final = 1.25
"""Precision is looked at again after a quarter more: no run is longer than necessary by more than that."""
MIN_CYCLES: Final = 200
MIN_CYCLES_OF_EACH: Final = 20
MIN_CYCLES_CONTROLLED: Final = 8000
"""As ``MIN_CYCLES``, with control variates. In short batches near saturation figures do not move in step with
the controls, so that residuals are too small: of forks and joins at utilization 0.95 that ended after 3500
cycles, 90 % of the intervals of throughput held, after 8000 95 % (``benchmarks/interval_coverage.py``)."""
MOST_GAIN: Final = 4.0
"""So many times wider than requested may the intervals of cycle figures be without control variates: what the
controls do not explain, of other figures, would be too rough."""


def run_once(
    program: Program,
    engine: Engine,
    *,
    precision: float | None,
    horizon: float | None,
    least: float,
    limit: int,
    own: Budget,
    outer: Budget | None,
    may_pile_up: bool,
    control_variates: bool,
    progress: Callable[[Progress], None] | None,
) -> Run:
    """Run a program until precision, the horizon or a limit ends it.

    Args:
        program: What to run.
        engine: A run of it, at its beginning.
        precision: As for `simulator.api.simulate`, like the horizon.
        horizon: Simulated seconds, warm-up included.
        least: Simulated seconds before precision may end it.
        limit: Timed steps that end it.
        own: Budget of the run.
        outer: Of the study it is part of.
        may_pile_up: Do not refuse load that grows for ever.
        control_variates: Use them.
        progress: Called now and then.

    Raises:
        LimitError: A limit was reached too soon for any figure.
        SimulationError: The scenario deadlocks, cannot make progress, or load piles up.
    """
    reached_limit: Reached | None = None
    layout = Layout(program)
    bins = Bins(layout.width, bin_width(program, horizon, most_bins(layout.width)))
    next_check = FIRST_CHECK * bins.width
    last = math.inf if horizon is None else horizon * (1 - 1e-9)

    def precise_enough(window: Window, reached: float) -> bool:
        """Tell whether precision ends the run."""
        if precision is None or reached > precision or bins.end < least:
            return False
        return _sufficient(window, precision)

    while True:
        try:
            engine.record(bins, min(next_check, last), limit, own)
        except LimitError as error:
            reached_limit = within_limits(own, error.reached, outer)
        else:
            reached_limit = within_limits(own, own.reached(), outer)
        if engine.events >= limit:
            reached_limit = Reached(own.study, "events", limit)
        if reached_limit is not None and bins.count < BATCHES[-1]:
            raise limit_error(reached_limit, where=program.name)
        finished = bins.end >= last
        over = finished or reached_limit is not None
        if not over and bins.end < next_check:
            continue
        next_check = bins.end * CHECK_GROWTH
        window = open_window(program, layout, bins, controlled=control_variates and not may_pile_up)
        reached = window.precision()
        if not may_pile_up:
            check_stability(window)
        if progress is not None:
            progress(Progress(bins.end, engine.events, reached))
        if over or precise_enough(window, reached):
            break
    if finished or precise_enough(window, reached):
        reached_limit = None
    _check_alive(program, layout, bins)
    return Run(
        window=window,
        population_samples=engine.population_samples,
        entry_samples=engine.entry_samples,
        simulated_seconds=bins.end,
        warmup_seconds=window.begin,
        events=engine.events,
        replications=1,
        limit=reached_limit,
    )


def within_limits(own: Budget, reached: Reached | None, outer: Budget | None) -> Reached | None:
    """Return the limit of a run that has been reached.

    Raises:
        LimitError: It is one of the study that the run is part of.
    """
    if reached is not None and outer is not None and reached.study != own.study:
        raise limit_error(reached)
    return reached


def bin_width(program: Program, horizon: float | None, most: int = MAX_BINS) -> float:
    """Return a first bin width: a fraction of the shortest cycle, and such that bins end at the horizon."""
    cycles = [p.nominal.total if not p.is_open else 1 / p.rate for p in program.populations]
    width = min(cycles) / BINS_PER_CYCLE
    if horizon is None:
        return width
    # So few that none are ever added up: then the last one ends at the horizon.
    return horizon / min(max(FIRST_CHECK, math.ceil(horizon / width)), MAX_BINS // 2, most - 1)


def _sufficient(window: Window, precision: float) -> bool:
    """Tell whether the intervals of a window can be believed, and other figures are not much rougher."""
    cycles = [
        float(window.sums[:, window.layout.cycles(p)].sum()) for p in range(len(window.program.populations))
    ]
    least = MIN_CYCLES_CONTROLLED if window.controls.chosen else MIN_CYCLES
    enough = sum(cycles) >= least and min(cycles) >= MIN_CYCLES_OF_EACH
    sound = enough and window.independent and window.warmed_up
    return sound and window.precision_of_chance() <= MOST_GAIN * precision


def _check_alive(program: Program, layout: Layout, bins: Bins) -> None:
    """Refuse a run in which one population stands still while others go on (a partial deadlock)."""
    half = bins.rows[bins.count // 2 :]
    # All other clients served first, one after the other, would still be faster than this.
    patience = 10 * sum(p.clients * p.nominal.total for p in program.populations)
    if any(p.is_open for p in program.populations):
        return  # a request that waits for ever makes others wait, and that shows
    for index in range(len(program.populations)):
        if half[:, layout.cycles(index)].sum() == 0 and len(half) * bins.width > patience:
            raise stuck(program, index, len(half) * bins.width)
