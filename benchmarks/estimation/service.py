"""Figures 17 to 19 of the paper on a service of mup: demands from its log, its processor clocks as truth.

A service with eight endpoints that compute for random times runs in a pool of worker processes, under closed
loads. The event log has start and end of every request, from which the estimators work, and the processor
time of the worker, which they do not see. As the paper did, neighbouring endpoints are also taken together,
to four classes, and to two and one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from accuracy.quiet import Quiet
from stored import Store

from analyzer.calibration.executions import Execution
from analyzer.estimation.event_logs import executions_of, trace_of_executions
from analyzer.estimation.methods import estimate
from analyzer.estimation.samples import FloatArray, Trace

__all__ = ["CLASSES", "CORES", "LOADS", "METHODS", "PER_CLASS", "POOLS", "service_rows"]

CORES = os.cpu_count() or 1
LOADS = (2, 8, 16, 24)
POOLS = (3, 6)
METHODS = ("bl", "ldps", "minps", "erps", "fmlps")
DEMANDS = (0.004, 0.005, 0.006, 0.008, 0.009, 0.011, 0.014, 0.018)
"""Mean processor seconds of the endpoints."""
CLASSES = (8, 4, 2, 1)
PER_CLASS = 100
"""Requests per class of an estimate, as in the paper's sections 9 and 10."""
ATTEMPTS = 3
"""Runs of a load, as long as all are void."""

SERVICE = """\
    import random
    import time

    from mup import EP, MS, Client, Communication


    def compute(seconds):
        until = time.thread_time() + random.expovariate(1 / seconds)
        while time.thread_time() < until:
            pass


    class Shop(MS):
        pool_size = POOL
    ENDPOINTS

    class Buyer(Client):
        async def scenario(self, comm: Communication) -> None:
            await self.think(THINK, "exponential")
            await comm.call("Shop", f"/e{self.random.randrange(NUMBER)}/", {})
"""
ENDPOINT = """
        @EP("/e{number}/")
        def e{number}(self, comm: Communication) -> None:
            compute({demand})
            comm.respond({{}})
"""

TOML = """\
    [project]
    name = "shop"
    client = "shop:Buyer"

    [registry]
    port = 0

    [services.Shop]
    class = "shop:Shop"
"""
THINK = LOADS[-1] * float(np.mean(DEMANDS)) / CORES
"""Twenty-four users who think this long would keep nearly all cores busy."""


def service_rows(
    seconds: float, experiments: int, store: Store, quiet: Quiet, *, quick: bool
) -> Iterator[dict[str, Any]]:
    """Yield what was found under each load.

    Args:
        seconds: Length of each load run; longer if too few requests would come.
        experiments: Estimates per run, each from other consecutive requests of it.
        store: Where what is known already is, and what is found is kept; void runs are not.
        quiet: How the machine is shared with others.
        quick: One load, once.

    Yields:
        ``pool``, ``users``, ``busy`` (share of the cores, by the clocks), ``void`` (why it says nothing, or
        ""), and by number of classes (a string): ``errors`` of each method and of the clocks of the same
        requests (``clocks``) in %, ``to_bl`` (% relative to ``bl``), ``seconds`` (median processor time of
        an estimate).
    """
    for pool in POOLS[:1] if quick else POOLS:
        for users in LOADS[1:2] if quick else LOADS:
            rate = min(users / (THINK + float(np.mean(DEMANDS))), CORES / float(np.mean(DEMANDS)))
            length = seconds if quick else max(seconds, 2 * CLASSES[0] * PER_CLASS / rate)
            key = f"service: {CORES} cores, pool={pool}, users={users}, {length:g} s, {experiments} estimates"
            if (found := store.get(key)) is None:
                for _ in range(1 if quick else ATTEMPTS):
                    executions, void = _loaded(pool, users, length, quiet)
                    if not void:
                        break
                with quiet.shared():
                    found = {"pool": pool, "users": users, "busy": _busy(executions), "void": void}
                    found |= _compared(executions, pool, experiments)
                if not void:
                    store.put(key, found)
            yield found


