"""Reading the text format of the layered queueing tools LQNS and LQSIM (``.lqn``, ``.in``, ``.xlqn``)."""

from mup.lqn.lqntext.grammar import load_lqn_text

__all__ = ["load_lqn_text"]
