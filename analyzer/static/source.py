"""Which modules make up the analysed source, and where in them is a piece of code?

Modules are read when they are asked for; nothing is ever imported or run. A file that cannot be read or
parsed is reported once and then treated as absent.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypedDict

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

from analyzer.static.ast_nodes import AstNode, Place, ast_nodes, paired_nodes, places
from analyzer.static.diagnostics import Diagnostics, decode
from analyzer.static.relevance import FRAMEWORK, relevant_files
from analyzer.static.source_files import content, entered, kind_of
from mup.events.sites import Kind, Site, site_index

__all__ = ["Module", "SourceTree", "Span", "parsed"]

MAX_BYTES = 1_000_000
"""Larger files are not parsed: some 25,000 lines, which would take long and need a gigabyte."""

FORM_FEED = re.compile(r"^[ \t\f]*\f", re.MULTILINE)
"""Starts a line anew for the interpreter; libcst does not know it in front of code."""

INNER_IMPORT = re.compile(r"(?:^\s+|[:;]\s*)(?:import|from)\b")
"""In a line: an import that is not the first thing in it."""

IMPORT_LINE = re.compile(rb"^[ \t]*(?:from|import)[ \t]+([^\n#;]+)", re.MULTILINE)
"""A line that imports something, and what."""

REFLECTING = ("setattr", "__dict__", "vars(", "delattr")
"""Without one of these in its text a module has no reflective writes of attributes."""


class Span(TypedDict):
    """A piece of text: lines and columns (in characters) from 1; the end is behind the last character."""

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, eq=False)
class Module:
    """One parsed file.

    Attributes:
        name: Dotted name relative to the source folder.
        file: Path relative to the source folder, with ``/``.
        is_package: True for ``__init__.py``.
        tree: Concrete syntax tree; node identity is what ``positions`` is keyed by.
        nodes: Statements and most expressions, in source order.
        ast_nodes: The same in the interpreter's tree, which knows where they are.
        sites: Call sites by end line, end column in UTF-8 bytes, and kind.
    """

    name: str
    file: str
    is_package: bool
    lines: tuple[str, ...]
    tree: cst.Module
    nodes: Sequence[cst.CSTNode]
    ast_nodes: Mapping[cst.CSTNode, AstNode]
    sites: Mapping[tuple[int, int, Kind], Site]

    @cached_property
    def positions(self) -> Mapping[cst.CSTNode, CodeRange]:
        """Start and end of every node: lines from 1, columns in characters from 0.

        Computed when a node without one in ``ast_nodes`` is asked for: something unusual has to be reported.
        """
        # Positions belong to the nodes of the wrapper's tree, which without a copy is ours.
        return MetadataWrapper(self.tree, unsafe_skip_copy=True).resolve(PositionProvider)

    @cached_property
    def _places(self) -> Mapping[cst.CSTNode, Place]:
        return places(self.ast_nodes, self.lines)

    @cached_property
    def kinds(self) -> frozenset[type]:
        """What kinds of statements and expressions there are, of those in ``nodes``."""
        return frozenset(map(type, self.nodes))

    @cached_property
    def imports_inside(self) -> bool:
        """Whether there may be import statements inside of functions or classes."""
        return any(INNER_IMPORT.search(line) for line in self.lines)

    @cached_property
    def reflects(self) -> bool:
        """Whether there may be reflective writes of attributes."""
        return any(word in line for line in self.lines for word in REFLECTING)

    def _known(self, node: cst.CSTNode) -> AstNode | Place | None:
        return self.ast_nodes.get(node) or self._places.get(node)

    def line(self, node: cst.CSTNode) -> int:
        """Return the line where a node starts."""
        known = self._known(node)
        return self.positions[node].start.line if known is None else known.lineno

    def column(self, node: cst.CSTNode) -> int:
        """Return the column where a node starts, in characters from 1."""
        return self.span(node)["column"]

    def span(self, node: cst.CSTNode) -> Span:
        """Return where a node starts and ends."""
        known = self._known(node)
        if known is None:
            place = self.positions[node]
            return Span(
                line=place.start.line,
                column=place.start.column + 1,
                end_line=place.end.line,
                end_column=place.end.column + 1,
            )
        end_line, end_column = _end(known)
        return Span(
            line=known.lineno,
            column=self._characters(known.lineno, known.col_offset) + 1,
            end_line=end_line,
            end_column=self._characters(end_line, end_column) + 1,
        )

    def report(
        self, diagnostics: Diagnostics, code: str, what: str, node: cst.CSTNode, hint: str = ""
    ) -> None:
        """Record a finding about a piece of its code."""
        diagnostics.add(code, what, file=self.file, hint=hint, **self.span(node))

    def site(self, node: cst.Call | cst.Await) -> Site:
        """Return the call site of a call or ``await`` expression."""
        kind: Kind = "await" if type(node) is cst.Await else "call"
        same = self.ast_nodes.get(node)
        if same is not None:
            return self.sites[(*_end(same), kind)]
        end = self.positions[node].end
        # The index counts UTF-8 bytes, as the interpreter's code positions do.
        return self.sites[end.line, len(self.lines[end.line - 1][: end.column].encode()), kind]

    def _characters(self, line: int, column: int) -> int:
        """Return a column in characters from one in bytes."""
        return len(self.lines[line - 1].encode()[:column].decode(errors="replace"))


def _end(node: AstNode | Place) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or 0


class SourceTree:
    """The modules below one folder.

    Args:
        root: The folder; absolute imports start here, as they do when a service runs.
        diagnostics: Where unreadable files are reported.
    """

    def __init__(self, root: Path, diagnostics: Diagnostics) -> None:
        self.root = root
        self._diagnostics = diagnostics
        self._modules: dict[str, Module | None] = {}

    def files(self) -> Iterator[Path]:
        """Yield every Python file below the root, in a stable order, skipping environments and caches.

        Links to folders are not followed: what they lead to is outside, or was there already.
        """
        yield from self._files(self.root)

    def _files(self, folder: Path) -> Iterator[Path]:
        try:
            items = sorted(folder.iterdir())
        except OSError as error:
            what, file = f"cannot read the folder: {error.strerror}", folder.relative_to(self.root).as_posix()
            hint = "make it readable, or keep it out of the source folder"
            self._diagnostics.add("MUP002", what, file=file, hint=hint)
            return
        for item in items:
            kind = kind_of(item)
            if kind in ("file", "closed") and item.suffix == ".py":
                yield item
            elif kind == "folder" and entered(item):
                yield from self._files(item)

    def loaded(self) -> list[str]:
        """Return the files that were asked for and could be parsed so far, relative to the root."""
        return [module.file for module in self._modules.values() if module is not None]

    def modules(self) -> list[Module]:
        """Return the modules of all files that can define services or clients, in a stable order."""
        files = relevant_files(self.root, self.files(), content)
        found = [self.module_at(file) for file in files]
        return list(dict.fromkeys(module for module in found if module is not None))

    def module_at(self, file: Path) -> Module | None:
        """Return the module of a file below the root; None if it cannot be parsed or imported."""
        parts = list(file.relative_to(self.root).with_suffix("").parts)
        if parts[-1] == "__init__" and len(parts) > 1:
            parts.pop()
        name = ".".join(parts)
        found = self._find(name)
        if found is None:
            return self._load(name, file)  # no import can name this file, but it was named
        # A package hides a module of its name.
        return self.module(name) if found == file else None

    def module(self, name: str) -> Module | None:
        """Return the module of a dotted name; None if it is not part of the tree or cannot be parsed."""
        if name not in self._modules:
            file = self._find(name)
            self._modules[name] = None if file is None else self._load(name, file)
        return self._modules[name]

    def may_use_framework(self, name: str) -> bool:
        """Return whether a module names the framework, or imports others of the tree that may."""
        if name not in self._modules:
            file = self._find(name)
            text = b"" if file is None else content(file) or b""
            return FRAMEWORK in text or self._imports_others(text)
        return self._modules[name] is not None

    def _imports_others(self, text: bytes) -> bool:
        """Return whether a text seems to import a module of the tree."""
        for found in IMPORT_LINE.finditer(text):
            for one in found[1].decode(errors="replace").split(","):
                name = one.split(maxsplit=1)[0].partition(".")[0] if one.strip() else ""
                if not name or self._find(name) is not None or kind_of(self.root / name) == "folder":
                    return True
        return False

    def _find(self, name: str) -> Path | None:
        if not name:
            return None
        stem = self.root.joinpath(*name.split("."))
        file, package = stem.parent / f"{stem.name}.py", stem / "__init__.py"
        kinds = {package: kind_of(package), file: kind_of(file)}
        found = (path for path, kind in kinds.items() if kind == "file")
        # What may not be looked at may be there; reading it will tell.
        return next(found, file if kinds[file] == "closed" else None)

    def _load(self, name: str, path: Path) -> Module | None:
        file = path.relative_to(self.root).as_posix()
        try:
            text = self._text(path)
        except OSError as error:
            self._diagnostics.add("MUP002", f"cannot read the file: {error.strerror}", file=file)
            return None
        except _TooLargeError as error:
            hint = "split it, or keep data in a file of its own that is no Python"
            self._diagnostics.add("MUP002", str(error), file=file, hint=hint)
            return None
        except (SyntaxError, ValueError, LookupError) as error:
            what = f"cannot decode the file: {error}"
            self._diagnostics.add("MUP002", what, file=file, hint="save it as UTF-8")
            return None
        return self._parsed(name, file, text, is_package=path.name == "__init__.py")

    @staticmethod
    def _text(path: Path) -> str:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise _TooLargeError(f"{size / 1e6:.1f} MB are too large to be analysed")
        return decode(path.read_bytes())

    def _parsed(self, name: str, file: str, text: str, *, is_package: bool) -> Module | None:
        try:
            return parsed(name, file, text, is_package=is_package)
        except SyntaxError as error:
            what, hint = f"not Python: {error.msg}", "a file that does not parse cannot be analysed"
            line, column = error.lineno or 0, max(error.offset or 1, 1)
            self._diagnostics.add("MUP001", what, file=file, line=line, column=column, hint=hint)
            return None
        except (RecursionError, MemoryError):
            # The parser says MemoryError when its stack is full.
            self._diagnostics.add("MUP001", "nested too deeply to be analysed", file=file)
            return None
        except (ValueError, cst.ParserSyntaxError) as error:
            self._diagnostics.add("MUP001", f"not Python: {error}", file=file)
            return None


def parsed(name: str, file: str, text: str, *, is_package: bool = False) -> Module:
    """Return the module that a text is.

    Args:
        name: Its dotted name.
        file: Its file.
        text: The text.
        is_package: It is that of a package.

    Raises:
        SyntaxError, ValueError, cst.ParserSyntaxError: It is not Python.
        RecursionError, MemoryError: It is nested too deeply.
    """
    same = ast.parse(text)
    sites = site_index(text, file, same)
    tree = cst.parse_module(FORM_FEED.sub("", text))
    nodes = paired_nodes(tree)
    return Module(
        name=name,
        file=file,
        is_package=is_package,
        lines=tuple(text.split("\n")),
        tree=tree,
        nodes=nodes,
        ast_nodes=ast_nodes(nodes, same),
        sites=sites,
    )


class _TooLargeError(Exception):
    """A file is too large to be written by hand."""
