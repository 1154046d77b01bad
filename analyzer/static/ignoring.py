"""Which findings does the source ask not to be told of?

``# mup: ignore[MUP022]`` behind a line takes back the warnings and infos of these codes on that line. Errors
stay: a model without what they are about would be wrong. What looks like such a comment inside of a text is
none. A code that no finding has is a mistake, and reported: the comment would do nothing.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from analyzer.static.diagnostics import CODES, Diagnostic, text_of
from mup.errors import did_you_mean

__all__ = ["not_ignored", "unknown_codes"]

COMMENT = re.compile(r"#\s*mup:\s*ignore\[([\w\s,]*)\]")


@dataclass(frozen=True, slots=True)
class _Comment:
    """The codes a comment names, each with its column from 1."""

    codes: Mapping[str, int]


def not_ignored(found: Iterable[Diagnostic], root: Path) -> tuple[Diagnostic, ...]:
    """Return the findings without those that a comment on their line takes back.

    Args:
        found: Findings.
        root: The source folder, which their files are relative to.
    """

    @cache
    def comments(file: str) -> Mapping[int, _Comment]:
        return dict(_comments(root / file))

    def ignored(one: Diagnostic) -> bool:
        if one.severity == "error" or not one.file:
            return False
        comment = comments(one.file).get(one.line)
        return comment is not None and one.code in comment.codes

    return tuple(one for one in found if not ignored(one))


def unknown_codes(files: Iterable[str], root: Path) -> Iterator[Diagnostic]:
    """Yield a finding for every code in such a comment that no finding has.

    Args:
        files: Relative to the source folder.
        root: The source folder.
    """
    for file in files:
        for line, comment in _comments(root / file):
            for code, column in comment.codes.items():
                if code not in CODES:
                    what = f"no finding has the code {code!r}, so this comment takes nothing back"
                    hint, end = did_you_mean(code, list(CODES)), column + len(code)
                    yield Diagnostic(file, line, column, "MUP072", what, hint, line, end)


def _comments(file: Path) -> Iterator[tuple[int, _Comment]]:
    """Yield the line of every such comment; nothing of a file that cannot be read."""
    text = text_of(file) or ""
    if not COMMENT.search(text):
        return
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                for match in COMMENT.finditer(token.string):
                    words = re.finditer(r"\w+", match[1])
                    start = token.start[1] + match.start(1) + 1
                    yield token.start[0], _Comment({word[0]: start + word.start() for word in words})
    except (tokenize.TokenError, SyntaxError):
        return  # what stands before is Python, and has been told
