"""Requests to an async gateway with helpers of its own: results, repositories, units of work, retries."""

from corpus.execution import Case, Inputs

THING = {"_id": "a"}
INPUTS = Inputs(
    {
        **dict.fromkeys(("Stock/level", "Price/quote"), Case("stub")),
        "Gate/thing": Case("errors in a decorator", [{"json": {"id": "a"}}, {}]),
        "Gate/page": Case("errors in a decorator", [{"json": {"page": page}} for page in (1, "2", "x")]),
        "Gate/both": Case("fan-out, waited for"),
        "Gate/retry": Case("retries"),
        "Gate/many": Case("fan-out", [{"json": {"ids": list("abcd")[:n]}} for n in (0, 1, 4)]),
        "Gate/work": Case("unit of work", [{"json": {"items": [{"n": 1}] * n}} for n in (0, 1, 3)]),
        "Gate/stream": Case("page by page"),
        "Gate/timeout": Case("timeouts"),
        "Gate/wait-for": Case("timeouts"),
        "Gate/group": Case("fan-out, waited for"),
        "Gate/chunks": Case("batches", [{"json": {"ids": list(range(n))}} for n in (0, 50, 120)]),
        "Gate/cached": Case("cache"),
        "Gate/saga": Case("compensations"),
        "Gate/fan-dict": Case("fan-out, waited for"),
        "Gate/flag": Case("fan-out, waited for", [{"json": {"price": on}} for on in (True, False)]),
        "Gate/bg": Case("after the response"),
    },
    {
        "Stock/level": [{"value": 3}, {}],
        "Price/quote": [{"price": 1}],
        "db.get": [[], [THING]],
        "db.page": [[], [THING] * 20, [THING]],
        "db.some": [[], [THING]],
    },
)
