"""Run many clients at once, and record their cycles.

One *round*: load begins, and after the warm-up a window opens; cycles that begin in the window count. When it
closes, the load goes on until every counted cycle is complete, so that the last ones see the same load as the
first ones; then thinking users are sent home and the others finish their cycle.

Closed: users start spread over the warm-up and cycle. Open: each arrival is one cycle; it counts if it
*should* have begun in the window.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import random
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from mup.errors import CommunicationError, DeploymentError, MupError, UsageError
from mup.events.ids import new_id
from mup.events.record import FAILED, Event
from mup.runtime.client.events import EventLog
from mup.runtime.client.network import Network
from mup.workload.arrivals import Arrivals
from mup.workload.call_window import CallWindow
from mup.workload.client import Client, ThinkTime
from mup.workload.result import Cycle, LoadResult
from mup.workload.scenario import ClientCommunication
from mup.workload.starts import start_share
from mup.workload.timers import Timers
from mup.workload.times_file import read_times

__all__ = ["DRAIN_SECONDS", "Engine", "Settings", "check_scenario"]

DRAIN_SECONDS = 60.0
"""Cycles begun in the window count as failed if after its end none of them ends for so long."""
DRAIN_THINKS = 100.0
"""So many times the longest think time is added: a thinking user has not failed, an endless scenario has."""
FAILURE_PAUSE = 0.1
"""A failed cycle has usually not thought: without a pause a dead system would be hammered."""
EMPTY_CYCLES = 100
"""So many cycles of one client in a row without a call and without a pause are a spinning scenario."""
PROGRESS_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One round.

    Attributes:
        clients: Concurrent users of a closed load; with ``clients_from``, when the window closes.
        duration, warmup: Seconds.
        seed: Of everything random in clients and arrivals.
        think_scale: Factor on all think times.
        clients_from: Concurrent users when the window opens: the others join (or leave) at equal distances
            during the window. None = ``clients``.
        arrivals: Of an open load, which has no ``clients``; None = closed.
    """

    clients: int = 0
    duration: float
    warmup: float
    seed: int = 0
    think_scale: float = 1.0
    clients_from: int | None = None
    arrivals: Arrivals | None = None

    def __post_init__(self) -> None:
        if self.arrivals is not None and (self.clients or self.clients_from is not None):
            raise UsageError(f"a load is open or closed: arrivals exclude clients, got {self.clients!r}")
        if self.arrivals is None and self.clients_from is None and self.clients < 1:
            raise UsageError(f"clients must be >= 1, got {self.clients!r}")
        if self.clients_from is not None and (
            min(self.clients, self.clients_from) < 0 or self.most_clients < 1
        ):
            raise UsageError(
                f"clients must be >= 0, got a ramp from {self.clients_from!r} to {self.clients!r}"
            )
        if not 0 < self.duration < float("inf"):
            raise UsageError(f"duration must be > 0 seconds, got {self.duration!r}")
        if not 0 <= self.warmup < float("inf"):
            raise UsageError(f"warmup must be >= 0 seconds, got {self.warmup!r}")
        if not 0 <= self.think_scale < float("inf"):
            raise UsageError(f"think_scale must be >= 0, got {self.think_scale!r}")

    @property
    def most_clients(self) -> int:
        """The largest number of concurrent users of a closed load."""
        return max(self.clients, self.clients_from or 0)

    @property
    def steady(self) -> bool:
        """Whether the load is meant to be the same all the time."""
        if self.arrivals is not None:
            return self.arrivals.steady
        return self.clients_from in (None, self.clients)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Settings:
        """Return what `to_json` wrote."""
        arrivals = data.get("arrivals")
        return cls(**{**data, "arrivals": None if arrivals is None else Arrivals.from_json(arrivals)})


Tell = Callable[[Mapping[str, Any]], None]


