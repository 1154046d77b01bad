"""How threads move between cores, where that depends on how busy these are."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sim_models import act, clients, entry, exp, model, service

from analyzer.host.behaviour import AMONG_SERVICES
from mup.errors import ModelError, UsageError
from mup.lqn import Migration, Model, Processor, model_from_json, model_to_json
from mup.lqn.comparison import compare
from simulator import simulate
from simulator.api import observed_load
from simulator.preparing import Load, at_load, prepared
from simulator.program.compiler import compile_model

ROWS = ((0.2, 1.0, 0.0), (0.6, 0.5, 0.2), (1.0, 0.0, 0.4))


def crowded(rows: tuple[tuple[float, float, float], ...] = ROWS, count: int = 6) -> Model:
    """Return two services whose workers share two cores, under some clients."""
    moving = Migration(wake=0.9, steal=0.9, balance=20.0, by_utilization=rows)
    host = Processor(name="cpu", cores=2, discipline="cores", migration=moving)
    first = entry("a", act("begin", exp(0.003), calls="B.b"), act("end", exp(0.001)))
    return model(
        clients(count, exp(0.02), calls="A.a"),
        service("A", first, threads=4, processor="cpu"),
        service("B", entry("b", act("work", exp(0.004))), threads=4, processor="cpu"),
        processors=(host,),
    )


def moving(of: Model) -> Migration:
    """Return how threads move on its host."""
    found = of.processor("cpu").migration
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("utilization", "wake", "steal"),
    [
        (0.0, 1.0, 0.0),
        (0.2, 1.0, 0.0),
        (0.4, 0.75, 0.1),
        (0.6, 0.5, 0.2),
        (0.9, 0.125, 0.35),
        (1.0, 0.0, 0.4),
    ],
)
def test_it_is_linear_between_its_rows(utilization: float, wake: float, steal: float) -> None:
    """Outside of all rows the nearest one holds; moves per second are the same everywhere."""
    found = moving(crowded()).at(utilization)
    assert (found.wake, found.steal, found.balance) == (pytest.approx(wake), pytest.approx(steal), 20.0)
    assert not found.by_utilization
    assert moving(at_load(crowded(), Load(utilization={"cpu": utilization}))) == found


def test_without_rows_it_is_always_the_same() -> None:
    """Two numbers are enough where nothing depends on the load."""
    plain = Migration(wake=0.3, steal=0.2)
    assert plain.at(0.1) is plain
    assert not replace(crowded().processor("cpu"), migration=plain).depends_on_utilization


@pytest.mark.parametrize("count", [1, 6, 20])
def test_a_simulation_looks_it_up_at_its_own_utilization(count: int) -> None:
    """What is settled at belongs to the utilization that it brings about, and simulates as constants do."""
    asked = crowded(count=count)
    settled = prepared(asked, observed_load).model
    result = simulate(asked, precision=0.02)
    found = moving(asked).at(result.processors["cpu"].utilization.mean)
    assert moving(settled).wake == pytest.approx(found.wake, abs=0.05)
    assert moving(settled).steal == pytest.approx(found.steal, abs=0.05)


def test_it_matters() -> None:
    """Threads that find the idle core wait less."""
    never, always = crowded(((0.0, 0.0, 0.0),)), crowded(((0.0, 1.0, 1.0),))
    slow, quick = (simulate(m, precision=0.02).cycle.response_time.mean for m in (never, always))
    assert quick < 0.9 * slow


def test_engines_want_it_settled() -> None:
    """A program has one number."""
    with pytest.raises(UsageError, match="depend on the load"):
        compile_model(crowded())


def test_a_file_keeps_it() -> None:
    """JSON and back gives the same model, and a comparison shows what is different."""
    assert model_from_json(model_to_json(crowded())) == crowded()
    changes = compare(crowded(), crowded(ROWS[:2]))
    assert [change.field for change in changes] == ["migration.by_utilization"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (((0.5, 0.1, 0.1), (0.1, 0.1, 0.1)), "ascend"),
        (((0.5, 1.1, 0.1),), "two probabilities"),
        (((1.5, 0.1, 0.1),), "a utilization and two probabilities"),
    ],
)
def test_nonsense_is_refused(rows: tuple[tuple[float, float, float], ...], message: str) -> None:
    """Every rule has a message that names the field."""
    with pytest.raises(ModelError, match=message) as caught:
        crowded(rows)
    assert "migration.by_utilization" in str(caught.value)


@pytest.mark.parametrize("rows", [[[0.5, 0.1]], "often", [0.5]])
def test_a_file_with_something_else_is_refused(rows: object) -> None:
    """A row is a list of three numbers."""
    data = model_to_json(crowded())
    data["processors"][0]["migration"]["by_utilization"] = rows
    with pytest.raises(ModelError, match=r"by_utilization.*a utilization, a wake and a steal"):
        model_from_json(data)


def test_what_services_do_is_a_table() -> None:
    """Traced figures can be part of a model; the busier the cores, the less an idle one is looked for."""
    assert crowded(AMONG_SERVICES)
    busy, idle = (Migration(by_utilization=AMONG_SERVICES).at(share) for share in (0.95, 0.3))
    assert busy.wake < idle.wake
    assert busy.steal > idle.steal
