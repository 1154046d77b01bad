"""Continuous integration runs the command of the README, and every test."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_continuous_integration_runs_the_command_of_the_readme() -> None:
    """The whole of it, as it stands there; then what that leaves out, and nothing else that would run tests."""
    readme = (ROOT / "README.md").read_text()
    (command,) = [line for line in readme.splitlines() if line.endswith("-m pytest")]
    script = (ROOT / ".ci" / "run").read_text()
    lines = [line for line in script.splitlines() if "pytest" in line or "test_command" in line]
    found, run, rest = (line for line in lines if not line.lstrip().startswith("#"))
    pattern = re.fullmatch(r"test_command=\$\(grep -m1 -E '(.+)' README\.md\)", found)
    assert pattern is not None
    assert [line for line in readme.splitlines() if re.search(pattern[1], line)] == [command]
    assert run == 'bash -euo pipefail -c "$test_command"'
    assert rest == ".venv/bin/python -m pytest -m repeats"


def test_the_command_leaves_nothing_else_out() -> None:
    """By default only what is marked ``repeats`` is not selected."""
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]["addopts"]
    assert [option for option in options if option.startswith(("-m", "-k", "--ignore", "--deselect"))] == [
        "-m=not repeats"
    ]
