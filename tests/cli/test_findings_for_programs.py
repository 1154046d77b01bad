"""`mup paths --format`: findings as other programs read them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from command_line import run

SOURCE = """
from mup import EP, MS

class A(MS):
    @EP("/a, 100%")
    def a(self, comm):
        comm.respond(comm.call("B", "/b").get())
        while True:
            comm.call("B", "/b", {"x": 1})
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of source with one mistake twice, below the top of a git repository."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    folder = tmp_path / "a shop"
    folder.mkdir()
    (folder / "services.py").write_text(SOURCE, encoding="utf-8")
    # Files are named from the top of the repository, wherever the command runs.
    monkeypatch.chdir(folder)
    return folder


def test_workflow_commands(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One command per finding, nothing else; the exit code is that of the plain output."""
    code, out, err = run(capsys, "paths", str(folder), "--format", "github")
    assert (code, err) == (1, "")
    assert out.splitlines() == [
        "::error file=a shop/services.py,line=7,title=MUP011::no service is named 'B'%0Aknown: A",
        "::error file=a shop/services.py,line=9,title=MUP011::no service is named 'B'%0Aknown: A",
    ]


def test_sarif(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same as a SARIF log: the rule with its meaning once, a region of each finding."""
    code, out, err = run(capsys, "paths", str(folder), "--format", "sarif")
    assert (code, err) == (1, "")
    (scan,) = json.loads(out)["runs"]
    assert [rule["id"] for rule in scan["tool"]["driver"]["rules"]] == ["MUP011"]
    first = scan["results"][0]["locations"][0]["physicalLocation"]
    assert first["artifactLocation"]["uri"] == "a%20shop/services.py"
    assert first["region"] == {"startLine": 7, "startColumn": 32, "endLine": 7, "endColumn": 35}
    assert [one["level"] for one in scan["results"]] == ["error", "error"]


def test_without_findings(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No command, and a log without results, which tells code scanning that earlier ones are closed."""
    text = SOURCE.partition("    def a")[0] + "    def a(self, comm):\n        comm.respond(1)\n"
    (folder / "services.py").write_text(text, encoding="utf-8")
    assert run(capsys, "paths", ".", "--format", "github") == (0, "", "")
    code, out, _ = run(capsys, "paths", ".", "--format", "sarif")
    assert (code, json.loads(out)["runs"][0]["results"]) == (0, [])


def test_two_forms_at_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One output has one form."""
    code, out, _ = run(capsys, "paths", str(folder), "--format", "sarif", "--json")
    assert code == 2
    assert "two forms" in json.loads(out)["error"]["message"]
