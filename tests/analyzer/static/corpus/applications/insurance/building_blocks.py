"""Shared kernel of all bounded contexts: results, errors, security, resilience, specifications, commands, sagas."""

from __future__ import annotations

import functools
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Generic, NoReturn, TypeVar

from mup import Communication
from mup.errors import CallError, CommunicationError

log = logging.getLogger("insurance")
T = TypeVar("T")
C = TypeVar("C", bound="Command")


class DomainError(Exception):
    status = 422

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.problem = {"type": type(self).__name__, "title": message, **details}


class ValidationFailed(DomainError): ...


class Unauthorized(DomainError):
    status = 401


class Forbidden(DomainError):
    status = 403


class NotFound(DomainError):
    status = 404


class Conflict(DomainError):
    status = 409


class Unavailable(DomainError):
    status = 503


@dataclass(frozen=True, slots=True)
class Ok(Generic[T]):
    value: T

    def unwrap(self) -> T:
        return self.value


@dataclass(frozen=True, slots=True)
class Err:
    error: DomainError

    def unwrap(self) -> NoReturn:
        raise self.error


Result = Ok[T] | Err


@dataclass(frozen=True, slots=True)
class Principal:
    subject: str
    tenant: str
    roles: frozenset[str]

    @classmethod
    def from_claims(cls, claims: Mapping[str, Any], needed: tuple[str, ...]) -> Principal:
        if not claims.get("active"):
            raise Unauthorized("token is not active")
        roles = frozenset(claims.get("roles", ()))
        if needed and roles.isdisjoint(needed):
            raise Forbidden("missing role", needs=sorted(needed))
        return cls(claims.get("sub", "?"), claims.get("tenant", "default"), roles)


user: ContextVar[Principal] = ContextVar("user")


def bearer_token(comm: Communication) -> str:
    scheme, _, token = comm.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token:
        return token
    if session := comm.cookies.get("session"):
        return session
    raise Unauthorized("no credentials")


def forwarded(comm: Communication) -> dict[str, str]:
    return {"authorization": f"Bearer {bearer_token(comm)}"}


def secured(*roles: str, bucket: str | None = None) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Authenticate, authorize, limit, and translate domain errors: for blocking endpoints."""

    def decorate(endpoint: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(endpoint)
        def wrapper(self: Any, comm: Communication, *args: Any, **kwargs: Any) -> None:
            try:
                claims = comm.call(
                    "Identity", "/introspect", {"token": bearer_token(comm)}, timeout=1.0
                ).get()
                user.set(Principal.from_claims(claims, roles))
                if bucket is not None:
                    quota = comm.call(
                        "RateLimit", "/take", {"bucket": bucket, "key": user.get().tenant}
                    ).get()
                    if quota.get("exhausted"):
                        comm.respond({"type": "TooManyRequests"}, 429, headers={"Retry-After": "1"})
                        return
                endpoint(self, comm, *args, **kwargs)
            except DomainError as error:
                comm.respond(error.problem, error.status)

        return wrapper

    return decorate


def async_secured(*roles: str) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., Awaitable[None]]]:
    """The same for endpoints of the event loop."""

    def decorate(endpoint: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
        @functools.wraps(endpoint)
        async def wrapper(self: Any, comm: Communication, *args: Any, **kwargs: Any) -> None:
            try:
                claims = await comm.call(
                    "Identity", "/introspect", {"token": bearer_token(comm)}, timeout=1.0
                )
                user.set(Principal.from_claims(claims, roles))
                await endpoint(self, comm, *args, **kwargs)
            except DomainError as error:
                comm.respond(error.problem, error.status)

        return wrapper

    return decorate


def retry(attempts: int = 3, pause: float = 0.05) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Repeat what failed in a way that may pass."""

    def decorate(function: Callable[..., T]) -> Callable[..., T]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> T:
            for attempt in range(1, attempts + 1):
                try:
                    return function(*args, **kwargs)
                except CommunicationError as error:
                    refused = isinstance(error, CallError) and error.status < 500
                    if refused or attempt == attempts:
                        raise
                time.sleep(pause * 2**attempt)
            raise AssertionError("unreachable")

        return wrapper

    return decorate


@dataclass(slots=True)
class CircuitBreaker:
    """Opens after some failures in a row; lets every n-th request through while it is open."""

    threshold: int = 3
    probe_every: int = 4
    failures: int = 0
    skipped: int = 0

    def allows(self) -> bool:
        if self.failures < self.threshold:
            return True
        self.skipped += 1
        return self.skipped % self.probe_every == 0

    def record(self, success: bool) -> None:
        self.failures = 0 if success else self.failures + 1


@dataclass(frozen=True)
class Where(Generic[T]):
    """A specification: a predicate that can be combined with others."""

    is_satisfied_by: Callable[[T], bool]

    def __and__(self, other: Where[T]) -> Where[T]:
        return Where(lambda c: self.is_satisfied_by(c) and other.is_satisfied_by(c))

    def __or__(self, other: Where[T]) -> Where[T]:
        return Where(lambda c: self.is_satisfied_by(c) or other.is_satisfied_by(c))

    def __invert__(self) -> Where[T]:
        return Where(lambda c: not self.is_satisfied_by(c))


class Command:
    """What somebody wants to be done."""


Next = Callable[[Command, Communication], "Result[dict[str, Any]]"]


class Middleware(ABC):
    @abstractmethod
    def __call__(self, command: Command, comm: Communication, proceed: Next) -> Result[dict[str, Any]]: ...


class Handler(ABC, Generic[C]):
    @abstractmethod
    def handle(self, command: C, comm: Communication) -> Result[dict[str, Any]]: ...


class CommandBus:
    def __init__(self, *middlewares: Middleware) -> None:
        self._middlewares = middlewares
        self._handlers: dict[type[Command], Handler[Any]] = {}

    def handles(self, command: type[Command]) -> Callable[[type[Handler[Any]]], type[Handler[Any]]]:
        def register(handler: type[Handler[Any]]) -> type[Handler[Any]]:
            self._handlers[command] = handler()
            return handler

        return register

    def dispatch(self, command: Command, comm: Communication) -> Result[dict[str, Any]]:
        proceed: Next = self._handlers[type(command)].handle
        for middleware in reversed(self._middlewares):
            proceed = functools.partial(middleware, proceed=proceed)
        return proceed(command, comm)


Action = Callable[[dict[str, Any]], Any]


@dataclass(slots=True)
class Saga:
    name: str
    steps: list[tuple[str, Action, Action | None]] = field(default_factory=list)

    def step(self, name: str, action: Action, undo: Action | None = None) -> Saga:
        self.steps.append((name, action, undo))
        return self

    def run(self) -> Result[dict[str, Any]]:
        undos: list[Action] = []
        outcome: dict[str, Any] = {}
        for name, action, undo in self.steps:
            try:
                outcome[name] = action(outcome)
            except CommunicationError as error:
                log.warning("saga %s failed in %s: %s", self.name, name, error)
                for compensate in reversed(undos):
                    with suppress(CommunicationError):
                        compensate(outcome)
                return Err(Conflict(f"{self.name} failed", step=name))
            if undo is not None:
                undos.append(undo)
        return Ok(outcome)
