"""Processor time of executions that overlap others on the event loop of their replica.

The CPU clock of an execution is that of its thread. Between two of its moments an event loop may have worked
for others, and the log holds that work once with each execution that waited meanwhile. What nobody else had a
part in is known: a piece of an execution, from one of its moments to the next, in which no other has any. All
other pieces of executions that overlap hold what the loop did beside these: they are shortened by one factor,
so that it counts once. That includes what the loop did for requests before their endpoints began.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import accumulate, pairwise

from analyzer.calibration.executions import Execution, Moment, Operation

__all__ = ["give_own_clocks"]


def give_own_clocks(executions: Iterable[Execution], loops: Collection[str]) -> None:
    """Take work for others out of the CPU clocks of executions.

    Args:
        executions: All of a log.
        loops: Services with an event loop per replica.
    """
    replicas: dict[tuple[str, int], list[Execution]] = defaultdict(list)
    for one in executions:
        if one.role == "worker" and one.service in loops and one.done is not None and one.begin.cpu >= 0:
            replicas[one.service, one.replica].append(one)
    for several in replicas.values():
        several.sort(key=lambda one: one.begin.time)
        for together in _overlapping(several):
            if len(together) > 1:
                _count_once(together)


def _done(one: Execution) -> Moment:
    return one.done or one.begin


def _overlapping(executions: Sequence[Execution]) -> Iterator[list[Execution]]:
    """Yield the executions that overlap, each with the next."""
    together: list[Execution] = []
    latest = 0
    for one in executions:
        if together and one.begin.time >= latest:
            yield together
            together = []
        together.append(one)
        latest = max(latest, _done(one).time)
    if together:
        yield together


def _count_once(together: Sequence[Execution]) -> None:
    """Correct the clocks of executions that overlap."""
    all_moments = [_moments(one) for one in together]
    times = sorted(moment.time for moments in all_moments for moment in moments)
    own = 0
    mixed: list[list[int]] = []
    for moments in all_moments:
        mixed.append([])
        mine = [moment.time for moment in moments]
        for before, after in pairwise(moments):
            used, piece = after.cpu - before.cpu, (before.time, after.time)
            others = _number(times, *piece) > _number(mine, *piece)
            mixed[-1].append(used if others else 0)
            own += 0 if others else used
    shared = sum(map(sum, mixed))
    whole = max(moments[-1].cpu for moments in all_moments) - together[0].begin.cpu
    excess = 1 - max(0, whole - own) / shared if shared > 0 else 0.0
    if excess <= 0:
        return
    for one, moments, pieces in zip(together, all_moments, mixed, strict=True):
        sums = accumulate(pieces, initial=0)
        less = {m: round(excess * total) for m, total in zip(moments, sums, strict=True)}
        _correct(one, less, less[moments[-1]])


def _moments(one: Execution) -> list[Moment]:
    """Return the moments of an execution on its CPU clock, in the order of time."""
    done = _done(one)
    found = {one.begin, done, *(m for step in one.steps for m in (step.start, step.resume))}
    for operation in _on_its_thread(one):
        contacts = (attempt.contact for attempt in operation.earlier)
        found.update(m for m in (operation.contact, operation.finish, *contacts) if m is not None)
    return sorted(m for m in found if m.cpu >= 0 and one.begin.time <= m.time <= done.time)


def _on_its_thread(one: Execution) -> Iterator[Operation]:
    """Yield the operations whose destination is on the CPU clock of the execution."""
    return (o for o in one.operations.values() if o.on_loop or not o.is_query)


def _number(times: Sequence[int], first: int, last: int) -> int:
    return bisect_right(times, last) - bisect_left(times, first)


def _correct(one: Execution, less: dict[Moment, int], afterwards: int) -> None:
    """Set the CPU clock of an execution back by what it holds of others up to each moment."""

    def corrected(moment: Moment) -> Moment:
        return moment if moment.cpu < 0 else moment._replace(cpu=moment.cpu - less.get(moment, afterwards))

    one.begin, one.done = corrected(one.begin), one.done and corrected(one.done)
    one.end = one.end and corrected(one.end)
    for step in one.steps:
        step.start, step.resume = corrected(step.start), corrected(step.resume)
    for operation in one.operations.values():
        operation.start = corrected(operation.start)
    for operation in _on_its_thread(one):
        operation.contact = operation.contact and corrected(operation.contact)
        operation.finish = operation.finish and corrected(operation.finish)
        operation.earlier = [
            attempt._replace(contact=attempt.contact and corrected(attempt.contact))
            for attempt in operation.earlier
        ]
