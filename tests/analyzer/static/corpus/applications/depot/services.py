"""Warehouse, tickets, and an API gateway, in a typed style."""

from __future__ import annotations

import asyncio
import enum
import json
import time
from abc import ABC, abstractmethod
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial, reduce, singledispatchmethod, wraps
from typing import Any, ClassVar, Final, Generic, Literal, NamedTuple, Protocol, Self, TypeVar, assert_never

from mup import EP, MS, Communication
from mup.errors import CallError, CallTimeoutError, NoReplicaError

T = TypeVar("T")
U = TypeVar("U")
E = TypeVar("E")


# Results instead of exceptions


@dataclass(frozen=True, slots=True)
class Ok(Generic[T]):
    value: T

    def then(self, f: Callable[[T], "Result[U]"]) -> "Result[U]":
        return f(self.value)

    def map(self, f):
        return Ok(f(self.value))

    def unwrap_or(self, default):
        return self.value


@dataclass(frozen=True, slots=True)
class Err:
    code: int
    message: str = ""

    def then(self, f):
        return self

    def map(self, f):
        return self

    def unwrap_or(self, default):
        return default


Result = Ok[T] | Err


def ask(comm, service, path, **params) -> Result[dict]:
    try:
        return Ok(comm.call(service, path, params).get())
    except CallTimeoutError:
        return Err(504, "late")
    except CallError as error:
        return Err(error.status or 502, str(error))


def answer(comm, result: Result) -> None:
    match result:
        case Ok(value):
            comm.respond(value)
        case Err(code, message):
            comm.respond({"error": message}, code)


# Events


@dataclass(frozen=True)
class Event:
    sku: str


@dataclass(frozen=True)
class Received(Event):
    count: int


@dataclass(frozen=True)
class Reserved(Event):
    order: str
    count: int = 1


@dataclass(frozen=True)
class Shipped(Event):
    order: str


@dataclass
class Stock:
    sku: str
    level: int = 0
    reserved: dict[str, int] = field(default_factory=dict)
    version: int = 0

    @singledispatchmethod
    def apply(self, event) -> None:
        raise TypeError(event)

    @apply.register
    def _(self, event: Received) -> None:
        self.level += event.count

    @apply.register
    def _(self, event: Reserved) -> None:
        self.reserved[event.order] = event.count

    @apply.register
    def _(self, event: Shipped) -> None:
        self.level -= self.reserved.pop(event.order, 0)

    @property
    def free(self) -> int:
        return self.level - sum(self.reserved.values())


KINDS: Final[dict[str, type[Event]]] = {"received": Received, "reserved": Reserved, "shipped": Shipped}


class EventStore:
    def __init__(self, comm: Communication) -> None:
        self._comm = comm

    def load(self, sku: str) -> Stock:
        stock = Stock(sku)
        rows = self._comm.query("events", "find", "stock", {"sku": sku}).get()
        for row in rows:
            data = dict(row)
            kind = KINDS.get(data.pop("kind", ""))
            if kind is not None:
                stock.apply(kind(**data))
            stock.version += 1
        return stock

    def append(self, event: Event, version: int) -> bool:
        done = self._comm.call("Log", "/append", {"version": version, **vars(event)}).get()
        return bool(done.get("ok"))


