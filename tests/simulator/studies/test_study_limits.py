"""Every study ends at its limits of events and wall time, and keeps what it has found."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sim_models import act, clients, entry, exp, model, ps, service

from mup.errors import LimitError
from mup.lqn import Call, Constant, Model, Precedence
from mup.lqn.edits import with_clients
from mup.lqn.routing_edits import with_count
from simulator import simulate
from simulator.machine.budget import Budget, Reached
from simulator.studies import rehearsal
from simulator.studies.autoscale import Settings, autoscale
from simulator.studies.grids import run_scenarios
from simulator.studies.rehearsal import rehearse
from simulator.studies.saturation import saturation
from simulator.studies.whatif import Change, Scenario

ENDLESS = 10**9
"""Rounds that take no time: several minutes of computing at one moment."""


def looping(rounds: int) -> Model:
    """Clients of a service that goes round and round and takes no time for it."""
    body = entry(
        "a", act("s"), act("round"), act("e", exp(0.05)),
        arcs=(Precedence(pre=("s",), post=("round", "e"), fork="loop", counts=(Constant(rounds),)),),
    )  # fmt: skip
    return model(
        clients(3, exp(1.0), "A.a"), service("A", body, threads=2, processor="cpu"), processors=(ps(),)
    )


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_steps_that_take_no_time_end(engine: str) -> None:
    """No event ever ends such a run: wall time does, in the middle of an instant."""
    with pytest.raises(LimitError, match=r"the simulation ended at its limit of 0\.5 s, before") as caught:
        simulate(looping(ENDLESS), engine=engine, max_seconds=0.5)
    assert caught.value.where == "test"
    assert caught.value.reached == Reached("the simulation", "seconds", 0.5)


def test_a_simulation_keeps_what_it_has() -> None:
    """Events are the same everywhere: two runs that end at that limit are equal, and say so in words and data."""
    first, again = (simulate(looping(2), precision=0.001, max_events=5000) for _ in range(2))
    assert first == again
    assert first.limit == Reached("the simulation", "events", 5000)
    assert first.to_json()["limit"] == {"study": "the simulation", "limit": "events", "value": 5000}
    (warning,) = (w for w in first.warnings if "precision" in w)
    assert warning.endswith("(the simulation ended at its limit of 5000 events)")
    done = simulate(looping(2), precision=0.2)
    assert done.limit is None
    assert done.to_json()["limit"] is None


def test_pauses_change_nothing() -> None:
    """A run that is looked at now and then is the same run."""
    tested = with_clients(looping(3), 20)
    plain = simulate(tested, horizon=3000)
    watched = simulate(tested, horizon=3000, budget=Budget("nothing", events=10**12))
    assert plain.events > 100_000
    assert plain == watched


@pytest.mark.slow
def test_what_saturates_is_not_confirmed_then() -> None:
    """One client tells what is full first; the limit came before the load that would show it."""
    alone = simulate(with_clients(looping(2), 1), precision=0.02, max_events=100_000)
    most = alone.events + 1000
    found = saturation(looping(2), budget=Budget("all of it", events=most))
    assert found.resource == "processor cpu"
    assert not found.confirmed
    assert found.cut == Reached("all of it", "events", most)
    assert str(found).endswith(f"; not confirmed: all of it ended at its limit of {most} events")
    with pytest.raises(LimitError, match="the study of what saturates ended"):
        saturation(looping(ENDLESS), max_seconds=0.3)


@pytest.mark.slow
def test_a_grid_keeps_the_scenarios_that_are_done() -> None:
    """A scenario that takes for ever is left out, and named; the others have their results."""
    step = model(
        clients(3, exp(1.0), "A.a"),
        service("A", entry("a", act("w", exp(0.05)), replace(act("x"), calls=(Call(task="B", entry="b"),))), processor="cpu"),
        service("B", entry("b", act("nothing"))),
        processors=(ps(),),
    )  # fmt: skip
    change = Change("calls", "A.a:x->B.b", ENDLESS)
    endless = Scenario((change,), with_count(step, "A.a:x->B.b", ENDLESS))
    others = (Scenario((), step), endless)
    (base,) = run_scenarios(others, precision=0.2, max_seconds=4.0, limits=False, workers=2)
    assert base.result.cycle.throughput.mean > 0
    assert base.limits == (Reached(f"the simulation of '{endless}'", "seconds", 4.0),)
    with pytest.raises(LimitError, match="the grid of scenarios ended at its limit of 1e-06 s"):
        run_scenarios(others, max_seconds=1e-6)


def test_a_rehearsal_keeps_its_repeats(monkeypatch: pytest.MonkeyPatch) -> None:
    """The repeats that there are count; none at all is an error."""
    monkeypatch.setattr(rehearsal, "MAX_EVENTS", 3000)
    seen = rehearse(looping(2), seconds=20.0, warmup=5.0, precision=1e-4)
    assert seen.limit == Reached("the rehearsal of a run", "events", 3000)
    assert seen.to_json()["limit"]["limit"] == "events"
    with pytest.raises(LimitError, match="the rehearsal of a run ended"):
        rehearse(looping(ENDLESS), seconds=20.0, warmup=5.0, max_seconds=0.3)


def test_an_autoscaler_keeps_its_steps() -> None:
    """Steps are yielded as they are known; the limit ends the next one."""
    budget = Budget("the study", events=200_000)
    steps = autoscale(
        looping(2),
        Settings(scaling="none", max_clients=512),
        lambda m: rehearse(m, seconds=500.0, warmup=5.0, precision=0.5, budget=budget),
    )
    assert [next(steps).clients for _ in range(2)] == [1, 2]
    with pytest.raises(LimitError, match="the study ended at its limit of 200000 events"):
        list(steps)
