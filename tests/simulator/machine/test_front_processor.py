"""A front whose workers share a core runs beside them: it is another process."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sim_models import act, agrees, clients, entry, exp, ps, service

from mup.lqn import Constant, Front, Model, Processor
from simulator import simulate
from simulator.analytic import estimate
from simulator.fluid import fluid

DEMAND, FRONT = 1.0, 0.5


def threads_behind_a_front(load: int) -> Model:
    """Eight threads on a part with one core of a host with two; the front needs half their time."""
    half = Constant(FRONT / 2)
    server = service(
        "A",
        entry("a", act("w", exp(DEMAND))),
        threads=8,
        processor="A.core",
        front=Front(request=half, reply=half),
    )
    parts = (ps("host", 2), Processor(name="A.core", parent="host"))
    return Model(name="front", tasks=(clients(load, exp(1.0), "A.a"), server), processors=parts)


def test_the_front_leaves_the_core_to_the_workers() -> None:
    """With many clients, the core is full of the workers' own work, and the host has the front's on top."""
    result = simulate(threads_behind_a_front(20), precision=0.006, seed=3)
    assert agrees(result.cycle.throughput, 1 / DEMAND, within=0.01)
    assert agrees(result.processors["A.core"].utilization, 1.0, within=0.01)
    assert agrees(result.processors["host"].utilization, (DEMAND + FRONT) / 2, within=0.01)


def _analytic(model: Model) -> float | None:
    return estimate(model).cycle.throughput


def _fluid(model: Model) -> float | None:
    return fluid(model).cycle["throughput"]


@pytest.mark.parametrize("engine", [_analytic, _fluid], ids=["analytic", "fluid"])
def test_estimates_know_it_too(engine: Callable[[Model], float | None]) -> None:
    """Past saturation, they give what the core can do, not what core and front together could."""
    assert engine(threads_behind_a_front(40)) == pytest.approx(1 / DEMAND, rel=0.03)
