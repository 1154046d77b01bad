"""A team messenger: gateway, channels, messages, integrations, moderation and digests."""

from __future__ import annotations

import asyncio
import functools
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from itertools import islice
from typing import Any, Protocol

from messenger_apps import COMMANDS, MENTION, PARSERS
from messenger_clients import (
    AccountsClient,
    Channel,
    ChannelState,
    ChannelStoreClient,
    Message,
    MessageStoreClient,
)
from messenger_clients import RealtimeClient, Saga, UnitOfWork, load_channel, load_message
from messenger_core import (
    ApiError,
    CircuitBreaker,
    CircuitOpen,
    Context,
    NotFound,
    TTLCache,
    authenticated,
    batched,
)
from messenger_core import (
    depends,
    errors_as_json,
    idempotent,
    log,
    not_found,
    or_default,
    rate_limited,
    retrying,
)
from messenger_digests import NOTIFIERS, DigestBuilder
from mup import EP, MS, Communication
from mup.communication import Cookie
from mup.errors import CallError, CallTimeoutError, CommunicationError

LINK = re.compile(r"https?://\S+")
CHANNEL_NAME = re.compile(r"[a-z0-9][a-z0-9-]{1,40}")


# ---------------------------------------------------------------------------------------------- gateway


@dataclass
class Credentials:
    email: str
    password: str
    code: str | None = None


class Status(StrEnum):
    ONLINE = "online"
    AWAY = "away"
    DND = "dnd"


class SearchBackend(Protocol):
    name: str

    async def find(self, ctx: Context, query: str) -> list[dict[str, Any]]: ...


class MessageSearch:
    name = "messages"

    async def find(self, ctx: Context, query: str) -> list[dict[str, Any]]:
        answer = await ctx.comm.call("SearchIndex", "/query", {"q": query, "user": ctx.principal.user_id})
        return [{**hit, "kind": "message"} for hit in answer.get("hits", [])]


class FileSearch:
    name = "files"

    async def find(self, ctx: Context, query: str) -> list[dict[str, Any]]:
        answer = await ctx.comm.call("Files", "/search", {"q": query}, timeout=0.8)
        return [
            {**hit, "kind": "file", "score": hit.get("score", 0) * 0.8} for hit in answer.get("files", [])
        ]


class PeopleSearch:
    name = "people"

    async def find(self, ctx: Context, query: str) -> list[dict[str, Any]]:
        if len(query) < 3:
            return []
        people = await ctx.comm.call("Directory", "/search", {"q": query})
        return [{"id": person["id"], "score": 1.0, "kind": "person"} for person in people.get("people", [])]


