"""Cores on which one thread runs at a time: turns, and threads that run at once when they wake up."""

from __future__ import annotations

import random
from dataclasses import replace
from math import inf

import pytest
from engine_comparison import assert_engines_agree
from engine_invariants import violations_on_the_way
from random_models import random_model
from sim_models import act, clients, entry, exp, fork, join, model, service
from sticky_hosts import host, part, with_sticky_host

from mup.lqn import Constant, Distribution, Front, Migration, Model, Processor, Turns
from simulator import simulate

pytestmark = pytest.mark.slow

CHUNKS, CHUNK = 4, 12
FOR_EVER = 1000.0
"""A quantum that no job needs."""


# Both engines


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_engines_agree_on_turns(chunk: int) -> None:
    """On random models with parts, whose threads take turns on every core of the host."""
    tested = 0
    for number in range(100 * chunk, 100 * (chunk + 1)):
        rng = random.Random(number)
        found = with_sticky_host(random_model(number), rng)
        if found is not None:
            turns = Turns(
                quantum=rng.choice((0.02, 0.3, 5.0)),
                preempt=rng.choice((0.0, 0.5, 1.0)),
            )
            tested_model = _with_turns(found, turns)
            assert_engines_agree(tested_model, seed=number, events=300)
            assert violations_on_the_way(tested_model, number, optimised=True) == []
            tested += 1
        if tested == CHUNK:
            break
    assert tested == CHUNK


def _with_turns(changed: Model, turns: Turns | None) -> Model:
    whole = tuple(replace(p, turns=turns) if p.discipline == "cores" else p for p in changed.processors)
    return replace(changed, processors=whole)


