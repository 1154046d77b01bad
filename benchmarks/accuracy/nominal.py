"""Nominal utilization of a system: means per cycle, enough to aim a generated system.

Deliberately crude: parallel branches end together with the longest mean, framework work is a guess. Nothing
that is reported depends on it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from accuracy.system import Ask, Burn, Cached, CallTo, Choice, Fan, Pause, Scan, Step, System

__all__ = ["CORES", "Nominal", "nominal"]

CORES = 2
CALL_MS = 0.7
"""Guess at the CPU time of everything between a caller and the endpoint it calls."""
QUERY_MS = 0.9


@dataclass(frozen=True, slots=True)
class Nominal:
    """Per cycle, in nominal ms.

    Attributes:
        cpu: Of the host.
        response: Of one user alone.
        held: How long each service's workers are held, all together.
        work: CPU of endpoints alone.
        used: The same by service.
    """

    cpu: float
    response: float
    held: dict[str, float]
    work: float
    used: dict[str, float]

    def fullest_pool(self, system: System) -> float:
        """Return the longest time per cycle that a worker is held."""
        return max(self.held[s.name] / (s.pool * s.replicas) for s in system.services)


class _Walk:
    def __init__(self, system: System) -> None:
        self.system = system
        self.cpu = self.work = 0.0
        self.held: dict[str, float] = defaultdict(float)
        self.used: dict[str, float] = defaultdict(float)
        self.inside: list[str] = []

    def steps(self, steps: Sequence[Step], weight: float) -> float:
        """Add up steps that run ``weight`` times per cycle; return how long they take."""
        return sum(self.step(step, weight) for step in steps)

    def step(self, step: Step, weight: float) -> float:
        match step:
            case Burn(ms=ms) | Scan(ms=ms):
                self.cpu += weight * ms
                self.work += weight * ms
                self.used[self.inside[-1]] += weight * ms
                return ms
            case Pause(ms=ms):
                return ms
            case Ask(operations=operations, meanwhile=meanwhile):
                times = [self.operation(o, weight) for o in operations]
                return max([*times, self.step(meanwhile, weight) if meanwhile else 0.0])
            case Fan(call=call, limit=limit):
                width = sum(self.system.widths or (0, 0)) / 2
                one = self.operation(call, weight * width)
                # Callees of one request share the cores, and no more than the limit run at once.
                return one * max(1.0, width / min(limit or CORES, CORES))
            case Choice(probability=p, then=then, otherwise=otherwise):
                return p * self.steps(then, weight * p) + (1 - p) * self.steps(otherwise, weight * (1 - p))
            case Cached(hits=p, hit=hit, miss=miss):
                return p * self.steps(hit, weight * p) + (1 - p) * self.steps(miss, weight * (1 - p))
        raise TypeError(step)

    def operation(self, operation: object, weight: float) -> float:
        if not isinstance(operation, CallTo):
            self.cpu += weight * QUERY_MS
            return QUERY_MS
        self.cpu += weight * CALL_MS
        endpoint = self.system.endpoint(operation)
        self.inside.append(operation.service)
        response = self.steps(endpoint.steps, weight)
        after = self.step(endpoint.after, weight) if endpoint.after else 0.0
        self.inside.pop()
        self.held[operation.service] += weight * (response + after)
        return response + CALL_MS


def nominal(system: System) -> Nominal:
    """Return the means of one cycle."""
    walk = _Walk(system)
    share = system.other.share if system.other else 0.0
    response = (1 - share) * walk.steps(system.scenario, 1.0 - share)
    if system.other is not None:
        response += share * walk.steps(system.other.scenario, share)
    held = {s.name: walk.held[s.name] for s in system.services}
    used = {s.name: walk.used[s.name] for s in system.services}
    return Nominal(cpu=walk.cpu, response=response, held=held, work=walk.work, used=used)
