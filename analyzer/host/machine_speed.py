"""Speed of a model's machine relative to its calibration, from its history and a probe.

``speed_variation`` says how much a machine's speed varies; here that becomes what a prediction has to allow
for, if the model says on which machine it was calibrated, and how fast that was. The history counts if that
is this machine; of any other one the prior has to do.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, Final

import msgspec

from analyzer.host.measured_machine import explored_machine, is_speed, measured_processors, tells_machine
from analyzer.host.names import HOST
from analyzer.host.quiet import watched
from analyzer.host.speed_variation import PRIOR_SOURCE, Variance, Variation, selected, variation
from mup.errors import UsageError
from mup.lqn.machine_speed import MachineSpeed
from mup.lqn.model import Model
from mup.workload.cpu import HostCpu
from mup.workload.machine import Identity, boot_id, since_boot, this_machine
from mup.workload.speed import Speed, probe
from mup.workload.speed_history import SpeedRecord, append, read_history, record
from mup.workload.speed_monitor import MonitoredSpeed, SpeedMonitor

__all__ = [
    "Known",
    "Now",
    "age",
    "host_slowness",
    "left_uncertain",
    "machine_now",
    "machine_speed",
    "relative_speed",
    "speed_now",
    "speed_range",
    "this_variation",
]

PROBE_SECONDS: Final = 3.0
MONITORED: Final = Variance(0.03**2, 19.0)
"""How well the speed of a monitor is that of services: processor time per nominal time, at the same monitored
speed, was 2.77 to 3.08 in twenty systems (docs/explanation/accuracy.md)."""
PROBED: Final = Variance(0.05**2, 4.0)
"""The same of probes before and after: they do not see what happens in between."""


@dataclass(frozen=True, slots=True)
class Known:
    """What a prediction has to allow for.

    Attributes:
        machine: None if nothing is known about the model's machine.
        notes: What of the history was left out, one sentence each.
    """

    machine: MachineSpeed | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Now:
    """How fast this machine is now.

    Attributes:
        factor: Relative to the calibration.
        error: Standard error of its logarithm.
        seconds: How long it was probed.
    """

    factor: float
    error: float
    seconds: float


def machine_speed(model: Model, *, seconds: float, lag: float | None = None) -> Known:
    """Return how fast the machine of a model may be during a real run.

    Args:
        model: Calibrated.
        seconds: How long the real run is; of repeats, all together.
        lag: Seconds from the exploration to the end of the run; None = unknown.
    """
    processors, explored = measured_processors(model), explored_machine(model)
    if explored is None or not tells_machine(model):
        return Known(None)
    here = this_machine()
    if not _same(explored, here):
        name = explored.get("hostname")
        found = variation((), time.time())
        source = f"the model's machine {name!r} is not this one, so its history is not here;"
        source += f" its spread is {PRIOR_SOURCE}"
        return Known(_of(processors, found.later, source))
    found, notes = this_variation(partial(host_slowness, model))
    observed = model.provenance.get("observed_seconds")
    spread = found.between(lag, seconds, observed if is_speed(observed) else seconds)
    return Known(_of(processors, spread, found.source(lag)), notes)


def this_variation(slowness: Callable[[float], float]) -> tuple[Variation, tuple[str, ...]]:
    """Return how the speed of this machine varies, and what of its history was left out.

    Args:
        slowness: How much longer work takes at a utilization of this machine than if it were busy.
    """
    history = read_history()
    now = time.time()
    selection = selected(history.records, this_machine(), boot_id(), now - since_boot(), slowness)
    return variation(selection.runs, now), (*history.notes, *selection.notes)


def _of(processors: tuple[str, ...], variance: Variance, source: str) -> MachineSpeed:
    return MachineSpeed(processors=processors, sd=variance.sd, freedom=variance.freedom, source=source)


def _same(explored: Mapping[str, Any], here: Identity) -> bool:
    return all(getattr(here, name, None) == value for name, value in explored.items())


def age(model: Model) -> float | None:
    """Return the seconds since a model's exploration began; None if it does not say when that was."""
    try:
        created = datetime.strptime(str(model.provenance.get("created")), "%Y-%m-%dT%H:%M:%S%z")
    except ValueError:
        return None
    passed = time.time() - created.timestamp()
    # An exploration that is still to come was dated by another clock.
    return passed if passed >= 0 else None


def left_uncertain(model: Model, *, monitored: bool) -> MachineSpeed | None:
    """Return what a prediction for a measured speed has to allow for: how well that is the speed of services.

    Args:
        model: Calibrated.
        monitored: Whether a monitor ran meanwhile, in the exploration too; if not, there were probes before
            and after.
    """
    processors = measured_processors(model)
    if not processors or explored_machine(model) is None:
        return None
    how = "a monitor that ran meanwhile" if monitored else "probes before and after"
    return _of(processors, MONITORED if monitored else PROBED, f"its speed was measured, by {how}")


