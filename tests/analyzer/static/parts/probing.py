"""Small pieces of code, walked from a state that a test makes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent, indent

import pytest

from analyzer.static.application import Operation
from analyzer.static.catalogue import Catalogue
from analyzer.static.diagnostics import Diagnostics
from analyzer.static.execution import Execution
from analyzer.static.failures import room
from analyzer.static.names import ClassInfo, FunctionInfo, Names
from analyzer.static.source import SourceTree
from analyzer.static.state import Flow, State
from analyzer.static.values import COMM, Value, join
from analyzer.static.walk import Context, Walk

ADDRESSES = {"B": {"/b/": "/b/", "/c/": "/c/"}}


@dataclass(frozen=True)
class Probed:
    """How a function may end.

    Attributes:
        flows: Every way to end.
        walk: The walk that found them.
        function: The function.
    """

    flows: tuple[Flow, ...]
    walk: Walk
    function: FunctionInfo

    @property
    def value(self) -> Value:
        """What the function may return."""
        return join(flow.value for flow in self.flows if flow.kind == "return")

    @property
    def state(self) -> State:
        """The state at its only end."""
        (flow,) = self.flows
        return flow.state

    @property
    def ways(self) -> list[str]:
        """What it does, and how it ends, sorted."""
        return sorted(
            " ".join([*(_shown(o) for o in flow.state.operations), flow.kind]) for flow in self.flows
        )

    @property
    def codes(self) -> list[str]:
        """The codes of all findings."""
        return [finding.code for finding in self.walk.diagnostics.all()]

    def in_module(self, name: str) -> Value:
        """Return what a name of the module is worth."""
        return self.walk.lookups.global_value(self.function.module, name)

    def of_class(self, name: str) -> ClassInfo:
        """Return a class of the module."""
        found = self.walk.names.scope(self.function.module)[name]
        assert isinstance(found, ClassInfo)
        return found


def _shown(operation: Operation) -> str:
    bodies = "|".join(" ".join(map(_shown, body.operations)) for body in operation.bodies)
    return f"{operation.op}[{bodies}]" if bodies else f"{operation.op}{operation.target}"


Probe = Callable[..., Probed]


@pytest.fixture
def probe(tmp_path: Path) -> Probe:
    """Return what walks the body of a function whose parameters have the values a test gives."""

    def walked(body: str, module: str = "", define: str = "def", **frame: Value) -> Probed:
        parameters = ", ".join(["comm", *frame])
        code = indent(dedent(body), "    ")
        text = f"{dedent(module)}\n{define} probe({parameters}):\n{code}\n"
        (tmp_path / "app.py").write_text(text, encoding="utf-8")
        with room():
            names = Names(SourceTree(tmp_path, Diagnostics()))
            tree = names.tree.module("app")
            assert tree is not None
            function = names.scope(tree)["probe"]
            assert isinstance(function, FunctionInfo)
            walk = Execution(names, Catalogue(ADDRESSES, None), Diagnostics()).walk
            walk.contexts = [Context(tree, function)]
            flows = walk.statements.run_body(function, State(({"comm": COMM, **frame},)))
            flows += walk.raised
        return Probed(tuple(flows), walk, function)

    return walked
