"""Turn the executions of one path into samples of demand and delay per activity, window by window.

One execution of a path with operations 1..n has n + 1 segments of local work in its main flow. For
each segment two things are measured: processor time (thread CPU clock) and delay (wall time that
was not processor time: sleeping, I/O). Where the log has no CPU clock, wall time takes its place.

A segment begins where the operation before it lets the flow go on:

- ``call``: the request has been sent (``contactDest``); sending is the operation's own registry segment (its
  processor time, on an event loop, is part of the segment before);
- ``query``: at once (``commStart``), for an auxiliary thread takes over;
- ``get``: the reply is there (``commFinish``, or the begin of the wait if it was there already). The
  processor time of waking up and reading it counts into the segment behind the ``get``;
- ``respond`` and ``think``: at once, and at the end of the think time.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from analyzer.calibration.executions import Execution, Moment, Operation, Step, held_up
from analyzer.calibration.matching import Match, OperationKey, SegmentKey, spread
from analyzer.calibration.observed import Observed, Sample
from analyzer.calibration.task_times import gap_times
from analyzer.static.translate import PathPlan
from mup.events.ids import attempt_of, child_id

__all__ = ["Answered", "CommunicationSamples", "PathSamples", "answered", "local_work", "sample_path"]

_NS = 1e-9


@dataclass(slots=True)
class CommunicationSamples:
    """What one call or query of a path showed; seconds, one value per usable execution.

    Attributes:
        registry_demand, registry_delay: From ``commStart`` to ``contactDest``.
        exchange: Of a call: the time between ``contactDest`` and ``commFinish`` that neither the callee's
            execution explains nor an event loop that did not look because the caller was at work. Of a
            query: all of it.
        driver_demand: Of a query: processor time of the driver's threads.
        receive: Of a call: processor time from the begin of the wait to the reply, part of
            ``exchange`` and of the demand of the segment behind the ``get``.
        censored: Replies that were picked up late; they do not count in ``exchange``.
        attempts: Of a call: how often the callee executed it; more than once where it was made again.
        waiting: Of a call: seconds from its first attempt to its last that no execution explains.
    """

    registry_demand: Sample = field(default_factory=Sample)
    registry_delay: Sample = field(default_factory=Sample)
    exchange: Sample = field(default_factory=Sample)
    driver_demand: Sample = field(default_factory=Sample)
    receive: Sample = field(default_factory=Sample)
    censored: int = 0
    attempts: Sample = field(default_factory=Sample)
    waiting: Sample = field(default_factory=Sample)


@dataclass(slots=True)
class PathSamples:
    """Samples of one path and of the bodies of its loops and choices.

    Attributes:
        demand, delay: Per segment.
        shape: Per segment, the part of ``demand`` that gives its distribution; empty = all of it.
        communication: Per call and query.
        counts: Per loop, its iterations each time it was come to.
        bodies: Per loop or choice and body, 1 for every iteration or decision that was this body.
        think: Per think step, the time it took, as it would have been without a factor on think times.
    """

    demand: dict[SegmentKey, Sample] = field(default_factory=dict)
    delay: dict[SegmentKey, Sample] = field(default_factory=dict)
    shape: dict[SegmentKey, Sample] = field(default_factory=dict)
    communication: dict[OperationKey, CommunicationSamples] = field(default_factory=dict)
    counts: dict[OperationKey, Sample] = field(default_factory=dict)
    bodies: dict[OperationKey, dict[int, Sample]] = field(default_factory=dict)
    think: dict[OperationKey, Sample] = field(default_factory=dict)

    def segment(
        self,
        key: SegmentKey,
        demand: float,
        delay: float,
        window: int,
        request: int,
        timed: Collection[int] | None,
    ) -> None:
        """Add what a request showed of a segment; ``timed`` as of `sample_path`."""
        self.demand.setdefault(key, Sample()).add(demand, window, request)
        delays = self.delay.setdefault(key, Sample())
        if timed is None:
            delays.add(delay, window, request)
        elif request in timed:
            delays.add(delay, window, request)
            self.shape.setdefault(key, Sample()).add(demand, window, request)


def sample_path(
    matches: Sequence[Match],
    plan: PathPlan,
    observed: Observed,
    *,
    cpu_clock: bool = True,
    timed: Collection[int] | None = None,
) -> PathSamples:
    """Sample every segment, communication and loop of one path.

    Processor times are divided by the slowness of the machine in their window.

    Args:
        matches: Complete executions that took this path.
        plan: The path.
        observed: The run they are from.
        cpu_clock: Tell processor time from delays; else all wall time counts as processor time.
        timed: Requests that tell delays, and the shapes of demands; None = all.
    """
    samples = PathSamples()
    concurrent: dict[int, list[tuple[float, float]]] = {}
    windows = [observed.window_of[one.execution.request] for one in matches]

    def measure(one: Match, gap: int) -> tuple[float, float]:
        if one.shape.spans:
            key = one.execution.request
            if key not in concurrent:
                concurrent[key] = gap_times(one.execution, one.shape)
            demand, delay = concurrent[key][gap]
            demand += _sending(one.execution, gap)
        else:
            demand, delay = _segment(one.execution, gap)
        return (demand, delay) if cpu_clock else (demand + delay, 0.0)

    for key, found in spread(matches, plan, measure).items():
        for owner, demand, delay in zip(found.owner, found.demand, found.delay, strict=True):
            window, request = windows[owner], matches[owner].execution.request
            samples.segment(key, demand / float(observed.slowness[window]), delay, window, request, timed)
    for one, window in zip(matches, windows, strict=True):
        execution = one.execution
        for key, step in zip(one.shape.steps, execution.steps, strict=True):
            if step.op in ("call", "query"):
                communication = samples.communication.setdefault(key, CommunicationSamples())
                _communication(execution, execution.operations[step.seq], communication, observed, window)
            elif step.op == "think" and (scale := observed.windows[window].think_scale) > 0:
                seconds = (step.resume.time - step.start.time) * _NS / scale
                samples.think.setdefault(key, Sample()).add(seconds, window)
        for entry in one.shape.loops:
            samples.counts.setdefault(entry.loop, Sample()).add(float(len(entry.bodies)), window)
            taken = samples.bodies.setdefault(entry.loop, {})
            for body in entry.bodies:
                taken.setdefault(body, Sample()).add(1.0, window)
        for decision in one.shape.choices:
            taken = samples.bodies.setdefault(decision.choice, {})
            taken.setdefault(decision.body, Sample()).add(1.0, window)
    return samples


def local_work(execution: Execution) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return (demand, delay) of all local work of an execution before its response, and of that behind it."""
    times = [_segment(execution, index) for index in range(len(execution.steps) + 1)]
    responses = [i for i, step in enumerate(execution.steps) if step.op == "respond"]
    last = responses[0] + 1 if responses else len(times)
    return _total(times[:last]), _total(times[last:])


