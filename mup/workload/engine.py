"""How do many clients run at once, and what is recorded of them?

One *round*: `clients` users start spread over the warm-up, then a window opens; cycles that begin in the
window count. When it closes, users go on until every counted cycle is complete, so that the last ones see the
same load as the first ones; then thinking users are sent home and the others finish their cycle.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import random
import sys
import time
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from mup.errors import CommunicationError, DeploymentError, MupError, UsageError
from mup.events.ids import new_id
from mup.events.record import FAILED, Event
from mup.workload.calls import CallStats, ClientCommunication, EventLog, Network
from mup.workload.client import Client, ThinkTime
from mup.workload.result import Cycle, EndpointStats, LoadResult

__all__ = ["Engine", "Settings", "check_scenario"]

DRAIN_SECONDS = 60.0
"""How long cycles begun in the window may take after its end before they count as failed."""
FAILURE_PAUSE = 0.1
"""A failed cycle has usually not thought: without a pause a dead system would be hammered."""
EMPTY_CYCLES = 100
"""So many cycles of one client in a row without a call and without a pause are a spinning scenario."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One round.

    Attributes:
        clients: Concurrent users.
        duration, warmup: Seconds.
        seed: Of everything random in clients.
        think_scale: Factor on all think times.
    """

    clients: int
    duration: float
    warmup: float
    seed: int = 0
    think_scale: float = 1.0

    def __post_init__(self) -> None:
        if self.clients < 1:
            raise UsageError(f"clients must be >= 1, got {self.clients!r}")
        if not 0 < self.duration < float("inf"):
            raise UsageError(f"duration must be > 0 seconds, got {self.duration!r}")
        if not 0 <= self.warmup < float("inf"):
            raise UsageError(f"warmup must be >= 0 seconds, got {self.warmup!r}")
        if not 0 <= self.think_scale < float("inf"):
            raise UsageError(f"think_scale must be >= 0, got {self.think_scale!r}")


class Engine:
    """The clients of one process. To be used on the event loop it was created on.

    Args:
        client: The user's class.
        registry_url: Where services are found.
        log: Where events go.
    """

    def __init__(self, client: type[Client], registry_url: str, log: EventLog) -> None:
        self._client = client
        self._registry_url = registry_url
        self._log = log

    async def run(self, settings: Settings, tell: Callable[[str], None]) -> LoadResult:
        """Run one round.

        Args:
            settings: Of the round.
            tell: Called with ``open`` and ``close`` when the window does so.

        Raises:
            DeploymentError: A client's setup failed, or its scenario spins.
            NoReplicaError: The registry does not answer.
        """
        network = Network(self._registry_url, self._log, settings.seed)
        try:
            await network.learn()
            return await _Round(self._client, network, settings, tell).run()
        finally:
            await network.close()
            if self._log.writer is not None:
                self._log.writer.flush()


class _SentHome(BaseException):
    """Ends a thinking client; not an ``Exception``, so that scenarios do not swallow it."""


class _Round:
    def __init__(
        self, client: type[Client], network: Network, settings: Settings, tell: Callable[[str], None]
    ) -> None:
        self.network = network
        self.settings = settings
        self.log = network.log
        self._client = client
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self.window_start = time.monotonic_ns() + int(settings.warmup * 1e9)
        self.window_end = self.window_start + int(settings.duration * 1e9)
        network.window_start, network.window_end = self.window_start, self.window_end
        self.stopping = False
        self.lateness: list[float] = []
        self._closed = False
        self._counted = 0
        self._over = self._loop.create_future()
        self._cycles: list[Cycle] = []
        self._completions: list[int] = []
        self._errors = 0
        self._first_error = ""
        self._cpu_open = self._cpu_close = 0.0
        self._users: list[_User] = []

    async def run(self) -> LoadResult:
        settings = self.settings
        starts = random.Random(f"starts {settings.seed}")
        self._loop.call_later(settings.warmup, self._open)
        self._loop.call_later(settings.warmup + settings.duration, self._close)
        tasks = []
        for index in range(settings.clients):
            client = self._client()
            client.index = index
            client.random = random.Random(f"client {settings.seed} {index}")
            user = _User(self, client, starts.uniform(0.0, settings.warmup))
            client._thinker = user  # noqa: SLF001 - Client and driver are one thing
            self._users.append(user)
            tasks.append(asyncio.create_task(user.live()))
        failure = await self._until_over(tasks)
        self.stop()
        await self._drain(tasks)
        if failure is not None:
            raise failure
        return self._result()

    def count(self) -> None:
        """A cycle has begun in the window."""
        self._counted += 1

    def record(self, cycle: Cycle, end: int, *, counted: bool, error: BaseException | None) -> None:
        """A cycle has ended."""
        if error is None:
            if counted:
                self._cycles.append(cycle)
            if self.window_start <= end < self.window_end:
                self._completions.append(end)
        elif counted:
            self._errors += 1
        if error is not None and not self._first_error:
            self._first_error = _describe(error)
        if counted:
            self._counted -= 1
            self._check()

    def stop(self) -> None:
        """Let every client end: thinking ones now, others at the end of their cycle."""
        self.stopping = True
        for user in self._users:
            user.wake()

    def _open(self) -> None:
        self._cpu_open = time.process_time()
        self._tell("open")

    def _close(self) -> None:
        self._cpu_close = time.process_time()
        self._closed = True
        self._tell("close")
        self._check()

    def _check(self) -> None:
        if self._closed and self._counted == 0 and not self._over.done():
            self._over.set_result(None)

    async def _until_over(self, tasks: list[asyncio.Task[None]]) -> BaseException | None:
        """Wait for the last counted cycle; return the failure of a client, which ends everything."""
        limit = self.settings.warmup + self.settings.duration + DRAIN_SECONDS
        watched: set[asyncio.Future[None]] = {self._over, *tasks}
        deadline = self._loop.time() + limit
        while not self._over.done():
            done, watched = await asyncio.wait(
                watched, timeout=deadline - self._loop.time(), return_when=asyncio.FIRST_COMPLETED
            )
            for future in done - {self._over}:
                failure = None if future.cancelled() else future.exception()
                if failure is not None:
                    return failure
            if not done:
                self._errors += self._counted
                self._first_error = self._first_error or (
                    f"{self._counted} cycles did not end within {DRAIN_SECONDS:g} s after the window"
                )
                for task in tasks:
                    task.cancel()
                break
        return None

    async def _drain(self, tasks: list[asyncio.Task[None]]) -> None:
        _, late = await asyncio.wait(tasks, timeout=DRAIN_SECONDS)
        for task in late:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _result(self) -> LoadResult:
        return LoadResult(
            clients=self.settings.clients,
            seed=self.settings.seed,
            start_ns=self.window_start,
            end_ns=self.window_end,
            cycles=tuple(sorted(self._cycles)),
            completions=tuple(sorted(self._completions)),
            errors=self._errors,
            first_error=self._first_error,
            endpoints={name: _endpoint(stats) for name, stats in sorted(self.network.stats.items())},
            cpu_seconds=self._cpu_close - self._cpu_open,
            think_lateness=tuple(self.lateness),
        )


class _User:
    """One client's life: wait for its turn, set up, cycle, tear down."""

    def __init__(self, owner: _Round, client: Client, start: float) -> None:
        self._round = owner
        self._client = client
        self._start = start
        self._comm = ClientCommunication(owner.network)
        self._loop = asyncio.get_running_loop()
        self._pauses: set[asyncio.Future[None]] = set()
        # Not the client's own random numbers: what it draws must not depend on how often it thinks.
        self._random = random.Random(f"think {owner.settings.seed} {client.index}")
        self._thought = 0.0
        self._paused = False
        self._name = 0

    async def live(self) -> None:
        with contextlib.suppress(_SentHome):
            await self._pause(self._start)
            await self._once("setup")
            try:
                await self._cycles()
            finally:
                await self._once("teardown")

    def wake(self) -> None:
        """End every pause of this user."""
        for pause in self._pauses:
            if not pause.done():
                pause.set_exception(_SentHome())

    def think(self, seconds: float, distribution: ThinkTime) -> Awaitable[None]:
        """Start a think time; see `Client.think`."""
        # Above this: Client.think, and above that, the scenario.
        site = self._round.log.site("call", 2) if self._round.log.writer is not None else 0
        wanted = seconds * self._round.settings.think_scale
        if distribution == "exponential" and wanted > 0:
            wanted = self._random.expovariate(1.0 / wanted)
        return self._think(wanted, site)

    async def _think(self, wanted: float, site: int) -> None:
        writer, comm = self._round.log.writer, self._comm
        if writer is not None:
            writer.write(Event.THINK_START, comm.request, comm.trace, 0, site, self._name)
        start = time.monotonic_ns()
        if wanted > 0:
            self._paused = True
            await self._pause(wanted)
        realised = (time.monotonic_ns() - start) * 1e-9
        if writer is not None:
            writer.write(Event.THINK_END, comm.request, comm.trace, 0, site, self._name)
        self._thought += realised
        if self._round.window_start <= start < self._round.window_end:
            self._round.lateness.append(realised - wanted)

    async def _pause(self, seconds: float) -> None:
        if self._round.stopping:
            raise _SentHome
        pause: asyncio.Future[None] = self._loop.create_future()
        self._pauses.add(pause)
        timer = self._loop.call_later(seconds, _release, pause)
        try:
            await pause
        finally:
            timer.cancel()
            self._pauses.discard(pause)

    async def _cycles(self) -> None:
        owner, comm = self._round, self._comm
        writer = owner.log.writer
        self._name = owner.log.name(f"{type(self._client).__name__}.scenario")
        empty = 0
        while not owner.stopping:
            comm.begin(new_id(), new_id())
            self._thought = 0.0
            self._paused = False
            error: Exception | None = None
            start = time.monotonic_ns()
            counted = owner.window_start <= start < owner.window_end
            if counted:
                owner.count()
            if writer is not None:
                writer.write(Event.BEGIN, comm.request, comm.trace, 0, 0, self._name, time=start)
            try:
                await self._client.scenario(comm)
            except Exception as caught:  # noqa: BLE001 - scenarios are users' code
                error = caught
                if writer is not None:
                    writer.write(Event.ERROR, comm.request, comm.trace, 0, 0, self._name, FAILED)
            end = time.monotonic_ns()
            if writer is not None:
                flags = FAILED if error is not None else 0
                writer.write(Event.DONE, comm.request, comm.trace, 0, 0, self._name, flags, time=end)
            owner.record(Cycle(start, (end - start) * 1e-9, self._thought), end, counted=counted, error=error)
            if isinstance(error, UsageError):
                raise error
            if error is not None:
                await self._pause(FAILURE_PAUSE)
            elif comm.calls or self._paused:
                empty = 0
            else:
                empty += 1
                if empty == EMPTY_CYCLES:
                    raise DeploymentError(
                        f"{type(self._client).__name__}.scenario neither calls nor thinks: it would spin",
                        hint="add 'await comm.call(...)' or 'await self.think(seconds)'",
                    )
                await asyncio.sleep(0)

    async def _once(self, name: str) -> None:
        """Run setup or teardown as an execution of its own, if the class has one."""
        kind = type(self._client)
        if getattr(kind, name) is getattr(Client, name):
            return
        comm, writer = self._comm, self._round.log.writer
        self._name = self._round.log.name(f"{kind.__name__}.{name}")
        comm.begin(new_id(), new_id())
        if writer is not None:
            writer.write(Event.BEGIN, comm.request, comm.trace, 0, 0, self._name)
        try:
            await getattr(self._client, name)(comm)
        except Exception as error:
            raise DeploymentError(f"{kind.__name__}.{name} failed: {_describe(error)}") from error
        finally:
            if writer is not None:
                writer.write(Event.DONE, comm.request, comm.trace, 0, 0, self._name)


