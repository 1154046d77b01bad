"""Detect a test whose machine was taken away: its failure is void, like such a measurement.

Many tests look at the clock: a response within so long, one request before another. A virtual machine whose
hypervisor withholds its processors for a while refutes them without any defect. The same rule holds as for
measurements: what was disturbed is void and is done again; a failure on an undisturbed machine counts at once.
"""

from __future__ import annotations

import inspect
import re
import sys
import threading
import time
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Self

import pytest

STALL = 0.1  # s in which no thread of ours ran
STEAL = 0.02  # share of the machine that the hypervisor withheld
TICK = 0.02
TESTS = Path(__file__).parent
WAITING = re.compile(
    r"\b(asyncio|socket|socketserver|threading|http\.(client|server)|time\.(monotonic|perf_counter|sleep|time))\b"
)
"""With none of them there is nothing to wait for but computations and commands."""


class DisturbedError(Exception):
    """A test failed while the machine was disturbed."""


def looks_at_the_clock(item: pytest.Item) -> bool:
    """Tell whether a test may fail because the machine was not there for it.

    It does if it starts processes (``services``), or if its module has to do with waiting.
    """
    module = getattr(item, "module", None)
    return item.get_closest_marker("services") is not None or (module is not None and _waits(module))


@cache
def _waits(module: ModuleType) -> bool:
    """Tell whether a module, or another one of the tests that it uses, waits for more than computations."""
    if WAITING.search(inspect.getsource(module)):
        return True
    origins = {getattr(value, "__module__", None) for value in vars(module).values()} - {module.__name__}
    helpers = [sys.modules[name] for name in origins if isinstance(name, str) and name in sys.modules]
    return any(_waits(m) for m in helpers if TESTS in Path(getattr(m, "__file__", None) or "/").parents)


class Watch:
    """What happens to the machine within a ``with`` block; read ``said`` afterwards.

    ``said`` is empty if the machine was there all the time.
    """

    def __enter__(self) -> Self:
        self._longest = 0.0
        self._ended = threading.Event()
        self._before = _withheld()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()
        (stolen, total), (stolen_before, total_before) = _withheld(), self._before
        share = (stolen - stolen_before) / max(total - total_before, 1)
        said = []
        if self._longest > STALL:
            said.append(f"nothing ran for {self._longest:.2f} s")
        if share > STEAL:
            said.append(f"the hypervisor withheld {share:.1%} of the machine")
        self.said = " and ".join(said)

    def _watch(self) -> None:
        last = time.monotonic()
        while not self._ended.wait(TICK):
            now = time.monotonic()
            self._longest = max(self._longest, now - last - TICK)
            last = now


def _withheld() -> tuple[int, int]:
    """Return the ticks of all processors since boot: withheld by the hypervisor, and all."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return ticks[7], sum(ticks)
