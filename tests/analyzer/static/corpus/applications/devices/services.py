"""Learning, devices, feeds and builds: event-loop services."""

from __future__ import annotations

import asyncio
import base64
import collections
import contextlib
import functools
import json
import logging
import random
import time
from asyncio import TaskGroup
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import SimpleNamespace
from typing import Annotated, Any, Literal, NewType, TypeAlias, TypedDict

from mup import EP, MS, Communication
from mup.errors import CallError, CallTimeoutError

logger = logging.getLogger(__name__)
UserId = NewType("UserId", str)
Json: TypeAlias = dict[str, Any]
BATCH = 2
DEFAULTS = SimpleNamespace(limit=20, retries=3, locale="en")


class Course(TypedDict, total=False):
    id: str
    title: str
    lessons: list[str]


class Level(StrEnum):
    FREE = "free"
    PRO = "pro"
    TEAM = "team"


def retrying(times: int = DEFAULTS.retries, on: tuple[type[Exception], ...] = (CallError,)):
    def decorate(f):
        @functools.wraps(f)
        async def wrapper(*args, **kwargs):
            for attempt in range(1, times + 1):
                try:
                    return await f(*args, **kwargs)
                except on:
                    if attempt == times:
                        raise
                    await asyncio.sleep(0.01 * attempt)

        return wrapper

    return decorate


class Api:
    """Everything that a service calls, by name."""

    def __init__(self, comm: Communication):
        self._comm = comm

    def __getattr__(self, name: str):
        if name.startswith("_"):
            raise AttributeError(name)
        return functools.partial(self._comm.call, name.title())


class UserClient:
    def __init__(self, comm):
        self.comm = comm

    async def get(self, id: UserId) -> Json:
        return await self.comm.call("Users", "/get", {"id": id})

    async def level(self, id: UserId) -> Level:
        user = await self.get(id)
        return Level(user.get("level", "free"))

    @retrying(2)
    async def progress(self, id: UserId) -> dict[str, int]:
        return await self.comm.call("Progress", "/get", {"id": id}, timeout=1.0)


async def maybe(awaitable: Awaitable, default=None):
    try:
        return await awaitable
    except CallError as error:
        logger.warning("degraded: %s", error)
        return default


def requires(*levels: Level):
    def decorate(f):
        @functools.wraps(f)
        async def wrapper(self, comm):
            level = await UserClient(comm).level(comm.params.get("user", "u"))
            if level not in levels:
                comm.respond({"error": f"needs one of {', '.join(levels)}"}, 402)
                return
            await f(self, comm)

        return wrapper

    return decorate


@dataclass
class Context:
    comm: Communication
    user: UserId
    started: float = field(default_factory=time.monotonic)
    notes: list[str] = field(default_factory=list)

    @classmethod
    async def create(cls, comm):
        user = comm.headers.get("x-user") or (await comm.call("Users", "/whoami"))["id"]
        return cls(comm, UserId(user))

    async def __aenter__(self):
        await self.comm.call("Users", "/touch", {"id": self.user})
        return self

    async def __aexit__(self, *exc):
        if self.notes:
            await self.comm.call("Notes", "/append", {"notes": self.notes})


