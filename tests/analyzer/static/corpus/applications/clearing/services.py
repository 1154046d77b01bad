"""Payments, workflows, ingestion and a gateway: middleware chains, state machines, commands, windows of work."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import operator
import time
from abc import ABC, abstractmethod
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from enum import Enum, IntEnum, StrEnum
from functools import cached_property, partial, reduce, singledispatch, singledispatchmethod, wraps
from itertools import accumulate, groupby, pairwise, takewhile
from typing import Any, Generic, NamedTuple, Protocol, TypedDict, TypeVar

from mup import EP, MS, Communication
from mup.errors import CallError, CallTimeoutError

log = logging.getLogger(__name__)
T = TypeVar("T")


# Payments: commands, ledger, idempotency


class State(StrEnum):
    NEW = "new"
    AUTHORIZED = "authorized"
    CAPTURED = "captured"
    REFUNDED = "refunded"
    FAILED = "failed"

    @property
    def final(self) -> bool:
        return self in (State.REFUNDED, State.FAILED)

    def can(self, other: State) -> bool:
        return other in TRANSITIONS[self]


TRANSITIONS: dict[State, frozenset[State]] = {
    State.NEW: frozenset({State.AUTHORIZED, State.FAILED}),
    State.AUTHORIZED: frozenset({State.CAPTURED, State.FAILED}),
    State.CAPTURED: frozenset({State.REFUNDED}),
    State.REFUNDED: frozenset(),
    State.FAILED: frozenset(),
}


@dataclass(frozen=True, slots=True)
class Authorize:
    payment: str
    amount: int


@dataclass(frozen=True, slots=True)
class Capture:
    payment: str


@dataclass(frozen=True, slots=True)
class Refund:
    payment: str
    reason: str = ""


Command = Authorize | Capture | Refund


def parse(params: dict) -> Command:
    match params:
        case {"kind": "authorize", "payment": str(payment), "amount": int(amount)} if amount > 0:
            return Authorize(payment, amount)
        case {"kind": "capture", "payment": payment}:
            return Capture(payment)
        case {"kind": "refund", "payment": payment, **rest}:
            return Refund(payment, rest.get("reason", ""))
        case _:
            raise ValueError("no such command")


class Ledger:
    def __init__(self, comm: Communication) -> None:
        self.comm = comm
        self.entries: list[tuple[str, int]] = []

    def debit(self, account: str, amount: int) -> None:
        self.entries.append((account, -amount))

    def credit(self, account: str, amount: int) -> None:
        self.entries.append((account, amount))

    @property
    def balanced(self) -> bool:
        return sum(amount for _, amount in self.entries) == 0

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, kind, error, trace) -> None:
        if kind is not None:
            log.warning("ledger dropped: %s", error)
            return
        if self.entries:
            self.comm.call("Ledger", "/post", {"entries": self.entries}).get()


class Bus:
    def __init__(self, comm: Communication) -> None:
        self.comm = comm

    @singledispatchmethod
    def handle(self, command: Any) -> dict:
        raise TypeError(f"unknown command {command!r}")

    @handle.register
    def _(self, command: Authorize) -> dict:
        risk = self.comm.call("Risk", "/score", {"payment": command.payment, "amount": command.amount}).get()
        if risk.get("score", 0) > 80:
            return {"state": State.FAILED}
        self.comm.call("Acquirer", "/authorize", asdict(command)).get()
        return {"state": State.AUTHORIZED}

    @handle.register
    def _(self, command: Capture) -> dict:
        with Ledger(self.comm) as ledger:
            amount = self.comm.call("Acquirer", "/capture", {"payment": command.payment}).get()["amount"]
            ledger.debit("customer", amount)
            ledger.credit("merchant", amount)
        return {"state": State.CAPTURED}

    @handle.register
    def _(self, command: Refund) -> dict:
        with Ledger(self.comm) as ledger:
            amount = self.comm.call("Acquirer", "/refund", {"payment": command.payment}).get()["amount"]
            ledger.debit("merchant", amount)
            ledger.credit("customer", amount)
        if command.reason:
            self.comm.call("Support", "/note", {"reason": command.reason})
        return {"state": State.REFUNDED}


def idempotent(header: str):
    def decorate(f):
        @wraps(f)
        def wrapper(self, comm):
            key = comm.headers.get(header)
            if not key:
                return f(self, comm)
            digest = hashlib.sha256(key.encode()).hexdigest()
            stored = comm.call("Keys", "/get", {"key": digest}).get()
            if stored.get("body") is not None:
                comm.respond(stored["body"], stored.get("status", 200))
                return None
            f(self, comm)
            comm.call("Keys", "/put", {"key": digest})
            return None

        return wrapper

    return decorate


class Payments(MS):
    pool_size = 4

    @EP("/command", method="POST")
    @idempotent("idempotency-key")
    def command(self, comm):
        try:
            command = parse(comm.params)
        except ValueError as error:
            comm.respond({"error": str(error)}, 422)
            return
        comm.respond(Bus(comm).handle(command))

    @EP("/advance", method="POST")
    def advance(self, comm):
        payment = comm.call("Store", "/payment", {"id": comm.params.get("id")}).get()
        state, wanted = State(payment.get("state", "new")), State(comm.params.get("to", "captured"))
        if state.final:
            comm.respond({"error": "final"}, 409)
        elif not state.can(wanted):
            comm.respond({"error": f"{state} -> {wanted}"}, 409)
        else:
            comm.call("Store", "/save", {**payment, "state": wanted}).get()
            if wanted is State.REFUNDED:
                comm.call("Support", "/note", {"id": payment.get("id")})
            comm.respond({"state": wanted})

    @EP("/settle", method="POST")
    def settle(self, comm):
        rows = comm.call("Store", "/open").get()
        by_merchant = sorted(rows, key=operator.itemgetter("merchant"))
        settled = {}
        for merchant, group in groupby(by_merchant, key=operator.itemgetter("merchant")):
            amount = sum(row["amount"] for row in group)
            if amount <= 0:
                continue
            settled[merchant] = comm.call("Acquirer", "/payout", {"to": merchant, "amount": amount})
        failed = [merchant for merchant, future in settled.items() if not future.get().get("ok")]
        if failed:
            comm.call("Support", "/note", {"failed": failed}).get()
        comm.respond({"settled": len(settled), "failed": failed})

    @EP("/fraud")
    def fraud(self, comm):
        checks = [
            ("Risk", "/score", 50),
            ("Risk", "/velocity", 30),
            ("Store", "/history", 20),
        ]
        total = 0
        for service, path, weight in checks:
            try:
                total += weight * comm.call(service, path, comm.params, timeout=0.5).get().get("score", 0)
            except CallTimeoutError:
                total += weight
            if total > 100:
                break
        else:
            comm.call("Store", "/clear", comm.params)
        comm.respond({"total": total})

    @EP("/statement")
    def statement(self, comm):
        rows = comm.call("Ledger", "/rows", comm.params).get()
        balances = list(accumulate(row["amount"] for row in rows))
        if any(later < earlier for earlier, later in pairwise(balances)):
            notes = comm.call("Support", "/notes", comm.params).get()
        else:
            notes = []
        comm.respond({"balances": balances, "notes": notes})


# Workflow: steps with compensation, generators


class Step(Protocol):
    name: str

    def run(self, comm, order: dict) -> None: ...
    def undo(self, comm, order: dict) -> None: ...


class Reserve:
    name = "reserve"

    def run(self, comm, order):
        order["reservation"] = comm.call("Stock", "/reserve", {"items": order["items"]}).get()["id"]

    def undo(self, comm, order):
        comm.call("Stock", "/release", {"id": order["reservation"]}).get()


class Charge:
    name = "charge"

    def run(self, comm, order):
        comm.call("Acquirer", "/authorize", {"amount": order["amount"]}).get()

    def undo(self, comm, order):
        comm.call("Acquirer", "/refund", {"amount": order["amount"]}).get()


class Ship:
    name = "ship"

    def run(self, comm, order):
        comm.call("Shipping", "/create", {"order": order["id"]}).get()

    def undo(self, comm, order):
        comm.call("Shipping", "/cancel", {"order": order["id"]})


STEPS: tuple[type[Step], ...] = (Reserve, Charge, Ship)


class Context(NamedTuple):
    user: str
    roles: tuple[str, ...] = ()

    @property
    def admin(self) -> bool:
        return "admin" in self.roles


class Unauthorized(Exception):
    status = 401


class Forbidden(Unauthorized):
    status = 403


def who(comm) -> Context:
    token = comm.headers.get("authorization")
    if token is None:
        raise Unauthorized("no token")
    session = comm.call("Sessions", "/check", {"token": token}).get()
    if not session.get("valid", False):
        raise Unauthorized("token expired")
    return Context(session.get("user", ""), tuple(session.get("roles", ())))


def guarded(*, admin: bool = False):
    def decorate(f):
        def wrapper(self, comm):
            try:
                context = who(comm)
                if admin and not context.admin:
                    raise Forbidden("admins only")
            except Unauthorized as error:
                comm.respond({"error": str(error)}, error.status)
            else:
                f(self, comm, context)

        return wrapper

    return decorate


class Orders(MS):
    runtime = "thread"
    pool_size = 8

    @EP("/place", method="POST")
    @guarded()
    def place(self, comm, context):
        order = {
            "id": comm.request_id,
            "user": context.user,
            "items": comm.params.get("items", []),
            "amount": 7,
        }
        done: list[Step] = []
        for kind in STEPS:
            step = kind()
            try:
                step.run(comm, order)
            except CallError as error:
                log.warning("step %s failed: %s", step.name, error)
                for previous in reversed(done):
                    previous.undo(comm, order)
                comm.respond({"failed": step.name}, 502)
                return
            done.append(step)
        comm.respond({"order": order["id"]}, 201)

    @EP("/cancel", method="POST")
    @guarded()
    def cancel(self, comm, context):
        with ExitStack() as stack:
            stack.callback(log.info, "cancelled by %s", context.user)
            order = comm.call("Store", "/order", comm.params).get()
            if order.get("shipped"):
                stack.callback(lambda: comm.call("Shipping", "/recall", {"order": order.get("id")}))
            comm.call("Store", "/cancel", comm.params).get()
        comm.respond({"cancelled": True})

    @EP("/expire", method="POST")
    def expire(self, comm):
        with ExitStack() as stack:
            for order in comm.call("Store", "/old").get()[:2]:
                stack.callback(comm.call, "Shipping", "/cancel", {"order": order.get("id")})
            comm.call("Store", "/clear").get()
        comm.respond({"expired": True})

    @EP("/purge", method="POST")
    @guarded(admin=True)
    def purge(self, comm, context):
        page, purged = 0, 0
        while rows := comm.call("Store", "/old", {"page": page}).get():
            for row in rows:
                if row.get("kept"):
                    continue
                comm.call("Store", "/delete", {"id": row.get("id")}).get()
                purged += 1
            page += 1
            if page == 5:
                break
        comm.respond({"purged": purged})

    @EP("/track")
    def track(self, comm):
        def events() -> Iterator[dict]:
            after = None
            while True:
                batch = comm.call("Shipping", "/events", {"after": after}).get()
                yield from batch["events"]
                after = batch.get("next")
                if after is None:
                    return

        seen = list(takewhile(lambda event: event.get("kind") != "delivered", events()))
        comm.respond({"events": len(seen)})

    @EP("/quote", method="POST")
    def quote(self, comm):
        rules: list[Callable[[int], int]] = []
        if code := comm.params.get("coupon"):
            coupon = comm.call("Pricing", "/coupon", {"code": code}).get()
            rules.append(lambda price: price - coupon.get("off", 0))
        if comm.params.get("member"):
            rules.append(partial(operator.floordiv, 2))
        base = comm.call("Pricing", "/base", {"items": comm.params.get("items", [])}).get()["price"]
        price = reduce(lambda value, rule: rule(value), rules, base or 1)
        comm.respond({"price": price})

    @EP("/reorder", method="POST")
    def reorder(self, comm):
        last = comm.call("Store", "/last", comm.params).get()
        items = {item["sku"]: item["count"] for item in last.get("items", [])}
        missing = items.keys() - set(comm.call("Stock", "/available", {"skus": sorted(items)}).get())
        for sku in missing:
            alternative = comm.call("Catalog", "/alternative", {"sku": sku}).get()
            if not alternative:
                comm.respond({"missing": sku}, 409)
                break
            items[alternative["sku"]] = items.pop(sku)
        else:
            comm.call("Store", "/create", {"items": items}).get()
            comm.respond({"items": items}, 201)


# Ingestion: async streams, windows, bounded concurrency


class Breaker:
    def __init__(self, threshold: int = 3) -> None:
        self.threshold = threshold
        self.failures = 0

    @property
    def open(self) -> bool:
        return self.failures >= self.threshold

    @asynccontextmanager
    async def guard(self) -> AsyncIterator[None]:
        if self.open:
            raise Unavailable("open")
        try:
            yield
        except CallError:
            self.failures += 1
            raise
        else:
            self.failures = 0


class Unavailable(Exception):
    pass


class Source(ABC):
    def __init__(self, comm) -> None:
        self.comm = comm

    @abstractmethod
    async def fetch(self, cursor: int) -> list[dict]: ...

    async def __aiter__(self):
        cursor = 0
        while True:
            rows = await self.fetch(cursor)
            for row in rows:
                yield row
            if len(rows) < 2:
                break
            cursor += len(rows)


class Meters(Source):
    async def fetch(self, cursor):
        return await self.comm.call("Meters", "/rows", {"from": cursor})


class Weather(Source):
    async def fetch(self, cursor):
        return await self.comm.call("Weather", "/rows", {"from": cursor})


SOURCES: dict[str, type[Source]] = {"meters": Meters, "weather": Weather}


class Batch(Generic[T]):
    def __init__(self, size: int, flush: Callable[[list[T]], Awaitable[None]]) -> None:
        self.size, self.flush = size, flush
        self.items: list[T] = []

    async def add(self, item: T) -> None:
        self.items.append(item)
        if len(self.items) >= self.size:
            await self.drain()

    async def drain(self) -> None:
        if self.items:
            await self.flush(self.items)
            self.items = []


class Ingest(MS):
    runtime = "async"

    def setup(self):
        self.breaker = Breaker()
        self.slots = 2

    @EP("/pull", method="POST")
    async def pull(self, comm):
        name = comm.params.get("source", "meters")
        if name not in SOURCES:
            comm.respond({"error": "source"}, 404)
            return
        count = 0
        async for row in SOURCES[name](comm):
            if row.get("value") is None:
                continue
            await comm.call("Series", "/append", row)
            count += 1
        comm.respond({"count": count})

    @EP("/batch", method="POST")
    async def batch(self, comm):
        async def flush(rows):
            await comm.call("Series", "/bulk", {"rows": rows})

        batch: Batch[dict] = Batch(2, flush)
        for row in comm.params.get("rows", []):
            await batch.add(row)
        await batch.drain()
        comm.respond({"ok": True})

    @EP("/guarded")
    async def guarded_(self, comm):
        try:
            async with self.breaker.guard():
                row = await comm.call("Weather", "/now")
        except Unavailable:
            comm.respond({"stale": True}, 503)
        except CallError as error:
            comm.respond({"error": str(error)}, 502)
        else:
            comm.respond(row)

    @EP("/first")
    async def first(self, comm):
        tasks = {
            asyncio.create_task(comm.call("Weather", "/now", timeout=2)),
            asyncio.create_task(comm.call("Weather", "/forecast", timeout=2)),
        }
        done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        comm.respond({"done": len(done)})

    @EP("/all")
    async def all_(self, comm):
        results = await asyncio.gather(
            *(comm.call("Meters", "/one", {"id": id_}) for id_ in comm.params.get("ids", [])[:4]),
            return_exceptions=True,
        )
        good = [r for r in results if not isinstance(r, Exception)]
        bad = len(results) - len(good)
        if bad and bad == len(results):
            comm.respond({"error": "all failed"}, 502)
            return
        await comm.call("Series", "/bulk", {"rows": good})
        comm.respond({"good": len(good), "bad": bad})

    @EP("/window")
    async def window(self, comm):
        limit = asyncio.Semaphore(self.slots)

        async def one(id_):
            async with limit:
                return await comm.call("Meters", "/one", {"id": id_})

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(id_)) for id_ in comm.params.get("ids", [])[:4]]
        comm.respond({"values": [task.result() for task in tasks]})

    @EP("/deadline")
    async def deadline(self, comm):
        try:
            async with asyncio.timeout(1.5):
                now = await comm.call("Weather", "/now")
                history = await comm.call("Weather", "/rows", {"from": 0})
        except TimeoutError:
            comm.respond({"partial": True}, 206)
            return
        comm.respond({"now": now, "history": history})

    @EP("/resources")
    async def resources(self, comm):
        async with AsyncExitStack() as stack:
            lease = await comm.call("Leases", "/take")
            stack.push_async_callback(comm.call, "Leases", "/drop", lease)
            rows = await comm.call("Meters", "/rows", {"from": 0})
            if not rows:
                comm.respond({"empty": True}, 204)
                return
            await comm.call("Series", "/bulk", {"rows": rows})
        comm.respond({"rows": len(rows)})

    @EP("/poll", method="POST")
    async def poll(self, comm):
        job = await comm.call("Jobs", "/start", comm.params)
        for delay in (0.05, 0.1, 0.2, 0.4):
            await asyncio.sleep(delay)
            status = await comm.call("Jobs", "/status", {"id": job.get("id")})
            match status.get("state"):
                case "done":
                    comm.respond({"result": status.get("result")})
                    return
                case "failed":
                    comm.respond({"error": "failed"}, 500)
                    return
                case _:
                    continue
        await comm.call("Jobs", "/abort", {"id": job.get("id")})
        comm.respond({"error": "late"}, 504)


# Gateway: a chain of middleware, routes in a table, caches


Handler = Callable[[Communication], tuple[Any, int]]


class Middleware:
    def __call__(self, comm: Communication, following: Handler) -> tuple[Any, int]:
        return following(comm)


class Auth(Middleware):
    def __call__(self, comm, following):
        session = comm.call("Sessions", "/check", {"token": comm.headers.get("authorization", "")}).get()
        if not session.get("valid"):
            return {"error": "session"}, 401
        return following(comm)


class Limit(Middleware):
    def __init__(self, per_minute: int) -> None:
        self.per_minute = per_minute

    def __call__(self, comm, following):
        used = comm.call("Quota", "/hit", {"user": comm.headers.get("user", "")}).get()
        if used.get("count", 0) > self.per_minute:
            return {"error": "quota"}, 429
        return following(comm)


class Timed(Middleware):
    def __call__(self, comm, following):
        began = time.perf_counter()
        try:
            return following(comm)
        finally:
            comm.call("Metrics", "/observe", {"seconds": time.perf_counter() - began})


def chain(handler: Handler, *middleware: Middleware) -> Handler:
    for one in reversed(middleware):
        handler = partial(one, following=handler)
    return handler


class Ttl:
    def __init__(self, seconds: float, room: int = 10) -> None:
        self.seconds, self.room = seconds, room
        self.entries: OrderedDict[str, tuple[float, Any]] = OrderedDict()

    def get(self, key: str) -> Any:
        at, value = self.entries.get(key, (0.0, None))
        if time.monotonic() - at > self.seconds:
            self.entries.pop(key, None)
            return None
        self.entries.move_to_end(key)
        return value

    def put(self, key: str, value: Any) -> None:
        self.entries[key] = (time.monotonic(), value)
        while len(self.entries) > self.room:
            self.entries.popitem(last=False)


def profile(comm):
    return comm.call("Users", "/profile", comm.params).get(), 200


def feed(comm):
    user = comm.call("Users", "/profile", comm.params).get()
    posts = [comm.call("Posts", "/of", {"user": friend}) for friend in user.get("friends", [])[:3]]
    return [post for future in posts for post in future.get()], 200


class Field(Enum):
    NAME = ("Users", "/name")
    POSTS = ("Posts", "/count")
    BADGE = ("Awards", "/badge")

    def load(self, comm, user):
        service, path = self.value
        return comm.call(service, path, {"user": user})


class Level(IntEnum):
    LOW = 1
    MEDIUM = 2
    HIGH = 3


class Gateway(MS):
    pool_size = 6

    def setup(self):
        self.cache = Ttl(30.0)
        self.profile_ = chain(profile, Auth(), Limit(100))
        self.feed_ = chain(feed, Timed(), Auth())

    @cached_property
    def salt(self) -> str:
        return "s"

    @EP("/profile")
    def profile(self, comm):
        body, status = self.profile_(comm)
        comm.respond(body, status)

    @EP("/feed")
    def feed(self, comm):
        comm.respond(*self.feed_(comm))

    @EP("/cached")
    def cached(self, comm):
        key = hashlib.md5((self.salt + str(comm.params.get("id"))).encode()).hexdigest()
        value = self.cache.get(key)
        if value is None:
            value = comm.call("Users", "/profile", comm.params).get()
            self.cache.put(key, value)
        comm.respond(value)

    @EP("/fields")
    def fields(self, comm):
        wanted = comm.params.get("fields", "name").split(",")
        futures = {
            f.name.lower(): f.load(comm, comm.params.get("user")) for f in Field if f.name.lower() in wanted
        }
        comm.respond({name: future.get() for name, future in futures.items()})

    @EP("/alert", method="POST")
    def alert(self, comm):
        level = Level(int(comm.params.get("level", 1)))
        if level >= Level.MEDIUM:
            comm.call("Notify", "/mail", comm.params).get()
        if level is Level.HIGH:
            comm.call("Notify", "/page", comm.params).get()
        comm.respond({"level": level.name})

    @EP("/delete", method="POST")
    def delete(self, comm):
        comm.respond({"accepted": True}, 202)
        for service, path in (("Posts", "/purge"), ("Awards", "/purge"), ("Users", "/purge")):
            with suppress(CallError):
                comm.call(service, path, comm.params).get()

    @EP("/search")
    def search(self, comm):
        query = comm.params.get("q", "").strip().lower()
        if not query:
            return comm.respond({"hits": []})
        scopes = [s for s in ("users", "posts") if comm.params.get(s, True)]
        found = {}
        for scope in scopes:
            service = scope.capitalize()
            found[scope] = comm.call(service, "/search", {"q": query}).get()
        return comm.respond({"hits": found})

    @EP("/recent")
    def recent(self, comm):
        recent = deque(maxlen=3)
        for row in comm.call("Posts", "/recent").get():
            recent.append(row)
        details = [comm.call("Posts", "/detail", {"id": row.get("id")}) for row in recent]
        comm.respond([detail.get() for detail in details])
