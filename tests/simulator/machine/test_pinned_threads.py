"""Threads without migration stay on the cores they start on."""

from __future__ import annotations

import pytest
from sim_models import act, clients, entry, model, service

from mup.lqn import Constant, Processor
from simulator import simulate


@pytest.mark.parametrize(("cores", "response"), [(2, 1.0), (1, 2.0)])
def test_the_second_thread_starts_on_the_second_core(cores: int, response: float) -> None:
    """Two tasks of one thread each do not share a core as long as there are two."""
    tested = model(
        clients(1, None, "A.a", name="U"),
        clients(1, None, "B.b", name="V"),
        service("A", entry("a", act("w", Constant(1.0))), threads=1, processor="cpu"),
        service("B", entry("b", act("w", Constant(1.0))), threads=1, processor="cpu"),
        processors=(Processor(name="cpu", cores=cores, discipline="cores"),),
    )
    result = simulate(tested, horizon=2000)
    assert result.cycle.response_time.mean == pytest.approx(response, rel=1e-3)
    assert result.processors["cpu"].utilization.mean == pytest.approx(1.0, rel=1e-3)
