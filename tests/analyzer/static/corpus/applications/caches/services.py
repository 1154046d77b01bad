"""Caches at all levels, sessions, and limits."""

import functools
import hashlib
import json
import time
from collections import OrderedDict, deque

from mup import EP, MS, Communication
from mup.errors import CommunicationError, QueryError


class TTLCache:
    def __init__(self, seconds: float, size: int = 128) -> None:
        self.seconds = seconds
        self.size = size
        self._items = OrderedDict()

    def get(self, key):
        entry = self._items.get(key)
        if entry is None or time.monotonic() - entry[0] > self.seconds:
            return None
        self._items.move_to_end(key)
        return entry[1]

    def put(self, key, value) -> None:
        self._items[key] = (time.monotonic(), value)
        while len(self._items) > self.size:
            self._items.popitem(last=False)


def cached(function):
    """Keep results by the arguments behind ``comm``."""
    known = {}

    @functools.wraps(function)
    def wrapper(self, comm, *args):
        if args not in known or len(known) > 3:
            known.clear()
            known[args] = function(self, comm, *args)
        return known[args]

    return wrapper


@functools.lru_cache(maxsize=64)
def key_of(kind: str, name: str) -> str:
    return hashlib.sha256(f"{kind}:{name}".encode()).hexdigest()


class RateLimiter:
    def __init__(self, most: int, seconds: float) -> None:
        self.most = most
        self.seconds = seconds
        self.hits = {}

    def allows(self, who: str) -> bool:
        hits = self.hits.setdefault(who, deque())
        now = time.monotonic()
        while hits and now - hits[0] > self.seconds:
            hits.popleft()
        if len(hits) >= self.most:
            return False
        hits.append(now)
        return True


class Catalog(MS):
    runtime = "thread"
    pool_size = 8

    def setup(self) -> None:
        self.pages = TTLCache(30.0)
        self.limiter = RateLimiter(5, 1.0)
        self.etags = {}

    @EP("/page/{name}", method="GET")
    def page(self, comm: Communication, name: str) -> None:
        page = self.pages.get(name)
        if page is None:
            page = comm.call("Pages", "/render", {"name": name}).get()
            self.pages.put(name, page)
        comm.respond(page)

    @EP("/aside/{name}", method="GET")
    def aside(self, comm: Communication, name: str) -> None:
        key = key_of("page", name)
        try:
            hit = comm.query("redis", "get", "pages", {"_id": key}).get()
        except QueryError:
            hit = []
        if hit:
            comm.respond(hit[0], headers={"X-Cache": "hit"})
            return
        page = comm.call("Pages", "/render", {"name": name}).get()
        try:
            comm.query("redis", "put", "pages", {"$insert": [{"_id": key, "page": page}]}).get()
        except QueryError:
            pass
        comm.respond(page, headers={"X-Cache": "miss"})

    @cached
    def _tree(self, comm, root):
        return comm.query("catalog", "tree", "categories", {"root": root}).get()

    @EP("/tree/{root}", method="GET")
    def tree(self, comm: Communication, root: str) -> None:
        comm.respond(self._tree(comm, root))

    @EP("/stale/{name}", method="GET")
    def stale(self, comm: Communication, name: str) -> None:
        """An old page is better than none."""
        try:
            page = comm.call("Pages", "/render", {"name": name}).get(timeout=0.5)
        except CommunicationError:
            page = self.pages.get(name)
            if page is None:
                comm.respond({"error": "not available"}, status=503)
                return
        else:
            self.pages.put(name, page)
        comm.respond(page)

    @EP("/etag/{name}", method="GET")
    def etag(self, comm: Communication, name: str) -> None:
        known = comm.headers.get("if-none-match")
        if known is not None and self.etags.get(name) == known:
            comm.respond(None, status=304)
            return
        page = comm.call("Pages", "/render", {"name": name}).get()
        tag = hashlib.md5(json.dumps(page).encode()).hexdigest()
        self.etags[name] = tag
        comm.respond(page, headers={"ETag": tag})

    @EP("/limited", method="GET")
    def limited(self, comm: Communication) -> None:
        if not self.limiter.allows(comm.headers.get("x-client", "anonymous")):
            comm.respond({"error": "slow down"}, status=429, headers={"Retry-After": "1"})
            return
        comm.respond(comm.query("catalog", "all", "items", {}).get())

    @EP("/session", method="POST")
    def session(self, comm: Communication) -> None:
        id = comm.cookies.get("session")
        session = None
        if id:
            rows = comm.query("redis", "session", "sessions", {"_id": id}).get()
            session = rows[0] if rows else None
        if session is None:
            session = {"_id": comm.request_id, "visits": 0}
            comm.query("redis", "new_session", "sessions", {"$insert": [session]}).get()
        else:
            change = {"filter": {"_id": id}, "update": {"$inc": {"visits": 1}}}
            comm.query("redis", "visit", "sessions", {"$update": change}).get()
        comm.respond({"visits": session.get("visits", 0)}, cookies={"session": session["_id"]})

    @EP("/invalidate/{name}", method="POST")
    def invalidate(self, comm: Communication, name: str) -> None:
        for layer in ("redis", "cdn"):
            comm.query(layer, "drop", "pages", {"$delete": {"filter": {"_id": name}}}).get()
        comm.respond(None, status=204)

    @EP("/many", method="POST")
    def many(self, comm: Communication, names: list[str]) -> None:
        pages, missing = {}, []
        for name in names:
            page = self.pages.get(name)
            if page is None:
                missing.append(name)
            else:
                pages[name] = page
        if missing:
            answer = comm.call("Pages", "/render-many", {"names": missing}).get()
            for name, page in answer.items():
                self.pages.put(name, page)
                pages[name] = page
        comm.respond(pages)


class Pages(MS):
    @EP("/render")
    def render(self, comm: Communication, name: str) -> None:
        template = comm.query("pages", "template", "templates", {"_id": name})
        content = comm.query("pages", "content", "contents", {"page": name})
        rows = content.get()
        if not rows:
            comm.respond({"error": "no such page"}, status=404)
            return
        comm.respond({"template": template.get(), "content": rows})

    @EP("/render-many")
    def render_many(self, comm: Communication, names: list[str]) -> None:
        rows = comm.query("pages", "contents", "contents", {"page": {"$in": names}}).get()
        comm.respond({row["_id"]: row for row in rows})
