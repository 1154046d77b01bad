"""What do all calls of an event loop share? Connections, lists of replicas, the log, figures per endpoint."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from array import array
from collections.abc import Collection, Coroutine, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from mup.errors import CommunicationError, NoReplicaError, UnknownServiceError, did_you_mean
from mup.routes import CallRoutes
from mup.runtime.client.events import EventLog
from mup.runtime.client.replicas import CACHE_SECONDS, MOMENT, Answer, Replicas, ServiceEntry, question
from mup.runtime.client.reply import BrokenError
from mup.runtime.client.request import Address, RawRequest, address_of
from mup.runtime.client.streams import Lines
from mup.runtime.run_token import find_token

if TYPE_CHECKING:
    from mup.runtime.client.retries import Retries

__all__ = ["CallStats", "Network"]

REGISTRY_SECONDS = 5.0


class CallStats:
    """Calls of one endpoint in the window: when the answered ones began (ns), their seconds; failures."""

    __slots__ = ("errors", "seconds", "starts")

    def __init__(self) -> None:
        self.starts = array("q")
        self.seconds = array("d")
        self.errors = 0


class Network:
    """To be created on the event loop it is used on, and closed.

    Args:
        registry_url: Where the registry listens; "" = there is none.
        log: Where events go.
        seed: Of the choice of replicas.
        externals: Base URLs of services outside of mup, by name; they are not asked for.
        cache: Seconds a list of replicas is used before it is asked for again; 0 = every call asks.
        connect_seconds: How long a call tries to connect to one replica before it goes to another one; None =
            as long as the call may take: under load, whom nobody accepts yet has to wait.

    Attributes:
        log: Where events go.
        silent: Log of executions that are not logged.
        lines: Connections.
        connect_seconds: See above.
        stats: Per endpoint (``A/epA/``), the calls begun between ``window_start`` and ``window_end``.
        retries: Decides which calls of services are made again; None = none is.
    """

    def __init__(
        self,
        registry_url: str,
        log: EventLog,
        seed: int,
        externals: Mapping[str, str],
        cache: float = CACHE_SECONDS,
        connect_seconds: float | None = None,
    ) -> None:
        self.log = log
        self.silent = EventLog(None, Path())
        self.lines = Lines()
        self.connect_seconds = connect_seconds
        self.stats: dict[str, CallStats] = {}
        self.window_start = self.window_end = 0
        self.retries: Retries | None = None
        self._always = cache == 0
        self._registry_url = registry_url.rstrip("/")
        draw = random.Random(f"replicas {seed}").random
        self._replicas = Replicas(cache, encrypted=registry_url.startswith("https:"), draw=draw)
        self._externals = {
            name: ServiceEntry([address_of(url)], CallRoutes({}), base=urlsplit(url).path.rstrip("/"))
            for name, url in externals.items()
        }
        self._asking: dict[str, asyncio.Task[ServiceEntry]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def learn(self) -> None:
        """Ask for every service once, so that the first cycle finds what all others find.

        Raises:
            NoReplicaError: The registry does not answer.
        """
        if not self._registry_url:
            return
        after: str | None = ""
        while after is not None:
            page = f"?after={quote(after, safe='')}" if after else ""
            answer = await self._get(f"/services{page}", "the registry")
            if answer.status != 200:
                raise NoReplicaError(answer.reason, where="the registry")
            names = [name for name, live in answer.fields["services"].items() if live]
            await asyncio.gather(*(self._ask(name) for name in names))
            after = answer.fields.get("next")

    def known(self, service: str) -> ServiceEntry | None:
        """Return what is known of a service; what is old is refreshed in the background."""
        entry = self._replicas.services.get(service)
        if entry is None:
            return self._externals.get(service)
        if not self._always and time.monotonic() > entry.fresh_until:
            self._ask(service)
        return entry

    def is_external(self, service: str) -> bool:
        """Return whether a name is that of a service outside of mup."""
        return service in self._externals

    async def find(self, service: str) -> ServiceEntry:
        """Return what is known of a service, asking the registry if that is nothing.

        Raises:
            UnknownServiceError: The registry has never heard of it.
            NoReplicaError: Nothing is known and the registry does not answer.
        """
        entry = self.known(service)
        return await asyncio.shield(self._ask(service)) if entry is None else entry

    def choose_now(self, service: str, refused: Collection[Address]) -> Address | None:
        """Return a replica for a call; None = the registry has to be asked first."""
        entry = self.known(service)
        if entry is None or (self._always and entry.base is None and not refused):
            return None
        return self._replicas.pick(entry, refused)

    async def choose(self, service: str, refused: Collection[Address]) -> Address:
        """Return a replica for a call.

        Raises:
            NoReplicaError: There is none.
        """
        entry = await self.find(service)
        if entry.base is not None:
            address = self._replicas.pick(entry, refused)
            if address is None:
                host, port = entry.addresses[0]
                raise NoReplicaError(f"{service!r} at {host}:{port} refuses connections")
            return address
        if self._always:
            # While the registry is silent, what it said last is better than nothing.
            with contextlib.suppress(NoReplicaError, TimeoutError):
                async with asyncio.timeout(MOMENT):
                    entry = await asyncio.shield(self._ask(service))
        address = self._replicas.pick(entry, refused)
        if address is None:
            entry = await asyncio.shield(self._ask(service))
            address = self._replicas.pick(entry, refused) or self._replicas.last(service, entry, refused)
        return address

    def drop(self, name: str, address: Address) -> None:
        """Do not choose a replica of a service any more."""
        self._replicas.drop(name, address)

    def forget(self, address: Address) -> None:
        """Close the idle connections to a server."""
        self.lines.forget(address)

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Let a call go on until it waits for its callee, even if nobody waits for it."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Give up what is under way and close every connection."""
        tasks = [*self._tasks, *self._asking.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.lines.close()

    def _ask(self, service: str) -> asyncio.Task[ServiceEntry]:
        """One question about a service at a time, however many clients wait for the answer."""
        task = self._asking.get(service)
        if task is None:
            task = self._asking[service] = asyncio.ensure_future(self._fetch(service))
            task.add_done_callback(lambda done: self._asked(service, done))
        return task

    def _asked(self, service: str, task: asyncio.Task[ServiceEntry]) -> None:
        del self._asking[service]
        if not task.cancelled():
            task.exception()  # whoever waits has it; a question in the background need not be answered

    async def _fetch(self, service: str) -> ServiceEntry:
        if not self._registry_url:
            raise UnknownServiceError(
                f"unknown service {service!r}", hint=did_you_mean(service, sorted(self._externals))
            )
        known = self._replicas.services.get(service)
        if known is not None:
            self._replicas.asking(known)
        try:
            answer = await self._get(question(service), service, known.tag if known else "")
        except NoReplicaError:
            if known is None:
                raise
            return known
        entry = self._replicas.answered(service, answer)
        if known is not None and entry is not known:
            self.lines.tidy(known.listed.keys() - entry.listed.keys())
        return entry

    async def _get(self, path: str, where: str, tag: str = "") -> Answer:
        """Return what the registry answers.

        Raises:
            NoReplicaError: It does not.
        """
        token = find_token(self._registry_url)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        if tag:
            headers["If-None-Match"] = tag
        request = RawRequest("GET", path, headers)
        try:
            address = address_of(self._registry_url)
            async with asyncio.timeout(REGISTRY_SECONDS):
                response = None
                line = self.lines.take_idle(address)
                if line is not None:
                    with contextlib.suppress(BrokenError):  # it may have been restarted
                        response = await line.ask(request)
                if line is None or response is None:
                    line = await self.lines.connect(address, REGISTRY_SECONDS)
                    response = await line.ask(request)
                self.lines.give_back(line, response)
            return Answer.of(response)
        except (OSError, BrokenError, CommunicationError) as error:
            why = " ".join(str(error).split()) or "no answer in time"
            raise NoReplicaError(
                f"the registry at {self._registry_url} does not answer: {why}",
                where=where,
                hint="is the project running? start it with 'mup run'",
            ) from error
