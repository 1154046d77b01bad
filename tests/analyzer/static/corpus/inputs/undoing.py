"""Requests that undo what they have done, one way after another."""

from corpus.execution import Case, Inputs

UNDOING = "compensations"
STACKS = "stacks of managers"
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
        "Orders/nested": Case(UNDOING, ORDERS),
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
        "Stacks/callbacks": Case(STACKS, ORDERS),
        "Stacks/callbacks/library": Case(STACKS, ORDERS),
        "Stacks/passed": Case(STACKS, ORDERS),
        "Stacks/prepared": Case(STACKS, ORDERS),
        "Stacks/made": Case(STACKS, ORDERS),
        "Stacks/entered": Case(STACKS, ORDERS),
        "Stacks/optional": Case(STACKS, ORDERS),
        "Stacks/nothing": Case(STACKS, ORDERS),
        "Stacks/tolerant": Case(STACKS, ORDERS),
        "Stacks/translated": Case(STACKS, ORDERS),
        "Stacks/chosen": Case(STACKS, ORDERS),
        "Stacks/both": Case(STACKS, ORDERS),
        "Stacks/begun": Case(STACKS, ORDERS),
        "Stacks/held": Case(STACKS, ORDERS),
        "Stacks/counted": Case(STACKS, ORDERS),
        "Stacks/paths": Case(STACKS, ORDERS),
        "Stacks/closed": Case(STACKS, ORDERS),
        "Stacks/closed/early": Case(STACKS, ORDERS),
        "Stacks/pushed": Case(STACKS, ORDERS),
        "Stacks/lines": Case(STACKS, ORDERS),
        "Stacks/lines/entered": Case(STACKS, ORDERS),
        "Stacks/lines/either": Case(STACKS, ORDERS),
        "Stacks/several": Case(STACKS, ORDERS),
        "Stacks/several/stacked": Case(STACKS, ORDERS),
        "Stacks/retried": Case(STACKS, ORDERS),
        "Locks/known": Case(STACKS, ORDERS),
        "Locks/all": Case(STACKS, ORDERS),
        "Locks/mixed": Case(STACKS, ORDERS),
        "Locks/undone": Case(STACKS, ORDERS),
        "Locks/timed": Case(STACKS, ORDERS),
        "Locks/keeper": Case(STACKS, ORDERS),
        "Locks/connection": Case(STACKS, ORDERS),
        "Locks/beside": Case(STACKS, ORDERS),
        "Locks/gathered": Case(STACKS, ORDERS),
        "Locks/shared": Case("shared data", ORDERS),
        "Locks/shared/kind": Case("shared data", ORDERS),
    }
)