def speed_range(model: Model, low: float, high: float) -> tuple[float, MachineSpeed]:
    """Return the speed in the middle of a range, and what covers the range from there.

    Args:
        model: Calibrated.
        low: The slowest speed, relative to the exploration.
        high: The fastest one.

    Raises:
        UsageError: The numbers make no range, or no processor of the model stands for a measured machine.
    """
    processors = _movable(model)
    if not 0 < low <= high < math.inf:
        raise UsageError(
            f"--machine-speed: must be a factor or a range such as 0.9..1.1, got {low:g}..{high:g}"
        )
    text = f"asked for {low:g}" if low == high else f"asked for {low:g} to {high:g}"
    reach = math.log(high / low) / 2
    return math.sqrt(low * high), MachineSpeed(processors=processors, sd=0.0, reach=reach, source=text)


def _movable(model: Model) -> tuple[str, ...]:
    processors = measured_processors(model)
    if not processors:
        raise UsageError(
            f"--machine-speed: the model has no processor {HOST!r} that stands for a measured machine",
            hint="--speed PROCESSOR=F changes the speed of any processor",
        )
    return processors


def machine_now(model: Model, now: Now, *, seconds: float) -> Known:
    """Return what a prediction for the speed of this moment has to allow for: a run that begins at once.

    Args:
        model: Calibrated on this machine.
        now: What a probe found.
        seconds: How long the real run is; of repeats, all together.
    """
    found, notes = this_variation(partial(host_slowness, model))
    own = found.between(0.0, seconds, now.seconds)
    # A probe without a monitor's error is not known better than that.
    both = replace(own, value=max(own.value, found.soon.value + now.error**2))
    machine = replace(_of(_movable(model), both, found.source(0.0)), probed=True)
    return Known(machine, notes)


def speed_now(model: Model, seconds: float = PROBE_SECONDS) -> Now:
    """Probe this machine, and return how fast it is relative to the exploration of a model.

    What was found goes into the history of the machine.

    Raises:
        UsageError: The model was calibrated on another machine or does not know how fast that was, or other
            programs use the machine now.
    """
    _movable(model)
    explored = explored_machine(model)
    if explored is None or not _same(explored, this_machine()):
        raise UsageError(
            "--machine-speed now: this is not the machine the model predicts for",
            hint="run it there, or give a range such as --machine-speed 0.9..1.1",
        )
    (taken, monitored, probed), reason = watched(lambda: _probed(seconds))
    append(msgspec.structs.replace(taken, disturbed=reason))
    if reason:
        raise UsageError(
            f"--machine-speed now: a probe says nothing about the machine while {reason}",
            hint="stop what else runs and repeat, or give a range such as --machine-speed 0.9..1.1",
        )
    factor = relative_speed(model, taken.monitored, probed.mean, taken.utilization or 0.0)
    if factor is None:
        raise UsageError(
            "--machine-speed now: the model does not know how fast its machine was",
            hint="'mup explore' and 'mup model' find it",
        )
    error = 0.0 if monitored is None else monitored.jump_error / 2
    return Now(factor, error if math.isfinite(error) else 0.0, taken.seconds)


def _probed(seconds: float) -> tuple[SpeedRecord, MonitoredSpeed | None, Speed]:
    """Measure the speed of this machine by both means."""
    probed = probe()
    host = HostCpu()
    with SpeedMonitor() as monitor:
        host.start()
        begin = time.monotonic_ns()
        time.sleep(seconds)
        end = time.monotonic_ns()
        host.stop()
        monitored = monitor.speed(begin, end)
    found = record(
        "probe",
        f"probe-{time.time_ns()}",
        seconds,
        monitored=None if monitored is None else monitored.speed,
        probed=probed.mean,
        utilization=min(1.0, host.utilization),  # it is counted in ticks
        stolen=host.stolen,
    )
    return found, monitored, probed


def relative_speed(model: Model, monitored: float | None, probed: float, utilization: float) -> float | None:
    """Return a speed of the machine relative to that of the calibration; None if not known.

    Both as the speed of a busy machine: what idling adds to work is in the prediction.

    Args:
        model: What was calibrated.
        monitored: Speed by a monitor that ran meanwhile, if one did.
        probed: Speed by probes before and after.
        utilization: Of the machine meanwhile.
    """
    known = model.provenance.get("monitored_speed")
    if is_speed(known) and monitored is not None:
        return float(monitored * host_slowness(model, utilization) / known)
    known = model.provenance.get("speed")
    return float(probed / known) if is_speed(known) else None


def host_slowness(model: Model, utilization: float) -> float:
    """Return how much longer work takes at a utilization of the calibrated machine than if it were busy."""
    machines = [p.slowness(utilization) for p in model.processors if p.name == HOST]
    return machines[0] if machines else 1.0
