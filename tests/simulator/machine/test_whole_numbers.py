"""The engine takes models that have only whole numbers somewhere."""

from __future__ import annotations

from sim_models import act, clients, entry, model, service

from mup.lqn import Empirical, Model
from simulator import simulate
from simulator.machine.variates import tables


def measured(*samples: float) -> Model:
    """A service whose time is one of some samples."""
    return model(
        clients(1, Empirical(samples), "A.a"), service("A", entry("a", act("w", Empirical(samples))))
    )


def test_samples_of_whole_numbers_are_floating_point_numbers() -> None:
    """Compiled code takes arrays of one kind of numbers."""
    for samples in ((0.5, 1.5), (1, 2)):
        assert simulate(measured(*samples), horizon=100).cycle.throughput.mean > 0
    assert tables((Empirical((1, 2)),)).data.dtype == tables((Empirical((0.5,)),)).data.dtype
