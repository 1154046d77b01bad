"""Tests that look at the clock run two at a time, and every test runs once."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

import pytest

WRITES_DOWN = """
import os, pathlib, pytest

@pytest.fixture(autouse=True)
def _written_down(request):
    worker = os.environ.get("PYTEST_XDIST_WORKER", "none")
    with (pathlib.Path(__file__).parent / f"{worker}.txt").open("a") as file:
        file.write(f"{request.node.name} {os.nice(0)}\\n")
"""
MARKED = """
import pytest
pytestmark = pytest.mark.services

@pytest.mark.parametrize("n", range(5))
def test_clock(n):
    pass
"""
WAITS = """
import time

@pytest.mark.parametrize("n", range(3))
def test_waiting(n):
    time.sleep(0.01)
""".replace("import time", "import time, pytest")
COMPUTES = """
import pytest

@pytest.mark.parametrize("n", range(20))
def test_computing(n):
    sum(range(300000))
"""
SLOW = """
import pytest

@pytest.mark.slow
def test_slow_{n}():
    pass

def test_beside_slow_{n}():
    pass
"""
CRASHES = """
import os

def test_before():
    pass

def test_crash():
    os._exit(7)

def test_after():
    pass
"""


def _run(folder: Path, modules: dict[str, str], *arguments: str) -> tuple[dict[str, list[str]], Counter[str]]:
    """Return what ran where, in its order, and how often each test has been reported, failed ones with a ``!``."""
    (folder / "conftest.py").write_text(WRITES_DOWN)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    services: .\n    slow: .\n")
    for name, text in modules.items():
        (folder / f"test_{name}.py").write_text(text)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    for name in [n for n in environment if n.startswith("PYTEST_")]:
        del environment[name]
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "side_by_side",
            "-p",
            "no:hypothesispytest",  # half of the start of a process
            "--junitxml=all.xml",
            *(arguments or ["-n3", "."]),
        ],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        timeout=120,
        check=False,
    )
    ran = {file.stem: file.read_text().splitlines() for file in folder.glob("*.txt")}
    cases = ET.parse(folder / "all.xml").iter("testcase")
    return ran, Counter(f"{case.get('name')}{'!' * len(case)}" for case in cases)


@pytest.mark.slow
def test_what_looks_at_the_clock_has_workers_of_its_own(tmp_path: Path) -> None:
    """It runs in two workers before the rest; the rest gives way, beginning with slow modules."""
    modules = {f"a{n}": COMPUTES for n in range(4)} | {f"z{n}": SLOW.format(n=n) for n in range(2)}
    ran, reported = _run(tmp_path, {**modules, "marked": MARKED, "waits": WAITS})
    mine = os.nice(0)
    assert {ran[worker][0] for worker in ("gw0", "gw1")} == {
        f"test_clock[0] {mine}",
        f"test_waiting[0] {mine}",
    }
    for worker, lines in ran.items():
        watching = [line for line in lines if line.startswith(("test_clock", "test_waiting"))]
        assert lines[: len(watching)] == watching, worker
        assert {line.split()[1] for line in watching} <= {str(mine)}
        assert {line.split()[1] for line in lines[len(watching) :]} <= {"19"}
        assert not watching or worker in ("gw0", "gw1")
    assert ran["gw2"][0].startswith("test_slow")
    assert reported.total() == sum(map(len, ran.values())) == 5 + 3 + 4 * 20 + 2 * 2
    assert not any("!" in name for name in reported)


@pytest.mark.slow
def test_a_crash_fails_one_test(tmp_path: Path) -> None:
    """Those that the crashed worker still had to run are run by others, the one that crashed it is not."""
    ran, reported = _run(tmp_path, {"crashes": CRASHES, "computes": COMPUTES, "marked": MARKED})
    assert sorted(name for name in reported if "!" in name) == ["test_crash!"]
    assert reported.total() == 3 + 20 + 5
    lines = [line.split()[0] for lines in ran.values() for line in lines]
    assert sorted(lines) == sorted(set(lines)), "a test has run twice"


@pytest.mark.slow
def test_single_modules_need_no_workers(tmp_path: Path) -> None:
    """A developer who runs a module does not wait for workers to start."""
    ran, _ = _run(tmp_path, {"computes": COMPUTES}, "-nauto", "test_computes.py")
    assert list(ran) == ["none"]
    assert len(ran["none"]) == 20
