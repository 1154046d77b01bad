"""Which replica does a call go to? The worker's view of the registry: a cached list, a random choice.

A call waits for the registry only if it knows no list at all. Otherwise it gives the registry a moment to
confirm or change the list, once per ``ttl``; a question that is not answered by then stays open, and its
answer is taken whenever it has come.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from random import random
from typing import Any
from urllib.parse import quote

import msgspec

from mup.errors import CommunicationError, NoReplicaError, UnknownDatabaseError, UnknownServiceError
from mup.routes import CallRoutes, Route
from mup.runtime.client.reply import BrokenError
from mup.runtime.client.request import Address, RawRequest, TlsAddress, address_of
from mup.runtime.client.sockets import Connection, ConnectionPool

__all__ = ["CACHE_SECONDS", "Resolver", "ServiceEntry"]

_log = logging.getLogger("mup.runtime")

CACHE_SECONDS = 1.0
"""How long an answer of the registry is used before it is asked again, unless somebody says otherwise."""

_FIRST_SECONDS = 3.0
"""How long a call waits for the registry that does not know yet what it needs."""

_NAMED = 5
"""Replicas that a message names at most."""

_PAUSE = 0.05
"""Between two attempts of a call that has to wait."""

_MOMENT = 0.1
"""How long a call waits that could go on with what it knows."""

_AGAIN_SECONDS = 1.0
"""While the registry is silent it is asked again, or looked after, this often."""

_OPEN_SECONDS = 10.0
"""A question is given up after this: whoever it was sent to may have lost its connections."""

_DROPPED_SECONDS = 3.0
"""A replica that could not be reached is not tried again for this long, unless it has registered anew or
there is no other. By then the registry has noticed, too, if it is dead."""


@dataclass(slots=True)
class ServiceEntry:
    """What is known about one service.

    Attributes:
        addresses: Of the replicas to choose from.
        endpoints: Address of each endpoint name: path, and HTTP method if it is for one.
        fresh_until: Seconds of the monotonic clock.
        listed: Registration id by address: what the registry said, dropped ones included.
        tag: Names that list; the registry need not repeat it.
        left_out: Why the first of the replicas that cannot be called cannot.
    """

    addresses: list[Address]
    endpoints: dict[str, str]
    fresh_until: float
    listed: dict[Address, str] = field(default_factory=dict)
    tag: str = ""
    left_out: str = ""


class Resolver:
    """Finds replicas and databases; every thread of a worker may ask.

    While the registry does not answer, what it said last stays valid; so it does right after the registry
    was restarted and has not heard of all replicas yet. Of a registry with TLS, replicas without are not
    believed: everything of a deployment is encrypted, or nothing.

    Args:
        registry: URL of the registry.
        pool: Connections to share with the calls.
        ttl: Seconds an answer is used before the registry is asked again; 0 = it is asked for every call.
        token: What the registry wants to see; "" = nothing.
        databases: URIs that need not be asked for, by name.
    """

    def __init__(
        self,
        registry: str,
        pool: ConnectionPool,
        *,
        ttl: float = CACHE_SECONDS,
        token: str = "",
        databases: Mapping[str, str] | None = None,
    ) -> None:
        self._pool = pool
        self._link = _RegistryLink(registry, pool, token)
        self._ttl = ttl
        self._services: dict[str, ServiceEntry] = {}
        self._routes: dict[str, CallRoutes] = {}
        self._databases: dict[str, tuple[str, float]] = {
            name: (uri, float("inf")) for name, uri in (databases or {}).items()
        }
        # Registrations that could not be reached, and until when that counts.
        self._dropped: dict[tuple[Address, str], float] = {}

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
            endpoints = (self._services.get(service) or self._ask(service, None)).endpoints
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
            NoReplicaError: There is none, or nothing is known and the registry does not answer.
        """
        entry = self._services.get(name)
        if entry is None or time.monotonic() >= entry.fresh_until:
            entry = self._ask(name, entry)
        addresses = entry.addresses
        if refused or not addresses:
            addresses = self._others(name, entry, refused)
        return addresses[int(random() * len(addresses))]

    def drop(self, name: str, address: Address) -> None:
        """Do not choose a replica any more: it could not be reached."""
        entry = self._services.get(name)
        if entry is not None and address in entry.listed:
            self._dropped[address, entry.listed[address]] = time.monotonic() + _DROPPED_SECONDS
            entry.addresses = [other for other in entry.addresses if other != address]

    def fresh_database(self, name: str) -> str | None:
        """Return the URI of a database if the registry need not be asked for it now."""
        known = self._databases.get(name)
        return known[0] if known is not None and time.monotonic() < known[1] else None

    def database(self, name: str) -> str:
        """Return the URI of a database, the name inside the server included.

        Raises:
            UnknownDatabaseError: The registry has no such database.
            NoReplicaError: The registry has to be asked and does not answer.
        """
        known = self._databases.get(name)
        now = time.monotonic()
        if known is not None:
            if now < known[1]:
                return known[0]
            # Other threads go on with the old one meanwhile.
            self._databases[name] = (known[0], now + self._ttl)
        try:
            response = self._link.ask(f"/databases?name={quote(name, safe='')}", patient=known is None)
        except _SilentError as error:
            if known is None:
                raise NoReplicaError(str(error), where=f"database {name!r}") from error
            return known[0]
        if response.status == 200:
            uri: str = response.fields["uri"]
            self._databases[name] = (uri, time.monotonic() + self._ttl)
            return uri
        if known is not None:
            # A registry forgets databases only if it has been restarted.
            return known[0]
        if response.status == 404:
            raise UnknownDatabaseError(response.reason)
        raise NoReplicaError(response.reason, where=f"database {name!r}")

    def _others(self, name: str, entry: ServiceEntry, refused: Collection[Address]) -> list[Address]:
        """Return replicas that are left when others have refused, or none was left at all.

        Raises:
            NoReplicaError: There is none.
        """
        left = [address for address in entry.addresses if address not in refused]
        if not left:
            entry = self._ask(name, entry)
            # One that failed for somebody else a moment ago is better than none.
            left = [address for address in entry.addresses or entry.listed if address not in refused]
        if not left:
            tried = ", ".join(f"{host}:{port}" for host, port in list(refused)[:_NAMED])
            tried += f" and {len(refused) - _NAMED} more" if len(refused) > _NAMED else ""
            why = f"{tried} cannot be reached" if tried else entry.left_out
            raise NoReplicaError(f"service {name!r} has no live replica" + (f" ({why})" if why else ""))
        return left

    def _ask(self, name: str, known: ServiceEntry | None) -> ServiceEntry:
        """Return a service's entry, newly confirmed if the registry answers.

        Raises:
            UnknownServiceError: The registry has never heard of it.
            NoReplicaError: Nothing is known and the registry does not answer.
        """
        if known is not None:
            # Other threads go on with the old list meanwhile.
            known.fresh_until = time.monotonic() + self._ttl
        target = f"/replicas?service={quote(name, safe='')}"
        try:
            response = self._link.ask(target, known.tag if known else "", patient=known is None)
        except _SilentError as error:
            if known is None:
                raise NoReplicaError(str(error), where=f"service {name!r}") from error
            return known
        if response.status == 200:
            before = known
            known = self._services[name] = self._entry(response, before)
            if before is not None:
                # Nobody would ever use them again, or notice that they have been closed.
                self._pool.tidy(before.listed.keys() - known.listed.keys())
        elif known is None:
            unknown = response.status == 404 and not response.learning
            raise (UnknownServiceError if unknown else NoReplicaError)(response.reason)
        # Else: unchanged; or a registry that was restarted and has not heard of the service yet.
        known.fresh_until = time.monotonic() + self._ttl
        if self._dropped:
            self._forgive(known)
        return known

    def _entry(self, response: _Answer, known: ServiceEntry | None) -> ServiceEntry:
        answer = response.fields
        listed: dict[Address, str] = {}
        left_out = ""
        for replica in answer["replicas"]:
            try:
                listed[address_of(replica["url"], encrypted=self._link.encrypted)] = str(replica["id"])
            except CommunicationError as error:
                left_out = left_out or error.message
        if left_out:
            # Once per list: there may be thousands.
            more = len(answer["replicas"]) - len(listed) - 1
            others = f" (and {more} more)" if more else ""
            _log.warning("a replica of %r is left out: %s%s", answer["service"], left_out, others)
        if known is not None and answer["learning"]:
            listed = {**known.listed, **listed}
        return ServiceEntry(list(listed), answer["endpoints"], 0.0, listed, response.tag, left_out)

    def _forgive(self, entry: ServiceEntry) -> None:
        """Choose from what the registry lists, except from what could not be reached lately."""
        now = time.monotonic()
        for dropped, until in list(self._dropped.items()):
            if now >= until:
                self._dropped.pop(dropped, None)
        entry.addresses = [item[0] for item in entry.listed.items() if item not in self._dropped]


