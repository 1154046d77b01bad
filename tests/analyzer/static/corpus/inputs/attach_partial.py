"""Requests to endpoints of shorthands of EP."""

from corpus.execution import Case, Inputs

INPUTS = Inputs(
    {
        "Todo/todos": Case("attached by a shorthand"),
        "Todo/todos/{id}/done": Case("attached by a shorthand"),
        "Todo/api/v1/todos/{id}": Case("attached by a shorthand"),
        "Todo/api/v1/count": Case("attached by a shorthand"),
        "Todo/ping": Case("attached by a shorthand"),
    },
)
