"""Measured times have as many digits as mean anything."""

from __future__ import annotations

import random

import pytest

from analyzer.calibration.digits import with_meaningful_digits
from mup.lqn import Activity, Constant, Empirical, Entry, Model, Task


def test_only_what_cannot_be_measured_is_lost() -> None:
    """Of a thousand times of nanoseconds to minutes the mean stays, and so does the order."""
    draw = random.Random(11)
    values = tuple(sorted(draw.lognormvariate(-7, 3) for _ in range(1000)))
    work = Activity(name="a", demand=Empirical(values), delay=Constant(0.1234567890123))
    entry = Entry(name="e", start="a", activities=(work,))
    model = Model(name="m", tasks=(Task(name="t", entries=(entry,)),))
    (short,) = with_meaningful_digits(model).task("t").entry("e").activities
    assert short.delay == work.delay
    assert isinstance(short.demand, Empirical)
    assert list(short.demand.values) == pytest.approx(values, rel=1e-6)
    assert all(value == float(f"{value:.7g}") for value in short.demand.values)
    assert short.demand.mean == pytest.approx(Empirical(values).mean, rel=1e-7)
