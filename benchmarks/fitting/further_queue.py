"""Level and power of the F test for a queue that the smaller structure lacks.

Every repetition is an independent simulation of 1 to 6 clients in the paper's queueing network, with a
fourth queue or without, measured in 20 batches as in Table 1; nothing is measured of the fourth queue itself.
Printed is how often it is said to be there at the level of 5 %: by the test as it is (a mixture of
distributions, for a demand of 0 is a bound), and by the F distribution that the paper takes. A share from n
repetitions has a standard error of sqrt(0.05 x 0.95 / n) at the level: 1.1 % for 400.
"""

from __future__ import annotations

import numpy as np
from scipy.special import fdtrc

from analyzer.fitting.fit import Options, Wanted, fit
from analyzer.fitting.parameters import parameter
from analyzer.fitting.structures import compare
from mup.errors import MupError

from .measurements import measure
from .systems import NODES, TRUE_DEMANDS, queueing
from .tables import BATCHES, MEASURES, START, clients

CLIENTS = range(1, 7)
SECONDS, WARMUP = 10_000.0, 200.0
"""Of a trial."""
THINK = 10.0
"""Without it all clients are always in the queues, and response times and throughput give the sum of all
demands exactly: Little's law, which no measurement errs from."""
DEMANDS = (0.0, 0.3)
"""Of the fourth queue; those of the others are 2, 3 and 4."""
LEVEL = 0.05
WANTED = [Wanted(parameter(f"demand.{name}.serve")) for name in (*NODES, "ghost")]


def further_queue(repetitions: int, seed: int) -> None:
    """Print how often a fourth queue is said to be there."""
    print(
        f"F test for a fourth queue, {repetitions} systems each, {len(CLIENTS)} trials of {SECONDS:g} s; "
        f"said to be there at the level of {LEVEL:.0%}:"
    )
    print("  its demand  by the test   by F alone   failed")
    for demand in DEMANDS:
        values, failed = [], 0
        for own in range(seed, seed + repetitions):
            try:
                values.append(_p_values(demand, own))
            except MupError:
                failed += 1
        ours, plain = np.mean(np.array(values) < LEVEL, axis=0)
        print(f"  {demand:10g}  {100 * ours:9.1f} %  {100 * plain:9.1f} %   {failed:6}", flush=True)


def _p_values(demand: float, seed: int) -> tuple[float, float]:
    """Return the probability of what was measured without a fourth queue: by the test, and by F."""
    system = queueing((*TRUE_DEMANDS, demand) if demand else TRUE_DEMANDS, think=THINK)
    data = measure(
        system, clients(CLIENTS), MEASURES, seconds=SECONDS, batches=BATCHES, warmup=WARMUP, seed=seed
    )
    linear = Options(method="linear")
    three = fit(queueing(START, think=THINK), data, WANTED[:-1], linear)
    test = compare(three, fit(queueing((*START, 0.5), think=THINK), data, WANTED, linear))
    return test.p_value, float(fdtrc(*test.freedom, test.statistic))
