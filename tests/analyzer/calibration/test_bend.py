"""Shares by which hot rounds, cold ones and bursts are on one line."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.calibration.bend import Rounds, through

unit = st.floats(0.0, 1.0)
shares = st.lists(unit, min_size=1, max_size=30)
APART = 0.2


@given(shares=st.tuples(shares, shares, shares), times=st.tuples(unit, unit, unit))
def test_hot_and_cold_rounds_are_met(
    shares: tuple[list[float], list[float], list[float]], times: tuple[float, float, float]
) -> None:
    """Their work is on a line over the new shares, which begins with that of bursts and never falls."""
    least, once, much = sorted(times)
    kinds = [Rounds(np.array(values), t) for values, t in zip(shares, (least, once, much), strict=True)]
    bend = through(*kinds, apart=APART)
    if bend is None:
        return
    assert bend.base == least
    for kind in kinds[1:]:
        work = bend.base + bend.amount * float(bend(kind.shares).mean())
        assert work == pytest.approx(kind.seconds, rel=1e-6, abs=1e-9)
    everywhere = bend(np.linspace(0.0, 1.0, 101))
    assert everywhere[0] == 0.0
    assert everywhere[-1] == pytest.approx(1.0)
    assert (np.diff(everywhere) >= 0).all()


def test_what_sleeps_less_than_in_bursts_needs_as_much() -> None:
    """Between the corners work is a line; beyond cold rounds it goes on as up to them."""
    found = through(*(Rounds(np.array([s]), t) for s, t in ((0.1, 0.7), (0.3, 1.0), (0.6, 1.6))), apart=APART)
    assert found is not None
    work = found.base + found.amount * found([0.0, 0.1, 0.2, 0.3, 0.6, 0.8, 1.0])
    assert work == pytest.approx([0.7, 0.7, 0.85, 1.0, 1.6, 2.0, 2.4])


@pytest.mark.parametrize(
    ("burst", "hot", "cold"),
    [
        ((0.1, 0.8), (0.1, 1.0), (0.6, 2.0)),
        ((0.1, 0.8), (0.5, 1.0), (0.6, 2.0)),
        ((0.1, 1.2), (0.3, 1.0), (0.6, 2.0)),
        ((0.1, 0.8), (0.3, 1.0), (0.6, 0.9)),
    ],
    ids=["bursts sleep as much", "hot rounds sleep as much", "bursts need more", "cold rounds need less"],
)
def test_where_work_does_not_follow_sleep_there_is_none(
    burst: tuple[float, float], hot: tuple[float, float], cold: tuple[float, float]
) -> None:
    """Then times go by the rate."""
    kinds = (Rounds(np.array([share]), seconds) for share, seconds in (burst, hot, cold))
    assert through(*kinds, apart=APART) is None


def test_kinds_that_sleep_alike_but_for_a_few_are_not_told_apart() -> None:
    """Their means differ; what single requests need at the corners is a guess."""
    half = np.array([0.0] * 50 + [1.0] * 50)
    burst, hot, cold = half[:80], half[:97], half
    assert through(Rounds(burst, 0.8), Rounds(hot, 1.0), Rounds(cold, 1.2), apart=0.01) is None
