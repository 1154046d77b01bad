"""The compiled engine finds the next of many processors in the reference order, and fast."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
from engine_comparison import run_compiled, run_reference, unequal
from sim_models import act, clients, entry, model, ps, service

from mup.lqn import Constant, Model, Processor
from simulator.machine.compiled.engine import CompiledEngine
from simulator.machine.compiled.servers import soonest_after
from simulator.machine.compiled.state import V_NEXT, Floats, Ints, Servers
from simulator.program import compile_model

MANY = 1000


class Counted(np.ndarray):  # type: ignore[type-arg]
    """An array that counts how often it is read."""

    reads = 0

    def __getitem__(self, key: Any) -> Any:
        Counted.reads += 1
        return super().__getitem__(key)


def services_of(count: int, demand: float) -> Model:
    """Clients of services that are all busy at once, each on a processor of its own, always equally long."""
    steps = [act(f"a{i}", calls=f"S{i}.e") for i in range(count)]
    users = [clients(1, Constant(0.5), name=f"U{i}", body=entry("cycle", steps[i])) for i in range(count)]
    services = [
        service(f"S{i}", entry("e", act("w", Constant(demand))), threads=1, processor=f"p{i}")
        for i in range(count)
    ]
    return model(*users, *services, processors=tuple(ps(f"p{i}") for i in range(count)))


def servers_of(engine: CompiledEngine) -> Servers:
    return engine._state.servers


@pytest.mark.parametrize("count", [1, 2, 3, 7, 64, MANY])
def test_first_of_several_is_found(count: int) -> None:
    """The winner is the one that a look at all of them finds, of equal moments the first."""
    servers = servers_of(CompiledEngine(compile_model(services_of(count, 0.25)), seed=1))
    assert len(servers.winners) == 2 * count
    rng = random.Random(count)
    for _ in range(300):
        changed = rng.randrange(count)
        servers.floats[changed, V_NEXT] = rng.choice((rng.random(), 0.5, 0.25, math.inf))
        found = soonest_after(servers, changed)
        assert found == int(np.argmin(servers.floats[:count, V_NEXT]))


def test_number_of_processors_hardly_matters() -> None:
    """A change of one of a thousand processors looks at two places and one moment per halving of them."""
    servers = servers_of(CompiledEngine(compile_model(services_of(MANY, 0.25)), seed=1))
    floats: Floats = servers.floats.view(Counted)
    winners: Ints = servers.winners.view(Counted)
    watched = servers._replace(floats=floats, winners=winners)
    rng = random.Random(1)
    most = 0
    for _ in range(200):
        changed = rng.randrange(MANY)
        servers.floats[changed, V_NEXT] = rng.random()
        Counted.reads = 0
        soonest_after(watched, changed)
        most = max(most, Counted.reads)
    assert 0 < most <= 2 + 3 * math.ceil(math.log2(2 * MANY))


def test_parts_have_no_events_of_their_own() -> None:
    """A part of a processor does not take part: its moments are those of the processor around it."""
    one = service("A", entry("e", act("w", Constant(0.25))), processor="part")
    two = service("B", entry("e", act("w", Constant(0.25))), processor="host")
    users = [clients(2, Constant(0.5), f"{name}.e", name=f"U{name}") for name in "AB"]
    part = Processor(name="part", parent="host")
    tested = model(*users, one, two, processors=(part, ps("host", cores=2)))
    servers = servers_of(CompiledEngine(compile_model(tested), seed=1))
    assert servers.winners.tolist() == [0, 0]


@pytest.mark.parametrize("count", [5, 40])
def test_engines_agree_where_all_are_done_at_once(count: int) -> None:
    """Hundreds of processors finish at the very same moments, in the same order in both engines."""
    program = compile_model(services_of(count, 0.25), activities=True)
    expected = run_reference(program, 1, events=1500, width=0.1)
    moments = [moment for moment, _ in expected.trace]
    assert len(set(moments)) < len(moments) / 3, "these processors do not finish together"
    assert unequal(expected, run_compiled(program, 1, expected.stops)) == []
