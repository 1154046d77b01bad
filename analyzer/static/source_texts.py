"""What does the source say in a line: a statement, the variable of a loop, the value of a setting?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from analyzer.static.diagnostics import text_of
from analyzer.static.values import of_kind

__all__ = ["SourceTexts", "toml_line"]


LOOPS = (ast.For, ast.AsyncFor, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class SourceTexts:
    """Reads files of a source folder when a line of them is asked for.

    Args:
        root: The source folder.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lines: dict[str, list[str]] = {}
        self._trees: dict[str, ast.Module] = {}

    def loop_name(self, file: str, line: int) -> str:
        """Return the variable of the loop or comprehension that begins in a line, or ""."""
        loops = [one for one in of_kind(self._nodes(file), *LOOPS) if getattr(one, "lineno", 0) == line]
        targets = [getattr(one, "generators", [one])[0].target for one in loops]
        return next((one.id.strip("_") for one in of_kind(targets, ast.Name)), "")

    def statement(self, file: str, line: int) -> str:
        """Return the text of a line without blanks; "" if there is none."""
        lines = self._text(file)
        return "".join(lines[line - 1].split()) if 0 < line <= len(lines) else ""

    def attribute_line(self, file: str, line: int, attribute: str) -> int:
        """Return the line where the class that a line is in sets an attribute; 0 if it does not."""
        for node in of_kind(self._nodes(file), ast.ClassDef):
            inside = node.body if node.lineno <= line <= (node.end_lineno or line) else ()
            for statement in of_kind(inside, ast.Assign, ast.AnnAssign):
                targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
                if any(one.id == attribute for one in of_kind(targets, ast.Name)):
                    return statement.lineno
        return 0

    def _text(self, file: str) -> list[str]:
        if file not in self._lines:
            text = text_of(self._root / file)
            self._lines[file] = [] if text is None else text.split("\n")
        return self._lines[file]

    def _nodes(self, file: str) -> Iterator[ast.AST]:
        if file not in self._trees:
            try:
                self._trees[file] = ast.parse("\n".join(self._text(file)))
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                self._trees[file] = ast.Module([], [])
        return ast.walk(self._trees[file])


def toml_line(text: str, table: str, key: str) -> int:
    """Return the line of a key in a table of a TOML file, of the table if the key is not in it, else 0.

    For display: spellings that are not usual (dotted keys, inline tables) are not found.
    """
    header = 0
    inside = False
    for number, line in enumerate(text.split("\n"), 1):
        found = re.match(r"\s*\[\s*([^\[\]]+?)\s*\]\s*(#.*)?$", line)
        if found:
            inside = found[1].replace('"', "") == table
            header = number if inside else header
        elif inside and re.match(rf'\s*"?{re.escape(key)}"?\s*=', line):
            return number
    return header
