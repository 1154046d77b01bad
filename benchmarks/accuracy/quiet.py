"""Share the machine: two lock files make measurements and other work take turns.

A measurement holds the *gate* (so that no other job begins) and then waits for the *machine*, which others
share while they compute. Without lock files there is no waiting.

What other virtual machines on the same hardware do cannot be agreed upon, but waited for: a short burn on all
cores shows whether the hypervisor withholds some of them (idle cores show nothing).
"""

from __future__ import annotations

import argparse
import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from mup.workload.cpu import STOLEN_LIMIT, HostCpu

__all__ = ["Quiet", "add_options", "quiet_of"]

BURN = 2.0  # s; the kernel counts what was withheld in ticks of 10 ms
PAUSE = 20.0  # s between two burns
_CODE = f"import time\nend = time.monotonic() + {BURN}\nwhile time.monotonic() < end: pass"


@dataclass(frozen=True, slots=True)
class Quiet:
    """The two lock files; None = nothing to share.

    Attributes:
        gate: Lock file held while measuring, or waiting to.
        machine: Lock file held while using the machine.
        patience: s to wait, before each measurement, for a moment in which the hypervisor withholds nothing.
    """

    gate: Path | None = None
    machine: Path | None = None
    patience: float = 0.0

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Have the machine for a measurement.

        Others may use it while there is nothing to be done but to wait for a better moment.
        """
        end = time.monotonic() + self.patience
        while True:
            while time.monotonic() < end and withheld() > STOLEN_LIMIT / 2:
                time.sleep(PAUSE)
            with ExitStack() as stack:
                for path in (self.gate, self.machine):
                    if path is not None:
                        stack.enter_context(_locked(path, fcntl.LOCK_EX))
                # That may have taken a while.
                if time.monotonic() >= end or withheld() <= STOLEN_LIMIT / 2:
                    yield
                    return

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Compute beside others, but never beside a measurement."""
        with ExitStack() as stack:
            if self.gate is not None:
                # A measurement that waits for the machine holds the gate: it goes first.
                with _locked(self.gate, fcntl.LOCK_EX):
                    pass
            if self.machine is not None:
                stack.enter_context(_locked(self.machine, fcntl.LOCK_SH))
            yield


@contextmanager
def _locked(path: Path, how: int) -> Iterator[None]:
    with path.open("a") as file:
        fcntl.flock(file, how)
        yield


def withheld() -> float:
    """Burn on all cores for a moment; return the share of them that the hypervisor withheld."""
    host = HostCpu()
    host.start()
    burning = [subprocess.Popen([sys.executable, "-I", "-c", _CODE]) for _ in range(os.cpu_count() or 1)]
    for process in burning:
        process.wait()
    host.stop()
    return host.stolen


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options from which ``quiet_of`` makes a `Quiet`."""
    parser.add_argument(
        "--exclusive",
        nargs=2,
        type=Path,
        metavar=("GATE", "MACHINE"),
        help="lock files by which measurements take turns with other work on the machine",
    )
    parser.add_argument(
        "--patience",
        type=float,
        default=0.0,
        metavar="MINUTES",
        help="wait so long, before each measurement, until the hypervisor withholds nothing (default 0)",
    )


def quiet_of(options: argparse.Namespace) -> Quiet:
    """Return how the machine is shared, as the command line says."""
    gate, machine = options.exclusive or (None, None)
    return Quiet(gate, machine, 60 * options.patience)
