"""An estimate of twice as many services takes twice the memory and twice the work per round, not four times."""

from __future__ import annotations

import math

import numpy as np
import pytest
from executed_lines import executed_lines
from sim_models import act, clients, entry, exp, model, ps, service

from mup.lqn import Model
from simulator.analytic import estimate, fixed_point
from simulator.analytic.entries.loads import Columns, Load
from simulator.analytic.fixed_point import FixedPoint
from simulator.analytic.layers import Layers

SMALL = 12
LINEAR = 2.3


def systems(count: int) -> Model:
    """As many separate systems: clients, a front service, one that two entries share, each on its processor."""
    tasks, processors = [], []
    for i in range(count):
        front = entry("f", act("w", exp(0.002), calls=f"B{i}.b B{i}.c"))
        tasks += [
            clients(4, exp(1.0), f"A{i}.f", name=f"U{i}"),
            service(f"A{i}", front, threads=2, processor=f"p{i}"),
            service(
                f"B{i}",
                entry("b", act("w", exp(0.003))),
                entry("c", act("w", exp(0.005))),
                threads=2,
                processor=f"q{i}",
            ),
        ]
        processors += [ps(f"p{i}"), ps(f"q{i}")]
    return model(*tasks, processors=tuple(processors))


def cells(solved: FixedPoint) -> int:
    """Numbers in all loads of a solved system."""
    point = solved.point
    loads = [*point.held, *point.as_called, *point.local]
    loads += [customers.profile for customers in (*point.clients, *point.pools.values())]
    return sum(load.values.size for load in loads)


def solved(count: int) -> FixedPoint:
    found = FixedPoint(Layers.of(systems(count)))
    found.solve(1e-4)
    return found


def test_memory_is_linear() -> None:
    """Loads have the columns of the stations that requests get to, not of all there are."""
    small, large = cells(solved(SMALL)), cells(solved(2 * SMALL))
    assert large == 2 * small


def test_work_is_linear(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds look at those who visit a station, not at all there are for each."""
    monkeypatch.setattr(fixed_point, "MAX_ITERATIONS", 2)
    small, large = (
        executed_lines(lambda n=size: solved(n), "/simulator/analytic/") for size in (SMALL, 2 * SMALL)
    )
    assert large < LINEAR * small


def test_systems_side_by_side_are_estimated_as_alone() -> None:
    """What does not meet makes no difference: every system has the figures it has by itself."""
    alone, many = estimate(systems(1)), estimate(systems(SMALL))
    for i in range(SMALL):
        for name in "AB":
            assert many.tasks[f"{name}{i}"].busy == pytest.approx(alone.tasks[f"{name}0"].busy, rel=1e-3)
    assert many.cycle.response_time == pytest.approx(alone.cycle.response_time, rel=1e-3)


def test_a_load_knows_its_columns() -> None:
    """A load is 0 at stations it does not have; delays are found as the last of all columns, and by -1."""
    columns = Columns((7, 2), 9)
    assert columns.of.tolist() == [2, 7, 9]
    load = Load(columns, np.array([[1.0, 0.0, 4.0], [2.0, 3.0, 0.0]]))
    assert (load[0, 2], load[0, 7], load[0, 5], load[0, 9], load[0, -1]) == (1.0, 0.0, 0.0, 4.0, 4.0)
    assert load.stations(0) == [2]
    assert load.stations(1) == [2, 7]
    assert math.isclose(load.total(0), 5.0)
    assert load.total(0, delays=False) == 1.0
    assert columns.places(Columns((7,), 9)).tolist() == [1, 2]
