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
from analyzer.static.names import Assigned, Binding, ClassInfo, FunctionInfo, Names
from analyzer.static.registrations import Registrations
from analyzer.static.source import Module
from analyzer.static.syntax import name_of
from analyzer.static.think_times import is_time, think_arguments
from analyzer.static.values import External
from analyzer.static.walking import walk

__all__ = ["Fingerprints", "Item", "MadeBy", "Normaliser", "definition_tree", "mentioning"]

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

    def of(
        self,
        function: FunctionInfo,
        receiver: ClassInfo,
        made_by: MadeBy = (),
    ) -> str:
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
        self,
        function: FunctionInfo,
        receiver: ClassInfo,
        made_by: MadeBy = (),
        *,
        timeless: bool = False,
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
    binding = item.binding
    return f"{binding.module.file}:{binding.qualname}" if isinstance(binding, FunctionInfo) else ""


def _item(binding: Binding, module: Module, name: str, owner: ClassInfo | None = None) -> Item:
    if isinstance(binding, Assigned) and binding.value is None:
        return Item(None, module, name, owner)
    return Item(binding, module)


def definition_tree(item: Item) -> ast.AST | None:
    """Return the interpreter's tree of a definition: layout, quotes and parentheses are not in it."""
    binding = item.binding
    if binding is None:
        return _all_about(item)
    module = item.module
    if isinstance(binding, FunctionInfo | ClassInfo):
        return module.ast_nodes.get(binding.node) or _parsed(module, binding.node)[0]
    if isinstance(binding, Assigned) and binding.value is not None:
        return ast.parse(f"(\n{module.tree.code_for_node(binding.value)}\n)", mode="eval").body
    return None


def mentioning(item: Item) -> list[cst.BaseStatement | cst.SimpleStatementLine | cst.BaseSmallStatement]:
    """Return every statement of a module or class that mentions a name which is not bound just once."""
    body = item.module.tree.body if item.owner is None else item.owner.node.body.body
    return [node for node in body if any(_mentions(part, item.name) for part in walk(node))]


def _all_about(item: Item) -> ast.Module:
    return ast.Module([s for node in mentioning(item) for s in _parsed(item.module, node)], [])


def _parsed(module: Module, node: cst.CSTNode) -> list[ast.stmt]:
    return ast.parse(module.tree.code_for_node(node)).body


def _mentions(node: cst.CSTNode, name: str) -> bool:
    return name_of(node) == name


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
        function = isinstance(tree, ast.FunctionDef | ast.AsyncFunctionDef)
        times = list(think_arguments(nodes, _first_parameter(tree))) if timeless and function else []
        self.think_times = frozenset(time for time in times if not isinstance(time, ast.Constant))
        self._left_out = frozenset(times) - self.think_times
        self.mentions = [n for n in nodes if type(n) is ast.Name or type(n) is ast.Attribute]
        self.by_name = [n for n in nodes if type(n) is ast.Call and _is_getattr(n)]
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
        elif not isinstance(value, ast.AST):
            # Python refuses to write very large numbers in decimal.
            text = hex(value) if isinstance(value, int) else repr(value)
            parts.append(f"{kind.__name__}:{text};")
        else:
            if value in self._left_out:
                parts.append("(a think time)")
                return
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


def _is_getattr(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id == "getattr" and len(node.args) > 1


def _first_parameter(tree: Any) -> str:
    """Return what a method calls its object; "" if it has no parameter."""
    first = (*tree.args.posonlyargs, *tree.args.args)[:1]
    return first[0].arg if first else ""


@cache
def _fields(kind: Any) -> tuple[str, ...]:
    """Return the fields of a class of nodes; contexts follow from the place."""
    return tuple(name for name in kind._fields if name not in ("ctx", "type_comment", "kind"))


_DOCUMENTED = frozenset({ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef})


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0]
    documented = (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    )
    return body[1:] if documented else body


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

