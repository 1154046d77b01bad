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
from analyzer.static.values import Value, alternatives
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
        if type(node) is not cst.Call or last_name(node.func) not in KEEPS:
            return False
        if len(given) != 1 or not all(map(state.is_task, alternatives(given[0]))):
            return False
        match node.func:
            case cst.Attribute(value=cst.Attribute(attr=cst.Name(value=name))):
                return self._only_keeps(None, name)
            case cst.Attribute(value=cst.Name(value=name)) if not any(name in f for f in state.frames):
                module = self.walk.module
                bound = isinstance(self.walk.names.scope(module).get(name), Assigned)
                return bound and self._only_keeps(module, name)
        return False

    def _only_keeps(self, module: Module | None, name: str) -> bool:
        """Return whether a global name of a module, or an attribute of anything, is never read."""
        modules = self.walk.names.modules_read()
        key = (module, name, len(modules))
        if key not in self._known:
            self._known[key] = all(
                _harmless(nodes_of(one.tree, KINDS), name, plain=one is module) for one in modules
            )
        return self._known[key]


def _harmless(nodes: list[cst.CSTNode], name: str, *, plain: bool) -> bool:
    """Return whether every mention of an attribute, or with ``plain`` of a name, leaves its contents alone.

    A name that another module imports is one that nothing is known of.
    """
    words, mentions = set(), set()
    for node in nodes:
        match node:
            case cst.Name(value=word) if plain and word == name:
                mentions.add(id(node))
            case cst.Attribute(attr=attribute):
                words.add(id(attribute))
                if attribute.value == name:
                    mentions.add(id(node))
            case cst.ImportAlias(name=cst.Name(value=word)) if word == name:
                return False
    return mentions - words <= {id(one) for node in nodes for one in _leaving_alone(node)}


def _leaving_alone(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield the parts of a node that do not read what is in them."""
    match node:
        case cst.Attribute(value=owner, attr=method) if method.value in LEAVES_ALONE:
            yield owner
        case cst.Call(func=function, args=arguments) if name_of(function) in COUNTS:
            yield from (argument.value for argument in arguments)
        case cst.Assign(targets=targets, value=value) if _is_empty(value):
            yield from (target.target for target in targets)
        case cst.AnnAssign(target=target, value=first) if first is None or _is_empty(first):
            yield target


def _is_empty(value: cst.BaseExpression) -> bool:
    match value:
        case cst.Call(func=maker, args=[]):
            return last_name(maker) in EMPTY
        case cst.List(elements=[]):
            return True
    return False
