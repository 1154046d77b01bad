"""Requests to services whose endpoints are decorated functions of modules."""

from corpus.execution import Case, Inputs

ATTACHED = "attached by a decorator"

INPUTS = Inputs(
    {
        "Users/users/{id} GET": Case(ATTACHED),
        "Users/users/{id} DELETE": Case(ATTACHED),
        "Users/health": Case(ATTACHED),
        "Orders/health": Case(ATTACHED),
        "Orders/orders": Case(ATTACHED),
    },
    {"Orders/orders": [[], [{"id": 1}]]},
)
