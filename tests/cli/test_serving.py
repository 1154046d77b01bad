"""What is served is compared with what the source shows, and what differs is said."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mup.cli.serving import SourceCheck, differences

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


@pytest.mark.slow
def test_analysis_in_the_background(project: Path) -> None:
    check = SourceCheck(project)
    check.start()
    end = time.monotonic() + 60
    said: list[str] = []
    while not said and time.monotonic() < end:
        time.sleep(0.05)
        said = check.look({"A": ["/a", "/live"]})
    assert [line.partition(":")[0] for line in said] == [SAID]
    assert check.look({"A": ["/a", "/live"]}) == [], "it is said once"
    check.start()
    check.close()
    assert check.look({"A": []}) == []


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
