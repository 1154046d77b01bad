"""Medians, half-widths, error distributions and discrepancy of the test bed."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest
from accuracy.command import seeds_of
from accuracy.discrepancy import estimate
from accuracy.judge import Measured, Row, judge, measured
from accuracy.jumps import deviations, jump_table
from accuracy.plots import draw_errors, draw_system
from accuracy.report import distribution
from measured_repeats import repeat

from mup.errors import UsageError
from mup.lqn.uncertainty import Discrepancy


def times(mean: float, seed: int, count: int = 400) -> list[float]:
    """Return exponential times."""
    rng = random.Random(seed)
    return [rng.expovariate(1 / mean) for _ in range(count)]


def test_the_median_of_valid_repeats_counts() -> None:
    """A void repeat is counted and left out; an outlying one does not move the value."""
    records = [repeat("one", 0, [0.1] * 50), repeat("one", 1, [0.1] * 50), repeat("one", 2, [0.3] * 50)]
    records.append(repeat("one", 3, [9.0] * 50, void="foreign"))
    found = measured(records)
    assert found is not None
    assert found.response == pytest.approx(0.1)
    assert (found.repeats, found.void) == (3, 1)
    assert found.seconds == pytest.approx(30)
    assert found.throughput == pytest.approx(5)


def test_repeats_whose_speed_changed_are_compared_with_steady_ones() -> None:
    """Each time is scaled by the speed of its repeat; what is void for another reason is not looked at."""
    records = [
        repeat("one", 0, [0.1] * 50, jump=0.01, speed=1000.0),
        repeat("one", 1, [0.2] * 50, jump=-0.07, speed=500.0),
        repeat("one", 2, [0.11] * 50, jump=0.12, speed=1000.0, void="the machine's speed changed by +12.0%"),
        repeat("one", 3, [9.0] * 50, jump=0.01, void="other programs used 9 % of the machine"),
        repeat("one", 4, [9.0] * 50),
    ]
    found = deviations(records)
    expected = [(0.01, 0.0), (0.07, 0.0), (0.12, math.log(1.1) / math.sqrt(1.5))]
    assert [jump for jump, _ in found] == [jump for jump, _ in expected]
    assert [value for _, value in found] == pytest.approx([value for _, value in expected])
    assert jump_table(found) == [
        ("0% to 4%", "1", "0.0%"),
        ("4% to 8%", "1", "0.0%"),
        ("8% to 16%", "1", "7.8%"),
    ]
    assert deviations(records[2:]) == []


def test_nothing_valid_is_nothing_measured() -> None:
    """Without a valid repeat there are no figures."""
    assert measured([repeat("one", 0, [0.1] * 9, void="speed")]) is None


def test_the_half_width_shrinks_with_repeats() -> None:
    """Nine times as much data gives about a third of the half-width; so for the 95th percentile."""
    few = measured([repeat("one", 0, times(0.1, 0))])
    many = measured([repeat("one", k, times(0.1, k)) for k in range(9)])
    assert few is not None
    assert many is not None
    assert 0.2 < many.response_width / few.response_width < 0.6
    assert many.p95_width < few.p95_width


def test_repeats_that_differ_make_it_wide() -> None:
    """If services of another start are slower, that counts, however long each repeat is."""
    alike = measured([repeat("one", k, times(0.1, k)) for k in range(3)])
    differing = measured([repeat("one", k, times(0.1 * (1 + 0.3 * k), k)) for k in range(3)])
    assert alike is not None
    assert differing is not None
    assert differing.response_width > 3 * alike.response_width


def figures(response: float, *, low: float | None = None, high: float | None = None) -> dict[str, object]:
    """Return a predicted point; its interval is calibration error alone."""
    interval = None
    if low is not None:
        one = {"low": low, "high": high, "parts": {"calibration": 1.0}}
        interval = {"response_time": one, "p95": one, "throughput": one, "utilization": {"A": one}}
    return {
        "response_time": {"mean": response, "ci95": 0.0, "p95": 3 * response},
        "throughput": {"mean": 40.0},
        "utilization": {"task A": 0.45, "processor host": 0.6, "processor A.core": 0.8},
        "load": 0.6,
        "prediction": interval,
    }


def test_errors_are_signed_and_relative() -> None:
    """Raw and corrected errors, the interval, and absolute errors of utilization come from the right places."""
    found = measured([repeat("one", k, [0.1] * 400) for k in range(3)])
    assert found is not None
    record = {
        "points": {"one": figures(0.12, low=0.105, high=0.14)},
        "corrected": {"one": {**figures(0.09), "ratio": 1.2}},
    }
    row = judge("s1", "test", "one", "1 client", record, found)
    assert row.raw == pytest.approx(0.2)
    assert row.corrected == pytest.approx(-0.1)
    assert row.inside is False
    # At the speed of the measurement the interval is three quarters as far: 0.079 to 0.105 s.
    assert row.inside_corrected is True
    assert row.width == pytest.approx(0.0175 / 0.12)
    assert row.utilization == pytest.approx(0.05)
    assert row.host == pytest.approx(0.1)
    assert row.throughput == pytest.approx(0.0)
    assert row.ratio == 1.2
    assert row.known["response_time"] == pytest.approx(math.log(0.14 / 0.105) / 2 / 1.96)


def row(error: float, *, load: float = 0.5, system: str = "s1", width: float = 0.0) -> Row:
    """Return a point with this error of everything."""
    seen = Measured(
        repeats=3, void=0, seconds=30.0, response=1.0, response_width=width, p95=2.0, p95_width=0.01,
        throughput=5.0, throughput_width=width, utilization={"A": 0.5}, host=0.5, speed=1000.0,
        monitored=None, think=0.0,
    )  # fmt: skip
    return Row(
        system=system, half="train", point="one", change="4 clients", load=load, predicted=1 + error,
        measured=seen, raw=error, corrected=error, p95=error, throughput=error, utilization=abs(error),
        host=error, ratio=1.0, inside=abs(error) < 0.1, inside_corrected=abs(error) < 0.1, width=0.1, shares={"A": error},
    )  # fmt: skip


def test_shares_of_the_distribution() -> None:
    """Shares count absolute errors; the half-width of a measurement is allowed for where it says so."""
    found = distribution([row(0.04), row(-0.08), row(0.12, width=0.03), row(-0.3, system="s2")])
    corrected = found["corrected"]
    assert corrected["within_5"] == 0.25
    assert corrected["within_10"] == 0.5
    assert corrected["within_10_and_width"] == 0.75
    assert corrected["within_20"] == 0.75
    assert corrected["worst"] == pytest.approx(0.3)
    assert corrected["bias"] == pytest.approx(-0.055)
    assert found["systems"] == 2
    assert found["inside"] == 0.5
    assert found["inside_per_system"] == pytest.approx((2 / 3 + 0) / 2)


def test_the_discrepancy_grows_where_errors_do() -> None:
    """Bands of load get the bias and standard deviation of their own errors, less what measuring explains."""
    rng = random.Random(1)
    rows = [row(rng.gauss(0.0, 0.02), load=0.2 + 0.001 * k, system=f"s{k}") for k in range(60)]
    rows += [row(rng.gauss(0.05, 0.10), load=0.9 + 0.001 * k, system=f"s{k}") for k in range(60)]
    found = estimate(rows, source="made up")
    low, high = found.at("response_time", 0.2), found.at("response_time", 0.95)
    assert low is not None
    assert high is not None
    assert low == pytest.approx((0.02, 0.0), abs=0.01)
    assert high == pytest.approx((0.10, 0.05), abs=0.03)
    assert Discrepancy.from_json(found.to_json()) == found
    wide = [row(rng.gauss(0.0, 0.02), load=0.5, system=f"s{k}", width=1.96 * 0.02) for k in range(60)]
    explained = estimate(wide, source="").at("response_time", 0.5)
    assert explained is not None
    assert explained[0] < 0.012


def test_points_that_are_known_well_count_for_more() -> None:
    """Ten good measurements show a bias of 4 % and no scatter; as many bad ones by chance the contrary."""
    good = [row(0.04 + 0.002 * (-1) ** k, system=f"s{k}", width=0.01) for k in range(10)]
    bad = [row(-0.1 + 0.2 * (-1) ** k, system=f"b{k}", width=0.4) for k in range(10)]
    found = estimate(good + bad, source="").at("response_time", 0.5)
    assert found is not None
    assert found == pytest.approx((0.0, 0.04), abs=0.004)


def test_a_bias_of_few_systems_is_known_less_well() -> None:
    """The same points say more when they are of many systems than of two."""
    rng = random.Random(3)
    errors = [rng.gauss(0.0, 0.05) for _ in range(24)]
    many = estimate([row(e, system=f"s{k}") for k, e in enumerate(errors)], source="").at("p95", 0.5)
    two = estimate([row(e, system=f"s{k % 2}") for k, e in enumerate(errors)], source="").at("p95", 0.5)
    assert many is not None
    assert two is not None
    assert two[0] > many[0] > 0.03
    assert two[0] ** 2 - many[0] ** 2 == pytest.approx(many[0] ** 2 * 11 / 25, rel=0.1)


def test_a_discrepancy_needs_data() -> None:
    """A handful of points is refused."""
    with pytest.raises(UsageError, match="3 measured points"):
        estimate([row(0.1)] * 3, source="")


def test_pictures_are_drawn() -> None:
    """Both pictures are SVG that holds a point for every row; errors beyond the edge stay visible."""
    rows = [row(0.04), row(-0.5, load=0.9)]
    for picture in (draw_errors(rows), draw_system("s1", rows)):
        assert picture.startswith("<svg")
        assert "nan" not in picture
        assert picture.count("<circle") >= len(rows)


def test_seeds_are_read() -> None:
    """Ranges and single numbers may be mixed; anything else is refused."""
    assert seeds_of("100-102,113") == [100, 101, 102, 113]
    assert seeds_of("") == []
    with pytest.raises(UsageError, match="--train"):
        seeds_of("1-x", "--train")


def test_infinite_widths_do_not_break_the_estimate(tmp_path: Path) -> None:
    """A measurement without an interval explains everything, and nothing is negative."""
    found = estimate([row(0.1, width=math.inf)] * 8, source=str(tmp_path)).at("response_time", 0.5)
    assert found == (0.0, 0.1)


def test_points_that_are_not_known_do_not_hide_the_error_of_the_others() -> None:
    """Half of the points have no interval: the other half still shows how much errors vary."""
    errors = enumerate((-0.08, 0.08) * 8)
    rows = [
        row(0.05 + error, width=width, system=f"s{k}") for k, error in errors for width in (0.0, math.inf)
    ]
    found = estimate(rows, source="").at("response_time", 0.5)
    assert found is not None
    # Of sixteen systems: the variance of a sample, and that of its mean.
    assert found == pytest.approx((0.08 * math.sqrt(16 / 15 * (1 + 1 / 16)), 0.05), rel=0.01)
