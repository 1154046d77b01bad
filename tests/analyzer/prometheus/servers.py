"""A server that speaks the API of Prometheus about series that a test makes, and one that does not."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

SeriesOf = Callable[[float], float | None]
"""Value at a moment, None where there is none."""


@dataclass
class Metrics:
    """What a server knows, and what it was asked.

    Attributes:
        series: By expression: labels and values over time.
        token: If not empty, requests have to bear it.
        answers: By expression: what is answered instead, as it is.
        asked: Parameters of all requests.
    """

    series: Mapping[str, list[tuple[dict[str, str], SeriesOf]]] = field(default_factory=dict)
    token: str = ""
    answers: Mapping[str, web.Response] = field(default_factory=dict)
    asked: list[dict[str, str]] = field(default_factory=list)


def application(metrics: Metrics) -> web.Application:
    """Return the server; as https://prometheus.io/docs/prometheus/latest/querying/api/ describes it."""

    async def query_range(request: web.Request) -> web.StreamResponse:
        words = dict(request.query)
        metrics.asked.append(words)
        if metrics.token and request.headers.get("Authorization") != f"Bearer {metrics.token}":
            return web.Response(status=401, text="Unauthorized\n")
        expression = words["query"]
        if expression == "slow":
            await asyncio.sleep(3)
        if expression == "endless":
            return await _endless(request)
        if expression == "elsewhere":
            raise web.HTTPFound("http://127.0.0.2:9/api/v1/query_range")
        if expression in metrics.answers:
            return metrics.answers[expression]
        if expression.count("(") != expression.count(")"):
            problem = {
                "status": "error",
                "errorType": "bad_data",
                "error": "parse error: unclosed parenthesis",
            }
            return web.json_response(problem, status=400)
        start, end, step = (float(words[name]) for name in ("start", "end", "step"))
        count = int((end - start) / step + 1e-9) + 1
        result = []
        for labels, value in metrics.series.get(expression, []):
            pairs = [(start + k * step, value(start + k * step)) for k in range(count)]
            there = [[at, _text(v)] for at, v in pairs if v is not None]
            if there:
                result.append({"metric": labels, "values": there})
        return web.json_response({"status": "success", "data": {"resultType": "matrix", "result": result}})

    app = web.Application()
    app.router.add_get("/api/v1/query_range", query_range)
    return app


async def _endless(request: web.Request) -> web.StreamResponse:
    answer = web.StreamResponse()
    await answer.prepare(request)
    try:
        for _ in range(10_000):
            await answer.write(b" " * 100_000)
    except ConnectionError:
        pass  # the other side has had enough
    return answer


def _text(value: float) -> str:
    return {"nan": "NaN", "inf": "+Inf", "-inf": "-Inf"}.get(repr(value), repr(value))


@contextmanager
def serving(metrics: Metrics) -> Iterator[str]:
    """Serve in a thread of its own, and yield the URL."""
    loop = asyncio.new_event_loop()
    runner = web.AppRunner(application(metrics), access_log=None, shutdown_timeout=0.1)
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def run(coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result(10)

    async def start() -> int:
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        return int(runner.addresses[0][1])

    try:
        yield f"http://127.0.0.1:{run(start())}"
    finally:
        run(runner.cleanup())
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
