"""Tests that run at the same time: two that look at the clock; beside them, what only computes.

The first two workers run what looks at the clock (tests/disturbance.py): most of it waits. The others, so many
that there are two workers more than processors, run the rest and give way (``nice``), so that no processor idles
while tests wait. Who has nothing left takes the next module of the rest. A module stays whole, for what its tests
share is made once per worker; modules with slow tests come first, or the last of them would run alone at the end.
Marks and imports decide, nothing here names a test.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import pytest
from disturbance import looks_at_the_clock
from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

FIRST = ("gw0", "gw1")
"""The workers of what looks at the clock."""
LEAST = 19
"""Importance, as Unix has it."""
MOST = 9
"""Workers: each may need a gigabyte."""
TESTS = Path(__file__).parent
CLOCK = " (clock)"
"""Ends the names of the first workers' units of work."""

meeting_place = pytest.StashKey[Path]()
first_collects = pytest.StashKey[BinaryIO]()


@pytest.hookimpl(tryfirst=True, optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return 0, no worker, for single modules, and where what is printed shall be seen."""
    folders = all((config.invocation_params.dir / argument).is_dir() for argument in config.args)
    if not folders or config.option.capture == "no":
        return 0
    return min(2 + _processors(), MOST)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Give way from the first test on that only computes: no others come after it."""
    if _name(item.config) is not None and not looks_at_the_clock(item) and os.nice(0) < LEAST:
        os.nice(LEAST)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile while the workers collect; without bytecode of the tests, let the first worker make it for all."""
    config = session.config
    if _name(config) is None and config.pluginmanager.has_plugin("dsession"):
        folder = tempfile.TemporaryDirectory(prefix="side-by-side-")
        config.add_cleanup(folder.cleanup)
        config.stash[meeting_place] = Path(folder.name)
        for path in (_compiling(config), _collecting(config)):
            path.touch()
        if config.rootpath != TESTS.parent:
            return
        if not any(TESTS.glob("__pycache__/test_*-pytest-*.pyc")):
            config.stash[first_collects] = lock = _collecting(config).open("wb")
            fcntl.flock(lock, fcntl.LOCK_EX)
        with _compiling(config).open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            # From here on the lock is the child's, which gives it back when the engine is compiled, or ends.
            child = subprocess.Popen(
                [sys.executable, str(TESTS / "compiled_first.py"), str(lock.fileno())],
                pass_fds=[lock.fileno()],
                stdin=subprocess.DEVNULL,
            )
        config.add_cleanup(child.wait)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: WorkerController) -> None:
    """Let the others collect when the first worker has."""
    if node.gateway.id == FIRST[0]:
        _others_may_collect(node.config)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: WorkerController) -> None:
    """Let the others collect if a worker has ended: perhaps it was the first."""
    _others_may_collect(node.config)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerController) -> None:
    """Tell a worker where it meets the others."""
    node.workerinput["meeting_place"] = str(node.config.stash[meeting_place])


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Let a worker keep the bytecode of the tests whatever Python is told: with it, collecting takes half as long."""
    told = sys.dont_write_bytecode
    if (name := _name(session.config)) is not None:
        sys.dont_write_bytecode = False
        if name != FIRST[0]:
            _wait_for(_collecting(session.config))
    try:
        return (yield)
    finally:
        sys.dont_write_bytecode = told


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put modules with slow tests first; tell the scheduler which tests look at the clock."""
    if _name(config) is not None:
        clock = {item: looks_at_the_clock(item) for item in items}
        slow = {(item.path, clock[item]) for item in items if item.get_closest_marker("slow")}
        items.sort(key=lambda item: (item.path, clock[item]) not in slow)
        if _name(config) == FIRST[0]:
            found = [item.nodeid for item in items if clock[item]]
            _clock_watchers(config).write_text(json.dumps(found))


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Let a worker ask about reruns without waiting.

    pytest-rerunfailures writes two small messages per test to the first process, and then waits for the answer:
    by default the second one is held back until the first is acknowledged, 40 ms later.
    """
    database = getattr(config, "failures_db", None)
    connection = getattr(database, "sock", None)
    if _name(config) is not None and isinstance(connection, socket.socket):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    """Wait in a worker until the engine is compiled."""
    if _name(session.config) is not None:
        _wait_for(_compiling(session.config))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduler:
    """Return what hands out the tests."""
    config.option.loadscopereorder = False  # the workers have put the modules in order
    return Scheduler(config, log)


class Scheduler(LoadScopeScheduling):
    """Gives what looks at the clock to two workers, and modules of the rest to whichever is free."""

    def schedule(self) -> None:
        """Begin, or go on with workers that have just come."""
        written = _clock_watchers(self.config)
        # Nothing is collected, and nothing written, where an argument names no test.
        self._clock_watchers = set(json.loads(written.read_text())) if written.exists() else set()
        super().schedule()

    def _split_scope(self, nodeid: str) -> str:
        """Return the unit of work a test belongs to."""
        module = nodeid.split("::", maxsplit=1)[0]
        return f"{module}{CLOCK}" if nodeid in self._clock_watchers else module

    def _reschedule(self, node: WorkerController) -> None:
        # A worker runs a test when it knows the next one.
        while not node.shutting_down and self._pending_of(self.assigned_work[node]) <= 2:
            self._assign_work_unit(node)

    def _assign_work_unit(self, node: WorkerController) -> None:
        unit = self._next_unit(node)
        if unit is None:
            node.shutdown()
        else:
            self.workqueue.move_to_end(unit, last=False)
            super()._assign_work_unit(node)

    def _next_unit(self, node: WorkerController) -> str | None:
        clock = [unit for unit in self.workqueue if unit.endswith(CLOCK)]
        # Others take over if one of the first workers has crashed.
        first = sorted(self.nodes, key=lambda n: (n.gateway.id not in FIRST, n.gateway.id))[: len(FIRST)]
        if clock and node in first:
            return clock[0]
        return next((unit for unit in self.workqueue if unit not in clock), None)

    def remove_node(self, node: WorkerController) -> str | None:
        """Forget a worker; return the test that made it crash, which is not tried again."""
        units = self.assigned_work.pop(node)
        left = [(unit, test) for unit, tests in units.items() for test, done in tests.items() if not done]
        if not left:
            return None
        unit, crashed = left[0]
        units[unit][crashed] = True
        self.workqueue.update((unit, tests) for unit, tests in units.items() if not all(tests.values()))
        for other in self.nodes:
            self._reschedule(other)
        return crashed


def _processors() -> int:
    """Return how many there are for us: a container may see more than it may use."""
    seen = len(os.sched_getaffinity(0))
    try:
        used, of = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        return max(1, min(seen, round(int(used) / int(of))))
    except (OSError, ValueError):  # no limit, which is called "max"
        return seen


def _name(config: pytest.Config) -> str | None:
    """Return the name of this worker; None: it is none."""
    name: str | None = getattr(config, "workerinput", {}).get("workerid")
    return name


def _meeting_place(config: pytest.Config) -> Path:
    return Path(config.workerinput["meeting_place"]) if _name(config) else config.stash[meeting_place]


def _compiling(config: pytest.Config) -> Path:
    """Return the file that is locked until the engine is compiled."""
    return _meeting_place(config) / "compiling"


def _collecting(config: pytest.Config) -> Path:
    """Return the file that is locked while the first worker collects and others shall not."""
    return _meeting_place(config) / "collecting"


def _wait_for(path: Path) -> None:
    """Wait until no process has a file locked; the lock of a process ends with it."""
    with path.open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)


def _others_may_collect(config: pytest.Config) -> None:
    if (lock := config.stash.get(first_collects, None)) is not None:
        lock.close()


def _clock_watchers(config: pytest.Config) -> Path:
    """Return the file in which a worker, for only workers collect, says which tests look at the clock."""
    return _meeting_place(config) / "clock_watchers.json"