_BINDING = frozenset({ast.Global, *_VARIABLES}) - {ast.alias}


def _local_names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the names of variables that a function, or a function inside it, binds.

    Not those of functions inside it: call sites are known by them.
    """
    shared: set[str] = set()
    bound: set[str] = set()
    for node in nodes:
        if type(node) not in _BINDING:
            continue
        if isinstance(node, ast.Global):
            shared.update(node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
            bound.add(node.id)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            bound.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            bound.add(node.rest)
    yield from bound - shared


def _references(normal: Normaliser, item: Item, receiver: ClassInfo, names: Names) -> Iterator[Item]:
    """Yield the definitions of the source tree a piece of code refers to, in source order."""
    resolver = _Resolver(item, normal.local_names, receiver, names)
    if isinstance(item.binding, FunctionInfo) and dispatched_by(item.binding, names):
        for one in registered(item.binding, names)[0]:
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
        binding = item.binding
        self._owner = binding.owner if isinstance(binding, FunctionInfo) else None
        self._self = ""
        self._imported: dict[str, tuple[Module, Binding] | External | Module | None] = {}
        if isinstance(binding, FunctionInfo) and self._owner is not None:
            declared = binding.node.params
            first = (*declared.posonly_params, *declared.params)[:1]
            self._self = first[0].name.value if first else ""
        if isinstance(binding, FunctionInfo | ClassInfo):
            self._imported = names.imported_inside(binding)

    def definitions(self, node: ast.Name | ast.Attribute) -> Iterator[Item]:
        found = self._resolve(node)
        if isinstance(found, Item):
            yield found
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and self._self == node.value.id
        ):
            # What a method stores in self.x is part of what self.x does.
            for method in self._names.assigned_by_methods(self._receiver, node.attr):
                yield Item(method, method.module)
            for owner in self._names.annotating(self._receiver, node.attr):
                yield Item(None, owner.module, node.attr, owner)

    def named_by_text(self, call: ast.Call) -> Iterator[Item]:
        """Yield what ``getattr(self, text)`` may be: an attribute; any of the class, if a text is made."""
        owner, name = call.args[:2]
        if not isinstance(owner, ast.Name) or not self._self or owner.id != self._self:
            return
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            yield from self.definitions(ast.Attribute(owner, name.value, ast.Load()))
            return
        for info in self._names.line(self._receiver):
            yield Item(info, info.module)

    def _resolve(self, node: ast.expr) -> Item | Module | None:
        if isinstance(node, ast.Name):
            if node.id in self._imported:
                return self._found(self._imported[node.id], node.id)
            if node.id in self._locals:
                return None
            return self._found(self._names.find(self._item.module, node.id), node.id)
        if not isinstance(node, ast.Attribute):
            return None
        if self._self and isinstance(node.value, ast.Name) and node.value.id == self._self:
            return self._of_class(self._receiver, node.attr)
        if (
            isinstance(node.value, ast.Call)
            and isinstance(node.value.func, ast.Name)
            and node.value.func.id == "super"
        ):
            return self._of_class(self._receiver, node.attr, self._owner)
        owner = self._resolve(node.value)
        if isinstance(owner, Module):
            submodule = self._names.tree.module(f"{owner.name}.{node.attr}")
            found = self._found(self._names.find(owner, node.attr), node.attr)
            return found if found is not None else submodule
        if isinstance(owner, Item) and isinstance(owner.binding, ClassInfo):
            return self._of_class(owner.binding, node.attr)
        return None

    def _of_class(self, info: ClassInfo, name: str, after: ClassInfo | None = None) -> Item | None:
        found = self._names.attribute(info, name, after)
        return None if found is None else _item(found[1], found[0].module, name, found[0])

    @staticmethod
    def _found(found: tuple[Module, Binding] | External | Module | None, name: str) -> Item | Module | None:
        if isinstance(found, Module):
            return found
        return _item(found[1], found[0], name) if isinstance(found, tuple) else None
