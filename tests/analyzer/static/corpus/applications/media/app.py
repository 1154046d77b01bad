"""Async services as a FastAPI developer would port them."""

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from functools import lru_cache, wraps
from typing import Annotated, Any, Literal

from mup import EP, MS, Communication
from mup.errors import CallError, CallTimeoutError, MupError, QueryError

logger = logging.getLogger(__name__)
current_user: ContextVar[str | None] = ContextVar("user", default=None)

Quality = Literal["low", "high"]


@dataclass
class Video:
    id: str
    title: str
    parts: list[str]
    premium: bool = False

    @classmethod
    def parse(cls, row: dict) -> "Video":
        return cls(row["_id"], row.get("title", ""), row.get("parts", []), row.get("premium", False))


class RateLimited(Exception):
    def __init__(self, retry_after: float) -> None:
        self.retry_after = retry_after


class Videos:
    def __init__(self, comm: Communication) -> None:
        self._comm = comm

    async def find(self, id: str) -> Video | None:
        rows = await self._comm.query("media", "video", "videos", {"_id": id})
        return Video.parse(rows[0]) if rows else None

    async def pages(self, size: int = 2) -> AsyncIterator[list[Video]]:
        token = None
        while True:
            page = await self._comm.call("Index", "/page", {"token": token, "size": size})
            yield [Video.parse(r) for r in page["rows"]]
            token = page.get("next")
            if not token:
                break


@contextlib.asynccontextmanager
async def span(comm: Communication, name: str):
    logger.debug("begin %s", name)
    try:
        yield
    except MupError as error:
        logger.warning("%s failed: %s", name, error)
        raise
    finally:
        logger.debug("end %s", name)


def authenticated(fn):
    @wraps(fn)
    async def wrapper(self, comm: Communication, **kwargs: Any):
        token = comm.headers.get("authorization", "").removeprefix("Bearer ")
        if not token:
            return comm.respond({"detail": "unauthorized"}, status=401)
        try:
            user = await comm.call("Accounts", "/whoami", {"token": token})
        except CallError as error:
            if error.status == 401:
                return comm.respond({"detail": "expired"}, status=401)
            raise
        reset = current_user.set(user["id"])
        try:
            return await fn(self, comm, **kwargs)
        finally:
            current_user.reset(reset)

    return wrapper


async def retrying(make, attempts=3, base=0.01):
    for attempt in range(1, attempts + 1):
        try:
            return await make()
        except (CallTimeoutError, ConnectionError):
            if attempt == attempts:
                raise
            await asyncio.sleep(base * 2**attempt)


async def first_ok(*makers):
    errors = []
    for make in makers:
        try:
            return await make()
        except MupError as error:
            errors.append(error)
    raise errors[-1]


