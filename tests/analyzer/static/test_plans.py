"""Lists that branches fill with what is to be called or awaited later."""

from __future__ import annotations

from pathlib import Path

import pytest
from source_outline import analyse_files, codes, endpoint_source, outline

HELPERS = """
import asyncio
async def check(comm, path):
    return await comm.call("B", path)
def ask(comm, path="/b/"):
    return comm.call("B", path).get()
def steps(comm):
    found = [ask]
    if comm.params["more"]:
        found.append(ask)
    return found
"""
B, C = "call:B/b/ get:0", "call:B/c/ get:"


def paths(folder: Path, body: str, define: str = "def") -> list[str]:
    """Return the paths of an endpoint, which has no finding."""
    source = endpoint_source(f"{body}\ncomm.respond(1)", module=HELPERS, define=define)
    application = analyse_files(folder, app=source)
    assert codes(application) == []
    return outline(application)


def test_coroutines_that_a_branch_adds(tmp_path: Path) -> None:
    body = (
        "checks = [check(comm, '/b/')]\nif comm.params['more']:\n    checks.append(check(comm, '/c/'))\n"
        "await asyncio.gather(*checks)"
    )
    assert paths(tmp_path, body, "async def") == [
        f"{B} respond",
        f"task[{B}] task[{C}0] join:0 join:1 respond",
    ]


@pytest.mark.parametrize(
    "body",
    [
        "todo = [ask]\nif comm.params['more']:\n    todo.append(ask)\nfor one in todo:\n    one(comm)",
        "for one in steps(comm):\n    one(comm)",
        "todo = {'a': ask}\nif comm.params['more']:\n    todo['b'] = ask\nfor one in todo.values():\n    one(comm)",
    ],
)
def test_functions_that_a_branch_adds(tmp_path: Path, body: str) -> None:
    assert paths(tmp_path, body) == [f"{B} call:B/b/ get:2 respond", f"{B} respond"]


def test_ways_that_do_the_same_are_one_path(tmp_path: Path) -> None:
    body = "rules = []\n" + "".join(
        f"if comm.params['{name}']:\n    rules.append(lambda x: x)\n" for name in "abcdefghijkl"
    )
    assert paths(tmp_path, f"{body}ask(comm)\nx = all(rule(1) for rule in rules)") == [f"{B} respond"]
