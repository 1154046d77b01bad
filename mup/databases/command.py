"""Parse a query's ``qry_txt``.

A filter (as dict or JSON text) is a find; any other command stands under the one reserved key
``$command``, next to its fields. The fields of every command are documented in docs/reference/queries.md.

Services check a command when they execute it, static analysis checks what the source tells of one
(`check_known`), by the same rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from mup.errors import QueryError, did_you_mean

__all__ = ["COMMANDS", "NOT_KNOWN", "RESERVED", "Command", "check_known", "parse_command"]

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


class _NotKnown:
    """Stands for a part of a command that only its execution tells."""

    def __repr__(self) -> str:
        return "..."


NOT_KNOWN = _NotKnown()


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
    document = _document(text)
    if RESERVED not in document:
        return Command(kind="find", fields={"filter": document})
    kind, fields = document[RESERVED], {name: v for name, v in document.items() if name != RESERVED}
    _check_command(kind, fields)
    return Command(kind=kind, fields=fields)


def check_known(text: Any) -> None:
    """Check a ``qry_txt`` of which only a part is known: it, or anything in it, may be ``NOT_KNOWN``.

    Raises:
        QueryError: `parse_command` raises it whatever the unknown parts are.
    """
    if text is NOT_KNOWN:
        return
    document = _document(text)
    kind = document.get(RESERVED, NOT_KNOWN)
    if kind is not NOT_KNOWN:
        _check_command(kind, {name: value for name, value in document.items() if name != RESERVED})


def _document(text: Any) -> Mapping[str, Any]:
    if isinstance(text, str | bytes):
        try:
            text = msgspec.json.decode(text)
        except msgspec.DecodeError as error:
            raise QueryError(
                f"the query is not JSON: {error}: {_short(text)}",
                hint='write a filter such as {"_id": "word"}, as a dict or as JSON text',
            ) from error
    if not isinstance(text, Mapping):
        raise QueryError(
            f"a query must be a JSON object (a filter or a command), got {_short(text)}",
            hint=f'write a filter such as {{"_id": "word"}}, or {_example("update")}',
        )
    return text


def _check_command(kind: Any, fields: Mapping[str, Any]) -> None:
    if not isinstance(kind, str) or kind not in COMMANDS:
        known = did_you_mean(kind if isinstance(kind, str) else "", tuple(COMMANDS))
        raise QueryError(
            f"unknown database command {_short(kind)}; {known}",
            where=RESERVED,
            hint=f"such as {_example('insert')}",
        )
    required, optional = COMMANDS[kind]
    for name in required:
        if name not in fields:
            raise QueryError(
                f"{kind} needs the field {name!r}", where=RESERVED, hint=f"write {_example(kind)}"
            )
    for name, value in fields.items():
        if name not in required and name not in optional:
            known = did_you_mean(str(name), required + optional)
            raise QueryError(f"{kind} has no field {name!r}; {known}", where=RESERVED)
        if value is not NOT_KNOWN:
            _check(kind, name, value)


def _example(kind: str) -> str:
    """Return a command with its required fields, as a developer writes it."""
    fields = "".join(f', "{name}": ...' for name in COMMANDS[kind][0])
    return f'{{"{RESERVED}": "{kind}"{fields}}}'


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
    return isinstance(value, list) and all(isinstance(item, Mapping) or item is NOT_KNOWN for item in value)


def _is_update(value: Any) -> bool:
    if isinstance(value, Mapping):
        return bool(value) and all(str(key).startswith("$") for key in value)
    return _are_objects(value) and bool(value)


def _is_sort(value: Any) -> bool:
    pairs = list(value.items()) if isinstance(value, Mapping) else value
    return isinstance(pairs, list) and bool(pairs) and all(_is_sort_pair(pair) for pair in pairs)


def _is_sort_pair(pair: Any) -> bool:
    if pair is NOT_KNOWN:
        return True
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        return False
    name, order = pair
    return (isinstance(name, str) or name is NOT_KNOWN) and (order in (1, -1) or order is NOT_KNOWN)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
