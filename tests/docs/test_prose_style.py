"""The prose of documentation and code is plain: few pronouns for unknown persons, no long lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from prose_style import SUBJECTS, WIDTH, of_module, of_page, report

PAGE = Path("page.md")
MODULE = Path("module.py")

MOST_PER_1000 = 0.1
"""Pronouns for unknown persons, of the words of either subject."""


@pytest.mark.parametrize("subject", ["documentation", pytest.param("code", marks=pytest.mark.slow)])
def test_prose_is_plain(subject: str) -> None:
    """Words for unknown persons are rare, and lines fit into a terminal."""
    found = report(SUBJECTS[subject]())
    assert found.words > 10_000
    assert found.per_1000 < MOST_PER_1000, (str(found), [str(line) for line in found.pronouns])
    assert not found.long, (str(found), [str(line) for line in found.long])


def test_what_is_counted_of_a_page() -> None:
    """Prose counts; fenced blocks, tables, HTML comments and inline code do not."""
    page = "Nobody waits.\n\n```console\nnobody\n```\n\n| nobody |\n<!-- nobody -->\nAsk `anybody` or Whom.\n"
    found = report(of_page(page, PAGE))
    assert [line.number for line in found.pronouns] == [1, 9]
    assert found.words == 6  # inline code is one word
    assert found.per_1000 == pytest.approx(1000 * 2 / 6)


def test_blocks_of_code_are_no_prose() -> None:
    """Indented blocks do not count, also in lists; the further lines of a list item do."""
    page = "Nobody:\n\n    nobody\n\n    nobody\n\n1. Ask\n   anybody.\n\n       nobody\n\n   Whom.\n\nWhoever.\n"
    assert [line.number for line in report(of_page(page, PAGE)).pronouns] == [1, 8, 12, 14]


def test_what_is_counted_of_a_module() -> None:
    """Docstrings and comments count, also the docstring of a constant; other strings and names do not."""
    text = '"""Somebody."""\nnobody = "anybody"\n"""Whom."""\n\ndef f():\n    """Say.\n\n    Whoever.\n    """  # everybody\n'
    found = report(of_module(text, MODULE))
    assert sorted(line.number for line in found.pronouns) == [1, 3, 8, 9]


@pytest.mark.parametrize(
    ("comment", "long"), [("# type: ignore[arg-type]", False), ("# noqa: E501", False), ("# a reason", True)]
)
def test_comments_for_tools_make_no_line_long(comment: str, *, long: bool) -> None:
    """They cannot stand on a line of their own; other comments can."""
    text = f"x = {'1' * WIDTH}  {comment}\n"
    assert bool(report(of_module(text, MODULE)).long) is long


@pytest.mark.parametrize(
    ("line", "long"),
    [
        pytest.param("a " * (WIDTH // 2), False, id="fits"),
        pytest.param("a " * (WIDTH // 2) + "a", True, id="one-column-too-many"),
        pytest.param("a" * (WIDTH + 1), False, id="nowhere-to-break"),
        pytest.param("| " + "a " * WIDTH, False, id="table"),
    ],
)
def test_long_lines(line: str, *, long: bool) -> None:
    """A line over the width is long if it could be broken and is prose."""
    assert bool(report(of_page(line, PAGE)).long) is long