class Gateway(MS):
    """Sessions, start-up data, search and presence."""

    runtime = "async"
    pool_size = 32

    async def setup(self) -> None:
        self.plans = TTLCache(60)
        self.backends: dict[str, SearchBackend] = {
            b.name: b for b in (MessageSearch(), FileSearch(), PeopleSearch())
        }

    @EP("/login", method="POST")
    @errors_as_json
    async def login(self, comm: Communication, credentials: Credentials) -> None:
        bucket = f"login:{credentials.email}"
        grant = await or_default(comm.call("RateLimiter", "/take", {"bucket": bucket}), {"allowed": True})
        if not grant.get("allowed"):
            raise ApiError(429, "too many attempts", retry_after=grant.get("retry_after", 60))
        try:
            account = await comm.call(
                "Accounts", "/authenticate", {"email": credentials.email, "password": credentials.password}
            )
        except CallError as error:
            if error.status in (401, 403, 404):
                comm.call("Audit", "/record", {"action": "login_failed", "email": credentials.email})
                raise ApiError(401, "wrong e-mail or password") from error
            raise
        if account.get("mfa"):
            if credentials.code is None:
                comm.respond({"challenge": account.get("challenge", "totp")}, 202)
                return
            check = await comm.call(
                "Accounts", "/check-code", {"user": account["id"], "code": credentials.code}
            )
            if not check.get("ok"):
                raise ApiError(401, "wrong code")
        session = await comm.call("Sessions", "/open", {"user": account["id"]})
        cookie = Cookie(value=session.get("token", ""), max_age=86_400, secure=True)
        comm.respond({"user": account["id"]}, cookies={"session": cookie})
        if account.get("new_device"):
            await or_default(
                comm.call("Mailer", "/send", {"to": credentials.email, "template": "new-device"}), None
            )

    @EP("/me", method="GET")
    @authenticated()
    async def me(self, ctx: Context) -> None:
        accounts = AccountsClient(ctx.comm)
        who = ctx.principal
        user, preferences = await asyncio.gather(
            accounts.user(who.user_id), accounts.preferences(who.user_id)
        )
        plan = await self.plans.get(
            who.workspace, lambda: ctx.comm.call("Tenants", "/plan", {"workspace": who.workspace})
        )
        ctx.respond({**user, "preferences": preferences, "plan": plan.get("name", "free")})

    @EP("/bootstrap", method="GET")
    @authenticated()
    async def bootstrap(self, ctx: Context) -> None:
        """Everything a client needs to draw its first screen."""
        version = int(ctx.comm.headers.get("x-api-version", "1"))
        user = ctx.principal.user_id
        presence = None
        try:
            async with asyncio.TaskGroup() as group:
                channels = group.create_task(ctx.comm.call("ChannelStore", "/list", {"user": user}))
                unread = group.create_task(
                    or_default(ctx.comm.call("Counters", "/unread", {"user": user}), {}, 0.5)
                )
                flags = group.create_task(or_default(ctx.comm.call("Flags", "/evaluate", {"user": user}), {}))
                if version >= 2:
                    presence = group.create_task(
                        ctx.comm.call("Presence", "/team", {"team": ctx.principal.workspace})
                    )
        except ExceptionGroup as failed:
            raise ApiError(503, "cannot load the workspace", causes=len(failed.exceptions)) from failed
        counters = unread.result().get("channels", {})
        items = [
            {**row, "unread": counters.get(row["id"], 0)}
            for row in channels.result().get("channels", [])
            if row.get("state") != "archived" or flags.result().get("show_archived")
        ]
        if version < 2:
            ctx.respond(items)
            return
        ctx.respond(
            {"channels": items, "flags": flags.result(), "online": presence.result().get("online", [])}
        )
        if any(row["unread"] > 50 for row in items) and flags.result().get("catch_up"):
            ctx.after(ctx.comm.call("Jobs", "/start", {"kind": "catch-up", "user": user}))

    @EP("/search", method="GET")
    @authenticated()
    @rate_limited("search", cost=2)
    async def search(self, ctx: Context) -> None:
        query = ctx.require("q").strip().lower()
        wanted = ctx.param("in")
        names = wanted.split(",") if wanted else list(self.backends)
        if unknown := set(names) - self.backends.keys():
            raise ApiError(422, "unknown scope", scopes=sorted(unknown))
        tasks = [asyncio.create_task(self.backends[name].find(ctx, query)) for name in names]
        hits, failures = [], 0
        try:
            for done in asyncio.as_completed(tasks, timeout=1.5):
                try:
                    hits += await done
                except (CommunicationError, TimeoutError):
                    failures += 1
        finally:
            for task in tasks:
                task.cancel()
        if failures == len(tasks):
            raise ApiError(503, "search is down")
        hits.sort(key=lambda hit: hit.get("score", 0), reverse=True)
        body = {"hits": hits[:20], "partial": failures > 0}
        if not hits:
            spelling = await or_default(ctx.comm.call("Spelling", "/suggest", {"q": query}, timeout=0.3), {})
            body["did_you_mean"] = spelling.get("words", [])
        ctx.respond(body)

    @EP("/presence", method="POST")
    @authenticated()
    async def presence(self, ctx: Context) -> None:
        try:
            status = Status(ctx.require("status"))
        except ValueError:
            raise ApiError(422, "no such status", allowed=[s.value for s in Status]) from None
        user = ctx.principal.user_id
        before = await or_default(ctx.comm.call("Presence", "/get", {"user": user}), {})
        if before.get("status") == status:
            ctx.respond({"status": status, "changed": False})
            return
        await ctx.comm.call("Presence", "/set", {"user": user, "status": status})
        ctx.respond({"status": status, "changed": True})
        if status is Status.DND:
            ctx.after(ctx.comm.call("Push", "/mute", {"user": user}))
        elif before.get("status") == Status.DND:
            ctx.after(ctx.comm.call("Push", "/unmute", {"user": user}))
        ctx.after(RealtimeClient(ctx.comm).publish(f"team:{ctx.principal.workspace}", "presence", user=user))

    @EP("/people/{user_id}", method="GET")
    @authenticated()
    async def person(self, ctx: Context, user_id: str) -> None:
        accounts = AccountsClient(ctx.comm)
        try:
            profile = await accounts.user(user_id)
        except NotFound:
            with not_found("person"):
                profile = await ctx.comm.call("Directory", "/lookup", {"id": user_id})
        presence = asyncio.create_task(
            or_default(ctx.comm.call("Presence", "/get", {"user": user_id}), {}, 0.3)
        )
        chain, boss = [], profile.get("manager")
        while boss and len(chain) < 3 and ctx.param("org") == "1":
            manager = await or_default(accounts.user(boss), {})
            chain.append(boss)
            boss = manager.get("manager")
        ctx.respond({**profile, "status": (await presence).get("status", "offline"), "managers": chain})


# --------------------------------------------------------------------------------------------- channels


