"""What does waiting for the first of several tasks do?

``asyncio.wait`` with ``FIRST_COMPLETED`` goes on when one of its tasks has ended. The tasks and the wait are
one element of the path, a *race*, with what each of the tasks does; of any number of tasks it is a fan-out
whose ``join`` waits for the first copy. What has not ended then may go on or be cancelled: no answer of it is
waited for any more, but what it has asked for is under way and keeps others busy.

Followed is what has this form: the tasks were started just before, and each makes all its requests at once.
One that sleeps first, or goes on to a second request, might have been stopped before that, which the model
would not know.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import libcst as cst

from analyzer.static.application import Operation, Path
from analyzer.static.state import Results, State
from analyzer.static.values import RACED, UNKNOWN, Awaitable, Future, Many, TupleValue, of_kind
from analyzer.static.walk import Part

__all__ = ["ENDED_AND_OTHERS", "Races"]

REWRITE = (
    "start the tasks just before the wait, let each make one request, and do not wait for the others"
    " afterwards; or wait for all with asyncio.gather"
)


ENDED_AND_OTHERS = TupleValue((UNKNOWN, RACED))
"""What the wait returns: those that have ended, and the others."""

NOT_AT_ONCE = "a task may sleep before it asks, or ask again after an answer"


class Races(Part):
    """Waits for the first of several tasks."""

    def first(self, one: Awaitable, node: cst.Call | cst.Await, state: State) -> Results:
        """Return what ``await asyncio.wait(tasks, return_when=FIRST_COMPLETED)`` does."""
        if len(one.values) == 1 and type(one.values[0]) is Many:
            return self._first_of_many(one.values[0], node, state)
        tasks = of_kind(one.values, Future)
        if len(tasks) < len(one.values):
            return self._refused("one of the tasks it waits for may ask for nothing", node, state)
        if any(task.index in state.joined for task in tasks):
            return [(state, ENDED_AND_OTHERS)]  # one has ended before
        if len(tasks) == 1:
            joined = self.walk.tasks.joined(tasks, node, state, collect=True)
            return [(after, ENDED_AND_OTHERS) for after in joined]
        base = _first_of(tasks, state)
        if base is None or base < self.walk.first_own or self.walk.loops_around:
            return self._refused(
                "not all of its tasks were started just before, or it is in a loop", node, state
            )
        started = tuple(_with_calls(place, state) for place in sorted(task.index for task in tasks))
        sleeping = any(self.walk.tasks.outcome(state.operations[task.index]).sleeps_first for task in tasks)
        if sleeping or not all(map(_asks_at_once, started)):
            return self._refused(NOT_AT_ONCE, node, state)
        self.walk.waiting.interruptible(state)
        race = Operation("race", self.walk.module.site(node), bodies=started, holding=self.walk.held)
        return [(_raced(state, base, race), ENDED_AND_OTHERS)]

    def _first_of_many(self, many: Many, node: cst.Call | cst.Await, state: State) -> Results:
        if not self._ask_at_once(self.walk.copies.begun(many, state)):
            return self._refused(NOT_AT_ONCE, node, state)
        waited = self.walk.copies.gathered(many, node, state, first=True)
        return [(after, ENDED_AND_OTHERS) for after, _ in waited]

    def _ask_at_once(self, tasks: Sequence[Operation]) -> bool:
        """Return whether tasks have asked for all they ask for before any of them can be stopped."""
        sleeping = any(self.walk.tasks.outcome(task).sleeps_first for task in tasks)
        return not sleeping and all(_asks_at_once(task.bodies[0]) for task in tasks)

    def waited_again(self, node: cst.Call | cst.Await, state: State) -> Results:
        """Report a wait for a task behind a wait for the first of several: it may have been this one."""
        return self._refused("it waits for one of several tasks the first of which has ended", node, state)

    def _refused(self, why: str, node: cst.Call | cst.Await, state: State) -> Results:
        self.walk.report("MUP030", f"'{self.walk.code(node)}' is not analysed yet: {why}", node, REWRITE)
        return [(state, ENDED_AND_OTHERS)]


def _asks_at_once(path: Path) -> bool:
    """Return whether all that a task asks for has been asked when it waits for the first answer."""
    waits = False
    for operation in path.operations:
        if operation.op == "get" and operation.of is not None and operation.of >= 0:
            waits = True
        elif operation.op not in ("call", "query") or waits:
            return False
    return True


def _first_of(tasks: Sequence[Future], state: State) -> int | None:
    """Return where in the path the first of some tasks begins; None if they are not its last elements.

    A task may be a call that was made for it: ``asyncio.create_task(comm.call(...))``.
    """
    places = {task.index for task in tasks}
    calls = [call for place in places for call in _calls_for(place, state)]
    begun = {*places, *calls}
    base = len(state.operations) - len(begun)
    last = begun == set(range(base, len(state.operations))) and len(begun) == len(places) + len(calls)
    return base if last and not places & state.joined else None


def _calls_for(task: int, state: State) -> list[int]:
    """Return where in the path the calls are that were made outside of a task that waits for them."""
    return sorted({task + distance for distance in state.operations[task].outward()})


def _with_calls(task: int, state: State) -> Path:
    """Return what a task does, with the calls that were made for it."""
    (path,) = state.operations[task].bodies
    calls = _calls_for(task, state)
    if not calls:
        return path
    moved = {call - task: place for place, call in enumerate(calls)}
    operations = tuple(
        o if o.of is None else replace(o, of=moved.get(o.of, o.of + len(calls))) for o in path.operations
    )
    lines = (*(state.local_lines[call] for call in calls), *path.local_lines)
    return replace(path, operations=(*(state.operations[c] for c in calls), *operations), local_lines=lines)


def _raced(state: State, base: int, race: Operation) -> State:
    """Return the state behind a race of the last tasks of a path."""
    line = next((line for line in state.local_lines[base:] if line), 0)
    return replace(
        state.with_futures(lambda future: future if future.index < base else RACED),
        operations=(*state.operations[:base], race),
        local_lines=(*state.local_lines[:base], line, 0),
        joined=frozenset(index for index in state.joined if index < base),
    )
