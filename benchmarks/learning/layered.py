"""Learning service demands of random layered systems: Garbi's thesis, section 4.3.1 and figure 19.

Per instance: draw the numbers (``topologies.py``), simulate 100 traces of 5 s from different beginnings (each
the average of so many runs), forget all times, learn them back, and compare response times of the learned
model with those of the true one for k times the clients, both simulated with the same random numbers.

Resumable: finished instances are kept in the file of results; with ``--minutes`` it stops after the instance
during which so much time has passed, and goes on when it is called again (``--minutes 0`` prints what there
is). Systems take turns, so a table of few instances has all of them.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from machine import describe
from topologies import TOPOLOGIES, instance

from analyzer.learning.lqn import learn_lqn
from analyzer.learning.lqn_columns import column_names
from analyzer.learning.lqn_correction import misplaced, simulated_states
from analyzer.learning.traces import Traces
from mup.lqn.edits import with_clients
from mup.lqn.model import Model
from simulator import simulate
from simulator.networks.inlined import InlinedLqn, inline
from simulator.networks.inlined_process import InlinedProcess

RESULTS = Path(__file__).resolve().parents[1] / "results" / "learning-layered.jsonl"
TRACES = 100
DT = 0.2
SAMPLES = 26
PAPER = {
    "shop": "<= 5 %, 6 h 45 min",
    "msrv": "<= 5 %, 5 h 09 min",
    "gcs": "<= 5 %, 6 h 34 min",
}
"""Largest error of a response time and mean duration of learning (96 virtual cores, up to 5 at a time)."""


def observe(lqn: InlinedLqn, starts: np.ndarray, replications: int, seed: int) -> Traces:
    """Return averaged traces of the true system."""
    found = InlinedProcess(lqn).simulate(
        lqn.means, starts, dt=DT, samples=SAMPLES, replications=replications, seed=seed
    )
    return Traces(x=found.x @ lqn.counts.T, dt=DT, names=column_names(lqn))


def response_time(model: Model, clients: int, precision: float) -> float:
    """Return the mean time of a cycle, whose activities are all the client does."""
    result = simulate(with_clients(model, clients), precision=precision, seed=1)
    return float(result.cycle.response_time.mean)


def study(
    name: str, seed: int, factors: Sequence[int], replications: int, precision: float
) -> dict[str, Any]:
    """Learn one instance and ask it what if there were k times the clients."""
    model = instance(name, seed)
    lqn = inline(model)
    process = InlinedProcess(lqn)
    extreme = process.extreme_starts()
    starts = np.vstack([extreme, process.random_starts(TRACES, seed=seed)])[:TRACES]
    traces = observe(lqn, starts, replications, seed=1000 + seed)
    learned = learn_lqn(model, traces)
    true = dict(zip(lqn.times, lqn.means, strict=True))
    clients = int(lqn.clients)
    # As many runs as those by which the corrected model is judged.
    again = simulated_states(process, lqn.means, starts, dt=DT, samples=SAMPLES, seed=2000 + seed)
    errors = {}
    for k in factors:
        truth = response_time(model, k * clients, precision)
        errors[str(k)] = response_time(learned.model, k * clients, precision) / truth - 1
    return {
        "system": name,
        "seed": seed,
        "clients": clients,
        "times": len(true),
        "replications": replications,
        "precision": precision,
        "err_validation": learned.err_validation,
        "simulated": learned.simulated_validation,
        "corrected": learned.corrected_validation,
        "floor": misplaced(again @ lqn.counts.T, traces.x, clients),
        "time_error": [learned.times[k].mean / m - 1 for k, m in true.items()],
        "time_error_fluid": [learned.times[k].uncorrected / m - 1 for k, m in true.items()],
        "response": errors,
        "seconds": learned.seconds,
        "correction_seconds": learned.correction_seconds,
        "warnings": list(learned.warnings),
    }


def table(rows: Sequence[dict[str, Any]]) -> None:
    """Print one line per instance and one per system."""
    print(
        "\n| instance | clients | times | error of times: fluid, corrected (median) | response time, worst k"
        " | misplaced: simulated, corrected, floor | s to learn, to correct |"
    )
    print("|---|---|---|---|---|---|---|")
    for r in rows:
        fluid, corrected = (float(np.median(np.abs(r[f]))) for f in ("time_error_fluid", "time_error"))
        worst = max(abs(e) for e in r["response"].values())
        print(
            f"| {r['system']} {r['seed']} | {r['clients']} | {r['times']} | {100 * fluid:.1f} %,"
            f" {100 * corrected:.1f} % | {100 * worst:.1f} % | {100 * r['simulated']:.1f} %,"
            f" {100 * r['corrected']:.1f} %, {100 * r['floor']:.1f} % | {r['seconds']:.0f},"
            f" {r['correction_seconds']:.0f} |"
        )
    print(
        "\n| system | instances | response time, all k: median, largest error | within 5 % for every k"
        " | error of a time: median, largest | misplaced (median): fluid alone simulated, corrected, floor"
        " | s to learn: median, largest | s to correct: median, largest | thesis |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for name in TOPOLOGIES:
        mine = [r for r in rows if r["system"] == name]
        if mine:
            errors = np.array([[abs(e) for e in r["response"].values()] for r in mine])
            times = np.abs(np.concatenate([r["time_error"] for r in mine]))
            learning, correcting = (
                np.array([r[field] for r in mine]) for field in ("seconds", "correction_seconds")
            )
            misses = (np.median([r[field] for r in mine]) for field in ("simulated", "corrected", "floor"))
            print(
                f"| {name} | {len(mine)} | {_percent(np.median(errors), errors.max())} |"
                f" {int((errors.max(axis=1) <= 0.05).sum())} |"
                f" {_percent(np.median(times), times.max())} | {_percent(*misses)} |"
                f" {np.median(learning):.0f}, {learning.max():.0f} |"
                f" {np.median(correcting):.0f}, {correcting.max():.0f} | {PAPER[name]} |"
            )
    print("Wanted: 5 % for every k on 90 % of the instances; 30 s to learn, 90 s to correct.")


def _percent(*parts: Any) -> str:
    return ", ".join(f"{100 * p:.1f} %" for p in parts)


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Add the options that tell one way to study an instance from another."""
    parser.add_argument("--factors", default="2,3,4,5,6,7,8,9,10", help="times the clients")
    parser.add_argument("--replications", type=int, default=100, help="runs averaged per trace")
    parser.add_argument("--precision", type=float, default=0.01, help="of the response times")
    parser.add_argument("--results", type=Path, default=RESULTS)


