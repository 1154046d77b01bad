"""Bookings, a rules engine, resolvers, and a scheduler."""

from __future__ import annotations

import asyncio
import functools
import heapq
import itertools
import logging
import random
import re
import threading
import time
from collections import ChainMap, Counter, deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum, Flag, auto
from functools import lru_cache, partial, partialmethod, singledispatch, singledispatchmethod
from pathlib import PurePosixPath
from typing import Any, ClassVar, NamedTuple, Protocol, overload

from mup import EP, MS, Communication
from mup.errors import CallError, CallTimeoutError

logger = logging.getLogger(__name__)
tenant: ContextVar[str] = ContextVar("tenant", default="public")
ROUTE = re.compile(r"^(?P<kind>flight|hotel|car):(?P<id>\w+)$")
SERVICE_OF = dict(flight="Flights", hotel="Hotels", car="Cars")


# Commands


@dataclass(frozen=True)
class Book:
    kind: str
    id: str


@dataclass(frozen=True)
class Cancel:
    id: str


@dataclass(frozen=True)
class Move:
    id: str
    days: int = 1


def parse(data) -> Book | Cancel | Move:
    match data:
        case {"book": {"kind": kind, "id": id}}:
            return Book(kind, id)
        case {"cancel": str(id)}:
            return Cancel(id)
        case {"move": [id, int(days)]}:
            return Move(id, days)
    raise ValueError("command")


@singledispatch
def execute(command, comm):
    raise TypeError(type(command).__name__)


@execute.register
def _(command: Book, comm):
    return comm.call("Flights", "/book", {"id": command.id}).get()


@execute.register
def _(command: Cancel, comm):
    return comm.call("Flights", "/cancel").get()


@execute.register(Move)
def _(command, comm):
    comm.call("Flights", "/cancel").get()
    return comm.call("Flights", "/book").get()


# Rules


class Rule(Protocol):
    def __call__(self, comm: Communication, request: dict) -> bool: ...


class Any_:
    def __init__(self, *rules):
        self.rules = rules

    def __call__(self, comm, request):
        return any(rule(comm, request) for rule in self.rules)

    def __or__(self, other):
        return Any_(*self.rules, other)


class All_(Any_):
    def __call__(self, comm, request):
        return all(rule(comm, request) for rule in self.rules)


class Remote:
    def __init__(self, path, field="ok"):
        self.path = path
        self.field = field

    def __call__(self, comm, request):
        return bool((comm.call("Rules", self.path, request).get() or {}).get(self.field))

    def __or__(self, other):
        return Any_(self, other)

    def __and__(self, other):
        return All_(self, other)


def small(comm, request):
    return request.get("amount", 0) < 100


RISK = Remote("/risk") & Remote("/limit", "free")
LOOSE = Remote("/risk") | small
RULES: dict[str, Callable] = {"strict": RISK, "loose": LOOSE, "off": lambda comm, request: True}


# State machine


class State(Enum):
    NEW = auto()
    PAID = auto()
    DONE = auto()

    def after(self, event):
        return FLOW.get((self, event), self)


FLOW = {(State.NEW, "pay"): State.PAID, (State.PAID, "ship"): State.DONE}
ON_ENTER = {State.PAID: ("Rules", "/paid"), State.DONE: ("Cars", "/ship")}


class Rights(Flag):
    READ = auto()
    WRITE = auto()
    ADMIN = READ | WRITE


class Money(NamedTuple):
    amount: Decimal
    currency: str = "EUR"

    def __add__(self, other):
        return Money(self.amount + other.amount, self.currency)


class Graph:
    """Nodes in the order of what they need."""

    needs: ClassVar[dict[str, list[str]]] = {
        "price": ["stock", "rate"],
        "stock": [],
        "rate": ["user"],
        "user": [],
    }

    @classmethod
    def order(cls, target):
        seen, out = set(), []

        def visit(node):
            if node in seen:
                return
            seen.add(node)
            for need in cls.needs[node]:
                visit(need)
            out.append(node)

        visit(target)
        return out


class Http:
    """A thin client with a base path."""

    def __init__(self, comm, service, base=""):
        self.comm, self.service, self.base = comm, service, base

    def request(self, method, path, **params):
        logger.debug("%s %s", method, path)
        return self.comm.call(self.service, self.base + path, params, method=method)

    get = partialmethod(request, "GET")
    post = partialmethod(request, "POST")

    def __truediv__(self, part):
        return Http(self.comm, self.service, f"{self.base}/{part}")


class Lookup:
    def __init__(self, comm):
        self.comm = comm
        self.known = {}

    def __getitem__(self, key):
        if key not in self.known:
            self.known[key] = self.comm.call("Rules", "/lookup", {"key": key}).get()
        return self.known[key]

    def __contains__(self, key):
        return bool(self.comm.call("Rules", "/exists", {"key": key}).get())


