"""The generated pages are what the code says now."""

from __future__ import annotations

import re
import subprocess
import sys

import click
from doc_pages import ROOT


def test_generated_pages_are_up_to_date() -> None:
    """`python docs/generate.py --check` finds nothing to do."""
    done = subprocess.run(
        [sys.executable, "docs/generate.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_reference_has_every_command_and_option() -> None:
    """The page has a section per command with all of its options; each is explained there or among the shared."""
    from mup.cli.main import COMMANDS, cli

    page = (ROOT / "docs/reference/cli.md").read_text(encoding="utf-8")
    shared = _words(page.partition("\n## Shared options\n")[2].partition("\n## ")[0])
    sections = {text.partition("\n")[0]: text for text in page.split("\n## mup ")[1:]}
    assert list(sections) == list(COMMANDS)
    with cli.make_context("mup", [], resilient_parsing=True) as context:
        for name, section in sections.items():
            command = cli.get_command(context, name)
            assert command is not None
            options = [p for p in command.params if isinstance(p, click.Option) and not p.hidden]
            names = [word for p in options for word in (*p.opts, *p.secondary_opts) if word.startswith("--")]
            assert [word for word in names if word not in section] == [], name
            meanings = [_words(p.help or "") for p in options]
            assert [text for text in meanings if text not in _words(section) and text not in shared] == [], (
                name
            )


def _words(text: str) -> str:
    """Return a text without its line breaks, also those within words with a hyphen."""
    return re.sub(r"\s+", "", text)
