"""What would very many clients and servers do over time? See `simulator.fluid.solution`."""

from simulator.fluid.solution import DEFAULT_STAGES, FluidResult, Trajectory, fluid

__all__ = ["DEFAULT_STAGES", "FluidResult", "Trajectory", "fluid"]
