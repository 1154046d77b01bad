"""Time of an analytic estimate per candidate of one structure, beside plain estimates of the same candidates.

    python benchmarks/analytic_candidates.py [--candidates N] [--seed N] [--quick]

Candidates of a model differ in numbers: clients, think time, pools, replicas, cores. Each is estimated by
``Estimator.at`` and by ``estimate``, in turns, so that a machine that is slow for a while is slow for both.
Printed are processor seconds of this thread, the largest relative difference between the two in throughput
and response time, how long the first candidate takes, preparation included, and how long the model as it is
takes from then on. One candidate that is never counted comes before everything, so that loading code is not.

The models are the case studies and the one of TeaStore's size beside this file. The target is 20 ms.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from machine import describe
from neutral_models import load_reference_model

from mup.errors import MupError
from mup.lqn import Model
from mup.lqn.files import read_model
from simulator.analytic import Estimate, Estimator, estimate
from simulator.studies.whatif import Change

HERE = Path(__file__).parent
EXAMPLES = ("teastore", "acmeair", "jpetstore", "tms")
TARGET = 0.020
"""Seconds per candidate."""
CLIENTS = (1, 512)
AGAIN = 5
"""Times that the model as it is is estimated; medians are printed."""


@dataclass(frozen=True)
class Row:
    """What was measured of one model: processor seconds, and how far figures differ.

    Attributes:
        first: Of the first candidate, preparation included.
        again: Of the model as it is, estimated again, and estimated plainly.
        ours, plain: Per candidate.
        difference: Largest relative one of throughput and response time.
        without: Candidates that have no estimate.
    """

    first: float
    again: tuple[float, float]
    ours: list[float]
    plain: list[float]
    difference: float
    without: int


def candidate(model: Model, draw: random.Random) -> tuple[Change, ...]:
    """Return changes of numbers: of the clients, and of up to three other things."""
    low, high = CLIENTS
    changes = [Change("clients", "", round(math.exp(draw.uniform(math.log(low), math.log(high)))))]
    services = [t for t in model.tasks if not t.is_reference and t.threads != math.inf]
    for task in draw.sample(services, min(len(services), draw.randint(0, 2))):
        changes.append(Change("pool", task.name, draw.choice((1, 2, 4, 8, 16))))
        if draw.random() < 0.5:
            changes.append(Change("replicas", task.name, draw.choice((1, 2, 3))))
    if draw.random() < 0.3:
        changes.append(Change("think", "", draw.choice((0.5, 2.0, 7.0))))
    queues = [p for p in model.processors if p.parent is None and p.discipline != "infinite"]
    if queues and draw.random() < 0.3:
        changes.append(Change("cores", draw.choice(queues).name, draw.choice((2, 4, 8))))
    return tuple(changes)


def changed(model: Model, changes: Sequence[Change]) -> Model:
    """Return the whole model of a candidate."""
    for change in changes:
        model = change.apply(model)
    return model


def measured(model: Model, count: int, draw: random.Random) -> Row:
    """Estimate candidates of a model both ways."""
    # Loads and compiles what has not been, for both.
    estimate(model)
    Estimator(model).at()
    started = time.thread_time()
    estimator = Estimator(model)
    estimator.at()
    first = time.thread_time() - started
    pairs = []
    for _ in range(AGAIN):
        before = time.thread_time()
        estimator.at()
        between = time.thread_time()
        estimate(model)
        pairs.append((between - before, time.thread_time() - between))
    again = statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs)
    ours, plain, worst, without = [], [], 0.0, 0
    for _ in range(count):
        asked = candidate(model, draw)
        try:
            before = time.thread_time()
            found = estimator.at(asked)
            between = time.thread_time()
            expected = estimate(changed(model, asked))
            after = time.thread_time()
        except MupError:
            without += 1
            continue
        ours.append(between - before)
        plain.append(after - between)
        worst = max(worst, difference(found, expected))
    return Row(first, again, ours, plain, worst, without)


def difference(one: Estimate, other: Estimate) -> float:
    """Return the largest relative difference of throughput and response time."""
    pairs = (
        (one.cycle.throughput, other.cycle.throughput),
        (one.cycle.response_time, other.cycle.response_time),
    )
    return max(abs(a / b - 1) for a, b in pairs if b)


def spread(seconds: Sequence[float]) -> str:
    """Return median, 90th percentile and largest of some times, in milliseconds."""
    last = statistics.quantiles(seconds, n=10)[-1] if len(seconds) > 1 else seconds[0]
    return f"{1e3 * statistics.median(seconds):.1f}, {1e3 * last:.1f}, {1e3 * max(seconds):.1f}"


def main() -> None:
    """Print one line per model."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--candidates", type=int, default=100, help="per model")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="see that it works; the figures mean little")
    options = parser.parse_args()
    count = 5 if options.quick else options.candidates
    print(describe("mup-framework", "numpy"))
    print(f"seed {options.seed}; {count} candidates per model; CPU ms: median, 90th percentile, largest")
    models = {
        f"{name} (example)": read_model(HERE.parent / "examples" / name / "model.json") for name in EXAMPLES
    }
    models["TeaStore's size"] = load_reference_model(HERE / "teastore-size.json").with_clients(64)
    slowest = 0.0
    for name, model in models.items():
        row = measured(model, count, random.Random(f"{name}/{options.seed}"))
        mean = statistics.fmean(row.ours)
        slowest = max(slowest, mean)
        print(
            f"{name}: {spread(row.ours)} (first {1e3 * row.first:.0f}; as it is {1e3 * row.again[0]:.1f},"
            f" plain {1e3 * row.again[1]:.0f}); plain {spread(row.plain)};"
            f" {statistics.fmean(row.plain) / mean:.0f} times as fast; figures differ by {row.difference:.0e}"
            f"{f'; {row.without} without an estimate' if row.without else ''}",
            flush=True,
        )
    verdict = "met" if slowest <= TARGET else "MISSED"
    print(f"mean of the slowest model {1e3 * slowest:.1f} ms; target {1e3 * TARGET:.0f} ms: {verdict}")


if __name__ == "__main__":
    main()
