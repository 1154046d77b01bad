"""Small endpoints around hooks, enumerations, generators, managers and tasks."""

import asyncio
import contextlib
import contextvars
import functools
import heapq
import itertools
import operator
import random
import time
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import Enum, IntEnum, StrEnum, auto
from types import MappingProxyType, SimpleNamespace
from typing import NamedTuple, Protocol, TypedDict

from mup import EP, MS, Communication
from mup.errors import CallError, CallTimeoutError, CommunicationError, MupError

ROUTES = {"a": "/on", "b": "/has"}
CURRENT: contextvars.ContextVar = contextvars.ContextVar("CURRENT", default=None)
CACHE: dict = {}
COUNT = 0


class Level(IntEnum):
    LOW = 1
    HIGH = 5

    @property
    def path(self) -> str:
        return "/on" if self > 2 else "/has"

    @classmethod
    def of(cls, n: int) -> "Level":
        return cls.HIGH if n > 2 else cls.LOW


class Kind(Enum):
    A = ("a", "/on")
    B = ("b", "/has")

    def __init__(self, code, path) -> None:
        self.code = code
        self.path = path

    def send(self, comm):
        return comm.call("Tools", self.path).get()


class Op(Enum):
    ON = auto()
    HAS = auto()

    def __call__(self, comm):
        return comm.call("Tools", f"/{self.name.lower()}").get()


class Point(NamedTuple):
    x: int = 0
    path: str = "/on"

    def moved(self) -> "Point":
        return self._replace(path="/has")


Pair = namedtuple("Pair", "left right", defaults=["/has"])


@dataclass(order=True)
class Job:
    priority: int
    path: str = field(compare=False, default="/on")


class Base:
    path = "/on"

    def __init__(self, comm) -> None:
        self.comm = comm

    def run(self):
        self.before()
        try:
            return self.work()
        finally:
            self.after()

    def before(self) -> None: ...

    def work(self):
        return self.comm.call("Tools", self.path).get()

    def after(self) -> None: ...


class Loud(Base):
    def before(self) -> None:
        super().before()
        self.comm.query("db", "before", "rows", {}).get()


class Quiet(Base):
    path = "/has"

    def after(self) -> None:
        self.comm.query("db", "after", "rows", {}).get()


class Both(Loud, Quiet):
    def work(self):
        first = super().work()
        return first or Base.work(self)


class Temperature:
    def __init__(self, comm) -> None:
        self.comm = comm
        self._value = 0

    @property
    def value(self):
        return self._value

    @value.setter
    def value(self, new) -> None:
        if new > 5:
            self.comm.call("Tools", "/set").get()
        self._value = new


class Lazy:
    def __init__(self, comm) -> None:
        self._comm = comm

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return functools.partial(self._call, name)

    def _call(self, name, **params):
        return self._comm.call("Tools", f"/{name}", params).get()


class Breaker:
    def __init__(self, limit=2) -> None:
        self.failures = 0
        self.limit = limit

    @property
    def open(self) -> bool:
        return self.failures >= self.limit

    def __enter__(self):
        if self.open:
            raise RuntimeError("open")
        return self

    def __exit__(self, kind, error, trace) -> None:
        if kind is None:
            self.failures = 0
        else:
            self.failures += 1


BREAKER = Breaker()


class Registry(dict):
    def __missing__(self, key):
        return "/set"


REGISTRY = Registry(a="/on")


def memo(function):
    seen = {}

    @functools.wraps(function)
    def wrapper(comm, key):
        if key not in seen:
            seen[key] = function(comm, key)
        return seen[key]

    wrapper.cache = seen
    return wrapper


@memo
def fetched(comm, key):
    return comm.call("Tools", "/on", {"key": key}).get()


@functools.lru_cache(maxsize=8)
def path_of(n):
    return "/on" if n else "/has"


@functools.singledispatch
def handle(event, comm):
    comm.call("Tools", "/set").get()


@handle.register
def _(event: int, comm):
    comm.call("Tools", "/on").get()


@handle.register(str)
def _(event, comm):
    comm.call("Tools", "/has").get()


class Service:
    def __init__(self, comm, *, prefix="/") -> None:
        self.comm = comm
        self.prefix = prefix

    def send(self, name, *, twice=False, **params):
        for _ in range(2 if twice else 1):
            self.comm.call("Tools", self.prefix + name, params).get()

    on = functools.partialmethod(send, "on")
    has = functools.partialmethod(send, "has", twice=True)

    handlers = {}

    def table(self):
        return {"on": self.on, "has": self.has, "both": lambda: (self.on(), self.has())}


