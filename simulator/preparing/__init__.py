"""Processor times of a model at the load of a scenario.

``simulator.preparing.load_dependence`` sets the processor times that depend on the load;
``simulator.preparing.sleep`` says what set-up after sleep costs on average, for estimates, and
``simulator.preparing.chains`` how long workers and cores sleep.
"""

from simulator.preparing.load_dependence import (
    Load,
    Observed,
    Observer,
    Prepared,
    at_load,
    at_rates,
    clients_of,
    prepared,
)

__all__ = ["Load", "Observed", "Observer", "Prepared", "at_load", "at_rates", "clients_of", "prepared"]
