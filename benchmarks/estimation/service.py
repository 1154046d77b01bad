"""Figures 17 to 19 of the paper on a service of mup: demands from its log, its processor clocks as truth.

A service with three endpoints that compute for random times runs in a pool of worker processes, under closed
loads. The event log has start and end of every request, from which the estimators work, and the processor
time of the worker, which they do not see.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from analyzer.calibration.executions import Execution
from analyzer.estimation.event_logs import executions_of, trace_of_executions
from analyzer.estimation.methods import estimate
from analyzer.estimation.samples import Trace

__all__ = ["CORES", "LOADS", "METHODS", "POOLS", "SAMPLES", "service_rows"]

CORES = os.cpu_count() or 1
LOADS = (2, 8, 16, 24)
POOLS = (3, 6)
METHODS = ("bl", "ldps", "minps", "erps", "fmlps")
SAMPLES = 600
"""Requests per estimate, as in the paper's section 9."""

SERVICE = """\
    import random
    import time

    from mup import EP, MS, Client, Communication

    MEANS = {"/list/": 0.004, "/show/": 0.008, "/order/": 0.016}


    def compute(seconds):
        until = time.thread_time() + random.expovariate(1 / seconds)
        while time.thread_time() < until:
            pass


    class Shop(MS):
        pool_size = POOL

        @EP("/list/")
        def list(self, comm: Communication) -> None:
            compute(0.004)
            comm.respond({})

        @EP("/show/")
        def show(self, comm: Communication) -> None:
            compute(0.008)
            comm.respond({})

        @EP("/order/")
        def order(self, comm: Communication) -> None:
            compute(0.016)
            comm.respond({})


    class Buyer(Client):
        async def scenario(self, comm: Communication) -> None:
            await self.think(THINK, "exponential")
            await comm.call("Shop", self.random.choice(sorted(MEANS)), {})
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


def service_rows(seconds: float, experiments: int) -> Iterator[tuple[int, int, float, dict[str, float]]]:
    """Yield pool, users, mean busy share of the cores (by the clocks), and error in % per method.

    Args:
        seconds: Length of each load run.
        experiments: Estimates per run, each from other consecutive requests of it.
    """
    for pool in POOLS:
        for users in LOADS:
            found = _loaded(pool, users, seconds)
            yield pool, users, _busy(found), _errors(found, pool, experiments)


def _loaded(pool: int, users: int, seconds: float) -> list[Execution]:
    """Run the service under a load; return its executions."""
    with tempfile.TemporaryDirectory() as scratch:
        project = Path(scratch)
        # Twenty-four users who think this long would keep nearly all cores busy.
        think = LOADS[-1] * 0.0093 / CORES
        source = textwrap.dedent(SERVICE).replace("POOL", str(pool)).replace("THINK", f"{think:.4f}")
        (project / "shop.py").write_text(source, encoding="utf-8")
        (project / "mup.toml").write_text(textwrap.dedent(TOML), encoding="utf-8")
        command = [sys.executable, "-m", "mup", "load", str(project), "--clients", str(users), "--json"]
        command += ["--duration", str(seconds), "--log", str(project / "log")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1):
            raise RuntimeError(done.stdout + done.stderr)
        return executions_of(project / "log", ["Shop"])


def _seconds(execution: Execution) -> float:
    """Return the processor time of an execution."""
    return (execution.done.cpu - execution.begin.cpu) * 1e-9 if execution.done is not None else 0.0


def _busy(found: list[Execution]) -> float:
    period = (found[-1].begin.time - found[0].begin.time) * 1e-9
    return sum(map(_seconds, found)) / (period * CORES)


def _errors(found: list[Execution], pool: int, experiments: int) -> dict[str, float]:
    trace = trace_of_executions(found)
    work = np.array([_seconds(execution) for execution in found])
    truth = np.array([work[trace.kind == r].mean() for r in range(len(trace.classes))])
    starts = np.linspace(0, max(0, len(found) - SAMPLES), experiments).astype(int)
    errors: dict[str, list[float]] = {method: [] for method in METHODS}
    for start in starts.tolist():
        part = _part(trace, start, start + SAMPLES)
        for method in METHODS:
            demand = estimate(part, cores=CORES, threads=pool, method=method, resamples=0).demand
            errors[method] += np.abs(demand / truth - 1).tolist()
    return {method: 100 * float(np.mean(values)) for method, values in errors.items()}


def _part(trace: Trace, first: int, last: int) -> Trace:
    """Return consecutive requests of one segment each."""
    chosen = slice(first, last)
    kind = trace.kind[chosen]
    return Trace(trace.classes, kind, np.arange(len(kind)), trace.start[chosen], trace.end[chosen])