class Engine:
    """The clients of one process. To be used on the event loop it was created on.

    Args:
        client: The user's class.
        registry_url: Where services are found; "" = nowhere.
        log: Where events go.
        source: Folder that file names in scenarios are relative to.
        externals: Base URLs of services outside of mup, by name.
    """

    def __init__(
        self,
        client: type[Client],
        registry_url: str,
        log: EventLog,
        source: Path,
        externals: Mapping[str, str],
    ) -> None:
        self._client = client
        self._registry_url = registry_url
        self._log = log
        self._externals = externals
        self._recorded = cache(lambda name: read_times(source / name))

    async def run(self, settings: Settings, tell: Tell) -> LoadResult:
        """Run one round.

        Args:
            settings: Of the round.
            tell: Called with ``{"window": "open"}`` and ``{"window": "close"}`` when the window does so, and
                with ``{"progress": ...}`` about every second.

        Raises:
            DeploymentError: A client's setup failed, or its scenario spins.
            NoReplicaError: The registry does not answer.
            UsageError: A scenario uses the API in a way it cannot be used.
        """
        network = Network(self._registry_url, self._log, settings.seed, self._externals)
        timers = Timers()
        try:
            await network.learn()
            return await _Round(self._client, network, timers, settings, tell, self._recorded).run()
        finally:
            await network.close()
            timers.close()
            if self._log.writer is not None:
                self._log.writer.flush()


class _SentHome(BaseException):
    """Ends a thinking client; not an ``Exception``, so that scenarios do not swallow it."""


