"""A file is written whole or not at all, and nothing but that file changes."""

from __future__ import annotations

import os
import resource
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from mup.errors import ModelError, UsageError
from mup.whole_file import write_whole


def test_a_new_file_is_as_the_users_mask_says(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "model.json", "{}\r\n")
    finally:
        os.umask(before)
    assert (tmp_path / "model.json").read_bytes() == b"{}\r\n"
    assert stat.S_IMODE((tmp_path / "model.json").stat().st_mode) == 0o640
    assert [p.name for p in tmp_path.iterdir()] == ["model.json"]


def test_an_old_file_keeps_its_permissions(tmp_path: Path) -> None:
    old = tmp_path / "model.json"
    old.write_text("old", encoding="utf-8")
    old.chmod(0o600)
    write_whole(old, "new")
    assert old.read_text(encoding="utf-8") == "new"
    assert stat.S_IMODE(old.stat().st_mode) == 0o600


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link.json").symlink_to(tmp_path / "elsewhere" / "model.json")
    for text in ("first", "second"):
        write_whole(tmp_path / "link.json", text)
        assert (tmp_path / "link.json").is_symlink()
        assert (tmp_path / "elsewhere" / "model.json").read_text(encoding="utf-8") == text


def test_a_pipe_stays_a_pipe() -> None:
    """``/dev/stdout`` of a command whose output is piped."""
    program = "from mup.whole_file import write_whole; write_whole('/dev/stdout', 'the text')"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout == "the text"
    assert Path("/dev/stdout").is_symlink()


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    old = tmp_path / "model.json"
    old.write_text("old", encoding="utf-8")
    limits, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.getsignal(signal.SIGXFSZ)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(ModelError, match="cannot write the model: File too large") as caught:
            write_whole(old, "x" * 200_000, what="the model", error=ModelError)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert caught.value.where == str(old)
    assert old.read_text(encoding="utf-8") == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["model.json"]


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot write the picture: No such file") as caught:
        write_whole(tmp_path / "none" / "a.svg", "<svg/>", what="the picture")
    assert caught.value.where == str(tmp_path / "none" / "a.svg")
