"""Requests to endpoints of a router."""

from corpus.execution import Case, Inputs

INPUTS = Inputs(
    {
        "Books/api/books/{id}": Case("attached by a router"),
        "Books/api/books": Case("attached by a router"),
        "Books/api/books/{id}/copies": Case("attached by a router"),
        "Authors/authors/{id}": Case("query"),
    },
)
