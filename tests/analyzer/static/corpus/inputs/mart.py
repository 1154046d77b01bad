"""Requests to a mart: typed clients with retries, settings, problems as exceptions, structs, paging."""

from corpus.execution import Case, Inputs

STUBS = (
    "Stock/v1/level",
    "Stock/v1/reserve",
    "Stock/v1/release",
    "Pricing/quote",
    "Users/me",
    "Bank/pay",
    "Audit/note",
)
AUTH = {"headers": {"authorization": "x"}}
LINES = [{"sku": "a"}, {"sku": "b", "n": 2}]
INPUTS = Inputs(
    {
        **dict.fromkeys(STUBS, Case("stub")),
        "Mart/level/{sku}": Case("typed clients", [{"path": {"sku": "1"}}]),
        "Mart/quote/{sku}": Case(
            "typed clients", [{"path": {"sku": "1"}, "query": {"currency": c}} for c in ("EUR", "XXX")]
        ),
        "Mart/cart": Case(
            "compensation", [{"json": {"lines": lines}, **a} for lines in ([], LINES) for a in ({}, AUTH)]
        ),
        "Mart/any/{sku}": Case("reflection", [{"path": {"sku": "1"}}]),
        "Mart/orders": Case("page by page"),
        "Mart/orders/{id}": Case(
            "decisions by status",
            [{"path": {"id": "1"}, "headers": {"if-none-match": "1"}}, {"path": {"id": "1"}}],
        ),
        "Mart/orders/{id}/{action}": Case(
            "dispatch by name", [{"path": {"id": "1", "action": a}} for a in ("pay", "cancel", "x")]
        ),
        "Mart/import": Case(
            "queries, in batches", [{"json": {"rows": r}} for r in ([], [{"sku": "a"}, {}], [{"sku": "a"}])]
        ),
        "Mart/compare": Case("fan-out, dicts"),
        "Mart/warm": Case("work after the response"),
        "Mart/feed.xml": Case("query"),
    },
    {
        "Stock/v1/level": [{"n": 0}, {"n": 5}],
        "Stock/v1/reserve": [{"id": "r"}],
        "Pricing/quote": [{"price": 2.0}],
        "Users/me": [{"id": "u"}],
        "mart.orders": [[{"_id": str(i), "open": True} for i in range(20)], []],
        "mart.order": [[], [{"_id": "1", "version": 1}]],
        "mart.held": [[], [{"held": ["a", "b"]}]],
        "mart.popular": [[], [{"_id": "1"}, {"_id": "2"}]],
    },
)
