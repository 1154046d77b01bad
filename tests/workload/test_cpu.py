"""CPU time of processes and of the host."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

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


TICK = 1 / os.sysconf("SC_CLK_TCK")
KINDS = 5
"""Of work that the kernel counts apart, each in whole ticks: user, nice, system, irq, softirq."""


@pytest.mark.slow
def test_the_host_is_at_least_as_busy_as_we_are() -> None:
    """Intervals add up, our own work is in them, and no more than there was time for."""
    intervals, burned, cores = 2, 0.7, os.cpu_count() or 1
    host, elapsed = HostCpu(), 0.0
    for _ in range(intervals):
        host.start()
        began = time.monotonic()
        _burn(burned)
        elapsed += time.monotonic() - began
        host.stop()
    host.stop()
    # Of our own two kinds, user and system, an interval may miss a tick each.
    assert host.busy_seconds >= intervals * (burned - 2 * TICK)
    assert host.capacity_seconds >= elapsed * cores
    # Each interval may have a tick too much of every kind, and of every core: on two cores 5 % in all.
    assert host.busy_seconds <= host.capacity_seconds + intervals * (KINDS + cores) * TICK
    assert host.utilization == host.busy_seconds / host.capacity_seconds


@pytest.mark.parametrize(
    ("looks", "busy"),
    [
        pytest.param("30 0 5 160 2 0 5 3", 0.35, id="as measured"),
        pytest.param("45 0 5 160 2 0 25 3", 0.35, id="met at work more often than it worked"),
        pytest.param("0 0 1 160 2 0 0 3", 0.35, id="met at work less often"),
    ],
)
def test_the_host_is_busy_when_it_does_not_idle(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, looks: str, busy: float
) -> None:
    """Of 2 s of one core 1.6 were idle, 0.02 waiting and 0.03 withheld, whatever looks every few ms met."""
    stat, now = tmp_path / "stat", 100.0
    monkeypatch.setattr(cpu, "STAT", stat)
    monkeypatch.setattr(cpu.time, "monotonic", lambda: now)
    monkeypatch.setattr(cpu.os, "cpu_count", lambda: 1)
    host = HostCpu()
    stat.write_text("cpu  0 0 0 0 0 0 0 0 0 0\n")
    host.start()
    now = 102.0
    stat.write_text(f"cpu  {looks} 0 0\n")
    host.stop()
    assert host.busy_seconds == pytest.approx(busy)
    assert host.stolen == pytest.approx(0.015)
    assert host.foreign(0.3) == pytest.approx(0.025)


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
