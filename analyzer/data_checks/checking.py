"""Check a file of data of whatever kind."""

from __future__ import annotations

import csv
import math
from pathlib import Path

from analyzer.access_logs.reading import Source, first_lines, is_access_log, read_requests
from analyzer.data_checks.findings import Checked, Finding, needed
from analyzer.data_checks.of_requests import check_log, check_trace
from analyzer.data_checks.of_windows import check_trials, check_windows
from analyzer.estimation.access_logs import trace_of_requests
from analyzer.estimation.reading import read_observations
from analyzer.estimation.samples import ArrivalSamples, Trace
from analyzer.fitting.data import read_data
from analyzer.fitting.measures import is_measure
from mup.errors import UsageError

__all__ = ["check_file"]


def check_file(
    path: Path,
    source: Source,
    *,
    cores: float | None = None,
    threads: float = math.inf,
    precision: float = 0.05,
) -> Checked:
    """Check an access log, event logs, or a table of requests, arrival samples, windows or trials.

    Args:
        path: A file, or a folder of event logs.
        source: Format, fields and groups.
        cores: The requests share, None if they are not known.
        threads: Of the pool.
        precision: Relative half-width that numbers of samples are given for.

    Raises:
        UsageError: It cannot be read, or is nothing that mup learns from.
    """
    lines = first_lines(path) if path.is_file() else []
    if lines and (source.log_format or is_access_log(lines)):
        requests = read_requests(path, source)
        trace = None
        try:
            trace = trace_of_requests(requests, threads)
        except UsageError as error:
            checked = check_log(requests, None, cores=cores, precision=precision)
            if not checked.sound:
                return checked
            raise UsageError(error.message, where=error.where, hint=error.hint) from error
        return check_log(requests, trace, cores=cores, precision=precision)
    if lines and _tells_trials(lines[0]):
        return check_trials(read_data(path), precision=precision)
    observed = read_observations(path, threads=threads, source=source)
    if isinstance(observed, Trace):
        return check_trace(observed, cores=cores, precision=precision)
    if isinstance(observed, ArrivalSamples):
        return _samples(observed, precision)
    return check_windows(observed, cores=cores or 1, precision=precision)


def _tells_trials(header: bytes) -> bool:
    names = next(csv.reader([header.decode("utf-8", "replace").lstrip("\ufeff")]), [])
    return any(is_measure(name.strip()) for name in names) and not any(
        name.strip().startswith(("n_", "throughput_")) for name in names
    )


def _samples(data: ArrivalSamples, precision: float) -> Checked:
    samples = tuple(
        needed(name, data.response_time[data.kind == r], precision)
        for r, name in enumerate(data.classes)
        if (data.kind == r).any()
    )
    facts = {
        "samples": float(len(data.kind)),
        "in process, mean": float(data.total.mean()),
        "in process, most": float(data.total.max()),
    }
    findings = [Finding("laws", "note", "samples say nothing of rates: no law connects them")]
    if data.rates is not None:
        expected = float((data.rates * data.mean_per_class(data.response_time)).sum())
        met = float(data.total.mean()) - 1
        off = abs(met - expected) / max(expected, 1.0)
        text = f"Little's law: requests met {met:.3g} others, rate x response time = {expected:.3g}"
        findings = [Finding("laws", "problem" if off > 0.5 else "ok", text)]
    return Checked("arrival samples", facts, tuple(findings), samples, precision)