class Media(MS):
    runtime = "async"
    pool_size = 64

    def setup(self) -> None:
        self.locks: dict[str, asyncio.Lock] = {}
        self.slots = asyncio.Semaphore(5)
        self.background: set[asyncio.Task] = set()

    @EP("/videos/{id}", method="GET")
    async def video(self, comm: Communication, id: str) -> None:
        video = await Videos(comm).find(id)
        if video is None:
            comm.respond({"detail": "not found"}, status=404)
            return
        comm.respond(asdict(video))

    @EP("/videos/{id}/play", method="POST")
    @authenticated
    async def play(self, comm: Communication, id: str, quality: Quality = "low") -> None:
        video, limits = await asyncio.gather(
            Videos(comm).find(id), comm.call("Accounts", "/limits", {"user": current_user.get()})
        )
        if video is None:
            return comm.respond({"detail": "not found"}, status=404)
        if video.premium and not limits.get("premium"):
            return comm.respond({"detail": "premium only"}, status=402)
        async with span(comm, "manifest"):
            manifest = await comm.call("Packager", f"/{quality}-manifest", {"id": id})
        task = asyncio.create_task(self._count(comm, id))
        self.background.add(task)
        task.add_done_callback(self.background.discard)
        comm.respond({"manifest": manifest, "user": current_user.get()})

    async def _count(self, comm: Communication, id: str) -> None:
        with contextlib.suppress(MupError):
            await comm.query("media", "count", "views", {"_id": id})

    @EP("/home", method="GET")
    @authenticated
    async def home(self, comm: Communication) -> None:
        async def rail(name: str) -> dict:
            try:
                rows = await asyncio.wait_for(
                    comm.call("Rails", f"/{name}", {"user": current_user.get()}), 0.4
                )
            except (asyncio.TimeoutError, MupError):
                rows = []
            return {"name": name, "rows": rows}

        rails = await asyncio.gather(*(rail(n) for n in ("continue", "trending", "new")))
        comm.respond([r for r in rails if r["rows"]])

    @EP("/thumbs", method="POST")
    async def thumbs(self, comm: Communication, ids: list[str]) -> None:
        async def one(id: str):
            async with self.slots:
                return id, await comm.call("Thumbs", "/render", {"id": id})

        results = await asyncio.gather(*[one(i) for i in ids], return_exceptions=True)
        good = dict(r for r in results if not isinstance(r, BaseException))
        comm.respond({"thumbs": good, "failed": len(results) - len(good)})

    @EP("/reindex", method="POST")
    async def reindex(self, comm: Communication) -> None:
        count = 0
        async for page in Videos(comm).pages():
            await asyncio.gather(*(comm.call("Index", "/put", {"id": v.id}) for v in page))
            count += len(page)
        comm.respond({"indexed": count})

    @EP("/search", method="GET")
    async def search(self, comm: Communication, q: str = "", mode: str = "auto") -> None:
        try:
            match mode:
                case "exact":
                    rows = await comm.query("media", "exact", "videos", {"title": q})
                case "fuzzy" | "auto":
                    rows = await first_ok(
                        lambda: comm.call("Index", "/search", {"q": q}),
                        lambda: comm.query("media", "scan", "videos", {"title": q}),
                    )
                case _:
                    raise ValueError(mode)
        except ValueError as error:
            comm.respond({"detail": f"bad mode {error}"}, status=422)
        except MupError:
            comm.respond({"detail": "search is down"}, status=503)
        else:
            comm.respond({"rows": rows})

    @EP("/upload", method="POST")
    async def upload(self, comm: Communication, name: str, size: int) -> None:
        if size > 1_000_000:
            comm.respond({"detail": "too large"}, status=413)
            return
        ticket = await retrying(lambda: comm.call("Storage", "/ticket", {"name": name}))
        async with asyncio.TaskGroup() as group:
            meta = group.create_task(self._store_meta(comm, name, size))
            scan = group.create_task(self._scan(comm, ticket))
        comm.respond({"id": meta.result(), "clean": scan.result()}, status=201)

    async def _store_meta(self, comm, name, size):
        rows = await comm.query("media", "insert", "videos", {"$insert": [{"name": name, "size": size}]})
        return rows

    async def _scan(self, comm, ticket):
        report = await comm.call("Scanner", "/scan", {"ticket": ticket})
        if report.get("suspicious"):
            report = await comm.call("Scanner", "/deep", {"ticket": ticket})
        return not report.get("infected", False)

    @EP("/settings/{key}", method="PUT")
    async def settings(self, comm: Communication, key: str) -> None:
        lock = self.locks.setdefault(key, asyncio.Lock())
        async with lock:
            rows = await comm.query("media", "get", "settings", {"_id": key})
            version = rows[0]["v"] if rows else 0
            await comm.query("media", "put", "settings", {"$insert": [{"_id": key, "v": version + 1}]})
        comm.respond({"version": version + 1})

    @EP("/events", method="POST")
    async def events(self, comm: Communication) -> None:
        handlers = {
            "played": self._on_played,
            "liked": self._on_liked,
        }
        for event in comm.params.get("events", []):
            handler = handlers.get(event.get("type"))
            if handler is None:
                logger.info("ignored %s", event)
                continue
            await handler(comm, event)
        comm.respond({"ok": True})

    async def _on_played(self, comm, event):
        await comm.query("media", "played", "history", {"$insert": [event]})

    async def _on_liked(self, comm, event):
        await comm.call("Accounts", "/like", event)
        await comm.query("media", "liked", "likes", {"$insert": [event]})

    @EP("/related/{id}", method="GET")
    async def related(self, comm: Communication, id: str, depth: int = 1) -> None:
        seen: set[str] = set()
        level = [id]
        for _ in range(2):
            answers = await asyncio.gather(*[comm.call("Index", "/related", {"id": i}) for i in level])
            level = [r for rows in answers for r in rows if r not in seen]
            seen.update(level)
        comm.respond(sorted(seen))

    @EP("/price/{id}", method="GET")
    async def price(self, comm: Communication, id: str) -> None:
        fast = asyncio.create_task(comm.call("Pricing", "/fast", {"id": id}))
        slow = asyncio.create_task(comm.call("Pricing", "/exact", {"id": id}))
        done, pending = await asyncio.wait({fast, slow}, timeout=0.2)
        for task in pending:
            task.cancel()
        best = slow if slow in done else fast
        if best not in done:
            comm.respond({"detail": "late"}, status=504)
            return
        comm.respond(best.result())

    @EP("/feed", method="GET")
    async def feed(self, comm: Communication) -> None:
        tasks = [asyncio.create_task(comm.call("Rails", p, {})) for p in ("/continue", "/trending", "/new")]
        rows = []
        for done in asyncio.as_completed(tasks):
            try:
                rows += await done
            except MupError:
                continue
        comm.respond(rows)

    @EP("/stats", method="GET")
    async def stats(self, comm: Communication) -> None:
        names = ["views", "likes", "shares"]
        values = await asyncio.gather(*map(lambda n: comm.query("media", n, n, {}), names))
        comm.respond(dict(zip(names, map(len, values))))

    @EP("/purge/{id}", method="DELETE")
    async def purge(self, comm: Communication, id: str) -> None:
        steps = (
            ("Storage", "/delete"),
            ("Index", "/delete"),
            ("Thumbs", "/delete"),
        )
        errors = {}
        for service, path in steps:
            try:
                await comm.call(service, path, {"id": id})
            except MupError as error:
                errors[service] = type(error).__name__
                if isinstance(error, CallError) and error.status == 404:
                    del errors[service]
        comm.respond({"errors": errors}, status=207 if errors else 204)

    @EP("/webhook", method="POST")
    async def webhook(self, comm: Communication) -> None:
        payload = comm.params
        comm.respond({"received": True}, status=202)
        await asyncio.sleep(0)
        try:
            async with asyncio.timeout(1.0):
                await comm.call("Accounts", "/hook", payload)
        except TimeoutError:
            await comm.query("media", "late", "hooks", {"$insert": [payload]})
        except MupError:
            logger.exception("hook")

    @EP("/config", method="GET")
    async def config(self, comm: Communication) -> None:
        comm.respond(json.loads(self._default_config()))

    @staticmethod
    @lru_cache(maxsize=1)
    def _default_config() -> str:
        return json.dumps({"a": 1})
