"""What is a call given?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from analyzer.static.values import UNKNOWN, Value

__all__ = ["PLACEHOLDER", "Arguments"]

PLACEHOLDER = cst.Name("_")
"""Stands for the expression of an argument that the source does not spell out."""


@dataclass(frozen=True)
class Arguments:
    """Evaluated arguments of a call."""

    nodes: tuple[cst.Arg, ...]
    values: tuple[Value, ...]

    @property
    def plain(self) -> bool:
        """Whether there is no ``*`` or ``**`` among them."""
        return not any(a.star for a in self.nodes)

    @property
    def pairs(self) -> Iterator[tuple[cst.Arg, Value]]:
        """Each argument with its value."""
        return zip(self.nodes, self.values, strict=True)

    def positional(self) -> list[Value]:
        """Return the values without keyword."""
        return [v for a, v in self.pairs if a.keyword is None and not a.star]

    def placed(self) -> list[Value]:
        """Return the values without keyword whose places are known: those before the first ``*``."""
        found: list[Value] = []
        for argument, value in self.pairs:
            if argument.star == "*":
                break
            if argument.keyword is None and not argument.star:
                found.append(value)
        return found

    def spread(self, star: str) -> list[Value]:
        """Return what stands behind ``*`` or ``**``, and what got another place by it."""
        found: list[Value] = []
        for argument, value in self.pairs:
            moved = bool(found) and star == "*" and argument.keyword is None and not argument.star
            if argument.star == star or moved:
                found.append(value)
        return found

    def keywords(self) -> list[tuple[str, Value]]:
        """Return the values with keyword."""
        return [(a.keyword.value, v) for a, v in self.pairs if a.keyword is not None]

    def get(self, position: int, names: Sequence[str]) -> tuple[Value | None, cst.CSTNode | None]:
        """Return an argument by position or any of its names, with its node; (None, None) if missing."""
        if not self.plain:
            return UNKNOWN, self._place(self.nodes[0])
        free = [(a, v) for a, v in self.pairs if a.keyword is None]
        if position < len(free):
            return free[position][1], self._place(free[position][0])
        for argument, value in self.pairs:
            if argument.keyword is not None and argument.keyword.value in names:
                return value, self._place(argument)
        return None, None

    @staticmethod
    def _place(argument: cst.Arg) -> cst.Arg | None:
        return None if argument.value is PLACEHOLDER else argument

    @staticmethod
    def of(*values: Value) -> Arguments:
        """Return arguments that the source does not spell out."""
        return Arguments(tuple(cst.Arg(PLACEHOLDER) for _ in values), values)

    def behind(self, values: Sequence[Value], keywords: Sequence[tuple[str, Value]] = ()) -> Arguments:
        """Return these arguments with others before them; a keyword given here wins."""
        own = {name for name, _ in self.keywords()}
        named = [(name, value) for name, value in keywords if name not in own]
        nodes = [cst.Arg(PLACEHOLDER, keyword=cst.Name(name)) for name, _ in named]
        return Arguments(
            (*(cst.Arg(PLACEHOLDER) for _ in values), *self.nodes, *nodes),
            (*values, *self.values, *(value for _, value in named)),
        )
