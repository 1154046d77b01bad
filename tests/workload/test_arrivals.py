"""Arrival processes and files of times: exact counts, seeds, rates, and what is refused."""

from __future__ import annotations

import itertools
import json
import statistics
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mup.errors import UsageError
from mup.workload.arrivals import Arrivals
from mup.workload.times_file import read_times, read_trace

RATES = st.floats(0.5, 200.0)


def _until(
    arrivals: Arrivals, end: float, *, seed: int = 0, warmup: float = 2.0, duration: float = 8.0
) -> list[float]:
    return list(itertools.takewhile(lambda at: at < end, arrivals.times(seed, warmup, duration)))


@given(st.integers(1, 200), st.integers(0, 5), st.integers(1, 10))
@settings(max_examples=50, deadline=None)
def test_constant_arrivals_have_exact_counts(rate: int, warmup: int, duration: int) -> None:
    """Every second holds exactly the rate, in the warm-up, in the window, and behind it."""
    times = _until(
        Arrivals(rate=rate, process="constant"), warmup + duration + 2, warmup=warmup, duration=duration
    )
    for second in range(warmup + duration + 2):
        assert sum(second <= at < second + 1 for at in times) == rate
    assert statistics.fmean(b - a for a, b in itertools.pairwise(times)) == pytest.approx(1 / rate)


@given(RATES, RATES, st.integers(0, 2**63), st.sampled_from(["poisson", "constant"]))
@settings(max_examples=50, deadline=None)
def test_arrivals_ascend_and_follow_the_seed(first: float, last: float, seed: int, process: str) -> None:
    """The same seed gives the same times; they never go backwards."""
    arrivals = Arrivals(rate=first, to_rate=last, process=process)  # type: ignore[arg-type]
    times = _until(arrivals, 11.0, seed=seed)
    assert times == _until(arrivals, 11.0, seed=seed)
    assert all(a <= b for a, b in itertools.pairwise(times))


@given(st.floats(0.0, 100.0), st.floats(1.0, 100.0))
@settings(max_examples=50, deadline=None)
def test_a_constant_ramp_follows_its_cumulative_rate(first: float, last: float) -> None:
    """Up to any moment as many have come as the integral of the rate says, to the nearest one."""
    arrivals = Arrivals(rate=first, to_rate=last, process="constant")
    times = _until(arrivals, 12.0)
    for end in (1.0, 2.0, 5.5, 10.0, 11.9):
        whole = first * min(end, 2.0)
        inside = min(max(end - 2.0, 0.0), 8.0)
        whole += first * inside + (last - first) * inside**2 / 16 + last * max(end - 10.0, 0.0)
        assert abs(sum(at < end for at in times) - whole) <= 0.5 + 1e-6


def test_poisson_arrivals_are_poisson() -> None:
    """Counts per second have variance = mean, distances have a coefficient of variation of 1."""
    times = _until(Arrivals(rate=50.0), 400.0, seed=3)
    counts = [0] * 400
    for at in times:
        counts[int(at)] += 1
    assert statistics.fmean(counts) == pytest.approx(50.0, rel=0.03)
    assert statistics.variance(counts) / statistics.fmean(counts) == pytest.approx(1.0, abs=0.2)
    gaps = [b - a for a, b in itertools.pairwise(times)]
    assert statistics.stdev(gaps) / statistics.fmean(gaps) == pytest.approx(1.0, abs=0.03)
    assert _until(Arrivals(rate=50.0), 5.0, seed=4) != _until(Arrivals(rate=50.0), 5.0, seed=3)


def test_a_rate_that_falls_to_zero_ends() -> None:
    """Nothing arrives after the window any more, and asking for the next arrival comes to an end."""
    times = list(Arrivals(rate=10.0, to_rate=0.0, process="constant").times(0, 1.0, 4.0))
    assert len(times) == 10 + 20
    assert times[-1] < 5.0


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"rate": 0.0}, "must be > 0 per second, got 0.0"),
        ({"rate": -1.0}, "got -1.0"),
        ({"rate": float("nan")}, "got nan"),
        ({"rate": 5.0, "to_rate": -1.0}, "5.0 to -1.0"),
        ({"rate": 5.0, "process": "bursty"}, "'bursty'"),
        ({"process": "trace"}, "at least one arrival"),
    ],
)
def test_impossible_arrivals(values: dict[str, object], message: str) -> None:
    """The message names the value."""
    with pytest.raises(UsageError, match=message):
        Arrivals(**values)  # type: ignore[arg-type]


def test_arrivals_survive_their_json() -> None:
    """What goes to the driver process is what arrives there."""
    for arrivals in (Arrivals(rate=3.0, to_rate=4.0), Arrivals(process="trace", trace=(0.0, 1.5))):
        assert Arrivals.from_json(json.loads(json.dumps(arrivals.to_json()))) == arrivals


@pytest.mark.parametrize(
    "text", ["1\n2.5\n\n4\n", "[1, 2.5, 4]", "time,user\n1,a\n2.5,b\n4,c\n", "# seconds\n1\n2.5\n4"]
)
def test_files_of_times(tmp_path: Path, text: str) -> None:
    """One per line, the first column of a CSV file, or a JSON list; a trace counts from its first arrival."""
    file = tmp_path / "times"
    file.write_text(text)
    assert read_times(file) == (1.0, 2.5, 4.0)
    assert read_trace(file) == (0.0, 1.5, 3.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\nx\n", "line 2: a time must be a number >= 0, got 'x'"),
        ("1\n-2\n", "line 2: a time must be a number >= 0, got '-2'"),
        ("[1, true]", "item 2: a time must be a number >= 0, got True"),
        ("[1,", "not a JSON list"),
        ("", "there is no time in this file"),
        ("3\n1\n", "arrival 2 at 1.0 is before the one above it at 3.0"),
    ],
)
def test_files_that_are_none(tmp_path: Path, text: str, message: str) -> None:
    """What is wrong is said with its place."""
    file = tmp_path / "times"
    file.write_text(text)
    with pytest.raises(UsageError, match=message):
        read_trace(file)


def test_a_missing_file(tmp_path: Path) -> None:
    """The message names the file."""
    with pytest.raises(UsageError, match="nowhere"):
        read_times(tmp_path / "nowhere")
