"""Compiled code is found, whole and of the current sources; and what happens otherwise."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mup.errors import UsageError
from mup.native import loading
from mup.native.building import NoCompilerError, build, compilers, works
from mup.native.libraries import ESTIMATION, SIMULATOR, Library
from mup.native.loading import cache_folder, is_compiled, loaded, opened
from mup.native.sealing import is_whole

SMALL = """
from mup.native.binding import compiled

@compiled
def doubled(a: int) -> int:
    return 2 * a
"""

CALL = """
from analyzer.estimation.krylov import _terms
print(_terms(9.0))
"""


def small(folder: Path, text: str = SMALL) -> Library:
    """Write a library of one function; its name is new for every folder, as is that of its module."""
    name = f"small_{folder.name}"
    (folder / f"{name}.py").write_text(text)
    return Library(name, modules=(name,), others=())


def test_what_is_compiled_is_kept_and_found_again(uncompiled: Path) -> None:
    """In the user's cache, once per state of the sources."""
    assert not is_compiled(ESTIMATION)
    _, manifest = loaded(ESTIMATION)
    kept = cache_folder() / ESTIMATION.file_name()
    assert kept.parent.parent.parent == uncompiled / "cache"
    assert is_whole(kept)
    assert any(name.startswith("analyzer.estimation.markov.") for name in manifest)
    loading._libraries.clear()
    before = kept.stat().st_mtime_ns
    assert is_compiled(ESTIMATION)
    loaded(ESTIMATION)
    assert kept.stat().st_mtime_ns == before


def test_a_changed_source_makes_another_library(tmp_path: Path) -> None:
    """It is named after the sources, so an old one is not even looked at."""
    first = small(tmp_path).file_name(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    small(other)
    changed = Library(small(tmp_path).name, modules=small(tmp_path).modules, others=())
    (other / f"{changed.name}.py").write_text(SMALL.replace("2 * a", "3 * a"))
    assert first.startswith(f"{changed.name}-{sys.platform}-")
    assert changed.file_name(other) != first


@pytest.mark.slow
def test_a_library_that_was_cut_off_is_compiled_again(uncompiled: Path) -> None:
    """It is not loaded: that would end the process."""
    folder = cache_folder()
    folder.mkdir(parents=True)
    broken = folder / ESTIMATION.file_name()
    broken.write_bytes(b"\x7fELF" + bytes(5000))
    assert not is_compiled(ESTIMATION)
    loaded(ESTIMATION)
    assert is_whole(broken)
    assert uncompiled in broken.parents


def test_a_cache_that_cannot_be_written_to_is_done_without(
    uncompiled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiled for this process alone."""
    (uncompiled / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(uncompiled / "file"))
    _, manifest = loaded(ESTIMATION)
    assert manifest


def test_without_a_compiler_the_message_says_what_to_install(
    uncompiled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One message, and no traceback of a linker."""
    monkeypatch.setattr("mup.native.building.compilers", lambda: iter(()))
    with pytest.raises(UsageError) as refused:
        loaded(SIMULATOR)
    assert "the simulator has not been compiled for this machine" in refused.value.message
    assert "there is no C compiler" in refused.value.message
    assert "pip install ziglang" in refused.value.hint
    assert not list(uncompiled.glob("cache/mup/native/*.so"))


def test_a_compiler_that_fails_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next one is tried; when none is left, the last answer is shown."""
    library = small(tmp_path)
    failing = tmp_path / "cc"
    failing.write_text("#!/bin/sh\necho 'no space left' >&2\nexit 3\n")
    failing.chmod(0o755)
    everything = list(compilers())
    assert not works([str(failing)])
    monkeypatch.setenv("CC", str(failing))
    assert next(compilers()) == [str(failing)]
    assert opened(build(library, tmp_path / "built", tmp_path))[1]
    assert everything
    monkeypatch.setattr("mup.native.building.compilers", lambda: iter([[str(failing)]]))
    with pytest.raises(NoCompilerError, match="no space left"):
        build(library, tmp_path / "other", tmp_path)
    assert not list((tmp_path / "other").iterdir())


@pytest.mark.slow
def test_two_first_commands_compile_once(tmp_path: Path) -> None:
    """The second waits for the first; both get what it made."""
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    code = "from mup.native import loading; loading.BUILT = loading.BUILT / 'nothing'\n" + CALL
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    answers = [process.communicate() for process in processes]
    assert len({out for out, _ in answers}) == 1, answers
    assert [err for _, err in answers] == ["", "", ""]
    assert [file.name for file in (tmp_path / "mup" / "native").glob("*.so")] == [ESTIMATION.file_name()]
