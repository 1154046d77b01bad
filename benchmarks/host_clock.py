"""How much of a machine others use, by three accounts, beside services whose threads timers and sockets wake.

    python benchmarks/host_clock.py [--seconds S] [--rounds N]

Users who think drive one service on a machine that has nothing else to do, and in the last row another
program uses 5 % of it. *Clocks of all processes* is the scheduler's account of every thread there is
(``/proc/*/task/*/schedstat``). *Looked at* is what the kernel says of user, system and interrupts, which it
counts by looking every few milliseconds; *not idle* is what was neither idle nor withheld, which it
measures: the account of ``mup.workload.cpu``. Both are printed as differences to the clocks, in per cent of
the machine: what would be taken for other programs. More than 2 % make a measurement void. Medians of the
rounds. Needs Linux.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from machine import describe

from mup.workload.cpu import HostCpu

SERVICES = """
import math, random
from mup import EP, MS, Client

def burn(milliseconds):
    state = 1
    for _ in range(int(milliseconds * 25_000)):
        state = (state * 5 + 1) & 0xFFFF

class Async(MS):
    runtime = "async"
    @EP("/main/")
    async def main(self, comm):
        burn(0.57 * math.exp(random.gauss(-0.32, 0.8)))
        comm.respond({})

class Process(MS):
    pool_size = 4
    @EP("/main/")
    def main(self, comm):
        burn(0.57 * math.exp(random.gauss(-0.32, 0.8)))
        comm.respond({})

class AsyncUser(Client):
    async def scenario(self, comm):
        await self.think(0.006, "exponential")
        await comm.call("Async", "/main/")

class ProcessUser(Client):
    async def scenario(self, comm):
        await self.think(0.006, "exponential")
        await comm.call("Process", "/main/")
"""
OTHER = """
import time
while True:
    end = time.monotonic() + 0.001 * {share}
    while time.monotonic() < end:
        pass
    time.sleep(0.001 * (1 - {share}))
"""
"""Uses this share of a core."""
STARTING = 6.0
"""Seconds until services run and their users have warmed them up."""


class Account(NamedTuple):
    """CPU seconds of a machine in a window, by clocks, by looks, and by idleness; and its capacity."""

    clocks: float
    looked_at: float
    not_idle: float
    capacity: float


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=12.0, help="length of a window")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print(describe())
    rows: list[tuple[str, str | None, int, float]] = [("nothing", None, 0, 0.0)]
    rows += [
        (f"{kind.lower()}, {n} users", kind, n, 0.0) for kind in ("Async", "Process") for n in (1, 3, 5, 9)
    ]
    rows += [("async, 3 users, another program", "Async", 3, 0.05)]
    taken: dict[str, list[Account]] = {}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "services.py").write_text(SERVICES, encoding="utf-8")
        for number in range(options.rounds):
            print(f"round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
            for name, kind, users, share in rows:
                taken.setdefault(name, []).append(
                    measured(Path(folder), kind, users, share * (os.cpu_count() or 1), options.seconds)
                )
    print(f"\n{'load':32s} {'clocks of all processes':>24s} {'looked at':>12s} {'not idle':>12s}")
    for name, accounts in taken.items():
        shares = [
            (
                a.clocks / a.capacity,
                (a.looked_at - a.clocks) / a.capacity,
                (a.not_idle - a.clocks) / a.capacity,
            )
            for a in accounts
        ]
        used, looked, idle = (statistics.median(column) for column in zip(*shares, strict=True))
        print(f"{name:32s} {used:24.1%} {looked:+12.1%} {idle:+12.1%}")


def measured(folder: Path, kind: str | None, users: int, share: float, seconds: float) -> Account:
    """Return the accounts of a window in which so many users call a service.

    Args:
        folder: Of the services.
        kind: The service; None for no load.
        users: How many.
        share: Of one core, which another program uses.
        seconds: Length of the window.
    """
    commands = []
    if kind is not None:
        project = folder / kind
        project.mkdir(exist_ok=True)
        (project / "services.py").write_bytes((folder / "services.py").read_bytes())
        (project / "mup.toml").write_text(
            f'[project]\nname = "clock"\nclient = "services:{kind}User"\n'
            f'[services.{kind}]\nclass = "services:{kind}"\n',
            encoding="utf-8",
        )
        lasts = str(seconds + 3)
        commands.append(
            [sys.executable, "-m", "mup", "load", str(project), "--clients", str(users), "--duration", lasts]
        )
    if share:
        commands.append([sys.executable, "-c", OTHER.format(share=share)])
    processes = [
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for command in commands
    ]
    try:
        if kind is not None:
            time.sleep(STARTING)
        return window(seconds)
    finally:
        for process in processes[::-1]:
            if process.args == commands[0] and kind is not None:
                process.wait()  # a load ends by itself, and its services with it
            else:
                process.kill()
                process.wait()


def window(seconds: float) -> Account:
    """Return what the machine does in so many seconds."""
    host = HostCpu()
    clocks, looks = running(), looked_at()
    host.start()
    time.sleep(seconds)
    host.stop()
    later = running()
    return Account(
        sum(value - clocks.get(thread, 0.0) for thread, value in later.items()),
        looked_at() - looks,
        host.busy_seconds,
        host.capacity_seconds,
    )


def running() -> dict[str, float]:
    """Return for how many seconds each thread of the machine has run."""
    clocks = {}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            for task in (process / "task").iterdir():
                nanoseconds = int((task / "schedstat").read_text(encoding="ascii").split()[0])
                clocks[str(task)] = nanoseconds / 1e9
    return clocks


def looked_at() -> float:
    """Return the busy CPU seconds of the machine since boot, as the kernel found it at its looks."""
    line = Path("/proc/stat").read_text(encoding="ascii").partition("\n")[0]
    user, nice, system, _idle, _waiting, irq, softirq = (int(word) for word in line.split()[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
