"""Time until a service is ready, and its memory while nothing happens.

    python benchmarks/service_start.py [--rounds N] [--quick]

One replica with one worker (an event loop: with eight, in one process) is started beside a running registry,
as the launcher does it: *ready* is the time from the start of the process to the line that says that it
serves and is registered; an empty Python process is started beside it. Rounds are interleaved. Memory is that
of front and workers after a second without a request: pages that they share count once, those of files that
other programs use, too, count in full; and what is resident in the front, and in each worker process. With
"MongoDB" the service can query a database.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from machine import describe
from trivial_services import SERVICES

from mup.workload.cpu import HostCpu

KINDS = {
    "process": ("OneProcess", False),
    "thread": ("OneThread", False),
    "async": ("Async", False),
    "process, MongoDB": ("OneProcess", True),
    "async, MongoDB": ("Async", True),
}
READY, MEMORY = 1.0, 60.0
"""Targets: seconds, megabytes."""


@contextmanager
def started(module: str, *arguments: str) -> Iterator[tuple[float, dict[str, Any]]]:
    """Run a process of mup; give the seconds until it said that it is ready, and what it said."""
    begun = time.perf_counter()
    command = [sys.executable, "-P", "-m", module, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        try:
            said = json.loads(process.stdout.readline())
            yield time.perf_counter() - begun, said
        finally:
            process.terminate()


def memory(pids: list[int]) -> tuple[float, list[float]]:
    """Return what some processes take together, pages they share counted once, and what is resident in each.

    The kernel's proportional size would make a service smaller by starting another Python program: pages of
    files are divided by all who use them. Here each file counts with the process that has most of it.

    Args:
        pids: A process, and others that it has forked.

    Returns:
        Megabytes; megabytes per process.
    """
    anonymous = 0
    files: dict[str, int] = {}
    resident = []
    for pid in pids:
        total = _fields(Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii"))
        anonymous += total["Pss_Anon"]
        resident.append(total["Rss"] / 1024)
        own: dict[str, int] = {}
        maps = Path(f"/proc/{pid}/smaps").read_text(encoding="utf-8", errors="replace")
        for mapping in re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", maps, flags=re.MULTILINE)[1:]:
            head, _, rest = mapping.partition("\n")
            name, sizes = head.split(maxsplit=5)[5:], _fields(rest)
            if name:
                own[name[0]] = own.get(name[0], 0) + sizes["Rss"] - sizes["Anonymous"]
        for file, size in own.items():
            files[file] = max(files.get(file, 0), size)
    return (anonymous + sum(files.values())) / 1024, resident


def _fields(text: str) -> dict[str, int]:
    """Return what the kernel says of a mapping; kB."""
    return {name: int(size) for name, size in re.findall(r"^(\w+): +(\d+) kB$", text, re.MULTILINE)}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--quick", action="store_true", help="only show that it works")
    options = parser.parse_args()
    rounds = 1 if options.quick else options.rounds
    print(describe("aiohttp", "uvloop", "msgspec", "pymongo", "motor"))
    seconds: dict[str, list[float]] = {name: [] for name in ("python -c pass", *KINDS)}
    sizes: dict[str, tuple[float, list[float]]] = {}
    host = HostCpu()
    with tempfile.TemporaryDirectory() as folder, started("mup_registry", "--port", "0") as (_, registry):
        (Path(folder) / "trivial.py").write_text(SERVICES, encoding="utf-8")
        for number in range(-1, rounds):  # the first one fills caches: bytecode, files
            if number == 0:
                host.start()
            begun = time.perf_counter()
            subprocess.run([sys.executable, "-c", "pass"], check=True)
            taken = {"python -c pass": time.perf_counter() - begun}
            for name, (kind, queries) in KINDS.items():
                config = {
                    "service": kind,
                    "target": f"trivial:{kind}",
                    "source": folder,
                    "registry": registry["url"],
                    "queries": queries,
                }
                with started("mup.runtime.replica", json.dumps(config)) as (taken[name], ready):
                    if number < 0:
                        time.sleep(1.0)
                        sizes[name] = memory([ready["pid"], *sorted(set(ready["workers"]))])
            if number >= 0:
                for name, value in taken.items():
                    seconds[name].append(value)
        host.stop()
    print(f"\n{'replica':18s} {'ready, s':>9s} {'range':>14s} {'MB, shared once':>16s}  resident")
    for name, values in seconds.items():
        spread = f"{min(values):.2f} - {max(values):.2f}"
        line = f"{name:18s} {statistics.median(values):9.2f} {spread:>14s}"
        if name in sizes:
            together, each = sizes[name]
            line += f" {together:16.0f}  {' + '.join(f'{size:.0f}' for size in each)}"
        print(line)
    print(f"\ntargets: ready within {READY:g} s, {MEMORY:g} MB; {rounds} rounds")
    print(f"the hypervisor withheld {host.stolen:.1%} of the machine, {host.utilization:.0%} were in use")


if __name__ == "__main__":
    # Ended by SIGTERM like by Ctrl-C: services that were started end, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    os.environ.setdefault("PYTHONPATH", str(Path(__file__).resolve().parents[1]))
    main()
