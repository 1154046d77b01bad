"""Output on terminals of several widths, and checks that it is whole."""

from __future__ import annotations

import io
import re
from collections.abc import Callable

from rich.console import Console

__all__ = ["assert_whole", "printed"]

BROKEN_NUMBER = re.compile(r"\d \+-\s*$")
SENTENCE = {
    "Not",
    "shown",
    "for",
    "want",
    "of",
    "width:",
    "A",
    "wider",
    "terminal",
    "shows",
    "it,",
    "or",
    "and",
    "--json",
    "--csv",
    "--report",
}


def printed(show: Callable[[Console], None], width: int) -> str:
    """Return what is printed on a terminal of some width."""
    text = io.StringIO()
    show(Console(file=text, width=width, highlight=False, force_terminal=True, color_system=None))
    return text.getvalue()


def assert_whole(show: Callable[[Console], None]) -> None:
    """Whatever is printed at 80 and 120 columns is made of the words of a very wide terminal, and fits."""
    words = set(printed(show, 5000).split())
    # A heading that is named as left out ends with a comma or a full stop.
    known = {word.strip(",.") for word in words} | {word.strip(",.") for word in SENTENCE}
    for width in (80, 120):
        text = printed(show, width)
        broken = {word for word in text.split() if word.strip(",.") not in known and word.strip("─")}
        assert not broken, f"{width} columns: {broken}"
        for line in text.splitlines():
            assert len(line.rstrip()) <= width or max(map(len, line.split())) > width - 30, line
            assert not BROKEN_NUMBER.search(line), line
