"""Building blocks of the freight platform: results, errors, middleware, messages, units of work, sagas."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import itertools
import logging
import time
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Generic, TypeVar

from mup import Communication
from mup.errors import CallError, CallTimeoutError, CommunicationError

log = logging.getLogger("freight")
T = TypeVar("T")
E = TypeVar("E")
A = TypeVar("A", bound="Aggregate")


class FreightError(Exception):
    status: ClassVar[int] = 500

    def __init__(self, detail: str, **context: Any) -> None:
        super().__init__(detail)
        self.context = context


class Unauthenticated(FreightError):
    status = 401


class Forbidden(FreightError):
    status = 403


class NotFound(FreightError):
    status = 404


class Conflict(FreightError):
    status = 409


class Invalid(FreightError):
    status = 422


class TooMany(FreightError):
    status = 429


@dataclass(frozen=True, slots=True)
class Ok(Generic[T]):
    value: T

    def unwrap_or(self, default: Any) -> T:
        return self.value


@dataclass(frozen=True, slots=True)
class Err(Generic[E]):
    error: E

    def unwrap_or(self, default: Any) -> Any:
        return default


Result = Ok[T] | Err[E]


def attempt(operation: Callable[[], T]) -> Result[T, Exception]:
    """Run an operation and turn what may go wrong with it into a value."""
    try:
        return Ok(operation())
    except (CommunicationError, FreightError) as error:
        return Err(error)


# --- the edge: errors and authorisation --------------------------------------------------------------


@dataclass(frozen=True)
class Principal:
    subject: str
    tenant: str
    scopes: frozenset[str]

    @classmethod
    def from_claims(cls, claims: Mapping[str, Any], needed: Iterable[str]) -> Principal:
        if not claims.get("active", True) or "sub" not in claims:
            raise Unauthenticated("the token is not valid any more")
        scopes = frozenset(claims.get("scopes", ()))
        if "*" not in scopes and (missing := sorted(set(needed) - scopes)):
            raise Forbidden("missing scopes", missing=missing)
        return cls(claims["sub"], claims.get("tenant", "public"), scopes)


_principal: ContextVar[Principal] = ContextVar("principal")
principal = _principal.get


def token_of(comm: Communication) -> str:
    scheme, _, token = comm.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise Unauthenticated("a bearer token is required")
    return token


@contextlib.contextmanager
def problems(comm: Communication) -> Iterator[None]:
    """Answer domain errors and failed calls with problem details."""
    try:
        yield
    except FreightError as error:
        comm.respond({"type": type(error).__name__, "detail": str(error), **error.context}, error.status)
    except CallError as error:
        comm.respond({"type": "upstream", "status": error.status}, 404 if error.status == 404 else 502)
    except CommunicationError as error:
        comm.respond({"type": "unavailable"}, 504 if isinstance(error, CallTimeoutError) else 503)


def api(*scopes: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Guard an endpoint: problem details for errors and, with scopes, a token that has them."""

    def decorate(func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(func)
        async def on_loop(self: Any, comm: Communication, *args: Any, **kwargs: Any) -> None:
            with problems(comm):
                if scopes:
                    claims = await comm.call("Identity", "/verify", {"token": token_of(comm)}, timeout=1.0)
                    _principal.set(Principal.from_claims(claims, scopes))
                await func(self, comm, *args, **kwargs)

        @functools.wraps(func)
        def blocking(self: Any, comm: Communication, *args: Any, **kwargs: Any) -> None:
            with problems(comm):
                if scopes:
                    claims = comm.call("Identity", "/verify", {"token": token_of(comm)}, timeout=1.0).get()
                    _principal.set(Principal.from_claims(claims, scopes))
                func(self, comm, *args, **kwargs)

        return on_loop if inspect.iscoroutinefunction(func) else blocking

    return decorate


# --- resilience --------------------------------------------------------------------------------------


def retrying(attempts: int = 3, base: float = 0.05) -> Callable[[Callable[..., T]], Callable[..., T]]:
    def decorate(func: Callable[..., T]) -> Callable[..., T]:
        @functools.wraps(func)
        def wrapper(*args: Any, **kwargs: Any) -> T:
            for number in range(1, attempts):
                try:
                    return func(*args, **kwargs)
                except CommunicationError as error:
                    if isinstance(error, CallError) and error.status < 500:
                        raise
                    time.sleep(base * 2**number)
            return func(*args, **kwargs)

        return wrapper

    return decorate


async def retry_async(operation: Callable[[], Awaitable[T]], attempts: int = 3) -> T:
    for number in range(1, attempts):
        try:
            return await operation()
        except CommunicationError:
            await asyncio.sleep(0.05 * 2**number)
    return await operation()


@dataclass
class CircuitBreaker:
    name: str
    threshold: int = 3
    cooldown: float = 10.0
    failures: int = 0
    opened_at: float | None = None

    @contextlib.contextmanager
    def guard(self) -> Iterator[None]:
        if self.opened_at is not None and time.monotonic() - self.opened_at < self.cooldown:
            raise Conflict(f"{self.name} is suspended")
        try:
            yield
        except (CommunicationError, TimeoutError):
            self.failures += 1
            self.opened_at = time.monotonic() if self.failures >= self.threshold else None
            raise
        self.failures, self.opened_at = 0, None


def batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(items)
    while batch := list(itertools.islice(iterator, size)):
        yield batch


# --- messages, aggregates, units of work, sagas ------------------------------------------------------


class Event:
    """Something that has happened."""


@dataclass(frozen=True)
class Command:
    """Something somebody wants to happen."""

    @classmethod
    def parse(cls, params: Mapping[str, Any]) -> Any:
        try:
            return cls(**{entry.name: params[entry.name] for entry in fields(cls) if entry.name in params})
        except (TypeError, ValueError) as error:
            raise Invalid(f"{cls.__name__}: {error}") from error


@dataclass(kw_only=True)
class Aggregate:
    id: str
    version: int = 0
    pending: list[Event] = field(default_factory=list, repr=False, compare=False)

    def record(self, event: Event) -> None:
        self.version += 1
        self.pending.append(event)


class Repository(Generic[A]):
    """Aggregates of a remote store, with an identity map."""

    def __init__(self, comm: Communication, store: str, load: Callable[[dict[str, Any]], A]) -> None:
        self.comm, self.store, self.load = comm, store, load
        self.seen: dict[str, A] = {}

    def get(self, key: str) -> A:
        if key not in self.seen:
            row = self.comm.call(self.store, "/get", {"id": key}, timeout=2.0).get()
            if not row:
                raise NotFound(f"{key} is unknown", store=self.store)
            self.seen[key] = self.load(row)
        return self.seen[key]

    def add(self, aggregate: A) -> A:
        return self.seen.setdefault(aggregate.id, aggregate)


class UnitOfWork(Generic[A]):
    def __init__(self, comm: Communication, repository: Repository[A]) -> None:
        self.comm, self.items = comm, repository

    def commit(self) -> None:
        dirty = [item for item in self.items.seen.values() if item.pending]
        rows = ({**vars(item), "pending": len(item.pending)} for item in dirty)
        writes = [self.comm.call(self.items.store, "/put", row) for row in rows]
        for write in writes:
            write.get()

    def collect_events(self) -> Iterator[Event]:
        for item in self.items.seen.values():
            while item.pending:
                yield item.pending.pop(0)


Handler = Callable[[Any, Any], Any]


class MessageBus:
    def __init__(self, *middleware: Callable[[Handler], Handler]) -> None:
        self._middleware = middleware
        self._commands: dict[type[Command], Handler] = {}
        self._subscribers: defaultdict[type[Event], list[Handler]] = defaultdict(list)

    def handles(self, kind: type[Command]) -> Callable[[Handler], Handler]:
        def register(handler: Handler) -> Handler:
            self._commands[kind] = functools.reduce(
                lambda inner, layer: layer(inner), self._middleware, handler
            )
            return handler

        return register

    def on(self, kind: type[Event]) -> Callable[[Handler], Handler]:
        def register(handler: Handler) -> Handler:
            self._subscribers[kind].append(handler)
            return handler

        return register

    def dispatch(self, command: Command, uow: UnitOfWork[Any]) -> Any:
        result = self._commands[type(command)](command, uow)
        uow.commit()
        queue = deque(uow.collect_events())
        while queue:
            event = queue.popleft()
            for subscriber in self._subscribers[type(event)]:
                try:
                    subscriber(event, uow)
                except CommunicationError:
                    log.warning("%s failed for %s", subscriber.__name__, event)
            queue.extend(uow.collect_events())
        return result


class Saga:
    """Steps that are undone in reverse order when a later one fails."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._steps: list[tuple[str, Callable[..., Any], Callable[..., Any] | None]] = []

    def step(self, name: str, action: Callable[..., Any], undo: Callable[..., Any] | None = None) -> Saga:
        self._steps.append((name, action, undo))
        return self

    def run(self, **state: Any) -> dict[str, Any]:
        undos: list[Callable[..., Any]] = []
        for name, action, undo in self._steps:
            try:
                state[name] = action(state)
            except (CommunicationError, FreightError) as error:
                for compensate in reversed(undos):
                    with contextlib.suppress(CommunicationError):
                        compensate(state)
                raise Conflict(f"{self.name} stopped", step=name) from error
            if undo is not None:
                undos.append(undo)
        return state
