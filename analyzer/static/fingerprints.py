"""Has the code behind an endpoint changed since it was measured?

A fingerprint is a hash of the normalised code of a method and of everything of the source tree it refers
to: helpers, base class methods, constants, classes. Layout, comments, docstrings, line numbers and the
names of local variables do not count; everything else does. It errs on the safe side: code that is
referred to but never communicates counts too, because it is work that was measured.
"""

from __future__ import annotations

import ast
import hashlib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import libcst as cst

from analyzer.static.ast_nodes import ATOMS
from analyzer.static.dispatching import dispatched_by, registered
from analyzer.static.names import Assigned, Binding, ClassInfo, Found, FunctionInfo, Names
from analyzer.static.registrations import Registrations
from analyzer.static.source import Module
from analyzer.static.think_times import is_time, think_arguments
from analyzer.static.walking import names_in

__all__ = ["FUNCTIONS", "Fingerprints", "Item", "MadeBy", "Normaliser", "definition_tree", "mentioning"]

LENGTH = 16
"""Hexadecimal digits; enough that two versions never meet."""


MadeBy = Sequence[tuple[Module, cst.BaseExpression]]
"""Expressions that have made a function, with their modules."""


class Fingerprints:
    """Fingerprints of methods; code they share is looked at once.

    Args:
        names: Meaning of names in the source tree.
    """

    def __init__(self, names: Names) -> None:
        self._names = names
        self._registrations = Registrations(names)
        self._texts: dict[tuple[Item, bool], Normaliser | None] = {}
        self._found: dict[tuple[Item, ClassInfo, bool], list[Item]] = {}

    def of(self, function: FunctionInfo, receiver: ClassInfo, made_by: MadeBy = ()) -> str:
        """Return the fingerprint of a method as it runs on objects of ``receiver``.

        ``made_by`` are expressions besides the method that decide what it does, with their modules.
        """
        return _hash(self.reached(function, receiver, made_by))

    def without_think_times(self, function: FunctionInfo, receiver: ClassInfo) -> str:
        """Return the fingerprint of a scenario in which it does not count how long clients think.

        Left out are numbers above 0 that the source states, in the call of ``think`` or as a constant that it
        names. Everything else counts, also whether a client thinks at all: a log without think times shows
        nothing of a service that has slept.
        """
        return _hash(self.reached(function, receiver, timeless=True))

    def reached(
        self, function: FunctionInfo, receiver: ClassInfo, made_by: MadeBy = (), *, timeless: bool = False
    ) -> Iterator[tuple[Item, Normaliser]]:
        """Yield a method and every definition it refers to, each once, in the order they are met.

        With ``timeless``, think times that the source states are in none of the texts.
        """
        first = Item(function, function.module)
        name = f"what attaches {function.qualname}"
        queue = deque([first, *(Item(Assigned(node), module, name) for module, node in made_by)])
        seen = {first}
        while queue:
            item = queue.popleft()
            normal = self._text(item, timeless)
            if normal is None:
                continue
            yield item, normal
            key = (item, receiver, timeless)
            if key not in self._found:
                self._found[key] = [
                    *_references(normal, item, receiver, self._names),
                    *self._registered(item),
                ]
            for found in self._found[key]:
                if found not in seen:
                    seen.add(found)
                    queue.append(found)

    def _registered(self, item: Item) -> Iterator[Item]:
        """Yield what imports put into a container, or into those of a class."""
        if item.owner is not None:
            return
        for registration in self._registrations.about(item.binding, item.module, item.name):
            yield from (Item(None, module, registration.name) for module in registration.modules())
            for info in registration.definitions(self._names):
                yield Item(info, info.module)

    def _text(self, item: Item, timeless: bool) -> Normaliser | None:
        if (item, timeless) not in self._texts:
            tree = definition_tree(item)
            self._texts[item, timeless] = None if tree is None else Normaliser(tree, timeless=timeless)
        return self._texts[item, timeless]


def _hash(reached: Iterable[tuple[Item, Normaliser]]) -> str:
    digest = hashlib.sha256()
    for item, normal in reached:
        digest.update(_place(item).encode("utf-8", "surrogatepass"))
        digest.update(normal.text.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:LENGTH]


@dataclass(frozen=True, slots=True)
class Item:
    """A definition: what a name is bound to.

    Attributes:
        name: The name, if there is no one thing it is bound to: bound in several ways, or only annotated.
        owner: The class whose attribute it is then; None for a global name.
    """

    binding: Binding | None
    module: Module
    name: str = ""
    owner: ClassInfo | None = None