@dataclass
class NewChannel:
    name: str
    private: bool = False
    members: list[str] = field(default_factory=list)
    topic: str = ""


class Channels(MS):
    runtime = "async"
    pool_size = 16

    @EP("/create", method="POST")
    @authenticated("channels:write")
    @idempotent
    async def create(self, ctx: Context, draft: NewChannel) -> None:
        if not CHANNEL_NAME.fullmatch(draft.name):
            raise ApiError(422, "not a name of a channel", field="name")
        if draft.private:
            limits = await ctx.comm.call("Tenants", "/limits", {"workspace": ctx.principal.workspace})
            if limits.get("private_channels", 0) <= 0:
                raise ApiError(403, "the plan has no private channels")
        store = ChannelStoreClient(ctx.comm)
        try:
            async with Saga() as saga:
                channel = await store.create(draft.name, ctx.principal.user_id, private=draft.private)
                saga.compensate(lambda: store.delete(channel.id))
                for member in draft.members[:3]:
                    await store.add_member(channel.id, member)
                if draft.topic:
                    await store.update(channel.id, topic=draft.topic)
        except CallError as error:
            if error.status == 409:
                raise ApiError(409, "the name is taken", name=draft.name) from error
            raise
        ctx.respond({"id": channel.id}, 201)
        ctx.after(RealtimeClient(ctx.comm).publish("channels", "created", id=channel.id))

    @EP("/channels/{channel_id}/join", method="POST")
    @authenticated("channels:join")
    @depends(channel=load_channel)
    async def join(self, ctx: Context, channel: Channel) -> None:
        user = ctx.principal.user_id
        match channel:
            case Channel(state=ChannelState.ARCHIVED):
                raise ApiError(409, "the channel is archived")
            case Channel(private=True) if not ctx.principal.is_admin:
                request = await ctx.comm.call("Approvals", "/request", {"channel": channel.id, "user": user})
                ctx.respond({"pending": request.get("id")}, 202)
            case Channel(full=True):
                raise ApiError(409, "the channel is full", capacity=channel.capacity)
            case _:
                await ChannelStoreClient(ctx.comm).add_member(channel.id, user)
                ctx.respond({"joined": channel.id})
                ctx.after(RealtimeClient(ctx.comm).publish(f"channel:{channel.id}", "joined", user=user))

    @EP("/channels/{channel_id}/members", method="GET")
    @authenticated()
    async def members(self, ctx: Context, channel_id: str) -> None:
        limit = min(int(ctx.param("limit", 6)), 6)
        online_only = ctx.param("online") == "1"
        result = []
        async for batch in batched(ChannelStoreClient(ctx.comm).members(channel_id, limit), 2):
            ids = [member["id"] for member in batch]
            presence = await or_default(ctx.comm.call("Presence", "/batch", {"users": ids}), {})
            states = presence.get("states", {})
            for member in batch:
                state = states.get(member["id"], "offline")
                if not online_only or state == Status.ONLINE:
                    result.append({**member, "status": state})
        ctx.respond({"members": result, "count": len(result)})

    @EP("/channels/{channel_id}/archive", method="POST")
    @authenticated("channels:write")
    @depends(channel=load_channel)
    async def archive(self, ctx: Context, channel: Channel) -> None:
        if not ctx.principal.is_admin and ctx.principal.user_id != channel.owner:
            raise ApiError(403, "only the owner may do this")
        if channel.state is ChannelState.ARCHIVED:
            ctx.respond({"state": channel.state})
            return
        async with UnitOfWork(ctx) as work:
            work.update(channel, state=ChannelState.ARCHIVED)
            if ctx.param("reason"):
                work.record("archived", channel=channel.id, reason=ctx.param("reason"))
        ctx.respond({"state": ChannelState.ARCHIVED})
        ctx.after(RealtimeClient(ctx.comm).publish(f"channel:{channel.id}", "archived"))
        if channel.members > 10:
            ctx.after(ctx.comm.call("Jobs", "/start", {"kind": "export", "channel": channel.id}))

    @EP("/invite", method="POST")
    @authenticated("channels:write")
    async def invite(self, ctx: Context) -> None:
        channel_id, emails = ctx.require("channel_id"), ctx.param("emails", [])
        slots = asyncio.Semaphore(2)

        async def invite_one(email: str) -> str:
            if "@" not in email:
                raise ApiError(422, "not an address")
            async with slots:
                try:
                    user = await ctx.comm.call("Accounts", "/by-email", {"email": email})
                except CallError as error:
                    if error.status != 404:
                        raise
                    await ctx.comm.call("Invites", "/send", {"email": email, "channel": channel_id})
                    return "invited"
                await ChannelStoreClient(ctx.comm).add_member(channel_id, user["id"])
                return "added"

        results = await asyncio.gather(*(invite_one(email) for email in emails), return_exceptions=True)
        report = {
            email: {"error": str(result)} if isinstance(result, BaseException) else {"result": result}
            for email, result in zip(emails, results, strict=True)
        }
        failed = sum("error" in entry for entry in report.values())
        ctx.respond(report, 207 if failed else 200)


