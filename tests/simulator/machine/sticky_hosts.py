"""Models whose host has threads that stick to their cores."""

from __future__ import annotations

import random
from dataclasses import replace

from mup.lqn import Migration, Model, Processor

__all__ = ["host", "part", "with_sticky_host"]


def host(cores: int, migration: Migration | None = None) -> Processor:
    return Processor(name="host", cores=cores, discipline="cores", migration=migration)


def part(name: str, cores: int = 1, core: int | None = None) -> Processor:
    return Processor(name=f"{name}.core", cores=cores, parent="host", core=core)


def with_sticky_host(model: Model, rng: random.Random) -> Model | None:
    """Return the model with sticky cores under all that can be parts of them; None if no task works in one."""
    if any(e.arrivals is not None for t in model.tasks for e in t.entries):
        return None  # they might be too few for what arrives
    cores = rng.choice((1, 2, 3, 4))
    moves = [rng.choice((0.0, 0.5, 1.0)), rng.choice((0.0, 0.5, 1.0)), rng.choice((0.0, 4.0, 50.0))]
    migration = None if rng.random() < 0.2 else Migration(wake=moves[0], steal=moves[1], balance=moves[2])
    speed = next((p.speed for p in model.processors if p.name == "host"), rng.choice((0.5, 1.0)))
    parts = []
    for part in model.processors:
        if part.name == "host":
            continue
        if part.discipline in ("ps", "fcfs") and part.parent in (None, "host"):
            own, core = rng.choice((1, 1, 2, 3)), rng.choice((None, rng.randrange(5)))
            parents = [p.name for p in parts if p.parent == "host"]
            if parents and rng.random() < 0.4:
                parts.append(replace(part, parent=rng.choice(parents), cores=own))
            else:
                parts.append(replace(part, parent="host", cores=own, core=core))
        else:
            parts.append(part)
    inside = {p.name for p in parts if p.parent is not None}
    if not any(t.processor in inside for t in model.tasks):
        return None
    tasks = tuple(
        replace(t, processor="host") if t.processor not in inside and rng.random() < 0.5 else t
        for t in model.tasks
    )
    whole = replace(host(cores, migration), speed=speed)
    return replace(model, processors=(whole, *parts), tasks=tasks)
