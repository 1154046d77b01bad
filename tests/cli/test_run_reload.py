"""`mup run --reload` replaces services with changed source, and only by ones that start."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mup.runtime.deployment.watching import SourceWatcher

HELPER = "TEXT = {0!r}\n"
SERVICES = """
from mup import EP, MS
{0}
class A(MS):
    @EP("/a/")
    def a(self, comm): comm.respond(TEXT)
class B(MS):
    @EP("/b/")
    def b(self, comm): comm.respond("b")
"""


def write(file: Path, text: str) -> None:
    """Replace a file in one step, as editors do."""
    fresh = file.with_suffix(".new")
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(file)


def test_changes_are_seen_when_they_have_settled(tmp_path: Path) -> None:
    """Written, added and removed Python files count; hidden folders and environments do not."""
    for name in ("a.py", "b.py", "deep/c.py", ".hidden/d.py", "env/e.py", "f.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "env/pyvenv.cfg").write_text("")
    watcher = SourceWatcher(tmp_path)
    assert watcher.changed() == set()
    for name in ("deep/c.py", ".hidden/d.py", "env/e.py", "f.txt", "new.py"):
        (tmp_path / name).write_text("longer")
    (tmp_path / "b.py").unlink()
    assert watcher.changed() == set(), "not while files change"
    assert watcher.changed() == {tmp_path / name for name in ("b.py", "deep/c.py", "new.py")}
    assert watcher.changed() == set()


class Run:
    """A running `mup run --reload`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._errors = folder / "errors.txt"
        with self._errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "mup", "run", str(folder), "--reload", "--json"],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        assert self.process.stdout is not None
        lines = []
        for line in self.process.stdout:
            lines.append(line)
            if line == "}\n":
                break
        printed = json.loads("".join(lines))
        if "services" not in printed:
            self.process.kill()
            self.process.communicate()
            pytest.fail(f"services did not start:\n{self.said}")
        self.services: dict[str, Any] = printed["services"]

    def ask(self, service: str, path: str) -> str:
        """Send a request to the registered replica of a service."""
        connection = http.client.HTTPConnection(self.address(service), timeout=10)
        try:
            connection.request("GET", path)
            return connection.getresponse().read().decode()
        finally:
            connection.close()

    def address(self, service: str) -> str:
        """Return where a service listens: its port is fixed."""
        url: str = self.services[service]["replicas"][0]
        return url.removeprefix("http://")

    @property
    def said(self) -> str:
        """What it has printed."""
        return self._errors.read_text(encoding="utf-8")

    def wait_for(self, condition: Callable[[], Any]) -> None:
        """Wait until something is so."""
        give_up = time.monotonic() + 30
        while not condition():
            assert time.monotonic() < give_up, self.said
            assert self.process.poll() is None, self.said
            time.sleep(0.05)


BUSY = """
import os
import pathlib
from mup import EP, MS
from helper import TEXT
class A(MS):
    def setup(self):
        helper = pathlib.Path(__file__).with_name("helper.py")
        fresh = helper.with_suffix(f".{os.getpid()}")  # every worker sets up
        fresh.write_text("TEXT = 'changed while A started'\\n")
        if TEXT == "one":
            fresh.replace(helper)
    @EP("/a/")
    def a(self, comm): comm.respond(TEXT)
"""


@pytest.fixture
def run(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Run]:
    """A and B, of one module; A's port is fixed."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (tmp_path / "helper.py").write_text(HELPER.format("one"))
    first = getattr(request, "param", SERVICES.format("from helper import TEXT"))
    (tmp_path / "services.py").write_text(first)
    other = "from services import A as Base" if first == BUSY else "from services import B as Base"
    (tmp_path / "other.py").write_text(f"{other}\nclass B(Base): pass\n")
    (tmp_path / "mup.toml").write_text(
        f'[registry]\nport = 0\n[services.A]\nclass = "services:A"\nport = {port}\n'
        '[services.B]\nclass = "other:B"\n'
    )
    run = Run(tmp_path)
    yield run
    run.process.send_signal(signal.SIGINT)
    assert run.process.wait(20) == 0, run.said
    assert run.process.stdout is not None
    run.process.stdout.close()


@pytest.mark.slow
@pytest.mark.services
def test_services_follow_their_source(run: Run) -> None:
    """A change is served, a mistake is reported while the old source goes on, and a repair is served again."""
    assert run.ask("A", "/a/") == "one"
    write(run.folder / "helper.py", HELPER.format("two"))
    run.wait_for(lambda: "B was reloaded" in run.said)
    run.wait_for(lambda: run.ask("A", "/a/") == "two")
    write(run.folder / "other.py", "from services import B as Base\nclass B(Base): pass\n# more\n")
    run.wait_for(lambda: run.said.count("B was reloaded") == 2)
    assert run.said.count("A was reloaded") == 1, "A does not know this file"

    write(run.folder / "services.py", SERVICES.format("import broken"))
    run.wait_for(lambda: "A goes on as it was" in run.said)
    assert "No module named 'broken'" in run.said
    assert run.ask("A", "/a/") == "two"
    # A file that the running A has never loaded: it may be what was missing.
    write(run.folder / "broken.py", "")
    write(run.folder / "services.py", SERVICES.format("import broken; TEXT = 'three'"))
    run.wait_for(lambda: run.ask("A", "/a/") == "three")


@pytest.mark.slow
@pytest.mark.services
@pytest.mark.parametrize("run", [BUSY], indirect=True, ids=["changes"])
def test_what_changes_while_services_start_is_not_missed(run: Run) -> None:
    """Before the services are said to run, a file they have loaded already is another one."""
    run.wait_for(lambda: run.ask("A", "/a/") == "changed while A started")


@pytest.mark.slow
@pytest.mark.services
def test_a_syntax_error_is_told_once(run: Run) -> None:
    """For all services that have loaded the file, with its place and line, and without frames of imports."""
    write(run.folder / "helper.py", "TEXT = (\n")
    run.wait_for(lambda: "A, B go on as they were" in run.said)
    assert run.said.count("SyntaxError: '(' was never closed") == 1
    assert f"{run.folder / 'helper.py'}:1: SyntaxError" in run.said
    assert "importlib" not in run.said
    assert run.ask("A", "/a/") == "one"
    write(run.folder / "helper.py", HELPER.format("mended"))
    run.wait_for(lambda: run.ask("A", "/a/") == "mended")


def test_tracebacks_show_the_place_of_a_syntax_error_and_no_import_machinery(tmp_path: Path) -> None:
    """The user's frames only: those of an ``import`` statement belong to Python."""
    (tmp_path / "deep.py").write_text("x = (\n")
    (tmp_path / "shallow.py").write_text("import deep\n")
    code = (
        "import pathlib, sys\nfrom mup.runtime.process.service_log import set_up_logging\n"
        "from mup.runtime.process.importing import import_service\nset_up_logging('S', 0)\n"
        f"import_service('shallow:S', pathlib.Path({str(tmp_path)!r}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    logged = done.stderr.partition("Traceback")[0]
    assert [line.strip() for line in logged.splitlines()][1:] == [
        f"File '{tmp_path / 'shallow.py'}', line 1, in <module>",
        "import deep",
        f"File '{tmp_path / 'deep.py'}', line 1",
        "x = (",
        "SyntaxError: '(' was never closed (deep.py, line 1)",
    ]
