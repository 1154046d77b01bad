"""How often do 95 % intervals of a layered fit contain the truth, with and without correction of the solver?

A layered model has no exact solution: the estimate it is fitted with errs by some percent, and parameters
absorb that unless a simulation corrects it. Each repetition is an independent simulation, and has its own
seed for the corrections.
"""

from __future__ import annotations

import time

import numpy as np

from analyzer.fitting.data import Data
from analyzer.fitting.fit import Options, Wanted, fit
from analyzer.fitting.forward import with_settings
from analyzer.fitting.measures import value_of
from analyzer.fitting.parameters import parameter
from analyzer.fitting.predictions import predict
from mup.errors import MupError
from simulator import simulate

from .measurements import measure
from .systems import TRUE_POOLS, pools
from .tables import clients

MEASURED = (3, 6, 10)
PREDICTED = 16
"""Clients of the configurations that are measured, and of the one that is predicted."""
SECONDS, BATCHES, WARMUP = 200.0, 20, 20.0
"""Of a trial; half-widths of its means are 2 to 5 %."""
MEASURES = (
    "response_time",
    "throughput",
    "entries.back.serve.response_time",
    "tasks.front.utilization",
)
PRECISE = 0.002
"""Relative half-width of the simulated truth of a prediction."""
KINDS = {"corrected": True, "not corrected": False}


def layered_coverage(repetitions: int, seed: int) -> None:
    """Print the coverage of parameters and predictions, and how far off estimates are on average."""
    truth = np.array(list(TRUE_POOLS.values()))
    there = clients([PREDICTED])
    document = simulate(with_settings(pools(), there[0]), precision=PRECISE, seed=10**6 + seed).to_json()
    figures = np.array([value_of(document, m) for m in MEASURES])
    hits: dict[str, list[list[bool]]] = {kind: [] for kind in KINDS}
    errors: dict[str, list[np.ndarray]] = {kind: [] for kind in KINDS}
    halves: dict[str, list[float]] = {kind: [] for kind in KINDS}
    failed, started = 0, time.process_time()
    for repetition in range(repetitions):
        own = seed + repetition
        try:
            data = measure(
                pools(),
                clients(MEASURED),
                MEASURES,
                seconds=SECONDS,
                batches=BATCHES,
                warmup=WARMUP,
                seed=own,
            )
            found = {kind: _fitted(data, own, truth, figures, correct=c) for kind, c in KINDS.items()}
        except MupError as error:
            failed += 1
            print(f"  repetition {repetition}: {error}")
            continue
        for kind, (hit, error_of_estimates, half) in found.items():
            hits[kind].append(hit)
            errors[kind].append(error_of_estimates)
            halves[kind].append(half)
    done = repetitions - failed
    print(
        f"coverage of 95 % intervals of a layered fit, {done} repetitions of {len(MEASURED)} trials of "
        f"{SECONDS:g} s, {failed} failed; {(time.process_time() - started) / repetitions:.1f} CPU s each:"
    )
    print(f"  {'':45s}" + "".join(f"{kind:>15s}" for kind in KINDS))
    names = [*TRUE_POOLS, "both (box)", "both (ellipsoid)", *(f"predicted {m}" for m in MEASURES)]
    shares = {kind: np.mean(np.array(found, dtype=float), axis=0) for kind, found in hits.items()}
    for index, name in enumerate(names):
        print(f"  {name:45s}" + "".join(f"{share[index]:15.3f}" for share in shares.values()))
    for index, name in enumerate(TRUE_POOLS):
        means = [100 * np.mean([e[index] for e in found]) for found in errors.values()]
        print(f"  {'mean error of ' + name:45s}" + "".join(f"{mean:+13.2f} %" for mean in means))
    widths = [100 * np.mean(found) for found in halves.values()]
    print(f"  {'mean half-width, both':45s}" + "".join(f"{width:13.2f} %" for width in widths))


def _fitted(
    data: Data, seed: int, truth: np.ndarray, figures: np.ndarray, *, correct: bool
) -> tuple[list[bool], np.ndarray, float]:
    """Return what contains the truth, relative errors of estimates, and their mean relative half-width."""
    start = pools({path: value * f for (path, value), f in zip(TRUE_POOLS.items(), (0.7, 1.4), strict=True)})
    wanted = [Wanted(parameter(path)) for path in TRUE_POOLS]
    found = fit(start, data, wanted, Options(correct=correct, seed=seed))
    sure = found.confidence
    if sure is None:
        raise ValueError(data)
    ((*predictions,),) = predict(found, clients([PREDICTED]), MEASURES, correct=correct, seed=seed)
    hits = [
        *(i.contains(t) for i, t in zip(found.intervals, truth, strict=True)),
        all(i.contains(t) for i, t in zip(found.joint, truth, strict=True)),
        sure.ellipsoid.contains(truth),
        *(p.interval.contains(t) for p, t in zip(predictions, figures, strict=True)),
    ]
    halves = [i.half_width / t for i, t in zip(found.intervals, truth, strict=True)]
    return hits, np.array(found.values) / truth - 1, float(np.mean(halves))
