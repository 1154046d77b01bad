from dataclasses import dataclass


@dataclass
class Event:
    office: str


@dataclass
class Hired(Event):
    person: str


@dataclass
class Promoted(Hired):
    grade: int


@dataclass
class Left(Event):
    person: str
    reason: str


@dataclass
class Moved(Event):
    to: str


def event_of(data: dict) -> Event:
    """Make an event of a message."""
    match data.get("kind"):
        case "hired":
            return Hired(data["office"], data["person"])
        case "promoted":
            return Promoted(data["office"], data["person"], int(data["grade"]))
        case "left":
            return Left(data["office"], data["person"], data.get("reason", ""))
        case "moved":
            return Moved(data["office"], data["to"])
        case _:
            return Event(data.get("office", ""))
