"""The overview of the workload package says what is there."""

from __future__ import annotations

from pathlib import Path

import mup.workload


def test_the_overview_has_a_line_for_every_module() -> None:
    """And none for a module that is gone or has moved."""
    lines = (mup.workload.__doc__ or "").strip().splitlines()[2:]
    modules = {file.stem for file in Path(mup.workload.__path__[0]).glob("[!_]*.py")}
    assert {line.split()[0] for line in lines} == modules
