"""Requests to a layered synchronous service: specifications, policies, pipelines, caches, readers of pages."""

from corpus.execution import Case, Inputs

STUBS = (
    "Members/who", "Members/find", "Members/may", "Members/notify", "Billing/rate", "Billing/old",
    "Catalogue/title", "Catalogue/scan", "Catalogue/reserve", "Catalogue/release", "Catalogue/renew",
    "Catalogue/find", "Catalogue/may", "Catalogue/stock", "Audit/append",
)  # fmt: skip
INPUTS = Inputs(
    {
        **dict.fromkeys(STUBS, Case("stub")),
        "Library/loans": Case("query, errors in a decorator"),
        "Library/fee": Case(
            "one of several policies",
            [
                {"json": {"policy": p, "role": r}}
                for p in ("flat", "remote", "old", "none")
                for r in ("clerk", "reader", "other")
            ],
        ),
        "Library/borrow": Case("gateway object with retries"),
        "Library/reserve": Case("compensation in a context manager"),
        "Library/export": Case("page by page"),
        "Library/export/all": Case("page by page"),
        "Library/checkout": Case("registered steps"),
        "Library/title": Case("cache", [{"json": {"isbn": n}} for n in (1, 2, 1, 3, 1)]),
        "Library/timings": Case("context managers"),
        "Library/transition": Case(
            "table of functions",
            [{"json": {"state": s}} for s in ("requested", "active", "overdue", "returned", "x")],
        ),
        "Library/search": Case(
            "decide",
            [{"json": {"q": q}} for q in ("isbn:12", "author:x", "near here:x", "", "y", "near:x")],
        ),
        "Library/dashboard": Case("fan-out, waited for"),
        "Library/overdue": Case("loop"),
        "Library/report": Case(
            "loop", [{"json": {"branches": list(b)}} for b in ("", "ab", ("a", "end", "b"), "aaa")]
        ),
        "Library/renew": Case("retries"),
        "Library/import": Case(
            "validate",
            [{"json": {"text": t}} for t in ("", '{"isbn": 1}\n\n{"isbn": 2}', "{", '{"isbn": 3}')]
            + [{"json": {}}],
        ),
        "Library/hold": Case("all and any"),
        "Library/shelf": Case("objects one iterates over"),
        "Library/shelf/rows": Case("objects one iterates over"),
        "Library/shelf/has": Case("objects one iterates over"),
        "Library/shelf/part": Case("objects with items"),
        "Library/branch": Case("random choices"),
    },
    {
        "Members/who": [{}, {"id": 1, "debts": 2}, {"blocked": True}],
        "Members/find": [{}, {"hits": 1}],
        "Members/may": [{"ok": True}, {}],
        "Members/notify": [{}],
        "Billing/rate": [{"value": 2.0}],
        "Billing/old": [{}],
        "Catalogue/title": [{"copies": 1}, {}],
        "Catalogue/scan": [{"rows": [{"id": 1}, {"id": 2}], "next": "a"}, {"rows": [{"id": 1}]}, {}],
        "Catalogue/find": [{}, {"hits": 1}],
        "Catalogue/may": [{"ok": True}, {}],
        "Catalogue/stock": [{}, {"free": 1}],
        "Catalogue/reserve": [{}],
        "Catalogue/release": [{}],
        "Catalogue/renew": [{}],
        "Audit/append": [{}],
        "loans.open": [
            [],
            [{"days": 20}, {"days": 3, "state": "overdue"}],
            [{"days": 0}, {"days": 5}, {"days": 7}, {"days": 9}],
        ],
        "loans.insert": [1],
        "loans.by_author": [[]],
        "loans.exists": [0, 1],
    },
)
