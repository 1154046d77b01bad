"""How are several simulations run at once? ``threads`` runs any jobs, ``many`` simulates models with them."""

from simulator.studies.parallel.threads import Job, Workers, run_jobs

__all__ = ["Job", "Workers", "run_jobs"]
