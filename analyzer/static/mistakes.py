"""Which mistakes does code make that shows in the model, or only in production?

Each is about something the runtime refuses, or that the model takes for local work although it waits.
"""

from __future__ import annotations

import libcst as cst

from analyzer.static.arguments import Arguments
from analyzer.static.libraries.blocking import blocks, blocks_loop
from analyzer.static.names import ClassInfo, FunctionInfo
from analyzer.static.state import State
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
        node = function.node.name if isinstance(function.node, cst.FunctionDef) else function.node
        module = function.module
        self.walk.diagnostics.add("MUP060", problem, hint=hint, file=module.file, **module.span(node))

    def _served(self, function: FunctionInfo) -> FunctionInfo | None:
        """Return the function that serves an endpoint; None if its decorators do not tell."""
        value = self.walk.decorators.decorated(function)
        while isinstance(value, Partial):
            value = value.function
        if value is None:
            known = all(map(self.walk.decorators.transparent, self.walk.lookups.decorators(function)))
            return function if known else None
        return value.info if isinstance(value, FunctionValue | Closure) else None

    def dropped(self, node: cst.CSTNode, value: Value, state: State) -> None:
        """Report a statement whose value is a coroutine, which therefore never runs."""
        if not isinstance(node, cst.Expr) or not isinstance(node.value, cst.Call):
            return
        if isinstance(value, Coroutine | Awaitable):
            never = not isinstance(value, Awaitable) or value.kind in ("limited", "wait")
        else:
            never = self._makes_coroutine(node.value, state)
        if never:
            self.walk.report(
                "MUP061",
                f"'{self.walk.code(node.value)}' makes a coroutine that nothing awaits: it never runs",
                node.value,
                "write 'await' before it, or start a task with asyncio.create_task(...)",
            )

    def _makes_coroutine(self, node: cst.Call, state: State) -> bool:
        """Return whether a call makes a coroutine that does not communicate."""
        if cst.Await not in self.walk.module.kinds or not isinstance(node.func, cst.Name | cst.Attribute):
            return False
        owner: cst.BaseExpression = node.func
        while isinstance(owner, cst.Attribute):
            owner = owner.value
        if not isinstance(owner, cst.Name):
            return False
        with self.walk.trying():
            results = self.walk.expressions.evaluate(node.func, state)
        called = [one for _, value in results for one in alternatives(value)]
        return bool(called) and all(
            (isinstance(one, FunctionValue | Closure) and one.info.is_async and not self._yields(one.info))
            or (isinstance(one, External) and one.name in COROUTINES)
            for one in called
        )

    def _yields(self, info: FunctionInfo) -> bool:
        return self.walk.generators.generator_body(info) is not None

    def responded(self, arguments: Arguments, node: cst.Call) -> None:
        """Report a response that is a future or coroutine instead of an answer."""
        kinds = Future | Coroutine | Awaitable
        for value in arguments.values:
            if any(isinstance(one, kinds) for one in alternatives(value)):
                waiting = "await it" if self._is_async() else "wait for it with get()"
                self.walk.report(
                    "MUP062",
                    f"'{self.walk.code(node)}' responds with a future, not with its answer",
                    node,
                    f"{waiting} first",
                )

    def waits_in_loop(self, node: cst.CSTNode, state: State, index: int) -> None:
        """Report ``get`` of what was not awaited in a coroutine, which the event loop refuses."""
        if isinstance(node, cst.Call) and self._is_async() and index not in state.joined:
            self.walk.report(
                "MUP063",
                f"'{self.walk.code(node)}' would block the event loop, which refuses it",
                node,
                "write 'await' instead of get()",
            )

    def blocking(self, name: str, node: cst.CSTNode) -> None:
        """Report a wait outside of mup, which the model takes for work of the service itself."""
        if blocks(name):
            self.walk.report(
                "MUP064",
                f"{name!r} talks to another program, of which the model knows nothing",
                node,
                "what it takes is measured as local work of this service; to predict it under another load,"
                " make it a service or database of mup",
            )
        elif blocks_loop(name) and self._is_async():
            self.walk.report(
                "MUP064",
                f"{name!r} stops all requests of this worker's event loop",
                node,
                "write 'await asyncio.sleep(...)', or set runtime = 'thread'",
            )

    def _is_async(self) -> bool:
        """Return whether this runs on an event loop: some function around it is ``async def``."""
        return any(c.function is not None and c.function.is_async for c in self.walk.contexts)
