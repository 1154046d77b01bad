"""What tracking of demands is judged by."""

from __future__ import annotations

import math

import numpy as np
import pytest
from estimation.station import simulate, system


@pytest.mark.slow
def test_lognormal_demands_have_their_mean_and_variation() -> None:
    """A user alone is never slowed down, so response times are demands."""
    model = system(1, 2, 1, classes=1, scv=4.0, lognormal=True)
    seen = simulate(model, 4000, 1, compiled=False)
    times = (seen.trace.end - seen.trace.start)[:-1]
    assert times.mean() == pytest.approx(float(model.demand[0]), rel=0.1)
    # The median of a lognormal distribution is its mean over the root of 1 + scv, whatever rare long ones are.
    assert np.median(times) == pytest.approx(float(model.demand[0]) / math.sqrt(5.0), rel=0.08)
