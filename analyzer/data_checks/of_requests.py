"""Checks of requests with begin and end: of an access log, or of a table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from analyzer.access_logs.requests import Requests
from analyzer.access_logs.resolution import Resolution, resolution_of
from analyzer.data_checks.findings import Checked, Finding, FloatArray, needed, trend
from analyzer.estimation.baseline import demands
from analyzer.estimation.samples import IntArray, Trace, seen_in_all

__all__ = ["check_log", "check_trace", "clock_order"]

PARTS = 20
"""Equal parts of time whose means are compared."""
BACKWARDS = 1.0
"""Seconds by which lines may be out of order: servers write them some time after they look at the clock."""
SKIPPED = 0.1
"""Part of the lines from which on what is left out is a problem."""
CHANGED = 0.2
"""Relative change over the data that matters if it is beyond chance."""
SATURATED = 0.95
SILENT = 20.0
"""Mean distances of requests without any that are noticed."""


def check_log(requests: Requests, trace: Trace | None, *, cores: float | None, precision: float) -> Checked:
    """Check an access log.

    Args:
        requests: As read, in the order of the file.
        trace: The same as the trace of a station; None if its durations or moments do not allow any.
        cores: Of the station, None if they are not known: durations take the place of demands.
        precision: Relative half-width that numbers of samples are given for.
    """
    findings = [_lines(requests), clock_order(requests.end), _moments(requests)]
    resolution = resolution_of(requests.end - requests.begin)
    if trace is None:
        facts = {"requests": float(len(requests.begin))}
        return Checked("access log", facts, (*findings, _resolution(resolution)), (), precision)
    rest = check_trace(trace, cores=cores, precision=precision)
    return Checked(
        f"access log, {requests.layout}", rest.facts, (*findings, *rest.findings), rest.samples, precision
    )


def check_trace(trace: Trace, *, cores: float | None, precision: float) -> Checked:
    """Check all requests of a station; arguments as for ``check_log``."""
    mine = trace.counts_mask
    begin, kind = trace.admitted[mine], trace.kind[mine]
    took = trace.response_time[mine]
    work = took if cores is None else demands(trace, cores)[mine]
    period = float(begin.max() - begin.min()) if len(begin) else 0.0
    rate = len(begin) / period if period > 0 else math.nan
    seen = seen_in_all(trace)[mine]
    inside = _mean_inside(trace, float(begin.min()), float(begin.max())) if period > 0 else math.nan
    facts = {
        "requests": float(len(begin)),
        "seconds": period,
        "per second": rate,
        "mean duration ms": float(took.mean()) * 1e3,
        "in process, mean": inside,
        "in process, most": float(seen.max()),
    }
    findings = [_resolution(resolution_of(took)), _little(inside, rate, float(took.mean()), len(begin))]
    if cores is not None:
        busy = rate * float(work.mean())
        facts["busy cores"] = busy
        findings.append(_load(busy, cores, inside))
    findings += _stationarity(trace.classes, begin, kind, work, "duration" if cores is None else "demand")
    findings += _gaps(begin, rate)
    samples = tuple(
        needed(name, work[kind == r], precision) for r, name in enumerate(trace.classes) if np.any(kind == r)
    )
    return Checked("requests", facts, tuple(findings), samples, precision)


def clock_order(end: FloatArray) -> Finding:
    """Judge whether moments come in the order of the lines.

    Args:
        end: Of each request in the order of the file, s; shape (I,).
    """
    latest = np.maximum.accumulate(end)
    back = latest - end
    late = np.flatnonzero(back > BACKWARDS)
    if not len(late):
        return Finding("clock", "ok", "moments come in the order of the lines")
    worst = int(np.argmax(back))
    return Finding(
        "clock",
        "problem",
        f"{len(late)} requests ended more than {BACKWARDS:g} s before others that stand in front of them "
        "(request "
        f"{worst + 1}: {back[worst]:.3g} s): a clock was set back, or files of several machines were put "
        "together",
    )


def _lines(requests: Requests) -> Finding:
    left_out = requests.skipped.total
    if not left_out:
        return Finding("lines", "ok", f"all {requests.lines} lines are requests")
    reasons = ", ".join(f"{count} {reason}" for reason, count in requests.skipped.counts.items())
    example = f"; the first is {requests.skipped.example}" if requests.skipped.example else ""
    text = f"{left_out} of {requests.lines} lines are left out: {reasons}{example}"
    return Finding("lines", "problem" if left_out > SKIPPED * requests.lines else "note", text)


def _moments(requests: Requests) -> Finding:
    if requests.fractions:
        return Finding("moments", "ok", "moments have fractions of a second")
    return Finding(
        "moments",
        "problem",
        "moments are whole seconds: they do not say which requests were in process together",
    )


def _resolution(found: Resolution) -> Finding:
    step = "" if found.step is None else f", of which the clock shows steps of {found.step * 1e3:g} ms"
    mean = f"the mean duration is {found.mean * 1e3:.3g} ms{step}"
    if found.mean == 0:
        return Finding("resolution", "problem", "all durations are 0: they are below what the clock can tell")
    if found.too_coarse:
        return Finding("resolution", "problem", f"{mean}; {found.zeros:.0%} of the durations are 0")
    if found.coarse:
        return Finding("resolution", "note", f"{mean}: short requests may be wrong by as much")
    return Finding("resolution", "ok", mean)


def _mean_inside(trace: Trace, low: float, high: float) -> float:
    """Return the mean number of requests in process between two moments."""
    overlap = np.minimum(trace.end, high) - np.maximum(trace.start, low)
    return float(np.maximum(overlap, 0.0).sum()) / (high - low)


def _little(inside: float, rate: float, mean: float, count: int) -> Finding:
    if not math.isfinite(inside) or not math.isfinite(rate):
        return Finding("laws", "note", "too few requests for Little's law")
    text = f"Little's law: {inside:.3g} in process, rate x duration = {rate * mean:.3g}"
    off = abs(rate * mean / inside - 1) if inside > 0 else math.inf
    # Both count the same requests but for those at the ends.
    if off > 0.1 + 3 / math.sqrt(count):
        return Finding(
            "laws",
            "problem",
            f"{text}: they differ by {off:.0%}, so the load changes within the data, or their ends matter",
        )
    return Finding("laws", "ok", text)


def _load(busy: float, cores: float, inside: float) -> Finding:
    share = busy / cores
    text = f"{busy:.3g} of {cores:g} cores are busy with these requests ({share:.0%})"
    if share > SATURATED:
        return Finding(
            "load", "note", f"{text}: in an overload, whatever is not in the data would be taken for work"
        )
    if inside <= cores / 10:
        return Finding("load", "note", f"{text}: requests hardly meet, so demands are nothing but durations")
    return Finding("load", "ok", text)


def _stationarity(
    classes: Sequence[str],
    begin: FloatArray,
    kind: IntArray,
    work: FloatArray,
    what: str,
) -> Iterator[Finding]:
    if len(begin) < PARTS * 5 or begin.max() <= begin.min():
        yield Finding("stationarity", "note", "too few requests to see whether anything changes")
        return
    part = np.minimum(
        ((begin - begin.min()) / (begin.max() - begin.min()) * PARTS).astype(np.int64), PARTS - 1
    )
    counts = np.bincount(part, minlength=PARTS).astype(np.float64)
    change, real = trend(counts)
    steady = True
    if real and abs(change) > CHANGED:
        steady = False
        yield Finding("stationarity", "note", f"the rate changes by {change:+.0%} over the data")
    for r, name in enumerate(classes):
        mine = kind == r
        number = np.bincount(part[mine], minlength=PARTS)
        with np.errstate(invalid="ignore", divide="ignore"):
            means = np.bincount(part[mine], work[mine], minlength=PARTS) / number
        change, real = trend(means)
        if real and abs(change) > CHANGED:
            steady = False
            yield Finding(
                "stationarity",
                "problem" if what == "demand" else "note",
                f"the mean {what} of {name} changes by {change:+.0%} over the data: one number does not "
                "describe "
                "it (mup estimate --period follows it)",
            )
    if steady:
        yield Finding("stationarity", "ok", f"rate and mean {what}s do not drift by {CHANGED:.0%} or more")


def _gaps(begin: FloatArray, rate: float) -> Iterator[Finding]:
    if len(begin) < PARTS or not math.isfinite(rate):
        return
    gaps = np.diff(begin)
    longest = float(gaps.max())
    if longest * rate > SILENT + math.log(len(begin)):
        yield Finding(
            "stationarity",
            "note",
            f"no request came for {longest:.3g} s, where one comes every {1e3 / rate:.3g} ms: the system or "
            "its log "
            "stood still",
        )
