"""Shared plumbing of the grid platform: errors, request dependencies, background work, resilience."""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from mup import Communication
from mup.errors import BrokenCallError, CallError, CallTimeoutError, CommunicationError

log = logging.getLogger("grid")
T = TypeVar("T")


class ApiError(Exception):
    status = 400

    def __init__(self, detail: str, status: int | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        if status is not None:
            self.status = status


class NotFound(ApiError):
    status = 404


class Conflict(ApiError):
    status = 409


class Unprocessable(ApiError):
    status = 422


@dataclass(frozen=True, slots=True)
class Reply:
    """What an endpoint returns if the status is not the usual one."""

    body: Any
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


# --- dependencies -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Principal:
    subject: str
    tenant: str
    scopes: frozenset[str]

    def can(self, scope: str) -> bool:
        return scope in self.scopes or "admin" in self.scopes

    @classmethod
    def from_claims(cls, claims: dict[str, Any]) -> Principal:
        return cls(claims.get("sub", ""), claims.get("tenant", "public"), frozenset(claims.get("scopes", ())))


principal_var: ContextVar[Principal] = ContextVar("principal")


def bearer_token(comm: Communication) -> str:
    scheme, _, token = comm.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise ApiError("missing bearer token", 401)
    return token


async def current_principal(comm: Communication) -> Principal:
    token = bearer_token(comm)
    try:
        claims = await comm.call("Auth", "/introspect", {"token": token}, timeout=1.0)
    except CallError as error:
        raise ApiError("token rejected", 401 if error.status in (401, 404) else 503) from error
    if not claims.get("active"):
        raise ApiError("inactive token", 401)
    return Principal.from_claims(claims)


def authorize(comm: Communication, scope: str) -> Principal:
    """The same for blocking services."""
    claims = comm.call("Auth", "/introspect", {"token": bearer_token(comm)}, timeout=1.0).get()
    principal = Principal.from_claims(claims)
    if not claims.get("active") or not principal.can(scope):
        raise ApiError(f"{scope} needed", 403)
    return principal


def requires(scope: str) -> Callable[..., Any]:
    def decorate(handler: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        @functools.wraps(handler)
        async def wrapper(self: Any, comm: Communication, *args: Any, **kwargs: Any) -> Any:
            principal = await current_principal(comm)
            if not principal.can(scope):
                raise ApiError(f"{scope} needed", 403)
            reset = principal_var.set(principal)
            try:
                return await handler(self, comm, *args, **kwargs)
            finally:
                principal_var.reset(reset)

        return wrapper

    return decorate


def json_api(status: int = 200) -> Callable[..., Any]:
    """Respond with what the handler returns, and turn its errors into statuses."""

    def decorate(handler: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[None]]:
        @functools.wraps(handler)
        async def wrapper(self: Any, comm: Communication, *args: Any, **kwargs: Any) -> None:
            try:
                result = await handler(self, comm, *args, **kwargs)
            except ApiError as error:
                comm.respond({"error": error.detail}, error.status)
            except CommunicationError as error:
                log.warning("upstream of %s failed: %s", handler.__name__, error)
                comm.respond({"error": "upstream failure"}, 502)
            else:
                if isinstance(result, Reply):
                    comm.respond(result.body, result.status, headers=result.headers)
                else:
                    comm.respond(result, status)

        return wrapper

    return decorate


def blocking_api(handler: Callable[..., Any]) -> Callable[..., None]:
    @functools.wraps(handler)
    def wrapper(self: Any, comm: Communication, *args: Any, **kwargs: Any) -> None:
        try:
            result = handler(self, comm, *args, **kwargs)
        except ApiError as error:
            comm.respond({"error": error.detail}, error.status)
            return
        if isinstance(result, Reply):
            comm.respond(result.body, result.status)
        else:
            comm.respond(result)

    return wrapper


def idempotent(handler: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    @functools.wraps(handler)
    async def wrapper(self: Any, comm: Communication, *args: Any, **kwargs: Any) -> Any:
        key = comm.headers.get("idempotency-key")
        if not key:
            return await handler(self, comm, *args, **kwargs)
        known = await comm.call("Idempotency", "/lookup", {"key": key})
        if known.get("found"):
            return known.get("reply", {})
        result = await handler(self, comm, *args, **kwargs)
        if not isinstance(result, Reply):
            await comm.call("Idempotency", "/store", {"key": key, "reply": result})
        return result

    return wrapper


async def rate_limit(comm: Communication, bucket: str, cost: int = 1) -> None:
    try:
        verdict = await comm.call("Limiter", "/take", {"bucket": bucket, "cost": cost}, timeout=0.2)
    except CommunicationError:
        return  # fail open: rather serve too much than nothing
    if verdict.get("limited"):
        raise ApiError("slow down", 429)


async def feature_enabled(comm: Communication, flag: str, tenant: str, default: bool = False) -> bool:
    try:
        return bool(
            (await comm.call("Flags", "/evaluate", {"flag": flag, "tenant": tenant})).get("on", default)
        )
    except CommunicationError:
        return default


# --- resilience -------------------------------------------------------------------------------------------


async def retry(operation: Callable[[], Awaitable[T]], *, attempts: int = 3, delay: float = 0.05) -> T:
    for attempt in range(1, attempts + 1):
        try:
            return await operation()
        except CallError as error:
            if error.status < 500 or attempt == attempts:
                raise
        except (CallTimeoutError, BrokenCallError):
            if attempt == attempts:
                raise
        await asyncio.sleep(delay * 2 ** (attempt - 1))
    raise AssertionError("unreachable")


class CircuitBreaker:
    def __init__(self, threshold: int = 3, cooldown: float = 30.0) -> None:
        self.threshold = threshold
        self.cooldown = cooldown
        self._failures = 0
        self._open_until = 0.0

    @property
    def is_open(self) -> bool:
        return self._failures >= self.threshold and time.monotonic() < self._open_until

    async def run(self, operation: Callable[[], Awaitable[T]]) -> T:
        if self.is_open:
            raise ApiError("circuit open", 503)
        try:
            result = await operation()
        except CommunicationError:
            self._failures += 1
            self._open_until = time.monotonic() + self.cooldown
            raise
        self._failures = 0
        return result


class TtlCache(Generic[T]):
    def __init__(self, ttl: float) -> None:
        self.ttl = ttl
        self._entries: dict[str, tuple[float, T]] = {}

    async def get_or_load(self, key: str, load: Callable[[], Awaitable[T]]) -> T:
        entry = self._entries.get(key)
        if entry is not None and entry[0] > time.monotonic():
            return entry[1]
        value = await load()
        self._entries[key] = (time.monotonic() + self.ttl, value)
        return value

    def drop(self, key: str) -> None:
        self._entries.pop(key, None)


class Saga:
    """Steps that are undone in reverse order if a later one fails."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], Awaitable[Any]]] = []

    def on_failure(self, undo: Callable[[], Awaitable[Any]]) -> None:
        self._undo.append(undo)

    async def __aenter__(self) -> Saga:
        return self

    async def __aexit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        if error is not None:
            for undo in reversed(self._undo):
                try:
                    await undo()
                except CommunicationError:
                    log.exception("compensation failed")
        return False


@asynccontextmanager
async def lease(comm: Communication, name: str) -> AsyncIterator[str]:
    granted = await comm.call("Locks", "/acquire", {"name": name, "ttl": 60})
    if not granted.get("token"):
        raise Conflict(f"{name} is busy")
    try:
        yield granted["token"]
    finally:
        await comm.call("Locks", "/release", {"name": name, "token": granted["token"]})


async def gather_limited(limit: int, jobs: Iterable[Awaitable[T]]) -> list[T | BaseException]:
    semaphore = asyncio.Semaphore(limit)

    async def run(job: Awaitable[T]) -> T:
        async with semaphore:
            return await job

    return await asyncio.gather(*(run(job) for job in jobs), return_exceptions=True)


def chunked(items: list[T], size: int) -> Iterator[list[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
