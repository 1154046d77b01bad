"""Requests to endpoints that return their answers."""

from corpus.execution import Case, Inputs

INPUTS = Inputs(
    {
        "Library/books GET": Case("result becomes the answer"),
        "Library/books/{id}": Case("result becomes the answer"),
        "Library/books/{id}/lend": Case("result becomes the answer", [{"headers": {"x-role": "admin"}}, {}]),
        "Library/books DELETE": Case("decorator outside of EP", [{"headers": {"x-role": "admin"}}, {}]),
        "Library/fines": Case("result becomes the answer", [{"headers": {"x-role": "admin"}}, {}]),
        "Members/check": Case("result becomes the answer"),
    },
    {"Members/check": [{"lent": 1}, {"lent": 7}]},
)
