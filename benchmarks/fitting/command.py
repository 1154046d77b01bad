"""The command line of the benchmark."""

from __future__ import annotations

import argparse

from machine import describe
from stored import Store, add_results

from .coverage import coverage
from .drifting import drifting
from .further_queue import further_queue
from .layered_coverage import layered_coverage
from .tables import table_1, table_2, table_3


def main() -> int:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(
        description="Fitting: the tables of the paper, coverage of intervals, the F test, and tracking."
    )
    parser.add_argument(
        "command", choices=("table1", "table2", "table3", "coverage", "layered", "ftest", "track", "all")
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--repetitions", type=int, help="[default: 200 of coverage and layered, 400 of ftest, 20 of track]"
    )
    parser.add_argument("--row", choices=("D1", "D2"), help="of table 3; D2 takes longest [default: both]")
    parser.add_argument("--quick", action="store_true", help="only show that it works")
    add_results(parser, "fitting.jsonl")
    asked = parser.parse_args()
    print(describe("numpy", "scipy"), f"seed {asked.seed}", sep="; ", flush=True)
    if asked.command in ("table1", "all"):
        table_1(asked.seed)
    if asked.command in ("table2", "all"):
        table_2(asked.seed)
    if asked.command in ("coverage", "all"):
        coverage(5 if asked.quick else asked.repetitions or 200, asked.seed)
    if asked.command in ("layered", "all"):
        layered_coverage(
            3 if asked.quick else asked.repetitions or 200,
            asked.seed,
            Store(None if asked.quick else asked.results),
        )
    if asked.command in ("ftest", "all"):
        further_queue(5 if asked.quick else asked.repetitions or 400, asked.seed)
    if asked.command in ("track", "all"):
        drifting(1 if asked.quick else asked.repetitions or 20, asked.seed)
    if asked.command in ("table3", "all"):
        table_3(asked.seed, quick=asked.quick, row=asked.row)
    return 0
