"""Every instance of the layered systems that are learned in ``benchmarks/learning`` can be studied."""

from __future__ import annotations

import pytest
from learning.topologies import RANGES, TOPOLOGIES, instance


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_forty_instances_are_models_within_their_ranges(name: str) -> None:
    """The thesis has forty; what is drawn at random must not break a rule of models, nor leave the ranges."""
    low, high = RANGES[name].times
    for seed in range(40):
        model = instance(name, seed)
        clients = next(t for t in model.tasks if t.role == "reference")
        assert RANGES[name].clients[0] <= clients.threads <= RANGES[name].clients[1]
        drawn = [a.demand.mean for _, _, a in model.walk() if a.demand is not None and a.demand.mean > 0]
        assert drawn
        assert all(low <= mean <= high for mean in drawn)
