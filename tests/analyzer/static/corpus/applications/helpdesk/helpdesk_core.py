"""What the help desk services share: errors, authentication, clients of the platform, rules of the domain."""

from __future__ import annotations

import functools
import logging
import operator
import time
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from mup import Communication
from mup.errors import CallError, CommunicationError

log = logging.getLogger("helpdesk")

Ticket = dict[str, Any]
PRIORITIES = ("low", "normal", "high", "urgent")
TRANSITIONS = {
    "new": {"open", "pending", "solved"},
    "open": {"pending", "on_hold", "solved"},
    "pending": {"open", "solved"},
    "on_hold": {"open", "solved"},
    "solved": {"open", "closed"},
}


class ApiError(Exception):
    def __init__(self, message: str, status: int = 422, **details: Any) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"error": message, **details}


@dataclass(frozen=True)
class User:
    id: str
    tenant: str
    role: str
    permissions: tuple[str, ...] = ()

    @property
    def is_staff(self) -> bool:
        return self.role in ("agent", "admin")


current_user: ContextVar[User] = ContextVar("current_user")


def bearer_token(comm: Communication) -> str:
    header = comm.headers.get("authorization", "")
    token = header[7:].strip() if header.startswith("Bearer ") else comm.cookies.get("hd_session", "")
    if not token:
        raise ApiError("not logged in", 401)
    return token


def log_in(session: dict[str, Any], roles: tuple[str, ...]) -> None:
    if not session.get("user"):
        raise ApiError("session expired", 401)
    role = session.get("role", "customer")
    if role not in roles:
        raise ApiError("this needs another role", 403, role=role)
    permissions = tuple(session.get("permissions", ()))
    current_user.set(User(session["user"], session.get("tenant", "default"), role, permissions))


def requires(*roles: str):
    """Async endpoints: callers are logged in and have one of the roles; an ApiError becomes the answer."""

    def decorate(endpoint):
        @functools.wraps(endpoint)
        async def wrapper(self, comm: Communication, *args: Any, **kwargs: Any) -> None:
            try:
                token = bearer_token(comm)
                log_in(await comm.call("Auth", "/session", {"token": token}, timeout=0.5), roles)
                await endpoint(self, comm, *args, **kwargs)
            except ApiError as error:
                comm.respond(error.body, error.status)

        return wrapper

    return decorate


def staff_only(endpoint):
    """Thread endpoints for agents and admins."""

    @functools.wraps(endpoint)
    def wrapper(self, comm: Communication, *args: Any, **kwargs: Any) -> None:
        try:
            token = bearer_token(comm)
            log_in(comm.call("Auth", "/session", {"token": token}, timeout=0.5).get(), ("agent", "admin"))
            endpoint(self, comm, *args, **kwargs)
        except ApiError as error:
            comm.respond(error.body, error.status)

    return wrapper


async def soft(future: Any, default: Any = None) -> Any:
    try:
        return await future
    except CommunicationError:
        return default


def value_or(future: Any, default: Any = None) -> Any:
    try:
        return future.get()
    except CommunicationError as error:
        log.info("optional call failed: %s", error)
        return default


def page_of(params: dict[str, Any]) -> tuple[int, int]:
    return max(1, int(params.get("page", 1))), min(100, int(params.get("size", 25)))


def as_bool(value: Any) -> bool:
    return str(value).lower() in ("1", "true", "yes", "on")


@asynccontextmanager
async def locked(comm: Communication, name: str):
    lease = await comm.call("Locks", "/acquire", {"name": name}, timeout=1.0)
    if not lease.get("granted"):
        raise ApiError("somebody else is working on this", 409)
    try:
        yield
    finally:
        await soft(comm.call("Locks", "/release", {"name": name}))


class Breaker:
    """Open for a while after some failures in a row."""

    def __init__(self, limit: int = 3, rest: float = 20.0) -> None:
        self.limit, self.rest = limit, rest
        self.failures, self.open_until = 0, 0.0

    @property
    def is_open(self) -> bool:
        return self.failures >= self.limit and time.monotonic() < self.open_until

    @contextmanager
    def watch(self):
        try:
            yield
        except CommunicationError:
            self.failures += 1
            self.open_until = time.monotonic() + self.rest
            raise
        self.failures = 0


