"""Which modules make up the analysed source, and where in them is a piece of code?

Modules are read when somebody asks for them; nothing is ever imported or run. A file that cannot be read or
parsed is reported once and then treated as absent.
"""

from __future__ import annotations

import io
import tokenize
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

from analyzer.static.diagnostics import Diagnostics
from mup.events.sites import Kind, Site, site_index

__all__ = ["Module", "SourceTree"]

SKIPPED_FOLDERS = {"__pycache__", "node_modules", "venv", "build", "dist"}


@dataclass(frozen=True, eq=False)
class Module:
    """One parsed file.

    Attributes:
        name: Dotted name relative to the source folder.
        file: Path relative to the source folder, with ``/``.
        is_package: True for ``__init__.py``.
        tree: Concrete syntax tree; node identity is what ``positions`` is keyed by.
        positions: Start and end of every node: lines from 1, columns in characters from 0.
        sites: Call sites by end line, end column in UTF-8 bytes, and kind.
    """

    name: str
    file: str
    is_package: bool
    lines: tuple[str, ...]
    tree: cst.Module
    positions: Mapping[cst.CSTNode, CodeRange]
    sites: Mapping[tuple[int, int, Kind], Site]

    def line(self, node: cst.CSTNode) -> int:
        """Return the line where a node starts."""
        return self.positions[node].start.line

    def column(self, node: cst.CSTNode) -> int:
        """Return the column where a node starts, in characters from 1."""
        return self.positions[node].start.column + 1

    def site(self, node: cst.Call | cst.Await) -> Site:
        """Return the call site of a call or ``await`` expression."""
        end = self.positions[node].end
        # The index counts UTF-8 bytes, as the interpreter's code positions do.
        column = len(self.lines[end.line - 1][: end.column].encode())
        return self.sites[end.line, column, "await" if isinstance(node, cst.Await) else "call"]


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
        """Yield every Python file below the root, in a stable order, skipping environments and caches."""
        yield from self._files(self.root)

    def _files(self, folder: Path) -> Iterator[Path]:
        for item in sorted(folder.iterdir()):
            if item.is_file() and item.suffix == ".py":
                yield item
            elif (
                item.is_dir()
                and not item.is_symlink()
                and not item.name.startswith(".")
                and item.name not in SKIPPED_FOLDERS
                and not (item / "pyvenv.cfg").exists()
            ):
                yield from self._files(item)

    def module_at(self, file: Path) -> Module | None:
        """Return the module of a file below the root; None if it cannot be parsed."""
        parts = list(file.relative_to(self.root).with_suffix("").parts)
        if parts[-1] == "__init__" and len(parts) > 1:
            parts.pop()
        return self.module(".".join(parts))

    def module(self, name: str) -> Module | None:
        """Return the module of a dotted name; None if it is not part of the tree or cannot be parsed."""
        if name not in self._modules:
            file = self._find(name)
            self._modules[name] = None if file is None else self._load(name, file)
        return self._modules[name]

    def _find(self, name: str) -> Path | None:
        if not name:
            return None
        stem = self.root.joinpath(*name.split("."))
        for file in (stem / "__init__.py", stem.parent / f"{stem.name}.py"):
            if file.is_file():
                return file
        return None

    def _load(self, name: str, path: Path) -> Module | None:
        file = path.relative_to(self.root).as_posix()
        try:
            text = _decode(path.read_bytes())
        except OSError as error:
            self._diagnostics.add("MUP002", f"cannot read the file: {error.strerror}", file=file)
            return None
        except (SyntaxError, UnicodeDecodeError, LookupError) as error:
            self._diagnostics.add(
                "MUP002", f"cannot decode the file: {error}", file=file, hint="save it as UTF-8"
            )
            return None
        try:
            with warnings.catch_warnings():
                # Dubious escapes and the like are the business of the code's own linter.
                warnings.simplefilter("ignore")
                sites = site_index(text, file)
            # Positions belong to the nodes of the wrapper's tree, which without a copy is ours.
            wrapper = MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True)
            positions: Mapping[cst.CSTNode, CodeRange] = wrapper.resolve(PositionProvider)
        except SyntaxError as error:
            self._diagnostics.add(
                "MUP001",
                f"not Python: {error.msg}",
                file=file,
                line=error.lineno or 0,
                column=max(error.offset or 1, 1),
                hint="a file that does not parse cannot be analysed",
            )
            return None
        except RecursionError:
            self._diagnostics.add("MUP001", "nested too deeply to be analysed", file=file)
            return None
        except (ValueError, cst.ParserSyntaxError) as error:
            self._diagnostics.add("MUP001", f"not Python: {error}", file=file)
            return None
        return Module(
            name=name,
            file=file,
            is_package=path.name == "__init__.py",
            lines=tuple(text.split("\n")),
            tree=wrapper.module,
            positions=positions,
            sites=sites,
        )


def _decode(data: bytes) -> str:
    """Return source text with newlines as line ends, decoded as the interpreter would."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    return io.TextIOWrapper(io.BytesIO(data), encoding, newline=None).read()
