"""How is a point measured, once? Fresh services, a window, and everything that helps to explain an error."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from accuracy.deploy import circumstances, deployable
from accuracy.observed import entry_figures, summary
from accuracy.points import Point
from accuracy.store import SystemFolder
from mup.workload.measure import Measurement, measure_load
from mup.workload.result import LoadResult
from mup.workload.speed import Bracket, probe

__all__ = ["Window", "measure"]

FOREIGN_LIMIT = 0.02
FEWEST_BATCHES, MOST_BATCHES = 5, 10


@dataclass(frozen=True, slots=True)
class Window:
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
    with deployable(folder) as project, tempfile.TemporaryDirectory(prefix="mup-accuracy-") as logs:
        before = probe()
        measurement = measure_load(
            project,
            clients=point.clients,
            duration=duration,
            warmup=warmup,
            pools=point.pools,
            replicas=point.replicas,
            seed=seed,
            log_dir=Path(logs),
        )
        bracket = Bracket(before, probe())
        (result,) = measurement.results
        entries = entry_figures(Path(logs), result.start_ns, result.end_ns)
    return {
        "point": point.to_json(),
        "repeat": number,
        "void": _void(measurement, bracket),
        "created": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "circumstances": circumstances(),
        "warmup": warmup,
        "seed": seed,
        "speed": bracket.speed,
        "jump": bracket.jump,
        "probes": [bracket.before.to_json(), bracket.after.to_json()],
        "measurement": measurement.to_json(),
        "think": _think(result),
        "batches": _batches(result),
        "endpoints": {
            name: {"count": e.count, "mean_seconds": e.mean_seconds, "errors": e.errors}
            for name, e in result.endpoints.items()
        },
        "entries": entries,
        "response_us": [round(1e6 * r) for r in result.response_times],
    }


def _void(measurement: Measurement, bracket: Bracket) -> str:
    """Return why a repeat says nothing, or ""."""
    if not bracket.steady:
        return f"the machine's speed changed by {bracket.jump:.1%}"
    if measurement.cpu.foreign > FOREIGN_LIMIT:
        return f"others used {measurement.cpu.foreign:.1%} of the machine"
    if measurement.failed_share > 0:
        return f"{measurement.errors} cycles failed: {measurement.first_error}"
    return ""


def _think(result: LoadResult) -> dict[str, Any]:
    """Return realised think time per cycle, and by how much timers were late."""
    return {
        "per_cycle": float(np.mean([c.think for c in result.cycles])) if result.cycles else 0.0,
        "late": summary(np.array(result.think_lateness)),
    }


def _batches(result: LoadResult) -> list[float]:
    """Return mean response times of equal spans of the window, of the cycles that began in them."""
    count = max(FEWEST_BATCHES, min(MOST_BATCHES, int(result.window_seconds)))
    starts = np.array([c.start_ns for c in result.cycles], dtype=np.float64)
    spans = ((starts - result.start_ns) / (result.end_ns - result.start_ns) * count).astype(int)
    values = np.array(result.response_times)
    return [float(values[spans == k].mean()) for k in range(count) if (spans == k).any()]
