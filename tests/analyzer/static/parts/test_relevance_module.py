"""Which files can define services."""

from __future__ import annotations

from pathlib import Path

from analyzer.static.relevance import facts, relevant_files

FILES = {
    "a.py": b"from mup import MS\nclass A(MS): pass\n",
    "b.py": b"import a\nclass B(a.A): pass\n",
    "c.py": b"class C: pass\n",
    "d.py": b"import a\nx = 1\n",
    "e.py": b"# coding: utf-7\nclass E: pass\n",
}


def test_only_what_reaches_the_framework_and_defines_something_matters() -> None:
    root = Path("/src")
    found = relevant_files(root, [root / name for name in FILES], lambda file: FILES[file.name])
    assert [file.name for file in found] == ["a.py", "b.py", "e.py"]


def test_words_of_import_statements() -> None:
    known = facts(b"from . import (x,\n    y)\nfrom p.q import r  # mup\n")
    assert known is not None
    assert known.relative
    assert {b"x", b"y", b"p", b"q", b"r"} <= known.words
    assert facts(None) is None
