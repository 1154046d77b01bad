"""Strict reading of JSON that a user wrote: a name given twice would silently lose one of its values."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

__all__ = ["RepeatedNameError", "parse_json"]

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|\n', re.DOTALL)


class RepeatedNameError(ValueError):
    """A name is given twice in one object."""


class _Repeated(Exception):  # noqa: N818 - only tells the parser's caller the name
    pass


def parse_json(text: str, *, parse_int: Callable[[str], Any] | None = None) -> Any:
    """Return the value a text stands for.

    Args:
        text: JSON without a byte order mark.
        parse_int: Makes a number of a whole number's digits.

    Raises:
        RepeatedNameError: A name is given twice in one object; the message says where.
        ValueError: It is not JSON, or a number is none (NaN, Infinity).
        RecursionError: It is nested too deeply.
    """
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_no_constant, parse_int=parse_int)
    except _Repeated as error:
        name: str = error.args[0]
        first, second = _lines(text, name)
        raise RepeatedNameError(
            f"line {second}: {json.dumps(name)} is given twice in one object (first in line {first})"
        ) from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names: set[str] = set()
        for name, _ in pairs:
            if name in names:
                raise _Repeated(name)
            names.add(name)
    return found


def _no_constant(text: str) -> float:
    raise ValueError(f"{text} is no number")


def _lines(text: str, name: str) -> tuple[int, int]:
    """Return the lines of the first object that has a name twice, where it has it."""
    line, before = 1, ""
    objects: list[dict[str, int] | None] = []
    for match in _TOKEN.finditer(text):
        part = match.group()
        if part == "{":
            objects.append({})
        elif part == "[":
            objects.append(None)
        elif part in "}]":
            objects.pop()
        elif part == ":" and objects and (seen := objects[-1]) is not None:
            key = json.loads(before)
            if key in seen and key == name:
                return seen[key], line
            seen.setdefault(key, line)
        line += part.count("\n")
        before = part if part != "\n" else before
    return 0, 0  # unreachable: the parser has found it
