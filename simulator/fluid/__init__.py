"""Fluid limit: the course of a model with very many clients. See `simulator.fluid.solution`."""

from simulator.fluid.solution import DEFAULT_STAGES, FluidResult, Trajectory, fluid

__all__ = ["DEFAULT_STAGES", "FluidResult", "Trajectory", "fluid"]
