"""Place a model on another machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from analyzer.host.profile import HostProfile
from mup.errors import UsageError
from mup.lqn.model import Model

__all__ = ["on_host", "relative_speed"]


def on_host(model: Model, profile: HostProfile, processor: str = "host") -> Model:
    """Return the model with a processor replaced by a machine: its cores, its scheduler, its speed.

    Demands were calibrated at ``model.provenance["speed"]`` units of reference work per second; a machine of
    another speed takes proportionally less or more. Where one of the two speeds is unknown, the machine is
    taken to be as fast as the processor it replaces.

    Args:
        model: Calibrated.
        profile: The machine.
        processor: Which processor of the model becomes that machine.

    Raises:
        ModelError: The model has no such processor.
        UsageError: The processor is a part of another one, or the model's speed is not a number.
    """
    before = model.processor(processor)
    if before.parent is not None:
        raise UsageError(
            f"processor {processor!r} is a part of {before.parent!r}",
            hint="put that one on the other machine",
        )
    speed = relative_speed(model.provenance, profile.mean_speed)
    after = replace(profile.processor(processor), speed=before.speed if speed is None else speed)
    provenance = {**model.provenance, "host": profile.to_json(), "speed_factor": after.speed}
    return replace(model.with_processor(after), provenance=provenance)


def relative_speed(provenance: Mapping[str, Any], there: float | None) -> float | None:
    """Return how fast a machine is in units of the speed a model was calibrated at; None if unknown.

    Args:
        provenance: Of the model.
        there: Units of reference work per second on the machine; None if unknown.

    Raises:
        UsageError: The model's speed is not a number.
    """
    calibrated = _calibrated_speed(provenance)
    return there / calibrated if calibrated and there else None


def _calibrated_speed(provenance: Mapping[str, Any]) -> float | None:
    speed = provenance.get("speed")
    if isinstance(speed, Mapping):
        speed = speed.get("mean")
    if speed is None:
        return None
    if isinstance(speed, bool) or not isinstance(speed, int | float) or not 0 < speed < float("inf"):
        raise UsageError(f"must be units per second, got {speed!r}", where="provenance.speed")
    return float(speed)
