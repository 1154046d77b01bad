"""Builds of SQLite for the embedded database: those that sort integer ids as numbers."""

from __future__ import annotations

import importlib
import sqlite3
from pathlib import Path

import pymongo
import pytest

from mup.databases.server import start_database
from mup.errors import DeploymentError
from mup.project import DatabaseConfig

pytestmark = pytest.mark.services

HIDDEN = 'raise ImportError("hidden", name="pysqlite3")\n'
SYSTEM = "from sqlite3.dbapi2 import *\nfrom sqlite3.dbapi2 import sqlite_version\n"
SOUND = sqlite3.sqlite_version_info >= (3, 45)
"""Whether the system's SQLite has jsonb(), without which neosqlite keeps ids as texts."""


def _sorted_ids(folder: Path) -> tuple[str, list[int]]:
    """Start the embedded database, let it sort ids, and return its version and what it made of them."""
    server = start_database(DatabaseConfig(name="db"), folder)
    try:
        with pymongo.MongoClient(server.uri) as client:
            words = client["db"]["words"]
            words.insert_many([{"_id": number} for number in (10, 9, 1, 100, 2)])
            return server.version, [word["_id"] for word in words.find({}).sort("_id", 1)]
    finally:
        server.stop()


@pytest.mark.parametrize("module", [HIDDEN, SYSTEM], ids=["no pysqlite3", "one with the system's SQLite"])
def test_the_system_sqlite_is_used_if_it_is_sound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    """Without pysqlite3-binary the system's SQLite serves, or the message says what is wrong with it."""
    package = tmp_path / "pysqlite3"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "dbapi2.py").write_text(module)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    if SOUND:
        assert _sorted_ids(tmp_path) == (f"SQLite {sqlite3.sqlite_version}", [1, 2, 9, 10, 100])
        return
    with pytest.raises(DeploymentError) as caught:
        _sorted_ids(tmp_path)
    message = str(caught.value)
    assert f"sorts the ids 9 and 10 as [10, 9] with SQLite {sqlite3.sqlite_version}" in message
    assert "SQLite 3.45" in message
    assert "mongodb://" in message


def test_a_newer_sqlite_in_the_standard_library_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without pysqlite3, Python's own sqlite3 serves if it was built with a sound SQLite."""
    if SOUND:
        pytest.skip("the system's SQLite is new enough: the test above has run on it")
    pysqlite3 = pytest.importorskip("pysqlite3", reason="no second build of SQLite on this platform")
    # The standard library's sqlite3 takes the first _sqlite3 there is.
    engine = Path(importlib.import_module("pysqlite3._sqlite3").__file__ or "")
    (tmp_path / engine.name).symlink_to(engine)
    (tmp_path / "pysqlite3.py").write_text(HIDDEN)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert _sorted_ids(tmp_path) == (f"SQLite {pysqlite3.sqlite_version}", [1, 2, 9, 10, 100])
