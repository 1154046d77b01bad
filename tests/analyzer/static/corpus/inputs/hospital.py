"""Requests to a hospital: clients, units of work, tables, registries, events, middleware, tasks."""

from typing import Any

from corpus.execution import Case, Inputs

STUBS = (
    "Air/land",
    "Air/start",
    "Archive/diff",
    "Archive/put",
    "Archive/seal",
    "Auth/whoami",
    "Beds/give",
    "Beds/take",
    "Billing/fee",
    "Billing/invoice",
    "Billing/tariff",
    "Cache/get",
    "Cache/put",
    "Experts/vote",
    "Fax/send",
    "Imaging/list",
    "Insurance/approve",
    "Insurance/deductible",
    "Insurance/policy",
    "Lab/fitness",
    "Lab/order",
    "Lab/result",
    "Lab/samples",
    "Lab/summary",
    "Locks/acquire",
    "Locks/free",
    "Mail/send",
    "Monitor/now",
    "Pager/page",
    "Pharmacy/check",
    "Pharmacy/dispense",
    "Printer/print",
    "Rooms/release",
    "Rooms/reserve",
    "Sms/send",
    "Staff/dismiss",
    "Staff/free",
    "Staff/load",
    "Staff/name",
    "Staff/refer",
    "Staff/surgeon",
    "Wards/children",
)
ID = [{"path": {"id": "1"}}]
H = {"Authorization": "t"}


def bodies(*given: Any) -> list[dict[str, Any]]:
    """Return requests with these bodies."""
    return [{"json": one} for one in given]


def queries(*given: Any) -> list[dict[str, Any]]:
    """Return requests with these queries."""
    return [{"query": one} for one in given]


