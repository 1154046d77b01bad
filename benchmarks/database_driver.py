"""CPU time of a database driver, per query and while nothing happens.

    python benchmarks/database_driver.py mongodb://127.0.0.1:27017 [--queries N] [--idle SECONDS]

A query's CPU time is read from the clock of the thread it runs on, as the event log does, and from the clock
of the process; what only the process sees is work of others: handing the query over, PyMongo's own threads.
"""

from __future__ import annotations

import argparse
import threading
import time

from machine import describe

from mup.databases.runner import QueryRunner
from mup.events.record import Event


def main() -> None:
    """Print CPU times."""
    parser = argparse.ArgumentParser(description="Where does the CPU time of a database driver go?")
    parser.add_argument("uri")
    parser.add_argument("--queries", type=int, default=3000)
    parser.add_argument("--idle", type=float, default=30.0)
    options = parser.parse_args()
    print(describe("mup-framework", "pymongo"))
    runner = QueryRunner(lambda _: f"{options.uri}/benchmark")
    clocks: list[int] = []

    def log(event: Event, _failed: bool) -> None:
        now = time.thread_time_ns()
        clocks.append(-now if event is Event.CONTACT_DEST else now)

    for _ in range(200):
        runner.submit("db", "c", {"_id": 1}, log).wait()
    clocks.clear()
    before, caller = time.process_time(), time.thread_time()
    for _ in range(options.queries):
        runner.submit("db", "c", {"_id": 1}, log).wait()
    caller = time.thread_time() - caller
    total = time.process_time() - before
    logged = sum(clocks) / 1e9
    for what, seconds in (
        ("logged, of the query's thread", logged),
        ("of the calling thread", caller),
        ("of all others, and handing over", total - logged - caller),
        ("of the process", total),
    ):
        print(f"CPU time per query {what:32s} {seconds / options.queries * 1e6:8.1f} us")
    print("threads:", ", ".join(sorted(thread.name for thread in threading.enumerate())))
    before = time.process_time()
    time.sleep(options.idle)
    used = time.process_time() - before
    print(f"idle for {options.idle:g} s: {used / options.idle * 1e6:.0f} us of CPU time per second")
    runner.close()


if __name__ == "__main__":
    main()
