"""Which names may code still read that has yet to run?

A future that no remaining code can name is never waited for: nothing depends on it any more. Names are
compared as texts, in whole functions, and whatever nested functions and lambdas mention may be read at any
time; so a name is rather taken for live than for dead.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

import libcst as cst

from analyzer.static.control import Block, Branch, Loop, Node, Protected, Step, With
from analyzer.static.syntax import name_of
from analyzer.static.walking import names_in, nodes_of

__all__ = ["Liveness"]

Names = frozenset[str]

LATER: tuple[type[cst.CSTNode], ...] = (cst.FunctionDef, cst.Lambda, cst.GeneratorExp)
"""What runs after it has been made: functions when they are called, generators when items are taken."""


class Liveness:
    """What the functions being walked have yet to read, outermost function first."""

    def __init__(self) -> None:
        self._pending: list[tuple[int, Names]] = []
        self._mentioned: dict[cst.CSTNode, Names] = {}
        self._nested: dict[cst.CSTNode, Names] = {}
        self._behind: dict[Block, list[Names]] = {}

    @contextmanager
    def during(self, depth: int, names: Names) -> Iterator[None]:
        """Take names of the function in the ``depth``-th frame for live meanwhile."""
        self._pending.append((depth, names))
        try:
            yield
        finally:
            self._pending.pop()

    def names(self, depths: int) -> list[Collection[str] | None]:
        """Return the live names of each of so many frames; None = all of them may be."""
        found: list[set[str] | None] = [None] * depths
        for depth, names in self._pending:
            if depth < depths:
                found[depth] = (found[depth] or set()) | names
        return list(found)

    def behind(self, block: Block) -> list[Names]:
        """Return what is read from each node of a block on, and nothing behind the last."""
        if block not in self._behind:
            found: list[Names] = [frozenset()]
            for node in reversed(block):
                found.append(found[-1] | self._read(node))
            self._behind[block] = found[::-1]
        return self._behind[block]

    def own(self, node: Node) -> Names:
        """Return what is read while a node runs, blocks aside that the walk looks into by itself."""
        match node:
            case Branch():
                return self._of(node.subject, *(arm.test for arm in node.arms))
            case Protected():
                types = (h.types for h in node.handlers if isinstance(h.types, cst.CSTNode))
                blocks = (*(h.body for h in node.handlers), node.orelse, node.final)
                return self._of(*types).union(*(self.behind(block)[0] for block in blocks))
            case With():
                return self._of(node.node)
        return self._read(node)

    def nested(self, function: cst.CSTNode) -> Names:
        """Return what functions and lambdas inside a function mention."""
        if function not in self._nested:
            inside = (one for child in function.children for one in nodes_of(child, LATER, LATER))
            self._nested[function] = self._of(*inside)
        return self._nested[function]

    def _read(self, node: Node) -> Names:
        match node:
            case Step():
                # Binding a plain name does not read it, unless it adds to it.
                targets = (target for target in node.targets if node.augmented or not name_of(target))
                return self._of(node.value, *targets)
            case Branch():
                return self.own(node).union(*(self.behind(arm.body)[0] for arm in node.arms))
            case Protected() | With():
                return self.own(node) | self.behind(node.body)[0]
            case Loop():
                around = self._of(node.target, node.iterable, node.test)
                return around | self.behind(node.body)[0] | self.behind(node.orelse)[0]
        return self._of(node.node)

    def _of(self, *nodes: cst.CSTNode | None) -> Names:
        known = [node for node in nodes if node is not None]
        self._mentioned |= {node: names_in(node) for node in known if node not in self._mentioned}
        return frozenset().union(*(self._mentioned[node] for node in known))