# --------------------------------------------------------------------------------------------- messages


@dataclass
class Draft:
    channel_id: str
    text: str
    thread: str | None = None
    attachments: list[str] = field(default_factory=list)


REACTION_JOBS = {"eyes": "watch", "white_check_mark": "complete-task", "ticket": "open-ticket"}


class Messages(MS):
    runtime = "async"
    pool_size = 32

    async def setup(self) -> None:
        self.translator = CircuitBreaker(threshold=3)

    @EP("/post", method="POST")
    @authenticated("messages:write")
    async def post(self, ctx: Context, draft: Draft) -> None:
        if not draft.text.strip() and not draft.attachments:
            raise ApiError(422, "an empty message")
        verdict = await self._scan(ctx, draft)
        if verdict == "block":
            raise ApiError(422, "the message breaks the rules of the workspace")
        if verdict == "hold":
            case = await ctx.comm.call("Cases", "/create", {"kind": "held", "text": draft.text})
            ctx.respond({"held": case.get("id")}, 202)
            return
        message = await MessageStoreClient(ctx.comm).insert(
            channel=draft.channel_id, author=ctx.principal.user_id, text=draft.text, thread=draft.thread
        )
        ctx.respond({"id": message.id, "version": message.version}, 201)
        ctx.after(RealtimeClient(ctx.comm).publish(f"channel:{draft.channel_id}", "message", id=message.id))
        if mentioned := sorted(set(MENTION.findall(draft.text))):
            ctx.after(ctx.comm.call("Digests", "/notify", {"users": mentioned, "message": message.id}))
        if link := LINK.search(draft.text):
            ctx.after(self._unfurl(ctx, message, link.group()))
        ctx.after(ctx.comm.call("SearchIndex", "/index", {"id": message.id, "text": draft.text}))

    async def _scan(self, ctx: Context, draft: Draft) -> str:
        if ctx.principal.is_admin:
            return "allow"
        try:
            answer = await ctx.comm.call("Moderation", "/scan", {"text": draft.text}, timeout=0.8)
        except (CallError, CallTimeoutError):
            return "allow"
        return answer.get("verdict", "allow")

    async def _unfurl(self, ctx: Context, message: Message, url: str) -> None:
        preview = await ctx.comm.call("Unfurl", "/preview", {"url": url}, timeout=4.0)
        if preview.get("title"):
            await ctx.comm.call("MessageStore", "/update", {"id": message.id, "preview": preview})

    @EP("/edit", method="POST")
    @authenticated("messages:write")
    @depends(message=load_message)
    async def edit(self, ctx: Context, message: Message) -> None:
        if message.author != ctx.principal.user_id:
            raise ApiError(403, "not your message")
        text, store = ctx.require("text"), MessageStoreClient(ctx.comm)
        for _ in range(2):
            try:
                await store.send("/update", id=message.id, text=text, expected=message.version)
            except CallError as error:
                if error.status != 409:
                    raise
                message = await store.get(message.id)
            else:
                break
        else:
            raise ApiError(409, "somebody else keeps changing the message", version=message.version)
        ctx.respond({"id": message.id, "version": message.version + 1})
        ctx.after(ctx.comm.call("SearchIndex", "/index", {"id": message.id, "text": text}))

    @EP("/delete", method="POST")
    @authenticated()
    @depends(message=load_message)
    async def delete(self, ctx: Context, message: Message) -> None:
        if message.author != ctx.principal.user_id and not ctx.principal.is_admin:
            raise ApiError(403, "not your message")
        try:
            async with asyncio.TaskGroup() as group:
                for file in message.attachments:
                    group.create_task(ctx.comm.call("Files", "/delete", {"id": file}))
        except* CommunicationError as failed:
            log.warning("%d attachments of %s remain", len(failed.exceptions), message.id)
        await ctx.comm.call("MessageStore", "/delete", {"id": message.id, "hard": ctx.param("hard") is True})
        if ctx.principal.is_admin:
            await ctx.comm.call("Audit", "/record", {"action": "delete_message", "id": message.id})
        ctx.respond(status=204)
        ctx.after(ctx.comm.call("SearchIndex", "/remove", {"id": message.id}))

    @EP("/history", method="GET")
    @authenticated()
    async def history(self, ctx: Context) -> None:
        channel, store = ctx.require("channel"), MessageStoreClient(ctx.comm)
        if around := ctx.param("around"):
            older, newer = await asyncio.gather(
                store.page(channel, before=around), store.page(channel, after=around)
            )
            rows = older.get("items", []) + newer.get("items", [])
        else:
            page = await store.page(channel, before=ctx.param("before"), limit=50)
            rows = page.get("items", [])
        authors = await AccountsClient(ctx.comm).users(row["author"] for row in rows)
        ctx.respond([{**row, "author": authors.get(row["author"], {"name": "deleted user"})} for row in rows])

    @EP("/thread/{message_id}", method="GET")
    @authenticated()
    async def thread(self, ctx: Context, message_id: str) -> None:
        root = asyncio.create_task(MessageStoreClient(ctx.comm).get(message_id))
        replies = [reply async for reply in self._replies(ctx.comm, message_id)]
        message = await root
        authors = Counter(reply.get("author") for reply in replies)
        ctx.respond(
            {"root": message.text, "replies": replies, "participants": [a for a, _ in authors.most_common(5)]}
        )

    async def _replies(self, comm: Communication, message_id: str) -> AsyncIterator[dict[str, Any]]:
        cursor: str | None = "start"
        pages = 0
        while cursor and pages < 4:
            page = await comm.call("MessageStore", "/replies", {"thread": message_id, "cursor": cursor})
            for reply in page.get("items", []):
                if not reply.get("deleted"):
                    yield reply
            cursor, pages = page.get("next"), pages + 1

    @EP("/react", method="POST")
    @authenticated()
    @rate_limited("react")
    @depends(message=load_message)
    async def react(self, ctx: Context, message: Message) -> None:
        emoji, user = ctx.require("emoji").strip(":"), ctx.principal.user_id
        answer = await ctx.comm.call(
            "Reactions", "/toggle", {"message": message.id, "user": user, "emoji": emoji}
        )
        ctx.respond({"emoji": emoji, "on": answer.get("on", False)})
        if not answer.get("on"):
            return
        if kind := REACTION_JOBS.get(emoji):
            ctx.after(ctx.comm.call("Jobs", "/start", {"kind": kind, "message": message.id}))
        if message.author != user:
            ctx.after(
                ctx.comm.call("Push", "/send", {"user": message.author, "text": f"reacted with {emoji}"})
            )

    @EP("/attachments", method="POST")
    @authenticated("files:write")
    async def attach(self, ctx: Context) -> None:
        """Take over an uploaded file, once the virus scanner has seen it."""
        with not_found("upload"):
            upload = await ctx.comm.call("Files", "/begin", {"upload": ctx.require("upload")})
        if upload.get("size", 0) > 100_000_000:
            raise ApiError(413, "too large", limit=100_000_000)
        for delay in (0.1, 0.2, 0.4):
            scan = await ctx.comm.call("Files", "/scan", {"id": upload["id"]})
            match scan:
                case {"state": "clean"}:
                    await ctx.comm.call("Files", "/publish", {"id": upload["id"]})
                    ctx.respond({"file": upload["id"]}, 201)
                    return
                case {"state": "infected", "threat": threat}:
                    ctx.comm.call("Files", "/delete", {"id": upload["id"]})
                    raise ApiError(422, "the file is infected", threat=threat)
                case _:
                    await asyncio.sleep(delay)
        ctx.respond({"file": upload["id"], "state": "scanning"}, 202)

    @EP("/translate", method="POST")
    @authenticated()
    @depends(message=load_message)
    async def translate(self, ctx: Context, message: Message) -> None:
        request = {"text": message.text, "to": ctx.param("to", "en")}
        try:
            async with self.translator, asyncio.timeout(2):
                answer = await ctx.comm.call("Translate", "/text", request)
        except (CircuitOpen, CommunicationError, TimeoutError):
            answer = await ctx.comm.call("Translate", "/basic", request)
        ctx.respond({"text": answer.get("text", message.text), "quality": answer.get("quality", "basic")})


