"""Requests to inherited endpoints."""

from corpus.execution import Case, Inputs

INPUTS = Inputs(
    {
        "Teams/list": Case("inherited endpoint"),
        "Teams/one/{id}": Case("inherited endpoint"),
        "Players/list": Case("inherited endpoint"),
        "Players/one/{id}": Case("inherited endpoint"),
        "Teams/live": Case("inherited endpoint"),
        "Teams/deep": Case("inherited endpoint"),
        "Players/of-team/{team}": Case("chain of calls"),
    },
)
