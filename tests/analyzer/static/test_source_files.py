"""Which files and folders of a source folder are looked into."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from analyzer.static import source_files
from analyzer.static.source_files import content, entered, kind_of


@pytest.mark.parametrize(
    ("name", "searched"),
    [
        ("shop", True),
        ("tests", True),
        (".git", False),
        ("__pycache__", False),
        ("venv", False),
        ("build", False),
    ],
)
def test_folders_that_hold_no_source_are_not_entered(tmp_path: Path, name: str, searched: bool) -> None:
    (tmp_path / name).mkdir()
    assert entered(tmp_path / name) is searched


def test_links_and_environments_are_not_entered(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "shop")
    (tmp_path / "env").mkdir()
    (tmp_path / "env" / "pyvenv.cfg").touch()
    assert [entered(tmp_path / name) for name in ("shop", "link", "env")] == [True, False, False]


def test_what_a_path_leads_to(tmp_path: Path) -> None:
    (tmp_path / "file.py").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "broken.py").symlink_to(tmp_path / "nothing")
    (tmp_path / "link.py").symlink_to(tmp_path / "file.py")
    os.mkfifo(tmp_path / "pipe.py")
    found = [
        kind_of(tmp_path / n)
        for n in ("file.py", "link.py", "folder", "broken.py", "pipe.py", "none", "a\0b")
    ]
    assert found == ["file", "file", "folder", "", "", "", ""]


def test_what_is_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file.py").write_bytes(b"x = 1\n")
    assert content(tmp_path / "file.py") == b"x = 1\n"
    assert content(tmp_path / "none.py") is None
    monkeypatch.setattr(source_files, "MAX_SEARCHED", 3)
    assert content(tmp_path / "file.py") is None