# ----------------------------------------------------------------------------------------- integrations


class Integrations(MS):
    runtime = "async"
    pool_size = 16

    @EP("/hooks/{token}", method="POST")
    @errors_as_json
    async def incoming(self, comm: Communication, token: str) -> None:
        with not_found("webhook"):
            app = await comm.call("Apps", "/by-token", {"token": token})
        if app.get("disabled"):
            raise ApiError(403, "the app is disabled")
        parse = PARSERS.get(app.get("kind", ""))
        if parse is None:
            raise ApiError(422, "no parser for this app", kind=app.get("kind"))
        headers = {"authorization": f"Bearer {app.get('bot_token', '')}"}
        posts = [
            comm.call("Messages", "/post", {"channel_id": app["channel"], "text": text}, headers=headers)
            for text in islice(parse(comm.params), 3)
        ]
        results = await asyncio.gather(*posts, return_exceptions=True)
        failed = [result for result in results if isinstance(result, Exception)]
        if posts and len(failed) == len(posts):
            raise ApiError(503, "nothing was posted")
        comm.respond({"posted": len(posts) - len(failed), "failed": len(failed)})

    @EP("/command", method="POST")
    @authenticated("commands")
    async def command(self, ctx: Context) -> None:
        name, _, argument = ctx.require("text").removeprefix("/").partition(" ")
        handler = COMMANDS.get(name, self._custom_command)
        reply = await handler(ctx, argument)
        ctx.respond({"command": name, **reply})

    async def _custom_command(self, ctx: Context, argument: str) -> dict[str, Any]:
        with not_found("command"):
            app = await ctx.comm.call("Apps", "/command", {"text": ctx.param("text")})
        try:
            async with asyncio.timeout(3):
                return await ctx.comm.call("Hooks", "/deliver", {"url": app.get("url"), "text": argument})
        except (TimeoutError, CommunicationError):
            return {"text": f"{app.get('name', 'the app')} did not answer"}

    @EP("/events", method="POST")
    async def dispatch(self, comm: Communication) -> None:
        """Deliver an event to every app that wants it."""
        event = comm.params.get("event", {})
        answer = await comm.call("Apps", "/subscriptions", {"kind": event.get("kind", "message")})
        subscriptions = answer.get("subscriptions", [])
        comm.respond({"accepted": len(subscriptions)}, 202)
        limit = asyncio.Semaphore(4)

        @retrying(attempts=2)
        async def deliver(subscription: dict[str, Any]) -> None:
            async with limit:
                await comm.call("Hooks", "/deliver", {"url": subscription["url"], "event": event}, timeout=5)

        async def deliver_or_bury(subscription: dict[str, Any]) -> bool:
            try:
                await deliver(subscription)
            except CommunicationError as error:
                await comm.call("DeadLetters", "/put", {"app": subscription["app"], "reason": str(error)})
                return False
            return True

        tasks = {s["app"]: asyncio.create_task(deliver_or_bury(s)) for s in subscriptions}
        if not tasks:
            return
        await asyncio.wait(tasks.values())
        for app, task in tasks.items():
            if task.exception() is not None:
                log.error("lost an event of %s", app)
            elif not task.result() and event.get("strict"):
                await comm.call("Apps", "/disable", {"app": app})

    @EP("/apps/install", method="POST")
    @authenticated("admin:apps")
    async def install(self, ctx: Context) -> None:
        manifest = ctx.require("manifest")
        async with AsyncExitStack() as undo:
            app = await ctx.comm.call("Apps", "/create", {"name": manifest.get("name", "unnamed")})
            undo.push_async_callback(self._remove_app, ctx.comm, app["id"])
            if manifest.get("bot"):
                bot = await ctx.comm.call("Accounts", "/create-bot", {"app": app["id"]})
                undo.push_async_callback(self._remove_bot, ctx.comm, bot["id"])
            for kind in manifest.get("events", [])[:2]:
                await ctx.comm.call("Apps", "/subscribe", {"app": app["id"], "kind": kind})
            undo.pop_all()
        ctx.respond({"app": app["id"]}, 201)

    async def _remove_app(self, comm: Communication, app: str) -> None:
        await or_default(comm.call("Apps", "/delete", {"id": app}), None)

    async def _remove_bot(self, comm: Communication, bot: str) -> None:
        await or_default(comm.call("Accounts", "/delete", {"id": bot}), None)


