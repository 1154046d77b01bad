"""Lay out a table for the available width; no word and no number is ever broken.

A table that is too wide first wraps its headings and its columns of words at spaces, then leaves out the
columns that may be spared, which it says, and at last is turned: a block of lines for every row.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

__all__ = ["Layout", "lay_out", "print_table", "table", "wrapped"]

GAP = 2
"""Blanks between columns."""
NARROW = 8
"""A column of words is not made narrower than this, or than its longest word."""
BLOCK_INDENT = 2


def wrapped(text: str, width: int, *, indent: int = 0) -> str:
    """Return a text broken at spaces alone; a word that is longer than a line has one of its own.

    Args:
        text: Words.
        width: Columns of a line.
        indent: Blanks before all lines but the first.
    """
    return textwrap.fill(
        text,
        width=max(1, width),
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


@dataclass(frozen=True, slots=True)
class Layout:
    """What of a table is shown, and how.

    Attributes:
        columns: The columns shown, as positions.
        widths: Of these; None if the table is turned: a block of lines for every row.
    """

    columns: tuple[int, ...]
    widths: tuple[int, ...] | None


def lay_out(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int,
    *,
    texts: int = 1,
    words: Sequence[str] = (),
    spare: Sequence[str] = (),
) -> Layout:
    """Decide how a table fits; the arguments are those of ``print_table``."""
    wordy = {i for i, heading in enumerate(headings) if i < texts or heading in words}
    shown = list(range(len(headings)))
    for missing in ("", *spare):
        shown = [i for i in shown if headings[i] != missing or not missing]
        widths = _fit(headings, rows, shown, wordy, width)
        if widths is not None:
            return Layout(tuple(shown), widths)
    return Layout(tuple(range(len(headings))), None)


def _fit(
    headings: Sequence[str], rows: Sequence[Sequence[str]], shown: Sequence[int], wordy: set[int], width: int
) -> tuple[int, ...] | None:
    """Return the widths of columns, or None if something would have to be broken."""
    room = width - GAP * (len(shown) - 1)
    whole, least = {}, {}
    for i in shown:
        cells = [row[i] for row in rows]
        longest = max(map(_length, cells), default=0)
        whole[i] = max(longest, _length(headings[i]))
        word = max(map(_length, headings[i].split()), default=0)
        if i in wordy:
            word = max(word, *(_length(w) for cell in cells for w in cell.split()), 0)
            least[i] = min(whole[i], max(word, NARROW))
        else:
            least[i] = max(longest, word)
    if sum(whole.values()) <= room:
        return tuple(whole.values())
    if sum(least.values()) > room:
        return None
    # Who needs little gets all of it; the others share the rest evenly.
    left = room - sum(least.values())
    widths = dict(least)
    growing = sorted((i for i in shown if i in wordy), key=lambda i: whole[i] - least[i])
    for position, i in enumerate(growing):
        more = min(whole[i] - least[i], left // (len(growing) - position))
        widths[i] += more
        left -= more
    return tuple(widths.values())


def _length(text: str) -> int:
    from rich.cells import cell_len

    return max(map(cell_len, text.split("\n")), default=0)


def table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    width: int,
    title: str = "",
    texts: int = 1,
    words: Sequence[str] = (),
    spare: Sequence[str] = (),
    more: str = "--json",
) -> RenderableType:
    """Return a table as something to print with ``soft_wrap``; the arguments are those of ``print_table``."""
    from rich.console import Group
    from rich.text import Text

    listed = [list(row) for row in rows]
    found = lay_out(headings, listed, width, texts=texts, words=words, spare=spare)
    parts: list[RenderableType] = [Text(wrapped(title, width), style="bold")] if title else []
    if found.widths is None:
        parts.append(_blocks(headings, listed, width, texts=texts, words=words))
    else:
        parts.append(_grid(headings, listed, found.columns, found.widths, texts=texts, words=words))
    left_out = [headings[i] for i in range(len(headings)) if i not in found.columns]
    if left_out:
        note = f"Not shown for want of width: {', '.join(left_out)}. A wider terminal shows it, or {more}."
        parts.append(Text(wrapped(note, width), style="dim"))
    return Group(*parts)


def _grid(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    columns: Sequence[int],
    widths: Sequence[int],
    *,
    texts: int,
    words: Sequence[str],
) -> RenderableType:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    made = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, GAP - 1, 0, 0))
    for i, width in zip(columns, widths, strict=True):
        left = i < texts or headings[i] in words
        # Cells fit by construction; only words are wrapped, and only at spaces.
        made.add_column(Text(headings[i]), justify="left" if left else "right", width=width)
    for row in rows:
        made.add_row(*(Text(row[i]) for i in columns))
    return made


def _blocks(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int,
    *,
    texts: int,
    words: Sequence[str],
) -> RenderableType:
    """Return the rows below each other: the first cell as a line, then a line for every other one.

    A row without a first cell goes on with the block of the row before.
    """
    from rich.text import Text

    label = max(map(_length, headings[1:]), default=0)
    indent = BLOCK_INDENT + label + GAP
    lines: list[str] = []
    for row in rows:
        if row[0] or not lines:
            lines.append(wrapped(f"{headings[0]} {row[0]}".strip(), width))
        for index, (heading, cell) in enumerate(zip(headings[1:], row[1:], strict=True), start=1):
            if not cell:
                continue
            name = heading + " " * (label - _length(heading) + GAP)
            text = wrapped(cell, max(width - indent, NARROW)) if index < texts or heading in words else cell
            lines.append(" " * BLOCK_INDENT + name + text.replace("\n", "\n" + " " * indent))
    return Text("\n".join(lines), no_wrap=True, overflow="ignore")


def print_table(
    out: Console,
    title: str,
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    texts: int = 1,
    words: Sequence[str] = (),
    spare: Sequence[str] = (),
    more: str = "--json",
) -> None:
    """Print a table that fits.

    Args:
        out: Where.
        title: Above it; may be empty.
        headings: Of the columns.
        rows: Cells as text.
        texts: The first columns are words, to be wrapped at spaces; the others are numbers, never wrapped.
        words: Headings of further columns of words.
        spare: Headings of columns that may be missing, those that go first in front.
        more: Where what is missing can be seen.
    """
    found = table(
        headings, rows, width=out.width, title=title, texts=texts, words=words, spare=spare, more=more
    )
    out.print(found, soft_wrap=True)
