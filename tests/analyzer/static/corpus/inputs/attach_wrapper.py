"""Requests to endpoints made by a decorator around EP."""

from corpus.execution import Case, Inputs

AUTH = {"headers": {"authorization": "x"}}

INPUTS = Inputs(
    {
        "Gateway/stock/{sku}": Case("attached by a wrapper", [AUTH, {}]),
        "Gateway/orders": Case("attached by a wrapper", [{**AUTH, "json": {"sku": "a"}}, {}]),
        "Gateway/status": Case("attached by a wrapper"),
        "Stock/level": Case("query", [{"json": {"sku": "a"}}]),
        "Stock/take": Case("query"),
    },
    {"Stock/level": [{"level": 0}, {"level": 3}]},
)
