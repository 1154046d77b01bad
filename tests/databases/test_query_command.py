"""What a qry_txt may say, and how a wrong one is refused."""

from __future__ import annotations

from typing import Any

import pytest

from mup.databases.command import parse_command
from mup.errors import QueryError


@pytest.mark.parametrize("text", ['{"_id": "a"}', b'{"_id": "a"}', {"_id": "a"}])
def test_a_filter_is_a_find(text: Any) -> None:
    """A filter as text, bytes or dict is a find with that filter."""
    command = parse_command(text)
    assert command.kind == "find"
    assert command.fields == {"filter": {"_id": "a"}}


def test_a_command_keeps_its_fields() -> None:
    """Everything next to the reserved key is a field of the command."""
    command = parse_command({"$command": "find", "filter": {}, "sort": {"a": 1, "b": -1}, "limit": 3})
    assert command.kind == "find"
    assert command.fields == {"filter": {}, "sort": {"a": 1, "b": -1}, "limit": 3}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"_id":', "not JSON"),
        ("[1]", "must be a JSON object"),
        (7, "must be a JSON object"),
        ({"$command": "findd"}, "did you mean 'find'"),
        ({"$command": ["find"]}, "unknown database command"),
        ({"$command": "find", "filtre": {}}, "did you mean 'filter'"),
        ({"$command": "aggregate"}, "needs the field 'pipeline'"),
        ({"$command": "aggregate", "pipeline": {}}, "must be a list of stages"),
        ({"$command": "insert", "documents": []}, "at least one object"),
        ({"$command": "update", "filter": {}, "update": {"a": 1}}, "operators"),
        ({"$command": "update", "filter": {}, "update": {"$set": {}}, "many": 1}, "true or false"),
        ({"$command": "delete", "filter": "x"}, "must be an object"),
        ({"$command": "find", "limit": -1}, "whole number >= 0"),
        ({"$command": "find", "limit": True}, "whole number >= 0"),
        ({"$command": "find", "sort": {"a": 2}}, "1 or -1"),
        ({"$command": "find", "sort": "a"}, "1 or -1"),
        ({"$command": "distinct", "field": ""}, "a field name"),
    ],
)
def test_a_malformed_query_is_refused(text: Any, message: str) -> None:
    """Every mistake is a QueryError that names it."""
    with pytest.raises(QueryError, match=message):
        parse_command(text)
