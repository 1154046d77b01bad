"""Findings for sources that the analyzer itself cannot cope with.

No content of a file may end in a traceback: nesting gets more stack than Python allows by
default, and what fails nevertheless is a finding like any other.
"""

from __future__ import annotations

import gc
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from analyzer.static.diagnostics import Diagnostics
from analyzer.static.source import Span
from mup.errors import MupError

__all__ = ["report_failure", "room"]

RECURSION_LIMIT = 4000
"""Deep enough for ladders of hundreds of ``elif``, and far from the end of an 8 MB stack."""


@contextmanager
def room() -> Iterator[None]:
    """Let code inside call deeper than Python's default, and collect garbage only when it is done.

    Syntax trees are many objects and no garbage: looking for some takes a quarter of the time. Warnings about
    analysed code, such as dubious escapes, are the business of its own linter.
    """
    limit, collecting = sys.getrecursionlimit(), gc.isenabled()
    sys.setrecursionlimit(max(limit, RECURSION_LIMIT))
    gc.disable()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        sys.setrecursionlimit(limit)
        if collecting:
            gc.enable()


def report_failure(
    diagnostics: Diagnostics, error: Exception, what: str, *, file: str = "", span: Span | None = None
) -> None:
    """Make a finding of an unexpected exception.

    Raises:
        MupError: It was a deliberate one.
    """
    if isinstance(error, MupError):
        raise error
    place: Span = {"line": 0, "column": 0, "end_line": 0, "end_column": 0} if span is None else span
    if isinstance(error, RecursionError):
        text = f"{what} is nested too deeply to be analysed"
        diagnostics.add("MUP030", text, file=file, hint="split it", **place)
        return
    last = traceback.extract_tb(error.__traceback__)[-1]
    text = f"the analysis of {what} failed: {error!r} in {Path(last.filename).name}, line {last.lineno}"
    hint = "this is a bug in mup: please report it with the source"
    diagnostics.add("MUP099", text, file=file, hint=hint, **place)
