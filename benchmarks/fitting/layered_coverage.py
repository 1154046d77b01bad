"""Coverage of 95 % intervals of a layered fit, with and without correction of the solver.

A layered model has no exact solution: the estimate it is fitted with errs by some percent, and parameters
absorb that unless a simulation corrects it. Each repetition is an independent simulation, fitted with the
default seed. Every repetition is kept as soon as it is done.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from stored import Store

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
PRECISE = 0.0005
"""Relative half-width of the simulated truth of a prediction."""
KINDS = {"corrected": True, "not corrected": False}


def layered_coverage(repetitions: int, seed: int, store: Store) -> None:
    """Print the coverage of parameters and predictions, and how far off estimates are on average."""
    figures = np.array(_predicted(seed, store))
    done, failed, spent = [], 0, 0.0
    for own in range(seed, seed + repetitions):
        found = store.get(key := f"layered, measurements with seed {own}, truth with seed {seed}")
        if found is None:
            store.put(key, found := _repetition(own, figures))
        spent += found["seconds"]
        if "failed" in found:
            failed += 1
            print(f"  repetition with seed {own}: {found['failed']}")
        else:
            done.append(found)
    print(
        f"coverage of 95 % intervals of a layered fit, {len(done)} repetitions of {len(MEASURED)} trials of "
        f"{SECONDS:g} s, {failed} failed; {spent / repetitions:.1f} CPU s each:"
    )
    if not done:
        return
    print(f"  {'':45s}" + "".join(f"{kind:>15s}" for kind in KINDS))
    names = [*TRUE_POOLS, "both (box)", "both (ellipsoid)", *(f"predicted {m}" for m in MEASURES)]
    for index, name in enumerate(names):
        shares = [np.mean([f[kind]["hits"][index] for f in done]) for kind in KINDS]
        print(f"  {name:45s}" + "".join(f"{share:15.3f}" for share in shares))
    for index, name in enumerate(TRUE_POOLS):
        means = [100 * np.mean([f[kind]["errors"][index] for f in done]) for kind in KINDS]
        print(f"  {'mean error of ' + name:45s}" + "".join(f"{mean:+13.2f} %" for mean in means))
    widths = [100 * np.mean([f[kind]["half"] for f in done]) for kind in KINDS]
    print(f"  {'mean half-width, both':45s}" + "".join(f"{width:13.2f} %" for width in widths))


def _predicted(seed: int, store: Store) -> list[float]:
    """Return the true figures of the configuration that is predicted, simulated precisely."""
    known = store.get(key := f"layered, truth with seed {seed}")
    if known is None:
        model = with_settings(pools(), clients([PREDICTED])[0])
        document = simulate(model, precision=PRECISE, seed=10**6 + seed).to_json()
        store.put(key, known := [value_of(document, m) for m in MEASURES])
    return list(known)


def _repetition(seed: int, figures: np.ndarray) -> dict[str, Any]:
    """Measure and fit once: by kind what contains the truth, errors, half-widths; or why it failed."""
    started = time.process_time()
    found: dict[str, Any] = {}
    try:
        data = measure(
            pools(), clients(MEASURED), MEASURES, seconds=SECONDS, batches=BATCHES, warmup=WARMUP, seed=seed
        )
        for kind, correct in KINDS.items():
            hits, errors, half = _fitted(data, figures, correct=correct)
            found[kind] = {"hits": [bool(h) for h in hits], "errors": errors.tolist(), "half": half}
    except MupError as error:
        found["failed"] = str(error)
    return found | {"seconds": time.process_time() - started}


def _fitted(data: Data, figures: np.ndarray, *, correct: bool) -> tuple[list[bool], np.ndarray, float]:
    """Return what contains the truth, relative errors of estimates, and their mean relative half-width."""
    truth = np.array(list(TRUE_POOLS.values()))
    start = pools({path: value * f for (path, value), f in zip(TRUE_POOLS.items(), (0.7, 1.4), strict=True)})
    wanted = [Wanted(parameter(path)) for path in TRUE_POOLS]
    found = fit(start, data, wanted, Options(correct=correct))
    sure = found.confidence
    if sure is None:
        raise ValueError(data)
    ((*predictions,),) = predict(found, clients([PREDICTED]), MEASURES, correct=correct)
    hits = [
        *(i.contains(t) for i, t in zip(found.intervals, truth, strict=True)),
        all(i.contains(t) for i, t in zip(found.joint, truth, strict=True)),
        sure.ellipsoid.contains(truth),
        *(p.interval.contains(t) for p, t in zip(predictions, figures, strict=True)),
    ]
    halves = [i.half_width / t for i, t in zip(found.intervals, truth, strict=True)]
    return hits, np.array(found.values) / truth - 1, float(np.mean(halves))
