"""Which definitions are behind an endpoint, and where do two versions of one differ?

A fingerprint says that something of all the code behind an endpoint is another one than before. Here that
code is told apart: each function, class and constant has a digest of its own, and each of its statements.
Unlike a fingerprint, a digest does not say where the definition stands: what only moved, within a file or
to another one, is the same. Neither do the order of methods in a class and names of local variables of its
methods count.
"""

from __future__ import annotations

import ast
import copy
import hashlib
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Any

import libcst as cst

from analyzer.static.application import Definition
from analyzer.static.fingerprints import (
    FUNCTIONS,
    Fingerprints,
    Item,
    MadeBy,
    Normaliser,
    definition_tree,
    mentioning,
)
from analyzer.static.names import Assigned, ClassInfo, FunctionInfo, Names
from analyzer.static.values import External

__all__ = ["Definitions", "changed_line"]

LENGTH = 16
"""Hexadecimal digits, as of fingerprints."""

INSIDE = "\0"
"""Stands in the text of a statement for each one inside it; no text of source code has it."""


class Definitions:
    """The definitions behind methods; those they share are looked at once.

    Args:
        names: Meaning of names in the source tree.
        fingerprints: What follows references in it.
    """

    def __init__(self, names: Names, fingerprints: Fingerprints) -> None:
        self._names = names
        self._fingerprints = fingerprints
        self._known: dict[Item, Definition] = {}

    def of(self, function: FunctionInfo, receiver: ClassInfo, made_by: MadeBy = ()) -> tuple[Definition, ...]:
        """Return a method as it runs on objects of ``receiver``, what has made it, and all they refer to."""
        reached = self._fingerprints.reached(function, receiver, made_by)
        return tuple(self._definition(*one) for one in reached)

    def _definition(self, item: Item, normal: Normaliser) -> Definition:
        if item not in self._known:
            self._known[item] = self._made(item, normal)
        return self._known[item]

    def _made(self, item: Item, normal: Normaliser) -> Definition:
        binding, module = item.binding, item.module
        tree = definition_tree(item)
        assert tree is not None  # noqa: S101  (what has been normalised has a tree)
        canonical = _Canonical(tree)
        name, placed = item.name, False
        match binding:
            case FunctionInfo() | ClassInfo():
                name, line, placed = binding.qualname, binding.line, binding.node in module.ast_nodes
            case Assigned(value=cst.BaseExpression() as value):
                line = module.line(value)
            case _:
                line = min((module.line(node) for node in mentioning(item)), default=0)
        outside = sorted(set(self._outside(item, normal)))
        text = "\n".join(
            (canonical.text, *(f"{depth}{own}" for _, depth, own in canonical.statements), *outside)
        )
        return Definition(
            name=name,
            file=module.file,
            line=line,
            digest=_hash(text),
            statements=tuple(
                (at if placed else line, _hash(f"{depth}{own.replace(INSIDE, '')}"))
                for at, depth, own in canonical.statements
            ),
        )

    def _outside(self, item: Item, normal: Normaliser) -> Iterator[str]:
        """Yield what names that libraries define stand for: ``f`` of one library is not that of another."""
        inside = self._names.imported_inside(item.binding)
        for node in normal.mentions:
            match node:
                case ast.Name(id=name) if name in inside or name not in normal.local_names:
                    found = inside.get(name) or self._names.find(item.module, name)
                    if isinstance(found, External):
                        yield f"{name} is {found.name}"


def changed_line(old: Definition, new: Definition) -> int:
    """Return the line of ``new`` where it begins to differ from ``old``.

    What was deleted is told by the line that stands in its place.
    """
    before, after = ([digest for _, digest in one.statements] for one in (old, new))
    for tag, _, _, first, _ in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag != "equal" and new.statements:
            return new.statements[min(first, len(after) - 1)][0]
    return new.line


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:LENGTH]


class _Canonical(Normaliser):
    """Normalises each statement for itself, and the methods of a class in the order of their names.

    Attributes:
        statements: Line, depth and text of every statement; ``INSIDE`` stands for each one inside it.
        text: What is no statement: an expression.
    """

    def __init__(self, tree: ast.AST, depth: int = 0) -> None:
        self.statements: list[tuple[int, int, str]] = []
        self._root = tree
        self._depth = depth
        super().__init__(tree)

    def _write(self, value: Any, parts: list[str]) -> None:
        if not isinstance(value, ast.stmt):
            super()._write(value, parts)
            return
        parts.append(INSIDE)
        if isinstance(value, FUNCTIONS) and value is not self._root and not isinstance(self._root, FUNCTIONS):
            # Of a class, each method has local variables of its own.
            self.statements += _Canonical(value, self._depth).statements
            return
        place = len(self.statements)
        self.statements.append((value.lineno, self._depth, ""))
        own: list[str] = []
        self._depth += 1
        super()._write(_by_name(value) if isinstance(value, ast.ClassDef) else value, own)
        self._depth -= 1
        self.statements[place] = (value.lineno, self._depth, "".join(own))


def _by_name(tree: ast.ClassDef) -> ast.ClassDef:
    """Return a class with its methods behind everything else, in the order of their names.

    Those of one name (a property and what sets it) keep their order.
    """
    made = copy.copy(tree)
    made.body = sorted(tree.body, key=lambda one: one.name if isinstance(one, FUNCTIONS) else "")
    return made
