"""Models to predictions: ``simulate`` one scenario, ``simulate_many`` in parallel.

The rest is where its name says, so that a program loads only what it uses: ``simulator.studies.grids``
(scenarios against a baseline), ``simulator.studies.whatif`` (what a scenario is),
``simulator.studies.saturation``, and the approximations ``simulator.analytic`` and ``simulator.fluid``.

The rooms, from the ground up; a room imports from its own floor and from lower ones
(``tests/simulator/test_rooms.py``):

- ``preparing``: Model -> Prepared: processor times at their own load, mean set-up after sleep
- ``program``: Model -> Program: instructions and tables, only what load reaches
- ``machine``: runs programs: random numbers (``variates``), limits (``budget``), what is written down
  (``recording``); engines ``reference`` (on SimPy: one process per flow) and ``compiled`` (the same steps at
  the same moments, in machine code: ``mup.native``). An engine promises ``record(bins, ...)``, which executes
  bin after bin and writes the sums of each in the columns of ``recording.Layout``, ``events``, and single
  times
- ``figures``: warm-up, batches, intervals and percentiles, once for all engines; operational laws; results
- ``analytic``: Model -> Estimate: layered mean-value analysis (``approximations``: one per file with its
  source); ``product_form``: exact means and derivatives where there are no layers
- ``api``: ``simulate``: prepare, compile, run, figures
- ``fluid``: Model -> differential equations
- ``studies``: several simulations: what-if, grids, differences, saturation, autoscaling, planning
- ``networks``: closed networks, and layered ones with their queues written out: what learning fits to traces
"""

from simulator import moved
from simulator.api import Progress, simulate
from simulator.figures.result import (
    ActivityResult,
    CallResult,
    CycleResult,
    EntryResult,
    Figure,
    JoinResult,
    Precision,
    ProcessorResult,
    ReplicaResult,
    ResponseTime,
    Result,
    TaskResult,
)
from simulator.studies.parallel.many import replicate, simulate_many

__all__ = [
    "ActivityResult",
    "CallResult",
    "CycleResult",
    "EntryResult",
    "Figure",
    "JoinResult",
    "Precision",
    "ProcessorResult",
    "Progress",
    "ReplicaResult",
    "ResponseTime",
    "Result",
    "TaskResult",
    "replicate",
    "simulate",
    "simulate_many",
]

moved.install()
