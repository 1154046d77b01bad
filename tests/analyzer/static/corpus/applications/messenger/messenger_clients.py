"""Typed clients of the services behind the messenger."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

from messenger_core import Context, not_found, retrying
from mup import Communication


class ChannelState(StrEnum):
    ACTIVE = "active"
    READ_ONLY = "read_only"
    ARCHIVED = "archived"


@dataclass(slots=True)
class Channel:
    id: str
    name: str
    state: ChannelState = ChannelState.ACTIVE
    private: bool = False
    owner: str = ""
    members: int = 0
    capacity: int = 100

    @classmethod
    def from_json(cls, row: dict[str, Any]) -> Channel:
        return cls(
            id=row["id"],
            name=row.get("name", row["id"]),
            state=ChannelState(row.get("state", "active")),
            private=row.get("private", False),
            owner=row.get("owner", ""),
            members=row.get("members", 0),
            capacity=row.get("capacity", 100),
        )

    @property
    def full(self) -> bool:
        return self.members >= self.capacity


@dataclass(slots=True)
class Message:
    id: str
    channel: str
    author: str
    text: str = ""
    version: int = 1
    thread: str | None = None
    attachments: list[str] = field(default_factory=list)

    @classmethod
    def from_json(cls, row: dict[str, Any]) -> Message:
        known = {name: row[name] for name in cls.__slots__ if name in row}
        return cls(**known)


class Upstream:
    service: ClassVar[str]
    timeout: ClassVar[float | None] = None

    def __init__(self, comm: Communication) -> None:
        self.comm = comm

    def send(self, path: str, **params: Any):
        return self.comm.call(self.service, path, params, timeout=self.timeout)


class AccountsClient(Upstream):
    service = "Accounts"
    timeout = 2.0

    async def user(self, user_id: str) -> dict[str, Any]:
        with not_found("user"):
            return await self.send("/user", id=user_id)

    async def users(self, ids: Iterable[str]) -> dict[str, dict[str, Any]]:
        wanted = sorted(set(ids))
        if not wanted:
            return {}
        answer = await self.send("/users", ids=wanted)
        return {user["id"]: user for user in answer.get("users", [])}

    async def preferences(self, user_id: str) -> dict[str, Any]:
        return await self.send("/preferences", id=user_id)


class ChannelStoreClient(Upstream):
    service = "ChannelStore"

    async def get(self, channel_id: str) -> Channel:
        with not_found("channel"):
            return Channel.from_json(await self.send("/get", id=channel_id))

    async def create(self, name: str, owner: str, *, private: bool) -> Channel:
        return Channel.from_json(await self.send("/create", name=name, owner=owner, private=private))

    async def add_member(self, channel_id: str, user_id: str) -> None:
        await self.send("/add-member", channel=channel_id, user=user_id)

    async def update(self, channel_id: str, **changes: Any) -> None:
        await self.send("/update", id=channel_id, **changes)

    async def delete(self, channel_id: str) -> None:
        await self.send("/delete", id=channel_id)

    async def members(self, channel_id: str, limit: int) -> AsyncIterator[dict[str, Any]]:
        cursor, seen = None, 0
        while True:
            page = await self.send("/members", channel=channel_id, cursor=cursor)
            for member in page.get("items", []):
                yield member
                seen += 1
                if seen >= limit:
                    return
            cursor = page.get("next")
            if not cursor:
                return


class MessageStoreClient(Upstream):
    service = "MessageStore"
    timeout = 3.0

    async def get(self, message_id: str) -> Message:
        with not_found("message"):
            return Message.from_json(await self.send("/get", id=message_id))

    @retrying(attempts=2)
    async def insert(self, **fields: Any) -> Message:
        return Message.from_json(await self.send("/insert", **fields))

    async def page(self, channel_id: str, **options: Any) -> dict[str, Any]:
        return await self.send("/page", channel=channel_id, **options)


class RealtimeClient(Upstream):
    service = "Realtime"
    timeout = 0.5

    def publish(self, topic: str, event: str, **payload: Any):
        return self.send("/publish", topic=topic, event=event, payload=payload)


class Saga:
    """Steps with compensations, undone in reverse when the block fails."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], Coroutine[Any, Any, Any]]] = []

    def compensate(self, action: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        self._undo.append(action)

    async def __aenter__(self) -> Saga:
        return self

    async def __aexit__(self, kind, error, traceback) -> None:
        if error is not None:
            while self._undo:
                await self._undo.pop()()


class UnitOfWork:
    """Collects changes and events of a channel, and writes both when the block ends well."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self.changes: dict[str, dict[str, Any]] = {}
        self.events: list[dict[str, Any]] = []

    def update(self, channel: Channel, **changes: Any) -> None:
        self.changes.setdefault(channel.id, {}).update(changes)

    def record(self, kind: str, **data: Any) -> None:
        self.events.append({"kind": kind, "by": self.ctx.principal.user_id, **data})

    async def __aenter__(self) -> UnitOfWork:
        return self

    async def __aexit__(self, kind, error, traceback) -> None:
        if error is None:
            await self.commit()

    async def commit(self) -> None:
        store = ChannelStoreClient(self.ctx.comm)
        for channel_id, changes in self.changes.items():
            await store.update(channel_id, **changes)
        if self.events:
            await self.ctx.comm.call("Events", "/append", {"events": self.events})


async def load_channel(ctx: Context) -> Channel:
    return await ChannelStoreClient(ctx.comm).get(ctx.require("channel_id"))


async def load_message(ctx: Context) -> Message:
    return await MessageStoreClient(ctx.comm).get(ctx.require("message_id"))