class TicketRepository:
    """Tickets of one tenant, for async services."""

    def __init__(self, comm: Communication, tenant: str) -> None:
        self.comm, self.tenant = comm, tenant

    async def get(self, ticket_id: str) -> Ticket:
        try:
            ticket = await self.comm.call("TicketStore", "/get", {"tenant": self.tenant, "id": ticket_id})
        except CallError as error:
            if error.status == 404:
                raise ApiError("no such ticket", 404) from error
            raise
        if not ticket or ticket.get("deleted"):
            raise ApiError("no such ticket", 404)
        return ticket

    async def find(self, filters: dict[str, Any], page: int, size: int) -> dict[str, Any]:
        query = {"tenant": self.tenant, "filters": filters, "page": page, "size": size}
        return await self.comm.call("TicketStore", "/find", query, timeout=3.0)

    async def insert(self, ticket: Ticket) -> Ticket:
        return {**ticket, **await self.comm.call("TicketStore", "/insert", {"tenant": self.tenant, **ticket})}

    async def update(self, ticket: Ticket, **changes: Any) -> Ticket:
        await self.comm.call("TicketStore", "/update", {"id": ticket["id"], "set": changes})
        return {**ticket, **changes}

    async def comment(self, ticket_id: str, **comment: Any) -> dict[str, Any]:
        return await self.comm.call("TicketStore", "/comment", {"ticket": ticket_id, **comment})

    async def comments(self, ticket_id: str) -> list[dict[str, Any]]:
        return (await self.comm.call("TicketStore", "/comments", {"ticket": ticket_id})).get("items", [])


async def publish(comm: Communication, event: str, ticket: Ticket) -> None:
    """Append to the event stream, then let the automations look at it."""
    await soft(comm.call("Events", "/append", {"type": event, "ticket": ticket.get("id")}))
    comm.call("Automations", "/rules/evaluate", {"event": event, "ticket": ticket})


async def pause_clock(comm: Communication, ticket: Ticket) -> None:
    await soft(comm.call("Sla", "/sla/clock/pause", {"ticket": ticket["id"]}))


async def ask_for_rating(comm: Communication, ticket: Ticket) -> None:
    if not ticket.get("rated"):
        comm.call("Mailer", "/send", {"template": "csat", "to": ticket.get("requester")})


ON_ENTER = {"pending": [pause_clock], "on_hold": [pause_clock], "solved": [pause_clock, ask_for_rating]}


async def least_busy(comm: Communication, team: str) -> str | None:
    roster = await comm.call("Directory", "/team", {"id": team})
    online = [a["id"] for a in roster.get("agents", []) if a.get("online")]
    if not online:
        return None
    load = await soft(comm.call("TicketStore", "/load", {"agents": online}), {})
    return min(online, key=lambda agent: load.get(agent, 0))


async def round_robin(comm: Communication, team: str) -> str | None:
    return (await comm.call("Directory", "/next-agent", {"team": team})).get("agent")


ASSIGNERS = {"least_busy": least_busy, "round_robin": round_robin}


class EmailChannel:
    async def send(self, comm: Communication, ticket: Ticket, text: str) -> dict[str, Any]:
        return await comm.call("Mailer", "/send", {"to": ticket.get("requester"), "text": text}, timeout=2.0)


class ChatChannel(EmailChannel):
    async def send(self, comm: Communication, ticket: Ticket, text: str) -> dict[str, Any]:
        presence = await soft(comm.call("Chat", "/presence", {"user": ticket.get("requester")}), {})
        if not presence.get("online"):
            return await super().send(comm, ticket, text)
        return await comm.call("Chat", "/post", {"room": ticket.get("room"), "text": text})


CHANNELS = {"email": EmailChannel(), "chat": ChatChannel()}
OPERATORS = {"is": operator.eq, "is_not": operator.ne, "in": lambda have, want: have in want}


def matches(rule: dict[str, Any], ticket: Ticket) -> bool:
    return all(
        OPERATORS[c.get("op", "is")](ticket.get(c["field"]), c.get("value"))
        for c in rule.get("conditions", [])
    )


def set_field(comm: Communication, ticket: Ticket, args: dict[str, Any]) -> dict[str, Any]:
    return {args["field"]: args.get("value")}


def notify(comm: Communication, ticket: Ticket, args: dict[str, Any]) -> dict[str, Any]:
    comm.call("Notify", "/push", {"user": args.get("to"), "ticket": ticket.get("id")}).get()
    return {}


def canned_reply(comm: Communication, ticket: Ticket, args: dict[str, Any]) -> dict[str, Any]:
    template = comm.call("Templates", "/render", {"id": args.get("template"), "ticket": ticket}).get()
    if not template.get("text"):
        return {}
    comm.call("TicketStore", "/comment", {"ticket": ticket.get("id"), "text": template["text"]}).get()
    return {"state": "pending"}


ACTIONS = {"set": set_field, "notify": notify, "reply": canned_reply}


def run_actions(
    comm: Communication, ticket: Ticket, actions: list[dict[str, Any]]
) -> tuple[dict[str, Any], list[str]]:
    """Run actions in order; what they change, and which failed."""
    changes: dict[str, Any] = {}
    failed: list[str] = []
    for step in actions:
        try:
            changes |= ACTIONS[step["do"]](comm, {**ticket, **changes}, step)
        except (CommunicationError, KeyError):
            failed.append(step["do"])
            if step.get("required"):
                break
    return changes, failed
