"""Which decorators of libraries leave what a function does alone?

They call it once, with what they are given, and hand on what it returns or raises: metrics, traces,
declarations. What repeats calls or remembers results is not one of them. A method of an object that a library
has made is named after what has made it: ``REQUESTS.time()`` is ``prometheus_client.Histogram.time``.
"""

from __future__ import annotations

from typing import Final

__all__ = ["TRANSPARENT"]

_TRACER: Final = "opentelemetry.trace.get_tracer"

TRANSPARENT: Final = frozenset(
    {
        "abc.abstractmethod",
        "beartype.beartype",
        "builtins.classmethod",
        "builtins.property",
        "builtins.staticmethod",
        "contextlib.asynccontextmanager",
        "contextlib.contextmanager",
        "ddtrace.tracer.wrap",
        "functools.cached_property",
        "functools.wraps",
        "logfire.instrument",
        "mup.EP",
        "mup.service.EP",
        "prometheus_client.Counter.count_exceptions",
        "prometheus_client.Counter.labels.count_exceptions",
        "prometheus_client.Gauge.labels.time",
        "prometheus_client.Gauge.labels.track_inprogress",
        "prometheus_client.Gauge.time",
        "prometheus_client.Gauge.track_inprogress",
        "prometheus_client.Histogram.labels.time",
        "prometheus_client.Histogram.time",
        "prometheus_client.Summary.labels.time",
        "prometheus_client.Summary.time",
        "sentry_sdk.trace",
        "sentry_sdk.tracing.trace",
        "typeguard.typechecked",
        "typing.final",
        "typing.no_type_check",
        "typing.overload",
        "typing.override",
        f"{_TRACER}.start_as_current_span",
        f"{_TRACER}_provider.get_tracer.start_as_current_span",
    }
)
