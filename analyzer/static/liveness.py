"""Which names may code still read that has yet to run?

A future that no remaining code can name is never waited for: nothing depends on it any more. Names are
compared as texts, in whole functions, and whatever nested functions and lambdas mention may be read at any
time; so a name is rather taken for live than for dead.
"""

# ruff: noqa: N802  (visit_NODE is how libcst spells it)

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

import libcst as cst

from analyzer.static.control import Block, Branch, Loop, Node, Protected, Step, With
from analyzer.static.walking import names_in, show

__all__ = ["Liveness"]

Names = frozenset[str]


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
        if isinstance(node, Branch):
            tests = [arm.test for arm in node.arms] + [node.subject]
            return self._of(*(test for test in tests if test is not None))
        if isinstance(node, Protected):
            return self._recovering(node)
        if isinstance(node, With):
            return self._of(node.node)
        return self._read(node)

    def nested(self, function: cst.CSTNode) -> Names:
        """Return what functions and lambdas inside a function mention."""
        if function not in self._nested:
            visitor = _NestedNames()
            for child in function.children:
                show(child, visitor)
            self._nested[function] = frozenset(visitor.found)
        return self._nested[function]

    def _recovering(self, node: Protected) -> Names:
        types = self._of(*(h.types for h in node.handlers if isinstance(h.types, cst.CSTNode)))
        blocks = (*(h.body for h in node.handlers), node.orelse, node.final)
        return types.union(*(self.behind(block)[0] for block in blocks))

    def _read(self, node: Node) -> Names:
        if isinstance(node, Step):
            # Binding a plain name does not read it, unless it adds to it.
            targets = [t for t in node.targets if node.augmented or not isinstance(t, cst.Name)]
            return self._of(*targets, *(() if node.value is None else (node.value,)))
        if isinstance(node, Branch):
            return self.own(node).union(*(self.behind(arm.body)[0] for arm in node.arms))
        if isinstance(node, Protected):
            return self._recovering(node) | self.behind(node.body)[0]
        if isinstance(node, With):
            return self._of(node.node) | self.behind(node.body)[0]
        if isinstance(node, Loop):
            around = [part for part in (node.target, node.iterable, node.test) if part is not None]
            return self._of(*around) | self.behind(node.body)[0] | self.behind(node.orelse)[0]
        return self._of(node.node)

    def _of(self, *nodes: cst.CSTNode) -> Names:
        for node in nodes:
            if node not in self._mentioned:
                self._mentioned[node] = names_in(node)
        return frozenset().union(*(self._mentioned[node] for node in nodes))


class _NestedNames(cst.CSTVisitor):
    """Collect every name that functions inside a piece of code mention. Read ``found`` after the visit."""

    def __init__(self) -> None:
        self.found: set[str] = set()

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        self._take(node)
        return False

    def visit_Lambda(self, node: cst.Lambda) -> bool:
        self._take(node)
        return False

    def visit_GeneratorExp(self, node: cst.GeneratorExp) -> bool:
        self._take(node)  # it runs when items are taken from it
        return False

    def _take(self, node: cst.CSTNode) -> None:
        self.found |= names_in(node)