class Learning(MS):
    runtime = "async"

    @EP("/dashboard")
    async def dashboard(self, comm: Communication) -> None:
        users = UserClient(comm)
        user = UserId(comm.params.get("user", "u"))
        profile, progress, news = await asyncio.gather(
            users.get(user),
            users.progress(user),
            maybe(comm.call("News", "/latest"), []),
        )
        comm.respond({"name": profile.get("name"), "progress": progress, "news": news})

    @EP("/course/{id}")
    @requires(Level.PRO, Level.TEAM)
    async def course(self, comm):
        course: Course = await comm.call("Courses", "/get", {"id": comm.params["id"]})
        if not course:
            return comm.respond({"error": "unknown"}, 404)
        lessons = await asyncio.gather(
            *(comm.call("Courses", "/lesson", {"id": i}) for i in course.get("lessons", []))
        )
        comm.respond({**course, "lessons": lessons})

    @EP("/enroll", method="POST")
    async def enroll(self, comm):
        async with await Context.create(comm) as context:
            seats = await comm.call("Courses", "/seats", {"id": comm.params.get("course")})
            match seats:
                case {"free": int(free)} if free > 0:
                    await comm.call("Courses", "/enroll", {"user": context.user})
                    context.notes.append("enrolled")
                case {"waiting": True}:
                    await comm.call("Courses", "/wait", {"user": context.user})
                    context.notes.append("waiting")
                case _:
                    comm.respond({"error": "full"}, 409)
                    return
            comm.respond({"notes": context.notes})

    @EP("/quiz", method="POST")
    async def quiz(self, comm):
        answers = comm.params.get("answers") or {}
        points = 0
        for number, answer in enumerate(answers.values(), 1):
            verdict = await comm.call("Quiz", "/check", {"n": number, "answer": answer})
            points += verdict.get("points", 0)
            if verdict.get("stop"):
                break
        passed = points >= len(answers) * 0.5
        if passed:
            await comm.call("Progress", "/set", {"points": points})
            asyncio.create_task(self._congratulate(comm, points))
        comm.respond({"points": points, "passed": passed})

    async def _congratulate(self, comm, points):
        if points > 1:
            await comm.call("Mail", "/send", {"points": points})

    @EP("/recommend")
    async def recommend(self, comm):
        try:
            async with asyncio.timeout(0.5):
                found = await comm.call("Model", "/recommend", {"n": DEFAULTS.limit})
        except (TimeoutError, CallError):
            found = await comm.call("Courses", "/popular")
        comm.respond(found)

    @EP("/certificate/{id}")
    async def certificate(self, comm):
        api = Api(comm)
        done = await api.progress("/done", {"id": comm.params["id"]})
        if done:
            image = await api.images("/render", {"text": comm.params["id"]})
            comm.respond(base64.b64encode(json.dumps(image).encode()).decode())
        else:
            comm.respond("not yet", 403)


# Devices


class Sensor:
    kinds: dict[str, Callable[..., "Sensor"]] = {}

    def __init__(self, comm, id):
        self.comm, self.id = comm, id

    @classmethod
    def kind(cls, name):
        def register(sub):
            cls.kinds[name] = sub
            return sub

        return register

    async def read(self):
        return await self.comm.call("Gateway", "/read", {"id": self.id})

    async def value(self):
        return (await self.read()).get("value", 0.0)


@Sensor.kind("temperature")
class Temperature(Sensor):
    async def value(self):
        raw = await super().value()
        offset = await self.comm.call("Calibration", "/offset", {"id": self.id})
        return raw + offset.get("offset", 0)


@Sensor.kind("counter")
class Counter(Sensor):
    last: float = 0.0

    async def value(self):
        now = await super().value()
        if now < self.last:
            await self.comm.call("Alarms", "/reset", {"id": self.id})
        self.last = now
        return now


Sensor.kinds["plain"] = Sensor


@contextlib.asynccontextmanager
async def lease(comm, resource: str) -> AsyncIterator[Json]:
    granted = await comm.call("Leases", "/take", {"resource": resource})
    try:
        yield granted
    finally:
        await comm.call("Leases", "/give", {"resource": resource})


