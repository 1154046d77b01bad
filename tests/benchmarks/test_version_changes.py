"""A few of the changes of ``benchmarks/version_changes.py``: no false alarm, and regressions named with their line."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

import pytest
from version_changes import (
    APPLICATIONS,
    NULL_CHANGES,
    REGRESSIONS,
    copied,
    null_change,
    reported,
    verdict,
    version,
)

from analyzer.static.project_version import Version
from analyzer.static.versions import differences


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> object:
    """Return what gives an application as it is, analysed once."""
    folder = tmp_path_factory.mktemp("before")

    @cache
    def before(name: str) -> Version:
        return version(copied(name, folder))

    return before


@pytest.mark.slow
@pytest.mark.parametrize("kind", NULL_CHANGES)
def test_nothing_is_told_of_a_change_that_means_nothing(kind: str, versions: object, tmp_path: Path) -> None:
    """Two applications each, out of those that have something to change like that."""
    made = 0
    for seed, name in enumerate(random.Random(kind).sample(APPLICATIONS, len(APPLICATIONS))):
        project = null_change(name, kind, seed, tmp_path / name) if made < 2 else None
        if project is not None:
            made += 1
            assert reported(versions(name), version(project)) == ()  # type: ignore[operator]
    assert made == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fan-out", "jpetstore"])
@pytest.mark.parametrize("kind", REGRESSIONS)
def test_a_regression_is_told_as_what_it_is(kind: str, name: str, versions: object, tmp_path: Path) -> None:
    """With the line it was made in, and nothing of other lines."""
    project = copied(name, tmp_path)
    made = REGRESSIONS[kind](project, random.Random(1))
    if made is None:
        # Its services wait for every call, and have one worker each.
        assert (kind, name) in (("lost parallelism", "jpetstore"), ("smaller pool", "jpetstore"))
        return
    found = differences(versions(name), version(project))  # type: ignore[operator]
    assert verdict(made, found) == "", found
