"""What a model itself says of the machine it was calibrated on: its processors, which it was, how fast."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

from analyzer.host.names import HOST
from mup.lqn.model import Model

__all__ = ["explored_machine", "is_speed", "measured_processors", "tells_machine"]


def measured_processors(model: Model) -> tuple[str, ...]:
    """Return the processors of a model that stand for the machine of its exploration.

    Besides the host these are the limits of containers on it.
    """
    roots = [p.name for p in model.processors if p.parent is None]
    if HOST not in roots:
        return ()
    limits = {f"{task.name}.cpus" for task in model.tasks}
    return (HOST, *(name for name in roots if name in limits))


def explored_machine(model: Model) -> dict[str, Any] | None:
    """Return what is known of the machine a model predicts for; None if it does not say which it is."""
    provenance = model.provenance
    host = provenance.get("host")
    identity = host.get("identity") if isinstance(host, Mapping) else None
    if isinstance(identity, Mapping):
        return dict(identity)
    if not isinstance(provenance.get("hostname"), str):
        return None
    return {name: provenance[name] for name in ("hostname", "cores") if name in provenance}


def tells_machine(model: Model) -> bool:
    """Whether a model has a processor of a measured machine, and says which machine and how fast it was."""
    speeds = (model.provenance.get("monitored_speed"), model.provenance.get("speed"))
    return (
        bool(measured_processors(model))
        and explored_machine(model) is not None
        and any(map(is_speed, speeds))
    )


def is_speed(value: object) -> TypeGuard[float]:
    """Whether what a model says is a speed."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0
