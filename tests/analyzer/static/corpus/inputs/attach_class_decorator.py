"""Requests to endpoints that decorators of classes add."""

from corpus.execution import Case, Inputs

INPUTS = Inputs(
    {
        "Cars/health": Case("attached by a class decorator"),
        "Cars/cars": Case("query"),
        "Bikes/bikes/{id} GET": Case("attached by a class decorator"),
        "Bikes/bikes/{id} DELETE": Case("attached by a class decorator"),
        "Bikes/bikes": Case("query"),
        "Trucks/audit": Case("attached by a class decorator"),
        "Trucks/trucks": Case("query"),
    },
)
