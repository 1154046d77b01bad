"""What is compiled before all tests and kept on disk, so that workers do not compile it at once.

A program (tests/side_by_side.py starts it). No test depends on it.
"""

from __future__ import annotations

import compileall
import os
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def modules() -> None:
    """Compile modules, or each command under test would where Python is told to write no bytecode."""
    for package in ("mup", "mup_registry", "analyzer", "simulator"):
        compileall.compile_dir(ROOT / package, quiet=2)


def libraries() -> None:
    """Compile what the installation has not: some seconds after a change of the engine, else nothing."""
    from mup.native.libraries import LIBRARIES
    from mup.native.loading import loaded

    for library in LIBRARIES:
        loaded(library)


if __name__ == "__main__":
    modules()
    libraries()
    os.close(int(sys.argv[1]))  # a lock, for which workers wait
