"""Cross-cutting concerns of the railway services: errors, decorators, paging, caching, resilience."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from itertools import islice
from typing import Any, TypeVar

from mup import Communication
from mup.errors import CallError, CallTimeoutError, CommunicationError

log = logging.getLogger("railway")
T = TypeVar("T")


class ApiError(Exception):
    """An error that is told to the client."""

    status = 400
    code = "bad_request"

    def __init__(self, message: str = "", **details: Any) -> None:
        super().__init__(message or self.code)
        self.details = details

    def to_dict(self) -> dict[str, Any]:
        return {"error": self.code, "message": str(self), **self.details}


class Unauthorized(ApiError):
    status, code = 401, "unauthorized"


class Forbidden(ApiError):
    status, code = 403, "forbidden"


class NotFound(ApiError):
    status, code = 404, "not_found"


class Conflict(ApiError):
    status, code = 409, "conflict"


class Invalid(ApiError):
    status, code = 422, "invalid"


class TooManyRequests(ApiError):
    status, code = 429, "too_many_requests"


@dataclass(frozen=True, slots=True)
class User:
    id: str
    roles: frozenset[str] = frozenset()
    tenant: str = "default"

    @classmethod
    def from_claims(cls, claims: dict[str, Any]) -> User:
        return cls(str(claims["sub"]), frozenset(claims.get("roles", ())), claims.get("tenant", "default"))

    def can(self, *roles: str) -> bool:
        return not roles or not self.roles.isdisjoint(roles)


def api(view):
    """Translate exceptions of a view to JSON responses."""

    @wraps(view)
    def wrapper(self, comm: Communication, *args, **kwargs):
        try:
            return view(self, comm, *args, **kwargs)
        except ApiError as exc:
            comm.respond(exc.to_dict(), exc.status)
        except CallTimeoutError:
            log.warning("%s: upstream timeout", view.__name__)
            comm.respond({"error": "upstream_timeout"}, 504)
        except CallError as exc:
            comm.respond({"error": "upstream", "status": exc.status}, 404 if exc.status == 404 else 502)

    return wrapper


def current_user(comm: Communication) -> User:
    scheme, _, token = comm.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise Unauthorized("bearer token required")
    try:
        claims = comm.call("Identity", "/verify", {"token": token}, timeout=1).get()
    except CallError as exc:
        raise Unauthorized("token rejected") from exc
    if not claims.get("active", False):
        raise Unauthorized("token expired")
    return User.from_claims(claims)


def login_required(*roles: str):
    """Set ``self.user``; a worker serves one request at a time."""

    def decorator(view):
        @wraps(view)
        def wrapper(self, comm: Communication, *args, **kwargs):
            self.user = current_user(comm)
            if not self.user.can(*roles):
                raise Forbidden(f"needs one of {', '.join(roles)}")
            return view(self, comm, *args, **kwargs)

        return wrapper

    return decorator


def rate_limited(bucket: str, limit: int = 60):
    def decorator(view):
        @wraps(view)
        def wrapper(self, comm: Communication, *args, **kwargs):
            key = comm.headers.get("x-api-key") or comm.headers.get("x-forwarded-for", "anonymous")
            try:
                usage = comm.call("RateLimit", "/hit", {"bucket": bucket, "key": key}, timeout=0.2).get()
            except CommunicationError:
                usage = {}  # fail open
            if usage.get("count", 0) > limit:
                raise TooManyRequests(retry_after=usage.get("reset", 60))
            return view(self, comm, *args, **kwargs)

        return wrapper

    return decorator


def audited(action: str):
    """Leave a trace of who did what, and whether it worked."""

    def decorator(view):
        @wraps(view)
        def wrapper(self, comm: Communication, *args, **kwargs):
            entry = {"action": action, "request": comm.request_id}
            try:
                result = view(self, comm, *args, **kwargs)
            except ApiError as exc:
                comm.call("Audit", "/record", {**entry, "outcome": exc.code})
                raise
            comm.call("Audit", "/record", {**entry, "outcome": "ok"})
            return result

        return wrapper

    return decorator


def idempotent(view):
    """For commands that return ``(body, status)``: answer a repeated key with what was answered before."""

    @wraps(view)
    def wrapper(self, comm: Communication, *args, **kwargs):
        key = comm.headers.get("idempotency-key")
        if not key:
            body, status = view(self, comm, *args, **kwargs)
            comm.respond(body, status)
            return
        known = comm.call("Idempotency", "/begin", {"key": key}).get()
        match known.get("state"):
            case "done":
                comm.respond(known.get("body"), known.get("status", 200), headers={"x-replayed": "1"})
                return
            case "running":
                raise Conflict("the same request is being processed")
        try:
            body, status = view(self, comm, *args, **kwargs)
        except Exception:
            comm.call("Idempotency", "/abandon", {"key": key})
            raise
        comm.respond(body, status)
        comm.call("Idempotency", "/finish", {"key": key, "body": body, "status": status})

    return wrapper


def retry(operation: Callable[[], T], attempts: int = 3, pause: float = 0.05) -> T:
    """Repeat what timed out or hit a server error."""
    for attempt in range(1, attempts + 1):
        try:
            return operation()
        except CommunicationError as exc:
            status = getattr(exc, "status", 503)
            if attempt == attempts or status < 500:
                raise
            time.sleep(pause * 2**attempt)
    raise AssertionError("unreachable")


@contextmanager
def best_effort(what: str) -> Iterator[None]:
    try:
        yield
    except CommunicationError as exc:
        log.info("%s failed: %s", what, exc)


@dataclass
class CircuitBreaker:
    """Stop asking a back end that keeps failing."""

    threshold: int = 3
    cooldown: float = 10.0
    failures: int = field(default=0, init=False)
    opened_at: float = field(default=0.0, init=False)

    @property
    def is_open(self) -> bool:
        return self.failures >= self.threshold and time.monotonic() - self.opened_at < self.cooldown

    def run(self, operation: Callable[[], T], fallback: T) -> T:
        if self.is_open:
            return fallback
        try:
            result = operation()
        except CommunicationError:
            self.failures += 1
            self.opened_at = time.monotonic()
            return fallback
        self.failures = 0
        return result


@dataclass(frozen=True)
class Page:
    limit: int = 20
    offset: int = 0

    @classmethod
    def of(cls, comm: Communication, maximum: int = 100) -> Page:
        try:
            limit, offset = int(comm.params.get("limit", 20)), int(comm.params.get("offset", 0))
        except ValueError as exc:
            raise Invalid("limit and offset are numbers") from exc
        return cls(max(1, min(limit, maximum)), max(0, offset))


def required(params: dict[str, Any], *names: str) -> list[Any]:
    missing = [name for name in names if params.get(name) in (None, "")]
    if missing:
        raise Invalid("missing fields", fields=missing)
    return [params[name] for name in names]


def chunked(items: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk
