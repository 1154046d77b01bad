"""Endpoints are found where they are declared, and the public API where users expect it."""

from __future__ import annotations

import subprocess
import sys

import pytest

import mup
from mup.communication import Headers
from mup.errors import DeploymentError
from mup.service import EP, MS, endpoints_of


class Base(MS):
    @EP("/a/", name="first")
    def a(self, comm: object) -> None: ...

    @EP("/b/")
    def b(self, comm: object) -> None: ...


def test_endpoints_are_inherited() -> None:
    """A subclass serves what its bases serve, then its own; names default to the method's."""

    class Derived(Base):
        @EP("/c/")
        def c(self, comm: object) -> None: ...

    found = endpoints_of(Derived)
    assert [(e.path, e.name, e.method) for e in found.values()] == [
        ("/a/", "first", "a"),
        ("/b/", "b", "b"),
        ("/c/", "c", "c"),
    ]


def test_override_decides_for_itself() -> None:
    """An override without @EP is no endpoint; with @EP it may change the path."""

    class Derived(Base):
        def a(self, comm: object) -> None: ...

        @EP("/new/")
        def b(self, comm: object) -> None: ...

    assert list(endpoints_of(Derived)) == ["/new/"]


@pytest.mark.parametrize("path", ["no-slash", "/a?b", "/healthz", "/readyz", "/mup/status", 5])
def test_paths_that_cannot_be_served(path: str) -> None:
    """A path without slash, with a query, or one of mup's own is refused."""
    bad = type("Bad", (MS,), {"x": EP(path)(lambda self, comm: None)})
    with pytest.raises(DeploymentError, match="path"):
        endpoints_of(bad)


def test_names_are_unique() -> None:
    """Two endpoints cannot share a name, nor can a name look like a path."""
    for name in ("b", "x/y"):
        bad = type("Bad", (Base,), {"x": EP("/x/", name=name)(lambda self, comm: None)})
        with pytest.raises(DeploymentError, match="endpoint name"):
            endpoints_of(bad)


def test_headers_are_case_insensitive() -> None:
    """Names match in any case; repeated ones are joined."""
    headers = Headers([("X-A", "1"), ("x-a", "2"), ("B", "3")])
    assert headers["x-A"] == "1, 2"
    assert "X-a" in headers
    assert "c" not in headers
    assert dict(headers) == {"x-a": "1, 2", "b": "3"}


def test_public_names() -> None:
    """The package exports exactly the public API, lazily."""
    assert sorted(mup.__all__) == ["Client", "Communication", "EP", "MS", "MupFuture", "literal"]
    assert all(getattr(mup, name) for name in mup.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        mup.Nothing  # noqa: B018


@pytest.mark.parametrize(
    ("module", "strangers"),
    [
        ("mup", "aiohttp,numpy,asyncio"),
        ("mup.lqn.model", "aiohttp,mup.service"),
        ("mup.service", "aiohttp,asyncio,numpy"),
        (
            "mup.runtime.replica",
            "aiohttp,numpy,scipy,simpy,libcst,pymongo,motor,simulator,analyzer,click,rich",
        ),
        ("mup_registry.server", "numpy,simpy,libcst,pymongo,simulator,analyzer,uvloop,mup.lqn"),
    ],
)
def test_imports_stay_in_their_lane(module: str, strangers: str) -> None:
    """Importing one part never drags in another one's dependencies."""
    check = f"import sys, {module}; print([s for s in {strangers!r}.split(',') if s in sys.modules])"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
