"""Processor time of mup itself per request, outside of what the event log sees.

The log charges the endpoint's own thread between ``begin`` and ``done``. Everything else a process
does for a request (parsing HTTP, dispatching, reading frames, the database server's work) shows only
in the total processor time of the process. Total minus what it uses when idle, minus what was logged,
divided by the requests, is the framework work per request. All three are known per window. Where only a
sample of the requests was logged, each of them stands for as many as the sampling rate says.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from analyzer.calibration.executions import Execution
from analyzer.calibration.observed import FloatArray, Observed, Sample
from mup.lqn.refs import QueryRef
from mup.runtime.worker.tray import AT_ONCE, SHORT

__all__ = ["EndpointWork", "FrameworkWork", "framework_work", "logged_cpu", "query_cpu"]


@dataclass(frozen=True, slots=True)
class EndpointWork:
    """Requests of one endpoint, and the seconds of processor time that the log saw; one value per window."""

    requests: FloatArray
    seen: FloatArray


@dataclass(frozen=True, slots=True)
class FrameworkWork:
    """Processor time of mup's own processes, by what caused it; arrays have one value per window.

    Attributes:
        used: Seconds per role and service, idle use taken off, the machine's slowness made up for.
        seen: Seconds of it that the log saw, per service.
        requests: Requests (of clients: cycles) per service.
        queries: Queries per database.
        exchanges: Requests of all services together.
        servers: Per database, the databases that share its server process, itself included.
        dispatch: Per service, seconds from ``arrive`` to ``begin`` of requests that did not queue.
        short: Per service, the share of requests so short that workers take the next one by themselves if
            nearly all are; where none has ended, it is missing.
        endpoints: What is ``seen`` and ``requests`` by endpoint (of clients: by scenario), per service.
    """

    used: Mapping[tuple[str, str], FloatArray]
    seen: Mapping[str, FloatArray]
    requests: Mapping[str, FloatArray]
    queries: Mapping[str, FloatArray]
    exchanges: FloatArray
    servers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    dispatch: Mapping[str, Sample] = field(default_factory=dict)
    short: Mapping[str, float] = field(default_factory=dict)
    endpoints: Mapping[str, Mapping[str, EndpointWork]] = field(default_factory=dict)

    def handed_out(self, service: str) -> bool:
        """Return whether a worker gets its next request from the front, once that has sent the last reply.

        Where requests are short enough, workers take them from the tray while the front is still sending: a
        long request counts against as many short ones as `mup.runtime.worker.tray` has it.
        """
        return self.short.get(service, 0.0) <= AT_ONCE / (AT_ONCE + 1)

    def relative(self, role: str, service: str, phase: FloatArray, base: FloatArray) -> float | None:
        """Return the processor time in one phase relative to what the same requests needed in another.

        It goes by the clocks of whole processes: that of a thread tells in a burst what its event loop did
        for other requests, too.

        Args:
            role: ``worker``, ``client``, ``front`` or ``database``.
            service: Or database.
            phase: Weights of the windows of the one.
            base: Those of the other.

        Returns:
            None if either is not known.
        """
        if role == "database":
            before = self.database(service, base)
            return self.database(service, phase) / before if before > 0 else None
        if role == "front":
            before = self.front(service, base)
            return self.front(service, phase) / before if before > 0 else None
        used = self.used.get((role, service))
        if used is None or not phase @ used > 0:
            return None
        expected = self._per_request(role, service, base, unseen=True) * float(phase @ self.requests[service])
        for work in self.endpoints.get(service, {}).values():
            known = float(base @ work.requests)
            # What the other phase did not see is taken to need as much as it did here.
            seconds = float(base @ work.seen) / known if known > 0 else None
            now = float(phase @ work.requests)
            expected += float(phase @ work.seen) if seconds is None else now * seconds
        return float(phase @ used) / expected if expected > 0 else None

    def front(self, service: str, weights: FloatArray) -> float:
        """Return seconds per request of the replica's front."""
        return self._per_request("front", service, weights)

    def worker(self, service: str, weights: FloatArray) -> float:
        """Return seconds per request of the worker, outside ``begin``..``done``."""
        return self._per_request("worker", service, weights, unseen=True)

    def client(self, service: str, weights: FloatArray) -> float:
        """Return seconds per cycle of the load generator, outside its cycles."""
        return self._per_request("client", service, weights, unseen=True)

    def database(self, name: str, weights: FloatArray) -> float:
        """Return seconds per query of the server of a database, over all its queries."""
        if ("database", name) not in self.used:
            return 0.0
        queries = sum(float(weights @ self.queries[n]) for n in self.servers[name] if n in self.queries)
        return float(weights @ self.used["database", name]) / queries if queries > 0 else 0.0

    def rate(self, service: str, weights: FloatArray, seconds: float) -> float:
        """Return requests (or cycles, or queries) per second."""
        counts = self.requests.get(service, self.queries.get(service))
        return float(weights @ counts) / seconds if counts is not None and seconds > 0 else 0.0

    def exchange_rate(self, weights: FloatArray, seconds: float) -> float:
        """Return requests per second of all services together."""
        return float(weights @ self.exchanges) / seconds if seconds > 0 else 0.0

    def waiting(self, service: str, weights: FloatArray) -> float:
        """Return the mean seconds from ``arrive`` to ``begin``."""
        sample = self.dispatch.get(service)
        return (sample.mean(weights) or 0.0) if sample is not None else 0.0

    def summary(self, weights: FloatArray) -> dict[str, dict[str, float]]:
        """Return all of it as ``provenance`` keeps it."""
        found: dict[str, dict[str, float]] = {"front": {}, "worker": {}, "client": {}, "database": {}}
        for role, service in self.used:
            found[role][service] = getattr(self, role)(service, weights)
        return found

    def _per_request(self, role: str, service: str, weights: FloatArray, *, unseen: bool = False) -> float:
        used, requests = self.used.get((role, service)), self.requests.get(service)
        if used is None or requests is None or not weights @ requests > 0:
            return 0.0
        rest = used - self.seen[service] if unseen else used
        return max(0.0, float(weights @ rest)) / float(weights @ requests)


