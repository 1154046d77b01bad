"""Reading and writing lqnx, the file format of the layered queueing tools LQNS and LQSIM."""

from mup.lqn.lqnx.importer import load_lqnx

__all__ = ["load_lqnx"]
