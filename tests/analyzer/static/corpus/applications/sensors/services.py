"""Readings of sensors: an asynchronous service."""

import asyncio
import collections
import contextlib
import functools
import logging
import random
import time
import typing as t
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum, auto

from mup import EP, MS, Communication
from mup.errors import CallError

logger = logging.getLogger(__name__)
P = t.ParamSpec("P")
R = t.TypeVar("R")
Json: t.TypeAlias = dict[str, t.Any]


class Level(IntEnum):
    LOW = 1
    MIDDLE = 2
    HIGH = 3


class Kind(StrEnum):
    HEAT = auto()
    WIND = auto()


class BreakerOpen(Exception):
    pass


@dataclass
class Breaker:
    threshold: int = 2
    failures: int = 0
    opened: float = field(default=0.0)

    async def __call__(self, make: t.Callable[[], t.Awaitable[R]]) -> R:
        if self.failures >= self.threshold and time.monotonic() - self.opened < 30:
            raise BreakerOpen
        try:
            result = await make()
        except CallError:
            self.failures += 1
            self.opened = time.monotonic()
            raise
        self.failures = 0
        return result


class SingleFlight:
    def __init__(self) -> None:
        self._running: dict[str, asyncio.Task] = {}

    async def do(self, key: str, make: t.Callable[[], t.Coroutine[t.Any, t.Any, R]]) -> R:
        task = self._running.get(key)
        if task is None:
            task = self._running[key] = asyncio.ensure_future(make())
            task.add_done_callback(lambda _: self._running.pop(key, None))
        return await asyncio.shield(task)


class guarded:
    """Decorator with parameters as a class."""

    def __init__(self, *, status: int = 502, default: t.Any = None):
        self.status = status
        self.default = default

    def __call__(self, method):
        @functools.wraps(method)
        async def run(service, comm, *args, **kwargs):
            try:
                value = await method(service, comm, *args, **kwargs)
            except CallError:
                comm.respond(self.default, status=self.status)
                return
            comm.respond(value)

        return run


@asynccontextmanager
async def lease(comm: Communication, name: str):
    granted = await comm.call("Locks", "/acquire", {"name": name})
    try:
        yield granted
    finally:
        await comm.call("Locks", "/drop", {"name": name})


async def windows(comm: Communication, count: int) -> t.AsyncGenerator[Json, None]:
    for number in range(count):
        answer = await comm.call("Store", "/window", {"n": number})
        if answer.get("end"):
            break
        yield answer


async def mapped(source: t.AsyncIterable[Json], fn: t.Callable[[Json], t.Any]):
    async for item in source:
        yield fn(item)


async def first(source: t.AsyncIterable[t.Any], default: t.Any = None) -> t.Any:
    async for item in source:
        return item
    return default


class Loader:
    """Loads keys one by one, each at most once per request."""

    def __init__(self, comm: Communication):
        self.comm = comm
        self.loaded: Json = {}

    async def load(self, key: str) -> Json:
        if key not in self.loaded:
            self.loaded[key] = await self.comm.call("Store", "/one", {"key": key})
        return self.loaded[key]

    async def load_many(self, keys: t.Sequence[str]) -> list[Json]:
        return [await self.load(key) for key in keys]


