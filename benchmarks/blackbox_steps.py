"""The experiment of Harbaoui et al. (RR-7027, section 5.3), with a station whose truth is known.

    python benchmarks/blackbox_steps.py [--seed N]

Theirs was an auction site (RUBiS on JOnAS and MySQL) taken for one black box, loaded in 13 steps of 60 s with
10 to 125 requests per second; they conclude M/M/3 or M/G/3. That system is not to be had any more, so here
stations of three servers that bear just that load answer in computed time: what would the same steps have
told? Theirs beside ours, figures of their tables 1 and 2; their families are those with p > 0.1.
"""

from __future__ import annotations

import argparse

import numpy as np
from blackbox import LATENCY, Simulated
from machine import describe

from analyzer.blackbox.arrivals import identify_arrivals
from analyzer.blackbox.station import identify_station

LOADS = (10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120, 125)
SECONDS = 60.0
SERVERS = 3
MEAN = SERVERS / 130.0
"""Seconds of service: a little more than 125 per second can be served."""
PAPER = (
    (0.03, 0.02), (0.04, 0.02), (0.11, 0.03), (0.90, 0.04), (0.74, 0.04), (2.18, 0.08), (1.96, 0.19),
    (1.03, 0.40), (1.46, 0.57), (1.07, 0.58), (23.90, 1.04), (9.72, 0.74), (1.11, 0.87),
)  # fmt: skip
"""Squared coefficient of variation and mean (s) of the service times inferred in each step of the paper."""
PAPER_ARRIVALS = "rate 30.34/s, cv^2 1.015 (0.95 to 1.06), exponential p = 0.59"


def main() -> None:
    """Print what the steps tell, for service times of two families."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0, help="of arrivals and service times (default: 0)")
    seed = parser.parse_args().seed
    print(describe("numpy", "scipy"), f"seed {seed}", sep="; ")
    rng = np.random.default_rng(seed)
    found = identify_arrivals(np.cumsum(rng.exponential(1 / 30.34, 4000)), seed=seed)
    print(
        f"inter-arrival times: paper {PAPER_ARRIVALS}; here rate {found.rate:.2f}/s, cv^2 {found.scv:.3f} "
        f"({found.scv_interval[0]:.2f} to {found.scv_interval[1]:.2f}), exponential p = "
        f"{found.family.p_values['exponential']:.2f}"
    )
    for family in ("exponential", "erlang"):
        _table(family, seed)


def _table(family: str, seed: int) -> None:
    injector = Simulated(family, SERVERS, MEAN)
    steps = [injector.inject(load, SECONDS, 100 * seed + n) for n, load in enumerate(LOADS)]
    station = identify_station(steps, seed=seed)
    print(
        f"\n{family}: {SERVERS} servers, mean {1e3 * injector.mean:.2f} ms; found {station.servers.count}, "
        f"{1e3 * station.distribution.mean:.2f} ms, latency {1e3 * station.servers.latency:.2f} ms "
        f"(true {2e3 * LATENCY * MEAN:.2f})"
    )
    print("| step | load | paper: cv^2 | mean s | here: cv^2 | mean s | waited | families |")
    print("|---|---|---|---|---|---|---|---|")
    for number, (load, (scv, mean), own) in enumerate(zip(LOADS, PAPER, station.steps, strict=True), 1):
        print(
            f"| {number} | {load} | {scv} | {mean} | {own.cv**2:.2f} | {own.service_time:.4f} "
            f"| {own.waited:.0%} | {', '.join(own.accepted) or 'none'} |"
        )


if __name__ == "__main__":
    main()
