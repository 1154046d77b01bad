"""Busy workers and response times of services in a window, from their event logs.

A worker is busy from the moment a request is handed to it until it is done with it.

The response time of an endpoint is what its front and workers saw: from the arrival of a request
(``arrive``) to the moment its response was given (``end``), waiting for a worker included, network excluded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mup.events.reader import Log, log_files, read_log
from mup.events.record import FAILED, Event
from mup.workload.figures import (
    Busy,
    Figure,
    ResponseTime,
    Sample,
    Window,
    busy_figure,
    rate,
    spread,
)
from mup.workload.occupancy import arrivals, busy_seconds, worker_seconds

__all__ = ["EndpointFigures", "ServiceLogs", "endpoint_figures", "read_service_logs"]

Times = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class EndpointFigures:
    """What a service saw of one of its endpoints.

    Attributes:
        response_time: From arrival to response, of requests that did not fail, by the moment of arrival.
        throughput: Responses per second; failed ones count.
        utilization: Share of the service's workers this endpoint kept busy.
        errors: Responses with a status of 500 or above.
    """

    response_time: ResponseTime
    throughput: Figure
    utilization: Figure
    errors: int


@dataclass(frozen=True, slots=True)
class _Endpoint:
    sample: Sample
    ends: Times
    busy: Busy
    errors: int


@dataclass(frozen=True, slots=True)
class ServiceLogs:
    """What the logs say of one window.

    Attributes:
        busy: By service.
    """

    busy: Mapping[str, Busy]
    endpoints: Mapping[str, _Endpoint]


def read_service_logs(folder: Path, window: Window, services: Iterable[str]) -> ServiceLogs:
    """Read the logs of one run.

    Args:
        folder: Where they are; logs in folders below it belong to other runs.
        window: What counts.
        services: Whose logs are wanted.

    Raises:
        LogError: A log cannot be read.
    """
    logs: dict[str, list[Log]] = {name: [] for name in services}
    for paths in log_files(folder):
        log = read_log(paths)
        if log.header.get("role") in ("front", "worker") and log.header["service"] in logs:
            logs[log.header["service"]].append(log)
    busy, endpoints = {}, {}
    for service, own in logs.items():
        busy[service] = _busy(own, window)
        for label in sorted({name for log in own for name in _endpoints(log, service)}):
            endpoints[label] = _endpoint(own, label, window)
    return ServiceLogs(busy, endpoints)


def endpoint_figures(runs: Sequence[ServiceLogs]) -> dict[str, EndpointFigures]:
    """Return the figures of each endpoint over one or more runs."""
    parts: dict[str, list[_Endpoint]] = defaultdict(list)
    for run in runs:
        for label, endpoint in run.endpoints.items():
            parts[label].append(endpoint)
    return {
        label: EndpointFigures(
            spread([part.sample for part in own]),
            rate([(part.sample.window, part.ends) for part in own]),
            busy_figure([part.busy for part in own]),
            sum(part.errors for part in own),
        )
        for label, own in sorted(parts.items())
    }


def _endpoints(log: Log, service: str) -> set[str]:
    """Return the endpoints of its own service a log names; calls of others are in it, too."""
    begun = np.isin(log.records["event"], (Event.ARRIVE, Event.BEGIN))
    numbers = np.unique(log.records["name"][begun]).tolist()
    return {log.names[n] for n in numbers if log.names.get(n, "").startswith(f"{service}/")}


def _busy(logs: Sequence[Log], window: Window, endpoint: str = "") -> Busy:
    seconds, capacity = np.zeros(window.batches), np.zeros(window.batches)
    fronts = [log for log in logs if log.header["role"] == "front"]
    arrived = arrivals(fronts)
    for log in logs:
        if log.header["role"] == "worker":
            seconds += busy_seconds(log, window, arrived, endpoint)
    for log in fronts:
        capacity += worker_seconds(log, window)
    return Busy(window, seconds, capacity)


def _endpoint(logs: Sequence[Log], label: str, window: Window) -> _Endpoint:
    arrived = _records(logs, label, Event.ARRIVE)
    ended = _records(logs, label, Event.END)
    failed = (ended["flags"] & FAILED) != 0
    inside = window.inside(ended["time"])
    # Requests without an end were under way when everything stopped, or their worker died.
    answered = ended[~failed]
    _, first, second = np.intersect1d(arrived["request"], answered["request"], return_indices=True)
    start, end = arrived["time"][first], answered["time"][second]
    counted = window.inside(start)
    return _Endpoint(
        Sample(window, start[counted], (end - start)[counted] * 1e-9),
        ended["time"][inside],
        _busy(logs, window, label),
        int((failed & inside).sum()),
    )


def _records(logs: Sequence[Log], label: str, event: Event) -> npt.NDArray[np.void]:
    parts = []
    for log in logs:
        numbers = [number for number, name in log.names.items() if name == label]
        chosen = (log.records["event"] == event) & np.isin(log.records["name"], numbers)
        parts.append(log.records[chosen])
    return np.concatenate(parts)
