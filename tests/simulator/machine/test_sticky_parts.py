"""Parts of a processor whose threads stick to cores: interpreters and event loops among other threads."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from engine_comparison import assert_engines_agree
from engine_invariants import violations_on_the_way
from random_models import random_model
from sim_models import act, agrees, clients, entry, exp, mva, ps, service
from sticky_hosts import host, part, with_sticky_host

from mup.errors import ModelError
from mup.lqn import Front, Migration, Model, Processor
from mup.lqn.edits import with_cores, with_replicas
from simulator import simulate
from simulator.analytic import estimate
from simulator.fluid import fluid

pytestmark = pytest.mark.slow

CHUNKS, CHUNK = 4, 12
MOVING = Migration(wake=1.0, steal=1.0, balance=100.0)
FIRST, SECOND = 0.004, 0.0013


# Both engines


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_engines_agree(chunk: int) -> None:
    """On random models whose host has become a processor with threads of its own beside its parts."""
    tested = 0
    for number in range(100 * chunk, 100 * (chunk + 1)):
        found = with_sticky_host(random_model(number), random.Random(number))
        if found is not None:
            assert_engines_agree(found, seed=number, events=300)
            assert violations_on_the_way(found, number, optimised=True) == []
            tested += 1
        if tested == CHUNK:
            break
    assert tested == CHUNK


# What a part gets


def shared(migration: Migration | None, *, own: int, sticky: bool, cores: int = 1) -> Model:
    """Eight users of a service in a part, and of one on the host itself."""
    tasks = (
        clients(5, exp(0.02), "A.a", name="U"),
        clients(3, exp(0.03), "B.b", name="V"),
        service("A", entry("a", act("w", exp(0.01))), threads=4, processor="A.core"),
        service("B", entry("b", act("w", exp(0.02))), threads=2, processor="host"),
    )
    whole = host(cores, migration) if sticky else ps("host", cores)
    return Model(name="shared", tasks=tasks, processors=(whole, part("A", own)))


@pytest.mark.parametrize("own", [1, 2])
def test_one_core_is_shared_as_ideally_as_can_be(own: int) -> None:
    """With a single core there is nowhere to stick to: the very figures of a shared processor."""
    sticky = simulate(shared(None, own=own, sticky=True), seed=3, horizon=500)
    ideal = simulate(shared(None, own=own, sticky=False), seed=3, horizon=500)
    for name in ("A.a", "B.b"):
        found, exact = sticky.entries[name].response_time, ideal.entries[name].response_time
        assert found.mean == pytest.approx(exact.mean, rel=1e-6)
    assert sticky.processors["A.core"].utilization.mean == pytest.approx(
        ideal.processors["A.core"].utilization.mean, rel=1e-6
    )


def test_a_part_never_has_more_than_its_cores() -> None:
    """Sixteen threads, eight cores to move to: an interpreter is full with one."""
    tasks = (
        clients(16, exp(0.001), "A.a"),
        service("A", entry("a", act("w", exp(FIRST))), threads=16, processor="A.core"),
    )
    alone = Model(name="alone", tasks=tasks, processors=(host(8, MOVING), part("A")))
    result = simulate(alone, precision=0.01, seed=2)
    assert agrees(result.cycle.throughput, 1 / FIRST, within=0.02)
    assert agrees(result.processors["host"].utilization, 1 / 8, within=0.002)
    # Two replicas are two interpreters; when all requests are in one of them, the other is idle.
    twice = simulate(with_replicas(alone, "A", 2), precision=0.01, seed=2)
    exact, _ = mva(16, 0.001, [FIRST / 2, FIRST / 2])
    assert agrees(twice.cycle.throughput, exact, within=0.03)


def pinned(cores: tuple[int | None, int | None]) -> Model:
    """A calls B; many users, sixteen cores."""
    tasks = (
        clients(32, exp(0.001), "A.a"),
        service("A", entry("a", act("w", exp(FIRST), calls="B.b")), threads=8, processor="A.core"),
        service("B", entry("b", act("w", exp(SECOND))), threads=8, processor="B.core"),
    )
    parts = tuple(part(name, core=core) for name, core in zip("AB", cores, strict=True))
    return Model(name="pinned", tasks=tasks, processors=(host(16, MOVING), *parts))


@pytest.mark.parametrize(
    ("cores", "together"), [((3, 3), True), ((3, 19), True), ((3, 4), False), ((3, None), False)]
)
def test_who_is_pinned_to_one_core_shares_it(cores: tuple[int | None, int | None], together: bool) -> None:
    """However idle the others are; the estimates know it, too."""
    exact = 1 / (FIRST + SECOND) if together else 1 / FIRST
    result = simulate(pinned(cores), precision=0.01, seed=2)
    assert agrees(result.cycle.throughput, exact, within=0.02)
    assert estimate(pinned(cores)).cycle.throughput == pytest.approx(exact, rel=0.01)
    found = fluid(pinned(cores))
    assert found.cycle["throughput"] == pytest.approx(exact, rel=0.01)
    assert list(found.processors) == ["host", "A.core", "B.core"]


def test_a_part_is_one_of_the_threads_of_its_core() -> None:
    """However many jobs wait in it, beside one other thread it gets half of the core it is pinned to."""
    tasks = (
        clients(1, None, "A.a", name="U"),
        clients(6, None, "B.b", name="V"),
        service("A", entry("a", act("w", exp(0.01))), threads=1, processor="host"),
        service("B", entry("b", act("w", exp(0.01))), threads=6, processor="B.core"),
    )
    model = Model(name="half", tasks=tasks, processors=(host(2), part("B", core=0)))
    result = simulate(model, precision=0.01, seed=4)
    assert agrees(result.entries["A.a"].throughput, 50, within=1)
    assert agrees(result.entries["B.b"].throughput, 50, within=1)
    assert agrees(result.processors["B.core"].utilization, 0.5, within=0.01)
    # Unpinned, it begins on the core behind that of the thread.
    apart = simulate(model.with_processor(part("B")), precision=0.01, seed=4)
    assert agrees(apart.entries["A.a"].throughput, 100, within=2)
    # And a thread that may move leaves the core to one that must stay.
    moving = simulate(model.with_processor(host(2, MOVING)), precision=0.01, seed=4)
    assert agrees(moving.entries["A.a"].throughput, 100, within=3)
    assert agrees(moving.entries["B.b"].throughput, 100, within=3)


def test_a_front_beside_a_part_has_a_core_of_its_own_to_begin_on() -> None:
    """It counts behind the threads, before the parts that are pinned nowhere; here none of them ever moves."""
    half = exp(0.0025)
    server = service(
        "A",
        entry("a", act("w", exp(0.01))),
        threads=8,
        processor="A.core",
        front=Front(request=half, reply=half),
    )
    model = Model(
        name="front", tasks=(clients(20, exp(0.001), "A.a"), server), processors=(host(2), part("A"))
    )
    result = simulate(model, precision=0.01, seed=5)
    assert agrees(result.cycle.throughput, 100, within=2)
    assert agrees(result.processors["host"].utilization, 0.75, within=0.015)


# What is a valid model


def test_pinning_follows_the_number_of_cores() -> None:
    """A part that is pinned to core 3 of 4 is on core 1 of 2."""
    two = with_cores(pinned((3, 5)), "host", 2)
    assert [p.pinned_core(two.processor("host")) for p in two.processors[1:]] == [1, 1]


@pytest.mark.parametrize(
    ("processors", "message"),
    [
        ((ps("host", 2), part("A", core=0)), "'cores'"),
        ((host(2), part("A", core=-1)), "counted from 0"),
        ((Processor(name="host", core=1),), "'cores'"),
        ((host(2), part("A", core=1.5)), "whole number"),  # type: ignore[arg-type]
    ],
)
def test_only_parts_of_sticky_cores_are_pinned(processors: tuple[Processor, ...], message: str) -> None:
    """Anything else is refused with the path of the field."""
    with pytest.raises(ModelError, match=message) as failure:
        replace(pinned((0, 1)), processors=processors, tasks=())
    assert "core" in str(failure.value)
