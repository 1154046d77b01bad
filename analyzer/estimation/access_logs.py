"""Read a web server's access log: lines of ``END DURATION METHOD URI [STATUS ...]``.

END is the moment of completion in seconds since 1970 with decimals, DURATION seconds (with a point) or whole
microseconds (without). The class of a request is its method and its path. In the words of the servers:

    nginx     log_format demand '$msec $request_time $request_method $uri $status';
    Apache    LogFormat "%{end:sec}t.%{end:usec_frac}t %D %m %U %>s" demand
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from analyzer.estimation.csv_files import trace_of
from analyzer.estimation.samples import Trace
from mup.errors import UsageError

__all__ = ["looks_like_access_log", "read_access_log"]

_LINE = re.compile(r"(\d+(?:\.\d+)?) (\d+(?:\.\d+)?) ([A-Z]+) (\S+)(?: .*)?")
_COMMON = re.compile(r"\S+ \S+ .*\[\d+/\w+/\d+:\d+:\d+:\d+ ")
_HINT = (
    "lines must be 'END DURATION METHOD URI': for nginx log_format demand '$msec $request_time "
    '$request_method $uri $status\'; for Apache LogFormat "%{end:sec}t.%{end:usec_frac}t %D %m %U %>s" demand'
)


def looks_like_access_log(first_line: str) -> bool:
    """Return whether this is the first line of an access log, of whatever format."""
    return bool(_LINE.fullmatch(first_line) or _COMMON.match(first_line))


def read_access_log(path: Path, text: str, threads: float) -> Trace:
    """Return the requests of an access log.

    Args:
        path: For messages.
        text: Of the file.
        threads: Of the pool: says when a request that arrived was admitted.

    Raises:
        UsageError: A line is of another format, or moments are whole seconds.
    """
    names: list[str] = []
    ends: list[float] = []
    durations: list[float] = []
    fractions = False
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        found = _LINE.fullmatch(line.strip())
        if found is None:
            problem = (
                "the common log format has whole seconds and no durations, which says too little"
                if _COMMON.match(line)
                else f"not a line of an access log: {line[:80]!r}"
            )
            raise UsageError(problem, where=f"{path}: line {number}", hint=_HINT)
        end, duration, method, uri = found.groups()
        ends.append(float(end))
        fractions = fractions or "." in end
        durations.append(float(duration) if "." in duration else float(duration) * 1e-6)
        names.append(f"{method} {uri.partition('?')[0]}")
    if not fractions:
        raise UsageError(
            "moments are whole seconds: they cannot say which requests were in process together",
            where=str(path),
            hint=_HINT,
        )
    departure = np.array(ends)
    arrival = departure - np.array(durations)
    # Seconds since 1970 leave few digits behind the point.
    begin = arrival.min()
    return trace_of(str(path), names, arrival - begin, departure - begin, threads)
