"""How do several simulations run at once without starting processes?

Compiled simulations do not hold the interpreter's lock while they simulate, so threads of this process
run them side by side; a process would need a second to start. Each job is told by its progress function to
give up when nobody wants its result any more.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import TypeVar

from simulator.api import Progress

__all__ = ["Job", "run_jobs"]

T = TypeVar("T")

Job = Callable[[Callable[[Progress], None]], T]
"""Does something with the progress function it is given, which it has to pass to ``simulate``."""

POLL_SECONDS = 0.5
"""How often the waiting thread looks for signals (Ctrl-C)."""


class _Unwanted(Exception):  # noqa: N818 - nothing is wrong, the job just ends
    """Ends a simulation whose result nobody wants any more."""


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
    stop = threading.Event()
    waiting: SimpleQueue[int] = SimpleQueue()
    finished: SimpleQueue[tuple[int, T | None, BaseException | None]] = SimpleQueue()
    for index in range(len(jobs)):
        waiting.put(index)

    def keep_going(_: Progress) -> None:
        if stop.is_set():
            raise _Unwanted

    def work() -> None:
        while not stop.is_set():
            try:
                index = waiting.get_nowait()
            except Empty:
                return
            try:
                finished.put((index, jobs[index](keep_going), None))
            except _Unwanted:
                return
            except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
                finished.put((index, None, error))

    # Daemons: a program that is told to end does not wait for them.
    threads = [
        threading.Thread(target=work, daemon=True)
        for _ in range(min(len(jobs), workers or os.cpu_count() or 1))
    ]
    results: dict[int, T | None] = {}
    try:
        for thread in threads:
            thread.start()
        while len(results) < len(jobs):
            try:
                index, result, error = finished.get(timeout=POLL_SECONDS)
            except Empty:
                continue
            if error is not None:
                raise error
            results[index] = result
            if progress is not None:
                progress(len(results))
    finally:
        stop.set()
    return [results[index] for index in range(len(jobs))]  # type: ignore[misc]  # all are there
