"""Which findings does the source ask not to be told of?

``# mup: ignore[MUP022]`` behind a line takes back the warnings and infos of these codes on that line. Errors
stay: a model without what they are about would be wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from analyzer.static.diagnostics import Diagnostic, decode

__all__ = ["not_ignored"]

COMMENT = re.compile(r"#\s*mup:\s*ignore\[([\w\s,]+)\]")


def not_ignored(found: Iterable[Diagnostic], root: Path) -> tuple[Diagnostic, ...]:
    """Return the findings without those that a comment on their line takes back.

    Args:
        found: Findings.
        root: The source folder, which their files are relative to.
    """

    @cache
    def lines(file: str) -> list[str]:
        try:
            return decode((root / file).read_bytes()).split("\n")
        except (OSError, SyntaxError, ValueError, LookupError):
            return []

    def ignored(one: Diagnostic) -> bool:
        if one.severity == "error" or not one.file or not 0 < one.line <= len(lines(one.file)):
            return False
        comment = COMMENT.search(lines(one.file)[one.line - 1])
        return comment is not None and one.code in re.findall(r"\w+", comment[1])

    return tuple(one for one in found if not ignored(one))
