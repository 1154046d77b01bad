"""Replicas a call may go to, by what the registry last said and what calls have found out since.

Nothing here waits or sends; how the registry is asked is said in `mup.runtime.client.registry`.

- A replica is picked uniformly at random from the list.
- One that cannot be reached, or does not serve, is *dropped*: it is not picked for `DROPPED_SECONDS`, unless
  it has registered anew or there is no other. By then the registry has noticed, too, if it is dead.
- While the registry does not answer, its last list stays valid. One that has been restarted and does not know
  all replicas yet removes none from the list.
- Of a registry with TLS, replicas without are not believed: everything of a deployment is encrypted, or
  nothing is.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

import msgspec

from mup.errors import CommunicationError, NoReplicaError, UnknownServiceError
from mup.routes import CallRoutes
from mup.runtime.client.reply import BrokenError, RawResponse
from mup.runtime.client.request import Address, address_of

__all__ = ["CACHE_SECONDS", "DROPPED_SECONDS", "Answer", "Replicas", "ServiceEntry"]

_log = logging.getLogger("mup.runtime")

CACHE_SECONDS = 1.0
"""How long an answer of the registry is used before it is asked again, unless it is set otherwise."""
DROPPED_SECONDS = 3.0
"""As long as a registry needs, by its default expiry, to notice that a replica is dead."""
_NAMED = 5
"""Replicas that a message names at most."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Status, name of the list (if it is one), and content; no content if nothing has changed."""

    status: int
    tag: str
    fields: dict[str, Any]

    @classmethod
    def of(cls, response: RawResponse) -> Answer:
        """Return what a registry has answered.

        Raises:
            BrokenError: That is no registry.
        """
        try:
            fields = msgspec.json.decode(response.body) if response.status != 304 else {}
        except msgspec.DecodeError as error:
            raise BrokenError(f"not JSON: {error}") from error
        if not isinstance(fields, dict):
            raise BrokenError("not a JSON object")
        return cls(response.status, response.headers.get("etag", ""), fields)

    @property
    def learning(self) -> bool:
        """Whether the registry has just started, and need not know all replicas yet."""
        return bool(self.fields.get("learning"))

    @property
    def reason(self) -> str:
        """Why it is no answer."""
        return str(self.fields.get("error", f"the registry answered {self.status}"))


@dataclass(slots=True)
class ServiceEntry:
    """What is known about one service.

    Attributes:
        addresses: Of the replicas to choose from.
        routes: Its endpoints.
        fresh_until: Seconds of the monotonic clock.
        listed: Registration id by address: what the registry said, dropped ones included.
        before: Those of them that the registry's last run has listed, while this one does not know all.
        tag: Begins with the run of the registry, and names that list; the registry need not repeat it.
        left_out: Why the first of the replicas that cannot be called cannot.
        base: Path in front of every path; None = it is a service of mup.

    Invariant: ``addresses`` are some of ``listed`` (outside of mup there is just one), and ``before`` is
    part of it. Entries are replaced, not changed, but for ``addresses`` and ``fresh_until``: so threads read
    one without a lock.
    """

    addresses: list[Address]
    routes: CallRoutes
    fresh_until: float = 0.0
    listed: dict[Address, str] = field(default_factory=dict)
    before: dict[Address, str] = field(default_factory=dict)
    tag: str = ""
    left_out: str = ""
    base: str | None = None


