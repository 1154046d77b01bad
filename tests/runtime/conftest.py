"""Fixtures of the runtime's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from deployments import SOURCE, System, make_project, running


@pytest.fixture(scope="session")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """One, Pair and Caller, shared by all tests that break nothing."""
    project = make_project(tmp_path_factory.mktemp("shop"), SOURCE, "One", "Pair", "Caller")
    with running(project) as system:
        yield system