class _Round:
    def __init__(
        self,
        client: type[Client],
        network: Network,
        timers: Timers,
        settings: Settings,
        tell: Tell,
        recorded: Callable[[str], tuple[float, ...]],
    ) -> None:
        self.network = network
        self.timers = timers
        self.settings = settings
        self.recorded = recorded
        self.log = network.log
        self._client = client
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self.begin = time.monotonic_ns()
        self.window_start = self.begin + int(settings.warmup * 1e9)
        self.window_end = self.window_start + int(settings.duration * 1e9)
        self.calls = CallWindow(self.window_start, self.window_end)
        self.stopping = False
        self.lateness: list[float] = []
        self.wanted_thinks = 0.0
        self.longest_think = 0.0
        self._closed = False
        # Whether every cycle of the window has begun: an arrival may be late.
        self._admitted = settings.arrivals is None
        self._counted = 0
        self._last_end = self.window_end
        self._over: asyncio.Future[None] = self._loop.create_future()
        self._cycles: list[Cycle] = []
        self._completions: list[int] = []
        self._errors = 0
        self._first_error = ""
        self._cpu_open = self._cpu_close = 0.0
        self._tasks: set[asyncio.Task[None]] = set()
        self._users: list[_User] = []
        self._free: list[_User] = []
        self._recent = [0, 0, 0.0]

    async def run(self) -> LoadResult:
        settings = self.settings
        self._loop.call_later(settings.warmup, self._open)
        self._loop.call_later(settings.warmup + settings.duration, self._close)
        admission: asyncio.Task[None] | None = None
        if settings.arrivals is None:
            self._start_users()
        else:
            admission = self._spawn(self._admit(settings.arrivals))
        await self._until_over()
        self.stop()
        if admission is not None:
            admission.cancel()
        await self._drain()
        # Raises what ended the round early, if anything did.
        self._over.result()
        return self._result()

    def count(self) -> None:
        """A cycle of the window has begun."""
        self._counted += 1

    def record(self, cycle: Cycle, end: int, *, counted: bool, error: BaseException | None) -> None:
        """A cycle has ended."""
        recent = self._recent
        if error is None:
            recent[0] += 1
            recent[2] += cycle.response
            if counted:
                self._cycles.append(cycle)
            if self.window_start <= end < self.window_end:
                self._completions.append(end)
        else:
            recent[1] += 1
            if counted:
                self._errors += 1
            if not self._first_error:
                self._first_error = _describe(error)
        if counted:
            self._counted -= 1
            self._last_end = max(self._last_end, end)
            self._check()

    def stop(self) -> None:
        """Let every client end: thinking ones now, others at the end of their cycle."""
        self.stopping = True
        for user in self._users:
            user.wake()

    def release(self, user: _User) -> None:
        """The user of an arrival can be used again."""
        self._free.append(user)

    def _start_users(self) -> None:
        """Let the users of a closed load begin; see the documentation of the client API for the rule."""
        settings = self.settings
        first = settings.clients if settings.clients_from is None else settings.clients_from
        most = settings.most_clients
        step = settings.duration / (most - min(first, settings.clients) or 1)
        for index in range(most):
            start = settings.warmup * start_share(settings.seed, index)
            if index >= first:
                start = settings.warmup + (index - first + 0.5) * step
            leave = None
            if index >= settings.clients:
                # The last one to come is the first one to go.
                leave = self.window_start + int((most - index - 0.5) * step * 1e9)
            self._spawn(self._user().live(self.begin + int(start * 1e9), leave))

    def _user(self) -> _User:
        index = len(self._users)
        client = self._client()
        user = _User(self, client)
        client._thinker = user  # noqa: SLF001 - Client and driver are one thing
        user.become(index)
        self._users.append(user)
        return user

    async def _admit(self, arrivals: Arrivals) -> None:
        """Let one cycle begin at each arrival."""
        settings = self.settings
        for index, at in enumerate(arrivals.times(settings.seed, settings.warmup, settings.duration)):
            intended = self.begin + int(at * 1e9)
            if intended >= self.window_end and not self._admitted:
                self._admitted = True
                self._check()
            if intended > time.monotonic_ns():
                pause: asyncio.Future[None] = self._loop.create_future()
                self.timers.wake(pause, intended)
                await pause
            else:
                # Behind time, the others still want their turn.
                await asyncio.sleep(0)
            user = self._free.pop() if self._free else self._user()
            counted = self.window_start <= intended < self.window_end
            if counted:
                self._counted += 1
            self._spawn(user.visit(index, intended, counted=counted))
        self._admitted = True
        self._check()

    def _spawn(self, life: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(life)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        failure = None if task.cancelled() else task.exception()
        if failure is not None and not self._over.done():
            self._over.set_exception(failure)

    def _open(self) -> None:
        self._cpu_open = time.process_time()
        self._tell({"window": "open"})

    def _close(self) -> None:
        self._cpu_close = time.process_time()
        self._closed = True
        self._tell({"window": "close"})
        self._check()

    def _check(self) -> None:
        if self._closed and self._admitted and self._counted == 0 and not self._over.done():
            self._over.set_result(None)

    async def _until_over(self) -> None:
        """Wait for the last counted cycle, or for a failure that ends everything."""
        while not self._over.done():
            await asyncio.wait((self._over,), timeout=PROGRESS_SECONDS)
            self._tell({"progress": self._progress()})
            limit = DRAIN_SECONDS + DRAIN_THINKS * self.longest_think
            if self._closed and not self._over.done() and time.monotonic_ns() > self._last_end + limit * 1e9:
                self._errors += self._counted
                self._first_error = self._first_error or (
                    f"{self._counted} cycles did not end within {limit:g} s after the window or another cycle"
                )
                self._over.set_result(None)
                for task in self._tasks:
                    task.cancel()

    def _progress(self) -> dict[str, Any]:
        """Return how far the round is, and what happened since the last question."""
        done, failed, seconds = self._recent
        self._recent = [0, 0, 0.0]
        return {
            "seconds": (time.monotonic_ns() - self.window_start) * 1e-9,
            "cycles": done,
            "errors": failed,
            "first_error": self._first_error,
            "response_time": seconds / done if done else None,
            "unfinished": self._counted,
            "users": len(self._users) - len(self._free),
        }

    async def _drain(self) -> None:
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=DRAIN_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        if self.settings.arrivals is not None:
            await asyncio.gather(*(user.leave() for user in self._users), return_exceptions=True)

    def _result(self) -> LoadResult:
        return LoadResult(
            clients=self.settings.most_clients,
            seed=self.settings.seed,
            start_ns=self.window_start,
            end_ns=self.window_end,
            cycles=tuple(sorted(self._cycles)),
            completions=tuple(sorted(self._completions)),
            errors=self._errors,
            first_error=self._first_error,
            endpoints=self.calls.stats(),
            cpu_seconds=self._cpu_close - self._cpu_open,
            think_lateness=tuple(self.lateness),
            think_wanted=self.wanted_thinks / len(self.lateness) if self.lateness else None,
        )


class _User:
    """One client: of a closed load for its whole life, of an open load for one arrival after the other."""

    def __init__(self, owner: _Round, client: Client) -> None:
        self._round = owner
        self._client = client
        self._comm = ClientCommunication(owner.network, client.patience, owner.calls)
        self._loop = asyncio.get_running_loop()
        self._pauses: set[asyncio.Future[None]] = set()
        client.random = random.Random()
        # Not the client's own random numbers: what it draws must not depend on how often it thinks.
        self._random = random.Random()
        self._thought = 0.0
        self._paused = False
        self._ready = False
        self._name = 0

    def become(self, index: int) -> None:
        """Take the number, and with it the random numbers, of a user or an arrival."""
        self._client.index = index
        # Whole numbers, because seeding with a text takes long; distinct for every seed, index and purpose.
        key = ((self._round.settings.seed & (1 << 64) - 1) << 64 | index) << 1
        self._client.random.seed(key)
        self._random.seed(key | 1)

    async def live(self, start: int, leave: int | None) -> None:
        """Wait for the turn, set up, cycle until the end or ``leave``, tear down."""
        with contextlib.suppress(_SentHome):
            await self._pause(start)
            await self._once("setup")
            try:
                await self._cycles(leave)
            finally:
                await self._once("teardown")

    async def visit(self, index: int, intended: int, *, counted: bool) -> None:
        """Do the one cycle of an arrival."""
        with contextlib.suppress(_SentHome):
            self.become(index)
            if not self._ready:
                before = time.monotonic_ns()
                if await self._once("setup"):
                    # Not measured: a client that prepares is not late.
                    intended += time.monotonic_ns() - before
                self._ready = True
            error = await self._cycle(intended, counted=counted)
            if isinstance(error, UsageError):
                raise error
            self._round.release(self)

    async def leave(self) -> None:
        """Tear down what visits have set up."""
        if self._ready:
            with contextlib.suppress(_SentHome):
                await self._once("teardown")

    def wake(self) -> None:
        """End every pause of this user."""
        for pause in self._pauses:
            if not pause.done():
                pause.set_exception(_SentHome())

    def think(self, seconds: float | str, distribution: ThinkTime) -> Awaitable[None]:
        """Start a think time; see `Client.think`."""
        # Above this: Client.think, and above that, the scenario.
        site = self._comm.events.site(sys._getframe(2))  # noqa: SLF001 - the only way to see who thinks
        mean = self._random.choice(self._round.recorded(seconds)) if isinstance(seconds, str) else seconds
        wanted = mean * self._round.settings.think_scale
        if distribution == "exponential" and wanted > 0:
            wanted = self._random.expovariate(1.0 / wanted)
        return self._think(wanted, site)

    async def _think(self, wanted: float, site: int) -> None:
        owner, comm = self._round, self._comm
        writer = comm.events.writer
        if writer is not None:
            writer.write(Event.THINK_START, comm.request, comm.trace, 0, site, self._name)
        owner.longest_think = max(owner.longest_think, wanted)
        start = time.monotonic_ns()
        if wanted > 0:
            self._paused = True
            await self._pause(start + int(wanted * 1e9))
        realised = (time.monotonic_ns() - start) * 1e-9
        if writer is not None:
            writer.write(Event.THINK_END, comm.request, comm.trace, 0, site, self._name)
        self._thought += realised
        if owner.window_start <= start < owner.window_end:
            owner.lateness.append(realised - wanted)
            owner.wanted_thinks += wanted

    async def _pause(self, until: int) -> None:
        if self._round.stopping:
            raise _SentHome
        pause: asyncio.Future[None] = self._loop.create_future()
        self._pauses.add(pause)
        self._round.timers.wake(pause, until)
        try:
            await pause
        finally:
            self._pauses.discard(pause)

    async def _cycles(self, leave: int | None) -> None:
        owner = self._round
        empty = 0
        while not owner.stopping:
            start = time.monotonic_ns()
            if leave is not None and start >= leave:
                return
            counted = owner.window_start <= start < owner.window_end
            if counted:
                owner.count()
            error = await self._cycle(None, counted=counted)
            if isinstance(error, UsageError):
                raise error
            if error is not None:
                await self._pause(time.monotonic_ns() + int(FAILURE_PAUSE * 1e9))
            elif self._comm.calls or self._paused:
                empty = 0
            else:
                empty += 1
                if empty == EMPTY_CYCLES:
                    raise DeploymentError(
                        f"{type(self._client).__name__}.scenario neither calls nor thinks: it would spin",
                        hint="add 'await comm.call(...)' or 'await self.think(seconds)'",
                    )
                await asyncio.sleep(0)

    async def _cycle(self, intended: int | None, *, counted: bool) -> Exception | None:
        """Run the scenario once, record it, and return what it raised."""
        owner, comm = self._round, self._comm
        self._name = owner.log.name(f"{type(self._client).__name__}.scenario")
        comm.begin(new_id(), new_id(), sampled=owner.log.chosen())
        writer = comm.events.writer
        self._thought = 0.0
        self._paused = False
        error: Exception | None = None
        start = time.monotonic_ns()
        late = 0.0 if intended is None else (start - intended) * 1e-9
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
        cycle = Cycle(start, (end - start) * 1e-9, self._thought, late)
        owner.record(cycle, end, counted=counted, error=error)
        return error

    async def _once(self, name: str) -> bool:
        """Run setup or teardown as an execution of its own; return whether the class has one."""
        kind = type(self._client)
        if getattr(kind, name) is getattr(Client, name):
            return False
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
        return True


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
