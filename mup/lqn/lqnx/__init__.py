"""Reading and writing lqnx, the file format of the layered queueing tools LQNS and LQSIM."""

from mup.lqn.lqnx.exporter import Export, model_to_lqnx, save_lqnx
from mup.lqn.lqnx.importer import load_lqnx

__all__ = ["Export", "load_lqnx", "model_to_lqnx", "save_lqnx"]
