"""What the services share."""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, ParamSpec, TypeVar

from mup import Communication
from mup.errors import CallError, CallTimeoutError

P = ParamSpec("P")
R = TypeVar("R")
log = logging.getLogger(__name__)


class DomainError(Exception):
    status = 400

    def __init__(self, message: str = "", **details: Any) -> None:
        super().__init__(message)
        self.details = details


class Missing(DomainError):
    status = 404


class Conflict(DomainError):
    status = 409


def answers(f):
    """Answer with what the endpoint returns, or with the status of a DomainError."""

    @functools.wraps(f)
    async def wrapper(self, comm, *args, **kwargs):
        try:
            result = await f(self, comm, *args, **kwargs)
        except DomainError as error:
            comm.respond({"error": str(error), **error.details}, error.status)
            return
        except CallError as error:
            log.exception("upstream")
            comm.respond({"error": "upstream"}, 503 if (error.status or 500) >= 500 else 424)
            return
        body, status = result if isinstance(result, tuple) else (result, 200)
        comm.respond(body, status)

    return wrapper


def with_retry(attempts: int = 3, delay: float = 0.1, factor: float = 2.0, retry_on=(CallTimeoutError,)):
    def decorate(f: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
        @functools.wraps(f)
        async def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
            pause = delay
            for attempt in range(attempts):
                try:
                    return await f(*args, **kwargs)
                except retry_on as error:
                    if attempt + 1 == attempts:
                        raise
                    log.warning("attempt %d: %s", attempt, error)
                    await asyncio.sleep(pause)
                    pause *= factor
            raise AssertionError("unreachable")

        return wrapper

    return decorate


def cached(ttl: float = 10.0):
    def decorate(f):
        store: dict[Any, tuple[float, Any]] = {}

        @functools.wraps(f)
        async def wrapper(self, comm, key):
            hit = store.get(key)
            if hit is not None and hit[0] > time.monotonic():
                return hit[1]
            value = await f(self, comm, key)
            store[key] = (time.monotonic() + ttl, value)
            return value

        return wrapper

    return decorate


class Gateway(ABC):
    name: str

    def __init__(self, comm: Communication) -> None:
        self.comm = comm

    @abstractmethod
    async def charge(self, amount: int) -> dict: ...

    async def refund(self, id: str) -> None:
        await self.comm.call(self.name, "/refund", {"id": id})


class Stripe(Gateway):
    name = "Stripe"

    @with_retry(2)
    async def charge(self, amount):
        return await self.comm.call(self.name, "/charge", {"amount": amount}, timeout=2)


class Wallet(Gateway):
    name = "Wallet"

    async def charge(self, amount):
        balance = await self.comm.call(self.name, "/balance") or {}
        if balance.get("amount", 0) < amount:
            raise Conflict("funds", balance=balance.get("amount"))
        return await self.comm.call(self.name, "/debit", {"amount": amount})

    async def refund(self, id):
        await self.comm.call(self.name, "/credit", {"id": id})


GATEWAYS: dict[str, type[Gateway]] = {cls.name.lower(): cls for cls in (Stripe, Wallet)}


def gateway(kind: str, comm) -> Gateway:
    try:
        return GATEWAYS[kind](comm)
    except KeyError:
        raise Missing(f"no gateway {kind}") from None


class Unit:
    """A unit of work."""

    def __init__(self, comm, owner: str) -> None:
        self.comm, self.owner = comm, owner
        self.events: list[tuple[str, dict]] = []
        self.committed = False

    async def __aenter__(self):
        await self.comm.call("Store", "/begin", {"owner": self.owner})
        return self

    async def __aexit__(self, kind, error, trace):
        if kind is None and self.committed:
            for name, payload in self.events:
                await self.comm.call("Events", "/publish", {"name": name, **payload})
        else:
            await self.comm.call("Store", "/rollback")

    def record(self, name, **payload):
        self.events.append((name, payload))

    async def commit(self):
        await self.comm.call("Store", "/commit")
        self.committed = True


@asynccontextmanager
async def lease(comm, name, seconds=5) -> AsyncIterator[str]:
    token = await comm.call("Store", "/lock", {"name": name, "for": seconds})
    if not token:
        raise Conflict("locked", name=name)
    try:
        yield str(token)
    finally:
        await comm.call("Store", "/unlock", {"name": name})


@dataclass
class Pipeline(Generic[R]):
    stages: list[Callable[[Any], Awaitable[Any]]] = field(default_factory=list)

    def then(self, stage) -> "Pipeline":
        return Pipeline([*self.stages, stage])

    def __rshift__(self, stage):
        return self.then(stage)

    async def __call__(self, value):
        for stage in self.stages:
            value = stage(value)
            if inspect.isawaitable(value):
                value = await value
        return value
