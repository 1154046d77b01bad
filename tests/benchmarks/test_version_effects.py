"""Changes of ``benchmarks/version_effects.py``: each is told, at the line it was planted in."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from version_changes import version
from version_effects import REGRESSIONS, inert, summary, written

from analyzer.static.versions import differences


@pytest.mark.parametrize("kind", [*REGRESSIONS, "inert"])
def test_a_planted_change_is_told_at_its_line(kind: str, tmp_path: Path) -> None:
    """So that a culprit can be compared with it; inert changes are in other endpoints."""
    before, after = (written("gallery", tmp_path / side) for side in ("base", "head"))
    source = random.Random(1)
    planted = None if kind == "inert" else REGRESSIONS[kind](after, source)
    inert(after, source, 2, planted)
    found = differences(version(before), version(after))
    lines = {(one.file, one.line) for one in found}
    if planted is None:
        assert [one.kind for one in found] == ["local work"] * 2
    else:
        assert (planted.file, planted.line) in lines
        assert len(lines) == 3


def test_a_regression_is_as_large_as_its_other_run_says() -> None:
    """One that is caught in one run of two, among them an inert line that is blamed."""

    def run(repetition: int, mean: float, low: float) -> dict[str, Any]:
        p95 = {"mean": mean, "low": low, "high": 0.3}
        shares = [
            {"lines": [["s.py", 3]], "p95": [mean, low, 0.3]},
            {"lines": [["s.py", 9]], "p95": [0.01, low, 0.02]},
        ]
        same = {"kind": "more work", "project": "p", "number": 1, "planted": ["s.py", 3]}
        return {**same, "repetition": repetition, "figures": {"p95": p95}, "shares": shares}

    runs = [run(0, 0.05, -0.1), run(1, 0.15, 0.004)]
    assert summary(runs, runs) == (
        "2 measured, any figure worse beyond doubt 1; p95 >= 10%: 0 of 1 caught; direction wrong 0;"
        " line right 1 of 1; inert lines blamed 1 of 2"
    )
