"""`mup paths --watch` lists what has changed, goes on after mistakes, and ends with Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import run

SERVICES = """\
from mup import EP, MS


class A(MS):
    @EP("/one/")
    def one(self, comm):
        comm.respond(1)

    @EP("/two/")
    def two(self, comm):
        comm.call("A", "/one/").get()
        comm.respond(2)
"""
TOML = '[project]\nname = "p"\n[services.A]\nclass = "services:A"\n'


class Watching:
    """A running `mup paths --watch`, whose output is in a file."""

    def __init__(self, folder: Path) -> None:
        self._output = folder / "output.txt"
        with self._output.open("wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "mup", "paths", str(folder), "--watch"],
                stdout=file,
                stderr=subprocess.STDOUT,
                env={**os.environ, "COLUMNS": "200"},
            )
        self._read = 0

    def next(self, *parts: str) -> str:
        """Wait until all parts are in what has been printed since the last time; return that."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            text = self._output.read_text(encoding="utf-8")[self._read :]
            if all(part in text for part in parts):
                self._read += len(text)
                return text
            assert self.process.poll() is None, text
            time.sleep(0.05)
        raise AssertionError(text)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "services.py").write_text(SERVICES)
    (tmp_path / "mup.toml").write_text(TOML)
    return tmp_path


@pytest.fixture
def watching(project: Path) -> Iterator[Watching]:
    found = Watching(project)
    yield found
    found.process.kill()
    found.process.wait()


@pytest.mark.slow
def test_what_changes_is_listed_again(watching: Watching, project: Path) -> None:
    """Only endpoints that differ; a mistake is said and mended; Ctrl-C ends it with the code of the last state."""
    file = project / "services.py"
    assert "call A/one/" in watching.next("/one/", "/two/", "respond")
    file.write_text(SERVICES + '\n    @EP("/three/")\n    def three(self, comm):\n        comm.respond(3)\n')
    said = watching.next("services.py changed", "/three/", "respond")
    assert "/two/" not in said
    file.write_text(SERVICES.replace('"/one/").get', '"/on/").get'))
    said = watching.next("services.py changed", "1 error")
    assert "did you mean '/one/'" in said
    (project / "mup.toml").write_text("[project\n")
    assert "mup: error: " in watching.next("mup.toml changed", "error")
    (project / "mup.toml").write_text(TOML)
    watching.next("mup.toml changed", "1 error")
    watching.process.send_signal(signal.SIGINT)
    assert watching.process.wait(20) == 1


@pytest.mark.parametrize("form", [("--json",), ("--format", "github")])
def test_documents_are_not_watched(
    project: Path, form: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, "paths", str(project), "--watch", *form)
    assert code == 2
    assert "--watch is for people" in out + err
