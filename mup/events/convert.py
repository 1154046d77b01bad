"""Convert event logs to JSON lines and to OTLP spans, in constant memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mup.events.ids import attempt_of, child_id
from mup.events.reader import LogStream
from mup.events.record import CENSORED, FAILED, LEFT_BECAUSE, QUEUED, Event, attempt_number

__all__ = ["json_records", "otlp_spans"]

_EVENTS = {
    Event.ARRIVE: "arrive",
    Event.BEGIN: "begin",
    Event.COMM_START: "commStart",
    Event.CONTACT_DEST: "contactDest",
    Event.COMM_FINISH: "commFinish",
    Event.WAIT_START: "waitStart",
    Event.WAIT_END: "waitEnd",
    Event.END: "end",
    Event.DONE: "done",
    Event.ERROR: "error",
    Event.THINK_START: "thinkStart",
    Event.THINK_END: "thinkEnd",
    Event.POOL: "pool",
    Event.LEFT: "left",
    Event.DRIVER: "driver",
}
_FLAGS = {FAILED: "failed", CENSORED: "censored", QUEUED: "queued"}
# Kinds of spans and codes of a status, as OpenTelemetry's protocol numbers them.
_SERVER, _CLIENT, _ERROR = 2, 3, 2


def json_records(log: LogStream) -> Iterator[dict[str, Any]]:
    """Yield one JSON object per record; fields without a value are left out.

    Raises:
        LogError: The log is damaged before its end.
    """
    who = {key: log.header.get(key) for key in ("role", "service", "replica", "worker", "pid")}
    who = {key: value for key, value in who.items() if value is not None}
    since = _unix_offset(log)
    for batch in log:
        for request, trace, time, cpu, seq, site, name, event, flags in batch.tolist():
            line = {
                "event": _EVENTS[event],
                "time_ns": time,
                "unix_ns": time + since,
                "cpu_ns": cpu,
                **who,
                "request": f"{request:016x}",
                "trace": f"{trace:016x}",
            }
            if name:
                line["name"] = log.names.get(name, "")
            if event == Event.LEFT:
                line["reason"] = LEFT_BECAUSE[seq - 1]
            elif seq:
                line["seq"] = seq
            if site and (place := log.sites.get(site)) is not None:
                line["site"] = {key: getattr(place, key) for key in ("file", "function", "ordinal", "line")}
            if set_ := [text for bit, text in _FLAGS.items() if flags & bit]:
                line["flags"] = set_
            if attempt_number(flags):
                line["attempt"] = attempt_number(flags) + 1
            yield line


def otlp_spans(log: LogStream) -> Iterator[dict[str, Any]]:
    """Yield one span (OTLP/JSON) per execution and per remote operation, as they end.

    The span of an execution has the id of its request; that of the call which caused it is computed from
    that, so spans of caller and callee join although their logs are converted one by one. The span at
    the head of a chain has a parent that no log contains.

    Raises:
        LogError: The log is damaged before its end.
    """
    since = _unix_offset(log)
    begun: dict[int, tuple[int, bool]] = {}
    called: dict[tuple[int, int], tuple[int, str]] = {}
    for batch in log:
        for request, trace, time, _cpu, number, _site, name, event, flags in batch.tolist():
            # Each attempt of a call is a span of its own.
            seq = attempt_of(number, attempt_number(flags))
            if event == Event.BEGIN:
                begun[request] = (time, False)
            elif event == Event.ERROR and request in begun:
                begun[request] = (begun[request][0], True)
            elif event == Event.COMM_START:
                called[request, seq] = (time, log.names.get(name, ""))
            elif event == Event.COMM_FINISH and (request, seq) in called:
                start, text = called.pop((request, seq))
                child = child_id(request, seq)
                failed = bool(flags & FAILED)
                yield _span(
                    trace, _call_id(child), request, text, _CLIENT, start + since, time + since, failed
                )
            elif event == Event.DONE and request in begun:
                start, failed = begun.pop(request)
                text = log.names.get(name, "")
                yield _span(
                    trace, request, _call_id(request), text, _SERVER, start + since, time + since, failed
                )
                # An operation that was not waited for has no end.
                for key in [key for key in called if key[0] == request]:
                    del called[key]


def _call_id(request: int) -> int:
    """Return the id of the span of the call that caused a request."""
    return child_id(request, 0)


def _span(
    trace: int, span: int, parent: int, name: str, kind: int, start: int, end: int, failed: bool
) -> dict[str, Any]:
    found: dict[str, Any] = {
        "traceId": f"{trace:032x}",
        "spanId": f"{span:016x}",
        "parentSpanId": f"{parent:016x}",
        "name": name,
        "kind": kind,
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(end),
    }
    if failed:
        found["status"] = {"code": _ERROR}
    return found


def _unix_offset(log: LogStream) -> int:
    """Return what turns times of this log into nanoseconds since 1970."""
    clock = log.header.get("clock", {})
    return int(clock.get("unix_ns", 0)) - int(clock.get("monotonic_ns", 0))
