"""Metrics of the registry for Prometheus, and the addresses of those of the replicas."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec

from mup.runtime.pool.metrics import Sample, exposition
from mup_registry.directory import Instance

__all__ = ["metrics", "targets"]


def metrics(
    live: Mapping[str, list[Instance]],
    databases: int,
    requests: Mapping[tuple[str, int], int],
    callers_refused: int,
) -> bytes:
    """Return the registry's metrics.

    Args:
        live: Live instances by service.
        databases: How many are registered.
        requests: Answers so far by path ("" = unknown) and status.
        callers_refused: Whose certificate was missing or wrong.
    """
    lines = [
        (
            "mup_registry_replicas",
            "gauge",
            "Live replicas, by service.",
            [Sample("", {"service": name}, len(replicas)) for name, replicas in live.items()],
        ),
        (
            "mup_registry_databases",
            "gauge",
            "Databases that are registered.",
            [Sample("", {}, databases)],
        ),
        (
            "mup_registry_requests_total",
            "counter",
            "Answers, by path (empty: unknown) and status.",
            [Sample("", {"path": path, "status": s}, n) for (path, s), n in requests.items()],
        ),
        (
            "mup_registry_callers_refused_total",
            "counter",
            "Connections of callers whose certificate was missing or wrong.",
            [Sample("", {}, callers_refused)],
        ),
        (
            "mup_registry_cpu_seconds_total",
            "counter",
            "Processor time of the registry.",
            [Sample("", {}, time.process_time())],
        ),
    ]
    return exposition(lines, {})


def targets(live: Mapping[str, list[Instance]]) -> bytes:
    """Return every live replica, as Prometheus's HTTP service discovery wants them."""
    found: list[dict[str, Any]] = [
        {
            "targets": [urlsplit(instance.url).netloc],
            "labels": {
                "__scheme__": urlsplit(instance.url).scheme,
                "__metrics_path__": "/mup/metrics",
                "service": name,
            },
        }
        for name, replicas in live.items()
        for instance in replicas
    ]
    return msgspec.json.encode(found)