ITEMS = [
    {"type": "admitted", "patient": "a", "ward": "w"},
    {"type": "admitted", "patient": "a"},
    {"type": "discharged", "patient": "b"},
    {"type": "discharged", "patient": "b", "bill": False},
    {"type": "moved", "patient": "c", "from": "a", "to": "icu"},
    {"type": "moved", "patient": "c", "from": "a", "to": "b"},
    {"type": "moved", "patient": "c", "from": "a", "to": "a"},
    {},
]
INPUTS = Inputs(
    {
        **dict.fromkeys(STUBS, Case("stub")),
        "Reception/patients/{id}": Case(
            "a client of its own", [{"path": {"id": "1"}, "query": {"policy": p}} for p in ("true", "false")]
        ),
        "Reception/patients": Case(
            "unit of work",
            bodies(
                {"id": "1"},
                {},
                {"id": "1", "name": "n", "allergies": ["a", "b"]},
                {"id": "2", "allergies": []},
                {"id": "2", "allergies": ["a"]},
            ),
        ),
        "Reception/appointments/{id}/{action}": Case(
            "state machine",
            [
                {"path": {"id": "1", "action": a}}
                for a in ("book", "cancel", "arrive", "finish", "x", "cancel")
            ],
        ),
        "Reception/forms/{kind}": Case(
            "registries",
            [
                {"path": {"kind": k}, "json": j}
                for k in ("surgery", "visit", "imaging", "x")
                for j in ({}, {"name": "n"}, {"name": "n", "policy": "p"})
            ],
        ),
        "Reception/bills/{patient}": Case(
            "a table of cases",
            [
                {"path": {"patient": "1"}, "headers": h}
                for h in ({}, {"X-Role": "nurse"}, {"X-Role": "clerk"}, {"X-Role": "clerk"})
            ],
        ),
        "Reception/admissions": Case(
            "compensation", bodies({"patient": "1"}, {"patient": "1", "surgery": True}, {})
        ),
        "Reception/slots/hold": Case(
            "context managers", bodies({"slots": []}, {"slots": ["a"]}, {"slots": ["a", "b", "c"]})
        ),
        "Reception/price": Case(
            "circuit breaker",
            queries(
                {},
                {"urgency": "urgent", "policy": "a,b"},
                {"urgency": "emergency", "policy": "a"},
                {"urgency": "x"},
                {"urgency": "emergency"},
                {"policy": "a,b,c"},
            ),
        ),
        "Reception/messages": Case("match", bodies([], *([i] for i in ITEMS), ITEMS, ITEMS[2:5])),
        "Reception/day/{day}": Case(
            "calls in a loop",
            [
                {"path": {"day": "1"}, "query": q}
                for q in ({}, {"doctor": "d"}, {"doctor": "x"}, {"doctor": "e"})
            ],
        ),
        "Reception/delegate/{id}": Case(
            "delegation", [{"path": {"id": "1"}, "query": q} for q in ({}, {"amount": "5"}, {"amount": "50"})]
        ),
        "Reception/tree/{ward}": Case(
            "recursion",
            [
                {"path": {"ward": " W"}, "query": q}
                for q in ({}, {"depth": "0"}, {"depth": "1"}, {"depth": "3"})
            ],
        ),
        "Reception/export": Case("answers first"),
        "Clinic/chart/{id}": Case(
            "fan-out, waited for", [{"path": {"id": "1"}, "query": q} for q in ({}, {"full": "true"})]
        ),
        "Clinic/labs/{patient}": Case("page by page", [{"path": {"patient": "1"}}]),
        "Clinic/labs/first": Case("page by page", queries({}, {"patient": "1"})),
        "Clinic/prescribe": Case(
            "groups of tasks",
            bodies({"drugs": []}, {"drugs": ["a"]}, {"drugs": ["a", "b", "c"], "patient": "1"}),
        ),
        "Clinic/remind": Case("strategies", bodies({}, {"remind": False}, {"limit": 1})),
        "Clinic/secure/notes": Case("middleware", [{"headers": H}, {}, {"headers": H}]),
        "Clinic/secure/seal": Case("middleware", bodies({}, {"id": "1"})),
        "Clinic/events/{kind}": Case(
            "events",
            [
                {"path": {"kind": k}, "json": j}
                for k in ("no_show", "late", "x")
                for j in ({}, {"patient": "p"})
            ],
        ),
        "Clinic/triage": Case(
            "a table of cases", bodies({}, {"pain": 3}, {"pain": 5}, {"pain": 9}, {"pain": 11})
        ),
        "Clinic/doctor/best": Case("fan-out, waited for", queries({}, {"avoid": "1"})),
        "Clinic/vitals/{id}": Case("timeouts", ID),
        "Clinic/vitals/ward": Case(
            "fan-out, limited concurrency", queries({}, {"ids": ["a"]}, {"ids": ["a", "b", "c"]})
        ),
        "Clinic/opinion": Case(
            "first that answers", bodies({"experts": []}, {"experts": ["a"]}, {"experts": ["a", "b", "c"]})
        ),
        "Clinic/import": Case(
            "fan-out, in batches", bodies([], [{"_id": "1"}], [{"_id": str(n)} for n in range(7)])
        ),
        "Clinic/queue": Case(
            "queue of jobs", bodies({"jobs": []}, {"jobs": ["a"]}, {"jobs": ["a", "b", "c"]})
        ),
        "Clinic/transfer": Case(
            "context managers",
            bodies({"patient": "1"}, {"patient": "icu"}, {"patient": "2", "target": "w"}, {}),
        ),
        "Clinic/saga": Case(
            "compensation", bodies({}, {"patient": "1", "helicopter": True}, {"patient": "1"})
        ),
        "Clinic/names": Case(
            "cache", bodies({"ids": []}, {"ids": ["a"]}, {"ids": ["a", "b"]}, {"ids": ["c", "a"]})
        ),
        "Clinic/rooms/find": Case("page by page", queries({}, {"size": "2"}, {"size": "9"})),
        "Clinic/insurance/verify": Case("retries", bodies({}, {"number": "1"}, {"number": "2"})),
        "Clinic/referral": Case(
            "match",
            bodies(
                {},
                {"kind": "internal", "doctor": "d"},
                {"kind": "internal"},
                {"kind": "external", "fax": "1"},
                {"kind": "external", "fax": "1", "a": 2},
                {"kind": "external"},
                {"kind": "x"},
            ),
        ),
        "Clinic/checkin": Case("answers first", bodies({}, {"id": "1"})),
        "Clinic/quick": Case("fallback", queries({}, {"id": "1"})),
        "Clinic/compare": Case("a decorator on several levels", queries({}, {"a": "1", "b": "2"})),
    },
    {
        "clinic.by_id": [
            [],
            [{"_id": "1"}],
            [{"_id": "1", "insurance": "p", "allergies": ["a"]}],
            [{"_id": "1", "insurance": "p", "name": "n"}],
        ],
        "clinic.exists": [[], [], [{"_id": "1"}]],
        "clinic.appointment": [
            [],
            *([{"_id": "1", "state": s, "room": "r"}] for s in ("requested", "booked", "arrived", "done")),
            [{"_id": "1"}],
            [{"_id": "1", "state": "booked", "labs": True}],
        ],
        "Rooms/reserve": [{"room": "r"}, {"room": "r"}, {}],
        "Insurance/approve": [{"approved": True}, {"approved": False}, {}],
        "Insurance/policy": [{}, {"limit": 10}],
        "Lab/fitness": [{"fit": True}, {"fit": True}, {}],
        "billing.open": [
            [],
            [{"payer": "a", "amount": 2}, {"payer": "b", "amount": 1}, {"amount": 4}],
            [{"amount": 2}],
            [{"payer": "a", "amount": 2}, {"payer": "a", "amount": 2}],
        ],
        "Insurance/deductible": [{}, {"amount": 1}],
        "Beds/take": [{"bed": "b"}, {}],
        "Billing/tariff": [{"price": 3}, {}],
        "clinic.own_slots": [
            [],
            [{"_id": "1", "doctor": "d", "start": 3}, {"_id": "2", "doctor": "e", "free": False}],
            [{"_id": "3"}],
        ],
        "clinic.guest_slots": [[], [{"_id": "4", "doctor": "d", "free": False}]],
        "Wards/children": [{}, {"children": ["a"]}, {"children": ["a", "b"]}, {"children": []}],
        "clinic.changed": [[], [{"_id": "1"}, {"_id": "1"}, {}], [{"_id": str(n)} for n in range(5)]],
        "Lab/samples": [
            {},
            {"items": [{"id": "1", "ready": True}, {"id": "2"}]},
            {"items": [], "next": "c"},
            {"items": [{"id": "3", "ready": True}], "next": "c"},
        ],
        "Lab/result": [{"value": 2}, {}],
        "Pharmacy/check": [{"ok": True}, {"ok": True}, {"ok": True}, {}],
        "Pharmacy/dispense": [{"ok": True}, {}],
        "clinic.contacts": [
            [],
            [{"phone": "1"}],
            [{"mail": "m"}],
            [{"phone": "1", "mail": "m"}, {}, {"mail": "m"}],
        ],
        "Auth/whoami": [{}, {"name": "n"}],
        "clinic.waiting": [[], [{"_id": "1"}]],
        "Staff/load": [{}, {"load": 3}, {"load": 8}],
        "clinic.doctors": [[], [{"_id": "1"}], [{"_id": "1"}, {"_id": "2"}]],
        "Monitor/now": [{}, {"pulse": 70}, {"pulse": 150}],
        "Experts/vote": [{}, {"vote": "a"}, {"vote": "b"}],
        "Locks/acquire": [{"token": "t"}, {"token": "t"}, {"token": "t"}, {}],
        "clinic.page": [[], [{"_id": "1"}], [{"_id": "1"}, {"_id": "2", "size": 3}]],
        "Cache/get": [{}, {"hit": True}],
        "clinic.patient": [[], [{"_id": "1"}], [{"_id": "1", "name": "n"}]],
    },
)
