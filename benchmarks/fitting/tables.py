"""Tables 1, 2 and 3 of Woodside's paper: theirs beside ours."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from analyzer.fitting.covariance import errors_of
from analyzer.fitting.data import Data
from analyzer.fitting.fit import Fit, Options, Wanted, fit
from analyzer.fitting.forward import Settings, forward_of
from analyzer.fitting.parameters import parameter
from analyzer.fitting.regression import Problem, minimise
from analyzer.fitting.structures import compare

from .measurements import measure
from .systems import NODES, TRUE_DEMANDS, TRUE_LAYERED, layered, queueing

MEASURES = (*(f"entries.{name}.serve.response_time" for name in NODES), "throughput")
BATCHES = 20
START = (3.0, 3.0, 3.0)


@dataclass(frozen=True)
class Row:
    """An experiment of Table 1: think time, trials, their length, estimates and half-widths of the paper."""

    name: str
    think: float
    trials: int
    seconds: float
    estimates: tuple[float, float, float]
    halves: tuple[float, float, float]


TABLE_1 = (
    Row("A1", 0, 10, 1e6, (2.003, 3.005, 4.005), (0.0109, 0.0108, 0.0087)),
    Row("A2", 0, 10, 1e5, (1.992, 2.989, 4.011), (0.0223, 0.0222, 0.0178)),
    Row("A3", 0, 100, 1e4, (2.011, 3.077, 4.044), (0.039, 0.038, 0.031)),
    Row("A4", 0, 10, 1e4, (2.018, 2.994, 4.004), (0.018, 0.018, 0.014)),
    Row("A5", 0, 10, 1e3, (2.182, 2.967, 3.848), (0.204, 0.217, 0.181)),
    Row("B1", 10, 10, 1e6, (2.005, 2.994, 4.009), (0.0089, 0.0097, 0.0081)),
    Row("B2", 10, 10, 1e5, (2.003, 3.010, 4.036), (0.0215, 0.0234, 0.0194)),
    Row("B3", 10, 100, 1e4, (2.001, 2.999, 3.941), (0.025, 0.027, 0.023)),
    Row("B4", 10, 10, 1e4, (1.939, 2.944, 3.925), (0.072, 0.078, 0.065)),
    Row("B5", 10, 10, 1e3, (1.854, 2.798, 3.980), (0.221, 0.247, 0.188)),
)
TABLE_2 = {
    "B1": ((2.005, 2.994, 4.010, 0.005), (0.009, 0.010, 0.009, 0.201), 0.014),
    "B5": ((1.858, 2.808, 4.006, 0.470), (0.231, 0.263, 0.203, 4.127), -0.024),
}
"""By experiment whose data are used: estimates and half-widths with a fourth queue, test statistic."""
TABLE_3 = (
    ("D1", 1e3, (0.695, 0.559, 0.192, 0.234, 0.101, 1, 3), (0.693, 0.138, 0.021, 0.232, 0.002, 0.207, 0.050)),
    ("D2", 1e5, (0.378, 0.608, 0.195, 0.111, 0.100, 1, 3), (0.367, 0.059, 0.011, 0.202, 0.001, 0.140, 0.024)),
)


def clients(numbers: Sequence[int]) -> list[Settings]:
    """Return trials that differ in the number of clients."""
    return [((parameter("clients"), float(n)),) for n in numbers]


def data_of(row: Row, seed: int) -> Data:
    """Measure an experiment of Table 1: 1 to 10 clients, with 100 trials ten times each."""
    model = queueing(think=row.think)
    per = row.trials // 10
    batches = max(BATCHES // per, 2) if per > 1 else BATCHES
    parts = [
        measure(
            model, clients(range(1, 11)), MEASURES, seconds=row.seconds, batches=batches, warmup=200.0,
            seed=seed + part,
        )
        for part in range(per)
    ]  # fmt: skip
    trials = [
        replace(
            same[0],
            rows=np.concatenate([t.rows for t in same]),
            half_widths=np.concatenate([t.half_widths for t in same]),
            weights=np.concatenate([t.weights for t in same]),
        )
        for same in zip(*(p.trials for p in parts), strict=True)
    ]
    return Data(MEASURES, tuple(trials))


def fit_queueing(row: Row, data: Data, nodes: int = 3) -> Fit:
    """Fit the demands of 3 or 4 nodes."""
    names = (*NODES, "ghost")[:nodes]
    model = queueing((*START, 0.5)[:nodes], think=row.think)
    return fit(model, data, [Wanted(parameter(f"demand.{n}.serve")) for n in names])


def table_1(seed: int) -> None:
    """Print Table 1."""
    print("Table 1: demands 2, 3, 4 of a queueing network; paper | here (estimate +- 95 % half-width)")
    worst = 0.0
    for row in TABLE_1:
        found = fit_queueing(row, data_of(row, seed))
        halves = [i.half_width for i in found.intervals]
        paper = "  ".join(f"{e:.3f} +-{h:.4f}" for e, h in zip(row.estimates, row.halves, strict=True))
        ours = "  ".join(f"{e:.4f} +-{h:.4f}" for e, h in zip(found.values, halves, strict=True))
        print(f"  {row.name} {row.trials:3d} x {row.seconds:<9g} Z={row.think:<3g} {paper} | {ours}")
        if row.name == "A1":
            worst = max(abs(v / t - 1) for v, t in zip(found.values, TRUE_DEMANDS, strict=True))
    print(f"  A1: largest error {100 * worst:.3f} %")
    print(
        f"  A1: CPU time per fit {1e3 * time_of_a_fit(seed):.2f} ms (model compiled once, median of 50 fits)"
    )


def time_of_a_fit(seed: int) -> float:
    """Return the CPU seconds of a fit of row A1, from rows to estimates; the model has been compiled."""
    data = data_of(TABLE_1[0], seed)
    parameters = [parameter(f"demand.{n}.serve") for n in NODES]
    scales, trials = np.array(START), [t.settings for t in data.trials]
    forward = forward_of(queueing(START), parameters, scales, trials, MEASURES)
    times = []
    for _ in range(50):
        started = time.process_time()
        problem = Problem.of(parameters, scales, forward, data, errors_of(data), {})
        minimise(problem, scales)
        times.append(time.process_time() - started)
    return float(np.median(times))


def table_2(seed: int) -> None:
    """Print Table 2."""
    print("Table 2: a fourth queue that is not there; paper | here (interval of the fourth; F test)")
    for name, (estimates, halves, statistic) in TABLE_2.items():
        row = next(r for r in TABLE_1 if r.name == name)
        data = data_of(row, seed)
        three, four = fit_queueing(row, data), fit_queueing(row, data, 4)
        test = compare(three, four)
        paper = "  ".join(f"{e:.3f} +-{h:.3f}" for e, h in zip(estimates, halves, strict=True))
        ours = "  ".join(f"{v:.3f}" for v in four.values)
        ghost = four.intervals[3]
        print(f"  as {name}: {paper}, statistic {statistic:g} | {ours}")
        print(
            f"         fourth {ghost.low:.3f} .. {ghost.high:.3f} ({ghost.method}); "
            f"E {test.squares[0]:.3f} and {test.squares[1]:.3f}, "
            f"F({test.freedom[0]}, {test.freedom[1]}) = {test.statistic:.3f}, p = {test.p_value:.2f}"
        )


LAYERED_MEASURES = (
    "response_time",
    "throughput",
    "entries.App.appOp.response_time",
    "entries.Dir.dirOp.response_time",
    "entries.DB.dbOp.response_time",
    "tasks.App.utilization",
    "tasks.Dir.utilization",
    "tasks.DB.utilization",
)
"""What is measured of the layered network: times and utilizations at interfaces, as the paper recommends. Its
text does not list its measures."""
FAR = {
    "demand.Dir.dirOp": 0.15,
    "demand.WS.webOp": 0.3,
    "demand.App.appOp:phase1": 0.3,
    "demand.App.appOp:phase2": 0.1,
    "demand.DB.dbOp": 0.12,
    "pool.App": 2.0,
    "pool.WS": 3.0,
}


def table_3(seed: int, *, quick: bool, row: str | None = None) -> None:
    """Print Table 3, or a row of it; ``quick`` without correction of the solver by simulation."""
    print("Table 3: seven parameters of a layered network; paper | here")
    numbers = range(5, 51, 20) if quick else range(5, 51, 5)
    for name, seconds, estimates, halves in TABLE_3:
        if name != (row or ("D1" if quick else name)):
            continue
        data = measure(
            layered(),
            clients(numbers),
            LAYERED_MEASURES,
            seconds=seconds,
            batches=BATCHES,
            warmup=500.0,
            seed=seed,
        )
        wanted = [Wanted(parameter(path)) for path in TRUE_LAYERED]
        started = time.process_time()
        found = fit(layered(FAR), data, wanted, Options(method="linear", correct=not quick))
        spent = time.process_time() - started
        for (path, truth), e, h, v, i in zip(
            TRUE_LAYERED.items(), estimates, halves, found.values, found.intervals, strict=True
        ):
            inside = "" if i.contains(truth) else "  (truth outside)"
            print(
                f"  {name} {path:26s} true {truth:<4g} | {e:.3f} +-{h:.3f} | "
                f"{v:.4f}  {i.low:.4f} .. {i.high:.4f}{inside}"
            )
        left = math.nan if found.p_value is None else found.p_value
        print(
            f"  {name} E = {found.squares:.4g}, freedom {found.freedom}, p = {left:.2g}; "
            f"{found.corrections} corrections; {len(found.whole)} combinations of whole numbers; "
            f"{spent:.0f} CPU s"
        )
