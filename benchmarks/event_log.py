"""What does one record of the event log cost? Median of interleaved repeats, CPU time per record.

*one record* is the writer alone; *in a worker* is what a remote operation of an endpoint pays, through the
same closure as ``Communication.call``. Both include their share of writing blocks to a file. *reading*
streams the file.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from machine import describe

from mup.events.reader import LogStream
from mup.events.record import Event
from mup.events.writer import EventWriter
from mup.runtime.worker_communication import EventLog

RECORDS = 200_000
REPEATS = 7


def cpu_per_call(body: Callable[[], None]) -> float:
    """Return CPU seconds of one call of a function that loops RECORDS times."""
    start = time.process_time_ns()
    body()
    return (time.process_time_ns() - start) / RECORDS


def operation_log(log: EventLog, request: int, name: int) -> Callable[..., None]:
    """Return what a worker makes for one remote operation."""
    write = log.write

    def write_one(event: Event, flags: int = 0, at: int = 1) -> None:
        write(event, request, 1, 1, at, name, flags)

    return write_one


def main() -> None:
    """Print microseconds per record, beside what a loop and the clocks alone cost."""
    with tempfile.TemporaryDirectory() as folder:
        writer = EventWriter(Path(folder) / "x.mlog", {"role": "worker"})
        name = writer.name("A/epA/")

        def loop() -> None:
            for _ in range(RECORDS):
                pass

        def clocks() -> None:
            for _ in range(RECORDS):
                time.monotonic_ns()
                time.thread_time_ns()

        def records() -> None:
            for request in range(RECORDS):
                writer.write(Event.COMM_START, request, 1, 1, 1, name)

        log = EventLog(writer, Path(folder))

        def in_worker() -> None:
            for request in range(RECORDS):
                operation_log(log, request, name)(Event.COMM_START, 0)

        def reading() -> None:
            stream = LogStream(sample.path)
            for _ in stream:
                pass

        sample = EventWriter(Path(folder) / "sample.mlog", {"role": "worker"})
        for request in range(RECORDS):
            sample.write(Event.COMM_START, request, 1)
        sample.close()
        bodies = {
            "empty loop": loop,
            "both clocks": clocks,
            "one record": records,
            "in a worker": in_worker,
            "reading": reading,
        }
        samples: dict[str, list[float]] = {label: [] for label in bodies}
        for _ in range(REPEATS):
            for label, body in bodies.items():
                samples[label].append(cpu_per_call(body))
        writer.close()
    print(describe("mup-framework"))
    for label, values in samples.items():
        print(f"{label:12s} {statistics.median(values) / 1e3:6.2f} us (median of {REPEATS} x {RECORDS})")


if __name__ == "__main__":
    main()