def _place(item: Item) -> str:
    """Return what call sites in a function are known by; a log of other names would match no path."""
    match item.binding:
        case FunctionInfo(module=module, qualname=qualname):
            return f"{module.file}:{qualname}"
    return ""


def _item(binding: Binding, module: Module, name: str, owner: ClassInfo | None = None) -> Item:
    match binding:
        case Assigned(value=None):
            return Item(None, module, name, owner)
    return Item(binding, module)


def definition_tree(item: Item) -> ast.AST | None:
    """Return the interpreter's tree of a definition: layout, quotes and parentheses are not in it."""
    module = item.module
    match item.binding:
        case None:
            return ast.Module([s for node in mentioning(item) for s in _parsed(module, node)], [])
        case FunctionInfo(node=node) | ClassInfo(node=node):
            return module.ast_nodes.get(node) or _parsed(module, node)[0]
        case Assigned(value=cst.BaseExpression() as value):
            return ast.parse(f"(\n{module.tree.code_for_node(value)}\n)", mode="eval").body
    return None


def mentioning(item: Item) -> list[cst.BaseStatement | cst.SimpleStatementLine | cst.BaseSmallStatement]:
    """Return every statement of a module or class that mentions a name which is not bound just once."""
    body = item.module.tree.body if item.owner is None else item.owner.node.body.body
    return [node for node in body if item.name in names_in(node)]


def _parsed(module: Module, node: cst.CSTNode) -> list[ast.stmt]:
    return ast.parse(module.tree.code_for_node(node)).body


class Normaliser:
    """Writes a tree as text in which local variables are numbered in order of appearance.

    Args:
        tree: The tree.
        timeless: Leave out the numbers that calls of ``think`` state.

    Attributes:
        text: The text.
        local_names: Names that are variables of the function, if it is one.
        mentions: All names and attributes in the tree.
        by_name: All calls of ``getattr``.
        think_times: Those that are the time of a call of ``think``, if these are left out.
    """

    def __init__(self, tree: ast.AST, *, timeless: bool = False) -> None:
        nodes = _nodes(tree)
        function = isinstance(tree, FUNCTIONS)
        times = list(think_arguments(nodes, _first_parameter(tree))) if timeless and function else []
        self._left_out = frozenset(time for time in times if isinstance(time, ast.Constant))
        self.think_times = frozenset(times) - self._left_out
        self.mentions = [n for n in nodes if type(n) is ast.Name or type(n) is ast.Attribute]
        self.by_name = [n for n in nodes if type(n) is ast.Call and getattr(n.func, "id", "") == "getattr"]
        self.local_names = frozenset(_local_names(nodes)) if function else frozenset()
        self._numbers: dict[str, int] = {}
        parts: list[str] = []
        self._write(tree, parts)
        self.text = "".join(parts)

    def _name(self, name: str) -> str:
        if name not in self.local_names:
            return name
        return f"${self._numbers.setdefault(name, len(self._numbers))}"

    def _write(self, value: Any, parts: list[str]) -> None:
        kind: Any = type(value)
        if kind is list:
            parts.append("[")
            for item in value:
                self._write(item, parts)
            parts.append("]")
        elif kind in ATOMS:
            # Python refuses to write very large numbers in decimal.
            text = hex(value) if isinstance(value, int) else repr(value)
            parts.append(f"{kind.__name__}:{text};")
        elif value in self._left_out:
            parts.append("(a think time)")
        else:
            parts.append(f"({kind.__name__}")
            for name in _fields(kind):
                item = getattr(value, name, None)
                # Empty fields come and go between Python versions.
                if item is None or item == []:
                    continue
                parts.append(f" {name}=")
                if name == "body" and kind in _DOCUMENTED:
                    self._write(_without_docstring(item), parts)
                elif type(item) is str:
                    variable = _VARIABLES.get(kind) == name
                    parts.append(repr(self._name(item)) if variable else f"str:{item!r};")
                else:
                    self._write(item, parts)
            parts.append(")")


def _first_parameter(tree: Any) -> str:
    """Return what a method calls its object; "" if it has no parameter."""
    first = (*tree.args.posonlyargs, *tree.args.args)[:1]
    return first[0].arg if first else ""


@cache
def _fields(kind: Any) -> tuple[str, ...]:
    """Return the fields of a class of nodes; contexts follow from the place."""
    return tuple(name for name in kind._fields if name not in ("ctx", "type_comment", "kind"))


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

_DOCUMENTED = frozenset({*FUNCTIONS, ast.ClassDef})


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    match body[0]:
        case ast.Expr(value=ast.Constant(value=str())):
            return body[1:]
    return body


