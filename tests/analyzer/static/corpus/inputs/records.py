"""Requests to a gateway whose tables hold records, and whose helpers are decorators, stacks and context managers."""

from corpus.execution import Case, Inputs

KEYED = Case("keyed by records")
INPUTS = Inputs(
    {
        **dict.fromkeys(("Stock/level", "Price/quote"), Case("stub")),
        "Gate/timed": Case("decorators"),
        "Gate/checked": Case("decorators", [{"json": {"role": role}} for role in ("admin", "user")] + [{}]),
        "Gate/rules": KEYED,
        "Gate/rules1": KEYED,
        "Gate/rules2": KEYED,
        "Gate/rules3": KEYED,
        "Gate/rules4": KEYED,
        "Gate/rules5": KEYED,
        "Gate/rules6": KEYED,
        "Gate/handlers": Case("local errors"),
        "Gate/lru": Case("cache", [{"json": {"key": key}} for key in "aab"]),
        "Gate/cart": Case("calls in a loop", [{"json": {"items": list("abc")[:n]}} for n in (0, 1, 3)]),
        "Gate/kind": Case("decides", [{"json": {"kind": kind}} for kind in ("book", "toy", "car")]),
        "Gate/stack": Case("context managers"),
        "Gate/stack3": Case("context managers"),
        "Gate/stack4": Case("context managers"),
        "Gate/optional-lock": Case("context managers", [{"json": {"trace": on}} for on in (True, False)]),
        "Gate/queue": Case("calls in a loop"),
        "Gate/sorted": Case("decides"),
        "Gate/paging": Case("queries", [{}, {"json": {"at": 31}}]),
        "Gate/first": Case("first of several"),
        "Gate/any": Case("first of several"),
        "Gate/dispatch": Case("tables", [{"json": {"action": name}} for name in ("stock", "price", "other")]),
    },
    {
        "Stock/level": [{"value": 3}, {}, []],
        "Price/quote": [[1], 0, "abc"],
        "db.all": [[], [{"rank": 2}, {"rank": 1}]],
        "db.page": [[], [{}] * 10],
    },
)
