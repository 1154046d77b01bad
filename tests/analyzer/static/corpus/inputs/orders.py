"""Requests to orders: error handlers and roles as decorators, repositories, transactions, sagas."""

from corpus.execution import Case, Inputs

AUTH = {"headers": {"authorization": "x"}}
STUBS = (
    "Stock/levels",
    "Stock/level",
    "Stock/reserve",
    "Stock/release",
    "Stock/ping",
    "Stock/restock",
    "Payment/charge",
    "Payment/refund",
    "Payment/ping",
    "Catalog/children",
    "Vendors/offer",
    "Jobs/state",
    "CustomersBackup/item",
    "Audit/sample",
    "Feeds/pull",
    "Shipping/label",
    "Shipping/slot",
    "Auth/verify",
)

INPUTS = Inputs(
    {
        **dict.fromkeys(STUBS, Case("stub")),
        "Orders/export": Case("page by page"),
        "Orders/top": Case("fan-out, dicts"),
        "Orders/health": Case("tables of handlers"),
        "Orders/lottery": Case("handler"),
        "Orders/orders/{key}": Case("decorators that answer errors", [{"path": {"key": "1"}}]),
        "Orders/orders": Case(
            "decorators that answer errors",
            [
                {"json": {"items": [{"sku": "a"}, {"sku": "b"}]}, **AUTH},
                {"json": {"items": []}, **AUTH},
                {"json": {"items": [{"sku": "a"}]}},
            ],
        ),
        "Orders/orders/{key}/state": Case(
            "tables of handlers",
            [{"path": {"key": "1"}, "json": {"state": s}} for s in ("paid", "shipped", "cancelled", "x")],
        ),
        "Orders/checkout": Case("compensation", [{"json": {"cart": "1"}}]),
        "Orders/customers/{key}": Case("cache", [{"path": {"key": k}} for k in "abc"]),
        "Orders/import": Case(
            "queries, in batches", [{"json": {"rows": [{"a": 1}] * n}} for n in (0, 20, 120)]
        ),
        "Orders/tree/{root}": Case("graph, walked by calls", [{"path": {"root": "r"}}]),
        "Orders/quote": Case(
            "fan-out, tolerant", [{"json": {"sku": "a", "plan": p}} for p in ("free", "none")]
        ),
        "Orders/poll/{job}": Case("polling", [{"path": {"job": "1"}}]),
        "Orders/available/{sku}": Case("first that answers", [{"path": {"sku": "1"}}]),
        "Orders/dispatch/{kind}": Case(
            "dispatch by name", [{"path": {"kind": k}} for k in ("price-change", "restock", "zzz")]
        ),
        "Orders/batch": Case("fan-out, in batches", [{"json": {"keys": list(range(n))}} for n in (0, 3, 25)]),
        "Orders/match/{key}": Case("decisions by status", [{"path": {"key": "1"}}]),
        "Orders/report/{year}": Case("queries side by side", [{"path": {"year": "2020"}}]),
        "Orders/sync": Case(
            "work after the response", [{"json": {"sources": ["a", "b", "c"]}}, {"json": {}}]
        ),
        "Orders/discount": Case(
            "rules", [{"json": {"code": c, "total": t}} for c in ("", "x") for t in (5.0, 500.0)]
        ),
    },
    {
        "shop.one": [[{"_id": "1", "customer": "c", "state": s}] for s in ("new", "paid", "shipped")] + [[]],
        "Auth/verify": [{"roles": ["customer"]}, {"roles": []}],
        "Stock/levels": [{"a": 2, "b": 2}, {}],
        "Stock/level": [{"n": 0}, {"n": 3}],
        "Catalog/children": [[], [{"id": "x"}, {"id": "y"}]],
        "Jobs/state": [{"done": False}, {"done": True}],
        "Vendors/offer": [{"price": 2}],
        "shop.scores": [[], [{"id": str(i), "score": i} for i in range(4)]],
        "shop.page": [[{"_id": str(i)} for i in range(20)], [{"_id": "1"}], []],
        "Customers/item": [{"a": 1}],
        "Customers/loyalty": [{"bonus": 1}, {}],
        "Payment/charge": [{}],
        "Feeds/pull": [[], [{"a": 1}]],
        "shop.coupon": [[], [{"percent": 3}]],
        "shop.month": [[], [{"total": 3}]],
    },
)
