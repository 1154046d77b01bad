"""State of the registry, without any HTTP: registered replicas, and those silent for too long.

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

import msgspec

__all__ = ["Directory", "FullError", "Instance", "ListeningClock", "ReplacedError", "Service", "TakenError"]

FORGET_SECONDS = 300.0
"""For so long, callers of a service whose replicas have all gone are told that, not that it is unknown."""
MAX_SERVICES = 2_000
MAX_REPLICAS = 20_000
MAX_DATABASES = 1_000
MAX_ENDPOINT_BYTES = 16 * 2**20
"""Names and paths of all live replicas; what replicas have in common counts once."""


class ListeningClock:
    """Seconds during which the registry could hear its replicas.

    Stopped, swapped out or starved, a registry hears no replica, and on its return all replicas would seem to
    have been silent for too long. A gap between two readings therefore counts for ``longest`` seconds at
    most; the clock has to be read more often than that.
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
        endpoints: Path of each of its endpoints by name.
        seen: Time of its last sign of life.
    """

    id: str
    service: str
    replica: int
    url: str
    pid: int
    endpoints: SharedMap
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


@dataclass(slots=True, eq=False)
class SharedMap:
    """A map of endpoints, which most replicas of a service have in common.

    Attributes:
        text: The map as JSON.
        paths: By name.
        users: How many instances have it.
    """

    text: bytes
    paths: dict[str, str]
    users: int = 0


@dataclass(slots=True)
class Service:
    """A service that has live replicas, or had some not long ago.

    Attributes:
        name: Its name.
        instances: The live ones by id, in the order in which they came.
        version: Changes with everything else here.
        listed: The last answer to clients, kept by the server: a tag and a text.
        last: The endpoints of the last instance, if there is none any more.
    """

    name: str
    instances: dict[str, Instance] = field(default_factory=dict)
    version: int = 0
    listed: tuple[str, bytes] = ("", b"")
    last: SharedMap | None = None
    _endpoints: dict[str, str] = field(default_factory=dict)
    _live: list[Instance] = field(default_factory=list)
    _sorted: int = -1

    def live(self) -> list[Instance]:
        """Return the live instances by replica."""
        self._refresh()
        return self._live

    @property
    def endpoints(self) -> dict[str, str]:
        """Path of each endpoint by name.

        Where instances differ, as during an update, each name has the path of the instance that has been
        there longest: who comes adds endpoints and changes none, until those who had others are gone. Without
        instances, as the last one had them.
        """
        self._refresh()
        return self._endpoints

    def _refresh(self) -> None:
        if self._sorted == self.version:
            return
        self._sorted = self.version
        self._live = sorted(self.instances.values(), key=lambda instance: instance.replica)
        # Most instances have the same map: each is looked at once.
        maps = dict.fromkeys(instance.endpoints for instance in self.instances.values())
        self._endpoints = {}
        for shared in maps or ([self.last] if self.last else []):
            self._endpoints = {**shared.paths, **self._endpoints}


class FullError(Exception):
    """The directory has as much as it may have."""


class TakenError(Exception):
    """An address is that of another replica, which lives."""


class ReplacedError(Exception):
    """The replica that registers again has been replaced by a successor, which lives."""


@dataclass(slots=True)
class Directory:
    """Live instances by service, and databases by name.

    Services without instances are forgotten after ``forget`` seconds, or when there are too many of them.

    Attributes:
        expiry: Seconds without a heartbeat after which an instance is gone.
        databases: URI of each database, its name inside the server included, without credentials.
        services: The ones that have instances, or had some not long ago, by name.
        run: Tells this registry from one before or after it.
        forget: Seconds without instances after which a service is forgotten.
    """

    # Invariants between two requests:
    #
    # - Every instance is in `_instances`, under its address in `_by_url`, and with its service: at an address
    #   there is one at most.
    # - A service has instances, or it is in `_empty` and has `last`, the endpoints of the last one.
    # - `_maps` holds the endpoints of instances and of `last`, equal ones once; their `users` are those that
    #   have them, and `_map_bytes` is the size of them all.
    expiry: float
    databases: dict[str, str] = field(default_factory=dict)
    services: dict[str, Service] = field(default_factory=dict)
    run: str = field(default_factory=lambda: secrets.token_hex(4))
    forget: float = FORGET_SECONDS
    # Invariant: ordered by `seen`, so that the expired ones are at the front.
    _instances: OrderedDict[str, Instance] = field(default_factory=OrderedDict)
    _by_url: dict[str, Instance] = field(default_factory=dict)
    # Services without instances, and since when: the longest at the front.
    _empty: OrderedDict[str, float] = field(default_factory=OrderedDict)
    _maps: dict[bytes, SharedMap] = field(default_factory=dict)
    _map_bytes: int = 0

    def register(
        self,
        *,
        service: str,
        replica: int,
        url: str,
        pid: int,
        endpoints: Mapping[str, str],
        now: float,
        again: bool = False,
    ) -> Instance:
        """Add an instance; the same replica at the same address is replaced: it was started again.

        Args:
            service: As of :class:`Instance`, like those below.
            replica: Its number.
            url: Its address.
            pid: Its process.
            endpoints: Their paths.
            now: Time.
            again: Whether it was registered before, and is not known any more. It replaces no other process
                then: an instance at its address is its successor, which serves while this one still drains.

        Raises:
            TakenError: Another replica has this address, and lives as far as is known.
            ReplacedError: A successor has registered at this address since, and lives as far as is known.
            FullError: There are too many already.
        """
        self._expire(now)
        other = self._by_url.get(url)
        if other is not None and (other.service, other.replica) != (service, replica):
            raise TakenError(
                f"{url} is the address of {other.service!r}, replica {other.replica}, which has shown life"
                f" {now - other.seen:.1f} s ago; it is free {self.expiry:g} s after its last sign of life"
            )
        if other is not None and again and other.pid != pid:
            raise ReplacedError(f"replica {replica} of {service!r} has a successor at {url}")
        text = msgspec.json.encode(sorted(endpoints.items()))
        self._make_room(service, text, new=other is None)
        shared = self._maps.get(text) or SharedMap(text, dict(endpoints))
        self._use(shared)
        known = self.services.get(service)
        if known is None:
            known = self.services[service] = Service(service)
        elif known.last is not None:
            del self._empty[service]
            self._drop(known.last)
            known.last = None
        instance = Instance(
            id=secrets.token_hex(8),
            service=service,
            replica=replica,
            url=url,
            pid=pid,
            endpoints=shared,
            seen=now,
        )
        self._instances[instance.id] = instance
        known.instances[instance.id] = instance
        known.version += 1
        if other is not None:
            self._remove(other, now)
        self._by_url[url] = instance
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

    def deregister(self, instance: str, now: float) -> bool:
        """Remove an instance; False = it was not known."""
        known = self._instances.get(instance)
        if known is not None:
            self._remove(known, now)
        return known is not None

    def add_database(self, name: str, uri: str) -> None:
        """Note where a database is.

        Raises:
            FullError: There are too many already.
        """
        if name not in self.databases and len(self.databases) >= MAX_DATABASES:
            raise FullError(f"the registry knows {MAX_DATABASES} databases, and takes no more")
        self.databases[name] = uri

    def service(self, name: str, now: float) -> Service | None:
        """Return a service with its instances that are alive; None = it has had none for long."""
        self._expire(now)
        return self.services.get(name)

    def replicas(self, service: str, now: float) -> list[Instance] | None:
        """Return the live instances of a service, by replica; None = it has had none for long."""
        known = self.service(service, now)
        return None if known is None else known.live()

    def live(self, now: float) -> dict[str, list[Instance]]:
        """Return the live instances of every service that is known."""
        self._expire(now)
        return {name: self.services[name].live() for name in sorted(self.services)}

    def resolve(self, service: str, now: float) -> Instance | None:
        """Return a live instance of a service, uniformly at random; None = there is none."""
        live = self.replicas(service, now)
        return random.choice(live) if live else None

    def learning(self, now: float) -> bool:
        """Whether replicas that live may not have had the time to tell a registry that has just started."""
        return now < self.expiry

    def _make_room(self, service: str, text: bytes, *, new: bool) -> None:
        """Forget what must give way to an instance; raises as `register` does."""
        if new and len(self._instances) >= MAX_REPLICAS:
            raise FullError(f"the registry knows {MAX_REPLICAS} live replicas, and takes no more")
        while service not in self.services and len(self.services) >= MAX_SERVICES:
            if not self._empty:
                raise FullError(f"the registry knows {MAX_SERVICES} services that live, and takes no more")
            self._forget_one()
        while text not in self._maps and self._map_bytes + len(text) > MAX_ENDPOINT_BYTES:
            if not self._empty:
                raise FullError(
                    f"the endpoints of all live replicas have {MAX_ENDPOINT_BYTES} bytes, and the registry"
                    " takes no more"
                )
            self._forget_one()

    def _use(self, shared: SharedMap) -> None:
        shared.users += 1
        if shared.users == 1:
            self._maps[shared.text] = shared
            self._map_bytes += len(shared.text)

    def _drop(self, shared: SharedMap) -> None:
        shared.users -= 1
        if shared.users == 0:
            del self._maps[shared.text]
            self._map_bytes -= len(shared.text)

    def _expire(self, now: float) -> None:
        while self._instances:
            oldest = next(iter(self._instances.values()))
            if now - oldest.seen <= self.expiry:
                break
            self._remove(oldest, now)
        while self._empty and now - next(iter(self._empty.values())) > self.forget:
            self._forget_one()

    def _forget_one(self) -> None:
        """Forget the service that has been without instances longest."""
        name, _ = self._empty.popitem(last=False)
        forgotten = self.services.pop(name)
        assert forgotten.last is not None  # noqa: S101 - as of every service without instances
        self._drop(forgotten.last)

    def _remove(self, instance: Instance, now: float) -> None:
        del self._instances[instance.id]
        del self._by_url[instance.url]
        service = self.services[instance.service]
        del service.instances[instance.id]
        service.version += 1
        if service.instances:
            self._drop(instance.endpoints)
        else:
            service.last = instance.endpoints
            self._empty[service.name] = now
