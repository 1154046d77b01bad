"""Methods that run only while a service is set up: what ``setup`` calls, and subclasses may fill in."""

from __future__ import annotations

from collections import defaultdict

import libcst as cst

from analyzer.static.names import ClassInfo, FunctionInfo, Names
from analyzer.static.syntax import name_of
from analyzer.static.walking import nodes_of

__all__ = ["PREPARING", "SettingUp"]

PREPARING = frozenset({"__init__", "__post_init__", "setup"})
"""Methods that run once, before the object is used."""
ELSEWHERE = ""
"""Where a method is mentioned that is not just called there: at any time."""
CLOSED = (cst.ClassDef, cst.FunctionDef, cst.Lambda)
MENTIONS = (*CLOSED, cst.Attribute, cst.SimpleString)

Places = dict[str, set[str]]
"""By the name of an attribute, the methods that call it on ``self``, or ``ELSEWHERE``."""


class SettingUp:
    """Finds these methods in the modules that have been read."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._read = 0
        self._places: Places = defaultdict(set)
        self._methods: dict[ClassInfo, frozenset[str]] = {}

    def methods(self, info: ClassInfo) -> frozenset[str]:
        """Return the methods that run once, before an object is used: only such methods mention them."""
        read = self._names.modules_read()
        if len(read) > self._read:
            for module in read[self._read :]:
                _note(module.tree, ELSEWHERE, self._places)
            self._read = len(read)
            self._methods.clear()
        if info not in self._methods:
            self._methods[info] = self._found(info)
        return self._methods[info]

    def _found(self, info: ClassInfo) -> frozenset[str]:
        found = set(PREPARING)
        while True:
            more = {
                name
                for name, there in self._places.items()
                if name not in found and there <= found | {name} and there & found and self._plain(info, name)
            }
            if not more:
                return frozenset(found)
            found |= more

    def _plain(self, info: ClassInfo, name: str) -> bool:
        """Return whether a class has a method of this name, and its bases nothing else; no endpoint."""
        bound = [owner.bindings[name] for owner in self._names.line(info) if name in owner.bindings]
        return bool(bound) and all(
            isinstance(one, FunctionInfo)
            and isinstance(one.node, cst.FunctionDef)
            and not one.node.decorators
            for one in bound
        )


def _note(root: cst.CSTNode, method: str, found: Places, *, in_class: bool = False) -> None:
    """Note where attributes are mentioned in a piece of code, which belongs to a method."""
    called = _called(root) if method else set()
    for node in nodes_of(root, MENTIONS, CLOSED):
        match node:
            case cst.Attribute(attr=attribute):
                found[attribute.value].add(method if id(node) in called else ELSEWHERE)
            case cst.SimpleString():
                if node.raw_value.isidentifier():
                    found[node.raw_value].add(ELSEWHERE)  # perhaps for `getattr`
            case cst.FunctionDef(body=body, params=params, decorators=decorators):
                for part in (params, *decorators):
                    _note(part, ELSEWHERE, found)
                _note(body, name_of(node.name) if in_class else ELSEWHERE, found)
            case cst.ClassDef(body=body, bases=bases, keywords=keywords, decorators=decorators):
                for part in (*bases, *keywords, *decorators):
                    _note(part, ELSEWHERE, found)
                _note(body, ELSEWHERE, found, in_class=True)
            case cst.Lambda(body=body, params=params):
                _note(params, ELSEWHERE, found)
                _note(body, ELSEWHERE, found)


def _called(body: cst.CSTNode) -> set[int]:
    """Return the attributes of ``self`` and ``super()`` that statements of a method call, and wait for."""
    found = set()
    for node in nodes_of(body, (cst.AnnAssign, cst.Assign, cst.Expr), CLOSED):
        value = getattr(node, "value", None)
        call = value.expression if isinstance(value, cst.Await) else value
        match call:
            case cst.Call(func=cst.Attribute(value=cst.Name(value="self")) as attribute):
                found.add(id(attribute))
            case cst.Call(func=cst.Attribute(value=cst.Call(func=cst.Name(value="super"))) as attribute):
                found.add(id(attribute))
    return found
