"""Tasks that are kept until they have ended, and that no code waits for.

An event loop holds tasks by weak references alone, so whoever starts one and goes on has to keep it: in a set
of the service or module, which a callback takes it out of again. Such a set makes no difference to what
requests do as long as nothing reads it.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from analyzer.static.names import Assigned
from analyzer.static.source import Module
from analyzer.static.state import State
from analyzer.static.syntax import last_name, name_of
from analyzer.static.values import Future, Value, alternatives
from analyzer.static.walk import Part, Walk
from analyzer.static.walking import nodes_of

__all__ = ["Keeping"]

KEEPS = {"add", "append"}
LEAVES_ALONE = KEEPS | {"discard", "remove"}
"""Methods of a set or list that say nothing of what is in it."""
COUNTS = {"bool", "len"}
EMPTY = {"WeakSet", "list", "set"}
"""What makes a container with nothing in it."""

Kinds = tuple[type[cst.CSTNode], ...]
KINDS: Kinds = (cst.Attribute, cst.AnnAssign, cst.Assign, cst.Call, cst.ImportAlias, cst.Name)


class Keeping(Part):
    """Tells which containers only keep tasks."""

    def __init__(self, walk: Walk) -> None:
        super().__init__(walk)
        self._known: dict[tuple[Module | None, str, int], bool] = {}

    def keeps(self, node: cst.CSTNode, given: tuple[Value, ...], state: State) -> bool:
        """Return whether a call puts a task into a container that no code reads."""
        if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute) or len(given) != 1:
            return False
        if node.func.attr.value not in KEEPS or not _is_task(given[0], state):
            return False
        place = node.func.value
        if isinstance(place, cst.Attribute):
            return self._only_keeps(None, place.attr.value)
        module = self.walk.module
        if not isinstance(place, cst.Name) or any(place.value in frame for frame in state.frames):
            return False
        bound = isinstance(self.walk.names.scope(module).get(place.value), Assigned)
        return bound and self._only_keeps(module, place.value)

    def _only_keeps(self, module: Module | None, name: str) -> bool:
        """Return whether a global name of a module, or an attribute of anything, is never read."""
        modules = self.walk.names.modules_read()
        key = (module, name, len(modules))
        if key not in self._known:
            self._known[key] = all(
                _harmless(nodes_of(one.tree, KINDS), name, plain=one is module) for one in modules
            )
        return self._known[key]


def _is_task(value: Value, state: State) -> bool:
    return all(
        isinstance(one, Future) and state.operations[one.index].op == "task" for one in alternatives(value)
    )


def _harmless(nodes: list[cst.CSTNode], name: str, *, plain: bool) -> bool:
    """Return whether every mention of an attribute, or with ``plain`` of a name, leaves its contents alone.

    A name that another module imports is one that nothing is known of.
    """
    words = {id(node.attr) for node in nodes if isinstance(node, cst.Attribute)}
    mentions = set()
    for node in nodes:
        if isinstance(node, cst.ImportAlias) and name_of(node.name) == name:
            return False
        if isinstance(node, cst.Attribute) and node.attr.value == name:
            mentions.add(id(node))
        if plain and name_of(node) == name and id(node) not in words:
            mentions.add(id(node))
    return mentions <= {id(one) for node in nodes for one in _leaving_alone(node)}


def _leaving_alone(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield the parts of a node that do not read what is in them."""
    if isinstance(node, cst.Attribute) and node.attr.value in LEAVES_ALONE:
        yield node.value
    elif isinstance(node, cst.Call) and name_of(node.func) in COUNTS:
        yield from (argument.value for argument in node.args)
    elif isinstance(node, cst.Assign) and _is_empty(node.value):
        yield from (target.target for target in node.targets)
    elif isinstance(node, cst.AnnAssign) and (node.value is None or _is_empty(node.value)):
        yield node.target


def _is_empty(value: cst.BaseExpression) -> bool:
    if isinstance(value, cst.List):
        return not value.elements
    if not isinstance(value, cst.Call) or value.args:
        return False
    return last_name(value.func) in EMPTY
