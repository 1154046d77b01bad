"""Result of a real run of one step, and how quiet the machine was meanwhile."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from statistics import fmean
from typing import Any

from accuracy.deploy import circumstances

from mup.project import Project
from mup.workload.measure import measure_load
from mup.workload.measurement import Measurement

__all__ = ["measure_step"]


def measure_step(
    project: Project, step: Mapping[str, Any], *, think_scale: float, retries: int
) -> dict[str, Any]:
    """Run one step for real, with its load, pools, replicas, warm-up and window.

    Args:
        project: With its database, on free ports.
        step: As `simulator.studies.autoscale.Step.to_json` describes it.
        think_scale: Factor on all think times.
        retries: How often a void run is done again.

    Returns:
        The record that is stored; if all runs are void, the figures of these.
    """
    before = os.getloadavg()[0]
    found = measure_load(
        project,
        clients=step["clients"],
        duration=step["seconds"],
        warmup=step["warmup"],
        pools=step["pools"],
        replicas=step["replicas"],
        seed=step["step"],
        think_scale=think_scale,
        retries=retries,
    )
    cycles = [cycle for result in found.results for cycle in result.cycles]
    return {
        "step": step["step"],
        "created": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "circumstances": circumstances(),
        "runs": len(found.runs),
        "cycles": len(cycles),
        "failed": found.errors,
        "first_error": found.first_error,
        "response_time": {"mean": found.response_time.mean, "ci95": found.response_time.ci95},
        "think": fmean(cycle.think for cycle in cycles) if cycles else None,
        "throughput": {"mean": found.throughput.mean, "ci95": found.throughput.ci95},
        "utilization": dict(found.utilization),
        "host": found.cpu.host_utilization,
        "disturbance": {**_disturbance(found), "load_before": before},
        "warnings": list(found.warnings),
    }


def _disturbance(found: Measurement) -> dict[str, Any]:
    """Return what the probes, the monitor and the clocks of the machine say about the run."""
    return {
        "void": found.void or None,
        "stolen": found.cpu.stolen,
        "foreign": found.cpu.foreign,
        "speed": found.speed.speed,
        "jump": found.speed.jump,
        "monitored": found.monitored_speed,
        "think_lateness": found.think_lateness,
        "client": found.cpu.client_utilization,
    }
