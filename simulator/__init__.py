"""Models to predictions: ``simulate`` one scenario, ``simulate_many`` in parallel.

The rest is where its name says, so that nobody loads what he does not use: ``simulator.grids`` (scenarios
against a baseline), ``simulator.whatif`` (what a scenario is), ``simulator.saturation``, and the
approximations ``simulator.analytic`` and ``simulator.fluid``.
"""

from simulator.api import Progress, simulate
from simulator.many import replicate, simulate_many
from simulator.result import (
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