def logged_cpu(execution: Execution) -> float:
    """Return the seconds of processor time the log saw of one execution; 0 without a CPU clock."""
    if execution.done is None or execution.begin.cpu < 0:
        return 0.0
    return (execution.done.cpu - execution.begin.cpu) / 1e9 + query_cpu(execution)


def query_cpu(execution: Execution) -> float:
    """Return the seconds that threads beside the one of an execution spent in database drivers."""
    total = 0
    for operation in execution.operations.values():
        # What a driver does on the event loop itself is on the clock of the execution already.
        total += operation.driver
        if not operation.is_query or operation.on_loop:
            continue
        if operation.contact and operation.finish and operation.contact.cpu >= 0:
            total += operation.finish.cpu - operation.contact.cpu
    return total / 1e9


def framework_work(observed: Observed) -> FrameworkWork:
    """Split the processor time of every process of a run over what caused it, window by window.

    Services of which a process died and was replaced are left out: the successor was not measured.
    """
    size = len(observed.windows)
    used: dict[tuple[str, str], FloatArray] = defaultdict(lambda: np.zeros(size))
    servers: dict[str, tuple[str, ...]] = {}
    for index, (window, part) in enumerate(zip(observed.windows, observed.parts, strict=True)):
        sharing: dict[int, list[str]] = defaultdict(list)
        for process in part.processes:
            cpu = window.cpu.get(str(process.pid))
            if cpu is None and len(part.windows) <= 1:
                cpu = process.cpu
            if cpu is None or process.service in part.info.replaced:
                continue
            busy = max(0.0, cpu - process.idle_rate * window.seconds) / float(observed.slowness[index])
            if process.role in ("front", "worker", "client"):
                used[process.role, process.service][index] += busy
            elif process.role == "database":
                # Several databases may live in one server: each of them gets the whole, once.
                sharing[process.pid].append(process.service)
                used[process.role, process.service][index] += busy
        servers.update({name: tuple(names) for names in sharing.values() for name in names})
    requests: dict[str, FloatArray] = defaultdict(lambda: np.zeros(size))
    seen: dict[str, FloatArray] = defaultdict(lambda: np.zeros(size))
    queries: dict[str, FloatArray] = defaultdict(lambda: np.zeros(size))
    dispatch: dict[str, Sample] = defaultdict(Sample)
    ended: Counter[str] = Counter()
    short: Counter[str] = Counter()
    exchanges = np.zeros(size)
    endpoints: dict[str, dict[str, EndpointWork]] = defaultdict(
        lambda: defaultdict(lambda: EndpointWork(np.zeros(size), np.zeros(size)))
    )
    for execution in observed.executions:
        index = observed.window_of[execution.request]
        stands_for = observed.parts[index].info.sample
        requests[execution.service][index] += stands_for
        if execution.role != "client":
            exchanges[index] += stands_for
        busy = stands_for * logged_cpu(execution) / float(observed.slowness[index])
        seen[execution.service][index] += busy
        of_endpoint = endpoints[execution.service][execution.endpoint]
        of_endpoint.requests[index] += stands_for
        of_endpoint.seen[index] += busy
        for operation in execution.operations.values():
            if isinstance(operation.to, QueryRef):
                queries[operation.to.database][index] += stands_for
        if execution.done is not None:
            ended[execution.service] += 1
            short[execution.service] += execution.done.time - execution.begin.time < 1e9 * SHORT
        if execution.arrive is not None and not execution.queued:
            dispatch[execution.service].add((execution.begin.time - execution.arrive) / 1e9, index)
    shares = {service: short[service] / number for service, number in ended.items()}
    return FrameworkWork(
        used=dict(used),
        seen=dict(seen),
        requests=dict(requests),
        queries=dict(queries),
        exchanges=exchanges,
        servers=servers,
        dispatch=dict(dispatch),
        short=shares,
        endpoints={service: dict(found) for service, found in endpoints.items()},
    )
