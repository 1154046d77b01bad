"""Requests to endpoints that functions make."""

from corpus.execution import Case, Inputs

INPUTS = Inputs(
    {
        "Directory/people/{id}": Case("attached by a factory"),
        "Directory/rooms/{id}": Case("attached by a factory"),
        "Directory/all": Case("queries side by side"),
        "Proxy/convert": Case("attached by a factory"),
        "Proxy/resize": Case("attached by a factory"),
        "Worker/convert": Case("handler"),
        "Worker/resize": Case("fire and forget"),
        "Shard0/get": Case("attached by a factory"),
    },
)
