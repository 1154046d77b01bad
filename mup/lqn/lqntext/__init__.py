"""Reading the text format of the layered queueing tools LQNS and LQSIM (``.lqn``, ``.in``, ``.xlqn``)."""
