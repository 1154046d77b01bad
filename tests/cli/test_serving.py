"""What is served is compared with what the source shows, and what differs is said."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mup.cli.services.serving import ANALYZER, SourceCheck, differences
from mup.project import load_project

SERVICES = """
from mup import EP, MS, Client
import outside_library

@outside_library.probes
class A(MS):
    runtime = "thread"

    @EP("/a")
    def a(self, comm):
        comm.respond(1)

class User(Client):
    async def scenario(self, comm):
        await comm.call("A", "/a")
"""
LIBRARY = """
from mup import EP

def probes(cls):
    cls.live = EP("/live")(lambda self, comm: comm.respond("ok"))
    return cls
"""
SAID = "A serves '/live', which is an endpoint that the analysis of its source does not find"


def test_differences_in_words() -> None:
    """Both ways; services that do not run here are not compared."""
    found = {"A": ["/a", "/b"], "B": ["/b"], "C": ["/c"]}
    assert differences(found, {"A": ["/b", "/a"], "C": ["/c"]}) == []
    more, less = differences(found, {"A": ["/a", "/b", "/x", "/y"], "B": []})
    assert more.startswith(
        "A serves '/x', '/y', which are endpoints that the analysis of its source does not find"
    )
    assert less.startswith("B does not serve '/b', which the analysis of its source finds")


def test_the_analyzer_is_where_it_is_looked_for() -> None:
    """Another analyzer analyses again."""
    assert (ANALYZER / "translate.py").is_file()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose service has an endpoint of a library outside of its source."""
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "outside_library.py").write_text(LIBRARY, encoding="utf-8")
    paths = [str(tmp_path / "library"), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    folder = tmp_path / "app"
    folder.mkdir()
    (folder / "services.py").write_text(SERVICES, encoding="utf-8")
    text = '[project]\nname = "p"\nclient = "services:User"\n[services.A]\nclass = "services:A"\n'
    (folder / "mup.toml").write_text(text, encoding="utf-8")
    return folder


SERVED = {"A": ["/a", "/live"]}


def looked(check: SourceCheck) -> list[str]:
    """Wait for the analysis; return what is said, without remedies."""
    end = time.monotonic() + 60
    said: list[str] = []
    while not said and time.monotonic() < end:
        time.sleep(0.05)
        said = check.look(SERVED)
    return [line.partition(":")[0] for line in said]


@pytest.mark.slow
def test_analysis_in_the_background(project: Path) -> None:
    """It is said once, and nothing after the end."""
    check = SourceCheck(project, load_project(project))
    check.start()
    assert check.look(SERVED) == [], "nothing waits for it"
    assert looked(check) == [SAID]
    assert check.look(SERVED) == [], "it is said once"
    check.start()
    check.close()
    assert check.look(SERVED) == []


@pytest.mark.slow
@pytest.mark.parametrize("changed", ["services.py", "mup.toml"])
def test_nothing_is_analysed_again_until_a_file_changes(project: Path, changed: str) -> None:
    """The next start has the answer at once; another source or other settings are analysed."""
    loaded = load_project(project)
    with closing(SourceCheck(project, loaded)) as check:
        check.start()
        assert looked(check) == [SAID]
    with closing(SourceCheck(project / "mup.toml", loaded)) as check:
        check.start()
        assert [line.partition(":")[0] for line in check.look(SERVED)] == [SAID]
        with (project / changed).open("a", encoding="utf-8") as file:
            file.write("# more\n")
        check.start()
        assert check.look(SERVED) == [], "it is there only when a process has found it"
        assert looked(check) == [SAID]
    (project / ".mup" / "endpoints.json").write_text("[1", encoding="utf-8")
    with closing(SourceCheck(project, loaded)) as check:
        check.start()
        assert looked(check) == [SAID], "a file that cannot be read is made anew"
        (project / "mup.toml").unlink()
        check.start()
        assert check.look(SERVED) == [], "a project that has gone is no reason to stop"


@pytest.mark.slow
def test_run_says_it(project: Path) -> None:
    with (project / "errors.txt").open("w+b") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "mup", "run", str(project)], stdout=subprocess.DEVNULL, stderr=errors
        )
        try:
            end = time.monotonic() + 60
            while SAID not in (project / "errors.txt").read_text("utf-8") and time.monotonic() < end:
                time.sleep(0.1)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(20)
    assert f"mup: {SAID}" in (project / "errors.txt").read_text("utf-8")


@pytest.mark.slow
def test_explore_says_it(project: Path) -> None:
    command = [sys.executable, "-m", "mup", "explore", str(project), "--no-profile-host", "--warmup", "0.2"]
    done = subprocess.run(
        [*command, "--max-seconds", "2", "--round-seconds", "0.3"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"mup: {SAID}" in done.stderr


def test_a_signal_while_the_analysis_is_started_leaves_no_process(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen[bytes]] = []
    start = subprocess.Popen

    def interrupted(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        started.append(start(*arguments, **options))
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.05)
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    with pytest.raises(KeyboardInterrupt), closing(SourceCheck(project, load_project(project))) as check:
        check.start()
    (process,) = started
    assert process.returncode == -signal.SIGKILL
