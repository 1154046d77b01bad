"""Calibration takes the errors of predictions of other systems into account."""

from __future__ import annotations

from itertools import pairwise

from analyzer.calibration.of_project import known_discrepancy


def test_what_is_shipped_covers_every_figure_at_every_load() -> None:
    """The test bed's training half has said something about each figure, from several systems."""
    found = known_discrepancy()
    assert found is not None
    assert set(found.points) == {"response_time", "p95", "throughput", "utilization"}
    assert found.systems >= 4
    assert found.points_used >= 3 * found.systems
    for points in found.points.values():
        assert all(
            0 <= load <= 1 and 0 <= deviation < 0.3 and abs(bias) < 0.3 for load, deviation, bias in points
        )
        assert all(a[0] < b[0] for a, b in pairwise(points))
