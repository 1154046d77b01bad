from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from typing import Literal, NamedTuple, TypeAlias

try:
    from orjson import dumps
except ImportError:
    from json import dumps

try:
    import geoip
except ImportError:
    geoip = None

try:
    from fast_hash import digest
except ImportError:

    def digest(text: str) -> str:
        return str(hash(text))


class Channel(StrEnum):
    MAIL = "mail"
    SMS = "sms"
    PUSH = "push"


class Status(Enum):
    NEW = auto()
    PAID = auto()
    SENT = auto()


Size: TypeAlias = Literal["small", "large"]


class Target(NamedTuple):
    service: str
    path: str


TARGETS = {
    Channel.MAIL: Target("Mailer", "/mail"),
    Channel.SMS: Target("Texter", "/sms"),
    Channel.PUSH: Target("Pusher", "/push"),
}

STEPS = [("Mailer", "/mail"), ("Texter", "/sms")]


@dataclass
class Card:
    number: str


@dataclass
class Invoice:
    address: str


@dataclass
class Cash:
    pass


Payment: TypeAlias = Card | Invoice | Cash


def payment_of(params) -> Payment:
    kind = params.get("kind")
    if kind == "card":
        return Card(params.get("number", ""))
    if kind == "invoice":
        return Invoice(params.get("address", ""))
    return Cash()


__all__ = ["digest", "dumps", "geoip"]
