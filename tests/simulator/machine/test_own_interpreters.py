"""Replicas with cores of their own: the interpreter, or the event loop, of each serves its requests alone."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from ctmc import solve
from engine_comparison import assert_engines_agree
from sim_models import act, agrees, clients, entry, exp, fork, join, mva, ps, service

from mup.errors import SimulationError
from mup.lqn import Distribution, Migration, Model, Processor, Task
from simulator import simulate
from simulator.studies.saturation import saturation

pytestmark = pytest.mark.slow

WORK = 0.01


def sticky(cores: int, migration: Migration | None = None) -> Processor:
    return Processor(name="host", cores=cores, discipline="cores", migration=migration)


def own(name: str, cores: int, core: int | None = None) -> Processor:
    return Processor(name=f"{name}.core", cores=cores, parent="host", core=core)


def worker(replicas: int, *, threads: float = math.inf, arrivals: Distribution | None = None) -> Task:
    served = replace(entry("a", act("w", exp(WORK))), arrivals=arrivals)
    return service("A", served, threads=threads, replicas=replicas, processor="A.core")


def opened(rate: float, replicas: int, cores: int, whole: Processor, core: int | None = None) -> Model:
    """Requests from outside to a service whose replicas have the cores of a part."""
    tasks = (worker(replicas, arrivals=exp(1 / rate)),)
    return Model(name="open", tasks=tasks, processors=(whole, own("A", cores, core)))


def crowd(users: int, replicas: int, whole: Processor, core: int | None = None) -> Model:
    """Users of a service with one core per replica."""
    tasks = (clients(users, exp(0.02), "A.a"), worker(replicas))
    return Model(name="crowd", tasks=tasks, processors=(whole, own("A", replicas, core)))


def response(rate: float, servers: int) -> float:
    """Return the mean response time of an M/M/c queue, which is that of processor sharing, too."""
    load = rate * WORK
    terms = [load**k / math.factorial(k) for k in range(servers)]
    last = load**servers / math.factorial(servers) / (1 - load / servers)
    return WORK + last / (sum(terms) + last) * WORK / (servers - load)


@pytest.mark.parametrize(
    "whole",
    [
        sticky(2),
        sticky(2, Migration(wake=0.5, steal=0.5, balance=20.0)),
        ps("host", 2),
        Processor(name="host", discipline="infinite"),
    ],
    ids=["pinned", "moving", "shared", "infinite"],
)
def test_engines_agree(whole: Processor) -> None:
    """With branches, second phases, and parts with one and with two cores for each replica."""
    body = entry(
        "a",
        act("s", exp(0.002), calls="B.b"), act("x", exp(0.003)), act("y", exp(0.004)),
        act("e", exp(0.001), replies=True), act("f", exp(0.002)),
        arcs=(fork("s", "x", "y"), join("e", "x", "y"), *entry("_", act("e"), act("f")).precedences),
    )  # fmt: skip
    tasks = (
        clients(9, exp(0.01), "A.a"),
        service("A", body, threads=2, replicas=3, processor="A.core"),
        service("B", entry("b", act("w", exp(0.003))), threads=4, replicas=2, processor="B.core"),
    )
    core = 1 if whole.discipline == "cores" else None
    parts = (own("A", 3, core), replace(own("B", 4), discipline="fcfs"))
    assert_engines_agree(Model(name="agree", tasks=tasks, processors=(whole, *parts)), seed=3, events=1500)


@pytest.mark.parametrize(
    ("replicas", "cores", "exact"),
    [
        (2, 2, response(70, 1)),
        (2, 4, response(70, 2)),
        (2, 3, response(140, 3)),  # no replica can own the third: all of them are shared
    ],
)
def test_a_replica_has_its_share_of_the_cores(replicas: int, cores: int, exact: float) -> None:
    """However idle the core of another replica is, as long as they can be divided."""
    result = simulate(opened(140, replicas, cores, ps("host", 16)), precision=0.01, seed=1)
    assert agrees(result.entries["A.a"].response_time, exact)
    assert agrees(result.processors["A.core"].utilization, 140 * WORK / cores)
    assert result.processors["A.core"].cores == cores
    assert agrees(result.processors["host"].utilization, 140 * WORK / 16)
    assert not result.warnings


def test_a_part_of_two_tasks_is_for_both() -> None:
    """Its cores belong to none alone."""
    alone = opened(70, 2, 2, ps("host", 16))
    other = replace(alone.tasks[0], name="B")
    result = simulate(replace(alone, tasks=(*alone.tasks, other)), precision=0.01, seed=1)
    assert agrees(result.entries["A.a"].response_time, response(140, 2))


def test_pinned_replicas_share_the_core_they_are_on() -> None:
    """Three replicas on two cores: one core has the requests of two of them, and the other cannot help."""
    throughput, _ = mva(30, 0.02, [WORK * 2 / 3, WORK / 3])
    result = simulate(crowd(30, 3, sticky(2), core=1), precision=0.01, seed=2)
    assert agrees(result.cycle.throughput, throughput)
    assert agrees(result.processors["host"].utilization, throughput * WORK / 2)
    assert agrees(result.processors["A.core"].utilization, throughput * WORK / 3)


def test_figures_agree_with_the_markov_chain() -> None:
    """Also where the cores of the host are fewer than those of its part."""
    model = crowd(5, 3, ps("host", 2))
    exact, result = solve(model), simulate(model, precision=0.005, seed=4)
    assert agrees(result.cycle.throughput, exact.cycle_throughput)
    assert agrees(result.cycle.response_time, exact.cycle_response)
    for name in ("host", "A.core"):
        assert agrees(result.processors[name].utilization, exact.utilization[name])


def test_what_is_full_first_counts_all_cores() -> None:
    """Requests take any replica, so all are full at once."""
    found = saturation(crowd(200, 3, ps("host", 16)))
    assert found.bounds["processor A.core"] == pytest.approx(3 / WORK)


def test_open_load_beyond_the_cores_of_all_replicas_is_refused() -> None:
    with pytest.raises(SimulationError, match=r"'A\.core', which offers 2:"):
        simulate(opened(201, 2, 2, ps("host", 16)), horizon=1)
