"""Which form has the output of ``mup paths --json``, as a JSON schema (draft 2020-12) says it?

Fields may be added, so other programs should accept those they do not know; tests here accept none.
"""

from __future__ import annotations

from inspect import cleandoc
from typing import Any, Literal

import msgspec

__all__ = ["Document", "schema"]


class _Strict(msgspec.Struct, forbid_unknown_fields=True):
    """What has these fields and no others."""


class _Element(_Strict, kw_only=True):
    """What is done at a place, ``holding`` these semaphores and locks that all requests share."""

    file: str
    line: int
    holding: list[str] = []


class _Simple(_Element, kw_only=True):
    """An operation at a place; ``target`` is what it addresses."""

    target: str | None


class Call(_Simple, tag_field="op", tag="call"):
    """A request to an endpoint."""


class Query(_Simple, tag_field="op", tag="query"):
    """A request to a database."""


class Respond(_Simple, tag_field="op", tag="respond"):
    """The response of the endpoint."""


class Get(_Simple, tag_field="op", tag="get"):
    """A wait for the operation that was made in line ``of``."""

    of: int


class Join(_Simple, tag_field="op", tag="join"):
    """A wait for the end of the task, or of all copies of the fan-out, that was started in line ``of``.

    With ``first`` it waits for one of the copies.
    """

    of: int
    first: bool = False


class Think(_Simple, tag_field="op", tag="think"):
    """A pause of a client: a distribution as in model files, null if the source does not tell."""

    think: dict[str, Any] | None


class _Nested(_Element, kw_only=True):
    """What holds paths."""

    body: list[list[Operation]]


class Loop(_Nested, tag_field="op", tag="loop"):
    """Iterations, each of which takes one of these paths.

    With ``left``, nothing waits for what they call: of the calls that a loop has begun, the fan-out in front
    of this is those that are waited for.
    """

    left: bool = False


class Choice(_Nested, tag_field="op", tag="choice"):
    """One of these paths."""


class Task(_Nested, tag_field="op", tag="task"):
    """What goes on beside the code that starts it: one path."""


class Race(_Nested, tag_field="op", tag="race"):
    """Tasks, each of which takes one of these paths; the code goes on when the first has ended."""


class FanOut(_Nested, tag_field="op", tag="fan-out"):
    """Copies that go on beside each other, each of which takes one of these paths.

    There are at most ``most``, as far as the source tells; null: it does not. At most ``limit`` of them go on
    at once; null: all do.
    """

    most: int | None
    limit: int | None


class Raise(_Strict, tag_field="op", tag="raise"):
    """The end of a path by an exception."""

    line: int


Operation = Call | Query | Respond | Get | Join | Think | Loop | Choice | Task | FanOut | Race | Raise


class Endpoint(_Strict):
    """An endpoint, by its path; ``whole``: it is not analysed, and its path is a response only."""

    name: str
    file: str
    line: int
    fingerprint: str
    paths: list[list[Operation]]
    whole: bool = False


class Service(_Strict):
    """A service, by its name."""

    file: str
    line: int
    pool_size: int
    replicas: int
    runtime: Literal["process", "thread", "async"]
    endpoints: dict[str, Endpoint]


class ClientClass(_Strict):
    """A client, by the name of its class."""

    file: str
    line: int
    fingerprint: str
    paths: list[list[Operation]]


class Finding(_Strict):
    """What cannot be analysed, or is worth knowing."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    code: str
    severity: Literal["error", "warning", "info"]
    message: str
    hint: str


class Document(_Strict):
    """The output of ``mup paths --json``."""

    format: Literal["mup-paths/1"]
    root: str
    services: dict[str, Service]
    clients: dict[str, ClientClass]
    diagnostics: list[Finding]


def schema() -> dict[str, Any]:
    """Return the schema; objects may have further fields, for later versions may add some."""
    found = msgspec.json.schema(Document)
    for definition in found["$defs"].values():
        definition.pop("additionalProperties", None)
        if "description" in definition:
            # Only newer versions of msgspec (from 0.23 on) take off the indentation of docstrings.
            definition["description"] = cleandoc(definition["description"])
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found}
