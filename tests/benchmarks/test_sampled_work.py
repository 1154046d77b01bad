"""The table of which work slows down as services do."""

from __future__ import annotations

import pytest
from sampled_work import KINDS, report


def windows(exponent: float, count: int = 8) -> list[dict[str, object]]:
    """Return windows whose processor time follows the objects with an exponent, and nothing else."""
    found: list[dict[str, object]] = []
    for n in range(count):
        slow = 1 + 0.1 * (n % 4)
        steady = 1 + 0.001 * (n % 2)
        times = {kind: slow if kind == "objects" else steady for kind in KINDS}
        one = {"system": "w", "clients": 1, "cpu": 100 * slow**exponent, "cycles": 100, "foreign": 0.0}
        found.append({**one, **times, "monitor": 0.0005 * steady})
    return found


def test_what_work_follows_is_found() -> None:
    table = [line.split(" | ") for line in report(windows(0.8)).splitlines()]
    row = dict(zip(table[0], table[2], strict=True))
    assert row["objects"] == "2.0%, 0.80"
    assert row["work differs by"] == "7.8%"
    assert row["arithmetic"].startswith("7.8%")


def test_disturbed_windows_do_not_count() -> None:
    disturbed = [{**window, "foreign": 0.5} for window in windows(1.0)]
    with pytest.raises(SystemExit, match="no load has 4 windows"):
        report(disturbed)
    assert "| w | 8 |" in report([*windows(1.0), *disturbed])
