"""The schema of `mup paths --json` describes what is printed."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from command_line import run

from mup.cli.models.paths_schema import Document, schema

SOURCE = """
import asyncio
from mup import EP, MS, Client

class A(MS):
    runtime = "async"

    @EP("/a")
    async def a(self, comm):
        async def ask():
            return await comm.call("B", "/b")
        task = asyncio.create_task(ask())
        for item in comm.params:
            await comm.query("db", "find", "words", {})
        await task
        if comm.params:
            raise ValueError
        comm.respond(1)

class B(MS):
    @EP("/b")
    def b(self, comm):
        comm.respond(1)
        comm.respond(2)

class User(Client):
    async def scenario(self, comm):
        await self.think(0.5)
        await comm.call("A", "/a")
"""


def test_output_has_the_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each kind of operation, findings, services and clients: no field is missing, none is unknown."""
    (tmp_path / "app.py").write_text(SOURCE, encoding="utf-8")
    code, out, _ = run(capsys, "paths", str(tmp_path), "--json")
    document = msgspec.json.decode(out, type=Document)
    assert code == 1
    assert document.diagnostics[0].code == "MUP021"
    kinds = {"task", "join", "loop", "get", "think", "raise", "call", "query", "respond"}
    assert [kind for kind in kinds if f'"op": "{kind}"' not in out] == []


@pytest.mark.parametrize("example", ["acmeair", "jpetstore", "starter", "tms", "translator"])
def test_examples_have_the_form(example: str, capsys: pytest.CaptureFixture[str]) -> None:
    """So do those of whole applications."""
    folder = Path(__file__).parents[2] / "examples" / example
    _, out, _ = run(capsys, "paths", str(folder), "--json")
    assert msgspec.json.decode(out, type=Document).services


def test_file_in_the_documentation() -> None:
    """The schema that editors and scripts load is the one of the code, and allows fields of later versions."""
    file = Path(__file__).parents[2] / "docs/reference/paths-schema.json"
    assert json.loads(file.read_text(encoding="utf-8")) == schema()
    assert "additionalProperties" not in schema()["$defs"]["Finding"]
