"""The monitor sees how fast the machine is while something else runs."""

from __future__ import annotations

import time

import pytest

from mup.workload.speed_monitor import JUMP_LIMIT, MonitoredSpeed, Sample, SpeedMonitor


def samples(*times: float, core: int = 0) -> list[Sample]:
    return [Sample(i, core, t) for i, t in enumerate(times)]


def test_slow_moments_are_in_the_speed() -> None:
    """Work meets them as the samples do; they are told apart as well."""
    found = MonitoredSpeed.of(samples(1e6, 1e6, 1e6, 3e6))
    assert found is not None
    assert found.usual == pytest.approx(1000)
    assert found.speed == pytest.approx(1000 / 1.5)
    assert found.slow_share == 0.25


def test_cores_count_alike_however_many_samples_they_have() -> None:
    """A core that was sampled less often is half of a two-core machine all the same."""
    found = MonitoredSpeed.of(samples(1e6, 1e6, 1e6) + samples(2e6, core=1))
    assert found is not None
    assert found.speed == pytest.approx(1000 / 1.5)


def test_too_few_samples_tell_nothing() -> None:
    """Three timings are no speed."""
    assert MonitoredSpeed.of(samples(1e6, 1e6, 1e6)) is None


def test_a_jump_makes_a_measurement_void() -> None:
    """A step of 25 % does; noise does not, and neither do slow moments."""
    steady = MonitoredSpeed.of(samples(*(1e6 + 1e4 * (i % 3) for i in range(40))))
    stepped = MonitoredSpeed.of(samples(*([1e6] * 20 + [1.25e6] * 20)))
    dozing = MonitoredSpeed.of(samples(*([1e6, 1e6, 1e6, 1e6, 2e6] * 8)))
    assert steady is not None
    assert stepped is not None
    assert dozing is not None
    # The halves differ by as much, but that may be chance.
    noisy = MonitoredSpeed.of(samples(*([1e6, 2e6] * 8 + [2e6, 2e6, 1e6, 2e6, 2e6] * 3)))
    assert noisy is not None
    assert abs(noisy.jump) > JUMP_LIMIT
    assert steady.unsteady == dozing.unsteady == noisy.unsteady == ""
    assert "changed by -20" in stepped.unsteady


@pytest.mark.services
def test_a_monitor_samples_every_core_and_ends() -> None:
    """A real monitor delivers samples while it runs and leaves no process behind."""
    with SpeedMonitor(period=0.02) as monitor:
        start = time.monotonic_ns()
        deadline = time.monotonic() + 20
        while (found := monitor.speed(start, time.monotonic_ns())) is None and time.monotonic() < deadline:
            time.sleep(0.05)
        assert found is not None
        assert found.speed > 0
        assert monitor._process.poll() is None
    assert monitor._process.returncode is not None
