"""Services as people port them from other frameworks."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import itertools
import logging
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Annotated, Any, Final, NamedTuple, Protocol, TypedDict

from mup import EP, MS, Communication
from mup.errors import CallError, CallTimeoutError, CommunicationError

log = logging.getLogger(__name__)


class Page(NamedTuple):
    number: int = 0
    size: int = 2
    last: bool = False


class Tier(Enum):
    FREE = ("free", 1, None)
    PRO = ("pro", 2, "/pro")
    MAX = ("max", 3, "/max")

    def __init__(self, label, weight, path):
        self.label = label
        self.weight = weight
        self.path = path

    @classmethod
    def of(cls, label):
        for tier in cls:
            if tier.label == label:
                return tier
        raise KeyError(label)


class Saga:
    def __init__(self, comm):
        self.comm = comm
        self.undo = []

    def step(self, path, undo=None):
        reply = self.comm.call("Backend", path).get()
        if undo:
            self.undo.append(undo)
        return reply

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if error is not None:
            for path in reversed(self.undo):
                with contextlib.suppress(CallError):
                    self.comm.call("Backend", path).get()
        return False


class Profile:
    def __init__(self, comm, name):
        self._comm = comm
        self._name = name

    @property
    def name(self):
        return self._name

    @name.setter
    def name(self, value):
        if value != self._name:
            self._comm.call("Backend", "/rename", {"name": value}).get()
        self._name = value


class Handler(Protocol):
    def __call__(self, comm: Communication, event: dict) -> None: ...


class Bus:
    def __init__(self):
        self._handlers: dict[str, list[Handler]] = {}

    def on(self, name: str):
        def register(f: Handler) -> Handler:
            self._handlers.setdefault(name, []).append(f)
            return f

        return register

    def publish(self, comm, name, event):
        for handler in self._handlers.get(name, []):
            handler(comm, event)


bus = Bus()


@bus.on("created")
def index_it(comm, event):
    comm.call("Backend", "/index", event).get()


@bus.on("created")
def mail_it(comm, event):
    if event.get("mail"):
        comm.call("Backend", "/mail", event).get()


@bus.on("deleted")
def unindex(comm, event):
    comm.call("Backend", "/unindex", event).get()


class Breaker:
    def __init__(self, limit: int = 3, cool: float = 5.0):
        self.limit, self.cool = limit, cool
        self.failures = 0
        self.opened = 0.0

    @property
    def open(self) -> bool:
        return self.failures >= self.limit and time.monotonic() - self.opened < self.cool

    def __call__(self, action):
        if self.open:
            raise ConnectionError("open")
        try:
            reply = action()
        except CallError:
            self.failures += 1
            self.opened = time.monotonic()
            raise
        self.failures = 0
        return reply


class Bucket:
    def __init__(self, rate: float, burst: int):
        self.rate, self.burst = rate, burst
        self.tokens = float(burst)
        self.at = time.monotonic()

    def take(self) -> bool:
        now = time.monotonic()
        self.tokens = min(self.burst, self.tokens + (now - self.at) * self.rate)
        self.at = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


class OrderIn(TypedDict, total=False):
    id: str
    lines: list[dict[str, Any]]
    coupon: str


@dataclass(frozen=True, slots=True)
class Line:
    sku: str
    count: int = 1

    @classmethod
    def parse(cls, data):
        return cls(data.get("sku", "x"), int(data.get("count", 1)))


@dataclass
class Cart:
    lines: list[Line] = field(default_factory=list)
    coupon: str | None = None

    def __bool__(self):
        return bool(self.lines)

    def __len__(self):
        return len(self.lines)

    def __iter__(self) -> Iterator[Line]:
        return iter(self.lines)


class Rest(MS):
    breaker = Breaker()

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.bucket = Bucket(5.0, 3)
        self.seen: dict[str, dict] = {}
        self.flags = {"beta": False}

    @EP("/page")
    def page(self, comm: Communication):
        page = Page()
        while not page.last:
            data = comm.call("Backend", "/page", {"n": page.number}).get() or {}
            page = page._replace(number=page.number + 1, last=not data.get("more"))
        comm.respond(page._asdict())

    @EP("/page/known")
    def page_known(self, comm):
        page = Page(size=5)._replace(last=True)
        if page.last and page.size == 5:
            comm.call("Backend", "/page").get()
        else:
            comm.call("Backend", "/other").get()
        comm.respond({})

    @EP("/tier")
    def tier(self, comm):
        try:
            tier = Tier.of(comm.params.get("tier"))
        except KeyError:
            comm.respond({"error": "tier"}, 400)
            return
        if tier.path is not None:
            comm.call("Backend", tier.path).get()
        comm.respond(tier.label)

    @EP("/tier/weight")
    def weight(self, comm):
        tier = Tier[comm.params.get("name", "FREE")]
        if tier.weight > 1:
            comm.call("Backend", "/pro").get()
        comm.respond({})

    @EP("/saga")
    def saga(self, comm):
        with Saga(comm) as saga:
            saga.step("/reserve", "/release")
            saga.step("/charge", "/refund")
            saga.step("/ship")
        comm.respond({})

    @EP("/rename")
    def rename(self, comm):
        profile = Profile(comm, "old")
        profile.name = comm.params.get("name", "old")
        comm.respond(profile.name)

    @EP("/create")
    def create(self, comm):
        event = {"id": 1, "mail": comm.params.get("mail")}
        bus.publish(comm, "created", event)
        comm.respond({})

    @EP("/delete")
    def delete(self, comm):
        bus.publish(comm, "deleted", {})
        comm.respond({})

    @EP("/breaker")
    def guarded(self, comm):
        try:
            comm.respond(self.breaker(lambda: comm.call("Backend", "/text").get()))
        except ConnectionError:
            comm.respond({}, 503)

    @EP("/limited")
    def limited(self, comm):
        if not self.bucket.take():
            comm.respond({}, 429)
            return
        comm.call("Backend", "/text").get()
        comm.respond({})

    @EP("/idempotent")
    def idempotent(self, comm):
        key = comm.params.get("key")
        if key in self.seen:
            comm.respond(self.seen[key])
            return
        reply = comm.call("Backend", "/text").get()
        self.seen[key] = reply
        comm.respond(reply)

    @EP("/cart")
    def cart(self, comm):
        data: OrderIn = comm.params
        cart = Cart([Line.parse(line) for line in data.get("lines", ())], data.get("coupon"))
        if not cart:
            comm.respond({"error": "empty"}, 422)
            return
        for line in cart:
            comm.call("Backend", "/stock", {"sku": line.sku}).get()
        if cart.coupon:
            comm.call("Backend", "/coupon").get()
        comm.respond({"n": len(cart)})

    @EP("/peek")
    def peek(self, comm):
        ids = iter(comm.params.get("ids", []))
        first = next(ids, None)
        if first is None:
            comm.respond([])
            return
        comm.call("Backend", "/first").get()
        for _ in ids:
            comm.call("Backend", "/next").get()
        comm.respond({})

    @EP("/routes/{name}")
    def routes(self, comm, name):
        table = MappingProxyType({"a": "/a", "b": "/b"})
        path = table.get(name)
        if path:
            comm.call("Backend", path).get()
        comm.respond({})

    @EP("/signed")
    def signed(self, comm):
        expected = hmac.new(b"secret", b"body", hashlib.sha256).hexdigest()
        if not hmac.compare_digest(expected, comm.params.get("sign") or ""):
            comm.respond({}, 401)
            return
        comm.call("Backend", "/hook").get()
        comm.respond({})

    @EP("/poll")
    def poll(self, comm):
        job = comm.call("Backend", "/job").get() or {}
        for pause in (0.1, 0.2, 0.4):
            if job.get("state") == "done":
                break
            time.sleep(pause)
            job = comm.call("Backend", "/state", {"id": job.get("id")}).get() or {}
        else:
            comm.respond({}, 202)
            return
        comm.respond(job)

    @EP("/stack")
    def stack(self, comm):
        with ExitStack() as stack:
            for path in ("/a", "/b"):
                comm.call("Backend", path).get()
                stack.callback(lambda p=path: comm.call("Backend", p + "/undo").get())
            if comm.params.get("ok"):
                stack.pop_all()
        comm.respond({})

    @EP("/flag")
    def flag(self, comm):
        if self.flags["beta"]:
            comm.call("Backend", "/beta").get()
        else:
            comm.call("Backend", "/text").get()
        comm.respond({})

    @EP("/chunks")
    def chunks(self, comm):
        ids = comm.params.get("ids", [])
        for at in range(0, len(ids), 2):
            comm.call("Backend", "/batch", {"ids": ids[at : at + 2]}).get()
        comm.respond({})

    @EP("/fallback")
    def fallback(self, comm):
        reply = None
        for path in ("/fast", "/slow"):
            try:
                reply = comm.call("Backend", path, timeout=1.0).get()
            except (CallTimeoutError, CallError) as error:
                log.warning("%s", error)
                continue
            break
        if reply is None:
            comm.respond({}, 502)
        else:
            comm.respond(reply)

    @EP("/match")
    def match(self, comm):
        match comm.params:
            case {"kind": "mail", "to": [first, *rest]}:
                comm.call("Backend", "/mail").get()
                for _ in rest:
                    comm.call("Backend", "/copy").get()
            case {"kind": "text" | "sms", **other} if other:
                comm.call("Backend", "/text").get()
            case {"kind": str() as kind}:
                comm.respond({"error": kind}, 400)
                return
            case _:
                comm.call("Backend", "/other").get()
        comm.respond({})


class Aio(MS):
    runtime = "async"

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.lock = asyncio.Lock()

    @EP("/pairs")
    async def pairs(self, comm):
        body = comm.params
        first = [comm.call("Backend", "/a", {"i": i}) for i in body.get("a", [])]
        second = [comm.call("Backend", "/b", {"i": i}) for i in body.get("b", [])]
        replies = await asyncio.gather(*first, *second)
        comm.respond(len(replies))

    @EP("/one-and")
    async def one_and(self, comm):
        user, *orders = await asyncio.gather(
            comm.call("Backend", "/user"),
            *(comm.call("Backend", "/order", {"i": i}) for i in comm.params.get("ids", [])),
        )
        comm.respond({"user": user, "n": len(orders)})

    @EP("/completed")
    async def completed(self, comm):
        async def one(i):
            return await comm.call("Backend", "/a", {"i": i})

        tasks = [asyncio.create_task(one(i)) for i in comm.params.get("ids", [])]
        done = 0
        for task in asyncio.as_completed(tasks):
            await task
            done += 1
        comm.respond(done)

    @EP("/completed/fixed")
    async def completed_fixed(self, comm):
        tasks = [asyncio.create_task(self._one(comm, p)) for p in ("/a", "/b")]
        for task in asyncio.as_completed(tasks):
            with contextlib.suppress(CallError):
                await task
        comm.respond({})

    async def _one(self, comm, path):
        return await comm.call("Backend", path)

    @EP("/race")
    async def race(self, comm):
        tasks = {asyncio.create_task(self._one(comm, p)) for p in ("/a", "/b")}
        done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        comm.respond(len(done))

    @EP("/pages")
    async def pages(self, comm):
        total = 0
        async for item in self._pages(comm):
            total += 1
            if total >= 3:
                break
        comm.respond(total)

    async def _pages(self, comm) -> AsyncIterator[int]:
        cursor = 0
        while cursor is not None:
            data = await comm.call("Backend", "/page", {"c": cursor}) or {}
            yield cursor
            cursor = data.get("next")

    @asynccontextmanager
    async def _locked(self, comm, name):
        await comm.call("Backend", "/lock", {"name": name})
        try:
            yield name
        finally:
            await comm.call("Backend", "/unlock", {"name": name})

    @EP("/locked")
    async def locked(self, comm):
        async with self._locked(comm, "x"):
            await comm.call("Backend", "/text")
        comm.respond({})

    @EP("/locked/many")
    async def locked_many(self, comm):
        async with AsyncExitStack() as stack:
            for name in ("x", "y"):
                await stack.enter_async_context(self._locked(comm, name))
            await comm.call("Backend", "/text")
        comm.respond({})

    @EP("/group")
    async def group(self, comm):
        try:
            async with asyncio.timeout(2), asyncio.TaskGroup() as group:
                a = group.create_task(self._one(comm, "/a"))
                b = group.create_task(self._one(comm, "/b"))
        except (TimeoutError, ExceptionGroup):
            comm.respond({}, 502)
        else:
            comm.respond([a.result(), b.result()])

    @EP("/group2")
    async def group2(self, comm):
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._one(comm, "/a")) for _ in comm.params.get("ids", [])]
        except ExceptionGroup:
            comm.respond({}, 502)
            return
        comm.respond([t.result() for t in tasks])

    @EP("/partial")
    async def partial(self, comm):
        replies = await asyncio.gather(
            *[self._one(comm, p) for p in ("/a", "/b", "/c")], return_exceptions=True
        )
        good = [r for r in replies if not isinstance(r, BaseException)]
        if not good:
            comm.respond({}, 502)
            return
        if len(good) < 3:
            await comm.call("Backend", "/report", {"n": len(good)})
        comm.respond(good)

    @EP("/middleware")
    async def middleware(self, comm):
        async def auth(comm, following):
            user = await comm.call("Backend", "/user") or {}
            if user.get("ok"):
                await following(comm)

        async def audit(comm, following):
            try:
                await following(comm)
            finally:
                await comm.call("Backend", "/audit")

        async def end(comm):
            await comm.call("Backend", "/text")

        chain = end
        for layer in (audit, auth):
            chain = (lambda layer, following: lambda comm: layer(comm, following))(layer, chain)
        await chain(comm)
        comm.respond({})

    @EP("/semaphore")
    async def semaphore(self, comm):
        limit = asyncio.Semaphore(2)

        async def one(i):
            async with limit:
                return await comm.call("Backend", "/a", {"i": i})

        await asyncio.gather(*map(one, comm.params.get("ids", [])))
        comm.respond({})

    @EP("/queue")
    async def queue(self, comm):
        queue: asyncio.Queue = asyncio.Queue()
        for i in comm.params.get("ids", []):
            queue.put_nowait(i)
        while not queue.empty():
            i = await queue.get()
            await comm.call("Backend", "/a", {"i": i})
        comm.respond({})

    @EP("/lock")
    async def once(self, comm):
        async with self.lock:
            if not await comm.call("Backend", "/known"):
                await comm.call("Backend", "/load")
        comm.respond({})

    @EP("/dedupe")
    async def dedupe(self, comm):
        ids = list(dict.fromkeys(comm.params.get("ids", [])))
        calls = {i: comm.call("Backend", "/a", {"i": i}) for i in ids}
        replies = dict(zip(calls, await asyncio.gather(*calls.values())))
        comm.respond(len(replies))

    @EP("/grouped")
    async def grouped(self, comm):
        rows = sorted(comm.params.get("ids", []))
        for key, group in itertools.groupby(rows, key=lambda s: s[0]):
            await comm.call("Backend", "/batch", {"key": key, "n": len(list(group))})
        comm.respond({})


class Backend(MS):
    @EP("/a")
    def a(self, comm):
        comm.respond({})

    @EP("/a/undo")
    def a_undo(self, comm):
        comm.respond({})

    @EP("/audit")
    def audit(self, comm):
        comm.respond({})

    @EP("/b")
    def b(self, comm):
        comm.respond({})

    @EP("/b/undo")
    def b_undo(self, comm):
        comm.respond({})

    @EP("/batch")
    def batch(self, comm):
        comm.respond({})

    @EP("/beta")
    def beta(self, comm):
        comm.respond({})

    @EP("/c")
    def c(self, comm):
        comm.respond({})

    @EP("/charge")
    def charge(self, comm):
        comm.respond({})

    @EP("/copy")
    def copy(self, comm):
        comm.respond({})

    @EP("/coupon")
    def coupon(self, comm):
        comm.respond({})

    @EP("/fast")
    def fast(self, comm):
        comm.respond({})

    @EP("/first")
    def first(self, comm):
        comm.respond({})

    @EP("/hook")
    def hook(self, comm):
        comm.respond({})

    @EP("/index")
    def index(self, comm):
        comm.respond({})

    @EP("/job")
    def job(self, comm):
        comm.respond({})

    @EP("/known")
    def known(self, comm):
        comm.respond({})

    @EP("/load")
    def load(self, comm):
        comm.respond({})

    @EP("/lock")
    def lock(self, comm):
        comm.respond({})

    @EP("/mail")
    def mail(self, comm):
        comm.respond({})

    @EP("/max")
    def max(self, comm):
        comm.respond({})

    @EP("/next")
    def next(self, comm):
        comm.respond({})

    @EP("/order")
    def order(self, comm):
        comm.respond({})

    @EP("/other")
    def other(self, comm):
        comm.respond({})

    @EP("/page")
    def page(self, comm):
        comm.respond({})

    @EP("/pro")
    def pro(self, comm):
        comm.respond({})

    @EP("/refund")
    def refund(self, comm):
        comm.respond({})

    @EP("/release")
    def release(self, comm):
        comm.respond({})

    @EP("/rename")
    def rename(self, comm):
        comm.respond({})

    @EP("/report")
    def report(self, comm):
        comm.respond({})

    @EP("/reserve")
    def reserve(self, comm):
        comm.respond({})

    @EP("/ship")
    def ship(self, comm):
        comm.respond({})

    @EP("/slow")
    def slow(self, comm):
        comm.respond({})

    @EP("/state")
    def state(self, comm):
        comm.respond({})

    @EP("/stock")
    def stock(self, comm):
        comm.respond({})

    @EP("/text")
    def text(self, comm):
        comm.respond({})

    @EP("/unindex")
    def unindex(self, comm):
        comm.respond({})

    @EP("/unlock")
    def unlock(self, comm):
        comm.respond({})

    @EP("/user")
    def user(self, comm):
        comm.respond({})
