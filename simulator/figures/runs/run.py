"""What a run, however it was made, leaves behind."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.figures.output import Window
from simulator.machine.budget import Reached
from simulator.machine.recording import Samples

__all__ = ["Progress", "Run"]


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a running simulation stands.

    Attributes:
        simulated_seconds, events: So far.
        precision: Relative half-width reached; infinite while there is too little to tell.
    """

    simulated_seconds: float
    events: int
    precision: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run that is over.

    Attributes:
        window: Its measured part.
        population_samples, entry_samples: Single times, with moments of the window.
        simulated_seconds, warmup_seconds: In all.
        events: Timed steps it took.
        replications: So many runs, from beginnings of their own, are behind it.
        limit: That ended it before it was done.
        bunched_after: Response times went on growing when clients had come: so many seconds after that the
            windows open. None where they did not, or where that was not looked at.
    """

    window: Window
    population_samples: list[Samples]
    entry_samples: list[Samples]
    simulated_seconds: float
    warmup_seconds: float
    events: int
    replications: int
    limit: Reached | None
    bunched_after: float | None = None