# ------------------------------------------------------------------------------------------- moderation


class CaseState(Enum):
    OPEN = "open"
    REVIEWING = "reviewing"
    UPHELD = "upheld"
    DISMISSED = "dismissed"


TRANSITIONS = {
    (CaseState.OPEN, "claim"): (CaseState.REVIEWING, None),
    (CaseState.OPEN, "dismiss"): (CaseState.DISMISSED, None),
    (CaseState.REVIEWING, "uphold"): (CaseState.UPHELD, "_punish"),
    (CaseState.REVIEWING, "dismiss"): (CaseState.DISMISSED, "_tell_reporter"),
    (CaseState.UPHELD, "appeal"): (CaseState.REVIEWING, None),
}


@dataclass(frozen=True)
class Rule:
    name: str
    pattern: re.Pattern[str]
    weight: int

    def score(self, text: str) -> int:
        return self.weight if self.pattern.search(text) else 0


RULES = (
    Rule("secrets", re.compile(r"AKIA[A-Z0-9]{6,}|BEGIN PRIVATE KEY"), 100),
    Rule("shouting", re.compile(r"\b[A-Z]{8,}\b"), 20),
    Rule("spam", re.compile(r"free money|click here", re.IGNORECASE), 60),
)


def moderators_only(endpoint):
    @functools.wraps(endpoint)
    def wrapper(self, comm: Communication):
        token = comm.headers.get("authorization")
        if not token:
            comm.respond({"error": "no token"}, 401)
            return
        try:
            who = comm.call("Accounts", "/verify", {"token": token}, timeout=1.0).get()
        except CallError as error:
            comm.respond({"error": "unknown token"}, 503 if error.status >= 500 else 401)
            return
        if who.get("role") != "admin":
            comm.respond({"error": "moderators only"}, 403)
            return
        with audited(comm, endpoint.__name__, who["user"]):
            endpoint(self, comm)

    return wrapper