class Warehouse(MS):
    pool_size = 4
    TRIES: ClassVar[int] = 3

    @EP("/stock/{sku}", method="GET")
    def stock(self, comm: Communication, sku: str) -> None:
        comm.respond({"free": EventStore(comm).load(sku).free})

    @EP("/reserve", method="POST")
    def reserve(self, comm: Communication) -> None:
        store = EventStore(comm)
        sku, order = comm.params.get("sku", "s"), comm.params.get("order", "o")
        for attempt in range(self.TRIES):
            stock = store.load(sku)
            if stock.free < 1:
                comm.respond({"error": "sold out"}, 409)
                return
            if store.append(Reserved(sku, order), stock.version):
                comm.respond({"reserved": order, "attempt": attempt}, 201)
                return
        comm.respond({"error": "contention"}, 503)

    @EP("/price")
    def price(self, comm: Communication) -> None:
        result = (
            ask(comm, "Prices", "/base", sku=comm.params.get("sku"))
            .then(lambda base: ask(comm, "Prices", "/discount", base=base))
            .map(lambda row: {"price": row.get("price", 0)})
        )
        answer(comm, result)

    @EP("/first")
    def first(self, comm: Communication) -> None:
        for service in ("Prices", "Log"):
            match ask(comm, service, "/health"):
                case Ok({"ok": True}):
                    comm.respond(service)
                    return
                case Ok(_) | Err(504, _):
                    continue
                case Err() as failed:
                    answer(comm, failed)
                    return
        comm.respond("none", 503)

    @EP("/bulk", method="POST")
    def bulk(self, comm: Communication) -> None:
        done, failed = [], []
        for row in comm.params.get("rows", []):
            match ask(comm, "Log", "/append", **row):
                case Ok():
                    done.append(row)
                case Err(code=code):
                    failed.append({"row": row, "code": code})
        comm.respond({"done": len(done), "failed": failed}, 207 if failed else 200)


# Tickets


class Status(enum.Enum):
    OPEN = "open"
    ASSIGNED = "assigned"
    CLOSED = "closed"


class Command(Protocol):
    def run(self, desk: "Desk") -> Status: ...


@dataclass
class Assign:
    who: str

    def run(self, desk):
        desk.call("/assign", who=self.who)
        return Status.ASSIGNED


@dataclass
class Close:
    reason: str = ""

    def run(self, desk):
        if self.reason:
            desk.call("/note", text=self.reason)
        desk.call("/close")
        return Status.CLOSED


class Macro:
    def __init__(self, *commands: Command):
        self.commands = commands

    def run(self, desk):
        status = Status.OPEN
        for command in self.commands:
            status = command.run(desk)
        return status


@dataclass
class Desk:
    comm: Communication
    ticket: str
    log: list[str] = field(default_factory=list)

    def call(self, path, **params):
        self.log.append(path)
        return self.comm.call("Desk", path, {"ticket": self.ticket, **params}).get()


class Visitor(ABC):
    def visit(self, node: Mapping[str, Any]) -> Any:
        method = getattr(self, f"visit_{node.get('type', 'text')}", self.generic)
        return method(node)

    @abstractmethod
    def generic(self, node): ...


class Renderer(Visitor):
    def __init__(self, comm):
        self.comm = comm

    def visit_image(self, node):
        return self.comm.call("Media", "/thumb", {"id": node.get("id")}).get()

    def visit_mention(self, node):
        return self.comm.call("Users", "/name", {"id": node.get("id")}).get()

    def generic(self, node):
        return node.get("text", "")


class Plugin:
    all: ClassVar[list[type["Plugin"]]] = []

    def __init_subclass__(cls, *, order: int = 0, **kwargs):
        super().__init_subclass__(**kwargs)
        cls.order = order
        Plugin.all.append(cls)

    def handle(self, comm, ticket):
        return True


class Spam(Plugin, order=1):
    def handle(self, comm, ticket):
        return not comm.call("Filter", "/spam", ticket).get().get("spam")


class Language(Plugin, order=2):
    def handle(self, comm, ticket):
        ticket["language"] = comm.call("Filter", "/language", ticket).get().get("language", "en")
        return True


class Urgent(Plugin, order=3):
    def handle(self, comm, ticket):
        if ticket.get("urgent"):
            comm.call("Desk", "/page", ticket)
        return True


