"""Refusals of the simulator, each in one clear message."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from sim_models import act, choice, clients, entry, exp, fork, join, merge, model, ps, service

from mup.errors import ModelError, SimulationError, UncalibratedError, UsageError
from mup.lqn import Constant, Empirical, Front, Model
from simulator import simulate, simulate_many
from simulator.program import compile_model


def test_uncalibrated_values_are_all_listed() -> None:
    """Every number that clients can reach and that was not measured is named with its path."""
    body = entry(
        "/a/",
        act("s"), act("x", None), act("y", delay=None), act("e"),
        arcs=(choice("s", None, "x", "y"), merge("e", "x", "y")),
    )  # fmt: skip
    tested = model(
        clients(1, exp(1.0), "A./a/"), service("A", body, front=Front(request=None, reply=Constant(0.0)))
    )
    with pytest.raises(UncalibratedError) as caught:
        simulate(tested)
    message = str(caught.value)
    where = "tasks['A'].entries['/a/']"
    assert f"{where}.activities['x'].demand" in message
    assert f"{where}.activities['y'].delay" in message
    assert f"{where}.precedences[0].probabilities" in message
    assert "tasks['A'].front.request" in message
    assert "4 numbers" in message


def test_branch_of_probability_zero_need_not_be_calibrated() -> None:
    """What no client can reach is not asked for, directly or through calls."""
    body = entry(
        "a",
        act("s"), act("x", Constant(0.1)), act("never", None, calls="B.b"), act("e"),
        arcs=(choice("s", (1.0, 0.0), "x", "never"), merge("e", "x", "never")),
    )  # fmt: skip
    tested = model(
        clients(1, Constant(1.0), "A.a"), service("A", body), service("B", entry("b", act("w", None)))
    )
    result = simulate(tested, horizon=100)
    assert result.cycle.response_time.mean == pytest.approx(0.1)
    assert result.entries["B.b"].throughput.mean == 0
    assert result.entries["B.b"].response_time is None


def test_model_without_clients_is_refused() -> None:
    """Without a reference task nothing would ever happen."""
    with pytest.raises(SimulationError, match="no reference task"):
        simulate(model(service("A", entry("a", act("w", exp(1.0))))))


def test_cycle_without_time_is_refused() -> None:
    """A client that never spends any time would repeat for ever at time 0."""
    with pytest.raises(SimulationError, match="takes no time") as caught:
        simulate(model(clients(1, None, "A.a"), service("A", entry("a", act("w")))))
    assert caught.value.where == "tasks['U']"


def test_spinning_client_is_detected_while_running() -> None:
    """A think time that is zero in practice is found by the engine when its clock stands still."""
    rare = Empirical((0.0,) * 100_000 + (1.0,))
    with pytest.raises(SimulationError, match="took no time"):
        simulate(model(clients(1, None, "A.a"), service("A", entry("a", act("w", rare)))), seed=1)


def test_join_that_cannot_complete_is_named() -> None:
    """If the branch a join waits for is not started on some path, the join is named at once."""
    body = entry(
        "a",
        act("s"), act("main", exp(0.1)), act("side", exp(0.1)), act("left"), act("right"), act("e"),
        arcs=(
            fork("s", "main", "side"), choice("side", (0.5, 0.5), "left", "right"), join("e", "main", "left"),
        ),
    )  # fmt: skip
    with pytest.raises(SimulationError, match="can never complete") as caught:
        simulate(model(clients(1, exp(1.0), "A.a"), service("A", body)))
    assert caught.value.where == "tasks['A'].entries['a'].precedences[2]"


def _callback(threads: int) -> Model:
    """A calls B, which calls back an entry of A."""
    return model(
        clients(2, exp(0.1), "A.a"),
        service("A", entry("a", act("w", exp(0.1), calls="B.b")), entry("back", act("v", exp(0.1))),
                threads=threads),
        service("B", entry("b", act("x", calls="A.back"))),
    )  # fmt: skip


def test_deadlock_is_named() -> None:
    """Clients that wait for threads they hold themselves end in an error, not in an endless run."""
    with pytest.raises(SimulationError, match=r"deadlock.*'A'") as caught:
        simulate(_callback(1))
    assert caught.value.where == "tasks['A']"
    assert simulate(_callback(3), precision=0.05).cycle.throughput.mean > 0


def test_partial_deadlock_is_found() -> None:
    """One kind of clients stands still for ever although another goes on."""
    alive = _callback(1)
    tested = replace(
        alive,
        tasks=(
            *alive.tasks,
            clients(1, exp(1.0), "C.c", name="V"),
            service("C", entry("c", act("w", exp(1.0)))),
        ),
    )
    with pytest.raises(SimulationError, match="no client of 'U'"):
        simulate(tested, horizon=5000)


def test_horizon_too_short_for_one_cycle() -> None:
    """A run in which no client completes a cycle has no result."""
    tested = model(clients(1, Constant(10.0), "A.a"), service("A", entry("a", act("w", Constant(1.0)))))
    with pytest.raises(SimulationError, match="no cycle was completed"):
        simulate(tested, horizon=5)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("precision", 0.0), ("precision", -1.0), ("precision", math.nan), ("horizon", 0.0),
        ("horizon", math.inf), ("seed", 1.5), ("engine", "referense"), ("max_events", 0),
    ],
)  # fmt: skip
def test_bad_arguments_are_refused(argument: str, value: object) -> None:
    """Arguments out of range are named with their value."""
    tested = model(clients(1, Constant(1.0)))
    with pytest.raises(UsageError, match=argument if argument != "engine" else "did you mean 'reference'"):
        simulate(tested, **{argument: value})  # type: ignore[arg-type]


def test_event_cap_is_reported_as_a_warning() -> None:
    """A run that is cut short says how precise it got."""
    tested = model(
        clients(5, exp(1.0), "A.a"),
        service("A", entry("a", act("w", exp(0.1))), processor="cpu"),
        processors=(ps(),),
    )
    result = simulate(tested, precision=1e-6, max_events=20_000)
    assert not result.precision.met
    assert result.precision.reached > 1e-6
    assert any("requested precision" in w for w in result.warnings)


def test_error_of_one_scenario_ends_the_others() -> None:
    """A failing scenario ends a parallel grid with its own error."""
    good = model(clients(1, exp(0.1), "A.a"), service("A", entry("a", act("w", exp(0.1)))))
    with pytest.raises(SimulationError, match="deadlock"):
        simulate_many([good, _callback(1)], precision=0.1, workers=2)


def test_uncalibrated_scenario_is_refused_before_anything_runs() -> None:
    """A grid with a model that cannot run does not start."""
    bad = model(clients(1, exp(0.1), "A.a"), service("A", entry("a", act("w", None))))
    with pytest.raises(ModelError, match="never measured"):
        simulate_many([bad, bad], workers=1)


def test_code_is_compiled_for_what_is_reachable_only() -> None:
    """Entries that cannot be called have no code, but stay in the tables."""
    tested = model(
        clients(1, exp(0.1), "A.a"),
        service("A", entry("a", act("w", exp(0.1))), entry("unused", act("w", exp(0.1)))),
    )
    entries = {e.label: e for e in compile_model(tested).entries}
    assert entries["A.unused"].start == -1
    assert entries["A.a"].start >= 0
