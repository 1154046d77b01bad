"""Find the expression in the source that caused an event.

A site is the n-th call or ``await`` expression of a function, in source order of where the expression *ends*.
That survives comments, blank lines and reformatting, and keeps two operations on one line apart.
``site_index`` is the only implementation of the numbering: the runtime uses it through ``SiteTable``, the
static analyzer directly.
"""

from __future__ import annotations

import ast
import json
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from mup.events.writer import EventWriter

__all__ = ["MODULE", "Kind", "Site", "SiteTable", "site_index"]

Kind = Literal["call", "await"]

MODULE = "<module>"
"""``Site.function`` of an expression outside every function."""


@dataclass(frozen=True, slots=True)
class Site:
    """One call or ``await`` expression.

    Attributes:
        file: Relative to the source folder, with ``/``; absolute when outside of it; "" when not known.
        function: Qualified name of the innermost enclosing ``def``, as in ``__qualname__``.
        ordinal: Number among the calls and awaits of all functions of that name in the file, from 1.
        line: Where the expression starts, from 1; for display only.
        column: Where it starts, in characters from 1; for display only.
    """

    file: str
    function: str
    ordinal: int
    line: int = 0
    column: int = 0

    def to_json(self) -> str:
        """Return the text of this site in a log."""
        return json.dumps({name: getattr(self, name) for name in self.__slots__})


def site_index(
    source: str, file: str = "", tree: ast.Module | None = None
) -> dict[tuple[int, int, Kind], Site]:
    """Return every site of a source text by (end line, end column in UTF-8 bytes, kind).

    ``tree`` is that of the text, if it has been parsed already.

    Calls inside a lambda, a comprehension or a class body belong to the enclosing ``def``; decorators and
    defaults to the function around the one they decorate. An ``await`` and the call it awaits end at the same
    position, hence the kind; the call counts first.

    Raises:
        SyntaxError: The text is not Python.
    """
    numbering = _Numbering()
    numbering.collect((_parsed(source) if tree is None else tree).body, MODULE, "")
    lines = source.encode().splitlines()
    index: dict[tuple[int, int, Kind], Site] = {}
    for function, nodes in numbering.found.items():
        nodes.sort(key=_position)
        for ordinal, node in enumerate(nodes, 1):
            line, column = node.lineno, node.col_offset
            characters = (
                len(lines[line - 1][:column].decode(errors="replace")) if line <= len(lines) else column
            )
            site = Site(file, function, ordinal, line, characters + 1)
            end_line, end_column, is_await = _position(node)
            # `await await f()`: the outer one comes first in the tree and keeps the position.
            index.setdefault((end_line, end_column, "await" if is_await else "call"), site)
    return index


_parser = threading.Lock()
"""Threads that make trees at the same time break each other's count of how deep they are, and Python gives up
with a SystemError (seen with 3.11; python/cpython#106905 is about the same count)."""
_ATTEMPTS = 3
"""Others than us may parse, too."""


def _parsed(source: str) -> ast.Module:
    with _parser:
        for _ in range(_ATTEMPTS - 1):
            try:
                return ast.parse(source)
            except SystemError:
                continue
        return ast.parse(source)


def _position(node: ast.Call | ast.Await) -> tuple[int, int, bool]:
    return (node.end_lineno or node.lineno, node.end_col_offset or 0, isinstance(node, ast.Await))


class _Numbering:
    """Collects calls and awaits by the function they are in. Read ``found`` afterwards."""

    def __init__(self) -> None:
        self.found: dict[str, list[ast.Call | ast.Await]] = {}

    def collect(self, code: Iterable[ast.AST], function: str, prefix: str) -> None:
        """Note the calls and awaits in some code of a function, each before those inside it.

        Args:
            code: Expressions and statements.
            function: The innermost ``def`` around them.
            prefix: What a ``def`` or ``class`` among them puts before its name.
        """
        # Not `ast.NodeVisitor`, which takes twice as long: services do this while they start.
        stack: list[Any] = [*reversed([*code])]
        while stack:
            node = stack.pop()
            kind = type(node)
            if kind is list:
                stack.extend(reversed(node))
            elif kind is ast.FunctionDef or kind is ast.AsyncFunctionDef:
                name = f"{prefix}{node.name}"
                self.collect(node.body, name, f"{name}.<locals>.")
                stack.extend((node.returns, node.args, node.decorator_list))
            elif kind is ast.ClassDef:
                self.collect(node.body, function, f"{prefix}{node.name}.")
                stack.extend((node.keywords, node.bases, node.decorator_list))
            elif kind not in _ATOMS:
                if kind is ast.Call or kind is ast.Await:
                    self.found.setdefault(function, []).append(node)
                for field in reversed(kind._fields):
                    part = getattr(node, field, None)
                    if type(part) not in _ATOMS:
                        stack.append(part)


_ATOMS = frozenset({str, bytes, int, float, complex, bool, type(None), type(...), ast.Load, ast.Store})


class SiteTable:
    """Resolves the running frame of a caller to the number of its site in one log; fast after the first time.

    Args:
        writer: Log that gets the definitions.
        source_root: Files below it are named relative to it.
    """

    def __init__(self, writer: EventWriter, source_root: Path) -> None:
        self._writer = writer
        self._root = source_root.resolve()
        # By id(code), not code: hashing a code object hashes its whole content. ``_codes`` keeps ids valid.
        self._cache: dict[tuple[int, int], int] = {}
        self._codes: dict[int, CodeType] = {}
        self._files: dict[str, dict[tuple[int, int, Kind], Site]] = {}

    def of_frame(self, frame: FrameType, kind: Kind) -> int:
        """Return the site of the call or await that ``frame`` is executing; 0 = the source does not tell."""
        code = frame.f_code
        key = (id(code), frame.f_lasti)
        known = self._cache.get(key)
        if known is not None:
            return known
        site = self._find(code, frame.f_lasti, kind)
        number = self._writer.site(site) if site else 0
        self._codes[id(code)] = code
        self._cache[key] = number
        return number

    def _find(self, code: CodeType, instruction: int, kind: Kind) -> Site | None:
        _, end_line, _, end_column = next(
            islice(code.co_positions(), instruction // 2, None), (None, None, None, None)
        )
        if end_line is None or end_column is None:
            return None  # python -X no_debug_ranges, or generated code
        return self._index(code.co_filename).get((end_line, end_column, kind))

    def _index(self, filename: str) -> dict[tuple[int, int, Kind], Site]:
        index = self._files.get(filename)
        if index is None:
            path = Path(filename).resolve()
            name = path.relative_to(self._root) if path.is_relative_to(self._root) else path
            try:
                # utf-8-sig: Python's own positions do not count a byte order mark either.
                index = site_index(path.read_text(encoding="utf-8-sig"), name.as_posix())
            except (OSError, SyntaxError, ValueError, SystemError, RecursionError, MemoryError):
                # Code without a source file, e.g. from exec, or too much for Python's own parser: its events
                # carry site 0. No request may fail for its log.
                index = {}
            self._files[filename] = index
        return index
