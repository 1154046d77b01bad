"""Counts of a replica, and their text for Prometheus.

Requests pay for one dictionary entry and one histogram cell; everything else is put together when Prometheus
asks. The text format is written here, because the usual client library costs more per observation than all of
mup's own work on an event, and its locks and registries are for processes with many threads.
"""

from __future__ import annotations

import resource
import time
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from mup.runtime.protocol.wire import Retried
from mup.workload.cpu import process_cpu_seconds

__all__ = ["CONTENT_TYPE", "FrontMetrics", "Histogram", "Sample", "exposition"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the histograms, in seconds: from a trivial endpoint to a deadline."""


class Sample(NamedTuple):
    """One line: what follows the name of its metric (``_bucket``, ...), labels, value."""

    suffix: str
    labels: Mapping[str, object]
    value: float


class Histogram:
    """Times in buckets."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS) + 1)
        self.total = 0.0

    def observe(self, seconds: float) -> None:
        """Count one time."""
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.total += seconds

    def samples(self, labels: Mapping[str, object]) -> Iterable[Sample]:
        """Yield the lines of this histogram."""
        cumulative = 0
        for bound, count in zip((*BOUNDS, "+Inf"), self.counts, strict=True):
            cumulative += count
            yield Sample("_bucket", {**labels, "le": bound}, cumulative)
        yield Sample("_sum", labels, self.total)
        yield Sample("_count", labels, cumulative)


class FrontMetrics:
    """What the front of a replica counts.

    Args:
        endpoints: Paths; others do not become labels, so that clients cannot invent them.

    Attributes:
        requests: By endpoint ("" = none) and status.
        times: Per endpoint, seconds from the arrival of a request to its answer.
        queued: Seconds requests waited for a worker; those that did not wait are not in it.
        assigned: Requests that were given to a worker.
        errors: By kind.
        retries: Calls that were made again, by destination and reason.
        withheld: Calls that were not, because the budget was used up, by destination.
    """

    def __init__(self, endpoints: Iterable[str]) -> None:
        self.requests: dict[tuple[str, int], int] = {}
        self.times = {endpoint: Histogram() for endpoint in endpoints}
        self.queued = Histogram()
        self.assigned = 0
        self.errors: dict[str, int] = {}
        self.retries: dict[tuple[str, str], int] = {}
        self.withheld: dict[str, int] = {}

    def answered(self, endpoint: str, status: int, seconds: float) -> None:
        """Count an answer of an endpoint."""
        key = (endpoint, status)
        self.requests[key] = self.requests.get(key, 0) + 1
        self.times[endpoint].observe(seconds)

    def refused(self, endpoint: str, status: int, kind: str) -> None:
        """Count a request that reached no worker, and why."""
        key = (endpoint if endpoint in self.times else "", status)
        self.requests[key] = self.requests.get(key, 0) + 1
        self.error(kind)

    def error(self, kind: str) -> None:
        """Count a problem."""
        self.errors[kind] = self.errors.get(kind, 0) + 1

    def retried(self, what: Retried) -> None:
        """Count a call of a worker that was made again, or was not because that would be too many."""
        if what.made:
            key = what.service, what.reason
            self.retries[key] = self.retries.get(key, 0) + 1
        else:
            self.withheld[what.service] = self.withheld.get(what.service, 0) + 1

    def exposition(
        self, labels: Mapping[str, object], gauges: Mapping[str, float], workers: Iterable[int]
    ) -> bytes:
        """Return everything in Prometheus's text format.

        Args:
            labels: Of every line.
            gauges: Current values, by the names in ``_GAUGES``.
            workers: Process ids.
        """
        waits = Histogram()
        waits.counts = list(self.queued.counts)
        waits.counts[0] += self.assigned - sum(self.queued.counts)
        waits.total = self.queued.total
        # The kernel adds up what ended workers have used.
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = ended.ru_utime + ended.ru_stime + sum(_cpu_seconds(pid) for pid in workers)
        metrics = [
            (
                "mup_requests_total",
                "counter",
                "Answers, by endpoint (empty: none) and status.",
                [
                    Sample("", {"endpoint": endpoint, "status": status}, count)
                    for (endpoint, status), count in self.requests.items()
                ],
            ),
            (
                "mup_request_seconds",
                "histogram",
                "From the arrival of a request to its answer, waiting included.",
                [
                    line
                    for endpoint, histogram in self.times.items()
                    for line in histogram.samples({"endpoint": endpoint})
                ],
            ),
            ("mup_queue_seconds", "histogram", "What requests waited for a worker.", list(waits.samples({}))),
            *(
                (f"mup_{name}", "gauge", help_text, [Sample("", {}, gauges[name])])
                for name, help_text in _GAUGES.items()
            ),
            (
                "mup_errors_total",
                "counter",
                "Problems, by kind.",
                [Sample("", {"kind": kind}, count) for kind, count in self.errors.items()],
            ),
            (
                "mup_call_retries_total",
                "counter",
                "Calls that were made again, by destination and reason.",
                [
                    Sample("", {"destination": service, "reason": reason}, count)
                    for (service, reason), count in self.retries.items()
                ],
            ),
            (
                "mup_call_retries_withheld_total",
                "counter",
                "Calls that were not made again because the budget was used up, by destination.",
                [Sample("", {"destination": name}, count) for name, count in self.withheld.items()],
            ),
            (
                "mup_cpu_seconds_total",
                "counter",
                "Processor time of the front and of all workers.",
                [
                    Sample("", {"process": "front"}, time.process_time()),
                    Sample("", {"process": "workers"}, used),
                ],
            ),
        ]
        return exposition(metrics, labels)


_GAUGES = {
    "in_flight": "Requests that are queued or in work.",
    "queue_length": "Requests that wait for a worker.",
    "pool_size": "Workers there should be.",
    "workers": "Workers that are ready.",
    "workers_busy": "Workers in an endpoint.",
    "workers_stuck": "Workers that have had one request for longer than busy_limit.",
    "busy_longest_seconds": "For how long the request in work that began first has been there.",
    "event_logs_off": "Processes whose event log cannot be written.",
}


def exposition(
    metrics: Iterable[tuple[str, str, str, Iterable[Sample]]], common: Mapping[str, object]
) -> bytes:
    """Return metrics (name, type, help, lines) in Prometheus's text format.

    Args:
        metrics: What there is; a metric without lines is left out.
        common: Labels of every line.
    """
    out = []
    for name, kind, help_text, samples in metrics:
        lines = [
            f"{name}{sample.suffix}{_labels({**common, **sample.labels})} {sample.value!r}"
            for sample in samples
        ]
        if lines:
            out += [f"# HELP {name} {help_text}", f"# TYPE {name} {kind}", *lines]
    return ("\n".join(out) + "\n").encode()


def _cpu_seconds(pid: int) -> float:
    try:
        return process_cpu_seconds(pid)
    except ProcessLookupError:
        return 0.0


def _labels(labels: Mapping[str, object]) -> str:
    if not labels:
        return ""
    pairs = []
    for name, value in labels.items():
        text = str(value).replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
        pairs.append(f'{name}="{text}"')
    return "{" + ",".join(pairs) + "}"
