"""The pytest plugin: loaded by pytest wherever mup is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from analyzer.static.project_version import Difference
    from mup.service import MS
    from mup.testing.client import TestClient

MARKER = "mup_slo"
PROJECT = "mup_project"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the setting that says where the project is."""
    parser.addini(
        PROJECT, "project that mup_slo and mup_compare are about (default: the root folder)", default="."
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line(
        "markers",
        f"{MARKER}(*objectives, clients=, arrivals=, end='near', seconds=60, project=): fails if the "
        "calibrated model predicts that an objective, such as 'p95<=250ms', is missed",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Fail a test whose objectives are missed, before it runs."""
    problems = [text for marker in item.iter_markers(MARKER) for text in _missed(item.config, marker)]
    if problems:
        pytest.fail("\n".join(problems), pytrace=False)


def _missed(config: pytest.Config, marker: pytest.Mark) -> list[str]:
    from mup.cli.predictions.project_tests import missed  # noqa: PLC0415 - most tests have no objectives
    from mup.errors import MupError  # noqa: PLC0415

    settings: dict[str, Any] = dict(marker.kwargs)
    project = _project(config, settings.pop("project", None))
    try:
        return [f"{MARKER}: {text}" for text in missed(project, *marker.args, **settings)]
    except TypeError as error:
        if "unexpected keyword" not in str(error):
            raise
        return [f"{MARKER}: {error}"]
    except MupError as error:
        return [f"{MARKER}: {str(error).replace('--slo: ', '')}"]


def _project(config: pytest.Config, path: str | None = None) -> Path:
    return config.rootpath / (path or config.getini(PROJECT))


@pytest.fixture
def mup_compare(pytestconfig: pytest.Config) -> Callable[..., Sequence[Difference]]:
    """A function of a commit that returns what changed in meaning since then, as `mup compare` tells it.

    Its arguments: ``base``, a commit or folder; ``head``, the same, else what is in the project's folder now;
    ``fail_if``, conditions that make the test fail, from the calibrated model of the base, or with
    ``measure=True`` from both versions, started and measured for ``budget`` seconds; ``clients`` or
    ``arrivals``, the load.
    """
    from mup.cli.predictions.project_tests import broken  # noqa: PLC0415
    from mup.errors import MupError  # noqa: PLC0415

    def compare(
        base: str, head: str | None = None, *, fail_if: Sequence[str] = (), **settings: Any
    ) -> Sequence[Difference]:
        try:
            found, failing = broken(base, _project(pytestconfig), head, *fail_if, **settings)
        except MupError as error:
            pytest.fail(f"mup_compare: {error}", pytrace=False)
        if failing:
            pytest.fail("\n".join(f"mup_compare: {line}" for line in failing), pytrace=False)
        return found

    return compare


@pytest.fixture
def mup_client() -> Iterator[Callable[[type[MS]], TestClient]]:
    """A function that returns a `mup.testing.TestClient` of a service, torn down after the test."""
    # Imported here: most tests of a project that has mup installed may be about other things.
    from mup.testing.client import TestClient  # noqa: PLC0415

    with ExitStack() as stack:
        yield lambda service: stack.enter_context(TestClient(service))
