"""What every service of the messenger shares: errors, the request context, decorators and resilience."""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

from mup import Communication
from mup.errors import CallError, CallTimeoutError, CommunicationError

log = logging.getLogger("messenger")
T = TypeVar("T")


class ApiError(Exception):
    def __init__(self, status: int, message: str, **details: Any) -> None:
        super().__init__(message)
        self.status, self.details = status, details

    def as_body(self) -> dict[str, Any]:
        return {"error": str(self), **self.details}


class NotFound(ApiError):
    def __init__(self, message: str) -> None:
        super().__init__(404, message)


class Role(StrEnum):
    GUEST = "guest"
    MEMBER = "member"
    ADMIN = "admin"
    BOT = "bot"


@dataclass(frozen=True, slots=True)
class Principal:
    user_id: str
    workspace: str
    role: Role = Role.MEMBER
    scopes: frozenset[str] = frozenset()

    @classmethod
    def from_json(cls, row: dict[str, Any]) -> Principal:
        return cls(
            row["user"], row["workspace"], Role(row.get("role", "member")), frozenset(row.get("scopes", ()))
        )

    @property
    def is_admin(self) -> bool:
        return self.role is Role.ADMIN

    def allows(self, scope: str) -> bool:
        if self.is_admin:
            return True
        if self.role is Role.GUEST:
            return scope in self.scopes
        return not scope.startswith("admin:")


@dataclass(slots=True)
class Context:
    """One authenticated request."""

    comm: Communication
    principal: Principal
    answer: tuple[Any, int] | None = None
    _after: list[Awaitable[Any]] = field(default_factory=list)

    def param(self, name: str, default: Any = None) -> Any:
        return self.comm.params.get(name, default)

    def require(self, name: str) -> Any:
        value = self.comm.params.get(name)
        if value in (None, ""):
            raise ApiError(422, f"{name} is required", field=name)
        return value

    def respond(self, body: Any = None, status: int = 200) -> None:
        self.answer = (body, status)
        self.comm.respond(body, status)

    def after(self, work: Awaitable[Any]) -> None:
        """Run this once the client has its answer."""
        self._after.append(work)

    async def drain(self) -> None:
        for result in await asyncio.gather(*self._after, return_exceptions=True):
            if isinstance(result, Exception):
                log.warning("background work failed: %s", result)


async def authenticate(comm: Communication) -> Principal:
    header = comm.headers.get("authorization", "")
    token = header.removeprefix("Bearer ").strip() or comm.cookies.get("session", "")
    if not token:
        raise ApiError(401, "no token")
    try:
        answer = await comm.call("Accounts", "/verify", {"token": token}, timeout=1.0)
    except CallError as error:
        if error.status in (401, 404):
            raise ApiError(401, "unknown token") from error
        raise
    if not answer.get("active"):
        raise ApiError(401, "token has expired")
    return Principal.from_json(answer)


def errors_as_json(handler):
    """Middleware for endpoints without a user."""

    @functools.wraps(handler)
    async def wrapper(self, comm: Communication, *args, **kwargs):
        try:
            await handler(self, comm, *args, **kwargs)
        except ApiError as error:
            comm.respond(error.as_body(), error.status)

    return wrapper


def authenticated(*scopes: str):
    def decorate(handler):
        @functools.wraps(handler)
        async def wrapper(self, comm: Communication, *args, **kwargs):
            try:
                principal = await authenticate(comm)
                if missing := [scope for scope in scopes if not principal.allows(scope)]:
                    raise ApiError(403, "missing scope", scopes=missing)
                ctx = Context(comm, principal)
                await handler(self, ctx, *args, **kwargs)
            except ApiError as error:
                comm.respond(error.as_body(), error.status)
                return
            await ctx.drain()

        return wrapper

    return decorate


def depends(**providers: Callable[[Context], Awaitable[Any]]):
    """Resolve dependencies in order and hand them to the endpoint by name."""

    def decorate(handler):
        async def endpoint(self, ctx: Context) -> None:
            resolved = {}
            for name, provider in providers.items():
                resolved[name] = await provider(ctx)
            await handler(self, ctx, **resolved)

        endpoint.__name__ = handler.__name__
        endpoint.__doc__ = handler.__doc__
        return endpoint

    return decorate


