"""Measure how plain the prose is: its share of pronouns for unknown persons, and its long lines.

``python tests/docs/prose_style.py`` prints both figures for the documentation (every Markdown page) and for
the code (docstrings and comments of every Python file); ``--list`` also prints each place, as ``file:line``.

Left out: blocks of code, tables, HTML comments and inline code of pages, for they quote what programs print; of
code, everything that is neither docstring nor comment. A line without a space at which it could be broken
(a link, a path) is not long, nor is code before a comment for a tool (``type: ignore``, ``noqa``).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from doc_pages import PAGES, ROOT

PRONOUN = re.compile(r"\b(?:nobody|somebody|whoever|whom|everybody|anybody)\b", re.IGNORECASE)
WIDTH = 120
"""Columns of a line of prose; tables and code blocks may be wider."""

_WORD = re.compile(r"[^\W\d_][\w'-]*")
_FENCE = re.compile(r"^\s*(?:```|~~~)")
_ITEM = re.compile(r"^\s*(?:[-*+]|\d+\.)\s+")
_CODE_SPAN = re.compile(r"`+[^`\n]+`+")
_PRAGMA = re.compile(r"#\s*(?:type:|noqa|fmt:)")
_LEXICAL = re.compile(
    r"#[^\n]*"
    r'|"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"""'
    r"|'''[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*'''"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'(?:[^'\\\n]|\\.)*'"
    r"|[()\[\]{}]",
    re.DOTALL,
)
"""All that tells comments and docstrings from the rest of a module: several times quicker than to parse it."""
_FOLDERS = (".ci", "analyzer", "benchmarks", "docs", "examples", "mup", "mup_registry", "simulator", "tests")


@dataclass(frozen=True)
class Line:
    """A line of prose: where it stands, what is read, and the columns that it takes in its file."""

    path: Path
    number: int
    text: str
    columns: int

    def __str__(self) -> str:
        return f"{self.path}:{self.number}"

    @property
    def is_long(self) -> bool:
        """Whether it is too wide, and could be broken."""
        return self.columns > WIDTH and " " in self.text.strip()


@dataclass(frozen=True)
class Report:
    """What was found in some lines."""

    words: int
    pronouns: tuple[Line, ...]
    long: tuple[Line, ...]

    @property
    def per_1000(self) -> float:
        """Return the pronouns per 1000 words."""
        return 1000 * sum(len(PRONOUN.findall(line.text)) for line in self.pronouns) / max(1, self.words)

    def __str__(self) -> str:
        return (
            f"{self.words} words, {self.per_1000:.2f} per 1000 are nobody/somebody/whoever/whom/everybody/anybody; "
            f"{len(self.long)} lines over {WIDTH} columns"
        )


def report(lines: Iterator[Line]) -> Report:
    """Count words, pronouns and long lines."""
    read = list(lines)
    return Report(
        sum(len(_WORD.findall(line.text)) for line in read),
        tuple(line for line in read if PRONOUN.search(line.text)),
        tuple(line for line in read if line.is_long),
    )


def of_page(text: str, path: Path) -> Iterator[Line]:
    """Yield the prose of a Markdown page."""
    fenced = False
    content = 0  # the column at which the text of the innermost list item begins
    above = ""
    indented = False
    for number, line in enumerate(text.splitlines(), 1):
        depth = len(line) - len(line.lstrip())
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced and line.strip():
            item = _ITEM.match(line)
            content = item.end() if item else min(content, depth)
            # Indented by four columns more than the text around it, behind an empty line: a block of code.
            indented = not item and depth >= content + 4 and (indented or not above.strip())
            if not indented and not line.lstrip().startswith(("|", "<!--")):
                yield Line(path, number, _CODE_SPAN.sub("code", line), len(line))
        above = line


def of_module(text: str, path: Path) -> Iterator[Line]:
    """Yield the docstrings and the comments of a Python file, also docstrings of constants and attributes.

    A docstring is a string outside of all brackets that has its lines to itself.
    """
    source = text.split("\n")
    number, counted, depth = 1, 0, 0
    for match in _LEXICAL.finditer(text):
        token, start = match[0], match.start()
        if token in "([{":
            depth += 1
        elif token in ")]}":
            depth -= 1
        elif token[0] == "#" or (not depth and _stands_alone(text, start, match.end())):
            number += text.count("\n", counted, start)
            counted = start
            if token[0] == "#":
                columns = len(token if _PRAGMA.match(token) else source[number - 1])
                yield Line(path, number, token, columns)
                continue
            begin = text.rfind("\n", 0, start) + 1
            for further, line in enumerate(text[begin : match.end()].split("\n")):
                yield Line(path, number + further, line, len(source[number + further - 1]))


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Tell whether a string is a statement: it begins a line, and a comment at most stands behind it."""
    begin = text.rfind("\n", 0, start) + 1
    newline = text.find("\n", end)
    before, after = text[begin:start].strip(), text[end : len(text) if newline < 0 else newline].lstrip()
    continued = text.endswith("\\\n", 0, begin)
    return before.lower() in {"", "r", "u"} and (not after or after[0] == "#") and not continued


def documentation() -> Iterator[Line]:
    """Yield the prose of all pages."""
    for page in PAGES:
        yield from of_page(page.read_text(encoding="utf-8"), page.relative_to(ROOT))


def code() -> Iterator[Line]:
    """Yield the docstrings and comments of all Python files."""
    for folder in _FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield from of_module(path.read_text(encoding="utf-8"), path.relative_to(ROOT))


SUBJECTS = {"documentation": documentation, "code": code}


def main(arguments: list[str]) -> None:
    """Print the figures, and with ``--list`` the places."""
    for name, lines in SUBJECTS.items():
        found = report(lines())
        out = [f"{name}: {found}"]
        if "--list" in arguments:
            out += [f"  {line}: {', '.join(PRONOUN.findall(line.text))}" for line in found.pronouns]
            out += [f"  {line}: {line.columns} columns" for line in found.long]
        sys.stdout.write("\n".join(out) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
