"""At which loads is a system measured? From one user to beyond saturation, and one changed deployment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mup.lqn import Model
from mup.lqn.edits import with_clients
from simulator import simulate
from simulator.studies.saturation import saturation
from simulator.studies.whatif import Change, Scenario, grid

__all__ = ["Point", "choose"]

MOST_CLIENTS = 64
BEYOND = 1.75
"""The highest load, in multiples of the one that fills the system."""


@dataclass(frozen=True, slots=True)
class Point:
    """A load, and what is changed about the deployment.

    Attributes:
        name: Unique in the system; a part of file names.
        clients: Concurrent users.
        pools, replicas: Changed numbers by service.
    """

    name: str
    clients: int
    pools: dict[str, int]
    replicas: dict[str, int]

    def scenario(self, model: Model) -> Scenario:
        """Return this point as a what-if about a model."""
        changes = [Change("clients", "", self.clients)]
        changes += [Change("pool", name, threads) for name, threads in self.pools.items()]
        changes += [Change("replicas", name, count) for name, count in self.replicas.items()]
        (found,) = grid(model, [(change,) for change in changes])
        return found

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "name": self.name,
            "clients": self.clients,
            "pools": self.pools,
            "replicas": self.replicas,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Point:
        """Return what `to_json` wrote."""
        return cls(data["name"], data["clients"], data["pools"], data["replicas"])

    def __str__(self) -> str:
        changes = [f"pool {n}={v}" for n, v in self.pools.items()]
        changes += [f"replicas {n}={v}" for n, v in self.replicas.items()]
        users = "1 client" if self.clients == 1 else f"{self.clients} clients"
        return ", ".join([users, *changes])


def choose(model: Model, *, more_replicas: bool) -> list[Point]:
    """Return the points of a system.

    1 and 2 clients, half of the knee, the knee, 1.75 times that, and the knee with a change: the service
    whose workers are busiest there gets another replica, or twice the workers.

    Args:
        model: The calibrated model; the knee is where it says something is full.
        more_replicas: Which of the two changes.
    """
    knee = saturation(model).load
    full = max(4, min(round(next(iter(knee.values()))), round(MOST_CLIENTS / BEYOND))) if knee else 4
    loads = {"one": 1, "two": 2, "half": max(3, round(full / 2)), "knee": max(4, full)}
    loads["beyond"] = min(MOST_CLIENTS, max(round(BEYOND * full), loads["knee"] + 2))
    points = [Point(name, clients, {}, {}) for name, clients in loads.items()]
    return [*points, _changed(model, loads["knee"], more_replicas=more_replicas)]


def _changed(model: Model, clients: int, *, more_replicas: bool) -> Point:
    result = simulate(with_clients(model, clients), precision=0.02)
    services = [t for t in model.tasks if t.role == "service"]

    def busy(name: str) -> float:
        figure = result.tasks[name].utilization
        return figure.mean if figure is not None else 0.0

    task = max(services, key=lambda t: busy(t.name))
    if more_replicas:
        return Point("change", clients, {}, {task.name: task.replicas + 1})
    return Point("change", clients, {task.name: 2 * int(task.threads)}, {})
