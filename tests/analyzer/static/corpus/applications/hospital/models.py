"""What the clinic knows: patients, slots, appointments, and how they change."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, singledispatch, total_ordering
from typing import Any, NamedTuple, NotRequired, TypedDict


class Urgency(enum.StrEnum):
    ROUTINE = "routine"
    URGENT = "urgent"
    EMERGENCY = "emergency"

    @classmethod
    def _missing_(cls, value: object) -> Urgency | None:
        return cls.ROUTINE if value in (None, "") else None


class State(enum.Enum):
    REQUESTED = "requested"
    BOOKED = "booked"
    ARRIVED = "arrived"
    CANCELLED = "cancelled"
    DONE = "done"


class Right(enum.Flag):
    NONE = 0
    READ = enum.auto()
    WRITE = enum.auto()
    BILL = enum.auto()


ROLES = {"nurse": Right.READ, "doctor": Right.READ | Right.WRITE, "clerk": Right.READ | Right.BILL}


class Transition(NamedTuple):
    target: State
    effects: tuple[str, ...] = ()


TRANSITIONS: dict[tuple[State, str], Transition] = {
    (State.REQUESTED, "book"): Transition(State.BOOKED, ("reserve_room", "notify")),
    (State.REQUESTED, "cancel"): Transition(State.CANCELLED),
    (State.BOOKED, "cancel"): Transition(State.CANCELLED, ("release_room", "notify")),
    (State.BOOKED, "arrive"): Transition(State.ARRIVED, ("page_doctor",)),
    (State.ARRIVED, "finish"): Transition(State.DONE, ("bill", "release_room")),
}


class SlotDoc(TypedDict):
    _id: str
    doctor: str
    start: NotRequired[int]
    free: NotRequired[bool]


@total_ordering
@dataclass(frozen=True)
class Slot:
    id: str
    doctor: str = ""
    start: int = 0
    free: bool = True

    @classmethod
    def from_doc(cls, doc: SlotDoc) -> Slot:
        match doc:
            case {"_id": id_, "doctor": str(doctor), **rest}:
                return cls(id_, doctor, rest.get("start", 0), rest.get("free", True))
            case {"_id": id_}:
                return cls(id_)
            case _:
                raise ValueError(f"no slot: {doc}")

    def __lt__(self, other: Slot) -> bool:
        return self.start < other.start


class Schedule:
    """Slots of one day, in order."""

    def __init__(self, slots: list[Slot] | None = None) -> None:
        self._slots = sorted(slots or [])

    def __add__(self, other: Schedule) -> Schedule:
        return Schedule(self._slots + other._slots)

    def __iter__(self) -> Iterator[Slot]:
        return iter(self._slots)

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, doctor: object) -> bool:
        return any(s.doctor == doctor for s in self._slots)

    def __getitem__(self, doctor: str) -> list[Slot]:
        if found := [s for s in self if s.doctor == doctor]:
            return found
        raise KeyError(doctor)

    @cached_property
    def first_free(self) -> Slot | None:
        return next((s for s in self._slots if s.free), None)


@dataclass
class Patient:
    id: str
    name: str = ""
    insurance: str | None = None
    allergies: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.allergies = set(self.allergies or ())

    @property
    def insured(self) -> bool:
        return bool(self.insurance)

    def merged(self, **changes: Any) -> Patient:
        return replace(self, **{k: v for k, v in changes.items() if v is not None})

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"allergies": sorted(self.allergies)}


# -- messages, as a queue delivers them


@dataclass(frozen=True)
class Admitted:
    patient: str
    ward: str = "general"


@dataclass(frozen=True)
class Discharged:
    patient: str
    bill: bool = True


@dataclass(frozen=True)
class Moved:
    patient: str
    source: str
    target: str


Message = Admitted | Discharged | Moved


def parse_message(raw: dict[str, Any]) -> Message | None:
    match raw:
        case {"type": "admitted", "patient": patient, "ward": ward}:
            return Admitted(patient, ward)
        case {"type": "admitted", "patient": patient}:
            return Admitted(patient)
        case {"type": "discharged", "patient": patient}:
            return Discharged(patient, raw.get("bill", True))
        case {"type": "moved", "patient": patient, "from": source, "to": target} if source != target:
            return Moved(patient, source, target)
        case _:
            return None


@singledispatch
def describe(message: object) -> str:
    return "unknown"


@describe.register
def _(message: Admitted) -> str:
    return f"{message.patient} came to {message.ward}"


@describe.register
def _(message: Discharged) -> str:
    return f"{message.patient} left"
