"""Response time of one user of a case study with short and with long pauses.

    python benchmarks/pauses.py acmeair jpetstore

Every process is the colder, the longer it was idle: its caches, and those of the database, hold other
things, and idle cores doze. A model knows how much longer requests take then from the rounds of an
exploration with and without pauses. These are shorter than those of real users, so it has to know how that
goes on (``mup.lqn.LoadDependence``). Printed are response times without think time, local work as pauses
(``wait``).
"""

from __future__ import annotations

import argparse
import signal
import sys

from accuracy.quiet import add_options, quiet_of
from case_studies.applications import APPLICATIONS, available_database, started
from machine import describe

from mup.workload.measure import measure_load

SCALES = {0.0: 15.0, 0.015: 15.0, 0.06: 20.0, 0.25: 30.0, 1.0: 60.0}
"""Factors on think times, and seconds of the window."""
WARMUP = 5.0


def main() -> None:
    """Measure every application at every scale and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("applications", nargs="+", choices=APPLICATIONS)
    add_options(parser)
    options = parser.parse_args()
    quiet, database = quiet_of(options), available_database()
    print(describe(), f"\n{database}\n")
    print(
        "| application | think times x | cycles | cycles/s | response ms | void |\n|---|---|---|---|---|---|"
    )
    for application in options.applications:
        for scale, seconds in SCALES.items():
            with quiet.alone(), started(application, "wait", database) as project:
                found = measure_load(
                    project, clients=1, duration=seconds, warmup=WARMUP, think_scale=scale, retries=1
                )
            times = found.response_time
            width = "" if times.ci95 is None else f" +- {1e3 * times.ci95:.1f}"
            print(
                f"| {application} | {scale:g} | {found.cycles} | {found.throughput.mean:.3g} "
                f"| {1e3 * times.mean:.1f}{width} | {found.void or '-'} |",
                flush=True,
            )


if __name__ == "__main__":
    # Ended by SIGTERM like by Ctrl-C: services that were started end, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