def pages(comm) -> Iterator:
    token = None
    while True:
        page = comm.call("Tools", "/page", {"token": token} if token else {}).get()
        yield from page.get("items", [])
        token = page.get("next")
        if not token:
            return


@contextlib.contextmanager
def locked(comm, name):
    comm.query("db", "lock", "rows", {"name": name}).get()
    try:
        yield name
    except ValueError:
        comm.query("db", "abort", "rows", {"name": name}).get()
        raise
    else:
        comm.query("db", "commit", "rows", {"name": name}).get()
    finally:
        comm.query("db", "unlock", "rows", {"name": name}).get()


class Studio(MS):
    @EP("/genexp-live")
    def genexp_live(self, comm: Communication, n: int = 0) -> None:
        rows = ["/on"]
        it = (p for p in rows)
        rows.append("/has")
        for p in it:
            comm.call("Tools", p).get()
        comm.respond({})

    @EP("/level")
    def level(self, comm: Communication, n: int = 0) -> None:
        level = Level.of(n)
        comm.call("Tools", level.path).get()
        if level >= Level.HIGH:
            comm.call("Tools", "/set").get()
        comm.respond({})

    @EP("/heap")
    def heap(self, comm: Communication, n: int = 0) -> None:
        jobs = [Job(2, "/has"), Job(1, "/on")]
        heapq.heapify(jobs)
        while jobs:
            heapq.heappop(jobs)
            comm.call("Tools", "/on").get()
        comm.respond({})

    @EP("/sorted-jobs")
    def sorted_jobs(self, comm: Communication, n: int = 0) -> None:
        for job in sorted([Job(2, "/has"), Job(1, "/on")]):
            comm.call("Tools", "/set", {"p": job.path}).get()
        comm.respond({})

    @EP("/hooks")
    def hooks(self, comm: Communication, code: str = "a") -> None:
        kinds = {"a": Loud, "b": Quiet, "c": Both}
        kinds.get(code, Base)(comm).run()
        comm.respond({})

    @EP("/hooks-both")
    def hooks_both(self, comm: Communication, n: int = 0) -> None:
        Both(comm).run()
        comm.respond({})

    @EP("/lazy")
    def lazy(self, comm: Communication, n: int = 0) -> None:
        api = Lazy(comm)
        api.on(n=n)
        api.has()
        comm.respond({})

    @EP("/breaker")
    def breaker(self, comm: Communication, n: int = 0) -> None:
        try:
            with BREAKER:
                comm.call("Tools", "/on").get()
        except RuntimeError:
            comm.call("Tools", "/has").get()
        except CommunicationError:
            pass
        comm.respond({})

    @EP("/memo")
    def memo(self, comm: Communication, code: str = "a") -> None:
        fetched(comm, code)
        if len(fetched.cache) > 1:
            fetched.cache.clear()
        fetched(comm, code)
        comm.respond({})

    @EP("/lru")
    def lru(self, comm: Communication, n: int = 0) -> None:
        comm.call("Tools", path_of(n)).get()
        comm.respond({})

    @EP("/partialmethod")
    def partialmethod(self, comm: Communication, n: int = 0) -> None:
        s = Service(comm)
        s.on(twice=bool(n))
        s.has()
        comm.respond({})

    @EP("/bound-table")
    def bound_table(self, comm: Communication, code: str = "on") -> None:
        t = Service(comm).table()
        f = t.get(code)
        if f is None:
            comm.respond({}, status=404)
            return
        f()
        comm.respond({})

    @EP("/pages")
    def pages(self, comm: Communication, n: int = 0) -> None:
        rows = list(itertools.islice(pages(comm), 10))
        for row in rows[:1]:
            comm.call("Tools", "/set").get()
        comm.respond({})

    @EP("/pages-for")
    def pages_for(self, comm: Communication, n: int = 0) -> None:
        for row in pages(comm):
            comm.call("Tools", "/set").get()
        comm.respond({})

    @EP("/pages-first")
    def pages_first(self, comm: Communication, n: int = 0) -> None:
        first = next((row for row in pages(comm) if row), None)
        if first:
            comm.call("Tools", "/set").get()
        comm.respond({})

    @EP("/locked")
    def locked(self, comm: Communication, n: int = 0) -> None:
        try:
            with locked(comm, "x") as name:
                if n > 1:
                    raise ValueError(name)
                comm.call("Tools", "/on").get()
        except ValueError:
            comm.respond({}, status=400)
            return
        comm.respond({})

    @EP("/counted")
    def counted(self, comm: Communication, n: int = 0) -> None:
        count = 0

        def bump(by=1):
            nonlocal count
            count += by
            return count

        bump()
        if n:
            bump(by=2)
        for _ in range(count):
            comm.call("Tools", "/on").get()
        comm.respond({})

    @EP("/global-count")
    def global_count(self, comm: Communication, n: int = 0) -> None:
        global COUNT
        COUNT += 1
        if COUNT % 2:
            comm.call("Tools", "/on").get()
        else:
            comm.call("Tools", "/has").get()
        comm.respond({})

    @EP("/contextvar")
    def contextvar(self, comm: Communication, n: int = 0) -> None:
        token = CURRENT.set(n)
        try:
            if CURRENT.get():
                comm.call("Tools", "/on").get()
        finally:
            CURRENT.reset(token)
        if CURRENT.get() is None:
            comm.call("Tools", "/has").get()
        comm.respond({})

    @EP("/ttl")
    def ttl(self, comm: Communication, code: str = "a") -> None:
        now = time.monotonic()
        hit = CACHE.get(code)
        if hit and hit[1] > now:
            comm.respond(hit[0])
            return
        answer = comm.call("Tools", "/on").get()
        CACHE[code] = (answer, now + 30)
        for key in [k for k, (_, t) in CACHE.items() if t < now]:
            del CACHE[key]
        comm.respond({})

    @EP("/retry-gen")
    def retry_gen(self, comm: Communication, n: int = 0) -> None:
        delays = (0.1 * 2**i for i in range(3))
        for delay in delays:
            try:
                comm.call("Tools", "/on").get()
                break
            except CommunicationError:
                time.sleep(delay + random.random())
        else:
            comm.respond({}, status=503)
            return
        comm.respond({})

    @EP("/retry-rec")
    def retry_rec(self, comm: Communication, n: int = 0) -> None:
        def attempt(left):
            try:
                return comm.call("Tools", "/on").get()
            except CommunicationError:
                if not left:
                    raise
                return attempt(left - 1)

        attempt(2)
        comm.respond({})

    @EP("/saga")
    def saga(self, comm: Communication, n: int = 0) -> None:
        done = []
        try:
            for path, undo in (("/on", "/off"), ("/has", "/delete")):
                comm.call("Tools", path).get()
                done.append(undo)
        except CommunicationError:
            while done:
                comm.call("Tools", done.pop()).get()
            comm.respond({}, status=409)
            return
        comm.respond({})

    @EP("/fan")
    def fan(self, comm: Communication, x: list[str] = []) -> None:
        futures = [comm.call("Tools", "/on", {"x": one}) for one in x]
        good, bad = [], 0
        for one, future in zip(x, futures, strict=True):
            try:
                good.append((one, future.get()))
            except CommunicationError:
                bad += 1
        if bad > len(good):
            comm.call("Tools", "/set").get()
        comm.respond({})

    @EP("/fan-timeout")
    def fan_timeout(self, comm: Communication, x: list[str] = []) -> None:
        futures = {}
        for path in ("/on", "/has"):
            futures[path] = comm.call("Tools", path)
        late = []
        for path, future in futures.items():
            try:
                future.get(timeout=0.01)
            except CallTimeoutError:
                late.append(path)
        if late:
            comm.call("Tools", "/set").get()
        comm.respond({})

    @EP("/tenant")
    def tenant(self, comm: Communication, tenant: str = "a") -> None:
        match comm.headers.get("x-tenant", tenant).partition("-"):
            case ("a", _, ""):
                comm.call("Tools", "/on").get()
            case ("b", "-", tail) if tail:
                comm.call("Tools", "/has").get()
            case _:
                comm.call("Tools", "/set").get()
        comm.respond({})

    @EP("/typed")
    def typed(self, comm: Communication, n: int = 0) -> None:
        params = {"n": n}
        for key, value in sorted(params.items(), key=operator.itemgetter(1), reverse=True):
            comm.call("Tools", "/on", {key: value}).get()
        comm.respond({})

    @EP("/groupby")
    def groupby(self, comm: Communication, x: list[str] = []) -> None:
        for key, group in itertools.groupby(sorted(x), key=len):
            comm.call("Tools", "/on", {"k": key, "n": len(list(group))}).get()
        comm.respond({})

    @EP("/pairwise")
    def pairwise(self, comm: Communication, n: int = 0) -> None:
        for a, b in itertools.pairwise(("/on", "/has", "/set")):
            comm.call("Tools", a).get()
        comm.respond({})

    @EP("/product")
    def product(self, comm: Communication, n: int = 0) -> None:
        for a, b in itertools.product(("/on", "/has"), (1, 2)):
            comm.call("Tools", a).get()
        comm.respond({})

    @EP("/reduce")
    def reduce(self, comm: Communication, n: int = 0) -> None:
        functools.reduce(lambda acc, p: acc + [comm.call("Tools", p).get()], ("/on", "/has"), [])
        comm.respond({})

    @EP("/simple-ns")
    def simple_ns(self, comm: Communication, n: int = 0) -> None:
        ns = SimpleNamespace(path="/on", n=n)
        if n:
            ns.path = "/has"
        comm.call("Tools", ns.path).get()
        comm.respond({})

    @EP("/except-star")
    def except_star(self, comm: Communication, n: int = 0) -> None:
        try:
            comm.call("Tools", "/on").get()
        except* CommunicationError:
            comm.call("Tools", "/has").get()
        comm.respond({})

    @EP("/except-name")
    def except_name(self, comm: Communication, n: int = 0) -> None:
        try:
            comm.call("Tools", "/on").get()
        except CallError as e:
            if e.status >= 500:
                raise RuntimeError("bad") from e
            comm.call("Tools", "/has").get()
        except MupError:
            comm.call("Tools", "/set").get()
        comm.respond({})

    @EP("/nested-try")
    def nested_try(self, comm: Communication, n: int = 0) -> None:
        try:
            try:
                comm.call("Tools", "/on").get()
            except CallError:
                comm.call("Tools", "/has").get()
                raise
            finally:
                comm.query("db", "fin", "rows", {}).get()
        except CommunicationError:
            comm.respond({}, status=502)
            return
        comm.respond({})

    @EP("/return-finally")
    def return_finally(self, comm: Communication, n: int = 0) -> None:
        try:
            if n:
                comm.respond({"n": n})
                return
            comm.call("Tools", "/on").get()
        finally:
            comm.query("db", "fin", "rows", {}).get()
        comm.respond({})

    @EP("/loop-finally")
    def loop_finally(self, comm: Communication, n: int = 0) -> None:
        for i in range(n):
            try:
                if i == 1:
                    continue
                comm.call("Tools", "/on").get()
                if i == 2:
                    break
            finally:
                comm.query("db", "fin", "rows", {}).get()
        comm.respond({})


