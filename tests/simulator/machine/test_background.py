"""Background work takes its share of a processor, and of nothing else."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from sim_models import act, agrees, clients, entry, exp, model, mva, ps, service

from mup.errors import ModelError, SimulationError
from mup.lqn import Migration, Model, Processor, model_from_json, model_to_json
from mup.lqn.comparison import compare
from mup.lqn.edits import with_clients, with_speed
from mup.lqn.lqnx import load_lqnx, save_lqnx
from simulator.analytic import estimate
from simulator.analytic.product_form import product_form
from simulator.api import simulate
from simulator.fluid import fluid

THINK, WORK = 0.1, 0.01


def busy(background: float, *, cores: int = 1, users: int = 1, speed: float = 1.0) -> Model:
    """Users who think for 100 ms and then work for 10 ms on a machine that has something else to do."""
    machine = replace(ps("p", cores, speed), background=background)
    worker = service("S", entry("work", act("work", exp(WORK))), processor="p")
    return model(clients(users, exp(THINK), calls="S.work"), worker, processors=(machine,))


@pytest.mark.slow
@pytest.mark.parametrize(("users", "background"), [(1, 0.3), (5, 0.1), (15, 0.3)])
def test_one_core_serves_open_and_closed_work(users: int, background: float) -> None:
    """In a product-form network open work is as if closed work took 1 / (1 - background) times as long."""
    throughput, (response,) = mva(users, THINK, [WORK / (1 - background)])
    utilization = throughput * WORK + background
    found = simulate(busy(background, users=users), precision=0.015, seed=users)
    assert not found.warnings
    assert agrees(found.cycle.response_time, response)
    assert agrees(found.processors["p"].utilization, utilization)


@pytest.mark.parametrize("speed", [1.0, 2.0])
def test_an_idle_machine_is_as_busy_as_its_background(speed: float) -> None:
    """It is stated in processor time at speed 1, and may be more than a core's worth of it."""
    tested = busy(1.7 * speed, cores=4, speed=speed)
    tested = tested.with_task(clients(1, exp(10.0), calls="S.work"))
    found = simulate(tested, horizon=2000.0)
    assert found.processors["p"].utilization.mean == pytest.approx(1.7 / 4, rel=0.02)
    assert estimate(tested).processors["p"] == pytest.approx(1.7 / 4, rel=0.002)


def test_what_is_left_can_be_used() -> None:
    """At saturation users get what the background leaves, for every engine; all of the processor is used."""
    tested = busy(0.4, cores=2, users=100)
    capacity = (2 - 0.4) / WORK
    simulated = simulate(tested, precision=0.015)
    assert simulated.cycle.throughput.mean == pytest.approx(capacity, rel=0.02)
    assert not simulated.warnings
    estimated = estimate(tested)
    assert estimated.cycle.throughput == pytest.approx(capacity, rel=0.01)
    flowing = fluid(tested)
    assert flowing.cycle["throughput"] == pytest.approx(capacity, rel=0.01)
    for share in (
        simulated.processors["p"].utilization.mean,
        estimated.processors["p"],
        flowing.processors["p"]["utilization"],
    ):
        assert share == pytest.approx(1.0, abs=0.001)


@pytest.mark.slow
def test_threads_that_stick_to_cores_share_them_with_it() -> None:
    """A host with its own scheduler loses as much as one that is shared ideally."""
    tested = busy(0.3, cores=2, users=10)
    (machine,) = tested.processors
    machine = replace(machine, discipline="cores", migration=Migration(wake=1.0, steal=1.0))
    found = simulate(replace(tested, processors=(machine,)), precision=0.015)
    alone = simulate(replace(tested, processors=(replace(machine, background=0.0),)), precision=0.015)
    fewer = found.cycle.throughput.mean / alone.cycle.throughput.mean
    expected = fewer * alone.processors["p"].utilization.mean + 0.3 / 2
    assert found.processors["p"].utilization.mean == pytest.approx(expected, rel=0.02)
    assert found.cycle.response_time.mean > 1.05 * alone.cycle.response_time.mean


def test_arrivals_beyond_what_is_left_are_refused() -> None:
    """The message says how much that is."""
    tested = busy(0.5)
    open_work = replace(tested.task("S").entries[0], arrivals=exp(WORK / 0.6))
    tested = tested.with_task(replace(tested.task("S"), entries=(open_work,)))
    with pytest.raises(SimulationError, match=r"demand 0\.6 core-seconds .*, which offers 0\.5"):
        simulate(tested)


def test_no_closed_form_knows_it() -> None:
    """The exact solution of product-form networks is left to models without."""
    assert product_form(busy(0.0)) is not None
    assert product_form(busy(0.1)) is None


def test_it_survives_files_edits_and_comparisons() -> None:
    """It belongs to the machine: it stays when cores become faster and users more."""
    tested = with_clients(with_speed(busy(0.25, cores=2), "p", 1.5), 7)
    assert tested.processors[0].background == 0.25
    assert model_from_json(model_to_json(tested)) == tested
    (change,) = compare(busy(0.1), busy(0.2))
    assert (change.field, change.old, change.new) == ("background", 0.1, 0.2)


def test_lqnx_has_slower_cores_instead(tmp_path: Path) -> None:
    """Only if the user accepts an approximation."""
    tested = busy(0.5, cores=2)
    with pytest.raises(ModelError, match="no task asks for"):
        save_lqnx(tested, tmp_path / "m.lqnx")
    save_lqnx(tested, tmp_path / "m.lqnx", approximate=True)
    assert load_lqnx(tmp_path / "m.lqnx").processors[0].speed == pytest.approx(0.75)


def test_parts_have_none() -> None:
    """Work in the background is done on the machine."""
    tested = busy(0.0, cores=2)
    part = Processor(name="part", parent="p", background=0.1)
    with pytest.raises(ModelError, match="only a machine has one"):
        replace(tested, processors=(*tested.processors, part))


@pytest.mark.parametrize("background", [-0.1, 2.0, math.inf, True, "1"])
def test_nonsense_is_refused(background: float) -> None:
    """It is less than what the machine can do."""
    with pytest.raises(ModelError, match="below cores x speed"):
        Processor(name="p", cores=4, speed=0.5, background=background)