@pytest.mark.parametrize("preempt", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("migration", [None, Migration(wake=0.4, steal=0.6, balance=2.0)], ids=repr)
@pytest.mark.parametrize("times", [Constant(0.25), exp(0.25)], ids=repr)
def test_engines_agree_on_all_kinds_of_flows(
    preempt: float, migration: Migration | None, times: Distribution
) -> None:
    """Threads, fronts and branches; jobs of a quarter of a second with turns of a tenth."""
    body = entry(
        "a",
        act("s", times), act("x", times, calls="B.b"), act("y", times), act("e", times),
        arcs=(fork("s", "x", "y"), join("e", "x", "y")),
    )  # fmt: skip
    cpu = Processor(
        name="cpu",
        cores=3,
        discipline="cores",
        migration=migration,
        turns=Turns(quantum=0.1, preempt=preempt),
        speed=2.0,
    )
    tested = model(
        clients(9, times, "A.a"),
        service(
            "A",
            body,
            threads=3,
            replicas=2,
            processor="cpu",
            front=Front(request=times, reply=Constant(0.125)),
        ),
        service("B", entry("b", act("w", times)), processor="cpu"),
        processors=(cpu,),
    )
    assert_engines_agree(tested, events=1500)


@pytest.mark.parametrize("preempt", [0.0, 0.7])
def test_a_turn_does_not_go_on_on_another_machine(preempt: float) -> None:
    """A client of a machine with many cores calls, without delay, what has no threads of its own on one with few."""
    turns = Turns(quantum=0.1, preempt=preempt)
    migration = Migration(wake=0.5, steal=0.5, balance=2.0)
    machines = tuple(
        Processor(name=name, cores=cores, discipline="cores", migration=migration, turns=turns)
        for name, cores in (("large", 6), ("small", 1))
    )
    users = replace(clients(12, exp(0.5), "A.a"), processor="large")
    body = entry("a", act("s", exp(0.1)), act("t", exp(0.1), calls="B.b"), act("u", exp(0.1)))
    tested = model(
        users,
        service("A", body, threads=inf, processor="large"),
        service("B", entry("b", act("w", exp(0.02)), act("x", exp(0.02))), threads=inf, processor="small"),
        processors=machines,
    )
    assert_engines_agree(tested, events=1500)
    assert violations_on_the_way(tested, 3, optimised=True) == []


# Against theory: many clients who think for long are a Poisson process.

MANY, THINK = 400, 40.0
SHORT, LONG, HALF = 0.01, 0.07, 0.5
"""Seconds of constant jobs, half of the requests each: the core is 40 % busy with ten a second."""
RATE = MANY / THINK
BUSY = RATE * (SHORT + LONG) / 2
WAIT = RATE * (SHORT**2 + LONG**2) / 2 / 2 / (1 - BUSY)
"""Mean wait of M/G/1 in order of arrival (Pollaczek and Khinchine)."""


def one_core(turns: Turns | None) -> Model:
    """Short and long jobs of as many threads as can be on one core."""
    users = (
        clients(MANY // 2, exp(THINK), "A.short", name="U"),
        clients(MANY // 2, exp(THINK), "B.long", name="V"),
    )
    short = service("A", entry("short", act("w", Constant(SHORT))), threads=64, processor="host")
    long = service("B", entry("long", act("w", Constant(LONG))), threads=64, processor="host")
    return _with_turns(
        Model(name="one core", tasks=(*users, short, long), processors=(host(1, None),)), turns
    )


def responses(turns: Turns | None) -> tuple[float, float]:
    """Return the simulated mean response times of short and long jobs, in seconds."""
    found = simulate(one_core(turns), precision=0.01, seed=3).entries
    short, long = found["A.short"].response_time, found["B.long"].response_time
    assert short is not None
    assert long is not None
    return short.mean, long.mean


def test_long_turns_in_order_of_arrival_wait_alike() -> None:
    """A short job waits as long as a long one: for all that came before it."""
    short, long = responses(Turns(quantum=FOR_EVER))
    assert short == pytest.approx(SHORT + WAIT, rel=0.04)
    assert long == pytest.approx(LONG + WAIT, rel=0.04)


@pytest.mark.parametrize(
    "turns", [Turns(quantum=FOR_EVER, preempt=1.0), Turns(quantum=0.0005), None], ids=repr
)
def test_last_come_first_served_and_short_turns_cost_in_proportion(turns: Turns | None) -> None:
    """Whoever comes last runs at once, or all share: a job takes its work by the share that is left."""
    short, long = responses(turns)
    assert short == pytest.approx(SHORT / (1 - BUSY), rel=0.04)
    assert long == pytest.approx(LONG / (1 - BUSY), rel=0.04)


QUANTUM = 0.02


def beside_two_that_always_run() -> Model:
    """A short job now and then, and two threads that never sleep, on one core."""
    tasks = (
        clients(1, exp(1.0), "A.a", name="U"),
        clients(2, exp(1e-6), "B.b", name="V"),
        service("A", entry("a", act("w", Constant(0.001))), processor="host"),
        service("B", entry("b", act("w", Constant(50.0))), threads=2, processor="host"),
    )
    return Model(name="beside", tasks=tasks, processors=(host(1, None),))


def response_beside(changed: Model, turns: Turns) -> float:
    """Return the simulated mean response time of the short job in seconds."""
    response = simulate(_with_turns(changed, turns), precision=0.02, seed=2).entries["A.a"].response_time
    assert response is not None
    return response.mean


def test_who_wakes_up_waits_for_the_turn_under_way() -> None:
    """For half a quantum, on average, of the thread that runs; the other one has had its own and comes later."""
    found = response_beside(beside_two_that_always_run(), Turns(quantum=QUANTUM))
    assert found == pytest.approx(QUANTUM / 2 + 0.001, rel=0.05)


def test_who_wakes_up_may_run_at_once() -> None:
    """By chance."""
    beside = beside_two_that_always_run()
    always = response_beside(beside, Turns(quantum=QUANTUM, preempt=1.0))
    assert always == pytest.approx(0.001, rel=0.02)
    often = response_beside(beside, Turns(quantum=QUANTUM, preempt=0.7))
    assert often == pytest.approx(0.3 * QUANTUM / 2 + 0.001, rel=0.07)


def test_a_turn_goes_on_from_one_activity_to_the_next() -> None:
    """Ten activities without sleep between them wait once, as one that is ten times as long does."""
    beside = beside_two_that_always_run()
    steps = [act(f"w{k}", Constant(0.0001)) for k in range(10)]
    several = beside.with_task(service("A", entry("a", *steps), processor="host"))
    found = response_beside(several, Turns(quantum=QUANTUM))
    assert found == pytest.approx(QUANTUM / 2 + 0.001, rel=0.05)


def test_a_turn_that_goes_on_ends() -> None:
    """A thread whose activities take longer than a quantum together has to wait for the two others."""
    beside = beside_two_that_always_run()
    steps = [act(f"w{k}", Constant(QUANTUM / 4)) for k in range(6)]
    several = beside.with_task(service("A", entry("a", *steps), processor="host"))
    found = response_beside(several, Turns(quantum=QUANTUM, preempt=1.0))
    assert found == pytest.approx(1.5 * QUANTUM + 2 * QUANTUM, rel=0.08)


def test_an_event_loop_takes_its_turn_like_a_thread() -> None:
    """It waits for a core as one thread, however much is waiting in it."""
    among = beside_two_that_always_run()
    inside = service("A", entry("a", act("w", Constant(0.001))), threads=8, processor="A.core")
    loop = replace(part("A"), discipline="fcfs")
    among = replace(among, processors=(*among.processors, loop)).with_task(inside)
    assert response_beside(among, Turns(quantum=QUANTUM)) == pytest.approx(QUANTUM / 2 + 0.001, rel=0.05)
    assert response_beside(among, Turns(quantum=QUANTUM, preempt=1.0)) == pytest.approx(0.001, rel=0.02)