@contextmanager
def audited(comm: Communication, action: str, user: str) -> Iterator[None]:
    outcome = "failed"
    try:
        yield
        outcome = "done"
    finally:
        comm.call("Audit", "/record", {"action": action, "user": user, "outcome": outcome})


class Moderation(MS):
    """Rules, reports and reviews; the libraries behind it block."""

    runtime = "thread"
    pool_size = 8

    @EP("/scan", method="POST")
    def scan(self, comm: Communication) -> None:
        text = comm.params.get("text", "")
        score = sum(rule.score(text) for rule in RULES)
        if score >= 100:
            comm.respond({"verdict": "block", "score": score})
            return
        links = [comm.call("Links", "/reputation", {"url": url}) for url in LINK.findall(text)[:2]]
        try:
            opinion = comm.call("Classifier", "/score", {"text": text}, timeout=0.5).get()
            score += opinion.get("score", 0)
        except CommunicationError:
            score += 10
        for link in links:
            try:
                if link.get().get("bad"):
                    score += 50
            except CallError:
                continue
        verdict = "block" if score >= 100 else "hold" if score >= 60 else "allow"
        comm.respond({"verdict": verdict, "score": score})

    @EP("/report", method="POST")
    def report(self, comm: Communication) -> None:
        message = comm.params.get("message")
        if not message:
            comm.respond({"error": "message is required", "field": "message"}, 422)
            return
        known = comm.call("Cases", "/find", {"message": message}).get()
        if case := known.get("case"):
            count = case.get("reports", 1) + 1
            comm.call("Cases", "/update", {"id": case["id"], "reports": count}).get()
            if count >= 3 and not case.get("hidden"):
                comm.call("MessageStore", "/update", {"id": message, "hidden": True}).get()
            comm.respond({"case": case["id"], "reports": count})
            return
        created = comm.call("Cases", "/create", {"kind": "report", "message": message}).get()
        comm.respond({"case": created.get("id"), "reports": 1}, 201)
        if comm.params.get("urgent"):
            comm.call("Pager", "/page", {"case": created.get("id")})

    @EP("/review", method="POST")
    @moderators_only
    def review(self, comm: Communication) -> None:
        case = comm.call("Cases", "/get", {"id": comm.params.get("case")}).get()
        step = TRANSITIONS.get((CaseState(case.get("state", "open")), comm.params.get("action", "")))
        if step is None:
            comm.respond({"error": "not now", "state": case.get("state")}, 409)
            return
        state, effect = step
        comm.call("Cases", "/update", {"id": case["id"], "state": state.value}).get()
        if effect is not None:
            getattr(self, effect)(comm, case)
        comm.respond({"case": case["id"], "state": state.value})

    def _punish(self, comm: Communication, case: dict[str, Any]) -> None:
        removal = comm.call("MessageStore", "/delete", {"id": case.get("message")})
        strikes = comm.call("Strikes", "/add", {"user": case.get("author")}).get().get("count", 1)
        if strikes >= 3:
            comm.call("Accounts", "/suspend", {"user": case.get("author")}).get()
        removal.get()

    def _tell_reporter(self, comm: Communication, case: dict[str, Any]) -> None:
        comm.call("Mailer", "/send", {"to": case.get("reporter"), "template": "report-dismissed"})

    @EP("/import", method="POST")
    @moderators_only
    def bulk_import(self, comm: Communication) -> None:
        """Import members; a chunk that is refused is tried row by row."""
        rows = comm.params.get("rows", [])
        valid = [row for row in rows if "@" in row.get("email", "")]
        errors = [{"row": row, "error": "e-mail"} for row in rows if row not in valid]
        imported = 0
        for start in range(0, len(valid), 2):
            chunk = valid[start : start + 2]
            try:
                imported += (
                    comm.call("Accounts", "/import", {"rows": chunk}).get().get("imported", len(chunk))
                )
            except CallError as error:
                if error.status >= 500:
                    errors += ({"row": row, "error": "unavailable"} for row in chunk)
                    break
                for row in chunk:
                    single = comm.call("Accounts", "/import", {"rows": [row]}).get(check=False)
                    if single.ok:
                        imported += 1
                    else:
                        errors.append({"row": row, "error": single.status})
        comm.respond({"imported": imported, "errors": errors}, 207 if errors else 200)

    @EP("/retention", method="POST")
    @moderators_only
    def retention(self, comm: Communication) -> None:
        dry_run = comm.params.get("dry_run", False)
        policies = comm.call("Retention", "/policies", {}).get().get("policies", [])
        pending, kept = [], 0
        for policy in policies:
            if policy.get("legal_hold"):
                kept += 1
                continue
            old = comm.call(
                "MessageStore", "/count-old", {"channel": policy["channel"], "days": policy["days"]}
            ).get()
            if old.get("count", 0) and not dry_run:
                pending.append(comm.call("MessageStore", "/purge", {"channel": policy["channel"]}))
        purged = sum(future.get().get("purged", 0) for future in pending)
        comm.respond({"purged": purged, "held": kept, "channels": len(policies)})


