"""Limits of memory, checked before a model uses any of it."""

from __future__ import annotations

import math
from typing import Final

from mup.errors import ModelError
from mup.lqn.model import Model

__all__ = ["MAX_CLIENTS", "MAX_CORES", "MAX_REPLICAS", "MAX_SEATS", "check_size"]

MAX_CLIENTS: Final = 5_000_000
"""A client takes about 300 bytes."""
MAX_REPLICAS: Final = 100_000
"""Of all tasks together."""
MAX_CORES: Final = 100_000
"""Of a processor whose threads stick to cores; others may have any number."""


MAX_SEATS: Final = 1_000_000
"""Threads that stick to cores, or sleep one by one, of all tasks together."""


def check_size(model: Model) -> None:
    """Refuse what would need more memory than machines have.

    Raises:
        ModelError: Naming the element and the limit.
    """
    clients = [t for t in model.reference_tasks if not t.is_open]
    _check(sum(t.threads for t in clients), MAX_CLIENTS, "clients", [(t.threads, t.name) for t in clients])
    others = [t for t in model.tasks if not t.is_reference]
    _check(sum(t.replicas for t in others), MAX_REPLICAS, "replicas", [(t.replicas, t.name) for t in others])
    own = [
        (t.threads * t.replicas, t.name)
        for t in others
        if t.setup is not None and t.setup.by_thread and t.threads < math.inf
    ]
    _check(sum(n for n, _ in own), MAX_SEATS, "threads that sleep one by one", own)
    sticky = {p.name for p in model.processors if p.discipline == "cores"}
    seats = [
        (t.threads * t.replicas, t.name) for t in others if t.processor in sticky and t.threads < math.inf
    ]
    _check(sum(n for n, _ in seats), MAX_SEATS, "threads that stick to cores", seats)
    for processor in model.processors:
        if (processor.name in sticky or processor.parent in sticky) and processor.cores > MAX_CORES:
            raise ModelError(
                f"{processor.cores:.0f} cores that threads stick to are too many to simulate; the limit is "
                f"{MAX_CORES}",
                where=f"processors[{processor.name!r}].cores",
                hint="a ps processor may have any number of cores",
            )
        sleeping = any(t.setup is not None for t in model.tasks)
        if sleeping and MAX_CORES < processor.cores < math.inf and processor.discipline != "infinite":
            raise ModelError(
                f"{processor.cores:.0f} cores are too many to follow their sleep; the limit is {MAX_CORES}",
                where=f"processors[{processor.name!r}].cores",
                hint="an infinite processor has a core for every thread",
            )


def _check(total: float, limit: int, what: str, parts: list[tuple[float, str]]) -> None:
    if total > limit:
        most, name = max(parts)
        raise ModelError(
            f"{most:.0f} {what} are too many to simulate; the limit is {limit} in all",
            where=f"tasks[{name!r}]",
            hint="a smaller model with the same ratios has nearly the same figures",
        )