class Cache(Generic[T]):
    def __init__(self, size: int, ttl: float) -> None:
        self._rows: OrderedDict[str, tuple[float, T]] = OrderedDict()
        self.size, self.ttl = size, ttl

    def get(self, key: str, load: Callable[[], T]) -> T:
        now = time.monotonic()
        found = self._rows.get(key)
        if found is not None and now - found[0] < self.ttl:
            self._rows.move_to_end(key)
            return found[1]
        value = load()
        self._rows[key] = (now, value)
        while len(self._rows) > self.size:
            self._rows.popitem(last=False)
        return value


class Tickets(MS):
    pool_size = 2
    runtime = "thread"
    macros: ClassVar[dict[str, Command]] = {
        "solve": Macro(Assign("bot"), Close("solved")),
        "drop": Close(),
        "mine": Assign("me"),
    }

    def setup(self) -> None:
        self.users: Cache[dict] = Cache(100, 60.0)

    @EP("/macro", method="POST")
    def macro(self, comm):
        name = comm.params.get("name", "")
        try:
            command = self.macros[name]
        except KeyError:
            comm.respond({"unknown": name}, 404)
            return
        desk = Desk(comm, comm.params.get("ticket", "t"))
        status = command.run(desk)
        comm.respond({"status": status.value, "log": desk.log})

    @EP("/render", method="POST")
    def render(self, comm):
        renderer = Renderer(comm)
        comm.respond([renderer.visit(node) for node in comm.params.get("nodes", [])])

    @EP("/receive", method="POST")
    def receive(self, comm):
        ticket = dict(comm.params)
        if all(plugin().handle(comm, ticket) for plugin in sorted(Plugin.all, key=lambda p: p.order)):
            saved = comm.call("Desk", "/put", ticket).get()
            comm.respond(saved, 201)
        else:
            comm.respond({"error": "rejected"}, 422)

    @EP("/owner/{id}")
    def owner(self, comm, id: str):
        user = self.users.get(id, lambda: comm.call("Users", "/get", {"id": id}).get())
        comm.respond(user)

    @EP("/move", method="POST")
    def move(self, comm):
        with ExitStack() as stack:
            for name in ("from", "to"):
                queue = comm.params.get(name, name)
                comm.call("Locks", "/lock", {"queue": queue}).get()
                stack.callback(lambda q=queue: comm.call("Locks", "/unlock", {"queue": q}).get())
            comm.call("Desk", "/move", comm.params).get()
        comm.respond({})

    @EP("/transition", method="POST")
    def transition(self, comm):
        status = Status(comm.params.get("status", "open"))
        match status:
            case Status.OPEN:
                comm.call("Desk", "/assign").get()
            case Status.ASSIGNED:
                comm.call("Desk", "/close").get()
            case Status.CLOSED:
                pass
            case _:
                assert_never(status)
        comm.respond({"was": status.value})


# Gateway


class Backend(NamedTuple):
    service: str
    path: str
    timeout: float = 1.0
    optional: bool = False


VIEWS: Final[dict[str, tuple[Backend, ...]]] = {
    "home": (Backend("Feed", "/top"), Backend("Ads", "/slot", 0.2, optional=True)),
    "profile": (Backend("Users", "/get"), Backend("Feed", "/by"), Backend("Badges", "/of", optional=True)),
    "help": (),
}


class Breaker:
    def __init__(self, limit=3, pause=5.0):
        self.limit, self.pause = limit, pause
        self.failures = 0
        self.opened = 0.0

    @property
    def open(self):
        return self.failures >= self.limit and time.monotonic() - self.opened < self.pause

    async def call(self, make: Callable[[], Awaitable[T]], default: T) -> T:
        if self.open:
            return default
        try:
            value = await make()
        except (CallError, NoReplicaError):
            self.failures += 1
            self.opened = time.monotonic()
            return default
        self.failures = 0
        return value


class Bucket:
    def __init__(self, rate: float, size: int):
        self.rate, self.size = rate, size
        self.tokens, self.at = float(size), time.monotonic()

    def take(self) -> bool:
        now = time.monotonic()
        self.tokens = min(self.size, self.tokens + (now - self.at) * self.rate)
        self.at = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


