"""What does a model predict, roughly, within milliseconds? A layered mean-value estimate.

Every place where requests queue becomes a *station*: the threads of a task, its front, a processor.
What holds a server of one station while it visits others (a client, a thread) is a *customer* of a closed
network of those. Networks are solved from the bottom up for every number of customers; the throughput
they reach with 1, 2, ... threads is the speed of the pool's station in the network above (aggregation).
What stations have in common (a processor under several tasks, a task with several callers) is found
by iteration: in each network the others appear as sources of a known throughput. See
docs/explanation/analytic.md for the approximations and for how wrong they are.
"""

from __future__ import annotations

import time
from typing import Final

import numpy as np

from mup.errors import SimulationError
from mup.lqn.model import Model
from simulator.analytic.fixed_point import TOLERANCE, FixedPoint
from simulator.analytic.layers import Layers
from simulator.analytic.operating_point import VISITS, WORK
from simulator.analytic.reports.report import (
    CycleEstimate,
    Estimate,
    Reporter,
    Solution,
    TaskEstimate,
    ThinkTime,
)
from simulator.preparing import Observed, prepared

__all__ = ["CycleEstimate", "Estimate", "TaskEstimate", "estimate", "observed"]

ROUGHLY: Final = 0.003
"""Relative change of cycle times from which on the estimate of a load goes on."""


def observed(model: Model) -> Observed:
    """Return the load of a prepared model; it raises what `estimate` does."""
    found = estimate(model, tolerance=ROUGHLY, rates_only=True)
    return Observed(
        {t.name: found.tasks[t.name].throughput for t in model.reference_tasks if not t.is_open},
        {name: share for name, share in found.processors.items() if share is not None},
        {name: task.busy for name, task in found.tasks.items()},
    )


def estimate(model: Model, *, tolerance: float = TOLERANCE, rates_only: bool = False) -> Estimate:
    """Estimate one scenario.

    Args:
        model: Calibrated at least where clients can get to.
        tolerance: Relative change of times from one iteration to the next that counts as none.
        rates_only: Stop as soon as cycle times, and with them all rates, no longer change; single waiting
            times need more iterations.

    Returns:
        Means of all figures. Always an estimate: see its documentation for errors to expect.

    Raises:
        UncalibratedError: The model lacks numbers.
        ModelError: An element has no analytic estimate; the message names it.
        SimulationError: Nothing would happen, a cycle takes no time, open arrivals exceed the capacity, or
            the iteration breaks down.
    """
    started = time.perf_counter()
    layers = Layers.of(prepared(model, observed, awake=True).model)
    try:
        # What is no number anywhere would be one nowhere in the end.
        with np.errstate(invalid="raise"):
            fixed = FixedPoint(layers)
            fixed.solve(tolerance, rates_only=rates_only)
            model = layers.model
            return Reporter(layers).estimate(_solution(fixed), model.tasks, model.processors, started)
    except ArithmeticError as error:
        raise SimulationError(
            "the iteration behind the analytic estimate breaks down for this model",
            where=model.name,
            hint="simulate it: 'mup simulate' without --engine analytic",
        ) from error


def _solution(fixed: FixedPoint) -> Solution:
    point, layers = fixed.point, fixed.point.layers
    return Solution(
        clients=[customers.rate for customers in point.clients],
        thinks=[_thinks(layers, root) for root in layers.roots],
        rates=point.rates,
        holds=[times.hold[0] for times in point.times],
        called=[mean for mean, _ in point.called],
        visits=point.total[VISITS].tolist(),
        work=point.total[WORK].tolist(),
        waits=point.wait,
        iterations=point.iterations,
        converged=fixed.converged,
    )


def _thinks(layers: Layers, root: int) -> list[ThinkTime]:
    """Return the think times of a source of load."""
    plan = layers.plans[root]
    own = layers.model.tasks[plan.task].think
    found = [(plan.graph.visits[s.name], *s.delay) for s in plan.steps if s.think]
    return found if own is None else [*found, (1.0, own.mean, own.variance)]
