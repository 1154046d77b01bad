"""CPU time per record of the event log: median of interleaved repeats.

    python benchmarks/event_log.py [--gigabytes N]

*one record* is the writer alone; *in a worker* is what a remote operation of an endpoint pays, through the
same closure as ``Communication.call``. Both include their share of writing blocks to a file. *reading*
streams the file. With "--gigabytes" a log of that size is read, too, and the memory that took is printed.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from machine import describe

from mup.events.reader import LogStream, read_header
from mup.events.record import Event
from mup.events.writer import EventWriter
from mup.runtime.client.events import EventLog

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


def read(path: Path) -> int:
    """Stream a log; return the number of its records."""
    return sum(len(records) for records in LogStream(path))


def memory(which: str) -> float:
    """Return the memory of this process in megabytes: as it is (VmRSS), or at its highest (VmHWM)."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition(f"\n{which}:")[2].split()[0]) / 1024


def read_large(sample: Path, gigabytes: float) -> str:
    """Read a log that consists of copies of the records of another one; return time and memory it took."""
    data = sample.read_bytes()
    records = data[read_header(sample)[1] :]
    large = sample.with_name("large.mlog")
    with large.open("wb") as file:
        file.write(data)
        while file.tell() < gigabytes * 1e9:
            file.write(records)
    del data, records
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the highest memory use begins anew
    before = memory("VmRSS")
    began = time.process_time()
    count = read(large)
    seconds = time.process_time() - began
    more = memory("VmHWM") - before
    size = large.stat().st_size / 1e9
    large.unlink()
    return (
        f"{size:.2f} GB, {count / 1e6:.1f} million records: {seconds:.1f} s of CPU, {more:.1f} MB more memory"
    )


def main() -> None:
    """Print microseconds per record, beside what a loop and the clocks alone cost."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gigabytes", type=float, default=0.0)
    options = parser.parse_args()
    large = ""
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
            read(sample.path)

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
        if options.gigabytes:
            large = read_large(sample.path, options.gigabytes)
    print(describe("mup-framework"))
    for label, values in samples.items():
        print(f"{label:12s} {statistics.median(values) / 1e3:6.2f} us (median of {REPEATS} x {RECORDS})")
    if large:
        print(large)


if __name__ == "__main__":
    main()
