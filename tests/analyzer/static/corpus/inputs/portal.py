"""Requests to a gateway for web pages: parts, batched loading, circuit breaker, leases, races."""

from corpus.execution import Case, Inputs

USER = {"cookies": {"user": "u"}}
STUBS = (
    "Users/badge",
    "Users/names",
    "Users/create",
    "Catalog/product",
    "Reviews/latest",
    "Leases/acquire",
    "Leases/free",
    "Search/suggest",
    "Orders/place",
    "Prices/price",
    "Mirror/east",
    "Mirror/west",
    "Mail/welcome",
    "Invites/use",
    "Flaky/get",
    "Audit/shop",
    "Reports/build",
)
INPUTS = Inputs(
    {
        **dict.fromkeys(STUBS, Case("stub")),
        "Web/product/{id}": Case("parts of a page", [{"path": {"id": "1"}, **u} for u in (USER, {})]),
        "Web/header": Case("fallback", [USER, {}]),
        "Web/suggest": Case("circuit breaker"),
        "Web/compare": Case("batched loading", [{"json": {"ids": list("abcd")[:n]}} for n in (0, 1, 4)]),
        "Web/checkout": Case(
            "context managers", [{"json": {"cart": "c", "express": e}} for e in (True, False)]
        ),
        "Web/leased": Case(
            "context managers", [{"json": {"cart": "c", "exclusive": e}} for e in (True, False)]
        ),
        "Web/stream": Case("page by page"),
        "Web/prices": Case(
            "fan-out, limited concurrency", [{"json": {"ids": list("abcdef")[:n]}} for n in (0, 2, 6)]
        ),
        "Web/race": Case("first of several"),
        "Web/signup": Case(
            "fan-out, waited for", [{"json": {"email": "e", **i}} for i in ({}, {"invite": "x"})]
        ),
        "Web/retry": Case("retries"),
        "Web/grouped": Case("calls in a loop"),
        "Web/settings": Case("queries", [USER, {}]),
        "Web/visit": Case("cache"),
        "Web/late": Case("timeouts"),
    },
    {
        "Reviews/latest": [[], [{"author": "a"}, {"author": "b"}]],
        "Users/names": [{"names": ["A", "B"]}, {}],
        "shop.after": [[], [{"n": 1}, {"n": 60}], [{"n": 1}]],
        "Prices/price": [{"price": 1}],
        "shop.user": [[], [{}]],
        "shop.lines": [[], [{"shop": "a", "n": 1}, {"shop": "b", "n": 2}]],
    },
)
