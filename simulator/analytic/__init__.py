"""What does a model predict, roughly, within milliseconds? See `simulator.analytic.solver`."""

from simulator.analytic.solver import CycleEstimate, Estimate, TaskEstimate, estimate

__all__ = ["CycleEstimate", "Estimate", "TaskEstimate", "estimate"]
