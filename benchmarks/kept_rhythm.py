"""Do intervals hold where clients keep the rhythm in which they began?

    python benchmarks/kept_rhythm.py                # about 5 min
    python benchmarks/kept_rhythm.py --seeds 10

The case studies (the models in ``examples``) with a quarter of their think times, which are constant. Each
is simulated with many seeds: in one run of as long as the many beginnings take together, and as
``mup simulate`` does it. The truth is the mean of all many-beginnings runs but the one that is looked at. A
line shows the range of the mean response times, and how many of the 95 % intervals held the truth.
"""

from __future__ import annotations

import argparse
import math
import time

from case_studies.applications import ROOT
from case_studies.scaling import scaled

from mup.lqn.edits import with_clients
from mup.lqn.files import read_model
from simulator import Result, simulate

SYSTEMS = (("tms", 16), ("tms", 32), ("teastore", 8), ("teastore", 16))
THINK = 0.25
PRECISION = 0.02


def held(means: list[float], results: list[Result]) -> int:
    """Return how many intervals hold the mean of the others' means, within its own error."""
    count = 0
    for number, result in enumerate(results):
        others = [mean for k, mean in enumerate(means) if k != number]
        response = result.cycle.response_time
        # The reference is uncertain, too.
        reach = response.ci95 + PRECISION * response.mean / math.sqrt(len(others))
        count += abs(response.mean - math.fsum(others) / len(others)) <= reach
    return count


def row(name: str, clients: int, seeds: int) -> str:
    """Return the line of one system."""
    model = with_clients(scaled(read_model(str(ROOT / "examples" / name / "model.json")), THINK), clients)
    started = time.perf_counter()
    many = [simulate(model, precision=PRECISION, seed=seed) for seed in range(seeds)]
    each = (time.perf_counter() - started) / seeds
    horizon = math.fsum(result.simulated_seconds for result in many) / seeds
    single = [simulate(model, horizon=horizon, seed=seed) for seed in range(seeds)]
    means = [result.cycle.response_time.mean for result in many]
    cells = [name, str(clients)]
    for results in (single, many):
        shown = [1e3 * result.cycle.response_time.mean for result in results]
        cells += [f"{min(shown):.4g} to {max(shown):.4g}", f"{held(means, results)} of {seeds}"]
    return f"| {' | '.join(cells)} | {each:.2f} |"


def main() -> int:
    """Print the table; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=40, help="of each system [default: %(default)s]")
    seeds = parser.parse_args().seeds
    print("| application | clients | one run, ms | held | many beginnings, ms | held | seconds each |")
    print("|---|---|---|---|---|---|---|")
    for name, clients in SYSTEMS:
        print(row(name, clients, seeds), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
