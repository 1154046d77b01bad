"""The engines, and what a run needs of one."""

from __future__ import annotations

from typing import Final, Protocol

from simulator.machine.budget import Budget
from simulator.machine.recording import Bins, FloatArray, Samples
from simulator.program import Program

__all__ = ["DEFAULT_ENGINE", "ENGINES", "Engine", "engine_of"]

DEFAULT_ENGINE: Final = "compiled"
ENGINES: Final = ("compiled", "reference")


class Engine(Protocol):
    """A program being executed."""

    @property
    def events(self) -> int:
        """Timed steps so far."""

    @property
    def population_samples(self) -> list[Samples]:
        """The single cycle times of every population."""

    @property
    def entry_samples(self) -> list[Samples]:
        """The single response times of every entry."""

    def run_until(self, time: float, budget: Budget | None = None) -> None:
        """Execute everything that happens before a moment."""

    def record(self, bins: Bins, end: float, most_events: int, budget: Budget | None = None) -> None:
        """Add bins until one ends at ``end`` or later."""

    def snapshot(self) -> FloatArray | list[float]:
        """Return all sums as of now."""


def engine_of(name: str, program: Program, seed: int) -> Engine:
    """Return a run of a program, at its beginning.

    Args:
        name: One of ``ENGINES``.
        program: What to execute.
        seed: Same seed, same run.
    """
    # Each engine brings libraries that take a while to import: only those of the one in use.
    if name == "reference":
        from simulator.machine.reference.engine import ReferenceEngine  # noqa: PLC0415

        return ReferenceEngine(program, seed)
    from simulator.machine.compiled.engine import CompiledEngine  # noqa: PLC0415

    return CompiledEngine(program, seed)
