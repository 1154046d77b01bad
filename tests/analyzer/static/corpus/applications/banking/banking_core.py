"""Plumbing all banking services share: errors, request decorators, paging, resilience."""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, is_dataclass
from decimal import Decimal
from typing import Any

from mup import Communication
from mup.errors import CallError, CallTimeoutError, CommunicationError

log = logging.getLogger("banking")
INTERNAL_HEADERS = {"x-service-key": "svc-7f3a"}


class ApiError(Exception):
    status = 400

    def __init__(self, detail: str = "", **extra: Any) -> None:
        super().__init__(detail or type(self).__name__)
        self.body = {"error": type(self).__name__, "detail": detail, **extra}


class Unauthorized(ApiError):
    status = 401


class PaymentDeclined(ApiError):
    status = 402


class Forbidden(ApiError):
    status = 403


class NotFound(ApiError):
    status = 404


class Conflict(ApiError):
    status = 409


class ValidationError(ApiError):
    status = 422


class TooManyRequests(ApiError):
    status = 429


class Unavailable(ApiError):
    status = 503


def respond_error(comm: Communication, error: Exception) -> None:
    """Our own errors know their status; what a service behind us did is translated."""
    match error:
        case ApiError():
            comm.respond(error.body, error.status)
        case CallTimeoutError():
            comm.respond({"error": "upstream timeout"}, 504)
        case CallError(status=404 | 409 as status):
            comm.respond({"error": "upstream refused"}, status)
        case _:
            log.warning("upstream failed: %s", error)
            comm.respond({"error": "upstream failed"}, 502)


