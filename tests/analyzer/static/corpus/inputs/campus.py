"""What is sent to campus, and what the services it calls may answer."""

import hashlib
import hmac
from datetime import UTC, datetime, timedelta
from typing import Any

from corpus.execution import Case, Inputs

IDIOM = "everyday code, campus"


def as_(who: Any) -> Any:
    return {"authorization": f"Bearer {who}"}


SESSIONS = {
    "student": {"user": "s1", "role": "student"},
    "student2": {"user": "s2", "role": "student"},
    "teacher": {"user": "t1", "role": "teacher"},
    "registrar": {"user": "r1", "role": "registrar"},
    "bursar": {"user": "b1", "role": "bursar"},
    "librarian": {"user": "l1", "role": "librarian", "scopes": ["reports"]},
    "admin": {"user": "a1", "role": "admin"},
}


def session(params: Any) -> Any:
    return SESSIONS.get(params.get("token"), {})


def flag(params: Any) -> Any:
    return {"on": params.get("flag") != "late-drop"}


def days_ago(days: Any) -> Any:
    return (datetime.now(tz=UTC).date() - timedelta(days=days)).isoformat()


def paged(*pages: Any) -> Any:
    """An answer of a store: page by page."""

    def answer(params: Any) -> Any:
        number = int(params.get("page", 1))
        items = pages[number - 1] if number <= len(pages) else []
        return {"items": items, "next": number < len(pages), "total": sum(map(len, pages))}

    return answer


def entries(params: Any) -> Any:
    if params.get("cursor"):
        return {"entries": [{"date": "2024-03-01", "kind": "payment", "amount": "-200.00"}]}
    return {"entries": [{"date": "2024-02-01", "kind": "invoice", "amount": "700.00"}], "cursor": "c2"}


def signed(event: Any, charge: Any) -> Any:
    return hmac.new(b"development", f"{event}|{charge}".encode(), hashlib.sha256).hexdigest()


def course(params: Any) -> Any:
    return {
        "code": params.get("code"),
        "title": f"Course {params.get('code')}",
        "credits": 6,
        "fee": 40 if params.get("code") == "CHEM1" else 0,
        "requires": ["MATH1"] if params.get("code") == "MATH2" else [],
    }


def section(params: Any) -> Any:
    return {
        "sections": [
            {
                "day": "mon",
                "start": "09:00",
                "end": "10:30",
                "teacher": f"t-{params.get('code')}",
                "room": "A1",
            }
        ]
    }


APPLICATION = {
    "name": "Ada Noether",
    "email": "Ada@mail.example",
    "born": "2001-04-05",
    "programme": "PHYS",
    "year": 2024,
}