def paginate(fetch, *, limit=10):
    for page in itertools.count():
        rows = fetch(page)
        yield from rows
        if len(rows) < limit:
            break


def chunked(items, size):
    it = iter(items)
    while chunk := list(itertools.islice(it, size)):
        yield chunk


def timed(name=None):
    def decorate(f):
        label = name or f.__name__

        @functools.wraps(f)
        def wrapper(*args, **kwargs):
            start = time.perf_counter()
            try:
                return f(*args, **kwargs)
            finally:
                logger.info("%s %.3f", label, time.perf_counter() - start)

        return wrapper

    return decorate


def synchronized(f):
    lock = threading.Lock()

    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        with lock:
            return f(*args, **kwargs)

    return wrapper


class Bookings(MS):
    runtime = "thread"
    history: ClassVar[deque] = deque(maxlen=10)
    handlers: ClassVar[dict] = {}

    def handles(event, handlers=handlers):  # noqa: N805
        def register(f):
            handlers[event] = f
            return f

        return register

    @EP("/command")
    def command(self, comm: Communication):
        try:
            command = parse(comm.params)
        except ValueError as error:
            comm.respond({"error": str(error)}, 400)
            return
        self.history.append(command)
        comm.respond(execute(command, comm))

    @EP("/allowed")
    def allowed(self, comm):
        rule = RULES.get(comm.params.get("policy", "strict"), RISK)
        comm.respond({"allowed": rule(comm, comm.params)})

    @EP("/event")
    def event(self, comm):
        row = comm.call("Rules", "/state").get() or {}
        state = State[row.get("state", "NEW")]
        following = state.after(comm.params.get("event"))
        if following is not state and following in ON_ENTER:
            service, path = ON_ENTER[following]
            comm.call(service, path).get()
        comm.respond(following.name)

    @EP("/rights")
    def rights(self, comm):
        rights = Rights.READ
        if comm.params.get("admin"):
            rights |= Rights.WRITE
        if Rights.WRITE in rights:
            comm.call("Rules", "/audit").get()
        comm.respond(rights.value)

    @EP("/sum")
    def sum_(self, comm):
        prices = [comm.call(s, "/price") for s in ("Flights", "Hotels")]
        total = functools.reduce(
            lambda a, f: a + Money(Decimal((f.get() or {}).get("p", 0))), prices, Money(Decimal(0))
        )
        comm.respond(str(total.amount))

    @EP("/resolve")
    def resolve(self, comm):
        values = {}
        for node in Graph.order("price"):
            values[node] = comm.call("Rules", f"/{node}", dict(values)).get()
        comm.respond(values)

    @EP("/rest")
    def rest(self, comm):
        api = Http(comm, "Hotels", "/v1") / "rooms"
        rooms = api.get("/free").get()
        if rooms:
            api.post("/hold", room=rooms).get()
        comm.respond(rooms)

    @EP("/lookup")
    def lookup(self, comm):
        names = Lookup(comm)
        if "a" in names:
            comm.respond([names["a"], names["a"]])
        else:
            comm.respond([names["b"]])

    @EP("/all")
    def all_(self, comm):
        def fetch(page):
            return (comm.call("Hotels", "/page", {"page": page}).get() or {}).get("rows", [])

        comm.respond({"n": len(list(paginate(fetch, limit=2)))})

    @EP("/chunks")
    @timed("chunks")
    def chunks(self, comm):
        for chunk in chunked(comm.params.get("ids", []), 2):
            comm.call("Cars", "/batch", {"ids": chunk}).get()
        comm.respond({})

    @EP("/serial")
    @synchronized
    def serial(self, comm):
        comm.call("Cars", "/ship").get()
        comm.respond({})

    @EP("/route/{what}")
    def route(self, comm, what):
        found = ROUTE.match(what)
        if not found:
            comm.respond({}, 404)
            return
        comm.respond(comm.call(SERVICE_OF[found["kind"]], "/price", {"id": found["id"]}).get())

    @EP("/tenant")
    def tenant_(self, comm):
        token = tenant.set(comm.headers.get("X-Tenant", "public"))
        try:
            if tenant.get() == "public":
                comm.call("Cars", "/public").get()
            else:
                comm.call("Cars", "/private").get()
        finally:
            tenant.reset(token)
        comm.respond({})

    @handles("opened")
    def _opened(self, comm):
        comm.call("Rules", "/audit").get()

    @handles("closed")
    def _closed(self, comm):
        comm.call("Rules", "/paid").get()
        comm.call("Rules", "/audit").get()

    @EP("/handle")
    def handle(self, comm):
        handler = self.handlers.get(comm.params.get("event"))
        if handler:
            handler(self, comm)
        comm.respond({})

    @EP("/plan")
    def plan(self, comm):
        jobs = [(3, "/public"), (1, "/ship"), (2, "/private")]
        heapq.heapify(jobs)
        while jobs:
            _, path = heapq.heappop(jobs)
            comm.call("Cars", path).get()
        comm.respond({})

    @EP("/two")
    def two(self, comm):
        left, right = itertools.tee(comm.params.get("ids", []))
        n = sum(1 for _ in left)
        for id in right:
            comm.call("Cars", "/batch", {"id": id, "of": n}).get()
        comm.respond(n)

    @EP("/flat")
    def flat(self, comm):
        groups = comm.params.get("groups", {})
        for id in itertools.chain.from_iterable(groups.values()):
            comm.call("Cars", "/batch", {"id": id}).get()
        comm.respond({})

    @EP("/config")
    def config(self, comm):
        settings = ChainMap(comm.params, {"retries": 2, "path": "/ship"})
        for _ in range(2):
            if comm.call("Cars", "/ship").get():
                break
        comm.respond(dict(settings))

    @EP("/walk")
    def walk(self, comm):
        node, depth = "root", 0
        while node and depth < 4:
            node = (comm.call("Rules", "/parent", {"node": node}).get() or {}).get("parent")
            depth += 1
        comm.respond(depth)

    @EP("/tree")
    def tree(self, comm):
        comm.respond(self._tree(comm, comm.params.get("tree", {})))

    def _tree(self, comm, node):
        if not node:
            return 0
        comm.call("Cars", "/batch", {"node": node.get("name")}).get()
        return 1 + sum(self._tree(comm, child) for child in node.get("children", []))

    @EP("/late")
    def late(self, comm):
        futures = {}
        for kind in ("flight", "hotel"):
            if comm.params.get(kind):
                futures[kind] = comm.call(SERVICE_OF[kind], "/price")
        comm.respond({kind: future.get() for kind, future in futures.items()})

    @EP("/first-good")
    def first_good(self, comm):
        good = next((r for r in (comm.call(s, "/price").get() for s in SERVICE_OF.values()) if r), None)
        comm.respond(good)

    @EP("/zip")
    def zipped(self, comm):
        services = ("Flights", "Hotels", "Cars")
        futures = [comm.call(s, "/price") for s in services]
        comm.respond({s: f.get() for s, f in zip(services, futures)})

    @EP("/cheapest")
    def cheapest(self, comm):
        offers = {s: comm.call(s, "/price").get() or {} for s in ("Flights", "Hotels")}
        best = min(offers, key=lambda s: offers[s].get("p", 0))
        comm.call(best, "/book").get()
        comm.respond(best)

    @EP("/version")
    def version(self, comm):
        major = int(comm.headers.get("X-Version", "1").split(".")[0])
        action = {1: self._one, 2: self._two}.get(major, self._one)
        comm.respond(action(comm))

    def _one(self, comm):
        return comm.call("Cars", "/ship").get()

    def _two(self, comm):
        return [comm.call("Cars", p).get() for p in ("/ship", "/public")]

    @EP("/nested")
    def nested(self, comm):
        try:
            try:
                reply = comm.call("Flights", "/price", timeout=0.5).get()
            except CallTimeoutError:
                reply = comm.call("Hotels", "/price").get()
        except CallError as error:
            comm.respond({"error": error.status}, 502)
        else:
            comm.respond(reply)

    @EP("/sampled")
    def sampled(self, comm):
        service = random.choice(["Flights", "Hotels"])
        comm.respond(comm.call(service, "/price").get())

    @EP("/weighted")
    def weighted(self, comm):
        (service,) = random.choices(["Flights", "Hotels"], weights=[9, 1])
        if random.random() < 0.1:
            comm.call("Rules", "/audit").get()
        comm.respond(comm.call(service, "/price").get())

    @EP("/pooled")
    def pooled(self, comm):
        with ThreadPoolExecutor(2) as pool:
            replies = list(pool.map(lambda s: comm.call(s, "/price").get(), ("Flights", "Hotels")))
        comm.respond(replies)

    @EP("/expired")
    def expired(self, comm):
        row = comm.call("Rules", "/state").get() or {}
        until = row.get("until")
        if until is None or datetime.fromisoformat(until) < datetime.now(UTC) - timedelta(days=1):
            comm.call("Rules", "/paid").get()
        comm.respond({})

    @EP("/counted")
    def counted(self, comm):
        kinds = Counter(item.get("kind") for item in comm.params.get("items", []))
        for kind, n in kinds.most_common():
            if kind in SERVICE_OF:
                comm.call(SERVICE_OF[kind], "/book", {"n": n}).get()
        comm.respond(dict(kinds))

    @EP("/guard")
    def guard(self, comm):
        if (denied := self._denied(comm)) is not None:
            status, text = denied
            comm.respond({"error": text}, status)
            return
        comm.respond(comm.call("Cars", "/private").get())

    def _denied(self, comm):
        if not comm.params.get("user"):
            return 401, "who"
        if not comm.call("Rules", "/exists").get():
            return 403, "no"
        return None
