"""Questions to the registry: what is asked, how long a call waits, and what holds meanwhile.

One set of rules for both shells: `mup.runtime.client.network` for event loops, and
`mup.runtime.client.resolver` for workers that block, where coroutines never wait for a loop, for what they
await blocks. Nothing here sends or waits by itself.

- What is known is used for ``ttl`` seconds; then it is confirmed, and stays valid until an answer has come.
- What is not known is waited for: a registry that is being restarted refuses connections for a second, and
  then does not know all replicas. It is asked again and again for `FIRST_SECONDS`, unless an outage is known.
- An outage is logged once, and so is its end.
"""

from __future__ import annotations

import logging
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from mup.errors import CommunicationError, NoReplicaError, UnknownDatabaseError
from mup.runtime.client.idle import Idle
from mup.runtime.client.replicas import CACHE_SECONDS, Answer, Replicas, ServiceEntry
from mup.runtime.client.reply import BrokenError
from mup.runtime.client.request import Address, RawRequest, TlsAddress, address_of

if TYPE_CHECKING:
    from mup.runtime.client.retries import Retries

__all__ = ["FIRST_SECONDS", "MOMENT", "OPEN_SECONDS", "Registry"]

FIRST_SECONDS = 3.0
"""How long a call waits for the registry that does not know yet what it needs."""
MOMENT = 0.1
"""Seconds a call waits for the registry that could go on with what it knows."""
OPEN_SECONDS = 10.0
"""A question is given up after this: its connection may have been lost without a word."""
_PAUSE = 0.05
"""Between two attempts of a call that has to wait."""
_AGAIN_SECONDS = 1.0
"""While the registry is silent it is asked again this often."""

_log = logging.getLogger("mup.runtime")


