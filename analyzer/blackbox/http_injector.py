"""Inject Poisson requests at a URL, with limits that protect the target.

A server named by mistake must not be flooded: a target that is not on this machine has to be named
a second time, redirects are not followed (the load generator never does), and an injection ends at the
first few failures.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from analyzer.blackbox.inversion import Trace
from analyzer.blackbox.resources import CpuWatch
from analyzer.blackbox.station import LoadStep
from mup.addresses import is_loopback
from mup.errors import RequestsFailedError, UsageError
from mup.workload.arrivals import Arrivals
from mup.workload.driver import LoadDriver
from mup.workload.http import HttpLoad

__all__ = ["HttpInjector", "check_target"]


def check_target(url: str, allowed: Collection[str] = ()) -> None:
    """Refuse a target that is neither on this machine nor named on purpose.

    Raises:
        UsageError: It is neither.
    """
    host = urlsplit(url).hostname or ""
    if not (is_loopback(host) or host in allowed):
        raise UsageError(
            f"{host!r} is not this machine; load could harm its owner",
            where=url,
            hint=f"if you may load it, say so: --target {host}",
        )


class HttpInjector:
    """Injects requests into a URL; a context manager.

    Args:
        load: The request.
        failures: More failed requests than this end everything.
        watch: Of the target's processor time; None = nothing is watched.
    """

    def __init__(self, load: HttpLoad, *, failures: int, watch: CpuWatch | None = None) -> None:
        self._driver = LoadDriver(load, "")
        self._failures = failures
        self._watch = watch
        self._failed = 0

    def __enter__(self) -> HttpInjector:
        self._driver.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._driver.stop()

    def inject(self, rate: float, seconds: float, seed: int) -> LoadStep:
        """Inject one load; requests that begin in time are all waited for.

        Raises:
            RequestsFailedError: More requests failed than may.
        """
        seen: list[tuple[float, float]] = []
        result = self._driver.run(
            0,
            seconds,
            seed=seed,
            arrivals=Arrivals(rate=rate),
            on_open=None if self._watch is None else self._watch.start,
            on_close=None if self._watch is None else _stop(self._watch, seen),
            on_progress=self._brake(),
        )
        self._failed += result.errors
        self._check(result.first_error)
        utilization, used = seen[0] if seen else (None, None)
        cycles = result.cycles
        starts = np.array([cycle.start_ns for cycle in cycles], dtype=np.int64)
        trace = Trace.of((starts - result.start_ns) * 1e-9, [cycle.service_response for cycle in cycles])
        return LoadStep(
            rate=rate,
            trace=trace,
            seconds=seconds,
            failures=result.errors,
            lateness=float(np.mean(result.start_lateness)) if cycles else 0.0,
            utilization=utilization,
            cpu_seconds=used / len(cycles) if used is not None and cycles else None,
        )

    def _brake(self) -> Callable[[Mapping[str, Any]], None]:
        """Return what ends an injection while it runs."""
        failed = self._failed

        def look(progress: Mapping[str, Any]) -> None:
            nonlocal failed
            failed += progress["errors"]
            if failed > self._failures:
                self._failed = failed
                self._driver.stop()
                self._check(progress["first_error"])

        return look

    def _check(self, first_error: str) -> None:
        if self._failed > self._failures:
            raise RequestsFailedError(
                f"{self._failed} requests failed, {self._failures} may"
                + (f"; the first one: {first_error}" if first_error else "")
                + "; the load was stopped",
                hint="look at the target, or raise --max-failures",
            )


def _stop(watch: CpuWatch, seen: list[tuple[float, float]]) -> Callable[[], None]:
    return lambda: seen.append(watch.stop())
