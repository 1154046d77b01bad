"""Middleware, plugins and events."""

from __future__ import annotations

import functools
import logging
import os
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

from models import ROLES, Right
from mup import Communication
from mup.errors import CallError, MupError

log = logging.getLogger("clinic")
STRICT = os.environ.get("CLINIC_STRICT", "") in {"1", "true"}
AUDIT = True

who: ContextVar[str] = ContextVar("who", default="anonymous")

Handler = Callable[[Communication], Awaitable[Any]]
Middleware = Callable[[Handler], Handler]


def authenticated(next_: Handler) -> Handler:
    async def handle(comm: Communication) -> Any:
        token = comm.headers.get("Authorization", "")
        if not token:
            comm.respond({"error": "who?"}, status=401)
            return None
        user = await comm.call("Auth", "/whoami", {"token": token})
        reset = who.set(user.get("name", "anonymous"))
        try:
            return await next_(comm)
        finally:
            who.reset(reset)

    return handle


def audited(next_: Handler) -> Handler:
    async def handle(comm: Communication) -> Any:
        result = await next_(comm)
        if AUDIT:
            await comm.query("audit", "append", "log", {"who": who.get()})
        return result

    return handle


def errors_as(status: int, *kinds: type[Exception]) -> Middleware:
    def middleware(next_: Handler) -> Handler:
        async def handle(comm: Communication) -> Any:
            try:
                return await next_(comm)
            except kinds as error:
                comm.respond({"error": str(error)}, status=status)

        return handle

    return middleware


STACK: list[Middleware] = [errors_as(502, CallError), authenticated, audited]


def through(handler: Handler, stack: list[Middleware] = STACK) -> Handler:
    for layer in reversed(stack):
        handler = layer(handler)
    return handler


def compose(*steps: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return functools.reduce(lambda f, g: lambda x: g(f(x)), steps)


# -- endpoints in decorators


def requires(right: Right):
    def decorate(fn):
        @functools.wraps(fn)
        def checked(self, comm, *args, **kwargs):
            role = comm.headers.get("X-Role", "")
            if right not in ROLES.get(role, Right.NONE):
                comm.respond({"error": f"needs {right.name}"}, status=403)
                return None
            return fn(self, comm, *args, **kwargs)

        return checked

    return decorate


def traced(fn):
    @functools.wraps(fn)
    async def wrapper(self, comm, *args, **kwargs):
        log.info("begin %s", fn.__qualname__)
        try:
            return await fn(self, comm, *args, **kwargs)
        except MupError:
            log.exception("failed %s", fn.__qualname__)
            raise
        finally:
            log.info("end %s", fn.__qualname__)

    return wrapper


# -- checks, filled by a decorator

CHECKS: dict[str, list[Callable[[Communication, dict], Any]]] = defaultdict(list)


def check(*kinds: str):
    def register(fn):
        for kind in kinds:
            CHECKS[kind].append(fn)
        return fn

    return register


@check("surgery", "visit")
def has_name(comm, form):
    return bool(form.get("name"))


@check("surgery")
def is_fit(comm, form):
    return comm.call("Lab", "/fitness", {"patient": form.get("name")}).get().get("fit", False)


@check("surgery", "imaging")
def is_approved(comm, form):
    if "policy" not in form:
        return False
    return comm.call("Insurance", "/approve", {"number": form["policy"]}).get().get("approved", False)


class Emitter:
    def __init__(self) -> None:
        self._handlers: defaultdict[str, list[Callable[..., Any]]] = defaultdict(list)

    def on(self, event: str, handler: Callable[..., Any] | None = None):
        if handler is None:
            return functools.partial(self.on, event)
        self._handlers[event].append(handler)
        return handler

    async def emit(self, event: str, *args: Any, **kwargs: Any) -> int:
        handlers = self._handlers.get(event, ())
        for handler in handlers:
            await handler(*args, **kwargs)
        return len(handlers)


bus = Emitter()


@bus.on("no_show")
async def charge_fee(comm: Communication, patient: str) -> None:
    await comm.call("Billing", "/fee", {"patient": patient})


@bus.on("no_show")
async def offer_again(comm: Communication, patient: str) -> None:
    waiting = await comm.query("clinic", "waiting", "waitlist", {"patient": {"$ne": patient}})
    if waiting:
        await comm.call("Sms", "/send", {"to": waiting[0]["_id"]})


@bus.on("late")
async def tell_desk(comm: Communication, patient: str) -> None:
    await comm.call("Pager", "/page", {"patient": patient})
