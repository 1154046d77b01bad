"""Predictions corrected for the speed the machine had while a step was run.

Virtual machines change their speed by a third within minutes. The speed during a run is known from the
monitor that runs beside it, as it did beside the exploration, so the step is predicted once more for a
machine of that speed. Nothing else of the run is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analyzer.validation import SAME_SPEED, relative_speed, watched
from case_studies.scaling import scaled
from mup.lqn import Model
from mup.lqn.edits import with_clients, with_faster_machines, with_pool, with_replicas
from simulator.studies.autoscale import most_utilized
from simulator.studies.rehearsal import rehearse

__all__ = ["corrected_step"]


def corrected_step(
    model: Model, settings: Mapping[str, Any], step: Mapping[str, Any], record: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return a step as predicted for the machine of its real run.

    Args:
        model: What was calibrated.
        settings: ``think_scale`` and ``precision`` of the first prediction.
        step: As predicted first.
        record: Its real run.

    Returns:
        ``speed``, relative to the exploration, and the ``step``; None if a speed is not known.
    """
    disturbance = record["disturbance"]
    speed = relative_speed(model, disturbance["monitored"], disturbance["speed"], record["host"])
    if speed is None:
        return None
    if abs(speed - 1) <= SAME_SPEED:
        return {"speed": speed, "step": dict(step)}
    deployed = with_faster_machines(_deployed(model, settings["think_scale"], step), speed)
    seen = rehearse(deployed, seconds=step["seconds"], warmup=step["warmup"], precision=settings["precision"])
    shares = {name: figure.mean for name, figure in seen.utilization.items() if name in step["pools"]}
    bottleneck = most_utilized(deployed, shares)
    return {"speed": speed, "step": {**step, "bottleneck": bottleneck, **seen.to_json()}}


def _deployed(model: Model, think_scale: float, step: Mapping[str, Any]) -> Model:
    """Return the model with the clients, pools and replicas of a step."""
    model = with_clients(scaled(watched(model), think_scale), step["clients"])
    for name, pool in step["pools"].items():
        model = with_replicas(with_pool(model, name, pool), name, step["replicas"][name])
    return model
