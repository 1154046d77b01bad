#!/usr/bin/env python3
"""Write the pages of the documentation that are made from code.

``python docs/generate.py`` writes them; with ``--check`` it exits with 1 when one is out of date.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from mup.cli.main import COMMANDS, cli
from mup.cli.models.paths_schema import schema
from mup.cli.vocabulary import WORDS, WordOption, word_of

DOCS = Path(__file__).resolve().parent
WIDTH = 100
"""Columns of the help texts, whatever terminal this runs in."""

_CLI_INTRO = """\
# Command line

<!-- Written by docs/generate.py from the help texts of the commands; change those. -->

Exit codes: 0 done; 1 completed, but a check failed (an error in the source, a load run that failed, a
prediction off by more than the tolerance); 2 could not run, with one message that says why; 130 stopped by
Ctrl-C (143 by SIGTERM, 129 by SIGHUP), also where what was found until then is kept, as in `mup explore`.

With `--json`, standard output is one JSON document and nothing else; with exit code 2 it is
`{"error": {"message", "where", "hint"}}`, the last two only if there is something to say. Progress goes to
standard error.

`PROJECT` is a folder with `mup.toml`, or that file; it is the current folder if left out. `MODEL` is a model
file, or a project, whose `model.json` it is. `-` is standard input as `MODEL`, and standard output as
`--output`, where the command writes one file; what else is printed then goes to standard error.

Every command has `-h`, `--help`, which is left out below.

`mup completion bash|zsh|fish` prints the script that completes commands and options in a shell.
"""


def pages() -> dict[str, str]:
    """Return the text of every generated page by its path below ``docs``."""
    return {
        "reference/cli.md": command_line(),
        "reference/paths-schema.json": json.dumps(schema(), indent=1) + "\n",
    }


def command_line() -> str:
    """Return the reference of the command line: the complete help of ``mup`` and of every command."""
    with cli.make_context("mup", [], resilient_parsing=True, terminal_width=WIDTH) as top:
        parts = [_CLI_INTRO, _block(top.get_help())]
        for name in COMMANDS:
            command = cli.get_command(top, name)
            if command is None:
                raise LookupError(f"{name!r} is listed and cannot be loaded")
            parts += _sections(command, name, top)
        parts += _words(top)
    return "\n".join(parts).rstrip("\n") + "\n"


def _sections(command: click.Command, name: str, parent: click.Context) -> list[str]:
    """Return the help of a command, and of those below it if it is a group."""
    with command.make_context(name, [], parent=parent, resilient_parsing=True) as context:
        level = "#" * len(context.command_path.split())
        shown = "\n".join(line for line in context.get_help().splitlines() if not _EVERYWHERE.match(line))
        parts = [f"{level} {context.command_path}\n\n{_block(shown)}"]
        if isinstance(command, click.Group):
            for below in command.list_commands(context):
                found = command.get_command(context, below)
                if found is None:
                    raise LookupError(f"{context.command_path} {below!r} is listed and cannot be loaded")
                parts += _sections(found, below, context)
    return parts


_WORDS_INTRO = """\
## Words of the options

Options of several commands. An option has one meaning in all of them, and a concept has one name.

| option | value | meaning |
|---|---|---|"""
_SHARED = 3
"""Commands from which on an option is one of several."""
_EVERYWHERE = re.compile(r"  -h, --help  +Show this message and exit\.$")
_OLD_INTRO = """
## Old names

These names of options come from earlier versions. They are still accepted, with the meaning they had.

| command | old | now |
|---|---|---|"""


def _words(top: click.Context) -> list[str]:
    """Return the table of options of several commands with their one meaning, and that of earlier names."""
    users: dict[str, list[str]] = {}
    old = []
    for path, option in _options(cli, top, ()):
        word = word_of(option)
        if not option.hidden:
            users.setdefault(word, []).append(path)
        if isinstance(option, WordOption) and option.old:
            names = [*option.opts, *option.secondary_opts]
            now = [name for name in names if name.startswith("--")]
            old.append(f"| {path} | {_code(option.old)} | {_code(now)} |")
        elif isinstance(option, WordOption) and option.now:
            old.append(f"| {path} | {_code([word])} | {_code([option.now])} |")
    rows = [
        f"| {_code([name])} | {_code(word.values)} | {word.meaning} |"
        for name, word in sorted(WORDS.items())
        if len(users.get(name, ())) >= _SHARED
    ]
    return [_WORDS_INTRO, *rows, _OLD_INTRO, *sorted(old)]


def _options(
    command: click.Command, context: click.Context, path: tuple[str, ...]
) -> Iterator[tuple[str, click.Option]]:
    """Yield path of the command and option for all options of a command and those below it."""
    for parameter in command.params:
        if isinstance(parameter, WordOption):
            yield " ".join(path), parameter
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            if found is not None:
                yield from _options(found, context, (*path, name))


def _code(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names).replace("|", "\\|")


def _block(text: str) -> str:
    lines = "\n".join(line.rstrip() for line in text.splitlines())
    return f"```text\n{lines}\n```\n"


@click.command()
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if a page is out of date.")
def main(*, check: bool) -> None:
    """Write the generated pages of the documentation."""
    old = {path: text for path, text in pages().items() if _differs(DOCS / path, text)}
    for path, text in old.items():
        if check:
            click.echo(f"docs/{path} is out of date; run: python docs/generate.py", err=True)
        else:
            (DOCS / path).write_text(text, encoding="utf-8")
            click.echo(f"docs/{path} written")
    if check and old:
        raise SystemExit(1)


def _differs(file: Path, text: str) -> bool:
    return not file.exists() or file.read_text(encoding="utf-8") != text


if __name__ == "__main__":
    main()
