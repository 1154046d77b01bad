"""The command line of ``benchmarks/estimation``: runs what is missing, prints tables.

Every line of the results file is one system at one load; a run that was interrupted goes on where it was.
Durations are processor time.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from accuracy.quiet import Quiet, add_options, quiet_of
from machine import describe
from scipy import stats
from stored import Store, add_results

from analyzer.estimation.baseline import demands
from analyzer.estimation.methods import METHODS, estimate
from estimation.experiments import LOADS, Setting, figures, table1
from estimation.service import CLASSES, CORES, service_rows
from estimation.service import METHODS as SERVICE_METHODS
from estimation.station import Observed, System, simulate, system
from estimation.tracked import CASES, PERIOD, followed

REPEATS = 30
WINDOWS = 100
COVERED = (Setting("coverage", 2, 8, ("ldps",)), Setting("coverage", 8, 64, ("ldps",), ratio=10.0))
COVERAGE_RUNS = 200
TRACKED = 30
TIMED = ("16", "pool64")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is missing and print every table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true", help="two repeats of few settings: does it work?")
    parser.add_argument(
        "--only",
        default="",
        metavar="NAME",
        help="figures whose name starts so, table1, coverage, tracking, service",
    )
    add_results(parser, "estimation.jsonl")
    add_options(parser)
    options = parser.parse_args(arguments)
    print(describe("numpy", "scipy"))
    print(f"{2 if options.quick else REPEATS} repeats with seeds from 0; errors in %, mean +- 95 %")
    store = Store(None if options.quick else options.results)
    repeats = 2 if options.quick else REPEATS
    chosen = [s for s in figures() if s.figure.startswith(options.only)]
    if options.quick:
        chosen = [s for s in chosen if s.samples <= 100]
    for figure in dict.fromkeys(s.figure for s in chosen):
        print_figure([s for s in chosen if s.figure == figure], store, repeats, loads=options.quick)
    if "table1".startswith(options.only):
        print_table1(table1(quick=options.quick), store, repeats)
    if "coverage".startswith(options.only):
        print_coverage(store, 4 if options.quick else COVERAGE_RUNS)
    if "tracking".startswith(options.only):
        print_tracking(2 if options.quick else TRACKED)
    if "service".startswith(options.only):
        print_service(6.0 if options.quick else 40.0, repeats, store, quiet_of(options), quick=options.quick)


def station(setting: Setting, users: int) -> System:
    """Return the system of a setting at a load."""
    return system(
        setting.cores,
        setting.threads,
        users,
        setting.classes,
        setting.ratio,
        switch=setting.switch,
        scv=setting.scv,
        shared=setting.shared,
    )


def estimated(method: str, model: System, seen: Observed) -> np.ndarray:
    """Return the demands a method finds."""
    if method == "bl":
        # All requests are known, those to be used are as many as the other methods have.
        work = demands(seen.trace, model.cores)[seen.used]
        kind = seen.trace.kind[seen.used]
        return np.array([work[kind == r].mean() for r in range(len(model.demand))])
    data = seen.windows if METHODS[method].needs == "windows" else seen.samples
    return estimate(data, cores=model.cores, threads=model.threads, method=method, resamples=0).demand


def measured(setting: Setting, users: int, store: Store, repeats: int) -> dict[str, Any]:
    """Return per method the relative errors of all repeats and classes, and seconds per estimate."""
    key = f"{setting.figure}: {setting.label}, N={users}, {repeats} repeats"
    if (known := store.get(key)) is not None:
        return dict(known)
    model = station(setting, users)
    windows = WINDOWS if any(METHODS[m].needs == "windows" for m in setting.methods) else 0
    result: dict[str, Any] = {m: {"errors": [], "seconds": []} for m in setting.methods}
    for seed in range(repeats):
        seen = simulate(model, setting.samples, seed, windows=windows)
        for method in setting.methods:
            began = time.process_time()
            found = estimated(method, model, seen)
            result[method]["seconds"].append(time.process_time() - began)
            result[method]["errors"] += np.round((found - model.demand) / model.demand, 5).tolist()
    store.put(key, result)
    return result


def mean_error(errors: Iterable[float]) -> tuple[float, float]:
    """Return the mean absolute error and its 95 % half-width, in percent."""
    values = 100 * np.abs(np.array(list(errors)))
    spread = float(values.std(ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return float(values.mean()), float(stats.t.ppf(0.975, max(len(values) - 1, 1))) * spread


def print_figure(settings: Sequence[Setting], store: Store, repeats: int, *, loads: bool) -> None:
    """Print a table per setting: loads down, methods across."""
    for setting in settings:
        print(
            f"\nFigure {setting.figure}: {setting.label}"
            + (f"; paper: {setting.paper}" if setting.paper else "")
        )
        print("    N  " + "".join(f"{m:>16}" for m in setting.methods))
        for users in setting.loads[::4] if loads else setting.loads:
            found = measured(setting, users, store, repeats)
            cells = []
            for method in setting.methods:
                mean, half = mean_error(found[method]["errors"])
                cells.append(f"{mean:8.2f} +-{half:5.2f}")
            print(f"{users:5}  " + "".join(f"{cell:>16}" for cell in cells))
            if setting.figure in TIMED:
                seconds = {m: 1e3 * float(np.median(found[m]["seconds"])) for m in setting.methods}
                print("   ms  " + "".join(f"{seconds[m]:16.2f}" for m in setting.methods))
            sys.stdout.flush()


def print_table1(settings: Iterable[Setting], store: Store, repeats: int) -> None:
    """Print the error of the recommended method over all settings of table 1."""
    rows = []
    for setting in settings:
        for users in LOADS:
            found = measured(setting, users, store, repeats)
            rows.append((setting, users, *(mean_error(found[m]["errors"])[0] for m in ("bl", "ldps"))))
    print(f"\nTable 1: {len(rows)} settings, 100 samples per class")
    ldps, bl = np.array([row[3] for row in rows]), np.array([row[2] for row in rows])
    for name, values in (("bl", bl), ("ldps (recommended)", ldps)):
        p50, p95 = np.quantile(values, [0.5, 0.95])
        print(
            f"{name:20} mean {values.mean():.2f}, median {p50:.2f}, 95 % below {p95:.2f}, "
            f"worst {values.max():.2f}"
        )
    print("by N, V and W/V, mean of ldps:")
    for what, value in (
        ("N", lambda row: row[1]),
        ("V", lambda row: row[0].cores),
        ("W/V", lambda row: row[0].threads // row[0].cores),
        ("R", lambda row: row[0].classes),
        ("ratio", lambda row: row[0].ratio),
    ):
        values = sorted({value(row) for row in rows})
        means = [np.mean([row[3] for row in rows if value(row) == v]) for v in values]
        print(f"  {what:6}" + "  ".join(f"{v:g}: {m:.2f}" for v, m in zip(values, means, strict=True)))
    print("worst:")
    for setting, users, low, high in sorted(rows, key=lambda row: -row[3])[:5]:
        print(f"  {setting.label}, N={users}: ldps {high:.2f}, bl {low:.2f}")


def print_coverage(store: Store, runs: int) -> None:
    """Print how often the 95 % intervals of the recommended method hold the true demand."""
    print(f"\nCoverage of 95 % intervals of ldps, {runs} runs")
    for setting in COVERED:
        for users in LOADS:
            key = f"{setting.figure}: {setting.label}, N={users}, {runs} runs"
            share = store.get(key)
            if share is None:
                model = station(setting, users)
                inside = []
                for seed in range(runs):
                    seen = simulate(model, setting.samples, seed).samples
                    found = estimate(
                        seen, cores=model.cores, threads=model.threads, method="ldps", resamples=400
                    )
                    inside += ((found.low <= model.demand) & (model.demand <= found.high)).tolist()
                store.put(key, share := float(np.mean(inside)))
            print(f"  {setting.label}, N={users}: {share:.3f}")
            sys.stdout.flush()


def print_tracking(repeats: int) -> None:
    """Print what the Kalman filter notices, and how soon."""
    print(f"\nTracking, every request known, V=4 W=16, periods of {PERIOD:g} s, {repeats} runs each")
    print(
        "    N  per period  work, scv     step  false alarms/1000  noticed in 10  in 20  after  error later %"
    )
    for case in CASES:
        found = followed(case, repeats)
        print(
            f"{case.users:5}  {found.requests:10.0f}  {case.work:12}  {case.factor - 1:4.0%}"
            f"  {found.false:17.2f}  {found.soon:13.2f}  {found.within:5.2f}  {found.delay:5.1f}"
            f"  {100 * found.error:13.1f}"
        )
        sys.stdout.flush()


def print_service(seconds: float, experiments: int, store: Store, quiet: Quiet, *, quick: bool) -> None:
    """Print errors on a real service, whose threads' processor clocks are the truth."""
    print(
        f"\nFigure 17 on a service of mup: {CORES} cores, 8 classes, {experiments} times 800 requests,\n"
        "  error in %; clocks: processor clocks of the same requests; paper (SAP ERP, 6 classes): BL and\n"
        "  MINPS small up to 75 users, then BL 20 %, MINPS and ERPS 20 to 30 %"
    )
    print(" pool  users  busy   clocks" + "".join(f"{method:>9}" for method in SERVICE_METHODS))
    rows = []
    for row in service_rows(seconds, experiments, store, quiet, quick=quick):
        rows.append(row)
        errors = row["8"]["errors"].values()
        print(
            f"{row['pool']:5}  {row['users']:5}  {row['busy']:4.2f}"
            + "".join(f"{e:9.1f}" for e in errors)
            + (f"  void: {row['void']}" if row["void"] else "")
        )
        sys.stdout.flush()
    print(
        "\nFigure 18: difference to bl in %, 4 and 8 classes of 100 requests each; paper (OFBiz): means of\n"
        "  ERPS and FMLPS about 10 % (4 classes, 10 to 30 users), else about 20 %"
    )
    others = SERVICE_METHODS[1:]
    print(" pool  users" + "".join(f"{f'{m} {r}':>9}" for r in (4, 8) for m in others))
    for row in rows:
        found = [row[str(r)]["to_bl"][m] for r in (4, 8) for m in others]
        print(f"{row['pool']:5}  {row['users']:5}" + "".join(f"{f:9.1f}" for f in found))
    print("\nFigure 19: processor time of a warm estimate in ms, median; paper: FMLPS 9 min with 4 classes")
    print(" classes" + "".join(f"{method:>9}" for method in SERVICE_METHODS))
    for classes in reversed(CLASSES):
        medians = [np.median([row[str(classes)]["seconds"][m] for row in rows]) for m in SERVICE_METHODS]
        print(f"{classes:8}" + "".join(f"{1e3 * m:9.1f}" for m in medians))
