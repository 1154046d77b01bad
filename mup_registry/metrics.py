"""What does the registry tell Prometheus? Its own metrics, and where those of the replicas are."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

import msgspec
from aiohttp import web

from mup.runtime.metrics import CONTENT_TYPE, Sample, exposition
from mup_registry.directory import Directory

__all__ = ["add_metrics"]

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def add_metrics(app: web.Application, directory: Directory) -> None:
    """Count the requests of the registry, and serve ``/mup/metrics`` and ``/mup/targets``."""
    requests: Counter[tuple[str, int]] = Counter()

    @web.middleware
    async def count(request: web.Request, handler: _Handler) -> web.StreamResponse:
        response = await handler(request)
        # Unknown paths share a label, so that clients cannot invent them.
        resource = request.match_info.route.resource
        requests[resource.canonical if resource is not None else "", response.status] += 1
        return response

    async def metrics(_: web.Request) -> web.Response:
        live = directory.services(time.monotonic())
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
                [Sample("", {}, len(directory.databases))],
            ),
            (
                "mup_registry_requests_total",
                "counter",
                "Answers, by path (empty: unknown) and status.",
                [Sample("", {"path": path, "status": s}, n) for (path, s), n in requests.items()],
            ),
            (
                "mup_registry_cpu_seconds_total",
                "counter",
                "Processor time of the registry.",
                [Sample("", {}, time.process_time())],
            ),
        ]
        return web.Response(body=exposition(lines, {}), headers={"Content-Type": CONTENT_TYPE})

    async def targets(_: web.Request) -> web.Response:
        found: list[dict[str, Any]] = [
            {
                "targets": [urlsplit(instance.url).netloc],
                "labels": {"__metrics_path__": "/mup/metrics", "service": name},
            }
            for name, replicas in directory.services(time.monotonic()).items()
            for instance in replicas
        ]
        return web.Response(body=msgspec.json.encode(found), content_type="application/json")

    app.middlewares.insert(0, count)
    app.router.add_get("/mup/metrics", metrics)
    app.router.add_get("/mup/targets", targets)
