"""Measured points of a system: from one user to beyond saturation, and with changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from accuracy.system import System
from mup.lqn import Model, Task
from mup.lqn.edits import with_clients
from simulator import simulate
from simulator.studies.saturation import saturation
from simulator.studies.whatif import Change, Scenario, grid

__all__ = ["Point", "choose", "choose_wide"]

MOST_CLIENTS = 64
DATA = (1.5, 2.0)
"""Times as much data as explored."""
OPEN = 0.6
"""Arrivals per second as a share of what fills the system."""
BEYOND = 1.75
"""The highest load, in multiples of the one that fills the system."""


@dataclass(frozen=True, slots=True)
class Point:
    """A load, and what is changed about the deployment.

    Attributes:
        name: Unique in the system; a part of file names.
        clients: Concurrent users; 0 where they come at a rate.
        pools, replicas: Changed numbers by service.
        arrivals: Cycles begun per second, however many are under way; 0 = users are as many as ``clients``.
        data: Times as much data as explored.
    """

    name: str
    clients: int
    pools: dict[str, int]
    replicas: dict[str, int]
    arrivals: float = 0.0
    data: float = 1.0

    @property
    def covered(self) -> bool:
        """Whether a model can be asked about it: what more data costs, none knows."""
        return self.data == 1.0

    def scenario(self, model: Model) -> Scenario:
        """Return this point as a what-if about a model; of more data it knows nothing."""
        load = ("arrivals", self.arrivals) if self.arrivals else ("clients", self.clients)
        changes = [Change(load[0], "", load[1])]
        changes += [Change("pool", name, threads) for name, threads in self.pools.items()]
        changes += [Change("replicas", name, count) for name, count in self.replicas.items()]
        (found,) = grid(model, [(change,) for change in changes])
        return found

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        data: dict[str, Any] = {
            "name": self.name,
            "clients": self.clients,
            "pools": self.pools,
            "replicas": self.replicas,
        }
        if self.arrivals:
            data["arrivals"] = self.arrivals
        if self.data != 1.0:
            data["data"] = self.data
        return data

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Point:
        """Return what `to_json` wrote."""
        more = data.get("arrivals", 0.0), data.get("data", 1.0)
        return cls(data["name"], data["clients"], data["pools"], data["replicas"], *more)

    def __str__(self) -> str:
        changes = [f"pool {n}={v}" for n, v in self.pools.items()]
        changes += [f"replicas {n}={v}" for n, v in self.replicas.items()]
        if self.data != 1.0:
            changes.append(f"{self.data:g} times the data")
        users = "1 client" if self.clients == 1 else f"{self.clients} clients"
        if self.arrivals:
            users = f"{self.arrivals:g} arrivals/s"
        return ", ".join([users, *changes])


def choose(model: Model, *, more_replicas: bool) -> list[Point]:
    """Return the points of a system.

    1 and 2 clients, half of the knee, the knee, 1.75 times that, and the knee with a change: the service
    whose workers are busiest there gets another replica, or twice the workers.

    Args:
        model: The calibrated model; the knee is where it says something is full.
        more_replicas: Which of the two changes.
    """
    loads = _loads(model)
    points = [Point(name, clients, {}, {}) for name, clients in loads.items()]
    busiest = _busiest(model, loads["knee"])
    return [*points, _changed("change", busiest, loads["knee"], more_replicas=more_replicas)]


def choose_wide(model: Model, system: System) -> list[Point]:
    """Return the points of a system of the wide bed.

    1 or 2 clients, a quarter (if that is more) and half of the knee, the knee, 1.75 times that; the knee with
    twice the workers and with one more replica of the service whose workers are busiest; half with more data
    if there is any; and a rate of arrivals for some.
    """
    loads = _loads(model)
    few = "one" if system.seed % 2 else "two"
    names = [few, "half", "knee", "beyond"]
    quarter = round(loads["knee"] / 4)
    if loads[few] < quarter < loads["half"]:
        loads["light"] = quarter
        names.insert(1, "light")
    points = [Point(name, loads[name], {}, {}) for name in names]
    busiest = _busiest(model, loads["knee"])
    points.append(_changed("pool", busiest, loads["knee"], more_replicas=False))
    points.append(_changed("replicas", busiest, loads["knee"], more_replicas=True))
    if system.data:
        points += [Point(f"data-{factor:g}", loads["half"], {}, {}, data=factor) for factor in DATA]
    if system.arrivals:
        points.append(Point("open", 0, {}, {}, arrivals=_rate(model)))
    return points


def _loads(model: Model) -> dict[str, int]:
    """Return numbers of clients by name, the knee where the model says that something is full."""
    knee = saturation(model).load
    full = max(4, min(round(next(iter(knee.values()))), round(MOST_CLIENTS / BEYOND))) if knee else 4
    loads = {"one": 1, "two": 2, "half": max(3, round(full / 2)), "knee": max(4, full)}
    return loads | {"beyond": min(MOST_CLIENTS, max(round(BEYOND * full), loads["knee"] + 2))}


def _rate(model: Model) -> float:
    """Return arrivals per second, with two digits."""
    most = saturation(model).throughput or 10.0
    return float(f"{OPEN * most:.2g}")


def _busiest(model: Model, clients: int) -> Task:
    """Return the service whose workers are busiest under a load."""
    result = simulate(with_clients(model, clients), precision=0.02)
    services = [t for t in model.tasks if t.role == "service"]

    def busy(task: Task) -> float:
        figure = result.tasks[task.name].utilization
        return figure.mean if figure is not None else 0.0

    return max(services, key=busy)


def _changed(name: str, task: Task, clients: int, *, more_replicas: bool) -> Point:
    if more_replicas:
        return Point(name, clients, {}, {task.name: task.replicas + 1})
    return Point(name, clients, {task.name: 2 * int(task.threads)}, {})
