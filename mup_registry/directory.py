"""Who is registered, and who has been silent for too long? The registry's state, without any HTTP.

Times are seconds of the monotonic clock and always an argument.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Directory", "Instance"]


@dataclass(slots=True, kw_only=True)
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
class Directory:
    """Live instances by service, and databases by name.

    Attributes:
        expiry: Seconds without a heartbeat after which an instance is gone.
        databases: URI of each database, its name inside the server included.
        endpoints: Per service that was ever registered, the path of each endpoint name.
    """

    expiry: float
    databases: dict[str, str] = field(default_factory=dict)
    endpoints: dict[str, dict[str, str]] = field(default_factory=dict)
    _instances: dict[str, Instance] = field(default_factory=dict)

    def register(
        self, *, service: str, replica: int, url: str, pid: int, endpoints: Mapping[str, str], now: float
    ) -> Instance:
        """Add an instance; another one at the same address is replaced: it must be dead."""
        self._drop(lambda other: other.url == url)
        instance = Instance(
            id=secrets.token_hex(8), service=service, replica=replica, url=url, pid=pid, seen=now
        )
        self._instances[instance.id] = instance
        self.endpoints[service] = dict(endpoints)
        return instance

    def heartbeat(self, instance: str, now: float) -> bool:
        """Note a sign of life; False = this instance is not (or no longer) known."""
        self._expire(now)
        known = self._instances.get(instance)
        if known is None:
            return False
        known.seen = now
        return True

    def deregister(self, instance: str) -> bool:
        """Remove an instance; False = it was not known."""
        return self._instances.pop(instance, None) is not None

    def replicas(self, service: str, now: float) -> list[Instance] | None:
        """Return the live instances of a service, by replica; None = no such service was ever registered."""
        if service not in self.endpoints:
            return None
        self._expire(now)
        live = [i for i in self._instances.values() if i.service == service]
        return sorted(live, key=lambda instance: instance.replica)

    def services(self, now: float) -> dict[str, list[Instance]]:
        """Return the live instances of every service that was ever registered."""
        return {service: self.replicas(service, now) or [] for service in sorted(self.endpoints)}

    def _expire(self, now: float) -> None:
        self._drop(lambda instance: now - instance.seen > self.expiry)

    def _drop(self, condition: Any) -> None:
        for identity in [i.id for i in self._instances.values() if condition(i)]:
            del self._instances[identity]
