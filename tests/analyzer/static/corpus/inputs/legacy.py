"""Requests to a service of threads: typed clients, rules, visitors, retries, recursion."""

from corpus.execution import Case, Inputs

STUBS = (
    "Audit/write",
    "Users/by-id",
    "Users/name",
    "Prices/current",
    "Prices/rebate",
    "Prices/table",
    "Backend/primary",
    "Backend/secondary",
    "Worker/work",
    "Locks/take",
    "Locks/give",
    "Tiles/tile",
    "Tree/node",
    "Recommend/for",
    "Bank/hold",
    "Bank/release",
    "Bank/capture",
)

INPUTS = Inputs(
    {
        **dict.fromkeys(STUBS, Case("stub")),
        "Legacy/sum-fixed": Case("single dispatch"),
        "Legacy/failover": Case("fallback"),
        "Legacy/retry": Case("retries"),
        "Legacy/table": Case("cache"),
        "Legacy/queue": Case("page by page"),
        "Legacy/resources": Case("context managers"),
        "Legacy/grid": Case("fan-out, waited for"),
        "Legacy/flags": Case("feature flags"),
        "Legacy/thunks": Case("closures"),
        "Legacy/best": Case("generators"),
        "Legacy/paginate": Case("page by page"),
        "Legacy/merge": Case("queries side by side"),
        "Legacy/counter": Case("closures"),
        "Legacy/order": Case("typed clients", [{"json": {"user": "u", "sku": "s"}}]),
        "Legacy/names": Case("fan-out, dicts", [{"json": {"ids": ["a"] * n}} for n in (0, 1, 3)]),
        "Legacy/sum": Case(
            "single dispatch", [{"json": {"nodes": n}} for n in ([], [1, "a"], ["b", "c", 3])]
        ),
        "Legacy/result/{key}": Case("results as values", [{"path": {"key": "1"}}]),
        "Legacy/nested/{id}": Case("recursion", [{"path": {"id": "1"}}]),
        "Legacy/guarded": Case("compensation", [{"json": {"amount": n}} for n in (0, 5)]),
        "Legacy/optional": Case("optional calls", [{"query": {"extra": "1"}}, {}]),
    },
    {
        "Users/by-id": [{"active": True}, {}],
        "Prices/current": [{"price": 3}],
        "Prices/rebate": [{"percent": 1}],
        "Tree/node": [{}, {"parent": "x"}],
        "legacy.next": [[], [{"_id": "1"}]],
        "Backend/primary": [{"rows": [1], "next": 3}, {}, {"a": 1}],
        "Backend/secondary": [[], [{"_id": "1", "dirty": True}]],
        "legacy.ours": [[{"_id": "2"}]],
    },
)
