from __future__ import annotations

import enum
import functools
import logging
import time
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from mup import Communication
from mup.errors import CallError, CallTimeoutError, MupError

log = logging.getLogger("orders")
T = TypeVar("T")


class OrderState(enum.Enum):
    NEW = "new"
    PAID = "paid"
    SHIPPED = "shipped"
    CANCELLED = "cancelled"


class DomainError(Exception):
    status = 400

    def __init__(self, message, *, detail=None):
        super().__init__(message)
        self.detail = detail or {}


class NotFound(DomainError):
    status = 404


class Conflict(DomainError):
    status = 409


class Gateway(Protocol):
    def fetch(self, key: str) -> dict: ...


@dataclass(slots=True)
class HttpGateway:
    comm: Communication
    service: str
    retries: int = 2

    def fetch(self, key: str) -> dict:
        last = None
        for attempt in range(self.retries + 1):
            try:
                return self.comm.call(self.service, "/item", {"key": key, "attempt": attempt}).get()
            except CallTimeoutError as error:
                last = error
                log.warning("attempt %d: %s", attempt, error)
        raise last


@dataclass
class Repository(Generic[T]):
    comm: Communication
    collection: str

    def one(self, key) -> dict:
        rows = self.comm.query("shop", "one", self.collection, {"_id": key}).get()
        if not rows:
            raise NotFound(f"no {self.collection} {key}")
        return rows[0]

    def page(self, after=None, size=20):
        return self.comm.query("shop", "page", self.collection, {"after": after, "size": size}).get()

    def save(self, row: dict) -> None:
        self.comm.query("shop", "save", self.collection, {"$insert": [row]}).get()

    def __iter__(self):
        after = None
        while rows := self.page(after):
            yield from rows
            after = rows[-1]["_id"]
            if len(rows) < 20:
                return


@contextmanager
def transaction(comm: Communication):
    comm.query("shop", "begin", "tx", {}).get()
    try:
        yield comm
    except Exception:
        comm.query("shop", "rollback", "tx", {}).get()
        raise
    else:
        comm.query("shop", "commit", "tx", {}).get()


def handled(endpoint):
    @functools.wraps(endpoint)
    def wrapper(self, comm, *args, **kwargs):
        started = time.perf_counter()
        try:
            return endpoint(self, comm, *args, **kwargs)
        except DomainError as error:
            comm.respond({"error": str(error), **error.detail}, status=error.status)
        except MupError as error:
            log.exception("upstream")
            comm.respond({"error": "upstream", "kind": type(error).__name__}, status=502)
        finally:
            log.info("%s took %.3f", endpoint.__name__, time.perf_counter() - started)

    return wrapper


def requires(role):
    def decorate(endpoint):
        @functools.wraps(endpoint)
        def wrapper(self, comm, *args, **kwargs):
            token = comm.headers.get("authorization")
            if token is None:
                comm.respond({"error": "who are you?"}, status=401)
                return None
            user = comm.call("Auth", "/verify", {"token": token}).get()
            if role not in user.get("roles", ()):
                comm.respond({"error": "not allowed"}, status=403)
                return None
            return endpoint(self, comm, *args, **kwargs)

        return wrapper

    return decorate


@dataclass
class Saga:
    comm: Communication
    undo: list = field(default_factory=list)

    def step(self, do, undo=None):
        result = do()
        if undo is not None:
            self.undo.append(undo)
        return result

    def compensate(self):
        while self.undo:
            self.undo.pop()()


class TtlCache:
    def __init__(self, ttl: float) -> None:
        self.ttl = ttl
        self._rows: dict = {}

    def get(self, key):
        found = self._rows.get(key)
        if found is None or found[0] < time.monotonic():
            return None
        return found[1]

    def put(self, key, value):
        self._rows[key] = (time.monotonic() + self.ttl, value)


def chunks(items, size):
    for start in range(0, len(items), size):
        yield items[start : start + size]


def walk_tree(comm: Communication, root: str, limit=100):
    queue, seen = deque([root]), set()
    while queue and len(seen) < limit:
        node = queue.popleft()
        if node in seen:
            continue
        seen.add(node)
        children = comm.call("Catalog", "/children", {"node": node}).get()
        queue.extend(c["id"] for c in children)
    return seen