class Devices(MS):
    runtime = "async"
    thresholds = {"temperature": (10, 30), "counter": (0, 100)}

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._known: dict[str, Json] = {}
        self._recent = collections.deque(maxlen=100)

    async def _device(self, comm, id):
        if (device := self._known.get(id)) is None:
            device = self._known[id] = await comm.call("Inventory", "/get", {"id": id})
        return device

    @EP("/value")
    async def value(self, comm):
        kind = comm.params.get("kind", "plain")
        if kind not in Sensor.kinds:
            comm.respond({"error": "kind"}, 422)
            return
        sensor = Sensor.kinds[kind](comm, comm.params.get("id", "1"))
        value = await sensor.value()
        low, high = self.thresholds.get(kind, (float("-inf"), float("inf")))
        if not low <= value <= high:
            await comm.call("Alarms", "/raise", {"id": sensor.id, "value": value})
        comm.respond({"value": value})

    @EP("/ingest", method="POST")
    async def ingest(self, comm):
        events = comm.params.get("events", [])
        self._recent.extend(events)
        for start in range(0, len(events), BATCH):
            await comm.call("Series", "/write", {"events": events[start : start + BATCH]})
        comm.respond({"n": len(events)}, 202)

    @EP("/restart", method="POST")
    async def restart(self, comm):
        id = comm.params.get("id", "d")
        device = await self._device(comm, id)
        async with lease(comm, f"device/{id}"):
            await comm.call("Gateway", "/stop", {"id": id})
            while True:
                state = await comm.call("Gateway", "/state", {"id": id})
                if state.get("state") == "stopped":
                    break
                await asyncio.sleep(0.01)
            await comm.call("Gateway", "/start", {"id": id})
        comm.respond({"device": device})

    @EP("/fleet")
    async def fleet(self, comm):
        ids = await comm.call("Inventory", "/list")
        results: dict[str, Any] = {}

        async def one(id):
            results[id] = await comm.call("Gateway", "/read", {"id": id})

        async with TaskGroup() as group:
            for id in ids:
                group.create_task(one(id))
        comm.respond(results)

    @EP("/firmware", method="POST")
    async def firmware(self, comm):
        version = comm.params.get("version")
        stages: Sequence[tuple[str, float]] = [("canary", 0.01), ("some", 0.1), ("all", 1.0)]
        for stage, share in stages:
            await comm.call("Rollout", "/push", {"stage": stage, "share": share, "version": version})
            health = await comm.call("Rollout", "/health", {"stage": stage})
            if health.get("errors", 0) > 0:
                await comm.call("Rollout", "/revert", {"version": version})
                comm.respond({"reverted": stage}, 500)
                return
        comm.respond({"done": version})

    @EP("/ping")
    async def ping(self, comm):
        started = time.perf_counter()
        targets = ("Gateway", "Inventory")
        answers = await asyncio.gather(*[comm.call(t, "/ping") for t in targets], return_exceptions=True)
        down = [t for t, a in zip(targets, answers) if isinstance(a, Exception)]
        if down:
            await comm.call("Alarms", "/raise", {"down": down})
        comm.respond({"down": down, "ms": 1000 * (time.perf_counter() - started)}, 503 if down else 200)


# Feeds


class Middleware:
    def __init__(self, then):
        self.then = then

    async def __call__(self, comm):
        return await self.then(comm)


class Authenticated(Middleware):
    async def __call__(self, comm):
        token = comm.params.get("token")
        if not token:
            return {"error": "token"}, 401
        session = await comm.call("Sessions", "/get", {"token": token})
        if not session.get("ok"):
            return {"error": "session"}, 403
        return await super().__call__(comm)


class Counted(Middleware):
    async def __call__(self, comm):
        result = await super().__call__(comm)
        comm.call("Metrics", "/count")
        return result


def chain(*layers):
    def decorate(f):
        @functools.wraps(f)
        async def endpoint(self, comm):
            handler = functools.partial(f, self)
            for layer in reversed(layers):
                handler = layer(handler)
            payload, *rest = await handler(comm)
            comm.respond(payload, rest[0] if rest else 200)

        return endpoint

    return decorate


