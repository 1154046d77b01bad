"""Which replica does a call go to? The worker's view of the registry: a cached list, a random choice.

A call waits for the registry only if it knows no list at all. Otherwise it gives the registry a moment to
confirm or change the list, once per ``ttl``; a question that is not answered by then stays open, and its
answer is taken whenever it has come.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from urllib.parse import quote

from mup.errors import CommunicationError, NoReplicaError, UnknownDatabaseError
from mup.routes import CallRoutes, Route
from mup.runtime.client.replicas import CACHE_SECONDS, MOMENT, Answer, Replicas, ServiceEntry, question
from mup.runtime.client.reply import BrokenError
from mup.runtime.client.request import Address, RawRequest, TlsAddress, address_of
from mup.runtime.client.sockets import Connection, ConnectionPool

__all__ = ["Resolver"]

_log = logging.getLogger("mup.runtime")
_NOBODY = CallRoutes({})

_FIRST_SECONDS = 3.0
"""How long a call waits for the registry that does not know yet what it needs."""

_PAUSE = 0.05
"""Between two attempts of a call that has to wait."""

_AGAIN_SECONDS = 1.0
"""While the registry is silent it is asked again, or looked after, this often."""

_OPEN_SECONDS = 10.0
"""A question is given up after this: whoever it was sent to may have lost its connections."""


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
        self._replicas = Replicas(ttl, encrypted=isinstance(address_of(registry), TlsAddress))
        self._services = self._replicas.services
        self._databases: dict[str, tuple[str, float]] = {
            name: (uri, float("inf")) for name, uri in (databases or {}).items()
        }

    def route(self, service: str, path: str, method: str) -> Route:
        """Return the endpoint a call means, as far as it is known.

        Args:
            service: Name of the service.
            path: Path, template or name of the endpoint; or a path with its parameters filled in.
            method: HTTP method; "" = the one of the endpoint.

        Raises:
            UsageError: Several methods share the path, and the call does not say which.
        """
        try:
            routes = (self._services.get(service) or self._ask(service, None)).routes
        except CommunicationError:
            routes = _NOBODY  # whoever sends the call meets this error again, and reports it
        return routes.find(path, method)

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
        address = self._replicas.pick(entry, refused)
        return address or self._replicas.last(name, self._ask(name, entry), refused)

    def drop(self, name: str, address: Address) -> None:
        """Do not choose a replica any more: it could not be reached."""
        self._replicas.drop(name, address)

    def forget(self, address: Address) -> None:
        """Close the idle connections to a server."""
        self._pool.forget(address)

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

    def _ask(self, name: str, known: ServiceEntry | None) -> ServiceEntry:
        """Return a service's entry, newly confirmed if the registry answers.

        Raises:
            UnknownServiceError: The registry has never heard of it.
            NoReplicaError: Nothing is known and the registry does not answer.
        """
        if known is not None:
            self._replicas.asking(known)
        try:
            answer = self._link.ask(question(name), known.tag if known else "", patient=known is None)
        except _SilentError as error:
            if known is None:
                raise NoReplicaError(str(error), where=f"service {name!r}") from error
            return known
        entry = self._replicas.answered(name, answer)
        if known is not None and entry is not known:
            # Nobody would ever use them again, or notice that they have been closed.
            self._pool.tidy(known.listed.keys() - entry.listed.keys())
        return entry


class _RegistryLink:
    """Questions to the registry, also ones whose answer comes late."""

    def __init__(self, url: str, pool: ConnectionPool, token: str) -> None:
        self._url = url
        self._address = address_of(url)
        self._pool = pool
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._open: dict[str, tuple[Connection, float]] = {}
        self._silent = False
        self._try_again = 0.0

    def ask(self, target: str, tag: str = "", *, patient: bool) -> Answer:
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

    def _ask(self, target: str, tag: str, *, patient: bool, last: bool) -> Answer:
        """Ask once; an outage is one if this was the last attempt."""
        now = time.monotonic()
        # Whoever takes an open question is the only one to look after it.
        question = self._open.pop(target, None)
        if question is None and self._silent and not patient and now < self._try_again:
            raise _SilentError(f"the registry at {self._url} does not answer")
        wait = _FIRST_SECONDS if patient else 0.0 if question else MOMENT
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

    def _send(self, target: str, tag: str, wait: float) -> Answer:
        headers = {**self._headers, "If-None-Match": tag} if tag else self._headers
        request = RawRequest("GET", target, headers)

        def attempt(fresh: bool) -> Answer:
            connection = self._pool.take(self._address, wait, fresh=fresh)
            try:
                connection.send(request, wait)
            except BaseException:
                connection.close()
                raise
            return self._receive(target, connection, time.monotonic(), wait)

        return _twice(attempt)

    def _receive(self, target: str, connection: Connection, asked: float, wait: float) -> Answer:
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
        return Answer.of(response)


def _twice(attempt: Callable[[bool], Answer]) -> Answer:
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
