"""The invariants of the compiled engine's state hold at any moment, and notice a damaged state."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from engine_invariants import violations, violations_on_the_way
from random_models import random_model, with_setups
from sim_models import act, clients, entry, exp, fork, join, model, service

from mup.lqn import Processor
from simulator.machine.compiled import state as run
from simulator.machine.compiled.engine import CompiledEngine
from simulator.program import compile_model

MODELS = 20


@pytest.mark.parametrize("optimised", [True, False])
@pytest.mark.parametrize("number", range(MODELS))
def test_invariants_hold_whenever_a_run_stops(number: int, *, optimised: bool) -> None:
    """Random models over every element, with set-ups in every second one, and locks in every third."""
    drawn = random_model(number, lock=number % 3 == 0)
    tested = with_setups(drawn, number) if number % 2 else drawn
    assert violations_on_the_way(tested, number, optimised=optimised) == []


def crowded() -> run.State:
    """Return a state in which requests wait for threads, for cores, and for each other's branches."""
    outer = entry(
        "e",
        act("a", exp(0.01)),
        act("x", exp(0.1), calls="B.e"),
        act("y", exp(0.1)),
        act("z", exp(0.01)),
        arcs=(fork("a", "x", "y"), join("z", "x", "y")),
    )
    tested = model(
        clients(8, exp(0.1), "A.e"),
        service("A", outer, threads=3, processor="cpu"),
        service("B", entry("e", act("b", exp(0.1))), threads=1, processor="cpu"),
        service("C", entry("e", act("c", exp(0.1))), threads=3, processor="cores"),
        clients(3, exp(0.1), "C.e", name="V"),
        processors=(
            Processor(name="cpu", cores=2, discipline="fcfs"),
            Processor(name="cores", cores=2, discipline="cores"),
        ),
    )
    engine = CompiledEngine(compile_model(tested), 1, optimised=False)
    engine.run_until(10.0)
    return engine._state


def _lose_a_flow(s: run.State) -> None:
    s.scalars[run.FREE_FLOW] = s.flows.ints[s.scalars[run.FREE_FLOW], run.NEXT]


def _take_a_flow_twice(s: run.State) -> None:
    s.heap_flows[1] = s.heap_flows[0]


def _refer_to_requests(s: run.State) -> None:
    s.frames.ints[:, run.REFERENCES] += 2


def _park_without_a_join(s: run.State) -> None:
    s.frames.ints[:, run.PARKED_AT] = 0


def _count_one_more(s: run.State) -> None:
    s.stations.ints[:, run.S_WAITING] += 1


def _free_a_thread(s: run.State) -> None:
    s.stations.ints[:, run.S_FREE] += s.stations.ints[:, run.S_WAITING] > 0


def _forget_who_waits(s: run.State) -> None:
    s.records.levels[:, run.L_CONTENT] = 0.0


def _turn_the_heap(s: run.State) -> None:
    size = s.scalars[run.HEAP_SIZE]
    s.heap_times[:size] = s.heap_times[:size][::-1].copy()


def _miss_an_event(s: run.State) -> None:
    s.times[run.NOW] = s.heap_times[0] + 1.0


def _fill_a_slot(s: run.State) -> None:
    s.servers.node_ints[:, run.N_SLOTS] += 1


def _free_a_core(s: run.State) -> None:
    s.servers.ints[:, run.V_FREE] += 1


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (_lose_a_flow, "nowhere {"),
        (_take_a_flow_twice, "twice {"),
        (_refer_to_requests, "references"),
        (_park_without_a_join, "is parked at join"),
        (_count_one_more, "counted"),
        (_free_a_thread, "places are free"),
        (_forget_who_waits, "level"),
        (_turn_the_heap, "out of order"),
        (_miss_an_event, "overdue"),
        (_free_a_core, "cores are free"),
        (_fill_a_slot, "slots for"),
    ],
)
def test_a_damaged_state_is_noticed(damage: Callable[[run.State], None], said: str) -> None:
    """Each of the invariants says what is wrong; before the damage nothing is."""
    state = crowded()
    assert violations(state) == []
    damage(state)
    assert any(said in problem for problem in violations(state)), violations(state)
