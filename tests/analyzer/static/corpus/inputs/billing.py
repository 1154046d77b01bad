"""Requests to services whose handlers are registered while they are imported."""

from corpus.execution import Case, Inputs

NUMBERS = [{"path": {"number": n}} for n in ("7", "12")]
NAMES = ("charge", "refund", "preview", "none")

INPUTS = Inputs(
    {
        "Billing/command/{name}": Case("registries", [{"path": {"name": n}} for n in NAMES]),
        "Billing/refund": Case("registries"),
        "Billing/paid/{number}": Case("registries", NUMBERS),
        "Billing/event/{name}": Case(
            "registries", [{"path": {"name": n}} for n in ("paid", "refunded", "none")]
        ),
        "Billing/allowed/{number}": Case("registries", NUMBERS),
        "Billing/pay/{provider}": Case(
            "registries", [{"path": {"provider": p}} for p in ("card", "invoice", "none")]
        ),
        "Billing/export/{number}": Case(
            "registries", [{"path": {"number": "7"}, "query": {"suffix": s}} for s in ("csv", "pdf", "none")]
        ),
        "Billing/report/{name}": Case(
            "registries", [{"path": {"name": n}} for n in ("totals", "open", "none")]
        ),
        "Billing/csv/{number}": Case("query", NUMBERS),
        "Bank/charge": Case("handler"),
        "Bank/refund": Case("handler"),
        "Bank/card": Case("gateway"),
        "Risk/blocked": Case("query"),
        "Risk/score": Case("handler"),
        "Mail/send": Case("handler"),
        "Printer/pdf": Case("handler"),
    },
    {
        "billing.balance": [[], [{"_id": "7"}]],
        "billing.customer": [[], [{"_id": "7"}]],
        "Risk/blocked": [True, False],
        "Printer/pdf": [{"pages": 1}],
    },
)
