"""A request that is not waited for is not handed on: all that count requests agree."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sim_models import act, clients, entry, exp, model, ps, service

from mup.lqn import Call, Forward, Model
from mup.lqn.visits import entry_rates
from simulator import simulate
from simulator.analytic import estimate


def handed_on(kind: str) -> Model:
    """Clients ask B, by a message or a call; B hands the request on to D."""
    ask = entry("cycle", replace(act("go"), calls=(Call(task="B", entry="b", kind=kind),)))  # type: ignore[arg-type]
    b = replace(entry("b", act("w", exp(0.05))), forwards=(Forward(task="D", entry="d"),))
    return model(
        clients(4, exp(1.0), body=ask),
        service("B", b, threads=4, processor="p1"),
        service("D", entry("d", act("w", exp(0.2))), threads=4, processor="p2"),
        processors=(ps("p1"), ps("p2")),
    )


@pytest.mark.parametrize(("kind", "times"), [("send", 0.0), ("synchronous", 1.0)])
def test_only_what_a_caller_waits_for_is_handed_on(kind: str, times: float) -> None:
    """Engines, estimate and the count of requests per cycle agree on how many D gets."""
    tested = handed_on(kind)
    (rates,) = entry_rates(tested).values()
    assert rates.get(("D", "d"), 0.0) == times
    found, seen = estimate(tested), simulate(tested, precision=0.02)
    assert (found.tasks["D"].throughput > 0) == (seen.tasks["D"].throughput.mean > 0) == (times > 0)
    assert found.cycle.throughput == pytest.approx(seen.cycle.throughput.mean, rel=0.05)