def rate_limited(bucket: str, cost: int = 1):
    def decorate(handler):
        @functools.wraps(handler)
        async def wrapper(self, ctx: Context, *args, **kwargs):
            key = f"{bucket}:{ctx.principal.user_id}"
            try:
                grant = await ctx.comm.call(
                    "RateLimiter", "/take", {"bucket": key, "cost": cost}, timeout=0.2
                )
            except CommunicationError:
                grant = {"allowed": True}  # fail open: chatting matters more than limits
            if not grant.get("allowed", True):
                raise ApiError(429, "slow down", retry_after=grant.get("retry_after", 1))
            return await handler(self, ctx, *args, **kwargs)

        return wrapper

    return decorate


def idempotent(handler):
    """Execute a request with the same Idempotency-Key once, and replay its answer."""

    @functools.wraps(handler)
    async def wrapper(self, ctx: Context, *args, **kwargs):
        key = ctx.comm.headers.get("idempotency-key")
        if key is None:
            return await handler(self, ctx, *args, **kwargs)
        claim = await ctx.comm.call("Idempotency", "/claim", {"key": key, "user": ctx.principal.user_id})
        match claim.get("state"):
            case "done":
                return ctx.respond(claim.get("response"), claim.get("status", 200))
            case "running":
                raise ApiError(409, "the first request is still running")
        try:
            await handler(self, ctx, *args, **kwargs)
        except Exception:
            await or_default(ctx.comm.call("Idempotency", "/release", {"key": key}), None)
            raise
        if ctx.answer is not None:
            body, status = ctx.answer
            ctx.after(
                ctx.comm.call("Idempotency", "/complete", {"key": key, "response": body, "status": status})
            )

    return wrapper


def retrying(attempts: int = 3, base: float = 0.05):
    def decorate(function):
        @functools.wraps(function)
        async def wrapper(*args, **kwargs):
            for attempt in range(attempts):
                try:
                    return await function(*args, **kwargs)
                except CallTimeoutError:
                    if attempt + 1 == attempts:
                        raise
                except CallError as error:
                    if error.status < 500 or attempt + 1 == attempts:
                        raise
                await asyncio.sleep(base * 2**attempt)

        return wrapper

    return decorate


async def or_default(work: Awaitable[T], default: T, timeout: float | None = None) -> T:
    try:
        async with asyncio.timeout(timeout):
            return await work
    except (CommunicationError, TimeoutError):
        return default


@contextmanager
def not_found(what: str) -> Iterator[None]:
    try:
        yield
    except CallError as error:
        if error.status == 404:
            raise NotFound(f"no such {what}") from error
        raise


class CircuitOpen(Exception):
    """Not even tried: it has failed too often of late."""


class CircuitBreaker:
    def __init__(self, threshold: int = 3, cooldown: float = 30.0) -> None:
        self.threshold, self.cooldown = threshold, cooldown
        self.failures = 0
        self.open_until = 0.0

    async def __aenter__(self) -> CircuitBreaker:
        if self.failures >= self.threshold and time.monotonic() < self.open_until:
            raise CircuitOpen("circuit is open")
        return self

    async def __aexit__(self, kind, error, traceback) -> bool:
        if error is None:
            self.failures = 0
        elif isinstance(error, (CommunicationError, TimeoutError)):
            self.failures += 1
            self.open_until = time.monotonic() + self.cooldown
        return False


class TTLCache:
    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._values: dict[str, tuple[float, Any]] = {}
        self._lock = asyncio.Lock()

    async def get(self, key: str, load: Callable[[], Awaitable[Any]]) -> Any:
        async with self._lock:
            known = self._values.get(key)
            if known is not None and known[0] > time.monotonic():
                return known[1]
            value = await load()
            self._values[key] = (time.monotonic() + self.seconds, value)
            return value


async def batched(source: AsyncIterator[T], size: int) -> AsyncIterator[list[T]]:
    batch: list[T] = []
    async for item in source:
        batch.append(item)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
