"""Who else may use the machine meanwhile? Two lock files make measurements and other work take turns.

Whoever measures holds the *gate* (so that nobody new begins) and then waits for the *machine*, which others
share while they compute. Without lock files nobody is asked.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Quiet"]


@dataclass(frozen=True, slots=True)
class Quiet:
    """The two lock files; None = nothing to share."""

    gate: Path | None = None
    machine: Path | None = None

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Have the machine for a measurement."""
        with ExitStack() as stack:
            for path in (self.gate, self.machine):
                if path is not None:
                    stack.enter_context(_locked(path, fcntl.LOCK_EX))
            yield

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Compute beside others, but never beside a measurement."""
        with ExitStack() as stack:
            if self.gate is not None:
                # Whoever waits for the machine holds the gate: they go first.
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
