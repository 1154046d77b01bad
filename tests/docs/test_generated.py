"""The generated pages are what the code says now."""

from __future__ import annotations

import subprocess
import sys

from doc_pages import ROOT


def test_generated_pages_are_up_to_date() -> None:
    """`python docs/generate.py --check` finds nothing to do."""
    done = subprocess.run(
        [sys.executable, "docs/generate.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_reference_has_every_command_and_option() -> None:
    """The page of the command line has a section per command, with all of its options."""
    from mup.cli.main import COMMANDS, cli

    page = (ROOT / "docs/reference/cli.md").read_text(encoding="utf-8")
    sections = {text.partition("\n")[0]: text for text in page.split("\n## mup ")[1:]}
    assert list(sections) == list(COMMANDS)
    with cli.make_context("mup", [], resilient_parsing=True) as context:
        for name, section in sections.items():
            command = cli.get_command(context, name)
            assert command is not None
            options = [
                word
                for p in command.params
                if not getattr(p, "hidden", False)
                for word in (*p.opts, *p.secondary_opts)
                if word.startswith("-")
            ]
            assert [word for word in options if word not in section] == [], name
