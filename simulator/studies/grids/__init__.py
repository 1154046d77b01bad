"""Grids of scenarios: results, differences to the baseline, and limits.

``grid`` in ``simulator.studies.whatif`` says which scenarios there are. ``running`` runs them:
``scenario_study`` knows what is behind the outcome of one, ``here`` spreads that over the cores of this
machine, ``elsewhere`` has whole scenarios done by any executor, and ``dask_cluster`` is one.
"""

from mup.errors import UnfinishedError
from simulator.studies.grids.outcome import Outcome
from simulator.studies.grids.running import MAX_SECONDS, run_scenarios

__all__ = ["MAX_SECONDS", "Outcome", "UnfinishedError", "run_scenarios"]
