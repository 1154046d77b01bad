"""Servers that represent the processors of a model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from mup.lqn.lowered import is_limited, speeds_of, wholes
from mup.lqn.model import Migration, Model, Processor
from simulator.program.instructions import FCFS, PREEMPTIVE, SHARED, STICKY
from simulator.program.tables import ServerSpec, TaskSpec

__all__ = ["servers_of", "with_seats"]


def servers_of(model: Model) -> list[ServerSpec]:
    """Return the processors that can be waited for, parents before their children."""
    named = {p.name: p for p in model.processors}
    parents = wholes(model)

    def depth(name: str) -> int:
        parent = named[name].parent
        return 0 if parent is None else 1 + depth(parent)

    finite = [p for p in model.processors if p.name in parents or p.parent is not None or is_limited(p)]
    finite.sort(key=lambda p: depth(p.name))
    speeds = speeds_of(model)
    kinds = {"fcfs": FCFS, "hol": FCFS, "ps": SHARED, "infinite": SHARED, "pp": PREEMPTIVE, "cores": STICKY}
    index: dict[str, int] = {}
    result: list[ServerSpec] = []
    for p in finite:
        index[p.name] = len(result)
        copies = 1 if p.name in parents else _copies(model, p)
        spec = ServerSpec(
            name=p.name,
            cores=math.inf if p.discipline == "infinite" else p.cores / copies,
            speed=p.speed,
            kind=kinds[p.discipline],
            by_priority=p.discipline == "hol",
            parent=-1 if p.parent is None else index[p.parent],
            nested=p.parent is not None or p.name in parents,
            pace=speeds[p.name],
            migration=p.migration or Migration(),
            turns=p.turns,
            background=p.background,
            copies=copies,
        )
        result += [replace(spec, copy=number) for number in range(copies)]
    return result


def _copies(model: Model, processor: Processor) -> int:
    """Return how many servers a processor is: one for each replica where these have cores of their own."""
    users = [t for t in model.tasks if t.processor == processor.name]
    if processor.parent is None or len(users) != 1 or users[0].is_reference:
        return 1
    return users[0].replicas if processor.cores % users[0].replicas == 0 else 1


def with_seats(
    model: Model, servers: Sequence[ServerSpec], tasks: Sequence[TaskSpec]
) -> tuple[ServerSpec, ...]:
    """Return the servers, parts of STICKY ones with the cores their seats begin on.

    The seats of parts that are pinned nowhere are counted on behind the threads of tasks.
    """
    taken = [0] * len(servers)
    for task in tasks:
        for server, count in task.seated:
            taken[server] += task.replicas * count
    result = []
    for spec in servers:
        if spec.parent < 0 or servers[spec.parent].kind != STICKY:
            result.append(spec)
            continue
        cores, count = int(servers[spec.parent].cores), int(spec.cores)
        first = model.processor(spec.name).core
        begin = taken[spec.parent] if first is None else first + spec.copy * count
        if first is None:
            taken[spec.parent] += count
        seats = tuple((begin + k) % cores for k in range(count))
        result.append(replace(spec, seats=seats, pinned=first is not None))
    return tuple(result)
