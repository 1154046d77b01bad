"""The analytic estimate is right, or warns: variable services, parts, priorities.

Judged by the simulation, whose intervals are part of the tolerances.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from sim_models import act, clients, entry, exp, model, ps, service

from mup.lqn import Model, Processor, with_scv
from simulator import simulate
from simulator.analytic import estimate


@pytest.mark.parametrize(("scv", "load"), [(5.5, 0.5), (5.5, 0.8), (10.0, 0.8), (20.0, 0.5)])
def test_very_variable_services_wait_as_pollaczek_and_khinchine_say(scv: float, load: float) -> None:
    """An open M/G/1: the estimate used to stop following the variability at about 4, without a warning."""
    work = replace(entry("a", act("w", with_scv(0.1, scv))), arrivals=exp(0.1 / load))
    found = estimate(model(service("A", work, threads=1)))
    exact = 0.1 + load * 0.1 * (1 + scv) / 2 / (1 - load)
    assert found.entries["A.a"][1] == pytest.approx(exact, rel=0.04)


@pytest.mark.slow
@pytest.mark.parametrize("users", [4, 8])
@pytest.mark.parametrize("discipline", ["ps", "fcfs"])
def test_a_part_beside_others_on_its_machine(users: int, discipline: str) -> None:
    """One class works in a part of one core, another on the whole: the part is as slow as its share of the machine."""
    tested = model(
        clients(users, exp(0.5), "A.a", name="U1"),
        clients(users, exp(0.5), "B.b", name="U2"),
        service("A", entry("a", act("w", exp(0.05))), threads=8, processor="part"),
        service("B", entry("b", act("w", exp(0.15))), threads=8, processor="whole"),
        processors=(ps("whole"), Processor(name="part", discipline=discipline, parent="whole")),  # type: ignore[arg-type]
    )
    found, seen = estimate(tested), simulate(tested, precision=0.01)
    assert found.cycle.throughput == pytest.approx(seen.cycle.throughput.mean, rel=0.04)
    for name in ("U1", "U2"):
        time = seen.tasks[name].response_time
        assert time is not None
        assert found.tasks[name].response_time == pytest.approx(time.mean, rel=0.12)


def urgent(priority: int) -> Model:
    """Two kinds of clients of one thread; one of them may be more urgent."""
    pool = service("A", entry("hi", act("w", exp(0.1))), entry("lo", act("w", exp(0.1))), threads=1)
    return model(
        replace(clients(3, exp(0.5), "A.hi", name="H"), priority=priority),
        clients(3, exp(0.5), "A.lo", name="L"),
        replace(pool, admission="hol"),
    )


def test_priorities_of_admission_are_named() -> None:
    """The mean over both is right, those of the two are not: a warning names the task, but only with priorities."""
    found, seen = estimate(urgent(1)), simulate(urgent(1), precision=0.01)
    assert found.cycle.response_time == pytest.approx(seen.cycle.response_time.mean, rel=0.05)
    assert any(w.startswith("tasks['A']: priorities of admission are not estimated") for w in found.warnings)
    assert not any("priorities" in w for w in estimate(urgent(0)).warnings)
