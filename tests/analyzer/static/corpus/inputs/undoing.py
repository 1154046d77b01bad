"""Requests that undo what they have done, one way after another."""

from corpus.execution import Case, Inputs

UNDOING = "compensations"
STUBS = (
    "Depot/reserve",
    "Depot/release",
    "Depot/return",
    "Depot/wrap",
    "Depot/unwrap",
    "Depot/ship",
    "Bank/charge",
    "Bank/refund",
)

ORDERS = [
    {"json": {"gift": 0, "ok": 0, "skus": []}},
    {"json": {"gift": 1, "ok": 0, "skus": ["b"]}},
    {"json": {"gift": 0, "ok": 1, "skus": ["b", "c"]}},
    {"json": {"gift": 1, "ok": 1, "skus": ["b", "c", "d"]}},
]

INPUTS = Inputs(
    {
        **dict.fromkeys(STUBS, Case("stub")),
        "Orders/saga": Case(UNDOING, ORDERS),
        "Orders/saga/answered": Case(UNDOING, ORDERS),
        "Orders/rollback": Case(UNDOING, ORDERS),
        "Orders/actions": Case(UNDOING, ORDERS),
        "Orders/journal": Case(UNDOING, ORDERS),
        "Orders/lifo": Case(UNDOING, ORDERS),
        "Orders/slice": Case(UNDOING, ORDERS),
        "Orders/table": Case(UNDOING, ORDERS),
        "Orders/bodies": Case(UNDOING, ORDERS),
        "Orders/until-empty": Case(UNDOING, ORDERS),
        "Orders/lines": Case(UNDOING, ORDERS),
        "Orders/lines/bound": Case(UNDOING, ORDERS),
        "Orders/extras": Case(UNDOING, ORDERS),
        "Orders/newest": Case(UNDOING, ORDERS),
        "Orders/shuffled": Case(UNDOING, ORDERS),
        "Orders/early": Case(UNDOING, ORDERS),
        "Locks/shared": Case("shared data", ORDERS),
        "Locks/shared/kind": Case("shared data", ORDERS),
    }
)
