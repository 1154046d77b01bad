"""CPU time of processes and of the host."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from mup.workload import cpu
from mup.workload.cpu import HostCpu, disturbance, process_cpu_seconds


def _burn(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_own_cpu_time_is_the_process_clock() -> None:
    """The figure for this process agrees with its own clock, far below a scheduler tick."""
    before = process_cpu_seconds(os.getpid())
    _burn(0.05)
    assert process_cpu_seconds(os.getpid()) - before == pytest.approx(0.05, abs=0.005)


@pytest.mark.services
def test_cpu_time_of_another_process() -> None:
    """A child's work is seen from here, its sleep is not."""
    code = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass\nprint(flush=True)\ntime.sleep(30)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        used = process_cpu_seconds(child.pid)
        fallback = cpu._from_proc(child.pid)
        time.sleep(0.1)
        assert process_cpu_seconds(child.pid) - used < 0.01
        child.kill()
    assert 0.3 <= used < 0.6
    assert fallback == pytest.approx(used, abs=0.03)


def test_no_such_process() -> None:
    """A process that is gone is an error that says so."""
    with pytest.raises(ProcessLookupError, match="no process"):
        process_cpu_seconds(2**22 + 1)


@pytest.mark.slow
def test_the_host_is_at_least_as_busy_as_we_are() -> None:
    """Intervals add up, and our own work is in them."""
    host, elapsed = HostCpu(), 0.0
    for _ in range(2):
        host.start()
        began = time.monotonic()
        _burn(0.2)
        elapsed += time.monotonic() - began
        host.stop()
    host.stop()
    assert host.busy_seconds >= 0.36
    assert host.capacity_seconds >= elapsed * (os.cpu_count() or 1)
    # Each interval may count a tick of a hundredth of a second too much on every core.
    assert 0 < host.utilization <= 1.05


def _watched(*, busy: float = 0.0, stolen: float = 0.0) -> HostCpu:
    """A stop watch after 20 s of one core; ticks allow for 0.25 % more than the limits."""
    host = HostCpu()
    host.busy_seconds, host.stolen_seconds, host.capacity_seconds = busy, stolen, 20.0
    return host


@pytest.mark.parametrize(
    ("host", "ours", "says"),
    [
        pytest.param(_watched(busy=15.44), 15.0, "", id="ours"),
        pytest.param(_watched(busy=15.5), 15.0, "other programs used 2.5% of the machine (limit 2%)", id="others"),
        pytest.param(_watched(busy=15.5), None, "", id="attached"),
        pytest.param(_watched(stolen=0.44), 0.0, "", id="ticks"),
        pytest.param(_watched(stolen=0.5), None, "the hypervisor withheld 2.5% of the machine (limit 2%)", id="stolen"),
        pytest.param(HostCpu(), 1.0, "", id="no interval"),
    ],
)  # fmt: skip
def test_what_makes_a_measurement_void(host: HostCpu, ours: float | None, says: str) -> None:
    """Others, and the hypervisor, beyond the limits and the ticks in which the kernel counts."""
    assert disturbance(host, ours) == says
