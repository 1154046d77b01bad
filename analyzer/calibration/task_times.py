"""Local work between the steps of concurrent tasks.

The tasks of one execution share an event loop: at any moment at most one of them computes. Wall time
between two steps of a task begins when the earlier one lets it go on, which is not before the others have
nothing more to do. Processor time is divided between all of them: what passes until a step begins is work of
the task that does the step; what passes until a wait is over is work of the task seen last that did not
wait, or else of tasks that did no step at all. The sum over all gaps is all processor time of the execution
but that of its operations.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from analyzer.calibration.executions import Execution, Moment, Step
from analyzer.calibration.matching import Shape, Span

__all__ = ["gap_times"]

_NS = 1e-9


class _Event(NamedTuple):
    """Step ``step`` began, or (``over``) let its task go on."""

    moment: Moment
    step: int
    over: bool


def gap_times(execution: Execution, shape: Shape) -> list[tuple[float, float]]:
    """Return demand and delay, in seconds, of every gap of an execution with concurrent tasks.

    Args:
        execution: The execution.
        shape: How it ran through its path.
    """
    events = sorted(
        event
        for number, step in enumerate(execution.steps)
        for event in (_Event(step.start, number, over=False), _Event(step.resume, number, over=True))
    )
    moments = [event.moment for event in events]
    walls = [_wall(execution, span, moments) for span in shape.spans]
    if execution.begin.cpu < 0:
        return [(wall, 0.0) for wall in walls]
    demands = [0.0] * len(walls)
    for gap, seconds in _shares(execution, shape, events):
        demands[gap] += seconds
    return [(demand, max(0.0, wall - demand)) for demand, wall in zip(demands, walls, strict=True)]


def _wall(execution: Execution, span: Span, moments: Sequence[Moment]) -> float:
    after, index = span
    steps = execution.steps
    until = _begin_of(execution, index)
    last: Step | None = None
    start = execution.begin
    for number in range(index) if after is None else after:
        step = steps[number]
        over = step.resume.time <= until.time
        moment = step.resume if over else step.start
        if last is None or moment.time >= start.time:
            last, start = step, moment
    if last is not None and last.op == "get" and start is last.resume:
        operation = execution.operations.get(last.seq)
        answered = operation.finish if operation is not None else None
        others = bisect_left(moments, last.resume)
        start = max(last.start, answered or last.resume, *moments[others - 1 : others])
    return max(0.0, (until.time - start.time) * _NS)


def _begin_of(execution: Execution, index: int) -> Moment:
    if index < len(execution.steps):
        return execution.steps[index].start
    return execution.done or execution.end or execution.begin


def _shares(execution: Execution, shape: Shape, events: Sequence[_Event]) -> Iterator[tuple[int, float]]:
    """Yield processor time, in seconds, with the gap it belongs to."""
    behind: dict[int, int] = {}
    for gap, ((after, _), follows) in enumerate(zip(shape.spans, shape.follows, strict=True)):
        for number in (*(after or ()), *follows):
            behind.setdefault(number, gap)
    steps, end = execution.steps, len(shape.spans) - 1
    unseen = list(shape.unseen)
    before: _Event | None = None
    for event in events:
        since = execution.begin if before is None else before.moment
        seconds = (event.moment.cpu - since.cpu) * _NS
        waited = steps[event.step].op == "get"
        if not event.over:
            yield event.step, seconds
        elif before is not None and before.step != event.step and _goes_on(before, steps):
            yield behind.get(before.step, end), seconds
        elif waited or before is None or before.step != event.step:
            while unseen and _begin_of(execution, unseen[0]) < event.moment:
                unseen.pop(0)
            yield (unseen[0] if unseen else behind.get(event.step, end)), seconds
        before = event
    last = execution.begin if before is None else before.moment
    # Tasks may go on behind the end of the endpoint.
    yield end, max(0.0, (_begin_of(execution, len(steps)).cpu - last.cpu) * _NS)


def _goes_on(event: _Event, steps: Sequence[Step]) -> bool:
    """Return whether a task computes behind an event."""
    return event.over or steps[event.step].op != "get"
