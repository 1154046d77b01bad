"""Everything the documentation refers to exists."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import click
import pytest
from doc_pages import PAGES, ROOT, anchors, commands, inline_code, links, name_of

from mup.cli.main import COMMANDS, cli

every_page = pytest.mark.parametrize("page", PAGES, ids=name_of)

FILE = re.compile(r"(mup|mup_registry|analyzer|simulator|examples|tests|docs|benchmarks)(/[\w.-]+)+/?")
DOTTED = re.compile(r"(mup|mup_registry|analyzer|simulator)(\.\w+)+")
CHANGELOG = "docs/changelog.md"
"""Tells of options by the names they had then."""
NOT_PYTHON = {"mup.toml"}
IN_WHEELS_ONLY = {"mup/examples"}


def _broken(page: Path, link: str) -> str:
    """Return what is wrong with a link, or ""."""
    if re.match(r"[a-z]+:", link):
        return ""
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    if not target.exists():
        return f"{link}: no such file"
    if anchor and anchor not in anchors(target):
        return f"{link}: no such heading"
    return ""


@every_page
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link names a file that exists, and a heading in it if it has an anchor."""
    assert [problem for link in links(page) if (problem := _broken(page, link))] == []


def test_a_broken_link_is_noticed() -> None:
    """The check above fails for a missing file and for a missing heading."""
    page = ROOT / "docs" / "README.md"
    assert _broken(page, "reference/nothing.md")
    assert _broken(page, "reference/ports.md#nothing")
    assert not _broken(page, "reference/ports.md#ports")


def test_the_index_lists_every_page() -> None:
    """docs/README.md links to every other page."""
    index = ROOT / "docs" / "README.md"
    listed = {(index.parent / link).resolve() for link in links(index)}
    assert [name_of(p) for p in PAGES if ROOT / "docs" in p.parents and p != index and p not in listed] == []


@every_page
def test_files_exist(page: Path) -> None:
    """A path of this repository in backticks names a file or folder that exists."""
    named = [code for code in inline_code(page) if FILE.fullmatch(code) and code not in IN_WHEELS_ONLY]
    assert [code for code in named if not (ROOT / code).exists()] == []


@every_page
def test_python_names_exist(page: Path) -> None:
    """A dotted name in backticks can be imported."""
    codes = {code.partition("(")[0] for code in inline_code(page)} - NOT_PYTHON
    assert [code for code in codes if DOTTED.fullmatch(code) and not _importable(code)] == []


def _importable(name: str) -> bool:
    words = name.split(".")
    for length in range(len(words), 0, -1):
        try:
            found = importlib.import_module(".".join(words[:length]))
        except ModuleNotFoundError:
            continue
        for word in words[length:]:
            if not hasattr(found, word):
                return False
            found = getattr(found, word)
        return True
    return False


@pytest.fixture(scope="module")
def options() -> dict[str, set[str]]:
    """The options of every command."""
    return _all_options(old=False)


@pytest.fixture(scope="module")
def old_options() -> dict[str, set[str]]:
    """The options of every command, also by the names they had earlier."""
    return _all_options(old=True)


def _all_options(*, old: bool) -> dict[str, set[str]]:
    with cli.make_context("mup", [], resilient_parsing=True) as context:
        loaded = {name: cli.get_command(context, name) for name in COMMANDS}
        return {
            n: _options(command, context, old=old) for n, command in loaded.items() if command is not None
        }


def _options(command: click.Command, context: click.Context, *, old: bool = False) -> set[str]:
    """The options of a command, and of all below it if it is a group; also by their old names if wanted."""
    found = {
        word
        for p in command.get_params(context)
        for word in (*p.opts, *p.secondary_opts, *(getattr(p, "old", ()) if old else ()))
        if word.startswith("-")
    }
    for name in command.list_commands(context) if isinstance(command, click.Group) else ():
        below = command.get_command(context, name)
        if below is not None:
            found |= _options(below, context, old=old)
    return found


@every_page
def test_commands_and_options_exist(
    page: Path, options: dict[str, set[str]], old_options: dict[str, set[str]]
) -> None:
    """Every `mup COMMAND --option` on a page is one that the program has; old names are in the changelog."""
    options = old_options if name_of(page) == CHANGELOG else options
    wrong = [words for words in commands(page) if words[0] not in options]
    assert wrong == [], "no such command"
    wrong = [
        [words[0], word]
        for words in commands(page)
        for word in words[1:]
        if re.match(r"--?[a-z]", word) and word.partition("=")[0] not in options[words[0]]
    ]
    assert wrong == [], "no such option"


@every_page
def test_options_on_their_own_exist(
    page: Path, options: dict[str, set[str]], old_options: dict[str, set[str]]
) -> None:
    """An option in backticks belongs to some command; the page of the command line lists old names, too."""
    tells_old = name_of(page) in (CHANGELOG, "docs/reference/cli.md")
    known = set().union(*(old_options if tells_old else options).values()) | {"--version"}
    named = [code.split()[0].partition("=")[0] for code in inline_code(page) if code.startswith("--")]
    assert [option for option in named if option not in known] == []