class Sensors(MS):
    runtime = "async"

    def setup(self) -> None:
        self.breaker = Breaker()
        self.flights = SingleFlight()
        self.stale: dict[str, tuple[float, Json]] = {}
        self.tasks: set[asyncio.Task] = set()
        self.limit = asyncio.Semaphore(2)
        self.tokens = 3.0

    @EP("/one")
    @guarded(status=504, default={})
    async def one(self, comm: Communication):
        return await comm.call("Store", "/one", {"key": comm.params.get("key")})

    @EP("/breaker")
    async def broken(self, comm: Communication) -> None:
        try:
            value = await self.breaker(lambda: comm.call("Store", "/one"))
        except BreakerOpen:
            comm.respond({"stale": True}, status=503)
        except CallError as error:
            comm.respond({"error": str(error)}, status=502)
        else:
            comm.respond(value)

    @EP("/stale")
    async def stale_(self, comm: Communication) -> None:
        key = comm.params.get("key", "k")
        at, value = self.stale.get(key, (0.0, {}))
        if not at:
            value = await comm.call("Store", "/one", {"key": key})
            self.stale[key] = time.monotonic(), value
            return comm.respond(value)
        comm.respond(value)
        if time.monotonic() - at > 5:
            with contextlib.suppress(CallError):
                self.stale[key] = time.monotonic(), await comm.call("Store", "/one", {"key": key})

    @EP("/lease")
    @guarded()
    async def leased(self, comm: Communication):
        async with lease(comm, "job") as granted:
            if not granted.get("ok"):
                return {"ok": False}
            return await comm.call("Store", "/one")

    @EP("/leases")
    @guarded()
    async def leases(self, comm: Communication):
        async with AsyncExitStack() as stack:
            for name in ("a", "b"):
                await stack.enter_async_context(lease(comm, name))
            return await comm.call("Store", "/one")

    @EP("/windows")
    @guarded()
    async def windows_(self, comm: Communication):
        total = 0
        async with aclosing(windows(comm, 4)) as pages:
            async for page in mapped(pages, lambda p: p.get("value", 0)):
                total += page
                if total > 5:
                    break
        return {"total": total}

    @EP("/first")
    @guarded()
    async def first_(self, comm: Communication):
        return await first(windows(comm, 2), default={})

    @EP("/loader")
    @guarded()
    async def loader(self, comm: Communication):
        loader = Loader(comm)
        return await loader.load_many(comm.params.get("keys", []))

    @EP("/limited")
    @guarded()
    async def limited(self, comm: Communication):
        async def one(key: str) -> Json:
            async with self.limit:
                return await comm.call("Store", "/one", {"key": key})

        return await asyncio.gather(*map(one, comm.params.get("keys", [])))

    @EP("/tokens")
    async def tokens_(self, comm: Communication) -> None:
        if self.tokens < 1:
            comm.respond(status=429)
            return
        self.tokens -= 1
        comm.respond(await comm.call("Store", "/one"))
        self.tokens = min(3.0, self.tokens + 0.5)

    @EP("/alarm")
    async def alarm(self, comm: Communication) -> None:
        try:
            level = Level(int(comm.params.get("level", 1)))
        except ValueError:
            comm.respond({"levels": [e.name for e in Level]}, status=400)
            return
        match level:
            case Level.HIGH:
                await asyncio.gather(comm.call("Notify", "/page"), comm.call("Notify", "/mail"))
            case Level.MIDDLE:
                await comm.call("Notify", "/mail")
            case Level.LOW:
                pass
        comm.respond({"level": level})

    @EP("/summary")
    async def summary(self, comm: Communication) -> None:
        jobs = {kind: asyncio.create_task(self._kind(comm, kind)) for kind in Kind}
        done = await asyncio.gather(*jobs.values(), return_exceptions=True)
        comm.respond({kind: None if isinstance(r, Exception) else r for kind, r in zip(jobs, done)})

    async def _kind(self, comm: Communication, kind: Kind) -> Json:
        rows = await comm.query("readings", "of_kind", "readings", {"kind": str(kind)})
        if not rows:
            return await comm.call("Store", "/window", {"kind": kind.value})
        return rows[-1]

    @EP("/groups")
    async def groups(self, comm: Communication) -> None:
        try:
            async with asyncio.TaskGroup() as tg:
                heat = tg.create_task(comm.call("Store", "/one", {"kind": "heat"}))
                wind = tg.create_task(self._kind(comm, Kind.WIND))
        except* CallError as group:
            comm.respond({"errors": len(group.exceptions)}, status=502)
        else:
            comm.respond([heat.result(), wind.result()])

    @EP("/poll")
    async def poll(self, comm: Communication) -> None:
        deadline = time.monotonic() + 1.0
        delay = 0.05
        job = await comm.call("Jobs", "/start")
        while time.monotonic() < deadline:
            state = await comm.call("Jobs", "/state", {"id": job.get("id")})
            if (done := state.get("state")) in {"done", "failed"}:
                comm.respond({"state": done}, status=200 if done == "done" else 500)
                return
            await asyncio.sleep(delay)
            delay = min(delay * 2, 0.5)
        await comm.call("Jobs", "/cancel", {"id": job.get("id")})
        comm.respond(status=504)

    @EP("/accept")
    async def accept(self, comm: Communication) -> None:
        readings: list[Json] = comm.params.get("readings") or []
        valid = [r for r in readings if isinstance(r.get("value"), (int, float))]
        if len(valid) != len(readings):
            comm.respond({"invalid": len(readings) - len(valid)}, status=422)
            return
        buckets = collections.defaultdict(list)
        for reading in valid:
            buckets[reading.get("kind", "?")].append(reading["value"])
        for kind in sorted(buckets):
            await comm.query("readings", "add", "readings", {"kind": kind, "values": buckets[kind]})
        comm.respond({"kinds": len(buckets)}, status=201)

    @EP("/pick")
    async def pick(self, comm: Communication) -> None:
        for host in random.sample(["Store", "Backup"], k=2):
            try:
                value = await comm.call(host, "/one")
            except CallError:
                continue
            break
        else:
            comm.respond(status=503)
            return
        comm.respond(value)

    @EP("/chain")
    @guarded()
    async def chain(self, comm: Communication):
        value: Json = {}
        for place in ("Store/one", "Jobs/state", "Notify/mail"):
            service, _, name = place.partition("/")
            value |= await comm.call(service, f"/{name}", value)
        return value

    @EP("/compare")
    @guarded()
    async def compare(self, comm: Communication):
        old_task = asyncio.create_task(comm.call("Backup", "/one"))
        new = await comm.call("Store", "/one")
        old = await old_task
        if old != new:
            logger.warning("differ")
            await comm.query("readings", "differences", "log", {"$insert": [old, new]})
        return new

    @EP("/fallback")
    async def fallback(self, comm: Communication) -> None:
        sources: list[tuple[str, t.Callable[[], t.Awaitable[Json]]]] = [
            ("store", functools.partial(comm.call, "Store", "/one")),
            ("backup", functools.partial(comm.call, "Backup", "/one")),
            ("constant", self._constant),
        ]
        for name, source in sources:
            with contextlib.suppress(CallError):
                value = await source()
                comm.respond({"from": name, **value})
                return

    @staticmethod
    async def _constant() -> Json:
        await asyncio.sleep(0)
        return {"value": 0}


class Store(MS):
    runtime = "async"

    @EP("/one")
    async def one(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/window")
    async def window(self, comm: Communication) -> None:
        comm.respond({})


class Backup(MS):
    @EP("/one")
    def one(self, comm: Communication) -> None:
        comm.respond({})


class Locks(MS):
    @EP("/acquire")
    def acquire(self, comm: Communication) -> None:
        comm.respond({"ok": True})

    @EP("/drop")
    def drop(self, comm: Communication) -> None:
        comm.respond({})


class Notify(MS):
    @EP("/page")
    def page(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/mail")
    def mail(self, comm: Communication) -> None:
        comm.respond({})


class Jobs(MS):
    @EP("/start")
    def start(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/state")
    def state(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/cancel")
    def cancel(self, comm: Communication) -> None:
        comm.respond({})