def _release(pause: asyncio.Future[None]) -> None:
    if not pause.done():
        pause.set_result(None)


def _endpoint(stats: CallStats) -> EndpointStats:
    mean = stats.seconds / stats.count if stats.count else None
    return EndpointStats(count=stats.count, mean_seconds=mean, errors=stats.errors)


def _describe(error: BaseException) -> str:
    """Return one line; for a mistake in the scenario also show where, once, on standard error."""
    if isinstance(error, CommunicationError | UsageError):
        return error.message
    traceback.print_exception(error, file=sys.stderr)
    text = error.message if isinstance(error, MupError) else str(error)
    return f"{type(error).__name__}: {text}"


def check_scenario(kind: object, target: str) -> type[Client]:
    """Return the class if it is a client that can be run.

    Raises:
        UsageError: It is none, or its scenario is not ``async def``.
    """
    if not (isinstance(kind, type) and issubclass(kind, Client)):
        raise UsageError(f"{target} is not a subclass of mup.Client, but {kind!r}")
    if kind.scenario is Client.scenario:
        raise UsageError(f"{target} has no scenario", hint="define 'async def scenario(self, comm)'")
    for name in ("setup", "scenario", "teardown"):
        if not inspect.iscoroutinefunction(getattr(kind, name)):
            raise UsageError(f"{target}.{name} must be 'async def'")
    return kind