class Feeds(MS):
    runtime = "async"

    @EP("/feed")
    @chain(Counted, Authenticated)
    async def feed(self, comm):
        posts = await comm.call("Posts", "/recent")
        authors = {post["by"] for post in posts}
        names = {}
        if authors:
            names = await comm.call("Users", "/many", {"ids": sorted(authors)})
        return ([{**post, "name": names.get(post["by"])} for post in posts],)

    @EP("/post", method="POST")
    @chain(Authenticated)
    async def post(self, comm):
        text = comm.params.get("text", "").strip()
        if not text:
            return {"error": "empty"}, 422
        mentions = [word[1:] for word in text.split() if word.startswith("@")]
        saved = await comm.call("Posts", "/put", {"text": text})
        for name in mentions:
            comm.call("Notify", "/mention", {"name": name})
        return saved, 201

    @EP("/thread/{id}")
    async def thread(self, comm):
        chain: list[Json] = []
        cursor = comm.params["id"]
        while cursor and len(chain) < 3:
            post = await comm.call("Posts", "/get", {"id": cursor})
            chain.insert(0, post)
            cursor = post.get("parent")
        comm.respond(chain)

    @EP("/search")
    async def search(self, comm):
        q = comm.params.get("q", "")
        sources: dict[str, Callable[[str], Awaitable[list]]] = {
            "posts": lambda q: comm.call("Posts", "/search", {"q": q}),
            "users": lambda q: comm.call("Users", "/search", {"q": q}),
        }
        wanted = comm.params.get("in", "posts,users").split(",")
        tasks = {name: asyncio.ensure_future(f(q)) for name, f in sources.items() if name in wanted}
        results = {}
        for name, task in tasks.items():
            results[name] = await maybe(task, [])
        comm.respond(results)

    @EP("/like", method="POST")
    async def like(self, comm):
        key = comm.params.get("key")
        if key and (before := await comm.call("Idempotency", "/get", {"key": key})):
            comm.respond(before)
            return
        count = (await comm.call("Posts", "/like", {"id": comm.params.get("id")})).get("count", 0)
        answer = {"count": count}
        pending = [comm.call("Idempotency", "/put", {"key": key})] if key else []
        if count % 100 == 0:
            pending.append(comm.call("Notify", "/milestone", {"count": count}))
        comm.respond(answer)
        for future in pending:
            await future


# Builds


@dataclass
class Job:
    name: str
    needs: tuple[str, ...] = ()
    allow_failure: bool = False

    async def run(self, comm) -> bool:
        started = await comm.call("Runner", "/start", {"job": self.name})
        for _ in range(3):
            status = await comm.call("Runner", "/status", {"id": started.get("id")})
            if status.get("done"):
                return bool(status.get("ok")) or self.allow_failure
            await asyncio.sleep(0.001)
        return False


PIPELINE = [Job("lint", allow_failure=True), Job("test", ("lint",)), Job("deploy", ("test",))]


class Builds(MS):
    runtime = "async"

    @EP("/run", method="POST")
    async def run_(self, comm):
        passed: set[str] = set()
        for job in PIPELINE:
            if not passed.issuperset(job.needs):
                break
            if await job.run(comm):
                passed.add(job.name)
        comm.respond(sorted(passed))

    @EP("/diff")
    async def diff(self, comm):
        base, head = comm.params.get("base", "main"), comm.params.get("head")
        if base == head:
            comm.respond([])
            return
        left, right = [await f for f in [comm.call("Git", "/tree", {"ref": r}) for r in (base, head)]]
        changed = sorted(set(left) ^ set(right))
        if len(changed) > 1:
            comm.respond(await comm.call("Git", "/diff", {"files": changed}))
        else:
            comm.respond(changed)

    @EP("/log/{id}")
    async def log(self, comm):
        async def pages():
            cursor: str | None = ""
            while cursor is not None:
                page = await comm.call("Logs", "/page", {"cursor": cursor})
                yield page.get("lines", [])
                cursor = page.get("next")

        lines = []
        async for page in pages():
            lines += page
        comm.respond(lines)

    @EP("/artifact", method="POST")
    async def artifact(self, comm):
        size = comm.params.get("size", 0)
        store = "Cold" if size > 1000 else "Hot"
        first, second = await asyncio.gather(
            comm.call(store, "/put", {"size": size}), comm.call("Index", "/add", {"size": size})
        )
        comm.respond({"store": store, "id": first.get("id"), "entry": second})

    @EP("/schedule", method="POST")
    async def schedule(self, comm):
        kinds: dict[Literal["cron", "once"], str] = {"cron": "/cron", "once": "/at"}
        kind = comm.params.get("kind", "once")
        try:
            path = kinds[kind]
        except KeyError:
            comm.respond({"error": f"kind must be one of {list(kinds)}"}, 422)
        else:
            comm.respond(await comm.call("Scheduler", path, {"at": comm.params.get("at")}))
        finally:
            comm.call("Metrics", "/count")
