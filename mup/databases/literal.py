"""Tell plain values in a request from operators that say how to search.

A filter is data and program in one: where ``{"_id": number}`` is meant, an object like ``{"$ne": null}`` in
the place of ``number`` matches every document.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from mup.errors import QueryError

__all__ = ["literal"]

_T = TypeVar("_T")


def literal(value: _T) -> _T:
    """Return a value for use in a query as it is.

    Raises:
        QueryError: It has a key that begins with ``$``, so that a database would take it for an operator. An
            endpoint that lets this through answers 400.
    """
    name = _operator_in(value)
    if name:
        error = QueryError(f"{name!r} is an operator; here a value was wanted")
        error.answer = 400  # the value came from the client, not from the service
        raise error
    return value


def _operator_in(value: object) -> str:
    """Return the first key that is an operator, at any depth; "" if there is none."""
    # A stack of its own: the depth of what clients send is not ours.
    rest = [value]
    while rest:
        part = rest.pop()
        if isinstance(part, Mapping):
            for key in part:
                if isinstance(key, str) and key.startswith("$"):
                    return key
            rest += part.values()
        elif isinstance(part, list | tuple):
            rest += part
    return ""
