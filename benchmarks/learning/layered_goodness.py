"""Times, intervals, variation and alarms of ``mup learn lqn``, by the services of the system.

    python benchmarks/learning/layered_goodness.py              # 4 seeds per service: 10 min
    python benchmarks/learning/layered_goodness.py --service h2-10 --seeds 1
    python benchmarks/learning/layered_goodness.py --service exponential --entries --seeds 12    # 1 min
    python benchmarks/learning/layered_goodness.py --system shop --system msrv  # of the thesis: 10 min

Users think (0.5 s), A (40 threads) works for 50 ms, asks B (15 threads, 60 ms) and works for 100 ms; 96
users; 30 traces of 60 runs of 2 s, observed by the event by event simulation of the tests, which shares
nothing with the method. *Mixed*: users think exponentially, A is Erlang-5, B hyperexponential of scv 2.
*Off if exponential* and *off* are mean absolute errors of the four times (*worst*: of one), *coverage* is how
many 95 % intervals of times hold, *scv* their median by task (C, A, B), *alarms* with and without them. With
"--entries" there is a column per entry, as event logs give them, which does not tell where traces begin.

With "--system" the systems of the thesis (``topologies.py``: 15 times of 4 tasks, 14 of 7, other numbers for
every seed): 60 traces of 30 runs of 5 s, by the exact simulation of the model, which the method uses, too.
Errors are medians there, for some times of some seeds are hardly ever begun.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "analyzer" / "learning"))

from layered_services import TIMES, two_layers_observed, unknown
from machine import describe
from topologies import instance

from analyzer.learning.lqn import LearnedLqn, LearnedTime, learn_lqn
from analyzer.learning.lqn_columns import column_names, match_columns
from analyzer.learning.lqn_unknowns import with_times
from analyzer.learning.service_families import shape_of
from analyzer.learning.traces import Traces
from mup.lqn import Model
from simulator.networks.begun_stages import BegunStages, begun_stages
from simulator.networks.inlined import TimeKey, inline
from simulator.networks.inlined_process import InlinedProcess

SYSTEMS = ("shop", "msrv")
TRACES, RUNS = 60, 30

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
    parser.add_argument("--system", choices=SYSTEMS, action="append", help="of the thesis; repeatable")
    arguments = parser.parse_args()
    print(describe())
    if arguments.system:
        _systems(arguments.system, arguments.seeds)
        return
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


def _systems(systems: list[str], seeds: int) -> None:
    """Print one row per system and variation."""
    print("| system | scv | off if exponential | off | coverage | scv off | alarms | processor time |")
    print("|---|---|---|---|---|---|---|---|")
    for system, scv in itertools.product(systems, (0.2, 4.0)):
        plain, off, inside, scv_off, alarms, seconds = [], [], [], [], [0, 0], []
        for seed in range(seeds):
            model, true, traces = _observed(system, scv, seed)
            before = learn_lqn(model, traces, seed=seed, services="exponential")
            began = time.process_time()
            learned = learn_lqn(model, traces, seed=seed)
            seconds.append(time.process_time() - began)
            plain += [before.times[key].mean / mean - 1 for key, mean in true.items()]
            off += [learned.times[key].mean / mean - 1 for key, mean in true.items()]
            inside += [
                abs(learned.times[k].mean - m) <= (learned.times[k].ci95 or 0.0) for k, m in true.items()
            ]
            scv_off += [found.scv / scv - 1 for found in learned.times.values()]
            alarms[0] += before.alarm is not None
            alarms[1] += learned.alarm is not None
        print(
            f"| {system} | {scv:g} | {_median(plain)} | {_median(off)} |"
            f" {np.sum(inside)} of {np.size(inside)} | {_median(scv_off)} |"
            f" {alarms[0]}, {alarms[1]} of {seeds} | {np.median(seconds):.0f} s |",
            flush=True,
        )


def _median(errors: list[float]) -> str:
    return f"{100 * np.median(np.abs(errors)):.1f} %"


def _observed(system: str, scv: float, seed: int) -> tuple[Model, dict[TimeKey, float], Traces]:
    """Return an instance of a system, its times, and what is seen if they vary so much."""
    model = instance(system, seed)
    plain = inline(model)
    true = dict(zip(plain.times, plain.means.tolist(), strict=True))
    shaped = with_times(model, {key: shape_of("stages", scv).scaled(mean) for key, mean in true.items()})
    staged = inline(shaped, stages=5)
    process = InlinedProcess(plain)
    starts = np.vstack([process.extreme_starts(), process.random_starts(TRACES, seed=seed)])[:TRACES]
    begun = BegunStages(starts, begun_stages(plain, staged), 7 + seed).drawn(RUNS, seed)
    process = InlinedProcess(staged)
    runs = [
        process.simulate(
            staged.means, start, dt=0.2, samples=26, replications=1, seed=1000 * seed + 100 + run
        ).x
        for run, start in enumerate(begun)
    ]
    names = column_names(plain)
    x = np.mean(runs, axis=0) @ match_columns(staged, names).counts.T
    return model, true, Traces(x=x, dt=0.2, names=names, runs=np.full(TRACES, RUNS))


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
