"""The tutorial works as written."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from doc_pages import ROOT, blocks

pytestmark = [pytest.mark.services, pytest.mark.slow]

TUTORIAL = ROOT / "docs" / "tutorial" / "first-prediction.md"

# All that is changed in the tutorial's commands: how long they may take. Each must be there to be changed.
SHORTER = {
    "--max-seconds 30": "--max-seconds 5",
    "--pool Stock=1,2 --precision 0.02": "--pool Stock=1,2 --precision 0.1",
    "--duration 10 --precision 0.02": "--duration 2 --warmup 1 --repeats 1 --void-retries 0 --precision 0.1",
}
FILE = re.compile(r"^`([\w.]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _commands() -> list[str]:
    lines = [line for block in blocks(TUTORIAL, "console") for line in block.text.splitlines()]
    assert all(line.startswith("$ mup ") for line in lines), lines
    text = "\n".join(line.removeprefix("$ mup ") for line in lines)
    for long, short in SHORTER.items():
        assert text.count(long) == 1, long
        text = text.replace(long, short)
    return text.splitlines()


def _mup(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mup", *shlex.split(line)],
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
        # Wide enough that no table wraps; the same characters as on the page whatever the locale.
        env=os.environ | {"COLUMNS": "200", "PYTHONUTF8": "1", "PYTHONPATH": str(ROOT)},
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the reader types: it holds `shop` with the tutorial's files."""
    place = tmp_path_factory.mktemp("tutorial")
    (place / "shop").mkdir()
    files = FILE.findall(TUTORIAL.read_text(encoding="utf-8"))
    assert [name for name, _ in files] == ["services.py", "workload.py", "mup.toml"]
    for name, text in files:
        (place / "shop" / name).write_text(text, encoding="utf-8")
    return place


@pytest.fixture(scope="module")
def done(folder: Path) -> dict[str, subprocess.CompletedProcess[str]]:
    """The tutorial's commands, run in order; by the command's name."""
    return {line.split()[0]: _mup(folder, line) for line in _commands()}


def test_every_command_works(done: dict[str, subprocess.CompletedProcess[str]]) -> None:
    """All commands exit with 0; `validate` may find the prediction too far off on a busy machine."""
    assert list(done) == ["paths", "explore", "model", "graph", "whatif", "validate"]
    for name, process in done.items():
        assert process.returncode in ((0, 1) if name == "validate" else (0,)), process.stderr
        assert "Traceback" not in process.stderr


def test_paths_prints_what_the_page_shows(done: dict[str, subprocess.CompletedProcess[str]]) -> None:
    """The output on the page is the real one."""
    (shown,) = blocks(TUTORIAL, "text")
    assert done["paths"].stdout.rstrip() == shown.text.rstrip()


def test_tables_have_the_columns_that_the_page_shows(
    done: dict[str, subprocess.CompletedProcess[str]],
) -> None:
    """The words above the line of each table on the page are printed by the command it follows."""
    name, shown = "", {}
    for block in blocks(TUTORIAL):
        if block.language == "console":
            name = block.text.split()[2]
        heading, line, _ = block.text.partition("──")
        if not block.language and line:
            shown[name] = heading.splitlines()[-1].split()
    assert list(shown) == ["explore", "whatif", "validate"]
    for name, words in shown.items():
        printed = done[name].stdout
        assert [word for word in words if word not in printed] == [], printed


def test_the_promised_files_exist(done: dict[str, Any], folder: Path) -> None:
    """The model, the picture and the report are there."""
    assert json.loads((folder / "shop/model.json").read_text())["schema"] == "mup-lqn/1"
    assert "</svg>" in (folder / "shop/model.svg").read_text()
    assert "</svg>" in (folder / "shop/whatif.svg").read_text()
    assert "</html>" in (folder / "shop/report.html").read_text()


def test_stock_is_the_bottleneck(done: dict[str, subprocess.CompletedProcess[str]], folder: Path) -> None:
    """With one worker Stock is the fullest of all and full in the end; a second worker shortens the response."""
    assert "task Stock" in done["whatif"].stdout
    assert "task Shop " not in done["whatif"].stdout.partition("task Shop %")[2], "named as bottleneck"
    (line,) = [line for line in _commands() if line.startswith("whatif")]
    shorter = line.replace("--clients 1,5,10,15", "--clients 1,10,15")
    assert shorter != line
    document = json.loads(
        _mup(folder, f"{shorter} --no-difference --no-interval --no-saturation --json").stdout
    )
    results = {
        (s["change"]["clients"], s["change"]["pool"]["Stock"]): s["result"] for s in document["scenarios"]
    }
    loads = sorted({clients for clients, _ in results})
    assert loads == [1, 10, 15]
    for clients in loads:
        tasks, host = results[clients, 1]["tasks"], results[clients, 1]["processors"]["host"]
        stock = tasks["Stock"]["utilization"]["mean"]
        assert stock > tasks["Shop"]["utilization"]["mean"]
        assert stock > host["utilization"]["mean"]

    def response(clients: int, pool: int) -> float:
        mean: float = results[clients, pool]["cycle"]["response_time"]["mean"]
        return mean

    assert results[10, 1]["tasks"]["Stock"]["utilization"]["mean"] > 0.75
    assert results[15, 1]["tasks"]["Stock"]["utilization"]["mean"] > 0.93
    assert response(15, 1) > 3 * response(1, 1)
    assert response(15, 2) < 0.6 * response(15, 1)


def test_nothing_is_left_running(done: dict[str, Any], folder: Path) -> None:
    """No process started by the tutorial's commands outlives them."""
    deadline = time.monotonic() + 5
    while (left := _processes_in(folder)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left == []


def _processes_in(folder: Path) -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").resolve(strict=True).is_relative_to(folder):
                found.append((process / "cmdline").read_text())
        except OSError:
            continue  # it has ended, or belongs to another user
    return found
