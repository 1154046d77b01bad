"""The soak notices what grows."""

from __future__ import annotations

import pytest
from soak import Round, judge, slope


def rounds(memory: float = 0.0, descriptors: float = 0.0, requests: int = 100_000) -> list[Round]:
    """Return forty rounds in which one process grows by so much per round."""
    return [
        Round(
            requests=requests,
            statuses={"200": 33_000},
            seconds=30.0,
            # The first rounds fill caches; then there is noise.
            memory={"front": 50.0 - 20.0 / (1 + n) + (n % 3) + memory * n, "worker": 90.0},
            descriptors={"front": 40 + n % 2 + int(descriptors * n), "worker": 60},
            log_mb=20.0,
        )
        for n in range(40)
    ]


def test_noise_is_flat() -> None:
    """Growth at the beginning, and noise, are no leak."""
    assert judge(rounds()) == []


@pytest.mark.parametrize(
    ("found", "says"),
    [
        pytest.param(rounds(memory=3.0), "memory grows by 3.", id="memory"),
        pytest.param(rounds(descriptors=3.0), "descriptors grow by 3.", id="descriptors"),
    ],
)
def test_leaks_are_found(found: list[Round], says: str) -> None:
    """What grows with the requests is reported with its rate."""
    (problem,) = judge(found)
    assert problem.startswith(says)


def test_a_short_soak_is_not_judged(capsys: pytest.CaptureFixture[str]) -> None:
    """What may be warming up is no leak."""
    assert judge(rounds(memory=3.0, requests=5000)) == []
    assert "too few" in capsys.readouterr().out


def test_slope_ignores_outliers() -> None:
    """One bad point does not move the median of all pairs."""
    xs = [float(n) for n in range(20)]
    ys = [2.0 * x for x in xs]
    ys[7] = 1000.0
    assert slope(xs, ys) == pytest.approx(2.0)
