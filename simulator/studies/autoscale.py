"""Autoscaler: pools or replicas that are doubled as users come, and the effect.

The study of thesis section 5.4: whenever the most utilized service is a bottleneck (a utilization of at least
85 %), its threads per replica (vertical) or its replicas (horizontal) are doubled; else the clients are. It
ends with the last number of clients, or at a bottleneck no service can be scaled beyond: a processor, or a
database with a limited number of threads.

One thing is ours: of services that are equally utilized, the one the others wait for counts. Threads that
wait for a full service are all held, too, and more of them would be held as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from mup.errors import UsageError
from mup.lqn.edits import with_clients, with_pool, with_replicas
from mup.lqn.model import Model
from mup.lqn.refs import ResourceRef
from simulator.studies.rehearsal import Rehearsal
from simulator.studies.whatif import causes

__all__ = [
    "BOTTLENECK",
    "MAX_CLIENTS",
    "Observe",
    "Scaling",
    "Settings",
    "Step",
    "autoscale",
    "most_utilized",
]

BOTTLENECK: Final = 0.85
MAX_CLIENTS: Final = 512
EQUAL: Final = 0.01
"""Utilizations that differ by a smaller share are those of equally utilized services."""

Scaling = Literal["none", "vertical", "horizontal"]
"""What is doubled for a bottleneck: nothing, threads per replica, or replicas."""

Observe = Callable[[Model], Rehearsal]
"""Predicts what a run of a deployment shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Of a study.

    Attributes:
        scaling: What the autoscaler doubles; ``none``: it only looks on while clients come.
        threshold: Utilization from which on something is a bottleneck.
        clients: At the beginning.
        max_clients: At the end.

    Raises:
        UsageError: A value is out of range.
    """

    scaling: Scaling = "vertical"
    threshold: float = BOTTLENECK
    clients: int = 1
    max_clients: int = MAX_CLIENTS

    def __post_init__(self) -> None:
        if not 0 < self.threshold < 1:
            raise UsageError(f"the threshold must be between 0 and 1, got {self.threshold!r}")
        if not 1 <= self.clients <= self.max_clients:
            raise UsageError(
                f"a study begins with 1 to {self.max_clients} clients (as many as it ends with), "
                f"got {self.clients!r}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One deployment under one load.

    Attributes:
        number: From 1.
        model: The model of it, clients included.
        clients: How many there are.
        seen: What a run of it shows.
        bottleneck: The most utilized service, whether that is much or little; of several that are equally
            utilized, one that waits for none of the others.
        shifted: It is another one than in the step before.
        action: What the autoscaler does next, in words; in the last step why it does nothing.
    """

    number: int
    model: Model
    clients: int
    seen: Rehearsal
    bottleneck: str
    shifted: bool
    action: str

    @property
    def pools(self) -> dict[str, int]:
        """Threads per replica of every service that can be full."""
        return {name: int(self.model.task(name).threads) for name in _services(self.model, self.seen)}

    @property
    def replicas(self) -> dict[str, int]:
        """Replicas of the same services."""
        return {name: self.model.task(name).replicas for name in _services(self.model, self.seen)}

    def to_json(self) -> dict[str, Any]:
        """Return the step without its model."""
        return {
            "step": self.number,
            "clients": self.clients,
            "pools": self.pools,
            "replicas": self.replicas,
            "bottleneck": self.bottleneck,
            "shifted": self.shifted,
            "action": self.action,
            **self.seen.to_json(),
        }


def autoscale(model: Model, settings: Settings, observe: Observe) -> Iterator[Step]:
    """Let an autoscaler look after a system while its clients double.

    Args:
        model: As deployed at the beginning.
        settings: Of the study.
        observe: Predicts a step, for example ``simulator.studies.rehearsal.rehearse``.

    Yields:
        The steps, each as soon as it is known.

    Raises:
        UsageError: No service of the model has a finite number of threads, or clients cannot be doubled.
    """
    now, clients = with_clients(model, settings.clients), settings.clients
    number, last = 1, ""
    while True:
        seen = observe(now)
        shares = _services(now, seen)
        if not shares:
            raise UsageError("no service has a finite number of threads: there is nothing to scale")
        bottleneck = most_utilized(now, shares)
        action, then, clients_then = _decide(now, clients, seen, bottleneck, settings)
        yield Step(
            number=number,
            model=now,
            clients=clients,
            seen=seen,
            bottleneck=bottleneck,
            shifted=bool(last) and bottleneck != last,
            action=action,
        )
        if then is None:
            return
        now, clients = then, clients_then
        number, last = number + 1, bottleneck


def most_utilized(model: Model, utilization: Mapping[str, float]) -> str:
    """Return the most utilized service; of equally utilized ones, one that waits for none of the others.

    Args:
        model: What it is a service of.
        utilization: Of at least one service.
    """
    top = max(utilization.values())
    equal = {ResourceRef("task", name) for name, share in utilization.items() if share >= (1 - EQUAL) * top}
    found = [ref.name for ref in causes(model, equal)]
    return max(found, key=lambda name: utilization[name])


def _services(model: Model, seen: Rehearsal) -> dict[str, float]:
    """Return the utilization of the services that can be full."""
    return {name: f.mean for name, f in seen.utilization.items() if model.task(name).role == "service"}


def _fixed(model: Model, seen: Rehearsal) -> dict[str, float]:
    """Return the utilization of everything else that can be full."""
    services = _services(model, seen)
    tasks = {f"{model.task(n).role} {n}": f.mean for n, f in seen.utilization.items() if n not in services}
    return {f"processor {name}": f.mean for name, f in seen.processors.items()} | tasks


def _decide(
    now: Model, clients: int, seen: Rehearsal, bottleneck: str, settings: Settings
) -> tuple[str, Model | None, int]:
    """Return what to do next, in words and as a model; None if that is nothing."""
    if settings.scaling != "none":
        fixed = _fixed(now, seen)
        full = max(fixed, key=lambda name: fixed[name], default="")
        if full and fixed[full] >= settings.threshold:
            return f"stop: {full} is the bottleneck", None, clients
        if seen.utilization[bottleneck].mean >= settings.threshold:
            task = now.task(bottleneck)
            if settings.scaling == "vertical":
                pool = 2 * int(task.threads)
                return f"pool of {bottleneck} to {pool}", with_pool(now, bottleneck, pool), clients
            replicas = 2 * task.replicas
            return (
                f"replicas of {bottleneck} to {replicas}",
                with_replicas(now, bottleneck, replicas),
                clients,
            )
    if clients >= settings.max_clients:
        return f"stop: {clients} clients", None, clients
    more = min(2 * clients, settings.max_clients)
    return f"clients to {more}", with_clients(now, more), more
