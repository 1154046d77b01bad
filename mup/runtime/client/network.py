"""What all calls of an event loop share: connections, lists of replicas, the log.

The registry is asked by the rules of `mup.runtime.client.registry`. What is old is confirmed in the
background, with one question about a service at a time, however many calls wait for its answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Callable, Collection, Coroutine, Mapping
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

from mup.errors import NoReplicaError, UnknownServiceError, did_you_mean
from mup.routes import CallRoutes
from mup.runtime.client.events import EventLog
from mup.runtime.client.registry import FIRST_SECONDS, MOMENT, OPEN_SECONDS, Registry
from mup.runtime.client.replicas import CACHE_SECONDS, Answer, ServiceEntry
from mup.runtime.client.reply import BrokenError
from mup.runtime.client.request import Address, RawRequest, address_of
from mup.runtime.client.streams import Lines
from mup.runtime.protocol.run_token import find_token

__all__ = ["Network"]

T = TypeVar("T")


class Network(Registry):
    """To be created on the event loop it is used on, and closed.

    Args:
        registry_url: Where the registry listens; "" = there is none.
        log: Where events go.
        seed: Of the choice of replicas.
        externals: Base URLs of services outside of mup, by name; they are not asked for.
        cache: Seconds a list of replicas is used before it is asked for again; 0 = every call asks.
        connect_seconds: How long a call tries to connect to one replica before it goes to another one; None =
            as long as the call may take: under load, a connection may wait to be accepted.
        token: What the registry wants to see; "" = what the environment says, or its run has kept.
        databases: URIs that need not be asked for, by name.

    Attributes:
        log: Where events go.
        silent: Log of executions that are not logged.
        lines: Connections.
        connect_seconds: See above.
    """

    def __init__(
        self,
        registry_url: str,
        log: EventLog,
        seed: int,
        externals: Mapping[str, str],
        cache: float = CACHE_SECONDS,
        connect_seconds: float | None = None,
        token: str = "",
        databases: Mapping[str, str] | None = None,
    ) -> None:
        self.lines = Lines()
        super().__init__(
            registry_url.rstrip("/"),
            self.lines,
            ttl=cache,
            token=token or find_token(registry_url),
            databases=databases,
            draw=random.Random(f"replicas {seed}").random,
        )
        self.log = log
        self.silent = EventLog(None, Path())
        self.connect_seconds = connect_seconds
        # They stand among the services of mup, and are never too old.
        for name, url in externals.items():
            base, always = urlsplit(url).path.rstrip("/"), float("inf")
            self._services[name] = ServiceEntry([address_of(url)], CallRoutes({}), always, base=base)
        self._asking: dict[tuple[str, str], asyncio.Task[Any]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()

    async def learn(self) -> None:
        """Ask for every service once, so that the first cycle finds what all others find.

        Raises:
            NoReplicaError: The registry does not answer.
        """
        after: str | None = ""
        while self._url and after is not None:
            page = f"?after={quote(after, safe='')}" if after else ""
            try:
                answer = await self._ask(f"/services{page}", "the registry", patient=False)
            except NoReplicaError as error:
                error.hint = "is the project running? start it with 'mup run'"
                raise
            if answer.status != 200:
                raise NoReplicaError(answer.reason, where="the registry")
            names = [name for name, live in answer.fields["services"].items() if live]
            await asyncio.gather(*(self.find(name) for name in names))
            after = answer.fields.get("next")

    def known(self, service: str) -> ServiceEntry | None:
        """Return what is known of a service; what is old is refreshed in the background."""
        entry = self._services.get(service)
        if entry is not None and self._ttl and time.monotonic() > entry.fresh_until:
            self._begin(self._service, service)
        return entry

    def is_external(self, service: str) -> bool:
        """Return whether a name is that of a service outside of mup."""
        entry = self._services.get(service)
        return entry is not None and entry.base is not None

    async def find(self, service: str) -> ServiceEntry:
        """Return what is known of a service, asking the registry if that is nothing.

        Raises:
            UnknownServiceError: The registry has never heard of it.
            NoReplicaError: Nothing is known and the registry does not answer.
        """
        return self.known(service) or await self._confirmed(service)

    def choose_now(self, service: str, refused: Collection[Address]) -> Address | None:
        """Return a replica for a call; None = the registry has to be asked first."""
        entry = self.known(service)
        if entry is None or (not self._ttl and entry.base is None and not refused):
            return None
        return self._replicas.pick(entry, refused)

    async def choose(self, service: str, refused: Collection[Address]) -> Address:
        """Return a replica for a call; see `Registry._choose`."""
        return await self._choose(service, refused)

    async def database(self, name: str) -> str:
        """Return the URI of a database; see `Registry._database`."""
        uri, _ = self._databases.get(name, ("", 0.0))
        return await self._in_a_moment(self._database, name, uri)

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Let a call go on until it waits for its callee, or a query, even if the result is not awaited."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        """Give up what is under way and close every connection."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.lines.close()

    def _begin(self, ask: Callable[[str], Coroutine[Any, Any, T]], name: str) -> asyncio.Task[T]:
        """Ask about a service or database, unless a question about it is open."""
        about = ask.__name__, name
        task = self._asking.get(about)
        if task is None:
            task = self._asking[about] = self.start(ask(name))
            task.add_done_callback(lambda done: self._answered(about, done))
        return task

    def _answered(self, about: tuple[str, str], task: asyncio.Task[Any]) -> None:
        del self._asking[about]
        if not task.cancelled():
            task.exception()  # those that wait have it; a question in the background need not be answered

    async def _in_a_moment(
        self, ask: Callable[[str], Coroutine[Any, Any, T]], name: str, known: T | None
    ) -> T:
        """Return what the registry answers; of what is known, if it does not do so in a moment, that."""
        answer = asyncio.shield(self._begin(ask, name))
        if not known:
            return await answer
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(MOMENT):
                return await answer
        return known

    async def _confirmed(self, name: str) -> ServiceEntry:
        known = self._services.get(name)
        if known is not None and known.base is not None:
            return known  # the registry knows nothing of it
        if not self._url:
            hint = did_you_mean(name, sorted(self._services))
            raise UnknownServiceError(f"unknown service {name!r}", hint=hint)
        return await self._in_a_moment(self._service, name, known)

    async def _pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def _exchange(self, request: RawRequest, *, patient: bool) -> Answer:
        # A question that no call need wait for stays open in the background.
        seconds = FIRST_SECONDS if patient else OPEN_SECONDS
        async with asyncio.timeout(seconds):
            response = None
            line = self.lines.take_idle(self._address)
            if line is not None:
                with contextlib.suppress(BrokenError):  # the registry may have been restarted
                    response = await line.ask(request)
            if line is None or response is None:
                line = await self.lines.connect(self._address, seconds)
                response = await line.ask(request)
            self.lines.give_back(line, response)
        return Answer.of(response)
