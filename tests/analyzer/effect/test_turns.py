"""How long are the turns in which two versions are explored?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from analyzer.calibration.explore import ExploreSettings
from analyzer.effect import interleaved
from analyzer.effect.interleaved import (
    FEWEST_FROM,
    FEWEST_TURNS,
    LOAD_SECONDS,
    SHORTEST_LOAD,
    Side,
    explore_in_turns,
)
from analyzer.static.application import Application
from mup.project import Project


@pytest.mark.parametrize("budget", [20.0, 60.0, 75.0, 180.0])
@pytest.mark.parametrize("around", [4.0, 6.5, 18.0])
def test_there_are_three_turns_where_the_time_allows(
    budget: float, around: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three or more from 60 s on, as short as that needs; longer ones, and more, only within the time."""
    now, loads = 0.0, []

    def explored(_: Side, directory: Path, settings: ExploreSettings) -> Path:
        nonlocal now
        now += around + settings.max_seconds
        loads.append(settings.max_seconds)
        return directory

    monkeypatch.setattr(interleaved, "_explored", explored)
    monkeypatch.setattr(interleaved, "load_info", lambda _: SimpleNamespace(windows=[]))
    application = Application(root=tmp_path, services=(), clients=(), diagnostics=())
    base = Side("BASE", "base", Project(name="p", root=tmp_path, source=tmp_path, services=()), application)
    head = replace(base, role="HEAD")
    runs = explore_in_turns(base, head, tmp_path, budget=budget, clock=lambda: now)
    turns = len(runs["BASE"])
    assert len(runs["HEAD"]) == turns
    assert turns >= (FEWEST_TURNS if budget >= FEWEST_FROM else 1)
    assert now <= budget or turns == (FEWEST_TURNS if budget >= FEWEST_FROM else 1)
    if now > budget:
        assert loads[2:] == [SHORTEST_LOAD] * len(loads[2:])
    assert all(SHORTEST_LOAD <= load <= LOAD_SECONDS for load in loads)
    if budget >= FEWEST_TURNS * 2 * (around + LOAD_SECONDS):
        assert loads == [LOAD_SECONDS] * len(loads)
