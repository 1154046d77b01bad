"""Which local work may raise exceptions of the source tree, besides those of Python?

Inside ``try`` local work may raise anything. But an exception that the source defines is only raised by a
``raise`` of the source, and where the walk follows the code around it, it knows. What is left is code that it
does not follow: functions that do not communicate, and what a library calls. An expression of operations,
built-in functions and methods of built-in containers runs neither, unless it mentions something by the name
of such a function. In doubt it may raise anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

import libcst as cst

from analyzer.static.exceptions import STANDARD
from analyzer.static.names import ClassInfo, FunctionInfo, assigned_names, mup_name
from analyzer.static.source import Module
from analyzer.static.state import Failure, State, values_in
from analyzer.static.syntax import applied, last_name, name_of, simple_statements, targets_in
from analyzer.static.values import UNKNOWN, Awaitable, External, Future, Many, alternatives
from analyzer.static.walk import Part, Walk
from analyzer.static.walking import names_in, nodes_of, of_types

__all__ = ["CREATING", "OwnExceptions"]

CREATING = {"__init__", "__new__", "__post_init__"}
"""Methods that only calling a class runs."""

ENTERING = {"__aenter__", "__aexit__", "__enter__", "__exit__"}
"""Methods that only ``with`` runs."""

MANAGING = {"asynccontextmanager", "contextmanager"}
"""Decorators of generators that only ``with`` runs."""

DEFINING = {"__init_subclass__", "__set_name__"}
"""Methods that only definitions of classes run."""

OPERATIONS = {"call", "query", "respond"}
METHODS = {name for kind in (bytes, dict, float, int, list, set, str, tuple) for name in vars(kind)} - {
    "sort"
}
"""Of built-in containers and texts, without those that call what they are given."""

BUILTINS = {
    *("abs", "all", "any", "bool", "bytes", "dict", "enumerate", "float", "frozenset", "int", "isinstance"),
    *("iter", "len", "list", "print", "range", "repr", "reversed", "round", "set", "str", "sum", "tuple"),
    *("type", "zip"),
}
"""Functions that call nothing but special methods of what they are given."""

LIBRARIES = ("datetime.", "json.", "logging.", "math.", "random.", "time.", "uuid.")
"""These call nothing of the source, unless a keyword says what."""

LATER = {"accumulate", "dropwhile", "filter", "filterfalse", "groupby", "map", "starmap", "takewhile"}
"""Functions that call others whenever somebody takes an item."""

AT_ONCE = {
    "all",
    "any",
    "dict",
    "frozenset",
    "gather",
    "join",
    "list",
    "max",
    "min",
    "set",
    "sorted",
    "sum",
    "tuple",
}
"""Functions that take all items of what they are given before they return."""

LOOPS = {f"asyncio.{name}" for name in ("as_completed", "gather", "sleep", "wait")}

SCOPES = (cst.ClassDef, cst.FunctionDef, cst.Lambda)
SEEN = (cst.Await, cst.Call)


class OwnExceptions(Part):
    """Tells what local work may raise."""

    def __init__(self, walk: Walk) -> None:
        super().__init__(walk)
        self._read = 0
        self._raising: frozenset[str] | None = frozenset()
        self._defined: frozenset[str] = frozenset()
        self._kept: frozenset[str] = frozenset()
        self._calls: dict[cst.CSTNode, Sequence[cst.CSTNode | None]] = {}

    def failure(self, state: State, *nodes: cst.CSTNode | None) -> Failure:
        """Return as what kind of failure local work of some expressions may fail."""
        raising = self._names() if self.walk.tries else None
        if raising is None:
            return "local"
        for node in nodes:
            if node is None or not all(self._is_plain(one, state) for one in self._run_by(node, raising)):
                return "local"
        return "builtin"

    def _run_by(self, node: cst.CSTNode, raising: frozenset[str]) -> Sequence[cst.CSTNode | None]:
        """Return the calls in an expression; None among them if it mentions what may raise."""
        if node not in self._calls:
            mentions = not raising.isdisjoint(names_in(node))
            self._calls[node] = (None,) if mentions else tuple(nodes_of(node, SEEN))
        return self._calls[node]

    def _is_plain(self, node: cst.CSTNode | None, state: State) -> bool:
        match node:
            case None:
                return False
            case cst.Await(expression=cst.Call(func=func)):
                return self._is_operation(func) or self.walk.names.external(self.walk.module, func) in LOOPS
            case cst.Await(expression=waited):
                return self._is_waited_for(waited, state)
            case cst.Call(func=func):
                return self._is_known(node, func, state)
        return True

    def _is_operation(self, func: cst.BaseExpression) -> bool:
        match func:
            case cst.Attribute(attr=cst.Name(value=name)):
                return name in OPERATIONS
        return False

    def _is_known(self, node: cst.Call, func: cst.BaseExpression, state: State) -> bool:
        """Return whether a call runs nothing but operations and built-in code."""
        names, module = self.walk.names, self.walk.module
        match func:
            case cst.Name(value=name) if self._is_variable(name, state):
                return False
            case cst.Name():
                kind = names.external(module, func)
                if not kind:
                    found = names.find(module, func.value)
                    return isinstance(found, tuple) and isinstance(found[1], FunctionInfo | ClassInfo)
                plain = kind.startswith("builtins.") and kind.rpartition(".")[2] in BUILTINS
                return plain or _of_library(kind, node) or _keeps_true(kind, node)
            case cst.Attribute(value=cst.Name(value="self" | "cls"), attr=cst.Name(value=name)) if (
                name in self._defined - self._kept
            ):
                return True
            case cst.Attribute(attr=cst.Name(value=name)) if name in self._kept:
                return False
            case cst.Attribute(attr=cst.Name(value=name)):
                kind = names.library_name(module, func)
                if kind in LOOPS:
                    return all(self._is_waited_for(one.value, state) for one in node.args)
                if name == "get" and not node.args:
                    return self._is_waited_for(func.value, state)
                return _of_library(kind, node) if kind else name in OPERATIONS | METHODS
        return False

    def _is_variable(self, name: str, state: State) -> bool:
        """Return whether a name may be a variable of a function, whose value may be any function."""
        captured = (one for context in self.walk.contexts for one, _ in context.captured)
        return any(name in frame for frame in state.frames) or name in captured

    def _is_waited_for(self, node: cst.BaseExpression, state: State) -> bool:
        """Return whether this is a future, or several: what they raise is noted where they are waited for."""
        match node:
            case cst.Name(value=name):
                known = state.frames[-1].get(name, UNKNOWN)
                held = alternatives(known)
                if known.place is not None:
                    held = tuple(values_in(state.heap.get(known.place, UNKNOWN)))
                return bool(held) and all(isinstance(one, Awaitable | Future | Many) for one in held)
            case cst.Call(func=func):
                return self._is_operation(func)
            case cst.ListComp(elt=element) | cst.GeneratorExp(elt=element):
                return self._is_waited_for(element, state)
        return isinstance(node, cst.Integer | cst.Float)

    def _names(self) -> frozenset[str] | None:
        """Return the names of what may raise exceptions of the source; None if names do not tell."""
        modules = self.walk.names.modules_read()
        if len(modules) != self._read:
            self._read = len(modules)
            self._calls.clear()
            functions = (one for module in modules for one in of_types(module.nodes, cst.FunctionDef))
            self._defined = frozenset(one.name.value for one in functions)
            self._kept = frozenset(name for module in modules for name in _kept(module))
            own = any(self._is_own(m, one) for m in modules for one in of_types(m.nodes, cst.Raise))
            self._raising = self._reached(modules) if own else frozenset()
        return self._raising

    def _is_own(self, module: Module, node: cst.Raise) -> bool:
        """Return whether a ``raise`` may be of an exception that the source defines, or of a group."""
        if node.exc is None:
            return False
        match self.walk.names.dotted(module, applied(node.exc)):
            case External(name=name) as kind:
                group = kind.class_name in ("BaseExceptionGroup", "ExceptionGroup")
                return group or not (name.partition(".")[0] in STANDARD or mup_name(kind))
        return True

    def _reached(self, modules: Sequence[Module]) -> frozenset[str] | None:
        """Return the names of what raises such an exception, or mentions something of such a name."""
        found: set[str] = set()
        waiting: list[tuple[str, frozenset[str]]] = []
        for module in modules:
            for names, mentioned, raising in self._named(module):
                if raising:
                    found.update(names)
                waiting += ((name, mentioned) for name in names)
        grown = True
        while grown:
            reached = {name for name, mentioned in waiting if not found.isdisjoint(mentioned)}
            grown = not reached <= found
            found |= reached
        special = {name for name in found if name.startswith("__") and name.endswith("__")}
        if special - CREATING - ENTERING - DEFINING - {"__call__"}:
            return None
        return None if any(_raises_later(module, found) for module in modules) else frozenset(found)

    def _named(self, module: Module) -> Iterator[tuple[list[str], frozenset[str], bool]]:
        """Yield what has a name in a module: its names, what it mentions, whether it raises such ones."""
        bodies: list[Sequence[cst.CSTNode]] = [module.tree.body]
        for node in of_types(module.nodes, cst.FunctionDef, cst.ClassDef, cst.Assign):
            match node:
                case cst.FunctionDef(name=cst.Name(value=name)):
                    yield [name], names_in(node), self._raises(module, node)
                case cst.ClassDef(name=cst.Name(value=name), body=cst.BaseSuite(body=body)):
                    # Calling it may run more of it than its text tells: validators, `_missing_`, factories.
                    yield [name], names_in(node), self._raises(module, node)
                    bodies.append(body)
                case cst.Assign(targets=targets, value=value):
                    kept = of_types((one.target for one in targets), cst.Attribute)
                    yield [one.attr.value for one in kept], names_in(value), False
        for statement in (one for body in bodies for line in body for one in simple_statements(line)):
            match statement:
                case cst.Assign() | cst.AnnAssign(value=cst.BaseExpression()):
                    yield list(assigned_names(statement)), names_in(statement), False

    def _raises(self, module: Module, node: cst.CSTNode) -> bool:
        return any(self._is_own(module, one) for one in nodes_of(node, (cst.Raise,)))


def _kept(module: Module) -> Iterator[str]:
    """Yield the attributes that a module gives objects a value of, which may be any function."""
    for node in of_types(module.nodes, cst.Assign, cst.AnnAssign):
        match node:
            case cst.Assign(targets=targets):
                kept = (one for target in targets for one in targets_in(target.target))
                yield from (one.attr.value for one in kept if type(one) is cst.Attribute)
            case cst.AnnAssign(target=cst.Attribute(attr=cst.Name(value=name)) | cst.Name(value=name)):
                yield name


def _of_library(name: str, node: cst.Call) -> bool:
    """Return whether a call is one of a library that calls nothing of the source."""
    return name.startswith(LIBRARIES) and not any(one.keyword for one in node.args)


def _keeps_true(name: str, node: cst.Call) -> bool:
    """Return whether a call is ``filter(None, ...)``."""
    return name == "builtins.filter" and name_of(node.args[0].value) == "None" if node.args else False


def _raises_later(module: Module, raising: AbstractSet[str]) -> bool:
    """Return whether something calls one of these functions later, when items are taken of it."""
    at_once: set[cst.CSTNode] = set()
    for call in of_types(module.nodes, cst.Call):
        if last_name(call.func) in AT_ONCE:
            at_once.update(one.value for one in call.args)
    for node in of_types(module.nodes, cst.GeneratorExp, cst.Call, cst.FunctionDef):
        match node:
            case cst.GeneratorExp() if node not in at_once and not raising.isdisjoint(names_in(node)):
                return True
            case cst.Call(func=func) if last_name(func) in LATER and node not in at_once:
                if not raising.isdisjoint(names_in(node)):
                    return True
            case cst.FunctionDef(name=cst.Name(value=name)) if name in raising:
                managing = any(last_name(one.decorator) in MANAGING for one in node.decorators)
                if not managing and nodes_of(node.body, (cst.Yield,), SCOPES):
                    return True
    return False
