"""Two replicas of threads pinned to one core: parts (interpreters) of a part (the core) of a host."""

from __future__ import annotations

import pytest
from sim_models import act, agrees, clients, entry, exp, ps, service

from mup.lqn import Model, Processor
from simulator import simulate
from simulator.analytic import estimate

FIRST, SECOND = 0.004, 0.0013


def pinned(*, together: bool) -> Model:
    """A calls B; many users, sixteen cores."""
    tasks = (
        clients(32, exp(0.001), "A.a"),
        service("A", entry("a", act("w", exp(FIRST), calls="B.b")), threads=8, processor="A.core"),
        service("B", entry("b", act("w", exp(SECOND))), threads=8, processor="B.core"),
    )
    core = (Processor(name="host.core0", parent="host"),) if together else ()
    whole = "host.core0" if together else "host"
    own = tuple(Processor(name=f"{name}.core", parent=whole) for name in "AB")
    return Model(name="pinned", tasks=tasks, processors=(ps("host", 16), *core, *own))


@pytest.mark.slow
@pytest.mark.parametrize("together", [True, False], ids=["one-core", "two-cores"])
def test_a_core_that_is_shared_is_full_with_the_work_of_both(together: bool) -> None:
    """The throughput of many users is one by the work on the fullest core, in simulation and estimate."""
    exact = 1 / (FIRST + SECOND) if together else 1 / FIRST
    result = simulate(pinned(together=together), precision=0.01, seed=2)
    assert agrees(result.cycle.throughput, exact, within=0.02)
    assert estimate(pinned(together=together)).cycle.throughput == pytest.approx(exact, rel=0.01)