@dataclass(frozen=True, slots=True)
class _Answer:
    """Status, name of the list (if it is one), and content; no content if nothing has changed."""

    status: int
    tag: str
    fields: dict[str, Any]

    @property
    def learning(self) -> bool:
        """Whether the registry has just started, and need not know everybody yet."""
        return bool(self.fields.get("learning"))

    @property
    def reason(self) -> str:
        """Why it is no answer."""
        return str(self.fields.get("error", f"the registry answered {self.status}"))


class _RegistryLink:
    """Questions to the registry, also ones whose answer comes late.

    Attributes:
        encrypted: Whether it is asked over TLS.
    """

    def __init__(self, url: str, pool: ConnectionPool, token: str) -> None:
        self._url = url
        self._address = address_of(url)
        self.encrypted = isinstance(self._address, TlsAddress)
        self._pool = pool
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._open: dict[str, tuple[Connection, float]] = {}
        self._silent = False
        self._try_again = 0.0

    def ask(self, target: str, tag: str = "", *, patient: bool) -> _Answer:
        """Return the registry's answer.

        Args:
            target: Path and query.
            tag: Of what is known; the answer has status 304 if it still holds.
            patient: Whether nothing can be done without an answer.

        Raises:
            _SilentError: There is none (yet).
        """
        give_up = time.monotonic() + (_FIRST_SECONDS if patient and not self._silent else 0.0)
        while True:
            # One that is being restarted refuses connections for a second, then it does not know everybody.
            late = time.monotonic() + _PAUSE >= give_up
            try:
                answer = self._ask(target, tag, patient=patient, last=late)
            except _SilentError:
                if late:
                    raise
            else:
                if late or answer.status != 404 or not answer.learning:
                    return answer
            time.sleep(_PAUSE)

    def _ask(self, target: str, tag: str, *, patient: bool, last: bool) -> _Answer:
        """Ask once; an outage is one if this was the last attempt."""
        now = time.monotonic()
        # Whoever takes an open question is the only one to look after it.
        question = self._open.pop(target, None)
        if question is None and self._silent and not patient and now < self._try_again:
            raise _SilentError(f"the registry at {self._url} does not answer")
        wait = _FIRST_SECONDS if patient else 0.0 if question else _MOMENT
        try:
            if question is not None:
                response = self._receive(target, *question, wait)
            else:
                response = self._send(target, tag, wait)
        except (OSError, BrokenError) as problem:
            self._try_again = time.monotonic() + _AGAIN_SECONDS
            message = f"the registry at {self._url} does not answer: {str(problem) or 'no answer in time'}"
            if last and not self._silent:
                # Once per outage: every call of every worker would repeat it.
                _log.warning("%s", message)
                self._silent = True
            raise _SilentError(message) from problem
        if self._silent:
            _log.warning("the registry at %s answers again", self._url)
            self._silent = False
        return response

    def _send(self, target: str, tag: str, wait: float) -> _Answer:
        headers = {**self._headers, "If-None-Match": tag} if tag else self._headers
        request = RawRequest("GET", target, headers)

        def attempt(fresh: bool) -> _Answer:
            connection = self._pool.take(self._address, wait, fresh=fresh)
            try:
                connection.send(request, wait)
            except BaseException:
                connection.close()
                raise
            return self._receive(target, connection, time.monotonic(), wait)

        return _twice(attempt)

    def _receive(self, target: str, connection: Connection, asked: float, wait: float) -> _Answer:
        try:
            response = connection.receive(time.monotonic() + wait)
        except TimeoutError:
            if time.monotonic() - asked < _OPEN_SECONDS:
                self._open[target] = connection, asked
            else:
                connection.close()
            raise
        except BaseException:
            connection.close()
            raise
        self._pool.give_back(connection, response)
        try:
            fields = msgspec.json.decode(response.body) if response.status != 304 else {}
        except msgspec.DecodeError as error:
            raise BrokenError(f"not JSON: {error}") from error
        if not isinstance(fields, dict):
            raise BrokenError("not a JSON object")
        return _Answer(response.status, response.headers.get("etag", ""), fields)


def _twice(attempt: Callable[[bool], _Answer]) -> _Answer:
    """Repeat on a fresh connection what failed on a kept one: the registry may have been restarted.

    Raises:
        OSError: The registry cannot be reached, or is silent.
        BrokenError: What answers is no registry.
    """
    try:
        return attempt(False)
    except TimeoutError:
        raise
    except (OSError, BrokenError):
        return attempt(True)


class _SilentError(CommunicationError):
    """The registry does not answer."""
