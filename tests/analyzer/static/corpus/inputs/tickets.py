"""Requests to a ticket shop with scopes."""

from corpus.execution import Case, Inputs

TOKEN = {"headers": {"authorization": "Bearer t"}}
KEY = {"headers": {"x-api-key": "k"}}
WHO = [TOKEN, KEY, {}]
AUTH, AUTH_CALLS = "auth decorator", "auth, then a chain of calls"


def who(**json: object) -> list[dict[str, object]]:
    return [{**some, "json": json} for some in WHO]


INPUTS = Inputs(
    {
        "Tickets/events": Case(
            "query", [{"query": {"city": "x", "day": d}} for d in ("", "2026-01-01", "x")]
        ),
        "Tickets/events/{event}": Case("queries side by side"),
        "Tickets/me": Case(AUTH, WHO),
        "Tickets/my-tickets": Case(AUTH, WHO),
        "Tickets/hold": Case(AUTH, [*who(event="e", seats=["a"]), *who(seats=[])]),
        "Tickets/buy": Case(
            AUTH_CALLS, [*WHO, {"headers": {"authorization": "Bearer t", "idempotency-key": "i"}}]
        ),
        "Tickets/cancel/{order}": Case("one decorator on two levels"),
        "Tickets/admin/report": Case(AUTH, WHO),
        "Tickets/admin/events": Case(AUTH_CALLS, [*who(name="n", seats=3), *who(name="n"), *who()]),
        "Tickets/remind/{event}": Case("background task"),
        "Tickets/upload": Case(AUTH, [{**some, "body": b} for some in WHO for b in (b"x", b"")]),
        "Identity/introspect": Case("early responses", [{"json": {"token": "t"}}]),
        "Pay/charge": Case("early responses", [{"json": {"customer": "c", "amount": a}} for a in (5, 5000)]),
        "Pay/refund": Case("query"),
        "Outbox/mail": Case("work after the response"),
        "Files/store": Case("handler"),
        "Files/delete": Case("handler"),
    },
    {
        "Identity/introspect": [
            {"active": True, "sub": "eve", "scope": "read buy"},
            {"active": True, "sub": "root", "scope": "admin"},
            {"active": False},
        ],
        "auth.api_key": [
            [],
            [{"key": "k", "owner": "bot", "scopes": ["read", "buy", "admin"]}],
            [{"key": "x"}],
        ],
        "identity.token": [[], [{"user": "eve"}], [{"revoked": True}]],
        "tickets.seats": [[], [{"_id": "a"}], [{"_id": "a", "state": "held"}]],
        "tickets.idempotency": [[], [{"answer": {}}]],
        "Pay/charge": [{"id": "p"}],
        "Files/store": [{"id": "f"}],
    },
)
