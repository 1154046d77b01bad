"""Time and memory of `mup estimate` on access logs, by the number of their lines.

    python benchmarks/access_logs.py [--lines N ...] [--seed N]

The logs are those of the closed system of `estimation.station`: 130 users, 20 classes of requests with mean
demands of 0.1 to 0.05 s, two cores that all requests share, 65 % utilized; nginx's words, moments and
durations in milliseconds. Printed are processor time and peak memory of the command, a process of its own,
and how far demands are off.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from estimation.station import System, simulate, system
from machine import describe

CORES, USERS, CLASSES = 2, 130, 20
FORMAT = '$msec $request_time "$request"'
BEGIN = 1_750_000_000.0
"""Seconds since 1970 of the beginning of a log."""
AT_ONCE = 100_000
"""Lines that are formatted at a time."""


@dataclass(frozen=True)
class Cost:
    """What the command took: processor time and wall time in s, peak memory in MiB, and its document."""

    cpu: float
    wall: float
    memory: float
    document: dict[str, dict[str, dict[str, dict[str, float]]]]


def write_log(path: Path, model: System, lines: int, seed: int) -> None:
    """Write the log of a system, in the order in which requests end."""
    trace = simulate(model, -(-lines // CLASSES), seed).trace
    order = np.argsort(trace.end, kind="stable")[:lines]
    with path.open("w", encoding="ascii") as file:
        for first in range(0, lines, AT_ONCE):
            part = order[first : first + AT_ONCE]
            ends, kinds = trace.end[part], trace.kind[part]
            columns = (ends + BEGIN).tolist(), (ends - trace.start[part]).tolist(), kinds.tolist()
            file.writelines(
                f'{end:.3f} {took:.3f} "GET /page{chr(ord("a") + kind)} HTTP/1.1"\n'
                for end, took, kind in zip(*columns, strict=True)
            )


def estimated(path: Path) -> Cost:
    """Run the command on a log."""
    command = [sys.executable, "-m", "mup", "estimate", str(path), "--cores", str(CORES)]
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        began = time.monotonic()
        process = subprocess.Popen([*command, "--log-format", FORMAT, "--json"], stdout=output)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.monotonic() - began
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, process.args)
        output.seek(0)
        document = json.load(output)
    return Cost(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024, document)


def main() -> None:
    """Print one row per log."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--lines", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000], help="of the logs"
    )
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(describe("mup-framework", "numpy"))
    print(f"seed {options.seed}\n")
    print("| lines | MB | processor time | wall time | peak memory | error: mean | worst |")
    print("|---|---|---|---|---|---|---|", flush=True)
    model = system(CORES, USERS, USERS, CLASSES)
    with tempfile.TemporaryDirectory() as folder:
        for lines in options.lines:
            path = Path(folder) / "access.log"
            write_log(path, model, lines, options.seed)
            found = estimated(path)
            classes = found.document["classes"]
            means = [classes[f"GET /page{chr(ord('a') + kind)}"]["demand"]["mean"] for kind in range(CLASSES)]
            errors = np.abs(np.array(means) / model.demand - 1)
            print(
                f"| {lines:,} | {path.stat().st_size / 1e6:.0f} | {found.cpu:.1f} s | {found.wall:.1f} s "
                f"| {found.memory:.0f} MiB | {errors.mean():.1%} | {errors.max():.1%} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
