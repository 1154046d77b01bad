"""Measure a point once: fresh services, a window, and all that helps to explain an error."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from accuracy.deploy import circumstances, deployable
from accuracy.observed import entry_figures
from accuracy.points import Point
from accuracy.store import SystemFolder
from mup.workload.arrivals import Arrivals
from mup.workload.measure import Measurement, measure_load

__all__ = ["WindowLength", "measure"]

FAILED_LIMIT = 0.001
"""Share of failed cycles from which on a repeat says nothing."""


@dataclass(frozen=True, slots=True)
class WindowLength:
    """How long one repeat takes.

    Attributes:
        shortest, longest: Limits of the observed seconds.
        cycles: What a window between the two should see.
    """

    shortest: float = 6.0
    longest: float = 20.0
    cycles: int = 200

    def seconds(self, throughput: float) -> float:
        """Return the length of the window for an expected throughput."""
        return round(min(max(self.cycles / throughput, self.shortest), self.longest), 1)

    def warmup(self, cycle_seconds: float) -> float:
        """Return the length of the warm-up for an expected cycle time."""
        return round(min(max(2.0, 3 * cycle_seconds), 6.0), 1)


def measure(
    folder: SystemFolder, point: Point, number: int, *, duration: float, warmup: float
) -> dict[str, Any]:
    """Run one repeat of a point and return its record."""
    seed = 1000 * number + point.clients
    began = time.monotonic()
    with (
        deployable(folder, point.data) as project,
        tempfile.TemporaryDirectory(prefix="mup-accuracy-") as logs,
    ):
        measurement = measure_load(
            project,
            clients=point.clients,
            duration=duration,
            warmup=warmup,
            pools=point.pools,
            replicas=point.replicas,
            seed=seed,
            log_dir=Path(logs),
            arrivals=Arrivals(rate=point.arrivals) if point.arrivals else None,
        )
        (result,) = measurement.results
        entries = entry_figures(Path(logs), result.start_ns, result.end_ns)
    return {
        "point": point.to_json(),
        "repeat": number,
        "void": _void(measurement),
        "created": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "circumstances": circumstances(),
        "warmup": warmup,
        "seed": seed,
        "took": time.monotonic() - began,
        "speed": measurement.speed.speed,
        "jump": measurement.speed.jump,
        "monitored": measurement.monitored_speed,
        "measurement": measurement.to_json(),
        "think": fmean(c.think for c in result.cycles) if result.cycles else 0.0,
        "entries": entries,
        # Microseconds since the window opened, and of each cycle: what intervals are made of later.
        "window_us": round((result.end_ns - result.start_ns) / 1000),
        "starts_us": [round((c.intended_ns - result.start_ns) / 1000) for c in result.cycles],
        "responses_us": [round(1e6 * c.response) for c in result.cycles],
        "ends_us": [round((end - result.start_ns) / 1000) for end in result.completions],
    }


def _void(measurement: Measurement) -> str:
    """Return why a repeat says nothing, or ""."""
    if measurement.failed_share > FAILED_LIMIT:
        return f"{measurement.errors} cycles failed: {measurement.first_error}"
    return measurement.void