def stored_rows(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the instances that have been studied in this way."""
    if not options.results.exists():
        return []
    settings = (options.replications, options.precision, set(options.factors.split(",")))
    rows: list[dict[str, Any]] = [json.loads(line) for line in options.results.read_text().splitlines()]
    return [r for r in rows if (r["replications"], r["precision"], set(r["response"])) == settings]


def main() -> None:
    """Study the instances that are missing, and print all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--systems", default=",".join(TOPOLOGIES))
    parser.add_argument("--instances", type=int, default=8, help="per system; the thesis has 40")
    parser.add_argument("--first", type=int, default=0, help="seed of the first instance")
    add_settings(parser)
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no instance after so many")
    parser.add_argument("--quick", action="store_true", help="one instance, k = 2 and 10, 20 replications")
    options = parser.parse_args()
    last = time.monotonic() + 60 * options.minutes
    print(describe())
    if options.quick:
        options.systems, options.instances, options.factors, options.replications = "shop", 1, "2,10", 20
        options.results = Path("/dev/null")
    learn_lqn(instance("shop", 99), _little("shop"), correction=True)  # compiles what has to be
    factors = [int(k) for k in options.factors.split(",")]
    options.results.parent.mkdir(parents=True, exist_ok=True)
    rows = stored_rows(options)
    known = {(r["system"], r["seed"]) for r in rows}
    for seed in range(options.first, options.first + options.instances):
        for name in options.systems.split(","):
            if (name, seed) in known or time.monotonic() > last:
                continue
            began = time.process_time()
            row = study(name, seed, factors, options.replications, options.precision)
            rows.append(row)
            with options.results.open("a") as file:
                file.write(json.dumps(row) + "\n")
            worst = max(abs(e) for e in row["response"].values())
            print(f"{name} {seed}: {100 * worst:.1f} % in {time.process_time() - began:.0f} s", flush=True)
    table(rows)


def _little(name: str) -> Traces:
    lqn = inline(instance(name, 99))
    starts = InlinedProcess(lqn).random_starts(10)
    return observe(lqn, starts, 1, seed=0)


if __name__ == "__main__":
    main()