@contextlib.asynccontextmanager
async def session(comm, name):
    await comm.query("db", "open", "rows", {"name": name})
    try:
        yield {"name": name}
    finally:
        await comm.query("db", "close", "rows", {"name": name})


async def apages(comm):
    token = 1
    while token:
        page = await comm.call("Tools", "/page", {"token": token})
        for one in page.get("items", []):
            yield one
        token = page.get("next")


async def guarded(limit, comm, path):
    async with limit:
        return await comm.call("Tools", path)


class Saga:
    def __init__(self, comm) -> None:
        self.comm = comm
        self.undo = []

    async def __aenter__(self):
        return self

    async def __aexit__(self, kind, error, trace):
        if kind is not None:
            for path in reversed(self.undo):
                with contextlib.suppress(CommunicationError):
                    await self.comm.call("Tools", path)
        return False

    async def step(self, path, undo):
        await self.comm.call("Tools", path)
        self.undo.append(undo)


class AsyncStudio(MS):
    runtime = "async"
    pool_size = 8

    @EP("/gather")
    async def gather(self, comm: Communication, x: list[str] = []) -> None:
        a, *rest = await asyncio.gather(
            comm.call("Tools", "/on"), *(comm.call("Tools", p) for p in ("/has", "/set"))
        )
        comm.respond({})

    @EP("/gather-errors")
    async def gather_errors(self, comm: Communication, x: list[str] = []) -> None:
        found = await asyncio.gather(
            *(comm.call("Tools", "/on", {"x": one}) for one in x), return_exceptions=True
        )
        if any(isinstance(one, Exception) for one in found):
            await comm.call("Tools", "/set")
        comm.respond({})

    @EP("/group")
    async def group(self, comm: Communication, x: list[str] = []) -> None:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(guarded(asyncio.Semaphore(2), comm, p)) for p in ("/on", "/has")]
        comm.respond([t.result() for t in tasks])
        return
        comm.respond({})

    @EP("/group-error")
    async def group_error(self, comm: Communication, x: list[str] = []) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(guarded(asyncio.Semaphore(2), comm, "/on"))
                await comm.call("Tools", "/has")
        except* CommunicationError:
            await comm.call("Tools", "/set")
        comm.respond({})

    @EP("/timeout")
    async def timeout(self, comm: Communication, n: int = 0) -> None:
        try:
            async with asyncio.timeout(1):
                await comm.call("Tools", "/on")
        except TimeoutError:
            await comm.call("Tools", "/has")
        comm.respond({})

    @EP("/wait-for")
    async def wait_for(self, comm: Communication, n: int = 0) -> None:
        try:
            await asyncio.wait_for(comm.call("Tools", "/on"), 1)
        except (TimeoutError, CommunicationError) as e:
            if isinstance(e, TimeoutError):
                await comm.call("Tools", "/has")
        comm.respond({})

    @EP("/wait")
    async def wait(self, comm: Communication, n: int = 0) -> None:
        tasks = [asyncio.create_task(guarded(asyncio.Semaphore(2), comm, p)) for p in ("/on", "/has")]
        done, pending = await asyncio.wait(tasks, timeout=1)
        for t in pending:
            t.cancel()
        if pending:
            await comm.call("Tools", "/set")
        comm.respond({})

    @EP("/session")
    async def session(self, comm: Communication, n: int = 0) -> None:
        async with session(comm, "a") as a, session(comm, a["name"] + "b"):
            await comm.call("Tools", "/on")
        comm.respond({})

    @EP("/apages")
    async def apages(self, comm: Communication, n: int = 0) -> None:
        async for row in apages(comm):
            await comm.call("Tools", "/set")
        comm.respond({})

    @EP("/apages-comp")
    async def apages_comp(self, comm: Communication, n: int = 0) -> None:
        rows = [row async for row in apages(comm) if row]
        if rows:
            await comm.call("Tools", "/set")
        comm.respond({})

    @EP("/queue")
    async def queue(self, comm: Communication, x: list[str] = []) -> None:
        queue: asyncio.Queue = asyncio.Queue()
        for p in ("/on", "/has"):
            queue.put_nowait(p)
        while not queue.empty():
            p = queue.get_nowait()
            await comm.call("Tools", "/set", {"p": p})
        comm.respond({})

    @EP("/queue-workers")
    async def queue_workers(self, comm: Communication, x: list[str] = []) -> None:
        queue: asyncio.Queue = asyncio.Queue()
        for p in x:
            queue.put_nowait(p)

        async def worker():
            while not queue.empty():
                await comm.call("Tools", "/set", {"p": queue.get_nowait()})

        await asyncio.gather(worker(), worker())
        comm.respond({})

    @EP("/lock")
    async def lock(self, comm: Communication, n: int = 0) -> None:
        lock = asyncio.Lock()

        async def one(p):
            async with lock:
                await comm.call("Tools", p)

        await asyncio.gather(one("/on"), one("/has"))
        comm.respond({})

    @EP("/event")
    async def event(self, comm: Communication, n: int = 0) -> None:
        ready = asyncio.Event()

        async def producer():
            await comm.call("Tools", "/on")
            ready.set()

        async def consumer():
            await ready.wait()
            await comm.call("Tools", "/has")

        await asyncio.gather(producer(), consumer())
        comm.respond({})

    @EP("/task-result")
    async def task_result(self, comm: Communication, n: int = 0) -> None:
        task = asyncio.create_task(guarded(asyncio.Semaphore(1), comm, "/on"))
        other = await comm.call("Tools", "/has")
        if other:
            await task
        else:
            task.cancel()
        comm.respond({})

    @EP("/finally-await")
    async def finally_await(self, comm: Communication, n: int = 0) -> None:
        task = asyncio.ensure_future(guarded(asyncio.Semaphore(1), comm, "/on"))
        try:
            await comm.call("Tools", "/has")
        finally:
            await task
        comm.respond({})

    @EP("/shield")
    async def shield(self, comm: Communication, n: int = 0) -> None:
        try:
            await asyncio.shield(comm.call("Tools", "/on"))
        except CommunicationError:
            await comm.call("Tools", "/has")
        comm.respond({})

    @EP("/walrus-await")
    async def walrus_await(self, comm: Communication, n: int = 0) -> None:
        if (found := await comm.call("Tools", "/on")).get("on") and (
            n > 1 or await comm.call("Tools", "/has")
        ):
            await comm.call("Tools", "/set", found)
        comm.respond({})

    @EP("/to-thread")
    async def to_thread(self, comm: Communication, n: int = 0) -> None:
        total = await asyncio.to_thread(sum, [1, 2])
        if total == n:
            await comm.call("Tools", "/on")
        comm.respond({})


class Tools(MS):
    @EP("/on")
    def on(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/has")
    def has(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/set")
    def set(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/delete")
    def delete(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/off")
    def off(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/page")
    def page(self, comm: Communication) -> None:
        comm.respond({})
