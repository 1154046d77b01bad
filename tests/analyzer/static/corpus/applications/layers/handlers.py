"""What happens for commands and notifications: tables of handlers and strategies."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

from mup import Communication

HANDLERS: dict[str, Callable] = {}


def handles(name: str):
    def register(function):
        HANDLERS[name] = function
        return function

    return register


@handles("reserve")
def reserve(comm: Communication, params):
    return comm.call("Warehouse", "/reserve", params).get()


@handles("release")
def release(comm: Communication, params):
    return comm.call("Warehouse", "/release", params).get()


@handles("note")
def note(comm: Communication, params):
    return comm.query("erp", "note", "notes", {"$insert": [dict(params)]}).get()


class Notifier(ABC):
    registry: ClassVar[dict[str, type["Notifier"]]] = {}
    kind: ClassVar[str]

    def __init_subclass__(cls) -> None:
        Notifier.registry[cls.kind] = cls

    @abstractmethod
    def send(self, comm: Communication, text: str) -> None: ...


class MailNotifier(Notifier):
    kind = "mail"

    def send(self, comm, text):
        comm.call("Outbox", "/mail", {"text": text}).get()


class ChatNotifier(Notifier):
    kind = "chat"

    def send(self, comm, text):
        room = comm.query("erp", "room", "rooms", {}).get()
        comm.call("Outbox", "/chat", {"text": text, "rooms": len(room)}).get()


STRATEGIES = {"mail": MailNotifier(), "chat": ChatNotifier()}
