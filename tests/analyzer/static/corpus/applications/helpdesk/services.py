"""A help desk: tickets, inbound channels, reports, automations, service levels, knowledge base."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from typing import Any

from helpdesk_core import (
    ASSIGNERS,
    CHANNELS,
    ON_ENTER,
    PRIORITIES,
    TRANSITIONS,
    ApiError,
    Breaker,
    Ticket,
    TicketRepository,
    as_bool,
    current_user,
    locked,
    matches,
    page_of,
    publish,
    requires,
    run_actions,
    soft,
    staff_only,
    value_or,
)
from mup import EP, MS, Communication
from mup.errors import CallError, CallTimeoutError, CommunicationError

log = logging.getLogger("helpdesk")

VIEWS = {
    "mine": {"assignee": "$me", "state": ["new", "open", "pending"]},
    "unassigned": {"assignee": None, "state": ["new", "open"]},
    "urgent": {"priority": ["high", "urgent"], "state": ["new", "open"]},
}
KEYWORDS = {"invoice": "billing", "password": "account", "error": "technical"}


def validate_ticket(params: dict[str, Any]) -> Ticket:
    subject, priority = str(params.get("subject", "")).strip(), params.get("priority", "normal")
    if not 1 <= len(subject) <= 200:
        raise ApiError("a subject has 1 to 200 characters")
    if priority not in PRIORITIES:
        raise ApiError("no such priority", known=PRIORITIES)
    rest = {k: params[k] for k in ("body", "category", "requester", "channel") if params.get(k)}
    return {"subject": subject, "priority": priority, "state": "new", **rest}


async def classify(comm: Communication, text: str) -> str:
    """The category of a new ticket: by the model, or by keywords if that is slow or unsure."""
    try:
        guess = await comm.call("Classifier", "/predict", {"text": text}, timeout=0.4)
        if guess.get("confidence", 0) >= 0.6:
            return guess["label"]
    except CommunicationError:
        log.warning("classifier is not available")
    return next((category for word, category in KEYWORDS.items() if word in text.lower()), "general")


class Tickets(MS):
    """Everything agents and customers do with a ticket."""

    runtime = "async"
    pool_size = 32

    @EP("/tickets/create", method="POST")
    @requires("customer", "agent", "admin")
    async def create(self, comm: Communication) -> None:
        user = current_user.get()
        draft = validate_ticket(comm.params)
        key = comm.headers.get("idempotency-key")
        if key:
            seen = await soft(comm.call("Cache", "/get", {"key": f"ticket:{key}"}, timeout=0.2), {})
            if seen.get("value"):
                comm.respond(seen["value"])
                return
        customer, plan = await asyncio.gather(
            comm.call("Directory", "/customer", {"id": draft.setdefault("requester", user.id)}),
            comm.call("Billing", "/plan", {"tenant": user.tenant}),
        )
        if customer.get("open_tickets", 0) >= plan.get("open_limit", 100):
            raise ApiError("too many open tickets", 429)
        if not draft.get("category"):
            draft["category"] = await classify(comm, draft["subject"])
        ticket = await TicketRepository(comm, user.tenant).insert(draft)
        clock = await soft(
            comm.call("Sla", "/sla/clock/start", {"ticket": ticket, "plan": plan.get("name")}), {}
        )
        comm.respond({**ticket, "due": clock.get("due")}, 201)
        if key:
            comm.call("Cache", "/set", {"key": f"ticket:{key}", "value": ticket})
        comm.call("Search", "/index", {"kind": "ticket", "document": ticket})
        await publish(comm, "ticket.created", ticket)

    @EP("/tickets/{ticket_id}", method="GET")
    @requires("customer", "agent", "admin")
    async def show(self, comm: Communication, ticket_id: str) -> None:
        user = current_user.get()
        tickets = TicketRepository(comm, user.tenant)
        ticket = await tickets.get(ticket_id)
        if not user.is_staff and ticket.get("requester") != user.id:
            raise ApiError("no such ticket", 404)
        include = comm.params.get("include", "").split(",")
        parts = {}
        if "comments" in include:
            parts["comments"] = tickets.comments(ticket_id)
        if "customer" in include:
            parts["customer"] = soft(comm.call("Directory", "/customer", {"id": ticket.get("requester")}))
        if "sla" in include and user.is_staff:
            parts["sla"] = soft(comm.call("Sla", "/sla/status", {"tickets": [ticket_id]}))
        answers = await asyncio.gather(*parts.values())
        comm.respond({**ticket, **dict(zip(parts, answers))})

    @EP("/tickets/list", method="GET")
    @requires("agent", "admin")
    async def list_view(self, comm: Communication) -> None:
        user = current_user.get()
        view = VIEWS.get(comm.params.get("view", "mine"))
        if view is None:
            raise ApiError("no such view", 404, views=sorted(VIEWS))
        page, size = page_of(comm.params)
        filters = {k: user.id if v == "$me" else v for k, v in view.items()}
        items = (await TicketRepository(comm, user.tenant).find(filters, page, size)).get("items", [])
        people = sorted({t["assignee"] for t in items if t.get("assignee")})
        names = await soft(comm.call("Directory", "/names", {"ids": people}), {}) if people else {}
        comm.respond({"items": items, "names": names, "page": page})

    @EP("/tickets/{ticket_id}/reply", method="POST")
    @requires("customer", "agent", "admin")
    async def reply(self, comm: Communication, ticket_id: str) -> None:
        user, text = current_user.get(), comm.params.get("text", "").strip()
        if not text:
            raise ApiError("an answer needs a text")
        tickets = TicketRepository(comm, user.tenant)
        ticket = await tickets.get(ticket_id)
        if ticket.get("state") == "closed":
            raise ApiError("ticket is closed", 409)
        uploads = [comm.call("Blobs", "/put", {"name": name}) for name in comm.params.get("attachments", [])]
        stored = await asyncio.gather(*uploads, return_exceptions=True)
        blobs = [blob.get("id") for blob in stored if not isinstance(blob, Exception)]
        comment = await tickets.comment(ticket_id, text=text, author=user.id, attachments=blobs)

        if user.is_staff and as_bool(comm.params.get("public", True)):
            channel = CHANNELS.get(ticket.get("channel"), CHANNELS["email"])
            try:
                await channel.send(comm, ticket, text)
            except CommunicationError:
                comm.call("Outbox", "/enqueue", {"ticket": ticket_id, "comment": comment.get("id")})
            await tickets.update(ticket, state="pending")
        elif not user.is_staff and ticket.get("state") in ("pending", "solved"):
            await tickets.update(ticket, state="open")
            if ticket.get("assignee"):
                comm.call("Notify", "/push", {"user": ticket["assignee"], "ticket": ticket_id})
        comm.respond({"comment": comment, "lost": len(uploads) - len(blobs)}, 201)

    @EP("/tickets/{ticket_id}/transition", method="POST")
    @requires("agent", "admin")
    async def transition(self, comm: Communication, ticket_id: str) -> None:
        target = comm.params.get("state", "")
        tickets = TicketRepository(comm, current_user.get().tenant)
        async with locked(comm, f"ticket/{ticket_id}"):
            ticket = await tickets.get(ticket_id)
            allowed = TRANSITIONS.get(ticket.get("state", "new"), set())
            if target not in allowed:
                raise ApiError(f"a ticket cannot become {target!r} now", 409, allowed=sorted(allowed))
            ticket = await tickets.update(ticket, state=target)
            for hook in ON_ENTER.get(target, []):
                await hook(comm, ticket)
        comm.respond(ticket)
        await publish(comm, f"ticket.{target}", ticket)

    @EP("/tickets/{ticket_id}/assign", method="POST")
    @requires("agent", "admin")
    async def assign(self, comm: Communication, ticket_id: str) -> None:
        tickets = TicketRepository(comm, current_user.get().tenant)
        ticket = await tickets.get(ticket_id)
        agent = comm.params.get("agent")
        if agent:
            profile = await comm.call("Directory", "/agent", {"id": agent})
            if not profile.get("active"):
                raise ApiError("agent is not active")
        else:
            flag = await soft(comm.call("Flags", "/evaluate", {"flag": "fair-routing"}, timeout=0.2), {})
            default = "round_robin" if flag.get("on") else "least_busy"
            assigner = ASSIGNERS.get(comm.params.get("strategy", default), ASSIGNERS["least_busy"])
            agent = await assigner(comm, ticket.get("team", "support"))
        if agent and agent != ticket.get("assignee"):
            await tickets.update(ticket, assignee=agent)
            comm.call("Notify", "/push", {"user": agent, "ticket": ticket_id})
        comm.respond({"ticket": ticket_id, "assignee": agent}, 200 if agent else 202)

    @EP("/tickets/merge", method="POST")
    @requires("agent", "admin")
    async def merge(self, comm: Communication) -> None:
        into, others = comm.params.get("into"), comm.params.get("tickets", [])
        if not into or into in others:
            raise ApiError("name a ticket, and others to merge into it")
        tickets = TicketRepository(comm, current_user.get().tenant)
        merged: list[Ticket] = []
        try:
            for ticket_id in others:
                source = await tickets.get(ticket_id)
                for comment in await tickets.comments(ticket_id):
                    await tickets.comment(into, text=comment.get("text"), merged_from=ticket_id)
                await tickets.update(source, state="closed", merged_into=into)
                merged.append(source)
        except (ApiError, CommunicationError) as error:
            for source in reversed(merged):
                await soft(tickets.update(source, state=source.get("state", "open"), merged_into=None))
            raise ApiError("nothing was merged", 409, because=str(error)) from error
        comm.call("Audit", "/record", {"did": "merge", "into": into, "tickets": others})
        comm.respond({"into": into, "merged": len(merged)})

    @EP("/tickets/bulk", method="POST")
    @requires("admin")
    async def bulk(self, comm: Communication) -> None:
        ids, changes = comm.params.get("tickets", []), comm.params.get("set", {})
        if not ids or not changes or len(ids) > 500:
            raise ApiError("1 to 500 tickets, and what to change")
        tickets = TicketRepository(comm, current_user.get().tenant)
        gate = asyncio.Semaphore(5)

        async def change(ticket_id: str) -> str:
            async with gate:
                ticket = await tickets.get(ticket_id)
                if ticket.get("state") == "closed":
                    return "skipped"
                await tickets.update(ticket, **changes)
                return "changed"

        results = await asyncio.gather(*(change(i) for i in ids), return_exceptions=True)
        failed = [i for i, result in zip(ids, results) if isinstance(result, Exception)]
        counts = Counter(result for result in results if isinstance(result, str))
        comm.respond({"counts": counts, "failed": failed}, 207 if failed else 200)

    @EP("/tickets/{ticket_id}/timeline", method="GET")
    @requires("agent", "admin")
    async def timeline(self, comm: Communication, ticket_id: str) -> None:
        """The ticket as its events tell it."""
        state: dict[str, Any] = {"state": "new", "comments": 0}
        cursor = None
        while True:
            batch = await comm.call("Events", "/stream", {"ticket": ticket_id, "after": cursor})
            for event in batch.get("events", []):
                match event:
                    case {"type": "assigned", "to": agent}:
                        state["assignee"] = agent
                    case {"type": "comment"}:
                        state["comments"] += 1
                    case {"type": kind}:
                        state["state"] = kind.removeprefix("ticket.")
            cursor = batch.get("next")
            if not cursor:
                break
        comm.respond({"ticket": ticket_id, **state})


class Inbound(MS):
    """What comes from outside becomes a ticket, or a comment of one."""

    runtime = "async"
    pool_size = 24

    def setup(self) -> None:
        self.providers = {"whatsapp": self._whatsapp, "slack": self._slack}

    @EP("/inbound/email", method="POST")
    async def email(self, comm: Communication) -> None:
        mail = comm.params
        if not mail.get("from"):
            comm.respond({"error": "not a mail"}, 400)
            return
        verdict, sender = await asyncio.gather(
            soft(comm.call("Spam", "/score", {"text": mail.get("text", "")}, timeout=0.8), {}),
            comm.call("Directory", "/find-or-create", {"email": mail["from"]}),
        )
        if sender.get("blocked") or verdict.get("score", 0.0) > 0.9:
            comm.call("Quarantine", "/hold", {"mail": mail.get("message_id")})
            comm.respond({"quarantined": True}, 202)
            return
        thread = None
        if mail.get("in_reply_to"):
            found = await comm.call("TicketStore", "/by-message", {"message": mail["in_reply_to"]})
            thread = found.get("ticket")
        if thread:
            await comm.call("TicketStore", "/comment", {"ticket": thread, "text": mail.get("text", "")})
        else:
            thread = await self._open(comm, mail.get("subject", "(none)"), sender.get("id"), "email")
            comm.call("Mailer", "/send", {"template": "received", "to": mail["from"]})
        comm.respond({"ticket": thread}, 201)

    @EP("/inbound/chat", method="POST")
    async def chat(self, comm: Communication) -> None:
        visitor, text = comm.params.get("visitor"), comm.params.get("text", "")
        quota = await soft(
            comm.call("Limits", "/take", {"key": f"chat:{visitor}"}, timeout=0.1), {"ok": True}
        )
        if not quota.get("ok"):
            comm.respond({"error": "slow down"}, 429, {"Retry-After": "5"})
            return
        room = await comm.call("Chat", "/room", {"visitor": visitor})
        by = room.get("agent")
        if not by:
            found = await soft(comm.call("Knowledge", "/articles/suggest", {"text": text}, timeout=1.5), {})
            if not found.get("items"):
                queue = await comm.call("Chat", "/enqueue", {"room": room.get("id")})
                comm.respond({"room": room.get("id"), "position": queue.get("position", 1)}, 202)
                return
            by, text = "bot", found["items"][0].get("title")
        await comm.call("Chat", "/post", {"room": room.get("id"), "text": text})
        comm.respond({"room": room.get("id"), "by": by})

    @EP("/inbound/hooks/{provider}", method="POST")
    async def hook(self, comm: Communication, provider: str) -> None:
        handler = self.providers.get(provider)
        if handler is None:
            comm.respond({"error": f"unknown provider {provider}"}, 404)
            return
        secret = await comm.call("Vault", "/secret", {"name": f"hook/{provider}"})
        if secret.get("value") and comm.headers.get("x-signature") != secret["value"]:
            comm.respond({"error": "bad signature"}, 401)
            return
        try:
            comm.respond(await handler(comm, comm.params))
        except CommunicationError:
            await comm.call("DeadLetters", "/put", {"provider": provider, "payload": comm.params})
            comm.respond({"parked": True}, 202)

    @EP("/inbound/voicemail", method="POST")
    async def voicemail(self, comm: Communication) -> None:
        job = await comm.call("Transcriber", "/start", {"recording": comm.params.get("recording")})
        comm.respond({"job": job.get("id")}, 202)
        text = "Voicemail"
        for _ in range(5):
            await asyncio.sleep(2)
            status = await soft(comm.call("Transcriber", "/status", {"id": job.get("id")}), {})
            if status.get("state") in ("done", "failed"):
                text = status.get("text", text)
                break
        await self._open(comm, text, comm.params.get("caller"), "phone")

    @EP("/inbound/widget", method="GET")
    async def widget(self, comm: Communication) -> None:
        """What the widget of a web page shows first; it must be quick rather than complete."""
        config = await comm.call("Config", "/widget", {"tenant": comm.params.get("tenant")}, timeout=0.5)
        result = {"theme": config.get("theme", "light"), "articles": [], "chat": False}
        try:
            async with asyncio.timeout(0.8):
                if config.get("articles"):
                    found = await comm.call(
                        "Search", "/query", {"kind": "article", "text": comm.params.get("page")}
                    )
                    result["articles"] = found.get("hits", [])
                if config.get("chat"):
                    hours = await comm.call("Calendar", "/hours", {"tenant": comm.params.get("tenant")})
                    result["chat"] = hours.get("open", False)
        except (TimeoutError, CommunicationError):
            result["degraded"] = True
        comm.respond(result, headers={"Cache-Control": "max-age=30"})

    async def _open(
        self, comm: Communication, subject: str, requester: str | None, channel: str
    ) -> str | None:
        draft = {"subject": subject, "requester": requester, "channel": channel, "state": "new"}
        draft["category"] = await classify(comm, subject)
        ticket = await TicketRepository(comm, "default").insert(draft)
        await publish(comm, "ticket.created", ticket)
        return ticket.get("id")

    async def _whatsapp(self, comm: Communication, payload: dict[str, Any]) -> dict[str, Any]:
        created = []
        for message in payload.get("messages", []):
            sender = await comm.call("Directory", "/find-or-create", {"phone": message.get("from")})
            created.append(await self._open(comm, message.get("text", "WhatsApp"), sender.get("id"), "chat"))
        return {"tickets": created}

    async def _slack(self, comm: Communication, payload: dict[str, Any]) -> dict[str, Any]:
        command, _, rest = payload.get("text", "").partition(" ")
        if command == "new":
            return {"text": f"opened {await self._open(comm, rest, payload.get('user'), 'slack')}"}
        found = await comm.call("Search", "/query", {"kind": "ticket", "text": rest})
        return {"text": ", ".join(str(hit.get("id")) for hit in found.get("hits", []))}


class Insights(MS):
    """Reports and search."""

    runtime = "async"
    pool_size = 8

    SEARCHED = {
        "ticket": ("Search", "/query"),
        "article": ("Search", "/query"),
        "customer": ("Crm", "/search"),
    }

    @EP("/reports/overview", method="GET")
    @requires("agent", "admin")
    async def overview(self, comm: Communication) -> None:
        tenant = current_user.get().tenant
        if not as_bool(comm.params.get("fresh")):
            cached = await soft(comm.call("Cache", "/get", {"key": f"overview:{tenant}"}), {})
            if cached.get("value"):
                comm.respond(cached["value"])
                return
        async with asyncio.TaskGroup() as group:
            volume = group.create_task(comm.call("Metrics", "/value", {"metric": "volume", "tenant": tenant}))
            backlog = group.create_task(
                comm.call("Metrics", "/value", {"metric": "backlog", "tenant": tenant})
            )
            rating = group.create_task(soft(comm.call("Surveys", "/summary", {"tenant": tenant}), {}))
        report = {"volume": volume.result(), "backlog": backlog.result(), "csat": rating.result().get("mean")}
        comm.respond(report)
        comm.call("Cache", "/set", {"key": f"overview:{tenant}", "value": report})

    @EP("/reports/agents", method="GET")
    @requires("admin")
    async def agents(self, comm: Communication) -> None:
        team = await comm.call("Directory", "/team", {"id": comm.params.get("team", "support")})
        rows, missing = [], 0
        calls = [comm.call("Metrics", "/agent", {"id": a["id"]}, timeout=1.0) for a in team.get("agents", [])]
        for finished in asyncio.as_completed(calls):
            try:
                rows.append(await finished)
            except CommunicationError:
                missing += 1
        comm.respond({"rows": sorted(rows, key=lambda r: -r.get("solved", 0)), "missing": missing})

    @EP("/reports/sla", method="GET")
    @requires("agent", "admin")
    async def sla(self, comm: Communication) -> None:
        counts: Counter[str] = Counter()
        async for batch in self._solved(comm):
            status = await comm.call("Sla", "/sla/status", {"tickets": [t["id"] for t in batch]})
            counts.update("breached" if c.get("breached") else "met" for c in status.get("clocks", []))
        comm.respond({"counts": counts, "rate": counts["met"] / counts.total() if counts else None})

    @EP("/reports/export", method="POST")
    @requires("admin")
    async def export(self, comm: Communication) -> None:
        form = comm.params.get("format", "csv")
        job = await comm.call("Exports", "/create", {"by": current_user.get().id, "format": form})
        if job.get("url"):
            comm.respond({"url": job["url"]})
            return
        comm.respond({"job": job.get("id")}, 202)
        try:
            rows = [ticket async for batch in self._solved(comm) for ticket in batch]
            path = "/pdf" if form == "pdf" else "/sheet"
            rendered = await comm.call("Renderer", path, {"rows": rows}, timeout=20)
            await comm.call("Blobs", "/put", {"name": f"export.{form}", "data": rendered.get("data")})
        except CommunicationError as error:
            await comm.call("Exports", "/fail", {"id": job.get("id"), "error": str(error)})

    @EP("/search", method="GET")
    @requires("agent", "admin")
    async def search(self, comm: Communication) -> None:
        text = comm.params.get("q", "").strip()
        if text.startswith("#"):
            comm.respond({"exact": await TicketRepository(comm, current_user.get().tenant).get(text[1:])})
            return
        tasks = {}
        for kind in comm.params.get("kinds", "ticket,article,customer").split(","):
            if kind in self.SEARCHED:
                service, path = self.SEARCHED[kind]
                tasks[kind] = asyncio.create_task(comm.call(service, path, {"kind": kind, "text": text}))
        if not tasks:
            raise ApiError("nothing to search")
        done, late = await asyncio.wait(tasks.values(), timeout=1.5)
        for task in late:
            task.cancel()
        hits = {k: t.result().get("hits", []) for k, t in tasks.items() if t in done and not t.exception()}
        comm.respond({"hits": hits, "partial": len(hits) < len(tasks)})

    async def _solved(self, comm: Communication):
        tickets = TicketRepository(comm, current_user.get().tenant)
        for page in range(1, 20):
            found = await tickets.find({"state": "solved"}, page, 50)
            if found.get("items"):
                yield found["items"]
            if not found.get("more"):
                return


class Automations(MS):
    """Macros agents start, rules events start."""

    runtime = "thread"
    pool_size = 12

    @EP("/macros/list", method="GET")
    @staff_only
    def macros(self, comm: Communication) -> None:
        user = current_user.get()
        page, size = page_of(comm.params)
        own = comm.call("RuleStore", "/macros", {"owner": user.id, "page": page, "size": size})
        shared = comm.call("RuleStore", "/macros", {"tenant": user.tenant, "page": page, "size": size})
        comm.respond(
            {"items": own.get().get("items", []) + value_or(shared, {}).get("items", []), "page": page}
        )

    @EP("/macros/delete", method="POST")
    @staff_only
    def delete_macro(self, comm: Communication) -> None:
        user = current_user.get()
        macro = comm.call("RuleStore", "/macro", {"id": comm.params.get("id")}).get()
        if macro.get("owner") != user.id and user.role != "admin":
            raise ApiError("not your macro", 403)
        comm.call("RuleStore", "/delete-macro", {"id": comm.params.get("id")}).get()
        comm.call("Audit", "/record", {"who": user.id, "did": "delete macro"})
        comm.respond(status=204)

    @EP("/macros/apply", method="POST")
    @staff_only
    def apply_macro(self, comm: Communication) -> None:
        ticket_id = comm.params.get("ticket")
        macro = comm.call("RuleStore", "/macro", {"id": comm.params.get("macro")})
        auth = {"authorization": comm.headers.get("authorization", "")}
        ticket = comm.call("Tickets", "/tickets/{ticket_id}", {"ticket_id": ticket_id}, auth).get()
        changes, failed = run_actions(comm, ticket, macro.get().get("actions", []))
        state = changes.pop("state", None)
        if changes:
            comm.call("TicketStore", "/update", {"id": ticket_id, "set": changes}).get()
        if state and state != ticket.get("state"):
            move = {"ticket_id": ticket_id, "state": state}
            comm.call("Tickets", "/tickets/{ticket_id}/transition", move, auth).get()
        comm.respond({"changes": changes, "failed": failed}, 207 if failed else 200)

    @EP("/rules/evaluate", method="POST")
    def evaluate(self, comm: Communication) -> None:
        event, ticket = comm.params.get("event", ""), comm.params.get("ticket") or {}
        fired, changes = [], {}
        rules = comm.call("RuleStore", "/rules", {"event": event}, timeout=1.0).get().get("items", [])
        for rule in sorted(rules, key=lambda r: r.get("position", 0)):
            if rule.get("disabled") or not matches(rule, {**ticket, **changes}):
                continue
            new, failed = run_actions(comm, {**ticket, **changes}, rule.get("actions", []))
            changes |= new
            fired.append(rule["id"])
            if failed:
                comm.call("RuleStore", "/report-failure", {"rule": rule["id"], "failed": failed})
            if rule.get("stop"):
                break
        if changes:
            comm.call("TicketStore", "/update", {"id": ticket.get("id"), "set": changes}).get()
        comm.respond({"fired": fired, "changes": changes})
        for hook in value_or(comm.call("RuleStore", "/hooks", {"event": event}), {}).get("items", []):
            self._deliver(comm, hook, {"event": event, "ticket": ticket.get("id")})

    @EP("/rules/scheduled", method="POST")
    def scheduled(self, comm: Communication) -> None:
        """Once an hour: close what has been solved for days."""
        closed = errors = 0
        for ticket in self._idle(comm, comm.params.get("days", 4)):
            try:
                comm.call("TicketStore", "/update", {"id": ticket["id"], "set": {"state": "closed"}}).get()
                closed += 1
            except CallError:
                errors += 1
        comm.respond({"closed": closed, "errors": errors})

    def _idle(self, comm: Communication, days: int):
        cursor = None
        while True:
            found = comm.call("TicketStore", "/idle", {"days": days, "after": cursor}).get()
            yield from found.get("items", [])
            cursor = found.get("next")
            if cursor is None:
                return

    def _deliver(self, comm: Communication, hook: dict[str, Any], payload: dict[str, Any]) -> None:
        for attempt in range(3):
            try:
                comm.call(
                    "Webhooks", "/deliver", {"url": hook.get("url"), "payload": payload}, timeout=2
                ).get()
                return
            except CallTimeoutError:
                log.info("hook %s is slow", hook.get("url"))
            except CallError as error:
                if error.status < 500:
                    comm.call("RuleStore", "/disable-hook", {"id": hook.get("id")})
                    return
            time.sleep(0.2 * 2**attempt)


class Sla(MS):
    """Clocks of tickets, and what happens when they run out."""

    runtime = "thread"
    pool_size = 8

    DEFAULT = {"id": "default", "minutes": {"low": 2880, "normal": 1440, "high": 240, "urgent": 60}}

    @EP("/sla/clock/start", method="POST")
    def start_clock(self, comm: Communication) -> None:
        ticket = comm.params.get("ticket") or {}
        policy = self._policy(comm, comm.params.get("plan"), ticket)
        minutes = policy["minutes"].get(ticket.get("priority"), 1440)
        due = f"+{minutes}m"
        if policy.get("business_hours"):
            due = comm.call("Calendar", "/add", {"minutes": minutes}).get().get("at", due)
        comm.call("ClockStore", "/put", {"ticket": ticket.get("id"), "due": due}).get()
        comm.call("Scheduler", "/at", {"when": due, "ticket": ticket.get("id")})
        comm.respond({"due": due, "policy": policy.get("id")}, 201)

    @EP("/sla/clock/pause", method="POST")
    def pause_clock(self, comm: Communication) -> None:
        clock = comm.call("ClockStore", "/get", {"ticket": comm.params.get("ticket")}).get()
        if not clock.get("id"):
            comm.respond({"error": "ticket has no clock"}, 404)
            return
        if not clock.get("paused"):
            comm.call("ClockStore", "/put", {"id": clock["id"], "paused": True}).get()
        comm.respond({**clock, "paused": True})

    @EP("/sla/status", method="POST")
    def status(self, comm: Communication) -> None:
        ids = comm.params.get("tickets") or []
        futures = [
            comm.call("ClockStore", "/many", {"tickets": ids[i : i + 25]}) for i in range(0, len(ids), 25)
        ]
        comm.respond({"clocks": [clock for future in futures for clock in future.get().get("clocks", [])]})

    @EP("/sla/sweep", method="POST")
    def sweep(self, comm: Communication) -> None:
        """Tell somebody about what is late: first the assignee, then the lead, then who is on duty."""
        escalated = []
        for clock in comm.call("ClockStore", "/overdue", {"limit": 20}).get().get("items", []):
            if clock.get("paused"):
                continue
            step = clock.get("step", 0)
            if step == 0 and clock.get("assignee"):
                comm.call("Notify", "/push", {"user": clock["assignee"], "ticket": clock.get("ticket")})
            elif step <= 1:
                lead = comm.call("Directory", "/lead", {"ticket": clock.get("ticket")}).get()
                comm.call("Notify", "/push", {"user": lead.get("id"), "ticket": clock.get("ticket")})
            else:
                comm.call("Pager", "/page", {"rotation": "managers", "ticket": clock.get("ticket")}).get()
            comm.call("ClockStore", "/put", {"id": clock["id"], "step": step + 1, "breached": True}).get()
            escalated.append(clock["id"])
        comm.respond({"escalated": escalated})

    @EP("/sla/policies/change", method="POST")
    @staff_only
    def change_policy(self, comm: Communication) -> None:
        minutes = comm.params.get("minutes", {})
        if not minutes or set(minutes) - set(PRIORITIES):
            raise ApiError("minutes by priority, please")
        old = comm.call("PolicyStore", "/get", {"id": comm.params.get("id")}).get()
        if old.get("locked"):
            raise ApiError("policy is part of a contract", 409)
        new = comm.call(
            "PolicyStore", "/put", {**old, "minutes": {**old.get("minutes", {}), **minutes}}
        ).get()
        comm.call("Audit", "/record", {"did": "policy", "before": old, "after": new}).get()
        comm.respond(new)

    def _policy(self, comm: Communication, plan: str | None, ticket: Ticket) -> dict[str, Any]:
        """The policy of the customer, else of the plan, else the default."""
        for scope, owner in (("customer", ticket.get("requester")), ("plan", plan)):
            if owner:
                policy = value_or(comm.call("PolicyStore", "/find", {"scope": scope, "owner": owner}), {})
                if policy.get("minutes"):
                    return policy
        return self.DEFAULT


class Knowledge(MS):
    """Articles customers find before they write a ticket."""

    runtime = "thread"
    pool_size = 16

    def setup(self) -> None:
        self.translator = Breaker(limit=3)

    @EP("/articles/{article_id}", method="GET")
    def article(self, comm: Communication, article_id: str) -> None:
        language = comm.params.get("lang", "en")
        key = f"article:{article_id}:{language}"
        cached = value_or(comm.call("Cache", "/get", {"key": key}, timeout=0.1), {})
        if cached.get("value"):
            comm.respond(cached["value"], headers={"X-Cache": "hit"})
            return
        article = comm.call("ArticleStore", "/get", {"id": article_id}).get()
        if not article or article.get("draft"):
            comm.respond({"error": "no such article"}, 404)
            return
        if article.get("language", "en") != language:
            article = self._translated(comm, article, language)
        comm.respond(article)
        if not article.get("untranslated"):
            comm.call("Cache", "/set", {"key": key, "value": article})

    @EP("/articles/publish", method="POST")
    @staff_only
    def publish(self, comm: Communication) -> None:
        article_id = comm.params.get("id")
        article = comm.call("ArticleStore", "/get", {"id": article_id}).get()
        if "publish" not in current_user.get().permissions:
            comm.call("Reviews", "/request", {"article": article_id}).get()
            comm.respond({"review": True}, 202)
            return
        comm.call("ArticleStore", "/set-state", {"id": article_id, "state": "published"}).get()
        try:
            comm.call("Search", "/index", {"kind": "article", "document": article}).get()
            comm.call("Cdn", "/purge", {"path": f"/kb/{article_id}"}).get()
        except CommunicationError as error:
            value_or(comm.call("Search", "/remove", {"kind": "article", "id": article_id}))
            value_or(comm.call("ArticleStore", "/set-state", {"id": article_id, "state": "draft"}))
            raise ApiError("not published", 502, because=str(error)) from error
        comm.respond({"id": article_id, "published": True})
        for follower in article.get("followers", []):
            comm.call("Notify", "/push", {"user": follower, "article": article_id})

    @EP("/articles/suggest", method="POST")
    def suggest(self, comm: Communication) -> None:
        text, items = comm.params.get("text", ""), []
        if len(text) < 5:
            comm.respond({"items": []})
            return
        try:
            vector = comm.call("Embeddings", "/embed", {"text": text}, timeout=0.5).get()
            if vector.get("values"):
                items = comm.call("Vectors", "/nearest", {"vector": vector["values"]}).get().get("hits", [])
        except CommunicationError:
            log.info("no semantic search")
        if not items:
            items = value_or(comm.call("Search", "/query", {"kind": "article", "text": text}), {}).get(
                "hits", []
            )
        comm.respond({"items": [i for i in items if i.get("score", 1) > 0.2]})

    @EP("/articles/import", method="POST")
    @staff_only
    def bulk_import(self, comm: Communication) -> None:
        rows = comm.params.get("articles", [])
        good = [row for row in rows if row.get("title")]
        errors = [{"row": n, "error": "no title"} for n, row in enumerate(rows) if not row.get("title")]
        imported = 0
        for start in range(0, len(good), 2):
            batch = good[start : start + 2]
            try:
                answer = comm.call("ArticleStore", "/insert-many", {"articles": batch}, timeout=5).get()
                imported += answer.get("inserted", len(batch))
            except CommunicationError as error:
                errors += [{"title": row["title"], "error": str(error)} for row in batch]
        comm.respond({"imported": imported, "errors": errors}, 207 if errors else 201)
        if imported:
            comm.call("Search", "/rebuild", {"kind": "article"})

    @EP("/articles/feedback", method="POST")
    def feedback(self, comm: Communication) -> None:
        article_id, up = comm.params.get("id"), as_bool(comm.params.get("helpful"))
        vote = comm.call(
            "Votes", "/cast", {"article": article_id, "visitor": comm.cookies.get("visitor"), "up": up}
        ).get()
        comm.respond({"counted": not vote.get("repeated")})
        if vote.get("down", 0) > 10:
            comm.call("Reviews", "/request", {"article": article_id, "reason": "votes"})

    def _translated(self, comm: Communication, article: dict[str, Any], language: str) -> dict[str, Any]:
        if language in article.get("translations", []):
            return comm.call(
                "ArticleStore", "/translation", {"id": article.get("id"), "lang": language}
            ).get()
        if not self.translator.is_open:
            try:
                with self.translator.watch():
                    text = comm.call(
                        "Translator", "/translate", {"text": article.get("text"), "to": language}
                    ).get()
                return {**article, **text, "language": language}
            except CommunicationError:
                log.warning("no translation to %s", language)
        return {**article, "untranslated": True}
