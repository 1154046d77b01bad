"""What stands on the pages of the documentation: fenced blocks, inline code, links, headings, commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [
        ROOT / "README.md",
        *ROOT.glob(".github/*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("examples/**/*.md"),
        *ROOT.glob("benchmarks/*.md"),
        *ROOT.glob("benchmarks/published/*.md"),
        *(page for package in ("mup", "simulator", "analyzer") for page in ROOT.glob(f"{package}/**/*.md")),
    ],
    key=lambda page: page.relative_to(ROOT).as_posix(),
)

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block: where it stands, its language ("" if none is named) and its text."""

    page: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{name_of(self.page)}:{self.line}"


def name_of(page: Path) -> str:
    """Return the page's path below the repository, for test ids."""
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, language: str | None = None) -> Iterator[Block]:
    """Yield the fenced blocks of a page, of one language or of all."""
    text = page.read_text(encoding="utf-8")
    for match in _FENCE.finditer(text):
        if language in (None, match[1]):
            yield Block(page, text.count("\n", 0, match.start()) + 1, match[1], match[2])


def all_blocks(language: str) -> list[Block]:
    """Return the fenced blocks of this language on all pages."""
    return [block for page in PAGES for block in blocks(page, language)]


def prose(page: Path) -> str:
    """Return a page without its fenced blocks."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def inline_code(page: Path) -> list[str]:
    """Return what stands between backticks."""
    return _INLINE.findall(prose(page))


def links(page: Path) -> list[str]:
    """Return the targets of links."""
    return _LINK.findall(_INLINE.sub("code", prose(page)))


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    slugs = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in _HEADING.findall(prose(page)))
    return {slug.strip().replace(" ", "-") for slug in slugs}


def commands(page: Path) -> list[list[str]]:
    """Return every call of ``mup`` on a page, in blocks and inline, as words without ``mup`` itself."""
    lines = [line for block in blocks(page) if block.language != "python" for line in block.text.splitlines()]
    lines += [line for line in prose(page).splitlines() if line.startswith("    ")]
    found = []
    for text in [*lines, *inline_code(page)]:
        match = re.search(r"(?:^|[\s/])mup ([a-z]+( .*)?)$", text.partition(" #")[0].rstrip())
        if match and not text.startswith(("usage:", "Usage:")):
            found.append(shlex.split(match[1]))
    return found
