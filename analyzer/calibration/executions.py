"""Group the records of a run into executions: one endpoint (or scenario) run, step by step.

Durations are only ever differences of one clock of one process. Caller and callee are joined by the
request id that both can compute (``mup.events.ids.child_id``), never by comparing their clocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from analyzer.calibration.rundir import Window
from mup.events.reader import Log
from mup.events.record import CENSORED, FAILED, QUEUED, Event, attempt_number
from mup.lqn.refs import EndpointRef, QueryRef, destination

__all__ = ["Attempt", "Execution", "Moment", "Operation", "SiteKey", "Step", "collect", "held_up", "within"]


class Moment(NamedTuple):
    """One reading of both clocks, in nanoseconds; ``cpu`` < 0 where no CPU clock was read."""

    time: int
    cpu: int


SiteKey = tuple[str, str, int]
"""File, function, ordinal: what identifies a call site in any version of the log."""


class Attempt(NamedTuple):
    """An attempt of a call that was not the last one; the first has number 0."""

    number: int
    contact: Moment | None


@dataclass(slots=True)
class Operation:
    """One ``call`` or ``query`` of an execution.

    ``awaited`` is set when the flow asks for the reply. ``contact`` and ``finish`` of a query carry the CPU
    clock of the auxiliary thread that ran it, unless it ran ``on_loop``. Those of a call, and of a query on a
    loop, carry that of the execution; ``driver`` has the nanoseconds that threads of the database driver took
    beside the loop. Where a call was made again, they are those of the last attempt, number ``attempt``;
    ``earlier`` has the others.
    """

    seq: int
    dest: str
    start: Moment
    contact: Moment | None = None
    finish: Moment | None = None
    censored: bool = False
    failed: bool = False
    awaited: bool = False
    on_loop: bool = False
    driver: int = 0
    attempt: int = 0
    earlier: list[Attempt] = field(default_factory=list)

    def repeat(self, number: int) -> None:
        """Begin another attempt."""
        self.earlier.append(Attempt(self.attempt, self.contact))
        self.attempt = number
        self.contact = self.finish = None
        self.failed = False

    @property
    def first_contact(self) -> Moment | None:
        """When the first attempt was sent."""
        return self.earlier[0].contact if self.earlier else self.contact

    @property
    def is_query(self) -> bool:
        """True if the destination is a query (``db.qry``) rather than an endpoint (``B/epB/``)."""
        return isinstance(self.to, QueryRef)

    @property
    def to(self) -> EndpointRef | QueryRef:
        """The destination."""
        return destination(self.dest)


@dataclass(slots=True)
class Step:
    """One remote operation in the main flow: where it begins and where the flow goes on."""

    op: str
    site: SiteKey | None
    seq: int
    start: Moment
    resume: Moment


@dataclass(slots=True)
class Execution:
    """One run of an endpoint by a worker (number ``worker`` of its replica), or of a scenario by a client."""

    request: int
    endpoint: str
    role: str
    service: str
    replica: int
    begin: Moment
    arrive: int | None = None
    queued: bool = False
    seen: int = 0
    end: Moment | None = None
    done: Moment | None = None
    failed: bool = False
    steps: list[Step] = field(default_factory=list)
    operations: dict[int, Operation] = field(default_factory=dict)
    worker: int = 0


def held_up(execution: Execution, operation: Operation, ready: int) -> int:
    """Return for how many nanoseconds an event loop did not read a reply because the caller was at work.

    Args:
        execution: Of the caller.
        operation: A call with its reply.
        ready: When the callee had answered, on the clock of the logs.
    """
    finish = operation.finish
    if not operation.on_loop or finish is None:
        return 0
    # A loop reads while its coroutine waits for another reply, or thinks, too.
    steps = (s for s in execution.steps if s.op in ("get", "think"))
    waits = (s.start.time for s in steps if s.start.time <= finish.time)
    return max(0, max(waits, default=ready) - ready)


def collect(logs: Iterable[Log], windows: Sequence[Window] = ()) -> list[Execution]:
    """Return the executions that begin and end inside one of the windows, in order of their begin.

    Args:
        logs: The logs of a run.
        windows: Empty means everything that was logged.
    """
    executions: list[Execution] = []
    arrivals: dict[int, tuple[int, bool, int]] = {}
    for log in logs:
        if log.header.get("role") == "front":
            for record in log.records[log.records["event"] == Event.ARRIVE]:
                arrivals[int(record["request"])] = (
                    int(record["time"]),
                    bool(record["flags"] & QUEUED),
                    int(record["seq"]),
                )
        else:
            executions += _of_log(log)
    for execution in executions:
        if (arrival := arrivals.get(execution.request)) is not None:
            execution.arrive, execution.queued, execution.seen = arrival
    if windows:
        executions = [e for e in executions if within(e, windows)]
    executions.sort(key=lambda e: e.begin.time)
    return executions


def within(execution: Execution, windows: Sequence[Window]) -> bool:
    """Return whether an execution begins and ends inside one of the windows."""
    last = execution.done or execution.end
    if last is None:
        return False
    return any(w.start <= execution.begin.time and last.time <= w.end for w in windows)


def _of_log(log: Log) -> list[Execution]:
    keys: dict[int, SiteKey] = {i: (s.file, s.function, s.ordinal) for i, s in log.sites.items()}
    open_: dict[int, Execution] = {}
    finished: list[Execution] = []
    closed: dict[int, Execution] = {}
    waiting: dict[tuple[int, int], Step] = {}
    thinking: dict[int, Step] = {}
    role = str(log.header.get("role", "worker"))
    service = str(log.header.get("service", ""))
    replica = int(log.header.get("replica", 0))
    worker = int(log.header.get("worker", 0))
    on_loop = log.header.get("runtime") == "async"
    for request, _trace, time, cpu, seq, site, name, event, flags in log.records.tolist():
        now = Moment(time, cpu)
        if event == Event.BEGIN:
            label = log.names.get(name, "")
            open_[request] = Execution(request, label, role, service, replica, now, worker=worker)
            continue
        execution = open_.get(request) or closed.get(request)
        # What is not waited for may end after its endpoint, or begin then: a query, a task on an event loop.
        if execution is None or (
            execution.done is not None and event in (Event.END, Event.ERROR, Event.DONE)
        ):
            continue
        if event == Event.COMM_START and attempt_number(flags):
            if (repeated := execution.operations.get(seq)) is not None:
                repeated.repeat(attempt_number(flags))
        elif event == Event.COMM_START:
            operation = Operation(seq, log.names.get(name, ""), now, on_loop=on_loop)
            execution.operations[seq] = operation
            op = "query" if operation.is_query else "call"
            execution.steps.append(Step(op, keys.get(site), seq, now, now))
        elif event in (Event.CONTACT_DEST, Event.DRIVER, Event.COMM_FINISH):
            _communicated(execution, seq, event, now, flags)
        elif event == Event.WAIT_START:
            # Asking again for a reply one has already is local work, not an operation.
            awaited = execution.operations.get(seq)
            if awaited is None or not awaited.awaited:
                step = Step("get", keys.get(site), seq, now, now)
                execution.steps.append(step)
                waiting[request, seq] = step
                if awaited is not None:
                    awaited.awaited = True
        elif event == Event.WAIT_END:
            if (step_or_none := waiting.pop((request, seq), None)) is not None:
                step_or_none.resume = now
        elif event == Event.THINK_START:
            step = Step("think", keys.get(site), 0, now, now)
            execution.steps.append(step)
            thinking[request] = step
        elif event == Event.THINK_END:
            if (step_or_none := thinking.pop(request, None)) is not None:
                step_or_none.resume = now
        elif event == Event.END:
            if execution.end is None:
                execution.end = now
                if role != "client":
                    execution.steps.append(Step("respond", keys.get(site), 0, now, now))
        elif event == Event.ERROR:
            execution.failed = True
        elif event == Event.DONE:
            execution.done = now
            if role == "client" and execution.end is None:
                execution.end = now
            finished.append(open_.pop(request))
            closed[request] = execution
    # A log without `done` (older formats, the thesis's own) ends an execution with `end`.
    finished += [e for e in open_.values() if e.end is not None]
    return finished


def _communicated(execution: Execution, seq: int, event: int, now: Moment, flags: int) -> None:
    """Note that an operation reached its destination, what its driver did, or that its reply came."""
    operation = execution.operations.get(seq)
    if operation is None:
        return
    if event == Event.DRIVER:
        operation.driver = now.cpu
        return
    operation.failed = operation.failed or bool(flags & FAILED)
    if event == Event.COMM_FINISH:
        operation.finish = now
        operation.censored = bool(flags & CENSORED)
        return
    operation.contact = now
    if not operation.is_query and not operation.earlier:
        # A call is sent by the worker itself; its own flow goes on once that is done.
        next(s for s in reversed(execution.steps) if s.seq == seq and s.op == "call").resume = now
