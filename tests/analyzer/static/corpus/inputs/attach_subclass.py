"""Requests to endpoints of subclasses of EP."""

from corpus.execution import Case, Inputs

INPUTS = Inputs(
    {
        "Notes/notes GET": Case("attached by a subclass"),
        "Notes/notes POST": Case("attached by a subclass"),
        "Notes/v1/tags": Case("attached by a subclass"),
        "Notes/v2/tags": Case("attached by a subclass"),
    },
)
