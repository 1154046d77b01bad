"""Programs: what an engine executes.

``compile_model`` turns a model into a flat program: one array of instructions with integer operands
(`simulator.program.instructions`), and tables (distributions, choices, tasks, entries, processors) that the
operands point into (`simulator.program.tables`).
"""

from simulator.program import instructions, tables
from simulator.program.compiler import compile_model
from simulator.program.instructions import *  # noqa: F403 - all that it lists
from simulator.program.optimiser import optimise
from simulator.program.tables import *  # noqa: F403 - all that it lists

__all__ = ["compile_model", "optimise"]
__all__ += instructions.__all__
__all__ += tables.__all__
