"""Independent replications agree with one long run, with correct intervals."""

from __future__ import annotations

import pytest
from sim_models import act, clients, entry, exp, model, ps, service

from mup.errors import UsageError
from mup.lqn import Model
from simulator import replicate, simulate


def _queue(count: int = 4) -> Model:
    return model(
        clients(count, exp(1.0), "A.a"),
        service("A", entry("a", act("w", exp(0.2))), processor="cpu", threads=2, replicas=2),
        processors=(ps(cores=1),),
    )


@pytest.mark.slow
def test_replications_agree_with_one_run() -> None:
    """Mean response time and utilization are those of a single run, within both intervals."""
    single = simulate(_queue(), precision=0.005, seed=3)
    several = replicate(_queue(), 8, precision=0.005, seed=100)
    assert several.batches == 8
    assert several.precision.reached < 0.01
    for one, other in (
        (single.cycle.response_time, several.cycle.response_time),
        (single.processors["cpu"].utilization, several.processors["cpu"].utilization),
        (single.tasks["A"].replicas[1].busy, several.tasks["A"].replicas[1].busy),
        (single.entries["A.a"].response_time.p95, several.entries["A.a"].response_time.p95),  # type: ignore[union-attr]
    ):
        assert abs(one.mean - other.mean) < 2 * (one.ci95 + other.ci95)
        assert other.ci95 > 0


def test_replications_do_not_depend_on_workers() -> None:
    """One worker or two: the same result."""
    alone = replicate(_queue(), 5, horizon=200, workers=1)
    together = replicate(_queue(), 5, horizon=200, workers=2)
    assert alone == together
    assert alone.simulated_seconds == pytest.approx(1000)


def test_few_replications_are_refused() -> None:
    """An interval from two values would be useless."""
    with pytest.raises(UsageError, match="at least 5"):
        replicate(_queue(), 2, horizon=10)
