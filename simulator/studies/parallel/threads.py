"""Run several simulations at once in threads, without starting processes.

Compiled simulations do not hold the interpreter's lock while they simulate, so threads of this process
run them side by side; a process would need a second to start. Each job is told by its progress function to
give up when its result is not wanted any more.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable, Sequence
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, TypeVar

from simulator.api import Progress

__all__ = ["Job", "Workers", "run_jobs"]

T = TypeVar("T")

Job = Callable[[Callable[[Progress], None]], T]
"""Does something with the progress function it is given, which it has to pass to ``simulate``."""

POLL_SECONDS = 0.5
"""How often the waiting thread looks for signals (Ctrl-C)."""


class _Unwanted(Exception):  # noqa: N818 - nothing is wrong, the job just ends
    """Ends a simulation whose result is not wanted any more."""


class Workers:
    """Threads that run independent jobs in the order in which they come; leaving the block gives up the rest.

    Args:
        count: How many at once; default: as many as cores.
    """

    def __init__(self, count: int | None = None) -> None:
        self.count = count or os.cpu_count() or 1
        self._stop = threading.Event()
        self._waiting: SimpleQueue[tuple[Hashable, Job[Any]] | None] = SimpleQueue()
        self._finished: SimpleQueue[tuple[Hashable, Any, BaseException | None]] = SimpleQueue()
        self._threads = 0

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        for _ in range(self._threads):
            self._waiting.put(None)

    def put(self, name: Hashable, job: Job[Any]) -> None:
        """Have a job run; what it returns comes out of ``get`` under its name."""
        self._waiting.put((name, job))
        if self._threads < self.count:
            self._threads += 1
            # Daemons: a program that is told to end does not wait for them.
            threading.Thread(target=self._work, daemon=True).start()

    def get(self) -> tuple[Hashable, Any]:
        """Wait for the next job that ends; return its name and result.

        Raises:
            Exception: Of that job.
        """
        while True:
            try:
                name, result, error = self._finished.get(timeout=POLL_SECONDS)
            except Empty:
                continue
            if error is not None:
                raise error
            return name, result

    def _work(self) -> None:
        while (item := self._waiting.get()) is not None and not self._stop.is_set():
            name, job = item
            try:
                self._finished.put((name, job(self._keep_going), None))
            except _Unwanted:
                return
            except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
                self._finished.put((name, None, error))

    def _keep_going(self, _: Progress) -> None:
        if self._stop.is_set():
            raise _Unwanted


def run_jobs(
    jobs: Sequence[Job[T]],
    *,
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> list[T]:
    """Run independent jobs in threads.

    Args:
        jobs: What to run; started in this order.
        workers: How many at once; default: as many as cores.
        progress: Called in this thread with the number of finished jobs after each.

    Returns:
        The results, in the order of the jobs.

    Raises:
        Exception: Of the first job that fails; the others are given up.
    """
    results: dict[Hashable, T] = {}
    with Workers(workers) as pool:
        for index, job in enumerate(jobs):
            pool.put(index, job)
        while len(results) < len(jobs):
            index_of, result = pool.get()
            results[index_of] = result
            if progress is not None:
                progress(len(results))
    return [results[index] for index in range(len(jobs))]
