"""Times, intervals, variation and alarms of ``mup learn lqn``, by the services of the system.

    python benchmarks/learning/layered_goodness.py              # 4 seeds per service: 8 min
    python benchmarks/learning/layered_goodness.py --service h2-10 --seeds 1
    python benchmarks/learning/layered_goodness.py --service exponential --entries --seeds 12    # 1 min

Users think (0.5 s), A (40 threads) works for 50 ms, asks B (15 threads, 60 ms) and works for 100 ms; 96
users; 30 traces of 60 runs of 2 s, observed by the event by event simulation of the tests, which shares
nothing with the method. *Mixed*: users think exponentially, A is Erlang-5, B hyperexponential of scv 2.
*Off if exponential* and *off* are mean absolute errors of the four times (*worst*: of one), *coverage* is how
many 95 % intervals of times hold, *scv* their median by task (C, A, B), *alarms* with and without them. With
"--entries" there is a column per entry, as event logs give them, which does not tell where traces begin.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "analyzer" / "learning"))

from layered_services import TIMES, two_layers_observed, unknown
from machine import describe

from analyzer.learning.lqn import LearnedLqn, LearnedTime, learn_lqn
from analyzer.learning.traces import Traces

SERVICES = {
    name: dict.fromkeys(TIMES, name)
    for name in ("exponential", "erlang-5", "constant", "h2-2", "h2-10", "lognormal-4")
} | {"mixed": {"think": "exponential", "pre": "erlang-5", "q": "h2-2", "post": "erlang-5"}}


def main() -> None:
    """Print one row per service."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--service", choices=SERVICES, action="append", help="only this one; repeatable")
    parser.add_argument("--entries", action="store_true", help="a column per entry")
    arguments = parser.parse_args()
    print(describe())
    print("| service | off if exponential | off | worst | coverage | known | scv | alarms | processor time |")
    print("|---|---|---|---|---|---|---|---|---|")
    for service in arguments.service or SERVICES:
        plain, off, inside, known, scv, alarms, seconds = [], [], [], [], [], [0, 0], []
        for seed in range(arguments.seeds):
            traces = two_layers_observed(SERVICES[service], seed=seed)
            if arguments.entries:
                traces = _of_entries(traces)
            before = learn_lqn(unknown(), traces, seed=seed, services="exponential")
            began = time.process_time()
            learned = learn_lqn(unknown(), traces, seed=seed)
            seconds.append(time.process_time() - began)
            plain.append(_errors(before))
            off.append(_errors(learned))
            inside.append(
                [abs(found.mean - TIMES[name]) <= (found.ci95 or 0.0) for name, found in _named(learned)]
            )
            known.append([found.known for _, found in _named(learned)])
            by_task = {key.task: t.scv for key, t in learned.times.items()}
            scv.append([by_task[task] for task in ("C", "A", "B")])
            alarms[0] += before.alarm is not None
            alarms[1] += learned.alarm is not None
        print(
            f"| {service} | {100 * np.abs(plain).mean():.1f} % | {100 * np.abs(off).mean():.1f} % |"
            f" {100 * np.abs(off).max():.1f} % | {np.sum(inside)} of {np.size(inside)} |"
            f" {np.sum(known)} |"
            f" {', '.join(f'{c:.2g}' for c in np.median(scv, axis=0))} |"
            f" {alarms[0]}, {alarms[1]} of {arguments.seeds} | {np.median(seconds):.1f} s |",
            flush=True,
        )


def _of_entries(traces: Traces) -> Traces:
    think, at_a, pre, waiting_b, at_b, post = np.moveaxis(traces.x, 2, 0)
    x = np.stack((think, at_a + pre + waiting_b + at_b + post, waiting_b + at_b), axis=2)
    return replace(traces, x=x, names=("C.cycle:think", "A.serve", "B.query"))


def _named(learned: LearnedLqn) -> list[tuple[str, LearnedTime]]:
    return [(key.activity or key.time, found) for key, found in learned.times.items()]


def _errors(learned: LearnedLqn) -> list[float]:
    return [found.mean / TIMES[name] - 1 for name, found in _named(learned)]


if __name__ == "__main__":
    main()
