"""Rates, intervals and alarms of learned networks, by the services of the system.

    python benchmarks/learning/goodness_of_fit.py              # 20 seeds per service: 25 min
    python benchmarks/learning/goodness_of_fit.py --seeds 8
    python benchmarks/learning/goodness_of_fit.py --exponential   # as if services were

Three stations (think 2/s; 6 servers of 12/s; 5 of 9/s), 40 traces of 50 runs of 3 s, observed by the event
by event simulation of the tests, which shares nothing with the method. *Misplaced* is percent of the clients
on traces held back, *limit* what a true network misplaces at most; *rates off* is the mean absolute error,
*bias* the largest mean error of a station, *coverage* how many 95 % intervals of rates hold.
"""

from __future__ import annotations

import argparse
import sys
import time
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
    parser.add_argument("--seconds", type=float, default=3.0, help="of a trace")
    parser.add_argument("--exponential", action="store_true", help="as services are taken to be")
    parser.add_argument("--service", choices=SERVICES, action="append", help="only this one; repeatable")
    arguments = parser.parse_args()
    print(describe())
    print("| service | alarms | misplaced | limit | rates off | bias | coverage | scv | processor time |")
    print("|---|---|---|---|---|---|---|---|---|")
    for service in arguments.service or SERVICES:
        alarms, rows, errors, inside, scvs = 0, [], [], [], []
        for seed in range(arguments.seeds):
            traces = three_stations(service, seconds=arguments.seconds, seed=100 + seed)
            before = time.process_time()
            found = learn_network(
                traces,
                services="exponential" if arguments.exponential else "auto",
                seed=seed,
            )
            good = found.goodness
            if good is None or found.rates_half is None:
                raise RuntimeError("traces begin in whole numbers of clients, so they can be tested")
            alarms += not good.holds
            errors.append(found.network.rates / RATES - 1)
            inside.append(np.abs(found.network.rates - RATES) <= found.rates_half)
            scvs.append(found.network.scv)
            rows.append((good.misplaced, good.limit, time.process_time() - before))
        misplaced, limit, seconds = np.mean(rows, axis=0)
        off, bias = np.abs(errors).mean(), np.abs(np.mean(errors, axis=0)).max()
        print(
            f"| {service} | {alarms} of {arguments.seeds} | {misplaced:.1f} % | {limit:.1f} % |"
            f" {100 * off:.1f} % | {100 * bias:.1f} % | {np.mean(inside):.2f} |"
            f" {', '.join(f'{c:.2g}' for c in np.median(scvs, axis=0))} | {seconds:.1f} s |",
            flush=True,
        )


if __name__ == "__main__":
    main()