class Replicas:
    """The lists of one process; every thread of a worker may ask.

    Args:
        ttl: Seconds an answer is used before the registry is asked again; 0 = for every call.
        encrypted: Whether the registry is asked over TLS.
        draw: Returns a random number from 0 to 1.

    Attributes:
        services: By name.
    """

    def __init__(self, ttl: float, *, encrypted: bool, draw: Callable[[], float] = random.random) -> None:
        self.services: dict[str, ServiceEntry] = {}
        self._ttl = ttl
        self._encrypted = encrypted
        self._draw = draw
        # Registrations that could not be reached, and until when that counts.
        self._dropped: dict[tuple[Address, str], float] = {}

    def asking(self, entry: ServiceEntry) -> None:
        """Note that the registry is asked for a service: others go on with the old list meanwhile."""
        entry.fresh_until = time.monotonic() + self._ttl

    def answered(self, name: str, answer: Answer) -> ServiceEntry:
        """Take what the registry has answered about a service.

        Raises:
            UnknownServiceError: The registry has never heard of it.
            NoReplicaError: Nothing is known, and it does not say.
        """
        known = self.services.get(name)
        if answer.status == 200:
            known = self.services[name] = self._entry(answer, known)
        elif known is None:
            unknown = answer.status == 404 and not answer.learning
            raise (UnknownServiceError if unknown else NoReplicaError)(answer.reason)
        # Else: unchanged; or a registry that was restarted and has not heard of the service yet.
        self.asking(known)
        if self._dropped:
            self._forgive(known)
        return known

    def pick(self, entry: ServiceEntry, refused: Collection[Address] = ()) -> Address | None:
        """Return a replica, uniformly at random; None = none is left.

        Args:
            entry: Of the service.
            refused: Replicas not to pick: they did not serve this call just now.
        """
        addresses = entry.addresses
        if refused:
            addresses = [address for address in addresses if address not in refused]
        return addresses[int(self._draw() * len(addresses))] if addresses else None

    def last(self, name: str, entry: ServiceEntry, refused: Collection[Address]) -> Address:
        """Return a replica although none is left: one that has failed for another call is better than none.

        Raises:
            NoReplicaError: There is none.
        """
        left = [address for address in entry.addresses or entry.listed if address not in refused]
        if left:
            return left[int(self._draw() * len(left))]
        tried = ", ".join(f"{host}:{port}" for host, port in list(refused)[:_NAMED])
        tried += f" and {len(refused) - _NAMED} more" if len(refused) > _NAMED else ""
        why = f"{tried} cannot be reached" if tried else entry.left_out
        raise NoReplicaError(f"service {name!r} has no live replica" + (f" ({why})" if why else ""))

    def drop(self, name: str, address: Address) -> None:
        """Do not pick a replica any more: it could not be reached, or does not serve."""
        entry = self.services.get(name)
        if entry is not None and address in entry.listed:
            self._dropped[address, entry.listed[address]] = time.monotonic() + DROPPED_SECONDS
            entry.addresses = [other for other in entry.addresses if other != address]

    def _entry(self, answer: Answer, known: ServiceEntry | None) -> ServiceEntry:
        fields = answer.fields
        listed: dict[Address, str] = {}
        left_out = ""
        for replica in fields["replicas"]:
            try:
                listed[address_of(replica["url"], encrypted=self._encrypted)] = str(replica["id"])
            except CommunicationError as error:
                left_out = left_out or error.message
        if left_out:
            # Once per list: there may be thousands.
            more = len(fields["replicas"]) - len(listed) - 1
            others = f" (and {more} more)" if more else ""
            _log.warning("a replica of %r is left out: %s%s", fields["service"], left_out, others)
        before: dict[Address, str] = {}
        if known is not None and answer.learning:
            run = answer.tag.partition(".")[0]
            before = known.before if known.tag.startswith(f"{run}.") else known.listed
            listed = {**before, **listed}
        endpoints = fields["endpoints"]
        same = known is not None and known.routes.endpoints == endpoints
        routes = known.routes if known is not None and same else CallRoutes(endpoints)
        return ServiceEntry(list(listed), routes, 0.0, listed, before, answer.tag, left_out)

    def _forgive(self, entry: ServiceEntry) -> None:
        """Choose from what the registry lists, except from what could not be reached lately."""
        now = time.monotonic()
        for dropped, until in list(self._dropped.items()):
            if now >= until:
                self._dropped.pop(dropped, None)
        entry.addresses = [item[0] for item in entry.listed.items() if item not in self._dropped]
