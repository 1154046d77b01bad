"""Which mistakes does code make that shows in the model, or only in production?

Each is about something the runtime refuses, or that the model takes for local work although it waits.
"""

from __future__ import annotations

import libcst as cst

from analyzer.static.arguments import Arguments
from analyzer.static.libraries.blocking import blocks, blocks_loop
from analyzer.static.names import ClassInfo, FunctionInfo
from analyzer.static.state import State
from analyzer.static.syntax import name_of
from analyzer.static.values import (
    Awaitable,
    Closure,
    Coroutine,
    External,
    FunctionValue,
    Future,
    Partial,
    Value,
    alternatives,
    of_kind,
)
from analyzer.static.walk import Part

__all__ = ["Mistakes"]

COROUTINES = {"asyncio.sleep", "asyncio.wait", "asyncio.wait_for", "asyncio.to_thread"}
"""Functions of asyncio that do nothing until they are awaited."""


class Mistakes(Part):
    """Reports mistakes."""

    def check_runtime(self, info: ClassInfo, function: FunctionInfo, runtime: str) -> None:
        """Report an ``async def`` endpoint of a runtime that does not await it, and the reverse."""
        served = self._served(function)
        if served is None or served.is_async is (runtime == "async"):
            return
        if served.is_async:
            problem = f"{function.qualname!r} is 'async def', but runtime is {runtime!r}"
            hint = "set runtime = 'async', or write it as 'def': calls run in parallel until their get()"
        else:
            problem = f"{function.qualname!r} is 'def', but the runtime of {info.qualname!r} is 'async'"
            hint = "write 'async def' and await calls, or set runtime = 'thread'"
        function.module.report(self.walk.diagnostics, "MUP060", problem, function.place, hint)

    def _served(self, function: FunctionInfo) -> FunctionInfo | None:
        """Return the function that serves an endpoint; None if its decorators do not tell."""
        value = self.walk.decorators.decorated(function)
        while isinstance(value, Partial):
            value = value.function
        match value:
            case None if all(map(self.walk.decorators.transparent, self.walk.lookups.decorators(function))):
                return function
            case FunctionValue(info=info) | Closure(info=info):
                return info
        return None

    def dropped(self, node: cst.CSTNode, value: Value, state: State) -> None:
        """Report a statement whose value is a coroutine, which therefore never runs."""
        match node, value:
            case cst.Expr(value=cst.Call() as call), Awaitable(kind=kind):
                never = kind in ("limited", "wait")
            case cst.Expr(value=cst.Call() as call), _:
                never = isinstance(value, Coroutine) or self._makes_coroutine(call, state)
            case _:
                return
        if never:
            what = f"'{self.walk.code(call)}' makes a coroutine that nothing awaits: it never runs"
            hint = "write 'await' before it, or start a task with asyncio.create_task(...)"
            self.walk.report("MUP061", what, call, hint)

    def _makes_coroutine(self, node: cst.Call, state: State) -> bool:
        """Return whether a call makes a coroutine that does not communicate."""
        owner: cst.BaseExpression = node.func
        while type(owner) is cst.Attribute:
            owner = owner.value
        if cst.Await not in self.walk.module.kinds or not name_of(owner):
            return False
        with self.walk.trying():
            results = self.walk.expressions.evaluate(node.func, state)
        called = [one for _, value in results for one in alternatives(value)]
        return bool(called) and all(map(self._is_coroutine_function, called))

    def _is_coroutine_function(self, value: Value) -> bool:
        match value:
            case FunctionValue(info=info) | Closure(info=info):
                return info.is_async and self.walk.generators.generator_body(info) is None
            case External(name):
                return name in COROUTINES
        return False

    def responded(self, arguments: Arguments, node: cst.Call) -> None:
        """Report a response that is a future or coroutine instead of an answer."""
        for value in arguments.values:
            if of_kind(alternatives(value), Future, Coroutine, Awaitable):
                what = f"'{self.walk.code(node)}' responds with a future, not with its answer"
                waiting = "await it" if self._is_async() else "wait for it with get()"
                self.walk.report("MUP062", what, node, f"{waiting} first")

    def waits_in_loop(self, node: cst.CSTNode, state: State, index: int) -> None:
        """Report ``get`` of what was not awaited in a coroutine, which the event loop refuses."""
        if type(node) is cst.Call and self._is_async() and index not in state.joined:
            what = f"'{self.walk.code(node)}' would block the event loop, which refuses it"
            self.walk.report("MUP063", what, node, "write 'await' instead of get()")

    def blocking(self, name: str, node: cst.CSTNode) -> None:
        """Report a wait outside of mup, which the model takes for work of the service itself."""
        if blocks(name):
            hint = (
                "what it takes is measured as local work of this service; to predict it under another load,"
                " make it a service or database of mup"
            )
            what = f"{name!r} talks to another program, of which the model knows nothing"
            self.walk.report("MUP064", what, node, hint)
        elif blocks_loop(name) and self._is_async():
            what = f"{name!r} stops all requests of this worker's event loop"
            hint = "write 'await asyncio.sleep(...)', or set runtime = 'thread'"
            self.walk.report("MUP064", what, node, hint)

    def unknown_limit(self, node: cst.CSTNode) -> None:
        """Report a semaphore or lock of all requests whose limit the model may miss."""
        if self.walk.limited:
            what = f"'{self.walk.code(node)}' may let requests wait, of which the model knows nothing"
            hint = (
                "take it by 'with' or 'async with', and make it with a number that is known from the source"
            )
            self.walk.report("MUP065", what, node, hint)

    def _is_async(self) -> bool:
        """Return whether this runs on an event loop: some function around it is ``async def``."""
        return any(c.function is not None and c.function.is_async for c in self.walk.contexts)