def _total(times: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return sum(demand for demand, _ in times), sum(delay for _, delay in times)


def _segment(execution: Execution, index: int) -> tuple[float, float]:
    """Return (demand, delay) of the local work before operation ``index`` (or after the last)."""
    steps = execution.steps
    before = steps[index - 1] if index else None
    until = steps[index].start if index < len(steps) else _last(execution)
    if before is not None and before.op == "get":
        demand, delay = _after_get(before, _last_answered(execution, index - 1), until)
    else:
        demand, delay = _since(before.resume if before is not None else execution.begin, until)
    return demand + _sending(execution, index), delay


def _last_answered(execution: Execution, index: int) -> Operation | None:
    """Return what was answered last of the operations waited for up to a step: gathered, waits overlap."""
    steps, operations = execution.steps, execution.operations
    last = operations.get(steps[index].seq)
    while index > 0 and steps[index - 1].op == "get":
        index -= 1
        other = operations.get(steps[index].seq)
        if last is not None and last.finish is not None and other is not None and other.finish is not None:
            last = max(last, other, key=lambda o: o.finish.time if o.finish is not None else 0)
    return last


def _since(start: Moment, until: Moment) -> tuple[float, float]:
    wall = (until.time - start.time) * _NS
    if start.cpu < 0:
        return max(0.0, wall), 0.0
    cpu = (until.cpu - start.cpu) * _NS
    return cpu, max(0.0, wall - cpu)


def _last(execution: Execution) -> Moment:
    return execution.done or execution.end or execution.begin


def _after_get(get: Step, operation: Operation | None, until: Moment) -> tuple[float, float]:
    finish = operation.finish if operation is not None else None
    if finish is None:
        wall = (until.time - get.resume.time) * _NS
        return max(0.0, wall), 0.0
    wall = (until.time - max(finish.time, get.start.time)) * _NS
    if get.start.cpu < 0 or until.cpu < 0:
        return max(0.0, wall), 0.0
    cpu = (until.cpu - get.start.cpu) * _NS
    # Reading the reply of a call happened before `commFinish`, outside this segment's wall time. A
    # query's `commFinish` is on another thread's clock, unless it ran on a loop; there the waking up is
    # inside, as it is where a client's reply was there before the client came to get it.
    early = finish.time < get.start.time
    elsewhere = operation is None or (operation.is_query and not operation.on_loop)
    inside = cpu if early or elsewhere else (until.cpu - finish.cpu) * _NS
    return cpu, max(0.0, wall - inside)


def _sending(execution: Execution, index: int) -> float:
    """Return the seconds of processor time that sending a call takes if the work before it includes that."""
    step = execution.steps[index] if index < len(execution.steps) else None
    operation = execution.operations.get(step.seq) if step is not None and step.op == "call" else None
    if operation is None or operation.failed or not _goes_on(execution, operation):
        return 0.0
    sent = operation.first_contact
    return 0.0 if sent is None or sent.cpu < 0 else (sent.cpu - operation.start.cpu) * _NS


def _goes_on(execution: Execution, operation: Operation) -> bool:
    """Return whether the sending of a call follows the work before it without giving the event loop up.

    As an activity of its own, the sending would queue for the loop once more.
    """
    return execution.role == "worker" and operation.on_loop and not operation.is_query


def _loop_work(execution: Execution, start: Moment, until: Moment) -> float:
    """Return the seconds an event loop worked between two moments since the execution waited for something.

    They are in the segment behind that wait.
    """
    waits = (s.start for s in execution.steps if s.op == "get" and start.time <= s.start.time < until.time)
    first = next(waits, None)
    return 0.0 if first is None else (until.cpu - first.cpu) * _NS


def _communication(
    execution: Execution,
    operation: Operation,
    samples: CommunicationSamples,
    observed: Observed,
    window: int,
) -> None:
    start, contact, finish = operation.start, operation.contact, operation.finish
    sent = operation.first_contact
    if contact is None or sent is None or operation.failed:
        return
    speed = 1 / float(observed.slowness[window])
    registry = (sent.time - start.time) * _NS
    if operation.is_query or start.cpu < 0:
        # A query changes threads here, so there is no CPU difference to take; what the worker itself
        # spends on handing over counts into its next segment.
        if operation.on_loop:
            registry -= _loop_work(execution, operation.start, sent)
        samples.registry_demand.add(0.0, window)
        samples.registry_delay.add(max(0.0, registry), window)
    else:
        cpu = (sent.cpu - start.cpu) * _NS
        elsewhere = _goes_on(execution, operation)
        samples.registry_demand.add(0.0 if elsewhere else cpu * speed, window, execution.request)
        samples.registry_delay.add(max(0.0, registry - cpu), window)
    if not operation.is_query:
        _attempts(execution, operation, contact.time - sent.time, samples, observed, window)
    if finish is None:
        # This call was not waited for, so its reply was not seen.
        return
    elapsed = (finish.time - contact.time) * _NS
    if operation.is_query:
        driver = (finish.cpu - contact.cpu) * _NS if contact.cpu >= 0 else 0.0
        if operation.on_loop:
            # Whatever the loop did meanwhile, for the driver too, is in the segment of a wait already.
            elapsed, driver = max(0.0, elapsed - driver), operation.driver * _NS
        samples.exchange.add(elapsed, window)
        samples.driver_demand.add(driver * speed, window, execution.request)
        return
    if operation.censored:
        samples.censored += 1
        return
    callee = answered(execution, operation, operation.attempt, observed)
    if callee is None:
        return
    # In the model a reply does not wait for the caller's own work: a join does.
    late = held_up(execution, operation, callee.at)
    samples.exchange.add(elapsed - (callee.inside + late) * _NS, window)
    get = next((s for s in execution.steps if s.op == "get" and s.seq == operation.seq), None)
    if get is not None and finish.time >= get.start.time and get.start.cpu >= 0 and finish.cpu >= 0:
        samples.receive.add((finish.cpu - get.start.cpu) * _NS * speed, window)


class Answered(NamedTuple):
    """An execution by a callee; ``inside`` is how long it had the request, ``at`` when it answered; ns."""

    inside: int
    at: int


def answered(execution: Execution, operation: Operation, attempt: int, observed: Observed) -> Answered | None:
    """Return what a callee made of an attempt of a call; None if it did not execute it to its end."""
    called = observed.by_request.get(child_id(execution.request, attempt_of(operation.seq, attempt)))
    if called is None or called.end is None:
        return None
    begin = called.begin.time if called.arrive is None else called.arrive
    return Answered(called.end.time - begin, called.end.time)


def _attempts(
    execution: Execution,
    operation: Operation,
    elapsed: int,
    samples: CommunicationSamples,
    observed: Observed,
    window: int,
) -> None:
    """Note what earlier attempts of a call cost: work of the callee, and waiting (of ``elapsed`` ns)."""
    executed = [answered(execution, operation, attempt.number, observed) for attempt in operation.earlier]
    known = [callee.inside for callee in executed if callee is not None]
    samples.attempts.add(1.0 + len(known), window)
    samples.waiting.add(max(0, elapsed - sum(known)) * _NS, window)
