"""Cross-cutting pieces of the platform: errors, principals, retries, breakers, caches, sagas."""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
import time
import zlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeVar

from mup import Communication
from mup.errors import CallError, CallTimeoutError

log = logging.getLogger("mlops")
T = TypeVar("T")

FAILED = (CallError, CallTimeoutError)


class ApiError(Exception):
    """An error the caller is told about."""

    def __init__(self, status: int, code: str, **detail: Any) -> None:
        super().__init__(code)
        self.status, self.code, self.detail = status, code, detail


def answer_error(comm: Communication, error: Exception) -> None:
    match error:
        case ApiError(status=status, code=code, detail=detail):
            comm.respond({"error": code, **detail}, status)
        case CallTimeoutError():
            comm.respond({"error": "upstream_timeout"}, 504)
        case CallError(status=404):
            comm.respond({"error": "not_found"}, 404)
        case CallError(status=status):
            comm.respond({"error": "upstream_failed", "status": status}, 502)
        case _:
            raise error


def api(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Outermost middleware: turn exceptions into JSON problem bodies."""
    if inspect.iscoroutinefunction(fn):

        @functools.wraps(fn)
        async def async_wrapper(self: Any, comm: Communication, *args: Any, **kwargs: Any) -> None:
            try:
                await fn(self, comm, *args, **kwargs)
            except Exception as error:
                answer_error(comm, error)

        return async_wrapper

    @functools.wraps(fn)
    def wrapper(self: Any, comm: Communication, *args: Any, **kwargs: Any) -> None:
        try:
            fn(self, comm, *args, **kwargs)
        except Exception as error:
            answer_error(comm, error)

    return wrapper


@dataclass(frozen=True, slots=True)
class Principal:
    subject: str
    tenant: str
    scopes: frozenset[str] = frozenset()

    def require(self, scopes: Iterable[str]) -> Principal:
        if "admin" not in self.scopes and (missing := set(scopes) - self.scopes):
            raise ApiError(403, "forbidden", missing=sorted(missing))
        return self

    @classmethod
    def from_claims(cls, claims: dict[str, Any]) -> Principal:
        if not claims.get("active"):
            raise ApiError(401, "token_inactive")
        return cls(
            claims.get("sub", "unknown"), claims.get("tenant", "public"), frozenset(claims.get("scopes", ()))
        )


principal: ContextVar[Principal] = ContextVar("principal")


def bearer(comm: Communication) -> dict[str, str]:
    kind, _, token = comm.headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer" or not token:
        raise ApiError(401, "missing_token")
    return {"token": token}


def secured(*scopes: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Introspect the bearer token and put its principal into the context."""

    def decorate(fn: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.iscoroutinefunction(fn):

            @functools.wraps(fn)
            async def guarded_async(self: Any, comm: Communication, *args: Any, **kwargs: Any) -> None:
                claims = await comm.call("Identity", "/introspect", bearer(comm), timeout=0.5)
                principal.set(Principal.from_claims(claims).require(scopes))
                await fn(self, comm, *args, **kwargs)

            return guarded_async

        @functools.wraps(fn)
        def guarded(self: Any, comm: Communication, *args: Any, **kwargs: Any) -> None:
            claims = comm.call("Identity", "/introspect", bearer(comm), timeout=0.5).get()
            principal.set(Principal.from_claims(claims).require(scopes))
            fn(self, comm, *args, **kwargs)

        return guarded

    return decorate


def retry(send: Callable[[], Any], attempts: int = 3, backoff: float = 0.05) -> Any:
    """Send until it works; errors of the client are not worth another try."""
    for attempt in range(1, attempts + 1):
        try:
            return send().get()
        except FAILED as error:
            if attempt == attempts or (isinstance(error, CallError) and error.status < 500):
                raise
            time.sleep(backoff * 2**attempt)
    raise AssertionError("unreachable")


async def retry_async(send: Callable[[], Awaitable[T]], attempts: int = 2, backoff: float = 0.02) -> T:
    while True:
        attempts -= 1
        try:
            return await send()
        except CallTimeoutError:
            if attempts <= 0:
                raise
        except CallError as error:
            if attempts <= 0 or error.status < 500:
                raise
        await asyncio.sleep(backoff)


@asynccontextmanager
async def quota(comm: Communication, tenant: str, resource: str, units: int = 1):
    """Hold units of a tenant's quota; give them back if the block fails."""
    grant = await comm.call("Quota", "/reserve", {"tenant": tenant, "resource": resource, "units": units})
    if not grant.get("granted", False):
        raise ApiError(429, "quota_exceeded", resource=resource, retry_after=grant.get("retry_after", 60))
    try:
        yield grant
    except BaseException:
        with suppress(*FAILED):
            await comm.call("Quota", "/release", {"lease": grant.get("lease")}, timeout=0.5)
        raise


class CircuitBreaker:
    """Opens after some failures in a row; lets one call through after having rejected a few."""

    def __init__(self, threshold: int = 3, probe_every: int = 5) -> None:
        self.threshold, self.probe_every = threshold, probe_every
        self.failures = self.rejected = 0

    def __enter__(self) -> CircuitBreaker:
        if self.failures >= self.threshold:
            self.rejected += 1
            if self.rejected % self.probe_every:
                raise ApiError(503, "circuit_open")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        self.failures = 0 if kind is None else self.failures + 1


class LRU(OrderedDict[Any, Any]):
    """A small cache."""

    def __init__(self, size: int = 128) -> None:
        super().__init__()
        self.size = size

    def put(self, key: Any, value: T) -> T:
        self[key] = value
        self.move_to_end(key)
        while len(self) > self.size:
            self.popitem(last=False)
        return value


@dataclass
class Saga:
    """Steps with compensations, which run in reverse order if the block raises."""

    comm: Communication
    undo: list[Callable[[], Any]] = field(default_factory=list)

    def step(self, service: str, path: str, params: dict[str, Any]) -> dict[str, Any]:
        return self.comm.call(service, path, params).get()

    def compensate(self, service: str, path: str, params: dict[str, Any]) -> None:
        self.undo.append(functools.partial(self.comm.call, service, path, params, timeout=1.0))

    def __enter__(self) -> Saga:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: Any) -> bool:
        if kind is not None:
            for action in reversed(self.undo):
                try:
                    action().get()
                except FAILED:
                    log.exception("compensation failed")
        return False


def batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    rest = iter(items)
    while chunk := list(islice(rest, size)):
        yield chunk


def bucket(key: str, buckets: int = 100) -> int:
    return zlib.crc32(key.encode()) % buckets


def audit(comm: Communication, action: str, **fields: Any) -> None:
    """Append to the audit trail; nobody waits for it."""
    who = principal.get(None)
    comm.call("Audit", "/append", {"action": action, "by": who.subject if who else "system", **fields})
