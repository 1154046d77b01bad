"""An order desk, its notifications, and a gateway to models."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import functools
import json
import logging
import operator
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from dataclasses import asdict, dataclass, field, replace
from enum import Enum, StrEnum, auto
from typing import ClassVar, Literal

from clients import ApiError, Clients, NotFound, Result, retrying

from mup import EP, MS, Communication
from mup.errors import CallError, CallTimeoutError, CommunicationError

log = logging.getLogger("desk")
MAX_LINES = 3
CHANNELS = {"mail": "/mail", "sms": "/sms", "push": "/push"}


def errors(f):
    """Answer with the status of an ApiError."""

    @functools.wraps(f)
    def wrapper(self, comm, *args, **kwargs):
        try:
            body = f(self, comm, *args, **kwargs)
        except ApiError as error:
            comm.respond({"detail": error.detail}, error.status)
        else:
            comm.respond(body)

    return wrapper


def requires(role: str):
    def decorate(f):
        @functools.wraps(f)
        def wrapper(self, comm, *args, **kwargs):
            claims = comm.call("Users", "/token", {"t": comm.headers.get("Authorization")}).get() or {}
            if role not in claims.get("roles", ()):
                raise ApiError(403)
            return f(self, comm, *args, **kwargs)

        return wrapper

    return decorate


class Status(StrEnum):
    DRAFT = auto()
    PLACED = auto()
    PAID = auto()
    CANCELLED = auto()

    @property
    def final(self) -> bool:
        return self in (Status.PAID, Status.CANCELLED)


TRANSITIONS: dict[Status, set[Status]] = {
    Status.DRAFT: {Status.PLACED, Status.CANCELLED},
    Status.PLACED: {Status.PAID, Status.CANCELLED},
}


class Step(ABC):
    @abstractmethod
    def do(self, comm, order) -> None: ...

    def undo(self, comm, order) -> None:
        return None


class Reserve(Step):
    def do(self, comm, order):
        comm.call("Stock", "/reserve", order).get()

    def undo(self, comm, order):
        comm.call("Stock", "/release", order).get()


class Capture(Step):
    def __init__(self, currency="EUR"):
        self.currency = currency

    def do(self, comm, order):
        comm.call("Payments", "/capture", {**order, "currency": self.currency}).get()

    def undo(self, comm, order):
        comm.call("Payments", "/void", order).get()


class Announce(Step):
    def do(self, comm, order):
        with contextlib.suppress(CommunicationError):
            comm.call("Notify", "/send", order, timeout=0.5).get()


@dataclass(slots=True)
class Workflow:
    steps: list[Step] = field(default_factory=lambda: [Reserve(), Capture(), Announce()])

    def run(self, comm, order):
        done: list[Step] = []
        try:
            for step in self.steps:
                step.do(comm, order)
                done.append(step)
        except CallError:
            for step in reversed(done):
                step.undo(comm, order)
            raise


@dataclass(frozen=True)
class Order:
    id: str = ""
    status: Status = Status.DRAFT
    lines: tuple[str, ...] = ()

    def to(self, status: Status) -> "Order":
        if status not in TRANSITIONS.get(self.status, ()):
            raise ApiError(409, f"{self.status} -> {status}")
        return replace(self, status=status)


class Repository:
    def __init__(self, comm):
        self._comm = comm

    def get(self, id: str) -> Order:
        rows = self._comm.query("desk", "order", "orders", {"_id": id}).get()
        if not rows:
            raise NotFound(404, id)
        row = rows[0]
        return Order(id, Status(row.get("status", "draft")), tuple(row.get("lines", ())))

    def save(self, order: Order) -> None:
        self._comm.query("desk", "save", "orders", {"$insert": [asdict(order)]}).get()


class Desk(MS):
    workflow = Workflow()

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._cache: collections.OrderedDict[str, tuple[float, dict]] = collections.OrderedDict()
        self.stats = defaultdict(int)

    @EP("/orders/{id}")
    @errors
    def order(self, comm: Communication, id):
        return asdict(Repository(comm).get(id))

    @EP("/orders/{id}/pay")
    @errors
    @requires("clerk")
    def pay(self, comm, id):
        orders = Repository(comm)
        order = orders.get(id).to(Status.PAID)
        Clients(comm).payments.capture(id=id)
        orders.save(order)
        return asdict(order)

    @EP("/orders/{id}/cancel")
    @errors
    def cancel(self, comm, id):
        orders = Repository(comm)
        order = orders.get(id)
        if order.status.final:
            raise ApiError(409)
        clients = Clients(comm)
        for sku in order.lines[:MAX_LINES]:
            clients.stock.release(sku)
        orders.save(order.to(Status.CANCELLED))
        return {}

    @EP("/checkout")
    @errors
    def checkout(self, comm):
        clients = Clients(comm)
        if not clients.users.exists(comm.params.get("user")):
            raise ApiError(401)
        wanted = comm.params.get("skus") or []
        failed = [sku for sku in wanted if not clients.stock.reserve(sku, 1)]
        if failed:
            for sku in set(wanted) - set(failed):
                clients.stock.release(sku)
            raise ApiError(409, ",".join(failed))
        return {"reserved": len(wanted)}

    @EP("/levels")
    def levels(self, comm):
        futures = Clients(comm).stock.levels(comm.params.get("skus", []))
        levels = [(f.get() or {}).get("level", 0) for f in futures]
        comm.respond({"total": sum(levels), "least": min(levels, default=0)})

    @EP("/place")
    def place(self, comm):
        try:
            self.workflow.run(comm, dict(comm.params))
        except CallError as error:
            comm.respond({"failed": str(error)}, 502)
            return
        comm.respond({}, 201)

    @EP("/profile/{id}")
    def profile(self, comm, id):
        now = time.time()
        entry = self._cache.get(id)
        if entry and entry[0] > now:
            self._cache.move_to_end(id)
            comm.respond(entry[1])
            return
        user = Clients(comm).users.get(id)
        self._cache[id] = (now + 30, user)
        while len(self._cache) > 100:
            self._cache.popitem(last=False)
        comm.respond(user)

    @EP("/quick")
    def quick(self, comm):
        user = Result.run(Clients(comm).users.get, "me")
        name = user.map(lambda u: (u or {}).get("name")).or_else("guest")
        comm.respond(name)

    @EP("/notify/{channel}")
    def notify(self, comm, channel):
        path = CHANNELS.get(channel)
        if path is None:
            comm.respond({"known": sorted(CHANNELS)}, 404)
        else:
            comm.respond(self._send(comm, path), 202)

    @retrying(3, on=(CallTimeoutError, ConnectionError))
    def _send(self, comm, path):
        return comm.call("Notify", path, timeout=1).get()

    @EP("/notify-all")
    def notify_all(self, comm):
        futures = {name: comm.call("Notify", path) for name, path in CHANNELS.items()}
        outcome = {}
        for name, future in futures.items():
            try:
                future.get()
                outcome[name] = "sent"
            except CallError:
                outcome[name] = "failed"
        comm.respond(outcome, 200 if "sent" in outcome.values() else 502)

    @EP("/preferred")
    def preferred(self, comm):
        user = comm.call("Users", "/user").get() or {}
        channel = next((c for c in user.get("channels", []) if c in CHANNELS), "mail")
        comm.call("Notify", CHANNELS[channel]).get()
        comm.respond({})

    @EP("/digest")
    def digest(self, comm):
        by_user = defaultdict(list)
        for event in comm.params.get("events", []):
            by_user[event["user"]].append(event)
        for user, events in sorted(by_user.items()):
            comm.call("Notify", "/mail", {"user": user, "n": len(events)}).get()
        comm.respond({"users": len(by_user)})

    @EP("/webhook")
    def webhook(self, comm):
        try:
            payload = json.loads(comm.body or b"{}")
            kind = payload["type"]
        except (ValueError, KeyError):
            comm.respond({}, 400)
            return
        handler = getattr(self, f"_on_{kind}", None)
        if handler is None:
            comm.respond({}, 204)
            return
        handler(comm, payload)
        comm.respond({})

    def _on_paid(self, comm, payload):
        comm.call("Stock", "/ship", payload).get()

    def _on_refused(self, comm, payload):
        comm.call("Stock", "/release", payload).get()
        comm.call("Notify", "/mail", payload).get()

    @EP("/export")
    def export(self, comm):
        def rows():
            page = 0
            while True:
                batch = comm.call("Stock", "/rows", {"page": page}).get() or {}
                yield from batch.get("rows", [])
                if not batch.get("more"):
                    return
                page += 1

        comm.respond({"n": sum(1 for _ in rows())})

    @EP("/accepted")
    def accepted(self, comm):
        comm.respond({"accepted": True}, 202)
        started = time.perf_counter()
        comm.call("Stock", "/ship").get()
        self.stats["took"] += time.perf_counter() - started

    @EP("/bulk")
    def bulk(self, comm):
        results, futures = [], []
        for n, item in enumerate(comm.params.get("items", [])):
            futures.append(comm.call("Stock", "/reserve", {"item": item}))
            if n % 4 == 3:
                results += [f.get() for f in futures]
                futures.clear()
        results.extend(f.get() for f in futures)
        comm.respond(len(results))

    @EP("/steps")
    def steps(self, comm):
        for action in (self._first, functools.partial(self._send, path="/push"), lambda c: None):
            action(comm)
        comm.respond({})

    def _first(self, comm):
        comm.call("Notify", "/mail").get()

    @EP("/sorted")
    def sorted_(self, comm):
        jobs = [(2, "/push"), (1, "/mail"), (3, "/sms")]
        for _, path in sorted(jobs, key=operator.itemgetter(0)):
            comm.call("Notify", path).get()
        comm.respond({})

    @EP("/until")
    def until(self, comm):
        deadline = time.monotonic() + 2
        while time.monotonic() < deadline:
            if comm.call("Stock", "/ready").get():
                comm.respond({})
                return
            time.sleep(0.2)
        comm.respond({}, 504)

    @EP("/either")
    def either(self, comm):
        primary = comm.call("Users", "/user")
        shadow = comm.call("Users", "/shadow") if comm.params.get("shadow") else None
        user = primary.get()
        if shadow is not None and shadow.get() != user:
            comm.call("Notify", "/differs").get()
        comm.respond(user)


Kind = Literal["text", "image", "audio"]


@dataclass
class Model:
    name: str
    kinds: frozenset[str]
    cost: float = 1.0
    fallback: "Model | None" = None

    def path(self, kind):
        return f"/{self.name}/{kind}"


SMALL = Model("small", frozenset({"text"}), 0.1)
LARGE = Model("large", frozenset({"text", "image"}), 1.0, SMALL)
MODELS = [LARGE, SMALL]


class Gateway(MS):
    runtime = "async"
    models: ClassVar[list[Model]] = MODELS
    paths: ClassVar[dict[str, str]] = {m.name: f"/{m.name}/text" for m in MODELS}

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.inflight: dict[str, asyncio.Future] = {}
        self.limit = asyncio.Semaphore(4)
        self.background: set[asyncio.Task] = set()

    @EP("/infer")
    async def infer(self, comm):
        name = comm.params.get("model", "large")
        path = self.paths.get(name)
        if path is None:
            comm.respond({}, 404)
            return
        async with self.limit:
            comm.respond(await comm.call("Models", path))

    @EP("/infer/fallback")
    async def fallback(self, comm):
        model: Model | None = LARGE
        while model is not None:
            try:
                reply = await comm.call("Models", model.path("text"), timeout=1)
            except CallError:
                model = model.fallback
            else:
                comm.respond({"by": model.name, "reply": reply})
                return
        comm.respond({}, 503)

    @EP("/infer/hedged")
    async def hedged(self, comm):
        first = asyncio.ensure_future(self._ask(comm, "/small/text"))
        done, _ = await asyncio.wait({first}, timeout=0.2)
        if done:
            comm.respond(first.result())
            return
        second = asyncio.ensure_future(self._ask(comm, "/large/text"))
        done, pending = await asyncio.wait({first, second}, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        comm.respond(done.pop().result())

    async def _ask(self, comm, path):
        return await comm.call("Models", path)

    @EP("/vote")
    async def vote(self, comm):
        answers = await asyncio.gather(*(self._ask(comm, p) for p in self.paths.values()))
        best, count = collections.Counter(map(str, answers)).most_common(1)[0]
        comm.respond({"best": best, "agreed": count == len(answers)})

    @EP("/rag")
    async def rag(self, comm):
        question = comm.params.get("q", "")
        embedding, history = await asyncio.gather(
            comm.call("Models", "/embed", {"q": question}), comm.call("Users", "/history")
        )
        hits = (await comm.call("Index", "/search", {"e": embedding}) or {}).get("hits", [])
        documents = await asyncio.gather(*[comm.call("Index", "/document", {"id": h}) for h in hits[:5]])
        reply = await comm.call("Models", "/large/text", {"context": documents, "history": history})
        comm.respond(reply)

    @EP("/tools")
    async def tools(self, comm):
        tools = {"search": self._search, "user": self._user}
        for _ in range(3):
            reply = await comm.call("Models", "/large/text") or {}
            if not (wanted := reply.get("tool")):
                break
            if wanted in tools:
                await tools[wanted](comm, reply)
        comm.respond(reply)

    async def _search(self, comm, reply):
        await comm.call("Index", "/search", reply)

    async def _user(self, comm, reply):
        await comm.call("Users", "/user", reply)

    @EP("/once/{key}")
    async def once(self, comm, key):
        if key in self.inflight:
            comm.respond(await asyncio.shield(self.inflight[key]))
            return
        future = asyncio.get_running_loop().create_future()
        self.inflight[key] = future
        try:
            reply = await self._ask(comm, "/small/text")
            future.set_result(reply)
        except BaseException as error:
            future.cancel()
            raise
        finally:
            self.inflight.pop(key, None)
        comm.respond(reply)

    @EP("/batch")
    async def batch(self, comm):
        async def one(item):
            async with self.limit:
                try:
                    return await comm.call("Models", "/embed", {"item": item}, timeout=2)
                except CallError as error:
                    return {"error": str(error)}

        items = comm.params.get("items", [])
        replies = await asyncio.gather(*(one(i) for i in items))
        comm.respond([r for r in replies if r and "error" not in r])

    @EP("/moderated")
    async def moderated(self, comm):
        async with asyncio.TaskGroup() as group:
            checked = group.create_task(self._ask(comm, "/moderate"))
            answered = group.create_task(self._ask(comm, "/large/text"))
        if (checked.result() or {}).get("flagged"):
            comm.respond({}, 451)
        else:
            comm.respond(answered.result())

    @EP("/timeout")
    async def timeout(self, comm):
        try:
            reply = await asyncio.wait_for(self._ask(comm, "/large/text"), 1.5)
        except (TimeoutError, asyncio.TimeoutError):
            reply = await self._ask(comm, "/small/text")
        comm.respond(reply)

    @EP("/fire")
    async def fire(self, comm):
        task = asyncio.create_task(comm.call("Notify", "/send"))
        self.background.add(task)
        task.add_done_callback(self.background.discard)
        comm.respond({}, 202)
        await task

    @EP("/by-kind")
    async def by_kind(self, comm):
        kind: Kind = comm.params.get("kind", "text")
        for model in self.models:
            if kind in model.kinds:
                comm.respond(await comm.call("Models", "/infer", {"model": model.name}))
                break
        else:
            comm.respond({}, 415)

    @EP("/cheapest")
    async def cheapest(self, comm):
        model = min(self.models, key=lambda m: m.cost)
        comm.respond(await comm.call("Models", model.path("text")))

    @EP("/stream")
    async def stream(self, comm):
        parts = []
        async for part in self._parts(comm):
            parts.append(part)
        comm.respond("".join(map(str, parts)))

    async def _parts(self, comm):
        token = None
        while True:
            reply = await comm.call("Models", "/next", {"token": token}) or {}
            if "text" in reply:
                yield reply["text"]
            token = reply.get("token")
            if token is None:
                break

    @EP("/pipeline")
    async def pipeline(self, comm):
        value = comm.params.get("text", "")
        for stage in ("clean", "embed", "rank"):
            value = await getattr(self, f"_{stage}")(comm, value)
        comm.respond(value)

    async def _clean(self, comm, value):
        return value

    async def _embed(self, comm, value):
        return await comm.call("Models", "/embed", {"v": value})

    async def _rank(self, comm, value):
        return await comm.call("Index", "/rank", {"v": value})

    @EP("/health")
    async def health(self, comm):
        names = ("Models", "Index")
        states = await asyncio.gather(
            *(comm.call(n, "/health", timeout=0.5) for n in names), return_exceptions=True
        )
        report = {n: not isinstance(s, Exception) for n, s in zip(names, states, strict=True)}
        comm.respond(report, 200 if all(report.values()) else 503)
