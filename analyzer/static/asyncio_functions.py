"""What do the functions of asyncio do?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Literal

import libcst as cst

from analyzer.static.arguments import Arguments
from analyzer.static.completing import FIRST_REWRITE
from analyzer.static.state import Results, State
from analyzer.static.values import (
    LOST,
    NONE,
    UNKNOWN,
    Awaitable,
    Const,
    External,
    Future,
    Group,
    ListRef,
    Many,
    SetRef,
    Value,
    alternatives,
    is_filled,
    of_kind,
)
from analyzer.static.waiting import TIMEOUT
from analyzer.static.walk import Part, Walk

__all__ = ["Asyncio"]

LOOP = "asyncio.<loop>"

ALL_COMPLETED = (External("asyncio.ALL_COMPLETED"), Const.of("ALL_COMPLETED"))
FIRST_COMPLETED = (External("asyncio.FIRST_COMPLETED"), Const.of("FIRST_COMPLETED"))


class Asyncio(Part):
    """Calls functions of asyncio."""

    def __init__(self, walk: Walk) -> None:
        super().__init__(walk)
        self._library: dict[str, Callable[[Arguments, cst.Call, State], Results]] = {
            "asyncio.gather": self._gather,
            "asyncio.wait_for": self._wait_for,
            "asyncio.shield": self._shield,
            "asyncio.create_task": self._create_task,
            "asyncio.ensure_future": self._create_task,
            f"{LOOP}.create_task": self._create_task,
            "asyncio.as_completed": self._as_completed,
            "asyncio.wait": self._wait,
            "asyncio.sleep": self._sleep,
            "asyncio.TaskGroup": self._task_group,
            "asyncio.timeout": lambda _arguments, _node, state: [(state, TIMEOUT)],
            "asyncio.timeout_at": lambda _arguments, _node, state: [(state, TIMEOUT)],
            "asyncio.get_running_loop": lambda _arguments, _node, state: [(state, External(LOOP))],
            "asyncio.get_event_loop": lambda _arguments, _node, state: [(state, External(LOOP))],
        }

    def library(self, name: str, arguments: Arguments, node: cst.Call, state: State) -> Results | None:
        """Return what calling a function of asyncio does; None if it is none, or does nothing special."""
        known = self._library.get(name)
        return None if known is None else known(arguments, node, state)

    def _given(self, arguments: Arguments, node: cst.Call, state: State) -> list[Value] | None:
        """Return the positional arguments, ``*`` spread; None if that is not known."""
        given: list[Value] = []
        for argument, value in arguments.pairs:
            if argument.star == "*":
                items = self._items(value, state)
                if items is None:
                    if state.holds_tracked(value):
                        self.walk.calls.unknown_future(node, state)
                    return None
                given += items
            elif argument.keyword is None and not argument.star:
                given.append(LOST if is_filled(value) else value)
        return given

    def _items(self, value: Value, state: State) -> tuple[Value, ...] | None:
        """Return what there is to wait for, in whatever order; None if that is not known.

        Of a set, futures of calls are not followed: a log shows in which order it is waited for these.
        """
        runs = self.walk.copies.runs(value, state)
        if runs is not None or not isinstance(value, SetRef):
            return runs
        members = value.members(state)
        calls = not all(map(state.is_task, of_kind(members or (), Future)))
        return None if calls else members

    def _gather(self, arguments: Arguments, node: cst.Call, state: State) -> Results:
        no = Const.of(value=False)
        kind: Literal["collect", "gather"] = "gather"
        if dict(arguments.keywords()).get("return_exceptions", no) != no:
            kind = "collect"
        given = self._given(arguments, node, state)
        if given is not None and of_kind(given, Many) and not self.walk.waiting.awaited_at_once(node):
            self.walk.calls.unknown_future(node, state)
            given = None
        if given is None:
            return [(state, UNKNOWN)]
        results: Results = []
        for items in self._combinations(given):
            if self.walk.waiting.awaited_at_once(node):
                started: list[tuple[State, tuple[Value, ...]]] = [(state, items)]
            else:
                started = self.walk.tasks.started_all(items, node, state)
            for after, handles in started:
                results.append((after, Awaitable(kind, handles, node)))
        return results

    def _combinations(self, values: Sequence[Value]) -> Iterator[tuple[Value, ...]]:
        several = [type(one) is Many for one in values]
        return product(
            *(
                alternatives(v) if v.tracked() or many else (UNKNOWN,)
                for v, many in zip(values, several, strict=True)
            )
        )

    def _wait_for(self, arguments: Arguments, node: cst.Call, state: State) -> Results:
        value, _ = arguments.get(0, ("fut",))
        options = alternatives(value or UNKNOWN)
        return [(state, Awaitable("limited", (one,), node)) for one in options]

    def _shield(self, arguments: Arguments, node: cst.Call, state: State) -> Results:
        if self.walk.waiting.awaited_at_once(node):
            value, _ = arguments.get(0, ("arg",))
            return [(state, value or UNKNOWN)]
        return self._create_task(arguments, node, state)

    def _create_task(self, arguments: Arguments, node: cst.Call, state: State) -> Results:
        value, _ = arguments.get(0, ("coro", "coro_or_future", "arg"))
        options = alternatives(value or UNKNOWN)
        return [started for one in options for started in self.walk.tasks.start(one, node, state)]

    def _as_completed(self, arguments: Arguments, node: cst.Call, state: State) -> Results:
        value, _ = arguments.get(0, ("fs",))
        items = self._items(value or UNKNOWN, state)
        if items is None:
            return [(state, state.content_of([value or UNKNOWN]))]
        results: Results = []
        for combination in self._combinations(items):
            known = [one for one in combination if type(one) is not Many]
            for after, handles in self.walk.tasks.started_all(known, node, state):
                rest = iter(handles)
                values = tuple(one if type(one) is Many else next(rest) for one in combination)
                results.append((after, Awaitable("as_completed", values, node)))
        return results

    def _wait(self, arguments: Arguments, node: cst.Call, state: State) -> Results:
        value, _ = arguments.get(0, ("fs",))
        kind = self._waits_for(arguments)
        if kind is None:
            what = "asyncio.wait is analysed for all of some tasks, or the first"
            hint = f"state 'return_when' where it is called; else {FIRST_REWRITE}"
            self.walk.report("MUP030", what, node, hint)
            return [(state, UNKNOWN)]
        limited = dict(arguments.keywords()).get("timeout", NONE) != NONE
        items = self._items(value or UNKNOWN, state)
        if items is None:
            if value is not None and state.holds_tracked(value):
                self.walk.calls.unknown_future(node, state)
            return [(state, UNKNOWN)]
        if any(one.tracked() and not self.walk.copies.is_task(one, state) for one in items):
            self.walk.report("MUP030", "asyncio.wait is analysed for tasks only", node, "use asyncio.gather")
            return [(state, UNKNOWN)]
        return [(state, _wait_for_tasks(kind, items, node, limited=limited))]

    @staticmethod
    def _waits_for(arguments: Arguments) -> Literal["wait", "first"] | None:
        """Return what ``asyncio.wait`` waits for, all or the first; None if it is neither."""
        keywords = dict(arguments.keywords())
        if not arguments.plain:
            return None
        when = keywords.get("return_when", ALL_COMPLETED[0])
        return "wait" if when in ALL_COMPLETED else "first" if when in FIRST_COMPLETED else None

    def _sleep(self, arguments: Arguments, node: cst.Call, state: State) -> Results:
        if self.walk.role == "client":
            hint = "users think with 'await self.think(seconds)'"
            self.walk.report("MUP051", "a sleep in a scenario counts as response time", node, hint)
        self.walk.tasks.slept(state)
        self.walk.calls.release(arguments.values, state, node, node.func)
        return [(state, UNKNOWN)]

    def _task_group(self, _arguments: Arguments, _node: cst.Call, state: State) -> Results:
        number = self.walk.allocate()
        return [(state.store(number, ()), Group(number))]

    def group_method(
        self, group: Group, name: str, arguments: Arguments, node: cst.Call, state: State
    ) -> Results:
        """Return what a method of a group of tasks does."""
        if name != "create_task":
            return [(state, UNKNOWN)]
        tasks = ListRef(group.number)
        started = self._create_task(arguments, node, state)
        return [(tasks.grown(UNKNOWN, task, after), task) for after, task in started]

    def future_method(
        self, future: Future, name: str, arguments: Arguments, node: cst.Call, state: State
    ) -> Results:
        """Return what a method of a future or task does."""
        if state.operations[future.index].op != "task":
            if name == "get":
                self.walk.mistakes.waits_in_loop(node, state, future.index)
                return self.walk.operations.get(future, node, state)
            self.walk.report("MUP042", f"a future has no operation {name!r}", node, "wait for it with get()")
        elif name == "cancel":
            # From here on it may stop anywhere: nothing waits for the rest of it.
            return [(replace(state, joined=state.joined | {future.index}), UNKNOWN)]
        elif name == "result":
            self.walk.tasks.ended(future.index, state)
        elif name == "add_done_callback":
            self.walk.calls.release(arguments.values, state, node, node.func)
        return [(state, UNKNOWN)]


def _wait_for_tasks(
    kind: Literal["wait", "first"], tasks: tuple[Value, ...], node: cst.Call, *, limited: bool
) -> Awaitable:
    """Return a wait for all of some tasks, or the first; ``limited``: it may end before."""
    whole = Awaitable(kind, tasks, node)
    return Awaitable("late", (whole,), node) if limited else whole
