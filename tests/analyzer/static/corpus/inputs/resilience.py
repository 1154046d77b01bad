"""Requests to an exchange whose rates are not always there."""

from corpus.execution import Case, Inputs

DECORATED, LOOP = "retry decorator", "retry"

INPUTS = Inputs(
    {
        "Exchange/retried": Case(DECORATED),
        "Exchange/backoff": Case(DECORATED),
        "Exchange/fallback": Case("fallback decorator"),
        "Exchange/method": Case(DECORATED),
        "Exchange/client": Case(LOOP),
        "Exchange/retrying": Case(LOOP),
        "Exchange/loop": Case(LOOP),
        "Exchange/replicas": Case("fallback chain"),
        "Exchange/deadline": Case("timeouts"),
        "Exchange/statuses": Case("errors become answers"),
        "Exchange/cleanup": Case("cleanup in finally"),
        "AsyncExchange/retried": Case(DECORATED),
        "AsyncExchange/loop": Case(LOOP),
        "Rates/rate": Case("query", [{"json": {"currency": "EUR"}}]),
        "Archive/rate": Case("handler", [{"json": {"currency": "EUR"}}]),
    },
    {"Rates/rate": [{"rate": 2}], "Archive/rate": [{"rate": 3}]},
)
