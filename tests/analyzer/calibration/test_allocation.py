"""Rounds go where what is not known comes from, and no more of them than it takes."""

import numpy as np
import pytest

from analyzer.calibration.allocation import LEAST_SHARE, Need, allocate
from analyzer.calibration.bootstrap import MOST_GROUPS, emphases
from analyzer.calibration.rundir import Phase, Window

START: dict[Phase, int] = {"hot": 6, "cold": 3}


def after(planned: list[Phase]) -> dict[Phase, int]:
    """Return how many rounds of each kind there are then."""
    return {phase: n + planned.count(phase) for phase, n in START.items()}


def test_a_figure_that_is_known_takes_no_round() -> None:
    """Nor does one that does not vary at all, nor no figure."""
    assert allocate([Need({"hot": 0.5, "cold": 0.5}, 1.0)], START, 9) == ([], True)
    assert allocate([Need({"hot": 0.0}, 0.0)], START, 9) == ([], True)
    assert allocate([], START, 9) == ([], True)


def test_rounds_go_to_the_kind_that_leaves_more_open() -> None:
    """The other kind gets its least share."""
    planned, enough = allocate([Need({"hot": 4.0, "cold": 0.01}, 1.0)], START, 100)
    then = after(planned)
    assert enough
    assert then["hot"] == 25  # 4 * 6 / n + 0.005 <= 1
    assert then["cold"] == pytest.approx(LEAST_SHARE * sum(then.values()), abs=1)


@pytest.mark.parametrize("spreads", [(1.0, 1.0), (1.0, 2.0), (3.0, 1.0)])
def test_the_shares_are_those_of_neyman(spreads: tuple[float, float]) -> None:
    """In the long run, rounds are in proportion to the standard deviation a single one stands for."""
    hot, cold = spreads
    need = Need({"hot": hot**2 / START["hot"], "cold": cold**2 / START["cold"]}, 0.02)
    planned, enough = allocate([need], START, 10_000)
    then = after(planned)
    assert enough
    assert then["hot"] / then["cold"] == pytest.approx(hot / cold, rel=0.05)
    # No split of as many rounds does better, and one round less would not do.
    total = sum(then.values())
    best = min(hot**2 / n + cold**2 / (total - n) for n in range(1, total))
    assert need.excess(START, then) * need.goal == pytest.approx(best, rel=1e-3)
    assert min(hot**2 / n + cold**2 / (total - 1 - n) for n in range(1, total - 1)) > need.goal


def test_the_worst_figure_comes_first() -> None:
    """Of two figures that want different rounds, the one further from its goal decides, then both."""
    far, near = Need({"cold": 5.0}, 1.0), Need({"hot": 2.0}, 1.0)
    planned, enough = allocate([near, far], START, 100)
    assert enough
    assert planned[0] == "cold"
    assert after(planned) == {"hot": 12, "cold": 15}


def test_too_little_time_is_said() -> None:
    """What there is time for is planned all the same."""
    planned, enough = allocate([Need({"hot": 100.0}, 1.0)], START, 5)
    assert not enough
    assert planned == ["hot"] * 5


def windows(*phases: Phase) -> list[Window]:
    """Return rounds of these kinds."""
    return [Window(start=n, end=n + 1, phase=phase) for n, phase in enumerate(phases)]


@pytest.mark.parametrize("rounds", [3, 6, MOST_GROUPS])
def test_emphases_give_the_variance_of_a_mean(rounds: int) -> None:
    """Of values, one per round, it is exactly the usual estimate: that of the values over their number."""
    values = np.random.default_rng(1).normal(size=rounds)
    total = 0.0
    for emphasis in emphases(windows(*["hot"] * rounds)):
        weights = np.ones(rounds)
        weights[list(emphasis.windows)] = emphasis.weight
        effect = float(weights @ values / weights.sum() - values.mean())
        total += emphasis.variance(effect * effect)
    assert total == pytest.approx(values.var(ddof=1) / rounds, rel=1e-9)


def test_many_rounds_are_taken_together() -> None:
    """Every round is in one group of its own kind; there are no more groups than needed."""
    found = emphases(windows(*["hot", "cold", "hot"] * 8))
    assert sorted(n for e in found for n in e.windows) == list(range(24))
    hot = [e for e in found if e.phase == "hot"]
    assert len(hot) == MOST_GROUPS == hot[0].groups
    assert {len(e.windows) for e in hot} == {1, 2}
    assert len([e for e in found if e.phase == "cold"]) == 8
