"""Queries on auxiliary threads: parallel, logged on their thread, never hanging."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from mup.databases.runner import QueryRunner
from mup.databases.server import DatabaseServer
from mup.errors import CallTimeoutError, QueryError, UnknownDatabaseError
from mup.events.record import Event

pytestmark = pytest.mark.services


def _ignore(event: Event, failed: bool) -> None:
    pass


@pytest.fixture
def runner(embedded: DatabaseServer) -> Iterator[QueryRunner]:
    def resolve(name: str) -> str:
        if name != "db":
            raise UnknownDatabaseError(f"no database {name!r}")
        return embedded.uri

    runner = QueryRunner(resolve)
    yield runner
    runner.close()


def test_a_query_is_logged_on_its_own_thread(runner: QueryRunner) -> None:
    """The records contactDest and commFinish come in order, from one thread that is not the caller's."""
    log = []
    handle = runner.submit(
        "db", "c", {}, lambda event, failed: log.append((event, failed, threading.get_ident()))
    )
    assert handle.wait(5) == []
    assert [entry[:2] for entry in log] == [(Event.CONTACT_DEST, False), (Event.COMM_FINISH, False)]
    assert len({entry[2] for entry in log} | {threading.get_ident()}) == 2


def test_wait_may_be_repeated(runner: QueryRunner) -> None:
    """A second wait returns the same answer at once."""
    handle = runner.submit("db", "c", {"$command": "count"}, _ignore)
    assert handle.wait(5) is handle.wait(0)
    assert handle.ready


def test_queries_run_in_parallel(runner: QueryRunner) -> None:
    """As many queries are under way at once as were submitted: none waits for another's thread."""
    together = threading.Barrier(20, timeout=5)
    meet = lambda event, failed: together.wait() if event is Event.CONTACT_DEST else None  # noqa: E731
    for handle in [runner.submit("db", "c", {}, meet) for _ in range(20)]:
        assert handle.wait(10) == []


def test_a_query_runs_while_the_worker_computes(runner: QueryRunner) -> None:
    """Local work of 50 ms hides the whole query: the answer is there when the work is done."""
    runner.submit("db", "c", {}, _ignore).wait(5)
    handle = runner.submit("db", "c", {}, _ignore)
    end = time.thread_time() + 0.05
    while time.thread_time() < end:
        pass
    assert handle.ready


def test_threads_are_kept_and_reused(runner: QueryRunner) -> None:
    """A sequence of queries needs one thread."""
    before = threading.active_count()
    for _ in range(20):
        runner.submit("db", "c", {}, _ignore).wait(5)
    names = [thread.name for thread in threading.enumerate()]
    # The driver has threads of its own that watch the server.
    assert names.count("mup-query") == 1, (before, names)


def test_a_malformed_query_is_refused_where_it_is_written(runner: QueryRunner) -> None:
    """The error comes from submit, and nothing is logged."""
    log: list[Event] = []
    with pytest.raises(QueryError, match="not JSON"):
        runner.submit("db", "c", "{", lambda event, failed: log.append(event))
    assert log == []


def test_an_unknown_database_reaches_the_waiting_caller(runner: QueryRunner) -> None:
    """The resolver's error is raised by wait, and the operation is logged as failed."""
    log = []
    handle = runner.submit("nope", "c", {}, lambda event, failed: log.append((event, failed)))
    with pytest.raises(UnknownDatabaseError, match="nope"):
        handle.wait(5)
    assert log == [(Event.CONTACT_DEST, False), (Event.COMM_FINISH, True)]


@pytest.mark.slow
def test_a_silent_server_does_not_hang_the_caller() -> None:
    """A server that accepts and never answers ends in a timeout at the caller's deadline."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        runner = QueryRunner(lambda name: f"mongodb://127.0.0.1:{silent.getsockname()[1]}/d")
        handle = runner.submit("db", "c", {}, _ignore)
        with pytest.raises(CallTimeoutError, match=r"within 0\.2 s"):
            handle.wait(0.2)
        with pytest.raises(QueryError, match="no server answers"):
            handle.wait(5)
        runner.close()


def test_a_closed_runner_refuses(runner: QueryRunner) -> None:
    """After close there is an error, not a wait."""
    runner.close()
    with pytest.raises(QueryError, match="stopping"):
        runner.submit("db", "c", {}, _ignore)


def test_the_driver_is_opened_after_the_fork(embedded: DatabaseServer) -> None:
    """A runner created before a fork and first used after it works in the child."""
    runner = QueryRunner(lambda name: embedded.uri)
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(0 if runner.submit("db", "c", {}, _ignore).wait(5) == [] else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    runner.close()