# ---------------------------------------------------------------------------------------------- digests


class Digests(MS):
    runtime = "async"
    pool_size = 8

    @EP("/notify", method="POST")
    async def notify(self, comm: Communication) -> None:
        users = comm.params.get("users", [])
        if not users:
            comm.respond({"results": {}})
            return
        settings = await or_default(comm.call("Preferences", "/batch", {"users": users}, timeout=1.0), {})
        channels = settings.get("channels", {})

        async def notify_one(user: str) -> str:
            notifier = NOTIFIERS.get(channels.get(user, "push"), NOTIFIERS["digest"])
            try:
                outcome = await notifier.notify(comm, user, comm.params.get("message", ""))
            except CommunicationError:
                outcome = "no_device"
            if outcome == "no_device":
                return await NOTIFIERS["digest"].notify(comm, user, comm.params.get("message", ""))
            return outcome

        outcomes = await asyncio.gather(*map(notify_one, users[:3]), return_exceptions=True)
        comm.respond({"results": {u: o if isinstance(o, str) else "lost" for u, o in zip(users, outcomes)}})

    @EP("/run", method="POST")
    @errors_as_json
    async def run(self, comm: Communication) -> None:
        """Send the digests that are due, a few at a time."""
        period = comm.params.get("period", "daily")
        if period not in ("daily", "weekly"):
            raise ApiError(422, "no such period", field="period")
        due = await comm.call("Outbox", "/due", {"period": period})
        comm.respond({"due": len(due.get("users", []))}, 202)
        slots = asyncio.Semaphore(2)

        async def send(user: str) -> bool:
            async with slots:
                digest = await DigestBuilder(comm, user).mentions().threads(period == "weekly").build()
                if not any(digest.values()):
                    return False
                await comm.call("Mailer", "/send", {"to": user, "template": period, "sections": digest})
                return True

        tasks = [asyncio.create_task(send(user)) for user in due.get("users", [])]
        if tasks:
            done, late = await asyncio.wait(tasks, timeout=20)
            for task in late:
                task.cancel()
            sent = sum(1 for task in done if not task.exception() and task.result())
            await comm.call("Metrics", "/count", {"name": "digests", "value": sent})

    @EP("/preview", method="GET")
    @authenticated()
    async def preview(self, ctx: Context) -> None:
        workspace = ctx.principal.workspace
        plan = await or_default(ctx.comm.call("Tenants", "/plan", {"workspace": workspace}), {"name": "free"})
        builder = (
            DigestBuilder(ctx.comm, ctx.principal.user_id).mentions().threads(ctx.param("threads") == "1")
        )
        digest = await builder.highlights(plan.get("name", "free")).build()
        if ctx.param("format") == "html":
            page = await ctx.comm.call("Templates", "/render", {"template": "digest", "sections": digest})
            ctx.respond(page.get("html", ""))
        else:
            ctx.respond({"sections": digest, "empty": not any(digest.values())})

    @EP("/resend", method="POST")
    @errors_as_json
    async def resend(self, comm: Communication) -> None:
        """Send what failed again; if the mailer is slow, the spare one races against it."""
        failed = await comm.call("Outbox", "/failed", {})
        results: Counter[str] = Counter()
        for mail in failed.get("mails", [])[:2]:
            results[await self._hedged(comm, mail)] += 1
        comm.respond(dict(results))

    async def _hedged(self, comm: Communication, mail: dict[str, Any]) -> str:
        primary = asyncio.create_task(comm.call("Mailer", "/send", mail))
        done, pending = await asyncio.wait({primary}, timeout=0.5)
        if primary in done and primary.exception() is None:
            return "primary"
        spare = asyncio.create_task(comm.call("SpareMailer", "/send", mail))
        pending = {spare, *pending}
        while pending:
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                if task.exception() is None:
                    for other in pending:
                        other.cancel()
                    return "primary" if task is primary else "spare"
        await comm.call("DeadLetters", "/put", {"mail": mail.get("id")})
        return "dead"
