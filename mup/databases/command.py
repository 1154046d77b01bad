"""What does a query's ``qry_txt`` ask for?

A filter (as dict or JSON text) is a find; any other command stands under the one reserved key
``$command``, next to its fields. The fields of every command are documented in docs/reference/queries.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from mup.errors import QueryError, did_you_mean

__all__ = ["COMMANDS", "RESERVED", "Command", "parse_command"]

RESERVED = "$command"

# Command: its fields; the first ones, up to the bar, are required.
COMMANDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "find": ((), ("filter", "projection", "sort", "skip", "limit")),
    "aggregate": (("pipeline",), ()),
    "insert": (("documents",), ()),
    "update": (("filter", "update"), ("many", "upsert")),
    "delete": (("filter",), ("many",)),
    "count": ((), ("filter",)),
    "distinct": (("field",), ("filter",)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One checked database command.

    Attributes:
        kind: A key of `COMMANDS`.
        fields: Its fields; types are checked, missing optional ones are absent.
    """

    kind: str
    fields: Mapping[str, Any] = field(default_factory=dict)


def parse_command(text: str | bytes | Mapping[str, Any]) -> Command:
    """Check a ``qry_txt`` and return the command it asks for.

    Raises:
        QueryError: Not JSON, not an object, an unknown command or field, or a field of the wrong type.
    """
    if isinstance(text, str | bytes):
        try:
            text = msgspec.json.decode(text)
        except msgspec.DecodeError as error:
            raise QueryError(
                f"the query is not JSON: {error}: {_short(text)}",
                hint='write a filter such as {"_id": "word"}, as a dict or as JSON text',
            ) from error
    if not isinstance(text, Mapping):
        raise QueryError(f"a query must be a JSON object (a filter or a command), got {_short(text)}")
    if RESERVED not in text:
        return Command(kind="find", fields={"filter": text})
    kind = text[RESERVED]
    if not isinstance(kind, str) or kind not in COMMANDS:
        raise QueryError(
            f"unknown database command {kind!r}; {did_you_mean(str(kind), tuple(COMMANDS))}", where=RESERVED
        )
    required, optional = COMMANDS[kind]
    fields = {name: value for name, value in text.items() if name != RESERVED}
    for name in required:
        if name not in fields:
            raise QueryError(f"{kind} needs the field {name!r}", where=RESERVED)
    for name, value in fields.items():
        if name not in required and name not in optional:
            known = did_you_mean(name, required + optional)
            raise QueryError(f"{kind} has no field {name!r}; {known}", where=RESERVED)
        _check(kind, name, value)
    return Command(kind=kind, fields=fields)


def _check(kind: str, name: str, value: Any) -> None:
    match name:
        case "filter":
            good, wanted = isinstance(value, Mapping), "an object"
        case "update":
            # A pipeline update is a list of stages.
            good, wanted = (
                _is_update(value),
                'an object of operators such as {"$set": {...}}, or a list of stages',
            )
        case "projection":
            good, wanted = isinstance(value, Mapping | list), "an object or a list of field names"
        case "sort":
            good, wanted = _is_sort(value), "an object {field: 1 or -1} or a list of such pairs"
        case "skip" | "limit":
            good = isinstance(value, int) and not isinstance(value, bool) and value >= 0
            wanted = "a whole number >= 0"
        case "pipeline":
            good, wanted = _are_objects(value), "a list of stages"
        case "documents":
            good, wanted = _are_objects(value) and bool(value), "a list of at least one object"
        case "many" | "upsert":
            good, wanted = isinstance(value, bool), "true or false"
        case _:
            good, wanted = isinstance(value, str) and bool(value), "a field name"
    if not good:
        raise QueryError(f"{kind}: {name} must be {wanted}, got {_short(value)}", where=RESERVED)


def _are_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, Mapping) for item in value)


def _is_update(value: Any) -> bool:
    if isinstance(value, Mapping):
        return bool(value) and all(str(key).startswith("$") for key in value)
    return _are_objects(value) and bool(value)


def _is_sort(value: Any) -> bool:
    pairs = list(value.items()) if isinstance(value, Mapping) else value
    return (
        isinstance(pairs, list)
        and bool(pairs)
        and all(
            isinstance(pair, tuple | list)
            and len(pair) == 2
            and isinstance(pair[0], str)
            and pair[1] in (1, -1)
            for pair in pairs
        )
    )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
