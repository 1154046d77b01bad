"""Cost of a default simulation of the corpus, to 1 % of response time, beside ``lqsim``.

Every model of the corpus (see ``conformance_corpus``) is simulated until cycle response time and throughput
are within 1 %, with control variates and without, in turns. ``lqsim`` stands beside it with the user time
that the corpus recorded, and with how precise the response times of its clients were then; so many seconds at
1 % are that time, times the square of that precision in percent.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from conformance_corpus import Case, find_corpus, load_cases
from machine import describe

from mup.errors import MupError
from mup.lqn.files import read_model
from mup.lqn.model import Model
from simulator import Result, simulate

PRECISION: Final = 0.01
SEEDS: Final = (1, 2, 3)
TEN_TIMES: Final = 10.0


@dataclass(frozen=True, slots=True)
class Cost:
    """Medians over the seeds: processor seconds, timed steps, and what control variates gained for R."""

    seconds: float
    events: float
    gain: float


def cost(model: Model, *, controlled: bool) -> Cost:
    """Simulate once per seed."""
    spent: list[float] = []
    results: list[Result] = []
    for seed in SEEDS:
        start = time.process_time()
        results.append(simulate(model, precision=PRECISION, seed=seed, control_variates=controlled))
        spent.append(time.process_time() - start)
    return Cost(
        statistics.median(spent),
        statistics.median(r.events for r in results),
        statistics.median(r.control_variates.response_time for r in results),
    )


def precision_of(case: Case) -> float:
    """Return the largest relative half-width of clients' response times in the corpus; NaN if unknown."""
    found = case.reference.get("derived_reference_tasks") or {}
    known = [f for f in found.values() if f.get("ci95") and f["response_time"]]
    widths = [f["ci95"] / f["response_time"] for f in known]
    return max(widths, default=math.nan)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, help="its directory; default: below MUP_REFERENCE_DIR")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only these models")
    options = parser.parse_args()
    corpus = options.corpus or find_corpus()
    if corpus is None:
        print("there is no corpus: let MUP_REFERENCE_DIR name the directory that has it", file=sys.stderr)
        return 2
    print(f"{describe('mup-framework', 'numpy')}; to {PRECISION:.0%}, medians of seeds {SEEDS}\n")
    head = (
        "model | CPU s without | with | variance of R | steps | lqsim CPU s | its R to | at 1 % | lqsim/with"
    )
    print(f"| {head} |")
    print("|---|---|---|---|---|---|---|---|---|")
    ratios: list[float] = []
    for case in load_cases(corpus, options.only):
        try:
            model = read_model(case.file)
            if not ratios:
                cost(model, controlled=True)  # the first simulation of a process loads the compiled engine
            plain, sharp = cost(model, controlled=False), cost(model, controlled=True)
        except MupError as error:
            print(f"| {case.name} | {error.message} |||||||", flush=True)
            continue
        reached = precision_of(case)
        ratios.append(case.cpu_seconds / sharp.seconds)
        print(
            f"| {case.name} | {plain.seconds:.3f} | {sharp.seconds:.3f} | / {sharp.gain:.1f} "
            f"| {sharp.events:.0f} | {case.cpu_seconds:.2f} | {reached:.2%} "
            f"| {case.cpu_seconds * (reached / PRECISION) ** 2:.2f} | {ratios[-1]:.1f} |",
            flush=True,
        )
    fast = sum(ratio >= TEN_TIMES for ratio in ratios)
    print(f"\n{fast} of {len(ratios)} take at most a tenth of lqsim's CPU seconds; "
          f"median {statistics.median(ratios):.1f} times fewer")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