INPUTS = Inputs(
    {
        "Identity/session": Case("stub"),
        "Identity/credentials": Case("stub"),
        "Identity/second-factor": Case("stub"),
        "Identity/tokens": Case("stub"),
        "Identity/users/{user_id}/roles": Case("stub"),
        "Identity/users/{user_id}/roles/set": Case("stub"),
        "Audit/record": Case("stub"),
        "Audit/history": Case("stub"),
        "Flags/evaluate": Case("stub"),
        "Mailer/send": Case("stub"),
        "Mailer/batch": Case("stub"),
        "Queue/publish": Case("stub"),
        "Students/get": Case("stub"),
        "Students/find": Case("stub"),
        "Students/holds": Case("stub"),
        "Students/holds/add": Case("stub"),
        "Students/holds/remove": Case("stub"),
        "Catalogue/courses/{code}": Case("stub"),
        "Catalogue/sections": Case("stub"),
        "Catalogue/taught": Case("stub"),
        "Admission/rules": Case("stub"),
        "Admission/scores": Case("stub"),
        "Admission/places/take": Case("stub"),
        "Admission/places/return": Case("stub"),
        "ApplicationStore/find": Case("stub"),
        "ApplicationStore/get": Case("stub"),
        "ApplicationStore/save": Case("stub"),
        "Documents/scan": Case("stub"),
        "Documents/upload": Case("stub"),
        "Documents/remove": Case("stub"),
        "Documents/list": Case("stub"),
        "Documents/photos": Case("stub"),
        "EnrolmentStore/find": Case("stub"),
        "EnrolmentStore/get": Case("stub"),
        "EnrolmentStore/save": Case("stub"),
        "EnrolmentStore/delete": Case("stub"),
        "Seats/reserve": Case("stub"),
        "Seats/release": Case("stub"),
        "Seats/waitlist": Case("stub"),
        "Seats/waitlist/join": Case("stub"),
        "Rooms/availability": Case("stub"),
        "Rooms/book": Case("stub"),
        "Rooms/cancel": Case("stub"),
        "Calendar/terms": Case("stub"),
        "Calendar/events": Case("stub"),
        "Calendar/publish": Case("stub"),
        "GradeBook/find": Case("stub"),
        "GradeBook/get": Case("stub"),
        "GradeBook/save": Case("stub"),
        "GradeBook/scheme": Case("stub"),
        "GradeBook/passed": Case("stub"),
        "GradeBook/attempts": Case("stub"),
        "ExamBoard/sittings": Case("stub"),
        "ExamBoard/register": Case("stub"),
        "ExamBoard/cases/open": Case("stub"),
        "Ledger/balance": Case("stub"),
        "Ledger/entries": Case("stub"),
        "Ledger/post": Case("stub"),
        "Ledger/tariff": Case("stub"),
        "Invoices/find": Case("stub"),
        "Invoices/save": Case("stub"),
        "Invoices/events/seen": Case("stub"),
        "Invoices/events/done": Case("stub"),
        "Payments/charge": Case("stub"),
        "Payments/status": Case("stub"),
        "Payments/refund": Case("stub"),
        "Payments/charges/{charge_id}": Case("stub"),
        "LoanStore/find": Case("stub"),
        "LoanStore/get": Case("stub"),
        "LoanStore/save": Case("stub"),
        "LibraryCatalogue/title": Case("stub"),
        "LibraryCatalogue/requests": Case("stub"),
        "LibraryCatalogue/requests/add": Case("stub"),
        "LibraryCatalogue/branches": Case("stub"),
        "LibraryCatalogue/keep": Case("stub"),
        "Archive/put": Case("stub"),
        "Archive/get": Case("stub"),
        "Signing/sign": Case("stub"),
        "Signing/check": Case("stub"),
        "SigningBackup/sign": Case("stub"),
        "Accounts/login": Case(
            IDIOM,
            [
                {"json": {"email": "ada@campus.example", "password": "secret", "remember": "on"}},
                {"form": {"email": "ada@campus.example", "password": "secret", "code": "123456"}},
                {"json": {"email": "ada", "password": ""}},
            ],
        ),
        "Accounts/me": Case(
            IDIOM,
            [
                {"headers": as_("student")},
                {"headers": as_("teacher")},
                {"cookies": {"session": "bursar"}},
                {"headers": as_("nobody")},
                {},
            ],
        ),
        "Accounts/roles/grant": Case(
            IDIOM,
            [
                {"json": {"user": "t1", "role": "registrar"}, "headers": as_("admin")},
                {"json": {"user": "a1", "role": "king"}, "headers": as_("admin")},
                {"json": {"user": "t1", "role": "admin"}, "headers": as_("teacher")},
            ],
        ),
        "Admissions/applications/submit": Case(
            IDIOM,
            [
                {"json": APPLICATION},
                {"json": {**APPLICATION, "choices": ["MATH", "CHEM"]}},
                {"json": {**APPLICATION, "choices": ["PHYS"]}},
                {"json": {**APPLICATION, "born": "2020-01-01"}},
                {"json": {**APPLICATION, "email": "ada", "born": "yesterday", "year": "x"}},
            ],
        ),
        "Admissions/applications/list": Case(
            IDIOM,
            [
                {"query": {"status": "submitted", "page": "1", "size": "5"}, "headers": as_("registrar")},
                {"query": {"format": "csv", "programme": "PHYS"}, "headers": as_("registrar")},
                {"query": {"page": "two"}, "headers": as_("registrar")},
                {"query": {}, "headers": as_("student")},
            ],
        ),
        "Admissions/applications/{application_id}": Case(
            IDIOM,
            [
                {"path": {"application_id": "p1"}, "headers": as_("registrar")},
                {"path": {"application_id": "p1"}, "headers": as_("student")},
                {"path": {"application_id": "p1"}, "headers": as_("student2")},
            ],
        ),
        "Admissions/applications/documents": Case(
            IDIOM,
            [
                {
                    "json": {
                        "application": "p1",
                        "files": [{"name": "cv.pdf", "content": "cv"}, {"name": "school.pdf"}],
                    },
                    "headers": as_("student"),
                },
                {
                    "json": {"application": "p1", "files": [{"name": "photo.png", "content": "png"}]},
                    "headers": as_("student"),
                },
                {"json": {"application": "p1", "files": ["cv"]}, "headers": as_("student")},
            ],
        ),
        "Admissions/applications/decide": Case(
            IDIOM,
            [
                {"json": {"application": "p1", "decision": "offer"}, "headers": as_("registrar")},
                {
                    "json": {"application": "p1", "decision": "reject", "note": "no physics"},
                    "headers": as_("registrar"),
                },
                {"json": {"application": "p1", "decision": "interview"}, "headers": as_("registrar")},
                {"json": {"application": "p1", "decision": "reject"}, "headers": as_("registrar")},
            ],
        ),
        "Admissions/applications/batch/reject": Case(
            IDIOM,
            [{"json": {"year": 2024}, "headers": as_("registrar")}, {"json": {}, "headers": as_("teacher")}],
        ),
        "Enrolment/enrol": Case(
            IDIOM,
            [
                {"json": {"course": "CHEM1"}, "headers": as_("student")},
                {"json": {"course": "MATH2", "waitlist": True}, "headers": as_("student")},
                {"json": {"course": "MATH1", "student": "s1"}, "headers": as_("registrar")},
                {"json": {"course": "MATH1", "student": "s1"}, "headers": as_("student2")},
                {"json": {"course": "CHEM1"}, "headers": as_("registrar")},
            ],
        ),
        "Enrolment/enrol/basket": Case(
            IDIOM,
            [
                {"json": {"student": "s1", "courses": ["CHEM1", "MATH1"]}, "headers": as_("registrar")},
                {
                    "json": {"student": "s1", "courses": ["A", "B", "C", "D", "E", "F"]},
                    "headers": as_("registrar"),
                },
                {"json": {"student": "s1", "courses": ["A", "A"]}, "headers": as_("registrar")},
            ],
        ),
        "Enrolment/drop": Case(
            IDIOM,
            [
                {"json": {"course": "CHEM1"}, "headers": as_("student")},
                {"json": {"course": "CHEM1", "student": "s1"}, "headers": as_("registrar")},
                {"json": {"course": "CHEM1", "student": "s1"}, "headers": as_("teacher")},
            ],
        ),
        "Enrolment/roster/{course_code}": Case(
            IDIOM,
            [
                {"path": {"course_code": "CHEM1"}, "headers": as_("teacher")},
                {
                    "path": {"course_code": "CHEM1"},
                    "query": {"photos": "1", "page": "2"},
                    "headers": as_("registrar"),
                },
            ],
        ),
        "Enrolment/batch/promote": Case(
            IDIOM,
            [
                {"json": {"courses": ["CHEM1", "MATH1"]}, "headers": as_("registrar")},
                {"json": {"courses": "CHEM1"}, "headers": as_("registrar")},
                {"json": {}, "headers": as_("registrar")},
            ],
        ),
        "Timetable/week/{student_id}": Case(
            IDIOM,
            [
                {"path": {"student_id": "s1"}, "headers": as_("student")},
                {"path": {"student_id": "s1"}, "headers": as_("registrar")},
                {"path": {"student_id": "s1"}, "headers": as_("student2")},
            ],
        ),
        "Timetable/rooms/book": Case(
            IDIOM,
            [
                {
                    "json": {"building": "A", "start": "09:00", "end": "10:00", "seats": 20},
                    "headers": as_("teacher"),
                },
                {
                    "json": {"building": "A", "start": "09:00", "end": "10:00", "seats": 500},
                    "headers": as_("teacher"),
                },
                {
                    "json": {"building": "A", "start": "11:00", "end": "10:00", "seats": "5"},
                    "headers": as_("teacher"),
                },
            ],
        ),
        "Timetable/publish": Case(
            IDIOM,
            [
                {"json": {"courses": ["CHEM1", "MATH1"], "term": "2024-1"}, "headers": as_("registrar")},
                {"json": {"courses": ["CHEM1", "CHEM1"], "force": True}, "headers": as_("registrar")},
                {"json": {"courses": ["CHEM1", "CHEM1"]}, "headers": as_("registrar")},
                {"json": {}, "headers": as_("registrar")},
            ],
        ),
        "Exams/register": Case(
            IDIOM,
            [
                {"json": {"course": "CHEM1", "sitting": "e1"}, "headers": as_("student")},
                {"json": {"course": "CHEM1", "sitting": "e2"}, "headers": as_("student")},
                {"json": {"course": "CHEM1", "sitting": "e9"}, "headers": as_("student")},
            ],
        ),
        "Exams/grades/enter": Case(
            IDIOM,
            [
                {"json": {"student": "s1", "course": "CHEM1", "points": 91}, "headers": as_("teacher")},
                {
                    "json": {"student": "s1", "course": "MATH1", "points": "40", "comment": "late"},
                    "headers": as_("teacher"),
                },
                {"json": {"student": "s1", "course": "MATH1", "points": 400}, "headers": as_("teacher")},
            ],
        ),
        "Exams/grades/import": Case(
            IDIOM,
            [
                {
                    "json": {
                        "course": "CHEM1",
                        "rows": [{"student": f"s{number}", "points": 40 + number} for number in range(12)],
                    },
                    "headers": as_("teacher"),
                },
                {
                    "json": {"course": "MATH1", "rows": [{"student": "s1", "points": 70}, {"points": "x"}]},
                    "headers": as_("teacher"),
                },
                {"json": {"course": "MATH1"}, "headers": as_("teacher")},
            ],
        ),
        "Exams/results/{student_id}": Case(
            IDIOM,
            [
                {"path": {"student_id": "s1"}, "headers": as_("student")},
                {"path": {"student_id": "s1"}, "query": {"term": "2024-1"}, "headers": as_("registrar")},
                {"path": {"student_id": "s1"}, "headers": as_("student2")},
            ],
        ),
        "Exams/appeals": Case(
            IDIOM,
            [
                {
                    "json": {"course": "CHEM1", "reason": "question four is ambiguous"},
                    "headers": as_("student"),
                },
                {"json": {"course": "CHEM1", "reason": "no"}, "headers": as_("student")},
            ],
        ),
        "Fees/invoices/create": Case(
            IDIOM,
            [
                {
                    "json": {"student": "s1", "term": "2024-1", "courses": ["CHEM1", "MATH1"]},
                    "headers": as_("bursar"),
                },
                {"json": {"student": "s1", "term": "2024-1"}, "headers": as_("bursar")},
                {"json": {"student": "s1", "term": "spring"}, "headers": as_("bursar")},
            ],
        ),
        "Fees/pay": Case(
            IDIOM,
            [
                {"json": {"amount": "50.00"}, "headers": as_("student")},
                {"json": {"amount": "900", "student": "s1", "method": "transfer"}, "headers": as_("bursar")},
                {"json": {"amount": "-3"}, "headers": as_("student")},
            ],
        ),
        "Fees/webhooks/payments": Case(
            IDIOM,
            [
                {
                    "json": {
                        "event": "charge.captured",
                        "data": {"charge": "c1", "student": "s1", "amount": "50"},
                    },
                    "headers": {"x-signature": signed("charge.captured", "c1")},
                },
                {
                    "json": {
                        "event": "charge.failed",
                        "data": {"charge": "c2", "student": "s1", "amount": "50"},
                    },
                    "headers": {"x-signature": signed("charge.failed", "c2")},
                },
                {
                    "json": {
                        "event": "charge.disputed",
                        "data": {"charge": "c3", "student": "s1", "amount": "50"},
                    },
                    "headers": {"x-signature": signed("charge.disputed", "c3")},
                },
                {
                    "json": {"event": "payout.created", "data": {"charge": "c4"}},
                    "headers": {"x-signature": signed("payout.created", "c4")},
                },
                {
                    "json": {"event": "charge.captured", "data": {"charge": "c1"}},
                    "headers": {"x-signature": "00"},
                },
                {"json": {"event": "charge.captured"}},
            ],
        ),
        "Fees/statement/{student_id}": Case(
            IDIOM,
            [
                {"path": {"student_id": "s1"}, "headers": as_("student")},
                {"path": {"student_id": "s1"}, "query": {"entries": "1"}, "headers": as_("student")},
                {"path": {"student_id": "s1"}, "query": {"format": "csv"}, "headers": as_("bursar")},
                {"path": {"student_id": "s1"}, "headers": as_("teacher")},
            ],
        ),
        "Fees/refund": Case(
            IDIOM,
            [
                {"json": {"charge": "c1", "student": "s1", "amount": "20"}, "headers": as_("bursar")},
                {"json": {"charge": "c1", "student": "s1", "amount": "2000"}, "headers": as_("bursar")},
            ],
        ),
        "Fees/batch/overdue": Case(
            IDIOM,
            [
                {"json": {"today": "2024-05-01"}, "headers": as_("bursar")},
                {"json": {"today": "2024-04-01"}, "headers": as_("bursar")},
            ],
        ),
        "Library/loans/{student_id}": Case(
            IDIOM,
            [
                {"path": {"student_id": "s1"}, "headers": as_("student")},
                {"path": {"student_id": "s1"}, "headers": as_("librarian")},
                {"path": {"student_id": "s1"}, "headers": as_("teacher")},
            ],
        ),
        "Library/renew": Case(
            IDIOM,
            [
                {"json": {"loans": ["l1", "l2"]}, "headers": as_("student")},
                {"json": {"loans": ["l1"]}, "headers": as_("librarian")},
                {"json": {"loans": []}, "headers": as_("student")},
            ],
        ),
        "Library/reserve": Case(
            IDIOM,
            [
                {"json": {"item": "i1", "branch": "law"}, "headers": as_("student")},
                {"json": {"item": "i1"}, "headers": as_("teacher")},
                {"json": {}, "headers": as_("student")},
            ],
        ),
        "Library/batch/reminders": Case(
            IDIOM,
            [{"json": {}, "headers": as_("librarian")}, {"json": {}, "headers": as_("student")}],
        ),
        "Transcripts/issue": Case(
            IDIOM,
            [
                {"json": {}, "headers": as_("student")},
                {"json": {"student": "s1", "language": "de", "express": True}, "headers": as_("registrar")},
                {"json": {"language": "la"}, "headers": as_("student")},
            ],
        ),
        "Transcripts/verify/{reference}": Case(
            IDIOM,
            [
                {"path": {"reference": "abc"}},
                {"path": {"reference": "abc"}, "query": {"name": "Ada Noether"}},
            ],
        ),
        "Transcripts/batch/graduation": Case(
            IDIOM,
            [
                {"json": {"students": ["s1", "s2"]}, "headers": as_("registrar")},
                {"json": {"cohort": 2024}, "headers": as_("registrar")},
            ],
        ),
        "Transcripts/export": Case(
            IDIOM,
            [
                {"query": {"cohort": "2024"}, "headers": as_("registrar")},
                {"query": {}, "headers": as_("registrar")},
            ],
        ),
    },
    {
        "Identity/session": [session],
        "Identity/credentials": [{"user": "s1"}, {"user": "s1"}, {"user": "t1", "second_factor": True}],
        "Identity/second-factor": [{"ok": True}, {"ok": True}, {"ok": False}],
        "Identity/tokens": [{"token": "student"}],
        "Identity/users/{user_id}/roles": [{"roles": ["teacher"]}, {"roles": ["registrar", "teacher"]}, {}],
        "Identity/users/{user_id}/roles/set": [{"ok": True}],
        "Audit/record": [{}],
        "Audit/history": [{"records": [{"event": "application.submitted"}]}],
        "Flags/evaluate": [flag],
        "Mailer/send": [{"queued": True}],
        "Mailer/batch": [lambda params: {"accepted": len(params["messages"])}, {"accepted": 1}],
        "Queue/publish": [{"offset": 7}],
        "Students/get": [
            {"id": "s1", "name": "Ada Noether"},
            {"name": "Emmy", "scholarship": "half"},
            {"name": "Jo", "scholarship": "full"},
        ],
        "Students/find": [
            paged([{"id": "s1", "name": "Ada"}, {"id": "s2", "name": "Emmy"}], [{"id": "s3"}]),
            paged([]),
        ],
        "Students/holds": [
            {"holds": []},
            {"holds": []},
            {},
            {"holds": [{"kind": "fees"}]},
            {"holds": [{"kind": "library"}]},
        ],
        "Students/holds/add": [{"ok": True}],
        "Students/holds/remove": [{"ok": True}],
        "Catalogue/courses/{code}": [course, course, course, course, {}],
        "Catalogue/sections": [section, section, {"sections": []}],
        "Catalogue/taught": [{"courses": ["CHEM1"]}],
        "Admission/rules": [{"closed": False}, {}, {"closed": True}],
        "Admission/scores": [{"scores": {"p1": 88}}],
        "Admission/places/take": [{"taken": True}, {"taken": True}, {"taken": False}],
        "Admission/places/return": [{}],
        "ApplicationStore/find": [
            paged([]),
            paged([{"id": "p1", "name": "Ada", "status": "submitted", "email": "ada@mail.example"}]),
            paged(
                [
                    {"id": "p1", "status": "submitted", "email": "a@mail.example"},
                    {"id": "p2", "status": "offered", "pinned": True},
                ],
                [{"id": "p3", "status": "submitted"}],
            ),
        ],
        "ApplicationStore/get": [
            {
                "id": "p1",
                "applicant": "s1",
                "status": "submitted",
                "programme": "PHYS",
                "email": "ada@mail.example",
            },
            {"id": "p1", "applicant": "s1", "status": "interview", "programme": "PHYS"},
            {"id": "p1", "applicant": "s1", "status": "offered"},
            {},
        ],
        "ApplicationStore/save": [{"ok": True}],
        "Documents/scan": [{"clean": True}, {"clean": True}, {"clean": True}, {"clean": False}],
        "Documents/upload": [{"id": "d1"}],
        "Documents/list": [{"documents": ["d1"]}],
        "Documents/photos": [{"photos": {"s1": "/p/s1.png"}}],
        "EnrolmentStore/find": [
            paged([{"student": "s1", "course": "CHEM1"}, {"student": "s2", "course": "MATH1"}]),
            paged([{"student": "s1", "course": "CHEM1"}], [{"student": "s3", "course": "MATH2"}]),
            paged([]),
        ],
        "EnrolmentStore/get": [
            {"student": "s1", "course": "CHEM1"},
            {"student": "s1", "course": "CHEM1"},
            {"graded": True},
            {},
        ],
        "EnrolmentStore/save": [{"ok": True}],
        "EnrolmentStore/delete": [{"ok": True}],
        "Seats/reserve": [{"seat": 12}, {"seat": 13}, {"seat": 14}, {}],
        "Seats/waitlist": [{"students": ["s1", "s2"]}, {"students": []}],
        "Seats/waitlist/join": [{"position": 4}],
        "Rooms/availability": [
            {"rooms": [{"room": "A2", "seats": 90}, {"room": "A1", "seats": 30}]},
            {"rooms": []},
        ],
        "Rooms/book": [{"booking": "b1"}],
        "Calendar/terms": [{"term": "2024-1"}, {"term": "2024-1", "drop_over": True}],
        "Calendar/events": [{"events": [{"title": "open day"}]}],
        "Calendar/publish": [{"ok": True}],
        "GradeBook/find": [
            paged(
                [{"course": "CHEM1", "grade": "A", "credits": 6, "term": "2024-1"}],
                [{"course": "MATH1", "grade": "C", "credits": 9}],
            ),
            paged([]),
        ],
        "GradeBook/get": [
            {"grade": "B"},
            {"grade": "A", "locked": True},
            {"grade": "D", "appealed": True},
            {},
        ],
        "GradeBook/save": [{"ok": True}],
        "GradeBook/scheme": [{"bounds": [{"from": 85, "grade": "A"}, {"from": 50, "grade": "C"}]}, {}],
        "GradeBook/passed": [{"courses": ["MATH1"]}, {"courses": []}],
        "GradeBook/attempts": [{"count": 0}, {"count": 1}, {"count": 3}],
        "ExamBoard/sittings": [{"sittings": [{"id": "e1"}, {"id": "e2", "closed": True}]}],
        "ExamBoard/register": [{"seat": 3}],
        "ExamBoard/cases/open": [{"case": "k1", "board": ["t1", "t2"]}, {"case": "k2"}],
        "Ledger/balance": [{"balance": 700}, {"balance": "50.00"}, {"balance": 0}],
        "Ledger/entries": [entries],
        "Ledger/post": [{"entry": 1}],
        "Ledger/tariff": [{"tuition": 700}, {"tuition": 0}],
        "Invoices/find": [
            paged(
                [
                    {"number": "n1", "student": "s1", "due": "2024-03-01"},
                    {"number": "n2", "student": "s2", "due": "2024-03-28"},
                    {"number": "n3", "student": "s3", "due": "2024-04-20"},
                ],
                [{"number": "n4", "student": "s4", "due": "2024-06-01"}],
            ),
            paged([]),
        ],
        "Invoices/save": [{"number": "n5"}],
        "Invoices/events/seen": [{"seen": False}, {}, {"seen": True}],
        "Payments/charge": [
            {"charge": "c1", "state": "captured"},
            {"charge": "c1", "state": "captured"},
            {"charge": "c1", "state": "pending"},
            {"state": "declined", "reason": "card"},
        ],
        "Payments/status": [{"charge": "c1", "state": "captured"}, {"state": "unknown"}],
        "Payments/refund": [{"refund": "f1"}],
        "Payments/charges/{charge_id}": [
            {"amount": "100", "refunded": "0"},
            {"amount": "100", "refunded": "90"},
        ],
        "LoanStore/find": [
            paged(
                [
                    {"id": "l1", "item": "i1", "student": "s1", "due": days_ago(3)},
                    {"id": "l2", "item": "i2", "student": "s1", "due": days_ago(40)},
                ],
                [{"id": "l3", "item": "i3", "student": "s2", "due": days_ago(10)}],
            ),
            paged([]),
        ],
        "LoanStore/get": [
            {"id": "l1", "item": "i1", "student": "s1", "renewals": 0},
            {"id": "l1", "item": "i1", "student": "s1"},
            {"id": "l1", "item": "i1", "student": "s1", "renewals": 3},
        ],
        "LoanStore/save": [{"ok": True}],
        "LibraryCatalogue/title": [lambda params: {"title": f"Book {params['item']}"}],
        "LibraryCatalogue/requests": [{"waiting": 0}, {}, {"waiting": 2}],
        "LibraryCatalogue/requests/add": [{"place": 2}],
        "LibraryCatalogue/branches": [{"branches": ["main", "law"]}, {"branches": []}],
        "LibraryCatalogue/keep": [{"kept": True}, {"kept": False}],
        "Archive/put": [{"ok": True}],
        "Archive/get": [
            {"document": {"name": "Ada Noether", "issued": "2024-05-01"}, "signature": "x"},
            {"document": {"name": "Ada Noether"}, "revoked": "2024-06-01"},
            {},
        ],
        "Signing/sign": [{"signature": "x"}],
        "SigningBackup/sign": [{"signature": "y"}],
        "Signing/check": [{"valid": True}, {"valid": False}],
        "Exams/results/{student_id}": [
            {
                "results": [
                    {"course": "CHEM1", "grade": "A", "credits": 6},
                    {"course": "MATH1", "grade": "C", "credits": 9},
                ]
            },
            {"results": []},
        ],
        "Fees/statement/{student_id}": [{"balance": 50}],
        "Library/loans/{student_id}": [{"loans": []}],
        "Timetable/week/{student_id}": [{"week": {}}],
    },
)
