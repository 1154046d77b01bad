"""How busy a semaphore is: how much of it is held, from the end of the wait until it is given back."""

from __future__ import annotations

from dataclasses import replace

import pytest
from engine_comparison import assert_engines_agree
from sim_models import act, agrees, clients, entry, exp, model, service

from mup.lqn import Constant, Model, Task
from simulator import simulate
from simulator.studies.whatif import bottleneck

PRECISION = 0.01


def guarded(count: int, permits: int, think: float, *, releasing: float = 0.0) -> Model:
    """Return clients whose requests hold a semaphore for half a second."""
    semaphore = Task(
        name="S",
        threads=permits,
        entries=(
            replace(entry("acquire", act("p")), token="acquire"),
            replace(entry("release", act("v", delay=Constant(releasing))), token="release"),
        ),
    )
    body = entry(
        "a",
        act("take", calls="S.acquire"),
        act("hold", delay=Constant(0.5 - releasing)),
        act("give", calls="S.release"),
    )
    return model(clients(count, exp(think), calls="A.a"), service("A", body), semaphore)


@pytest.mark.parametrize("releasing", [0.0, 0.2])
@pytest.mark.parametrize("permits", [1, 3])
def test_what_is_held_counts(permits: int, releasing: float) -> None:
    """Little's law: so many are held as are taken per second, times how long each is."""
    result = simulate(guarded(4, permits, 1.0, releasing=releasing), precision=PRECISION)
    held = result.cycle.throughput.mean * 0.5
    assert agrees(result.tasks["S"].busy, held)
    assert agrees(result.tasks["S"].utilization, held / permits)


def test_a_full_one_is_the_bottleneck() -> None:
    """Requests that wait for it keep their callers busy, too; the semaphore is what limits them."""
    full = guarded(12, 2, 0.1)
    result = simulate(full, precision=PRECISION)
    assert result.tasks["S"].utilization.mean > 0.99
    found = bottleneck(full, result)
    assert found is not None
    assert "S" in found[0]


def test_engines_agree() -> None:
    """Both take the same mean moment off what is held."""
    assert_engines_agree(guarded(6, 2, 0.3, releasing=0.1))
