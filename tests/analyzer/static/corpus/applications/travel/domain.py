"""What a trip consists of."""

import abc
import enum
from dataclasses import dataclass, field, replace
from functools import total_ordering


class Perk(enum.Flag):
    NONE = 0
    LOUNGE = enum.auto()
    BAG = enum.auto()
    CAR = enum.auto()
    ALL = LOUNGE | BAG | CAR

    @classmethod
    def parse(cls, text: str) -> "Perk":
        found = cls.NONE
        for word in text.split("+"):
            found |= cls.__members__.get(word.upper(), cls.NONE)
        return found


class Status(enum.Enum):
    DRAFT = enum.auto()
    HELD = enum.auto()
    PAID = enum.auto()

    def next(self) -> "Status":
        members = list(type(self))
        index = members.index(self) + 1
        return members[index] if index < len(members) else self

    @property
    def final(self) -> bool:
        return self is Status.PAID


@dataclass
class Basket:
    owner: str = ""
    items: list = field(default_factory=list)
    vetoes: list = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.items)

    def add(self, item: dict) -> "Basket":
        (self.vetoes if item.get("banned") else self.items).append(item)
        return self


class Credit:
    def __init__(self, amount: int) -> None:
        self.amount = amount

    def __bool__(self) -> bool:
        return self.amount > 0


@total_ordering
class Airport:
    def __init__(self, code: str, rank: int = 0) -> None:
        self.code = code
        self.rank = rank

    @classmethod
    def parse(cls, text: str) -> "Airport":
        code, _, rank = text.partition(":")
        return cls(code.upper(), int(rank or 0))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Airport) and self.code == other.code

    def __hash__(self) -> int:
        return hash(self.code)

    def __lt__(self, other: "Airport") -> bool:
        return self.rank < other.rank


SCHENGEN = frozenset({Airport("VIE"), Airport("MUC"), Airport("CDG")})


class Traveller:
    verified = False
    tier = "basic"

    def __init__(self, name: str) -> None:
        self.name = name
        self._points = 0

    @property
    def points(self) -> int:
        return self._points

    @points.setter
    def points(self, value: int) -> None:
        self._points = max(0, value)
        if self._points >= 100:
            self.tier = "gold"


@dataclass(frozen=True)
class Fare:
    cabin: str = "economy"
    flexible: bool = False

    def upgraded(self) -> "Fare":
        return replace(self, cabin="business") if self.flexible else self


@dataclass
class Flight:
    number: str
    stops: int = 0


@dataclass
class Train:
    number: str


class Policy(abc.ABC):
    fee = 0

    @abc.abstractmethod
    def penalty(self, days: int) -> int: ...

    def refundable(self, days: int) -> bool:
        return self.penalty(days) < 100


class Strict(Policy):
    def penalty(self, days: int) -> int:
        return 100 if days < 7 else 50


class WeekendMixin:
    def penalty(self, days: int) -> int:
        return super().penalty(days) - 10


class FreeMixin:
    def penalty(self, days: int) -> int:
        base = super().penalty(days)
        return 0 if 3 <= days < 14 else base


class Weekend(WeekendMixin, FreeMixin, Strict):
    pass


class Vip(FreeMixin, WeekendMixin, Strict):
    def refundable(self, days: int) -> bool:
        return days > 30 or super().refundable(days)


POLICIES = {"strict": Strict, "weekend": Weekend, "vip": Vip}