class Loader:
    """Collects keys and asks for all of them at once."""

    def __init__(self, comm, service, path):
        self.comm, self.service, self.path = comm, service, path
        self.keys: list[str] = []
        self.rows: dict[str, dict] = {}

    def add(self, key):
        if key not in self.keys:
            self.keys.append(key)

    async def fetch(self):
        if self.keys:
            rows = await self.comm.call(self.service, self.path, {"ids": self.keys})
            self.rows.update((row["id"], row) for row in rows)

    def __getitem__(self, key):
        return self.rows.get(key, {})


@asynccontextmanager
async def span(comm, name) -> AsyncIterator[dict]:
    tags: dict = {"name": name}
    started = time.perf_counter()
    try:
        yield tags
    except Exception as error:
        tags["error"] = repr(error)
        raise
    finally:
        tags["ms"] = 1000 * (time.perf_counter() - started)
        comm.call("Traces", "/span", tags)


class Gateway(MS):
    runtime = "async"

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.breaker = Breaker()
        self.bucket = Bucket(100.0, 200)

    async def _one(self, comm, backend: Backend, user: str):
        try:
            return await comm.call(backend.service, backend.path, {"user": user}, timeout=backend.timeout)
        except CallError:
            if not backend.optional:
                raise
            return None

    @EP("/view/{name}")
    async def view(self, comm, name: str):
        backends = VIEWS.get(name)
        if backends is None:
            comm.respond({}, 404)
            return
        user = comm.params.get("user", "u")
        parts = await asyncio.gather(*(self._one(comm, b, user) for b in backends))
        comm.respond({b.service: part for b, part in zip(backends, parts, strict=True)})

    @EP("/ads")
    async def ads(self, comm):
        ad = await self.breaker.call(partial(comm.call, "Ads", "/slot"), {"house": True})
        comm.respond(ad)

    @EP("/limited")
    async def limited(self, comm):
        if not self.bucket.take():
            comm.respond({"error": "slow down"}, 429, {"Retry-After": "1"})
            return
        comm.respond(await comm.call("Feed", "/top"))

    @EP("/graph", method="POST")
    async def graph(self, comm):
        posts = await comm.call("Feed", "/top")
        authors, badges = Loader(comm, "Users", "/many"), Loader(comm, "Badges", "/many")
        for post in posts:
            authors.add(post.get("by"))
        await authors.fetch()
        fields = comm.params.get("fields", [])
        if "badges" in fields:
            for post in posts:
                badges.add(authors[post.get("by")].get("badge"))
            await badges.fetch()
        comm.respond([{**post, "author": authors[post.get("by")]} for post in posts])

    @EP("/traced")
    async def traced(self, comm):
        async with span(comm, "traced") as tags:
            user = await comm.call("Users", "/get")
            tags["user"] = user.get("id")
            if user.get("admin"):
                async with span(comm, "admin"):
                    await comm.call("Feed", "/all")
        comm.respond(user)

    @EP("/race")
    async def race(self, comm):
        near = asyncio.create_task(comm.call("Feed", "/near"))
        far = asyncio.create_task(comm.call("Feed", "/far"))
        done, pending = await asyncio.wait({near, far}, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        comm.respond(done.pop().result())

    @EP("/stream")
    async def stream(self, comm):
        async def rows():
            page = 0
            while True:
                batch = await comm.call("Feed", "/page", {"page": page})
                if not batch:
                    return
                for row in batch:
                    yield row
                page += 1

        comm.respond([row async for row in rows() if row.get("public")])

    @EP("/compose", method="POST")
    async def compose(self, comm):
        async def clean(draft):
            return await comm.call("Filter", "/clean", draft)

        async def link(draft):
            return await comm.call("Filter", "/links", draft) if "http" in draft.get("text", "") else draft

        async def save(draft):
            return await comm.call("Feed", "/put", draft)

        draft = dict(comm.params)
        for step in (clean, link, save):
            draft = await step(draft)
        comm.respond(draft)
