"""The pytest plugin: loaded by pytest wherever mup is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from mup.service import MS
    from mup.testing.client import TestClient


@pytest.fixture
def mup_client() -> Iterator[Callable[[type[MS]], TestClient]]:
    """A function that returns a `mup.testing.TestClient` of a service, torn down after the test."""
    # Imported here: most tests of a project that has mup installed may be about other things.
    from mup.testing.client import TestClient  # noqa: PLC0415

    with ExitStack() as stack:
        yield lambda service: stack.enter_context(TestClient(service))
