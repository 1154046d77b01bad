"""Where are the pages of the documentation, what are they called, and which mention some words?

Pages are Markdown files in folders by kind (``start``, ``tutorial``, ``how-to``, ``reference``,
``explanation``); a page is named by its path without suffix, ``reference/mup-toml``, or by the last part of
that alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from mup.cli.installation import installed_folder
from mup.errors import UsageError

__all__ = ["Match", "Page", "Section", "all_pages", "documentation_folder", "find_page", "search"]

KINDS = ("start", "tutorial", "how-to", "reference", "explanation")
"""Folders of pages, in the order in which they are listed."""


@dataclass(frozen=True)
class Section:
    """A heading and what stands below it, up to the next heading of any level.

    Attributes:
        heading: Text of the heading.
        level: 1 for the title of the page, 2 for the headings below it, ...
        line: Line of the heading, counted from 1.
        text: The section with its heading.
    """

    heading: str
    level: int
    line: int
    text: str

    @property
    def anchor(self) -> str:
        """Return the name that links use for this heading, as GitHub makes it."""
        return re.sub(r"[^\w\- ]", "", self.heading.lower()).strip().replace(" ", "-")


@dataclass(frozen=True)
class Page:
    """A page: its name, its file."""

    name: str
    file: Path

    @property
    def text(self) -> str:
        """Return what the file holds."""
        return self.file.read_text(encoding="utf-8")

    @property
    def title(self) -> str:
        """Return the first heading."""
        return next((section.heading for section in self.sections()), self.name)

    def sections(self) -> Iterator[Section]:
        """Yield the sections in order; lines of code blocks that begin with ``#`` are no headings."""
        started: tuple[str, int, int] | None = None
        body: list[str] = []
        fenced = False
        for number, line in enumerate(self.text.splitlines(), 1):
            fenced ^= line.lstrip().startswith("```")
            heading = None if fenced else re.match(r"(#+) (.+)", line)
            if heading:
                if started is not None:
                    yield Section(*started, "\n".join(body))
                started, body = (heading[2], len(heading[1]), number), []
            body.append(line)
        if started is not None:
            yield Section(*started, "\n".join(body))

    def part(self, anchor: str) -> str:
        """Return the section of a heading, with the sections below it.

        Raises:
            UsageError: The page has no such heading.
        """
        found: list[Section] = []
        for section in self.sections():
            if found and section.level <= found[0].level:
                break
            if found or section.anchor == anchor:
                found.append(section)
        if not found:
            known = ", ".join(section.anchor for section in self.sections())
            raise UsageError(f"page {self.name} has no heading {anchor!r}", hint=f"its headings: {known}")
        return "\n".join(section.text for section in found)


@dataclass(frozen=True)
class Match:
    """A section that has all words of a search; ``line`` and ``text`` are the first line with one of them."""

    page: Page
    heading: str
    line: int
    text: str


def documentation_folder() -> Path:
    """Return the folder of the pages: inside the package when installed, beside it in a clone.

    Raises:
        UsageError: The installation has no documentation.
    """
    folder = installed_folder("docs", "reference/mup-toml.md")
    if folder is None:
        raise UsageError(
            "this installation has no documentation", hint="install mup again from its wheel or a clone"
        )
    return folder


def all_pages() -> list[Page]:
    """Return every page, by kind and name; the changelog last.

    Raises:
        UsageError: The installation has no documentation.
    """
    folder = documentation_folder()
    files = [file for kind in KINDS for file in sorted((folder / kind).glob("*.md"))]
    return [
        Page(file.relative_to(folder).with_suffix("").as_posix(), file)
        for file in (*files, folder / "changelog.md")
    ]


def find_page(name: str) -> Page:
    """Return the page that is called so.

    Args:
        name: ``reference/mup-toml``, ``mup-toml``, or the path of the file in the repository.

    Raises:
        UsageError: There is no such page; the message names similar ones.
    """
    pages = {page.name: page for page in all_pages()}
    wanted = name.removesuffix(".md").removeprefix("docs/")
    short = {page.name.rpartition("/")[2]: page for page in pages.values()}
    found = pages.get(wanted) or short.get(wanted.lower().replace(".", "-").replace(" ", "-"))
    if found is None:
        close = get_close_matches(wanted, [*short, *pages], n=3)
        hint = f"did you mean {' or '.join(close)}? " if close else ""
        raise UsageError(
            f"there is no page {name!r}", hint=f"{hint}'mup docs' lists all, --search looks into them"
        )
    return found


def search(words: str) -> list[Match]:
    """Return the sections that have all words, in any case: those with a word in their heading first.

    Raises:
        UsageError: No word is given, or the installation has no documentation.
    """
    wanted = words.lower().split()
    if not wanted:
        raise UsageError("--search needs a word to look for")
    found: list[tuple[int, Match]] = []
    for page in all_pages():
        for section in page.sections():
            text = section.text.lower()
            if not all(word in text for word in wanted):
                continue
            lines = section.text.splitlines()
            # The heading alone says little: the first line below it, if one has a word.
            hits = [i for i, line in enumerate(lines) if any(word in line.lower() for word in wanted)]
            at = next((i for i in hits if i > 0), hits[0])
            rank = -sum(word in section.heading.lower() for word in wanted)
            found.append((rank, Match(page, section.heading, section.line + at, lines[at].strip())))
    return [match for _, match in sorted(found, key=lambda each: each[0])]