def _loaded(pool: int, users: int, seconds: float, quiet: Quiet) -> tuple[list[Execution], str]:
    """Run the service under a load; return its executions, and why they say nothing, or ""."""
    with tempfile.TemporaryDirectory() as scratch:
        project = Path(scratch)
        endpoints = "".join(ENDPOINT.format(number=n, demand=d) for n, d in enumerate(DEMANDS))
        source = SERVICE.replace("    ENDPOINTS\n", endpoints).replace("POOL", str(pool))
        source = source.replace("THINK", f"{THINK:.4f}").replace("NUMBER", str(len(DEMANDS)))
        (project / "shop.py").write_text(textwrap.dedent(source), encoding="utf-8")
        (project / "mup.toml").write_text(textwrap.dedent(TOML), encoding="utf-8")
        command = [sys.executable, "-m", "mup", "load", str(project), "--clients", str(users), "--json"]
        command += ["--duration", str(seconds), "--log", str(project / "log")]
        with quiet.alone():
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(done.stdout + done.stderr)
        return executions_of(project / "log", ["Shop"]), json.loads(done.stdout)["void"] or ""


def _seconds(execution: Execution) -> float:
    """Return the processor time of an execution."""
    return (execution.done.cpu - execution.begin.cpu) * 1e-9 if execution.done is not None else 0.0


def _busy(found: list[Execution]) -> float:
    period = (found[-1].begin.time - found[0].begin.time) * 1e-9
    return sum(map(_seconds, found)) / (period * CORES)


def _compared(found: list[Execution], pool: int, experiments: int) -> dict[str, dict[str, Any]]:
    """Return errors and times of all estimates, by number of classes."""
    result = {}
    whole = trace_of_executions(found)
    work = np.array([_seconds(execution) for execution in found])
    for classes in CLASSES:
        trace = _grouped(whole, classes)
        truth = _means(work, trace)
        size = PER_CLASS * classes
        errors: dict[str, list[float]] = {method: [] for method in ("clocks", *METHODS)}
        to_bl: dict[str, list[float]] = {method: [] for method in METHODS}
        seconds: dict[str, list[float]] = {method: [] for method in METHODS}
        for start in np.linspace(0, max(0, len(found) - size), experiments).astype(int).tolist():
            part = _part(trace, start, start + size)
            errors["clocks"] += np.abs(_means(work[start : start + size], part) / truth - 1).tolist()
            demands: dict[str, FloatArray] = {}
            for method in METHODS:
                began = time.process_time()
                demand = estimate(part, cores=CORES, threads=pool, method=method, resamples=0).demand
                seconds[method].append(time.process_time() - began)
                demands[method] = demand
                errors[method] += np.abs(demand / truth - 1).tolist()
                to_bl[method] += np.abs(demand / demands["bl"] - 1).tolist()
        result[str(classes)] = {
            "errors": {name: 100 * float(np.mean(values)) for name, values in errors.items()},
            "to_bl": {name: 100 * float(np.mean(values)) for name, values in to_bl.items()},
            "seconds": {name: float(np.median(values)) for name, values in seconds.items()},
        }
    return result


def _means(work: FloatArray, trace: Trace) -> FloatArray:
    """Return the mean processor time of each class."""
    return np.array([work[trace.kind == r].mean() for r in range(len(trace.classes))])


def _grouped(trace: Trace, classes: int) -> Trace:
    """Return the trace with neighbouring classes taken together; endpoints are in the order of demands."""
    per = len(trace.classes) // classes
    names = tuple("+".join(trace.classes[r * per : (r + 1) * per]) for r in range(classes))
    return Trace(names, trace.kind // per, trace.owner, trace.start, trace.end)


def _part(trace: Trace, first: int, last: int) -> Trace:
    """Return consecutive requests of one segment each."""
    chosen = slice(first, last)
    kind = trace.kind[chosen]
    return Trace(trace.classes, kind, np.arange(len(kind)), trace.start[chosen], trace.end[chosen])
