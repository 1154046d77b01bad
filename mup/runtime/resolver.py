"""Which replica does a call go to? The worker's view of the registry: a cached list, a random choice."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import msgspec

from mup.errors import CommunicationError, NoReplicaError, UnknownDatabaseError, UnknownServiceError
from mup.routes import CallRoutes, Route
from mup.runtime.http_client import Address, BrokenError, ConnectionPool, RawRequest, address_of

__all__ = ["Resolver", "ServiceEntry"]

_log = logging.getLogger("mup.runtime")
_TIMEOUT = 3.0


@dataclass(slots=True)
class ServiceEntry:
    """What the registry said about one service.

    Attributes:
        addresses: Of its live replicas.
        endpoints: Address of each endpoint name: path, and HTTP method if it is for one.
        fresh_until: Seconds of the monotonic clock.
    """

    addresses: list[Address]
    endpoints: dict[str, str]
    fresh_until: float


class Resolver:
    """Finds replicas and databases; every thread of a worker may ask.

    While the registry does not answer, what it said last stays valid.

    Args:
        registry: URL of the registry.
        pool: Connections to share with the calls.
        ttl: Seconds an answer is used before the registry is asked again.
    """

    def __init__(self, registry: str, pool: ConnectionPool, *, ttl: float = 1.0) -> None:
        self._url = registry
        self._address = address_of(registry)
        self._pool = pool
        self._ttl = ttl
        self._services: dict[str, ServiceEntry] = {}
        self._routes: dict[str, CallRoutes] = {}
        self._databases: dict[str, tuple[str, float]] = {}
        self._silent = False

    def service(self, name: str, *, refresh: bool = False) -> ServiceEntry:
        """Return a service's entry, at most ``ttl`` old while the registry answers.

        Args:
            name: Of the service.
            refresh: Ask the registry even if the entry is fresh.

        Raises:
            UnknownServiceError: The registry has never heard of it.
            NoReplicaError: The registry has to be asked and does not answer.
        """
        known = self._services.get(name)
        if known is not None and not refresh and time.monotonic() < known.fresh_until:
            return known
        try:
            status, answer = self._ask(f"/replicas?service={quote(name, safe='')}")
        except _SilentError as error:
            if known is None:
                raise NoReplicaError(str(error), where=f"service {name!r}") from error
            known.fresh_until = time.monotonic() + self._ttl
            return known
        if status != 200:
            raise UnknownServiceError(str(answer.get("error", f"the registry answered {status}")))
        entry = ServiceEntry(
            [address_of(replica["url"]) for replica in answer["replicas"]],
            answer["endpoints"],
            time.monotonic() + self._ttl,
        )
        self._services[name] = entry
        return entry

    def route(self, service: str, path: str, method: str) -> Route:
        """Return the endpoint a call means, as far as it is known.

        Args:
            service: Name of the service.
            path: Path, template or name of the endpoint; or a path with its parameters filled in.
            method: HTTP method; "" = the one of the endpoint.

        Raises:
            CommunicationError: Several methods share the path, and the call does not say which.
        """
        try:
            endpoints = (self._services.get(service) or self.service(service)).endpoints
        except CommunicationError:
            endpoints = {}  # whoever sends the call meets this error again, and reports it
        known = self._routes.get(service)
        if known is None or known.endpoints != endpoints:
            known = self._routes[service] = CallRoutes(endpoints)
        return known.find(path, method)

    def choose(self, name: str, refused: Collection[Address] = ()) -> Address:
        """Return a live replica of a service, uniformly at random.

        Args:
            name: Of the service.
            refused: Replicas not to choose: they did not accept a connection just now.

        Raises:
            UnknownServiceError: The registry has never heard of it.
            NoReplicaError: There is none.
        """
        entry = self.service(name, refresh=bool(refused))
        if not entry.addresses and not refused:
            entry = self.service(name, refresh=True)
        live = [a for a in entry.addresses if a not in refused] if refused else entry.addresses
        if not live:
            tried = ", ".join(f"{host}:{port}" for host, port in refused)
            raise NoReplicaError(
                f"service {name!r} has no live replica"
                + (f" ({tried} refused the connection)" if tried else "")
            )
        return random.choice(live)

    def database(self, name: str) -> str:
        """Return the URI of a database, the name inside the server included.

        Raises:
            UnknownDatabaseError: The registry has no such database.
            NoReplicaError: The registry has to be asked and does not answer.
        """
        known = self._databases.get(name)
        if known is not None and time.monotonic() < known[1]:
            return known[0]
        try:
            status, answer = self._ask(f"/databases?name={quote(name, safe='')}")
        except _SilentError as error:
            if known is None:
                raise NoReplicaError(str(error), where=f"database {name!r}") from error
            return known[0]
        if status != 200:
            raise UnknownDatabaseError(str(answer.get("error", f"the registry answered {status}")))
        uri: str = answer["uri"]
        self._databases[name] = (uri, time.monotonic() + self._ttl)
        return uri

    def _ask(self, target: str) -> tuple[int, dict[str, Any]]:
        for fresh in (False, True):
            try:
                connection = self._pool.take(self._address, _TIMEOUT, fresh=fresh)
                try:
                    connection.send(RawRequest("GET", target), _TIMEOUT)
                    response = connection.receive(time.monotonic() + _TIMEOUT)
                except BaseException:
                    connection.close()
                    raise
                self._pool.give_back(connection, response)
                answer = msgspec.json.decode(response.body)
            except (OSError, BrokenError, msgspec.DecodeError) as error:
                problem = error
                continue
            self._silent = False
            return response.status, answer
        if not self._silent:
            # Once per outage: every call of every worker would repeat it.
            _log.warning("the registry at %s does not answer: %s", self._url, problem)
            self._silent = True
        raise _SilentError(f"the registry at {self._url} does not answer: {problem}") from problem


class _SilentError(CommunicationError):
    """The registry does not answer."""
