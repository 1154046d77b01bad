"""The speed probe: amount of work, affinity, brackets, JSON."""

from __future__ import annotations

import gc
import os

import pytest

from mup.errors import LogError
from mup.workload import speed
from mup.workload.speed import Bracket, Speed, probe


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a probe last milliseconds."""
    monkeypatch.setattr(speed, "UNITS", 2)
    monkeypatch.setattr(speed, "WARM_UP", 1)


def test_the_work_is_always_the_same() -> None:
    """Two fresh pieces of reference work compute the same number, and a longer one another."""
    assert speed.ReferenceWork().run(2) == speed.ReferenceWork().run(2)
    assert speed.ReferenceWork().run(1) != speed.ReferenceWork().run(2)


@pytest.mark.usefixtures("short")
def test_probe_leaves_the_process_as_it_was() -> None:
    """Affinity and garbage collection are what they were before the probe."""
    allowed = os.sched_getaffinity(0)
    found = probe()
    assert os.sched_getaffinity(0) == allowed
    assert gc.isenabled()
    assert len(found.cores) == len(found.wall_ratio) == min(len(allowed), speed.MAX_CORES)
    assert found.pinned
    assert all(value > 0 for value in found.cores)


@pytest.mark.usefixtures("short")
def test_probe_without_pinning_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where affinity is refused there is one figure, marked as not pinned."""

    def refuse(_pid: int, _cores: set[int]) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "sched_setaffinity", refuse)
    found = probe()
    assert not found.pinned
    assert len(found.cores) == 1


def test_jump_is_the_largest_change_of_a_core() -> None:
    """A jump of one core counts even if the mean did not change."""
    bracket = Bracket(Speed((1000.0, 1000.0)), Speed((900.0, 1100.0)))
    assert bracket.jump == pytest.approx(0.1)
    assert not bracket.steady
    assert bracket.speed == pytest.approx(1000.0)
    assert Bracket(Speed((1000.0,)), Speed((1039.0,))).steady


def test_jump_without_pinning_compares_means() -> None:
    """A probe that was not pinned cannot be compared core by core."""
    bracket = Bracket(Speed((1000.0, 900.0)), Speed((950.0,), pinned=False))
    assert bracket.jump == pytest.approx(0.0)


def test_disturbance_is_recognised_by_the_wall_clock() -> None:
    """Wall time above processor time means another process had the core."""
    assert Speed((1000.0,), (1.2,)).disturbed
    assert not Speed((1000.0,), (1.01,)).disturbed


def test_speed_round_trip() -> None:
    """What was written is read again."""
    found = Speed((1000.5, 999.25), (1.0, 1.01), pinned=False)
    assert Speed.from_json(found.to_json()) == found


@pytest.mark.parametrize(
    "data", [{}, {"cores": []}, {"cores": [0]}, {"cores": "x"}, {"cores": [1], "pinned": 3}, 7]
)
def test_wrong_json_is_refused(data: object) -> None:
    """Anything that is no probe is named in one message."""
    with pytest.raises(LogError, match="not the result of a speed probe"):
        Speed.from_json(data)  # type: ignore[arg-type]
