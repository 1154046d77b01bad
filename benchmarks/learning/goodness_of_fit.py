"""Alarms of learned networks: how many false ones, and how many of services that are not exponential.

    python benchmarks/learning/goodness_of_fit.py              # 20 seeds per service: 10 min
    python benchmarks/learning/goodness_of_fit.py --seeds 8

Three stations (think 2/s; 6 servers of 12/s; 5 of 9/s), 40 traces of 50 runs of 3 s, observed by the event by
event simulation of the tests, which shares nothing with the method. *Misplaced* is percent of the clients on
traces held back, *limit* what a true network misplaces at most; *rates off* is the mean absolute error.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "analyzer" / "learning"))

from machine import describe
from service_systems import SERVICES, three_stations

from analyzer.learning.network_learning import learn_network

RATES = np.array([2.0, 12.0, 9.0])


def main() -> None:
    """Print one row per service."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--service", choices=SERVICES, action="append", help="only this one; repeatable")
    arguments = parser.parse_args()
    print(describe())
    print("| service | alarms | misplaced | limit | rates off |\n|---|---|---|---|---|")
    for service in arguments.service or SERVICES:
        alarms, rows = 0, []
        for seed in range(arguments.seeds):
            found = learn_network(three_stations(service, seed=100 + seed), seed=seed)
            good = found.goodness
            if good is None:
                raise RuntimeError("traces begin in whole numbers of clients, so they can be tested")
            alarms += not good.holds
            off = float(np.abs(found.network.rates / RATES - 1).mean())
            rows.append((good.misplaced, good.limit, 100 * off))
        misplaced, limit, off = np.mean(rows, axis=0)
        print(
            f"| {service} | {alarms} of {arguments.seeds} |"
            f" {misplaced:.1f} % | {limit:.1f} % | {off:.0f} % |",
            flush=True,
        )


if __name__ == "__main__":
    main()