_VARIABLES: dict[type, str] = {
    ast.ExceptHandler: "name",
    ast.MatchAs: "name",
    ast.MatchMapping: "rest",
    ast.MatchStar: "name",
    ast.Name: "id",
    ast.alias: "asname",
    ast.arg: "arg",
}
"""Which field of which node names a variable."""


def _nodes(tree: ast.AST) -> list[ast.AST]:
    """Return a node and everything in it, like ``ast.walk`` and in a third of the time."""
    found: list[ast.AST] = []
    stack: list[Any] = [tree]
    while stack:
        node = stack.pop()
        kind = type(node)
        if kind is list:
            stack.extend(reversed(node))
        elif kind not in _ATOMS:
            found.append(node)
            for name in reversed(kind._fields):
                part = getattr(node, name, None)
                if type(part) not in _ATOMS:
                    stack.append(part)
    return found


_ATOMS = ATOMS | {ast.Load, ast.Store, ast.Del}


def _local_names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the names of variables that a function, or a function inside it, binds.

    Not those of functions inside it: call sites are known by them.
    """
    shared: set[str] = set()
    bound: set[str] = set()
    for node in nodes:
        match node:
            case ast.Global(names=names):
                shared.update(names)
            case ast.Name(ctx=ast.Load()) | ast.alias():
                pass
            case _ if type(node) in _VARIABLES:
                bound.add(getattr(node, _VARIABLES[type(node)]) or "")
    yield from bound - shared - {""}


def _references(normal: Normaliser, item: Item, receiver: ClassInfo, names: Names) -> Iterator[Item]:
    """Yield the definitions of the source tree a piece of code refers to, in source order."""
    resolver = _Resolver(item, normal.local_names, receiver, names)
    match item.binding:
        case FunctionInfo() as function if dispatched_by(function, names):
            for one in registered(function, names)[0]:
                yield Item(one.function, one.function.module)
    for node in normal.mentions:
        found = list(resolver.definitions(node))
        if node in normal.think_times and len(found) == 1:
            tree = definition_tree(found[0])
            if tree is not None and is_time(tree):
                continue
        yield from found
    for call in normal.by_name:
        yield from resolver.named_by_text(call)


class _Resolver:
    def __init__(self, item: Item, local_names: frozenset[str], receiver: ClassInfo, names: Names) -> None:
        self._item = item
        self._locals = local_names
        self._receiver = receiver
        self._names = names
        method = item.binding if isinstance(item.binding, FunctionInfo) else None
        self._owner = method.owner if method else None
        self._self = method.me if method and self._owner else ""
        self._imported = names.imported_inside(item.binding)

    def definitions(self, node: ast.Name | ast.Attribute) -> Iterator[Item]:
        found = self._resolve(node)
        if isinstance(found, Item):
            yield found
        match node:
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner == self._self:
                # What a method stores in self.x is part of what self.x does.
                for method in self._names.assigned_by_methods(self._receiver, name):
                    yield Item(method, method.module)
                for info in self._names.annotating(self._receiver, name):
                    yield Item(None, info.module, name, info)

    def named_by_text(self, call: ast.Call) -> Iterator[Item]:
        """Yield what ``getattr(self, text)`` may be: an attribute; any of the class, if a text is made."""
        match call.args:
            case [ast.Name(id=owner) as me, ast.Constant(value=str(name)), *_] if owner == self._self:
                yield from self.definitions(ast.Attribute(me, name, ast.Load()))
            case [ast.Name(id=owner), _, *_] if owner == self._self:
                yield from (Item(info, info.module) for info in self._names.line(self._receiver))

    def _resolve(self, node: ast.expr) -> Item | Module | None:
        match node:
            case ast.Name(id=name) if name in self._imported:
                return self._found(self._imported[name], name)
            case ast.Name(id=name) if name not in self._locals:
                return self._found(self._names.find(self._item.module, name), name)
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner == self._self:
                return self._of_class(self._receiver, name)
            case ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr=name):
                return self._of_class(self._receiver, name, self._owner)
            case ast.Attribute(value=inner, attr=name):
                match self._resolve(inner):
                    case Module() as module:
                        submodule = self._names.tree.module(f"{module.name}.{name}")
                        return self._found(self._names.find(module, name), name) or submodule
                    case Item(binding=ClassInfo() as info):
                        return self._of_class(info, name)
        return None

    def _of_class(self, info: ClassInfo, name: str, after: ClassInfo | None = None) -> Item | None:
        found = self._names.attribute(info, name, after)
        return None if found is None else _item(found[1], found[0].module, name, found[0])

    @staticmethod
    def _found(found: Found, name: str) -> Item | Module | None:
        match found:
            case (module, binding):
                return _item(binding, module, name)
            case Module():
                return found
        return None
