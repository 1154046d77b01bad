"""What does the source say in a line: a statement, the variable of a loop, the value of a setting?"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from analyzer.static.diagnostics import decode

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
        self._trees: dict[str, ast.Module | None] = {}

    def loop_name(self, file: str, line: int) -> str:
        """Return the variable of the loop or comprehension that begins in a line, or ""."""
        tree = self._tree(file)
        for node in () if tree is None else ast.walk(tree):
            if isinstance(node, LOOPS) and node.lineno == line:
                target = getattr(node, "generators", [node])[0].target
                if isinstance(target, ast.Name):
                    return target.id.strip("_")
        return ""

    def statement(self, file: str, line: int) -> str:
        """Return the text of a line without blanks; "" if there is none."""
        lines = self._text(file)
        return "".join(lines[line - 1].split()) if 0 < line <= len(lines) else ""

    def attribute_line(self, file: str, line: int, attribute: str) -> int:
        """Return the line where the class that a line is in sets an attribute; 0 if it does not."""
        tree = self._tree(file)
        for node in () if tree is None else ast.walk(tree):
            if isinstance(node, ast.ClassDef) and node.lineno <= line <= (node.end_lineno or line):
                for statement in node.body:
                    targets = statement.targets if isinstance(statement, ast.Assign) else []
                    if isinstance(statement, ast.AnnAssign):
                        targets = [statement.target]
                    if any(isinstance(t, ast.Name) and t.id == attribute for t in targets):
                        return statement.lineno
        return 0

    def _text(self, file: str) -> list[str]:
        if file not in self._lines:
            try:
                self._lines[file] = decode((self._root / file).read_bytes()).split("\n")
            except (OSError, SyntaxError, ValueError, LookupError):
                self._lines[file] = []
        return self._lines[file]

    def _tree(self, file: str) -> ast.Module | None:
        if file not in self._trees:
            try:
                self._trees[file] = ast.parse("\n".join(self._text(file)))
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                self._trees[file] = None
        return self._trees[file]


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
