"""Ways to notify a user, and the builder of digests."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

from messenger_core import or_default
from mup import Communication


class Notifier(Protocol):
    async def notify(self, comm: Communication, user: str, message: str) -> str: ...


class PushNotifier:
    async def notify(self, comm: Communication, user: str, message: str) -> str:
        sent = await comm.call("Push", "/send", {"user": user, "message": message}, timeout=1.0)
        return "pushed" if sent.get("devices", 1) else "no_device"


class MailNotifier:
    async def notify(self, comm: Communication, user: str, message: str) -> str:
        await comm.call("Mailer", "/send", {"to": user, "template": "mention", "message": message})
        return "mailed"


class DigestNotifier:
    async def notify(self, comm: Communication, user: str, message: str) -> str:
        await comm.call("Outbox", "/append", {"user": user, "message": message})
        return "queued"


class SilentNotifier:
    async def notify(self, comm: Communication, user: str, message: str) -> str:
        return "muted"


NOTIFIERS: dict[str, Notifier] = {
    "push": PushNotifier(),
    "mail": MailNotifier(),
    "digest": DigestNotifier(),
    "none": SilentNotifier(),
}


class DigestBuilder:
    def __init__(self, comm: Communication, user: str) -> None:
        self.comm, self.user = comm, user
        self.sections: dict[str, Any] = {}

    def mentions(self) -> DigestBuilder:
        self.sections["mentions"] = self.comm.call("Outbox", "/pending", {"user": self.user})
        return self

    def threads(self, wanted: bool = True) -> DigestBuilder:
        if wanted:
            self.sections["threads"] = self.comm.call("Counters", "/threads", {"user": self.user})
        return self

    def highlights(self, plan: str) -> DigestBuilder:
        if plan in ("pro", "enterprise"):
            self.sections["highlights"] = self.comm.call("Ranking", "/top", {"user": self.user}, timeout=1.0)
        return self

    async def build(self) -> dict[str, list[Any]]:
        answers = await asyncio.gather(*(or_default(section, {}) for section in self.sections.values()))
        return {name: answer.get("items", []) for name, answer in zip(self.sections, answers, strict=True)}
