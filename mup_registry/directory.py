"""Who is registered, and who has been silent for too long? The registry's state, without any HTTP.

Times are seconds of a clock that starts with the registry (:class:`ListeningClock`) and always an argument.
Every operation takes time that does not depend on how many replicas there are, except listing them, and a
list is put together once per change.
"""

from __future__ import annotations

import random
import secrets
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Directory", "Instance", "ListeningClock", "Service"]


class ListeningClock:
    """Seconds during which the registry could hear its replicas.

    Stopped, swapped out or starved, a registry hears nobody, and on its return all replicas would seem to
    have been silent for too long. A gap between two readings therefore counts for ``longest`` seconds at
    most; somebody has to read the clock more often than that.
    """

    def __init__(self, longest: float, monotonic: float) -> None:
        self._longest = longest
        self._last = monotonic
        self._time = 0.0

    def read(self, monotonic: float) -> float:
        """Return the time, given what the monotonic clock says."""
        self._time += min(monotonic - self._last, self._longest)
        self._last = monotonic
        return self._time


@dataclass(slots=True, kw_only=True, eq=False)
class Instance:
    """One live replica.

    Attributes:
        id: Chosen by the registry; names the instance in heartbeats.
        service: Name of its service.
        replica: Its number among the replicas of the service, from 0.
        url: Where it listens, e.g. ``http://127.0.0.1:8081``.
        pid: Process id of its front.
        seen: Time of its last sign of life.
    """

    id: str
    service: str
    replica: int
    url: str
    pid: int
    seen: float

    def describe(self) -> dict[str, Any]:
        """Return what clients are told."""
        return {
            "id": self.id,
            "service": self.service,
            "replica": self.replica,
            "url": self.url,
            "pid": self.pid,
        }


@dataclass(slots=True)
class Service:
    """A service that was registered at some time.

    Attributes:
        endpoints: Path of each endpoint name, as the newest instance has them.
        instances: The live ones by id.
        version: Changes with everything else here.
    """

    endpoints: dict[str, str] = field(default_factory=dict)
    instances: dict[str, Instance] = field(default_factory=dict)
    version: int = 0
    _live: list[Instance] = field(default_factory=list)
    _listed: int = -1

    def live(self) -> list[Instance]:
        """Return the live instances by replica."""
        if self._listed != self.version:
            self._live = sorted(self.instances.values(), key=lambda instance: instance.replica)
            self._listed = self.version
        return self._live


@dataclass(slots=True)
class Directory:
    """Live instances by service, and databases by name.

    Attributes:
        expiry: Seconds without a heartbeat after which an instance is gone.
        databases: URI of each database, its name inside the server included, without credentials.
        services: The ones that were ever registered, by name.
        run: Tells this registry from one before or after it.
    """

    expiry: float
    databases: dict[str, str] = field(default_factory=dict)
    services: dict[str, Service] = field(default_factory=dict)
    run: str = field(default_factory=lambda: secrets.token_hex(4))
    # Invariant: ordered by `seen`, so that whoever has expired is at the front.
    _instances: OrderedDict[str, Instance] = field(default_factory=OrderedDict)
    _by_url: dict[str, Instance] = field(default_factory=dict)

    def register(
        self, *, service: str, replica: int, url: str, pid: int, endpoints: Mapping[str, str], now: float
    ) -> Instance:
        """Add an instance; another one at the same address is replaced: it must be dead."""
        if (other := self._by_url.get(url)) is not None:
            self._remove(other)
        instance = Instance(
            id=secrets.token_hex(8), service=service, replica=replica, url=url, pid=pid, seen=now
        )
        self._instances[instance.id] = instance
        self._by_url[url] = instance
        known = self.services.setdefault(service, Service())
        known.instances[instance.id] = instance
        known.endpoints = dict(endpoints)
        known.version += 1
        return instance

    def heartbeat(self, instance: str, now: float) -> bool:
        """Note a sign of life; False = this instance is not (or no longer) known."""
        self._expire(now)
        known = self._instances.get(instance)
        if known is None:
            return False
        known.seen = now
        self._instances.move_to_end(instance)
        return True

    def deregister(self, instance: str) -> bool:
        """Remove an instance; False = it was not known."""
        known = self._instances.get(instance)
        if known is not None:
            self._remove(known)
        return known is not None

    def service(self, name: str, now: float) -> Service | None:
        """Return a service with its instances that are alive; None = it was never registered."""
        self._expire(now)
        return self.services.get(name)

    def replicas(self, service: str, now: float) -> list[Instance] | None:
        """Return the live instances of a service, by replica; None = no such service was ever registered."""
        known = self.service(service, now)
        return None if known is None else known.live()

    def live(self, now: float) -> dict[str, list[Instance]]:
        """Return the live instances of every service that was ever registered."""
        self._expire(now)
        return {name: self.services[name].live() for name in sorted(self.services)}

    def resolve(self, service: str, now: float) -> Instance | None:
        """Return a live instance of a service, uniformly at random; None = there is none."""
        live = self.replicas(service, now)
        return random.choice(live) if live else None

    def learning(self, now: float) -> bool:
        """Whether replicas that live may not have had the time to tell a registry that has just started."""
        return now < self.expiry

    def _expire(self, now: float) -> None:
        while self._instances:
            oldest = next(iter(self._instances.values()))
            if now - oldest.seen <= self.expiry:
                return
            self._remove(oldest)

    def _remove(self, instance: Instance) -> None:
        del self._instances[instance.id]
        del self._by_url[instance.url]
        service = self.services[instance.service]
        del service.instances[instance.id]
        service.version += 1
