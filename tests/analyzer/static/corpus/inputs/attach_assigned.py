"""Requests to endpoints that are assigned."""

from corpus.execution import Case, Inputs

INPUTS = Inputs(
    {
        "Orders/orders GET": Case("attached by assignment"),
        "Orders/orders/{id}": Case("attached by assignment"),
        "Orders/orders POST": Case("query"),
        "Orders/statistics": Case("attached by assignment"),
    },
)
