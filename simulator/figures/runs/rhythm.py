"""How long clients keep the rhythm in which they began.

Clients who think for a constant time, and whose requests always take about equally long, come back in the
order and at the distances in which they began: two of them that meet at a service meet again in every cycle.
A run of such a model shows one of many rhythms, for as long as one cares to simulate, and its batches look
independent; a run with another seed shows other figures.

What makes them forget is the variation of their own cycles. With the standard deviation s of a cycle of
length C, the distance of two clients diffuses on a circle of circumference C by a variance of 2 s^2 per
cycle; its slowest mode decays with the relaxation time C (C / (2 pi s))^2 (the heat equation on a circle).
What clients do to each other comes on top of it and is left out: it may make them forget sooner, or tie them
together.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np

from mup.errors import LimitError, SimulationError
from simulator.figures.runs.engines import DEFAULT_ENGINE, engine_of
from simulator.machine.budget import Budget, limit_error
from simulator.program import THINK, Population, Program

__all__ = ["keeps", "relaxation_seconds"]

CYCLES: Final = 60
"""Of one client; they tell a standard deviation to a fifth."""
BLOCK: Final = 4
"""Cycles that count as one: what one cycle takes longer, the next may take less."""
FEWEST: Final = 5
"""Blocks that tell a standard deviation at all."""
MOST_EVENTS: Final = 200_000
SOON: Final = 5
"""Cycles. What is forgotten within so many is forgotten within every batch of a run."""


def keeps(relaxation: float, cycle: float) -> bool:
    """Tell whether clients keep their rhythm for so many cycles that batches of a run would show it.

    Args:
        relaxation: Seconds.
        cycle: Seconds of a cycle in which nobody waits.
    """
    return relaxation > SOON * cycle


def relaxation_seconds(program: Program, seed: int, budget: Budget | None = None) -> float:
    """Return after how long clients have forgotten how they began, in simulated seconds.

    Of several kinds of clients, it is that of those who remember longest. It is 0 where fewer than two
    clients come back, where all think at random for long enough to forget soon, and where a client cannot be
    run alone; infinite where a cycle always takes the same time.

    Args:
        program: What is to be run.
        seed: Of the run of single clients.
        budget: Of the study.

    Raises:
        LimitError: The budget of the study is used up.
    """
    if sum(p.clients for p in program.populations) < 2:
        return 0.0
    steady = [number for number, p in enumerate(program.populations) if not _thinks_at_random(program, p)]
    if not steady:
        return 0.0
    single = replace(
        program,
        populations=tuple(
            p if p.is_open else replace(p, clients=1, first=p.start) for p in program.populations
        ),
    )
    engine = engine_of(DEFAULT_ENGINE, single, seed)
    longest = max(program.populations[number].nominal.total for number in steady)
    own = Budget("a look at single clients", events=MOST_EVENTS, outer=budget)
    try:
        engine.run_until((CYCLES + 1) * longest, own)
    except LimitError as error:
        if error.reached.study != own.study:
            raise limit_error(error.reached, where=program.name) from None
        return 0.0  # its cycles are too long to look at many
    except SimulationError:
        return 0.0  # it waits for others
    samples = engine.population_samples
    return max(_relaxation(np.diff(samples[number].arrays()[0])) for number in steady)


def _thinks_at_random(program: Program, population: Population) -> bool:
    """Tell whether the think time before a cycle alone makes a client forget soon; so it is from outside."""
    if population.is_open:
        return True
    operation, _, think, _ = program.code[population.start]
    if operation != THINK:
        return False
    relaxation = _forgets(population.nominal.total, program.distributions[think].variance)
    return not keeps(relaxation, population.nominal.total)


def _forgets(cycle: float, variance: float) -> float:
    """Return the relaxation time of cycles with a mean length and a variance."""
    return cycle**3 / (4 * math.pi**2 * variance) if variance else math.inf


def _relaxation(cycles: np.typing.NDArray[np.float64]) -> float:
    """Return the relaxation time, given the lengths of one client's cycles, one after the other."""
    blocks = len(cycles) // BLOCK
    if blocks < FEWEST:
        return 0.0
    sums = cycles[: blocks * BLOCK].reshape(blocks, BLOCK).sum(axis=1)
    return _forgets(float(sums.mean()) / BLOCK, float(sums.var(ddof=1)) / BLOCK)
