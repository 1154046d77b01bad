"""Taking database URIs apart and putting them together."""

from __future__ import annotations

import pytest

from mup.databases.address import database_of, scheme_of, server_of, with_database


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("mongodb://h:1", "mongodb://h:1/d"),
        ("mongodb://h:1/", "mongodb://h:1/d"),
        ("mongodb://h:1/?w=1", "mongodb://h:1/d?w=1"),
        ("mongodb://u:p@h", "mongodb://u:p@h/d?authSource=admin"),
        ("mongodb://u:p@h/?authSource=x", "mongodb://u:p@h/d?authSource=x"),
        ("mongodb://u:p@h/own", "mongodb://u:p@h/d"),
        ("mongodb://a:1,b:2/?replicaSet=r", "mongodb://a:1,b:2/d?replicaSet=r"),
    ],
)
def test_with_database_keeps_the_account_valid(uri: str, expected: str) -> None:
    """The database goes into the path without changing where an account is looked up."""
    assert with_database(uri, "d") == expected


def test_parts() -> None:
    """Scheme, database and server are found, and messages never show a password."""
    uri = "mongodb://u:secret@h:1/some%20db?w=1"
    assert (scheme_of(uri), database_of(uri), server_of(uri)) == ("mongodb", "some db", "h:1")
    assert scheme_of("embedded") == ""
