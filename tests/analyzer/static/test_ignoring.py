"""`# mup: ignore[CODE]` takes back warnings and infos, never errors."""

from __future__ import annotations

from pathlib import Path

import pytest
from source_outline import analyse_files, endpoint_source

from analyzer.static.ignoring import not_ignored, unknown_codes

AFTER = 'comm.respond(1)\ncomm.call("B", "/b/").get()'


def found(folder: Path, comment: str, body: str = AFTER) -> list[str]:
    """Return the codes of a body with a comment behind each of its lines."""
    text = "\n".join(f"{line}  {comment}" for line in body.split("\n"))
    return [one.code for one in analyse_files(folder, app=endpoint_source(text)).diagnostics]


@pytest.mark.parametrize(
    ("comment", "left"),
    [
        ("", ["MUP022"]),
        ("# mup: ignore[MUP022]", []),
        ("# meant so  # mup:ignore[MUP008, MUP022]", []),
        ("# mup: ignore[MUP008]", ["MUP022"]),
        ("# mup: ignore", ["MUP022"]),
    ],
)
def test_an_info(comment: str, left: list[str], tmp_path: Path) -> None:
    """Only the codes in brackets are taken back."""
    assert found(tmp_path, comment) == left


def test_an_error_stays(tmp_path: Path) -> None:
    """A model of only a part of the code would be wrong."""
    assert found(tmp_path, "# mup: ignore[MUP011]", 'comm.respond(comm.call("Bb", "/b/").get())') == [
        "MUP011"
    ]


def test_a_text_is_no_comment(tmp_path: Path) -> None:
    """What stands inside of quotation marks says nothing to mup."""
    body = 'comm.respond(1)\nf = comm.call("B", "/b/", "# mup: ignore[MUP022]")\nf.get()'
    assert found(tmp_path, "", body) == ["MUP022"]
    assert found(tmp_path, "", body.replace("MUP022", "MUP22")) == ["MUP022"]


def test_a_code_that_does_not_exist(tmp_path: Path) -> None:
    """It is reported where it stands, with the closest one; the others of the comment count."""
    text = endpoint_source("comm.respond(1)  # mup: ignore[MUP22, MUP008]")
    [one] = analyse_files(tmp_path, app=text).diagnostics
    line = text.split("\n")[one.line - 1]
    assert (one.code, line[one.column - 1 : one.end_column - 1]) == ("MUP072", "MUP22")
    assert "MUP022" in one.hint


def test_files_that_are_gone(tmp_path: Path) -> None:
    """What cannot be read takes nothing back."""
    text = endpoint_source(AFTER)
    diagnostics = analyse_files(tmp_path, app=text).diagnostics
    assert not_ignored(diagnostics, tmp_path / "elsewhere") == diagnostics
    assert [*unknown_codes(["app.py"], tmp_path / "elsewhere")] == []
