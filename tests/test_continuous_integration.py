"""Does continuous integration run the very command that the README tells everybody to run?"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_continuous_integration_runs_the_command_of_the_readme() -> None:
    """The whole of it, as it stands there, and nothing else that would run tests."""
    readme = (ROOT / "README.md").read_text()
    (command,) = [line for line in readme.splitlines() if line.endswith("-m pytest")]
    script = (ROOT / ".ci" / "run").read_text()
    lines = [line for line in script.splitlines() if "pytest" in line or "test_command" in line]
    found, run = (line for line in lines if not line.lstrip().startswith("#"))
    pattern = re.fullmatch(r"test_command=\$\(grep -m1 -E '(.+)' README\.md\)", found)
    assert pattern is not None
    assert [line for line in readme.splitlines() if re.search(pattern[1], line)] == [command]
    assert run == 'bash -euo pipefail -c "$test_command"'
