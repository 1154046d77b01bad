"""What the university is made of: enums, value objects, and what roles may do."""

from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Decimal
from enum import Enum, IntEnum


class Role(str, Enum):
    STUDENT = "student"
    TEACHER = "teacher"
    REGISTRAR = "registrar"
    BURSAR = "bursar"
    LIBRARIAN = "librarian"
    ADMIN = "admin"

    @classmethod
    def parse(cls, text):
        try:
            return cls(text)
        except ValueError:
            return cls.STUDENT


PERMISSIONS = {
    Role.STUDENT: {"self.view", "enrolment.self", "exams.self", "fees.pay", "loans.self"},
    Role.TEACHER: {"self.view", "grades.edit", "roster.view", "rooms.book"},
    Role.REGISTRAR: {
        "self.view",
        "admissions.view",
        "admissions.decide",
        "enrolment.manage",
        "roster.view",
        "rooms.book",
        "timetable.publish",
        "grades.view",
        "transcripts.issue",
    },
    Role.BURSAR: {"self.view", "fees.manage", "fees.pay"},
    Role.LIBRARIAN: {"self.view", "loans.manage"},
}


class ApplicationStatus(str, Enum):
    DRAFT = "draft"
    SUBMITTED = "submitted"
    INTERVIEW = "interview"
    OFFERED = "offered"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"

    @property
    def final(self):
        return self in (ApplicationStatus.OFFERED, ApplicationStatus.REJECTED, ApplicationStatus.WITHDRAWN)


class Decision(str, Enum):
    OFFER = "offer"
    REJECT = "reject"
    INTERVIEW = "interview"


class HoldKind(str, Enum):
    FEES = "fees"
    LIBRARY = "library"
    CONDUCT = "conduct"


class ReminderLevel(IntEnum):
    NONE = 0
    FRIENDLY = 1
    FIRM = 2
    FINAL = 3

    @classmethod
    def for_days(cls, days):
        if days <= 0:
            return cls.NONE
        if days <= 7:
            return cls.FRIENDLY
        if days <= 21:
            return cls.FIRM
        return cls.FINAL


@dataclass(frozen=True)
class User:
    id: str
    role: Role = Role.STUDENT
    token: str = ""
    scopes: frozenset = frozenset()

    @property
    def is_staff(self):
        return self.role is not Role.STUDENT

    def has_perm(self, permission):
        if self.role is Role.ADMIN:
            return True
        return permission in self.scopes or permission in PERMISSIONS[self.role]

    def owns(self, student_id):
        return self.id == student_id


@dataclass
class Invoice:
    student: str
    term: str
    lines: list = field(default_factory=list)
    due: date = field(default_factory=lambda: date.today() + timedelta(days=30))

    def add(self, label, amount):
        self.lines.append({"label": label, "amount": str(money(amount))})
        return self

    @property
    def total(self):
        return sum((money(line["amount"]) for line in self.lines), Decimal(0))

    def as_dict(self):
        return {
            "student": self.student,
            "term": self.term,
            "lines": self.lines,
            "total": str(self.total),
            "due": self.due.isoformat(),
        }


@dataclass(frozen=True)
class GradeScheme:
    """Lower bounds of the grades, best first."""

    bounds: tuple = ((90, "A"), (80, "B"), (70, "C"), (60, "D"))

    @classmethod
    def from_answer(cls, answer):
        bounds = answer.get("bounds") if answer else None
        return cls(tuple((bound["from"], bound["grade"]) for bound in bounds)) if bounds else cls()

    def grade(self, points):
        return next((grade for bound, grade in self.bounds if points >= bound), "F")


GRADE_POINTS = {"A": 4, "B": 3, "C": 2, "D": 1, "F": 0}


def money(value):
    return Decimal(str(value)).quantize(Decimal("0.01"), rounding=ROUND_HALF_UP)


def grade_average(results):
    """The average weighted by credits, None without results."""
    credits = sum(result.get("credits", 0) for result in results)
    if not credits:
        return None
    points = sum(GRADE_POINTS.get(result["grade"], 0) * result.get("credits", 0) for result in results)
    return round(points / credits, 2)