class Registry(ABC):
    """What a process knows by its registry, and how it learns more.

    Args:
        url: Of the registry; "" = there is none.
        idle: Connections to servers.
        ttl: Seconds an answer is used before the registry is asked again; 0 = it is asked for every call.
        token: What the registry wants to see; "" = nothing.
        databases: URIs that need not be asked for, by name.
        draw: Returns a random number from 0 to 1.

    Attributes:
        retries: Decides which calls of services are made again; None = none is.
    """

    def __init__(
        self,
        url: str,
        idle: Idle[Any],
        *,
        ttl: float = CACHE_SECONDS,
        token: str = "",
        databases: Mapping[str, str] | None = None,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self.retries: Retries | None = None
        self._url = url
        self._address: Address = address_of(url) if url else ("", 0)
        self._idle = idle
        self._ttl = ttl
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._replicas = Replicas(ttl, encrypted=isinstance(self._address, TlsAddress), draw=draw)
        self._services = self._replicas.services
        self._databases = {name: (uri, float("inf")) for name, uri in (databases or {}).items()}
        # Questions whose answers are still to come, by target; the shell keeps what it needs to take them.
        self._open: dict[str, Any] = {}
        self._silent = False
        self._try_again = 0.0

    def drop(self, name: str, address: Address) -> None:
        """Do not choose a replica any more: it could not be reached, or does not serve."""
        self._replicas.drop(name, address)

    def forget(self, address: Address) -> None:
        """Close the idle connections to a server."""
        self._idle.forget(address)

    @abstractmethod
    async def _exchange(self, request: RawRequest, *, patient: bool) -> Answer:
        """Ask the registry, once.

        Args:
            request: The question.
            patient: Whether nothing can be done without an answer.

        Raises:
            OSError: It cannot be reached; a ``TimeoutError`` if the answer may still come.
            BrokenError: What answers is no registry.
        """

    @abstractmethod
    async def _pause(self, seconds: float) -> None:
        """Wait."""

    @abstractmethod
    async def _confirmed(self, name: str) -> ServiceEntry:
        """Carry out `_service`; if something is known, for no longer than a moment."""

    async def _choose(self, name: str, refused: Collection[Address]) -> Address:
        """Return a live replica of a service, uniformly at random.

        Args:
            name: Of the service.
            refused: Replicas not to choose: they did not serve this call just now.

        Raises:
            UnknownServiceError: The registry has never heard of it.
            NoReplicaError: There is none, or nothing is known and the registry does not answer.
        """
        entry = self._services.get(name)
        if entry is None or time.monotonic() >= entry.fresh_until:
            entry = await self._confirmed(name)
        address = self._replicas.pick(entry, refused)
        return address or self._replicas.last(name, await self._confirmed(name), refused)

    async def _service(self, name: str) -> ServiceEntry:
        """Return what is known of a service, newly confirmed if the registry answers.

        Raises:
            UnknownServiceError: The registry has never heard of it.
            NoReplicaError: Nothing is known and the registry does not answer.
        """
        known = self._services.get(name)
        if known is not None:
            self._replicas.asking(known)
        try:
            target = f"/replicas?service={quote(name, safe='')}"
            tag = known.tag if known else ""
            answer = await self._ask(target, f"service {name!r}", tag, patient=known is None)
        except NoReplicaError:
            if known is None:
                raise
            return known
        entry = self._replicas.answered(name, answer)
        if known is not None and entry is not known:
            # They would not be used again, nor would it be noticed that they have been closed.
            self._idle.tidy(known.listed.keys() - entry.listed.keys())
        return entry

    async def _database(self, name: str) -> str:
        """Return the URI of a database, the name inside the server included.

        Raises:
            UnknownDatabaseError: The registry has no such database.
            NoReplicaError: The registry has to be asked and does not answer.
        """
        uri, until = self._databases.get(name, ("", 0.0))
        now = time.monotonic()
        if now < until:
            return uri
        about = f"database {name!r}"
        if uri:
            # Others go on with the old one meanwhile.
            self._databases[name] = uri, now + self._ttl
        try:
            answer = await self._ask(f"/databases?name={quote(name, safe='')}", about, patient=not uri)
        except NoReplicaError:
            if not uri:
                raise
            return uri
        if answer.status == 200:
            uri = answer.fields["uri"]
            self._databases[name] = uri, time.monotonic() + self._ttl
        elif not uri:
            # One that is known stays valid: a registry forgets databases only if it has been restarted.
            if answer.status == 404:
                raise UnknownDatabaseError(answer.reason)
            raise NoReplicaError(answer.reason, where=about)
        return uri

    async def _ask(self, target: str, about: str, tag: str = "", *, patient: bool) -> Answer:
        """Return the registry's answer.

        Args:
            target: Path and query.
            about: What it is about, for messages.
            tag: Of what is known; the answer has status 304 if it still holds.
            patient: Whether nothing can be done without an answer.

        Raises:
            NoReplicaError: There is none (yet).
        """
        if self._silent and not patient and time.monotonic() < self._try_again and target not in self._open:
            raise NoReplicaError(f"the registry at {self._url} does not answer", where=about)
        request = RawRequest("GET", target, {**self._headers, "If-None-Match": tag} if tag else self._headers)
        give_up = time.monotonic() + (FIRST_SECONDS if patient and not self._silent else 0.0)
        while True:
            last = time.monotonic() + _PAUSE >= give_up
            try:
                answer = await self._exchange(request, patient=patient)
            except (OSError, BrokenError, CommunicationError) as problem:
                self._try_again = time.monotonic() + _AGAIN_SECONDS
                if last:
                    why = " ".join(str(problem).split()) or "no answer in time"
                    message = f"the registry at {self._url} does not answer: {why}"
                    self._note(silent=True, message=message)
                    raise NoReplicaError(message, where=about) from problem
            else:
                self._note(silent=False, message=f"the registry at {self._url} answers again")
                if last or answer.status != 404 or not answer.learning:
                    return answer
            await self._pause(_PAUSE)

    def _note(self, *, silent: bool, message: str) -> None:
        """Log that an outage has begun or ended, once: every call of every worker would repeat it."""
        if silent is not self._silent:
            self._silent = silent
            _log.warning("%s", message)