def to_json(value: Any) -> Any:
    if is_dataclass(value):
        value = asdict(value)
    if isinstance(value, dict):
        return {key: to_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    return str(value) if isinstance(value, Decimal) else value


@dataclass(frozen=True)
class Principal:
    user: str
    tenant: str = "default"
    scopes: frozenset[str] = frozenset()


@dataclass
class Context:
    """What one authenticated request carries around."""

    comm: Communication
    principal: Principal
    deferred: list[Callable[[], Any]] = field(default_factory=list)

    @functools.cached_property
    def flags(self) -> dict[str, bool]:
        try:
            answer = self.comm.call("Flags", "/evaluate", {"user": self.principal.user}, timeout=0.2).get()
            return answer.get("flags", {})
        except CommunicationError:
            return {}

    def after_response(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        self.deferred.append(functools.partial(func, *args, **kwargs))


def authenticate(comm: Communication, *scopes: str) -> Principal:
    scheme, _, token = comm.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise Unauthorized("bearer token required")
    try:
        session = comm.call("Directory", "/introspect", {"token": token}, timeout=1.0).get()
    except CallError as error:
        if error.status in (400, 401, 404):
            raise Unauthorized("unknown token") from error
        raise
    if not session.get("active"):
        raise Unauthorized("session expired")
    granted = frozenset(session.get("scopes", ()))
    if "staff" not in granted and (missing := sorted(set(scopes) - granted)):
        raise Forbidden("scope missing", scopes=missing)
    return Principal(session["user"], session.get("tenant", "default"), granted)


def enforce_limit(comm: Communication, principal: Principal, bucket: str, per_minute: int) -> None:
    try:
        usage = comm.call("Limits", "/hit", {"key": f"{principal.user}:{bucket}"}, timeout=0.2).get()
    except CommunicationError:
        return  # fail open: the limiter must never take the API down
    if usage.get("count", 0) > per_minute:
        raise TooManyRequests(retry_after=usage.get("reset", 60))


def errors_as_json(func: Callable[..., Any]):
    @functools.wraps(func)
    def wrapper(self: Any, comm: Communication, *args: Any, **kwargs: Any) -> None:
        try:
            func(self, comm, *args, **kwargs)
        except (ApiError, CommunicationError) as error:
            respond_error(comm, error)

    return wrapper


def view(*scopes: str, status: int = 200, per_minute: int | None = None):
    """Authenticated JSON view: the function gets a Context and returns a body or ``(body, status)``."""

    def decorate(func: Callable[..., Any]):
        @functools.wraps(func)
        def wrapper(self: Any, comm: Communication) -> None:
            try:
                principal = authenticate(comm, *scopes)
                if per_minute is not None:
                    enforce_limit(comm, principal, func.__name__, per_minute)
                ctx = Context(comm, principal)
                result = func(self, comm, ctx)
            except (ApiError, CommunicationError) as error:
                respond_error(comm, error)
                return
            body, code = result if isinstance(result, tuple) else (result, status)
            comm.respond(to_json(body), code)
            for job in ctx.deferred:
                job()

        return wrapper

    return decorate


def internal(func: Callable[..., Any]):
    """For calls between our own services: shared key instead of a user's token."""

    @functools.wraps(func)
    def wrapper(self: Any, comm: Communication) -> None:
        if comm.headers.get("x-service-key") != INTERNAL_HEADERS["x-service-key"]:
            comm.respond({"error": "forbidden"}, 403)
            return
        try:
            body = func(self, comm)
        except (ApiError, CommunicationError) as error:
            respond_error(comm, error)
        else:
            comm.respond(to_json(body))

    return wrapper


def idempotent(func: Callable[..., Any]):
    """Below ``view``: replay the stored answer if the client sends the same Idempotency-Key again."""

    @functools.wraps(func)
    def wrapper(self: Any, comm: Communication, ctx: Context):
        if not (key := comm.headers.get("idempotency-key")):
            return func(self, comm, ctx)
        scoped = {"key": f"{ctx.principal.user}:{key}"}
        claim = comm.call("Idempotency", "/claim", scoped).get()
        match claim.get("state"):
            case "done":
                return claim.get("body", {}), claim.get("status", 200)
            case "running":
                raise Conflict("a request with this key is in progress")
        try:
            body, status = func(self, comm, ctx)
        except Exception:
            comm.call("Idempotency", "/release", scoped)
            raise
        comm.call("Idempotency", "/complete", {**scoped, "body": to_json(body), "status": status}).get()
        return body, status

    return wrapper


def audited(action: str):
    def decorate(func: Callable[..., Any]):
        @functools.wraps(func)
        def wrapper(self: Any, comm: Communication, ctx: Context):
            outcome = "failed"
            try:
                result = func(self, comm, ctx)
                outcome = "ok"
                return result
            finally:
                comm.call(
                    "Audit", "/append", {"action": action, "actor": ctx.principal.user, "outcome": outcome}
                )

        return wrapper

    return decorate


def page_limit(params: dict[str, Any], maximum: int = 100) -> int:
    try:
        limit = int(params.get("limit", 20))
    except (TypeError, ValueError):
        raise ValidationError("limit must be a number") from None
    return max(1, min(limit, maximum))


def iter_pages(fetch: Callable[[str], dict[str, Any]], max_pages: int = 2) -> Iterator[dict[str, Any]]:
    """Items of all pages; ``fetch`` gets a cursor and returns ``{"items": [...], "next": cursor}``."""
    cursor = ""
    for _ in range(max_pages):
        page = fetch(cursor)
        yield from page.get("items", [])
        cursor = page.get("next") or ""
        if not cursor:
            return


def settle(futures: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Wait for all; what succeeded, and the keys of what did not."""
    done: dict[str, Any] = {}
    failed: list[str] = []
    for key, future in futures.items():
        try:
            done[key] = future.get()
        except CommunicationError:
            failed.append(key)
    return done, failed


def retry(attempts: int = 3, backoff: float = 0.05):
    """Repeat what timed out or failed with 5xx; anything else is the caller's business."""

    def decorate(func: Callable[..., Any]):
        @functools.wraps(func)
        def wrapper(*args: Any, **kwargs: Any):
            for attempt in range(1, attempts + 1):
                try:
                    return func(*args, **kwargs)
                except CommunicationError as error:
                    if getattr(error, "status", 500) < 500 or attempt == attempts:
                        raise
                time.sleep(backoff * 2**attempt)

        return wrapper

    return decorate


class CircuitBreaker:
    def __init__(self, threshold: int = 3, reset_after: float = 30.0) -> None:
        self.threshold, self.reset_after = threshold, reset_after
        self.failures = 0
        self.opened_at = 0.0

    @contextmanager
    def guard(self) -> Iterator[None]:
        if self.failures >= self.threshold and time.monotonic() - self.opened_at < self.reset_after:
            raise Unavailable("circuit open")
        try:
            yield
        except CommunicationError:
            self.failures += 1
            self.opened_at = time.monotonic()
            raise
        self.failures = 0


class Saga:
    """Steps with compensations, undone in reverse order when a later step fails."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], Any]] = []

    def __enter__(self) -> Saga:
        return self

    def step(self, action: Callable[[], Any], undo: Callable[[], Any] | None = None) -> Any:
        result = action()
        if undo is not None:
            self._undo.append(undo)
        return result

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        while kind is not None and self._undo:
            try:
                self._undo.pop()()
            except CommunicationError:
                log.error("compensation failed after %s", error)
