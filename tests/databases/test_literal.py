"""Values of requests stay values in queries."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "runtime"))

from deployments import make_project, running

from mup import literal
from mup.errors import QueryError
from mup.project import DatabaseConfig

SOURCE = """
from mup import EP, MS, Communication, literal


def fill(database):
    database["users"].insert_many([{"_id": str(n), "owner": n, "name": f"user {n}"} for n in range(5)])


class Users(MS):
    @EP("/open/", method="POST")
    def open(self, comm: Communication) -> None:
        comm.respond(comm.query("db", "open", "users", {"owner": comm.params["id"]}).get())

    @EP("/typed/", method="POST")
    def typed(self, comm: Communication, id: int) -> None:
        comm.respond(comm.query("db", "typed", "users", {"owner": id}).get())

    @EP("/literal/", method="POST")
    def literal(self, comm: Communication) -> None:
        comm.respond(comm.query("db", "literal", "users", {"owner": literal(comm.params["id"])}).get())
"""

TOML = """
[services.Users]
class = "shop:Users"

[databases.db]
load = "shop:fill"
"""


@pytest.mark.slow
@pytest.mark.services
@pytest.mark.parametrize("server", ["embedded", "mongod"])
def test_operators_in_requests(request: pytest.FixtureRequest, tmp_path: Path, server: str) -> None:
    """An object in the place of a value matches every document, unless its type is said or it is a literal."""
    uri = "embedded" if server == "embedded" else request.getfixturevalue("mongod").uri + "/literals"
    project = make_project(tmp_path, SOURCE, "Users")
    database = DatabaseConfig(name="db", uri=uri, load="shop:fill")
    with running(replace(project, databases=(database,))) as system:

        def found(path: str, value: object) -> tuple[int, int]:
            """Return the status, and how many documents there are in the answer."""
            body = json.dumps({"id": value}).encode()
            answer = system.ask("Users", path, body, Content_Type="application/json")
            return answer.status, len(answer.body) if answer.status == 200 else 0

        assert found("/open/", {"$ne": None}) == (200, 5)
        for path in ("/typed/", "/literal/"):
            assert found(path, 3) == (200, 1)
            assert found(path, 33) == (200, 0)
            assert found(path, {"$ne": None}) == (400, 0)
        assert found("/literal/", [{"a": {"$gt": ""}}]) == (400, 0)


def test_analysis_knows_the_query(tmp_path: Path) -> None:
    """A query with a literal in it is a query like any other."""
    (tmp_path / "shop.py").write_text(SOURCE)
    (tmp_path / "mup.toml").write_text(TOML)
    words = [sys.executable, "-m", "mup", "paths", str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr
    for name in ("open", "typed", "literal"):
        assert f"db.{name}" in done.stdout
    assert "MUP0" not in done.stdout + done.stderr


def test_literals() -> None:
    """What has no operator in it is returned as it is."""
    deep: object = "x"
    for _ in range(50_000):
        deep = [deep]
    for value in (1, "a", "$ne", None, [1, {"a": 2}], {"a": {"b$": "$c"}}, deep):
        assert literal(value) is value
    for bad in ({"$ne": 1}, [{"a": ({"$gt": ""},)}], {"a": {"b": [{"$where": "1"}]}}):
        with pytest.raises(QueryError, match="is an operator") as caught:
            literal(bad)
        assert caught.value.answer == 400
