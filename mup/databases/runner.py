"""Run the queries of blocking workers in the background.

Each query runs on an auxiliary thread of the worker. Threads are created on demand and kept, one per query
that was ever outstanding at once, so no query waits for another one's thread: what queueing there is happens
in the database, where the model has it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from queue import SimpleQueue
from typing import Any

from mup.databases.command import Command, parse_command
from mup.databases.driver import Driver, open_driver
from mup.errors import CallTimeoutError, CommunicationError, QueryError
from mup.events.record import Event

__all__ = ["QueryHandle", "QueryRunner"]

Log = Callable[[Event, bool], None]
"""Writes one record on the thread that calls it; the flag says whether the operation failed."""

SWITCH_SECONDS = 3e-5
"""A query thread needs the interpreter a few times for some ten microseconds. With Python's default of 5 ms
it would each time wait that long for a worker that computes: the query would hardly run in parallel."""


class QueryHandle:
    """The answer of one query, now or later."""

    __slots__ = ("_answer", "_done", "_error", "_name")

    def __init__(self, name: str) -> None:
        self._name = name
        self._answer: list[dict[str, Any]] = []
        self._error: CommunicationError | None = None
        # A bare lock, released once: half the hand-off latency of a threading.Event.
        self._done = threading.Lock()
        self._done.acquire()

    @property
    def ready(self) -> bool:
        """Whether `wait` would return at once."""
        return not self._done.locked()

    def wait(self, timeout: float | None = None) -> list[dict[str, Any]]:
        """Return the documents; may be called again.

        Args:
            timeout: Seconds to wait at most; None = as long as the driver does.

        Raises:
            QueryError: The database is unknown, unreachable, or refused.
            CallTimeoutError: No answer in time; the query goes on and its answer is dropped.
        """
        if not self._done.acquire(timeout=-1 if timeout is None else max(timeout, 0.0)):
            raise CallTimeoutError(f"query on {self._name} not answered within {timeout:g} s")
        self._done.release()
        if self._error is not None:
            raise self._error
        return self._answer

    def _finish(self, answer: list[dict[str, Any]], error: CommunicationError | None) -> None:
        self._answer = answer
        self._error = error
        self._done.release()


class QueryRunner:
    """The query threads and database connections of one worker process.

    To be created after the fork. `submit` is called by the worker's main thread only.

    Args:
        resolve: Returns the URI (with database) of a database name; called on a query thread.
            Raises a `CommunicationError` for a name that is not registered.
        keep: Threads to keep when no query is under way; more exist while more queries are outstanding.
    """

    def __init__(self, resolve: Callable[[str], str], keep: int = 16) -> None:
        self._resolve = resolve
        self._keep = keep
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        self._outstanding = 0
        self._drivers: dict[str, tuple[str, Driver]] = {}
        self._closed = False
        if sys.getswitchinterval() > SWITCH_SECONDS:
            sys.setswitchinterval(SWITCH_SECONDS)

    def submit(
        self, db: str, collection: str, command: str | bytes | Mapping[str, Any], log: Log
    ) -> QueryHandle:
        """Start a query and return at once.

        Args:
            db: Name of the database in the project.
            collection: Collection inside it.
            command: Filter or command, as docs/reference/queries.md says.
            log: Called on the query's thread right before and right after the driver works.

        Raises:
            QueryError: The command is malformed, or the runner is closed.
        """
        job = _Job(db, collection, parse_command(command), log)
        with self._lock:
            if self._closed:
                raise QueryError(f"database {db!r}: the service is stopping")
            self._outstanding += 1
            if self._outstanding > self._threads:
                self._start_thread()
        self._jobs.put(job)
        return job.handle

    def close(self) -> None:
        """Let the threads end and close every connection; queries under way may fail."""
        with self._lock:
            self._closed = True
            for _ in range(self._threads):
                self._jobs.put(None)
            drivers = [driver for _, driver in self._drivers.values()]
            self._drivers.clear()
        for driver in drivers:
            driver.close()

    def _start_thread(self) -> None:
        try:
            threading.Thread(target=self._work, name="mup-query", daemon=True).start()
        except RuntimeError as error:
            if not self._threads:
                self._outstanding -= 1
                raise QueryError(f"cannot start a thread for the query: {error}") from error
            # At the limit of the system, the query waits for one of the threads there are.
            return
        self._threads += 1

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            answer: list[dict[str, Any]] = []
            failure: CommunicationError | None = None
            try:
                answer = self._carry_out(job)
            except CommunicationError as error:
                failure = error
            except Exception as error:  # noqa: BLE001 - whatever it is, it is for the waiting endpoint
                failure = QueryError(f"database {job.db!r}: {type(error).__name__}: {error}")
            with self._lock:
                self._outstanding -= 1
                superfluous = self._threads > max(self._keep, self._outstanding)
                if superfluous:
                    self._threads -= 1
            job.handle._finish(answer, failure)  # noqa: SLF001 - handle and runner are one thing
            if superfluous:
                return

    def _carry_out(self, job: _Job) -> list[dict[str, Any]]:
        try:
            driver = self._driver(job.db)
        except CommunicationError:
            # Every commStart has its contactDest and commFinish, so that readers need no special case.
            job.log(Event.CONTACT_DEST, False)
            job.log(Event.COMM_FINISH, True)
            raise
        job.log(Event.CONTACT_DEST, False)
        failed = True
        try:
            answer = driver.execute(job.collection, job.command)
            failed = False
        finally:
            job.log(Event.COMM_FINISH, failed)
        return answer

    def _driver(self, name: str) -> Driver:
        uri = self._resolve(name)
        known = self._drivers.get(name)
        if known is not None and known[0] == uri:
            return known[1]
        with self._lock:
            known = self._drivers.get(name)
            if known is None or known[0] != uri:
                fresh = open_driver(name, uri)
                self._drivers[name] = (uri, fresh)
                if known is not None:
                    # The database has moved.
                    known[1].close()
                return fresh
            return known[1]


class _Job:
    __slots__ = ("collection", "command", "db", "handle", "log")

    def __init__(self, db: str, collection: str, command: Command, log: Log) -> None:
        self.db = db
        self.collection = collection
        self.command = command
        self.log = log
        self.handle = QueryHandle(f"{db}.{collection}")
