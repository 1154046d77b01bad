"""Models to predictions: ``simulate`` one scenario, ``simulate_many`` in parallel."""

from simulator.api import Progress, simulate
from simulator.many import replicate, simulate_many
from simulator.result import (
    CycleResult,
    EntryResult,
    Figure,
    Precision,
    ProcessorResult,
    ResponseTime,
    Result,
    TaskResult,
)

__all__ = [
    "CycleResult",
    "EntryResult",
    "Figure",
    "Precision",
    "ProcessorResult",
    "Progress",
    "ResponseTime",
    "Result",
    "TaskResult",
    "replicate",
    "simulate",
    "simulate_many",
]
