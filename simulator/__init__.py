"""Models to predictions: ``simulate`` one scenario, ``simulate_many`` in parallel.

The rest is where its name says, so that a program loads only what it uses: ``simulator.studies.grids``
(scenarios against a baseline), ``simulator.studies.whatif`` (what a scenario is),
``simulator.studies.saturation``, and the approximations ``simulator.analytic`` and ``simulator.fluid``.
"""

from simulator import moved
from simulator.api import Progress, simulate
from simulator.figures.result import (
    ActivityResult,
    CallResult,
    CycleResult,
    EntryResult,
    Figure,
    JoinResult,
    Precision,
    ProcessorResult,
    ReplicaResult,
    ResponseTime,
    Result,
    TaskResult,
)
from simulator.studies.parallel.many import replicate, simulate_many

__all__ = [
    "ActivityResult",
    "CallResult",
    "CycleResult",
    "EntryResult",
    "Figure",
    "JoinResult",
    "Precision",
    "ProcessorResult",
    "Progress",
    "ReplicaResult",
    "ResponseTime",
    "Result",
    "TaskResult",
    "replicate",
    "simulate",
    "simulate_many",
]

moved.install()
