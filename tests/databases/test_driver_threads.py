"""Work of a driver's threads is counted for its own query, and for no other."""

from __future__ import annotations

import asyncio
import time

from mup.databases.driver_threads import DriverThreads, timed_threads


def compute(seconds: float) -> None:
    """Use this thread's processor for so long."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


async def queries(threads: DriverThreads, *seconds: float) -> list[float]:
    """Do these queries at the same time; return what was counted for each, in seconds."""
    loop = asyncio.get_running_loop()

    async def query(amount: float) -> float:
        with timed_threads() as found:
            await asyncio.sleep(0)
            await loop.run_in_executor(threads, compute, amount / 2)
            await loop.run_in_executor(threads, compute, amount / 2)
        await loop.run_in_executor(threads, compute, 0.02)
        return found.nanoseconds * 1e-9

    return await asyncio.gather(*map(query, seconds))


def test_each_query_has_its_own_time() -> None:
    """Side by side, in several turns; waiting is no work, and what comes behind a query is not its own."""
    with DriverThreads(4) as threads:
        short, long, idle = asyncio.run(queries(threads, 0.01, 0.05, 0.0))
    assert 0.01 <= short < 0.02
    assert 0.05 <= long < 0.06
    assert idle < 0.01


def test_outside_of_a_query_nothing_is_counted() -> None:
    """Other code may use the same threads."""
    with DriverThreads(1) as threads:
        assert threads.submit(sum, [1, 2]).result() == 3
        with timed_threads() as found:
            assert threads.submit(sorted, [2, 1], reverse=True).result() == [2, 1]
        assert found.nanoseconds > 0


def test_a_failing_query_has_been_work_too() -> None:
    """The error reaches the one who asked."""

    def fail() -> None:
        compute(0.01)
        raise ValueError("no")

    with DriverThreads(1) as threads, timed_threads() as found:
        assert isinstance(threads.submit(fail).exception(), ValueError)
    assert found.nanoseconds >= 10_000_000
