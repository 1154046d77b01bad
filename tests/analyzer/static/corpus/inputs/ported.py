"""Requests to services ported from other frameworks."""

from corpus.execution import Case, Inputs

IDIOM = "everyday code, ported"
STUBS = (
    "Backend/a",
    "Backend/a/undo",
    "Backend/audit",
    "Backend/b",
    "Backend/b/undo",
    "Backend/batch",
    "Backend/beta",
    "Backend/c",
    "Backend/charge",
    "Backend/copy",
    "Backend/coupon",
    "Backend/fast",
    "Backend/first",
    "Backend/hook",
    "Backend/index",
    "Backend/job",
    "Backend/known",
    "Backend/load",
    "Backend/lock",
    "Backend/mail",
    "Backend/max",
    "Backend/next",
    "Backend/order",
    "Backend/other",
    "Backend/page",
    "Backend/pro",
    "Backend/refund",
    "Backend/release",
    "Backend/rename",
    "Backend/report",
    "Backend/reserve",
    "Backend/ship",
    "Backend/slow",
    "Backend/state",
    "Backend/stock",
    "Backend/text",
    "Backend/unindex",
    "Backend/unlock",
    "Backend/user",
)
INPUTS = Inputs(
    {
        **dict.fromkeys(STUBS, Case("stub")),
        "Rest/page": Case(
            IDIOM, [{"json": {"ids": []}}, {"json": {"ids": ["a"]}}, {"json": {"ids": ["a", "b", "bc"]}}]
        ),
        "Rest/page/known": Case(
            IDIOM, [{"json": {"ids": []}}, {"json": {"ids": ["a"]}}, {"json": {"ids": ["a", "b", "bc"]}}]
        ),
        "Rest/tier": Case(
            IDIOM,
            [
                {"json": {"tier": "free"}},
                {"json": {"tier": "pro"}},
                {"json": {"tier": "max"}},
                {"json": {"tier": "no"}},
            ],
        ),
        "Rest/tier/weight": Case(
            IDIOM,
            [
                {"json": {"name": "FREE"}},
                {"json": {"name": "PRO"}},
                {"json": {"name": "MAX"}},
                {"json": {"name": "no"}},
            ],
        ),
        "Rest/saga": Case(
            IDIOM, [{"json": {"ids": []}}, {"json": {"ids": ["a"]}}, {"json": {"ids": ["a", "b", "bc"]}}]
        ),
        "Rest/rename": Case(IDIOM, [{"json": {"name": "old"}}, {"json": {"name": "new"}}]),
        "Rest/create": Case(IDIOM, [{"json": {"mail": 0}}, {"json": {"mail": 1}}]),
        "Rest/delete": Case(
            IDIOM, [{"json": {"ids": []}}, {"json": {"ids": ["a"]}}, {"json": {"ids": ["a", "b", "bc"]}}]
        ),
        "Rest/breaker": Case(
            IDIOM, [{"json": {"ids": []}}, {"json": {"ids": ["a"]}}, {"json": {"ids": ["a", "b", "bc"]}}]
        ),
        "Rest/limited": Case(
            IDIOM, [{"json": {"ids": []}}, {"json": {"ids": ["a"]}}, {"json": {"ids": ["a", "b", "bc"]}}]
        ),
        "Rest/idempotent": Case(
            IDIOM,
            [
                {"json": {"key": "a"}},
                {"json": {"key": "a"}},
                {"json": {"key": "b"}},
                {"json": {"key": "a"}},
                {"json": {"key": "b"}},
            ],
        ),
        "Rest/cart": Case(
            IDIOM,
            [
                {"json": {"lines": [], "coupon": None}},
                {"json": {"lines": [], "coupon": "x"}},
                {"json": {"lines": [{}], "coupon": None}},
                {"json": {"lines": [{}], "coupon": "x"}},
                {"json": {"lines": [{}, {"sku": "b"}], "coupon": None}},
                {"json": {"lines": [{}, {"sku": "b"}], "coupon": "x"}},
            ],
        ),
        "Rest/peek": Case(
            IDIOM, [{"json": {"ids": []}}, {"json": {"ids": ["a"]}}, {"json": {"ids": ["a", "b", "bc"]}}]
        ),
        "Rest/routes/{name}": Case(
            IDIOM, [{"path": {"name": "a"}}, {"path": {"name": "b"}}, {"path": {"name": "c"}}]
        ),
        "Rest/signed": Case(
            IDIOM,
            [
                {"json": {"sign": ""}},
                {"json": {"sign": "dc46983557fea127b43af721467eb9b3fde2338fe3e14f51952aa8478c13d355"}},
            ],
        ),
        "Rest/poll": Case(
            IDIOM, [{"json": {"ids": []}}, {"json": {"ids": ["a"]}}, {"json": {"ids": ["a", "b", "bc"]}}]
        ),
        "Rest/stack": Case(IDIOM, [{"json": {"ok": 0}}, {"json": {"ok": 1}}]),
        "Rest/flag": Case(
            IDIOM, [{"json": {"ids": []}}, {"json": {"ids": ["a"]}}, {"json": {"ids": ["a", "b", "bc"]}}]
        ),
        "Rest/chunks": Case(
            IDIOM, [{"json": {"ids": []}}, {"json": {"ids": ["a"]}}, {"json": {"ids": ["a", "b", "bc"]}}]
        ),
        "Rest/fallback": Case(
            IDIOM, [{"json": {"ids": []}}, {"json": {"ids": ["a"]}}, {"json": {"ids": ["a", "b", "bc"]}}]
        ),
        "Rest/match": Case(
            IDIOM,
            [
                {"json": {"kind": "mail", "to": ["a"]}},
                {"json": {"kind": "mail", "to": ["a", "b"]}},
                {"json": {"kind": "mail", "to": []}},
                {"json": {"kind": "sms", "x": 1}},
                {"json": {"kind": "text"}},
                {"json": {"kind": "z"}},
                {"json": {}},
            ],
        ),
        "Aio/pairs": Case(
            IDIOM,
            [
                {"json": {"a": [], "b": []}},
                {"json": {"a": [], "b": ["x"]}},
                {"json": {"a": [], "b": ["x", "y"]}},
                {"json": {"a": ["x"], "b": []}},
                {"json": {"a": ["x"], "b": ["x"]}},
                {"json": {"a": ["x"], "b": ["x", "y"]}},
                {"json": {"a": ["x", "y"], "b": []}},
                {"json": {"a": ["x", "y"], "b": ["x"]}},
                {"json": {"a": ["x", "y"], "b": ["x", "y"]}},
            ],
        ),
        "Aio/one-and": Case(
            IDIOM, [{"json": {"ids": []}}, {"json": {"ids": ["a"]}}, {"json": {"ids": ["a", "b", "bc"]}}]
        ),
        "Aio/completed": Case(
            IDIOM, [{"json": {"ids": []}}, {"json": {"ids": ["a"]}}, {"json": {"ids": ["a", "b", "bc"]}}]
        ),
        "Aio/completed/fixed": Case(
            IDIOM, [{"json": {"ids": []}}, {"json": {"ids": ["a"]}}, {"json": {"ids": ["a", "b", "bc"]}}]
        ),
        "Aio/race": Case(
            IDIOM, [{"json": {"ids": []}}, {"json": {"ids": ["a"]}}, {"json": {"ids": ["a", "b", "bc"]}}]
        ),
        "Aio/pages": Case(
            IDIOM, [{"json": {"ids": []}}, {"json": {"ids": ["a"]}}, {"json": {"ids": ["a", "b", "bc"]}}]
        ),
        "Aio/locked": Case(
            IDIOM, [{"json": {"ids": []}}, {"json": {"ids": ["a"]}}, {"json": {"ids": ["a", "b", "bc"]}}]
        ),
        "Aio/locked/many": Case(
            IDIOM, [{"json": {"ids": []}}, {"json": {"ids": ["a"]}}, {"json": {"ids": ["a", "b", "bc"]}}]
        ),
        "Aio/group": Case(
            IDIOM, [{"json": {"ids": []}}, {"json": {"ids": ["a"]}}, {"json": {"ids": ["a", "b", "bc"]}}]
        ),
        "Aio/group2": Case(
            IDIOM, [{"json": {"ids": []}}, {"json": {"ids": ["a"]}}, {"json": {"ids": ["a", "b", "bc"]}}]
        ),
        "Aio/partial": Case(
            IDIOM, [{"json": {"ids": []}}, {"json": {"ids": ["a"]}}, {"json": {"ids": ["a", "b", "bc"]}}]
        ),
        "Aio/middleware": Case(
            IDIOM, [{"json": {"ids": []}}, {"json": {"ids": ["a"]}}, {"json": {"ids": ["a", "b", "bc"]}}]
        ),
        "Aio/semaphore": Case(
            IDIOM, [{"json": {"ids": []}}, {"json": {"ids": ["a"]}}, {"json": {"ids": ["a", "b", "bc"]}}]
        ),
        "Aio/queue": Case(
            IDIOM, [{"json": {"ids": []}}, {"json": {"ids": ["a"]}}, {"json": {"ids": ["a", "b", "bc"]}}]
        ),
        "Aio/lock": Case(
            IDIOM, [{"json": {"ids": []}}, {"json": {"ids": ["a"]}}, {"json": {"ids": ["a", "b", "bc"]}}]
        ),
        "Aio/dedupe": Case(
            IDIOM, [{"json": {"ids": []}}, {"json": {"ids": ["a"]}}, {"json": {"ids": ["a", "b", "bc"]}}]
        ),
        "Aio/grouped": Case(
            IDIOM, [{"json": {"ids": []}}, {"json": {"ids": ["a"]}}, {"json": {"ids": ["a", "b", "bc"]}}]
        ),
    },
    {
        "Backend/page": [{}, {"more": True}, {"next": 1}, {"more": 1, "next": 2}],
        "Backend/job": [{"state": "done"}, {"state": "x"}],
        "Backend/state": [{"state": "done"}, {"state": "x"}],
        "Backend/user": [{"ok": 1}, {}],
        "Backend/known": [{}, {"x": 1}],
    },
)
