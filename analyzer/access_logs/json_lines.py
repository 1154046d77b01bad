"""Fields of a log in JSON: those the user names, or those of servers that are known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from analyzer.access_logs.formats import Piece, Wanted
from mup.errors import UsageError, did_you_mean

__all__ = ["Fields", "fields_of"]


@dataclass(frozen=True, slots=True)
class Fields:
    """Where a log in JSON says what.

    Attributes:
        paths: Of each field, a key or keys of objects in objects.
        pieces: What each of them tells.
    """

    paths: tuple[tuple[str, ...], ...]
    pieces: tuple[Piece, ...]

    def columns(self, lines: Iterable[bytes]) -> tuple[list[list[str]], list[int]]:
        """Return the fields of lines as texts, one list per field, and which lines could not be read."""
        decode = msgspec.json.Decoder(dict[str, Any]).decode
        columns: list[list[str]] = [[] for _ in self.paths]
        bad: list[int] = []
        for number, line in enumerate(lines):
            try:
                document = decode(line)
                found = [_at(document, path) for path in self.paths]
            except (msgspec.DecodeError, KeyError, TypeError):
                if line.strip():
                    bad.append(number)
                continue
            for column, value in zip(columns, found, strict=True):
                column.append(value if isinstance(value, str) else str(value))
        return columns, bad


def _at(document: dict[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = document
    for key in path:
        value = value[key]
    return value


_KNOWN: tuple[tuple[str, Mapping[str, Piece]], ...] = (
    ("nginx", {"msec": Piece("end", "s"), "request_time": Piece("duration", "s")}),
    (
        "Envoy",
        {
            "start_time": Piece("start", "iso"),
            "duration": Piece("duration", "ms"),
            "method": Piece("method"),
            "path": Piece("uri"),
        },
    ),
    (
        "Traefik",
        {
            "StartUTC": Piece("start", "iso"),
            "Duration": Piece("duration", "ns"),
            "RequestMethod": Piece("method"),
            "RequestPath": Piece("uri"),
        },
    ),
    (
        "Caddy",
        {
            "ts": Piece("end", "s"),
            "duration": Piece("duration", "s"),
            "request.method": Piece("method"),
            "request.uri": Piece("uri"),
        },
    ),
)
_TARGETS: tuple[tuple[tuple[str, Piece], ...], ...] = (
    (("request_method", Piece("method")), ("request_uri", Piece("uri"))),
    (("request_method", Piece("method")), ("uri", Piece("uri"))),
    (("request", Piece("what")),),
    (("method", Piece("method")), ("uri", Piece("uri"))),
    (("method", Piece("method")), ("path", Piece("uri"))),
)
"""What names of fields say what was asked for."""


def fields_of(document: Mapping[str, Any], wanted: Mapping[str, Wanted]) -> Fields:
    """Return where a log says what, judging by its first line.

    Args:
        document: The first line.
        wanted: What the user says.

    Raises:
        UsageError: A field is not there, or it is not known what the fields mean.
    """
    flat = _flat(document)
    if not wanted:
        for _, fields in _KNOWN:
            if set(fields) <= set(flat):
                return _with_target(dict(fields), flat)
        raise UsageError(
            f"JSON with fields that are not known: {', '.join(sorted(flat))[:300]}",
            hint="say which is which: --field end=ts --field duration=latency:ms --field class=route",
        )
    found: dict[str, Piece] = {}
    for role, field in wanted.items():
        if field.name not in flat:
            raise UsageError(
                f"--field {role}={field.name}: the first line has no such field; "
                f"{did_you_mean(field.name, sorted(flat))}"
            )
        found[field.name] = Piece("uri" if role == "class" else role, _form(role, field, flat[field.name]))
    roles = {piece.role for piece in found.values()}
    if len(roles & {"start", "end", "duration"}) < 2:
        raise UsageError(
            "--field: two of start, end and duration are needed, got " + (", ".join(sorted(roles)) or "none"),
            hint="for example --field end=ts --field duration=latency:ms",
        )
    return _with_target(found, flat) if "uri" not in roles else _fields(found)


def _form(role: str, field: Wanted, value: Any) -> str:
    if role not in ("start", "end", "duration"):
        return ""
    if field.unit:
        return field.unit
    if isinstance(value, str) and not value.replace(".", "", 1).isdecimal():
        if role == "duration":
            raise UsageError(f"--field duration={field.name}: must be a number, got {value!r}")
        return "iso" if value[:4].isdecimal() else "clf"
    return "s"


def _with_target(found: dict[str, Piece], flat: Mapping[str, Any]) -> Fields:
    if {"uri", "what"} & {piece.role for piece in found.values()}:
        return _fields(found)
    for names in _TARGETS:
        if all(name in flat for name, _ in names):
            return _fields(found | dict(names))
    raise UsageError(
        f"no field says what was asked for; there are {', '.join(sorted(flat))[:300]}",
        hint="say which one does: --field class=NAME",
    )


def _fields(found: Mapping[str, Piece]) -> Fields:
    # The method stands before what it is applied to.
    order: Sequence[str] = sorted(found, key=lambda name: found[name].role == "uri")
    return Fields(tuple(_path(name) for name in order), tuple(found[name] for name in order))


def _path(name: str) -> tuple[str, ...]:
    return tuple(name.split("."))


def _flat(document: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the fields of objects in objects under names with dots; keys with dots are left as they are."""
    found: dict[str, Any] = {}
    for key, value in document.items():
        if isinstance(value, dict):
            found |= _flat(value, f"{prefix}{key}.")
        else:
            found[f"{prefix}{key}"] = value
    return found
