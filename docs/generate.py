#!/usr/bin/env python3
"""Write the pages of the documentation that are made from code.

``python docs/generate.py`` writes them; with ``--check`` it exits with 1 when one is out of date.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from mup.cli.main import COMMANDS, GROUPS, cli
from mup.cli.models.paths_schema import schema
from mup.cli.vocabulary import WordOption, word_of

DOCS = Path(__file__).resolve().parent
WIDTH = 100
"""Columns of the help texts, whatever terminal this runs in."""

_CLI_INTRO = """\
# Command line

<!-- Written by docs/generate.py from the help texts of the commands; change those. -->

`mup COMMAND --help` prints all options of a command, and examples; `mup --version` prints the version.

Exit codes: 0 done; 1 completed, but a check failed (an error in the source, a load run that failed, a
prediction off by more than the tolerance); 2 could not run, with one message that says why; 130 stopped by
Ctrl-C (143 by SIGTERM, 129 by SIGHUP), also where what was found until then is kept.

With `--json`, standard output is one JSON document and nothing else; with exit code 2 it is
`{"error": {"message", "where", "hint"}}`, the last two only if there is something to say. Progress goes to
standard error.

`PROJECT` is a folder with `mup.toml`, or that file; by default the current folder. `MODEL` is a model file
(`.json`, or `.lqnx` of LQNS), or a project, whose `model.json` it is. `-` is standard input as `MODEL`, and
standard output as `--output`; what else is printed then goes to standard error.
"""


def pages() -> dict[str, str]:
    """Return the text of every generated page by its path below ``docs``."""
    return {
        "reference/cli.md": command_line(),
        "reference/paths-schema.json": json.dumps(schema(), indent=1) + "\n",
    }


def command_line() -> str:
    """Return the reference of the command line: every command, and what several of them share, once."""
    with cli.make_context("mup", [], resilient_parsing=True, terminal_width=WIDTH) as top:
        shared = _Shared(top)
        parts = [_CLI_INTRO, _command_list(), shared.section(top)]
        for name in COMMANDS:
            command = cli.get_command(top, name)
            if command is None:
                raise LookupError(f"{name!r} is listed and cannot be loaded")
            parts += _sections(command, name, top, shared)
        parts.append(_old_names(top))
    return "\n".join(parts).rstrip("\n") + "\n"


def _command_list() -> str:
    """Return the names of all commands as links, a line for each heading of `mup --help`."""
    lines = [
        _listed(f"- {heading}:", [f"[{name}](#mup-{name})" for name in names], indent="  ")
        for heading, names in GROUPS.items()
    ]
    return "\n".join(lines) + "\n"


def _sections(command: click.Command, name: str, parent: click.Context, shared: _Shared) -> list[str]:
    """Return the section of a command, and of those below it if it is a group."""
    with command.make_context(name, [], parent=parent, resilient_parsing=True) as context:
        level = "#" * len(context.command_path.split())
        parts = [f"{level} {context.command_path}\n\n{_block(_help(command, context, shared))}"]
        names = [shared.named(option, context) for option in _own_options(command) if option in shared]
        if names:
            parts.append(_listed("[Shared](#shared-options):", names) + "\n")
        if isinstance(command, click.Group):
            for below in command.list_commands(context):
                found = command.get_command(context, below)
                if found is None:
                    raise LookupError(f"{context.command_path} {below!r} is listed and cannot be loaded")
                parts += _sections(found, below, context, shared)
    return parts


def _help(command: click.Command, context: click.Context, shared: _Shared) -> str:
    """Return the help of a command without shared options and without examples."""
    formatter = context.make_formatter()
    usage = " ".join(word for word in command.collect_usage_pieces(context) if word != "[OPTIONS]")
    formatter.write_usage(context.command_path, usage)
    command.format_help_text(context, formatter)
    rows = [
        record
        for option in _own_options(command)
        if option not in shared and (record := option.get_help_record(context))
    ]
    if rows:
        with formatter.section("Options"):
            formatter.write_dl(rows)
    return formatter.getvalue()


def _listed(heading: str, names: list[str], indent: str = "") -> str:
    """Return names behind a heading, in lines that break no code."""
    text = re.sub(r"`[^`]*`", lambda code: code[0].replace(" ", "\0"), f"{heading} {', '.join(names)}")
    lines = textwrap.wrap(
        text, WIDTH, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
    )
    return "\n".join(lines).replace("\0", " ")


def _own_options(command: click.Command) -> list[WordOption]:
    return [p for p in command.params if isinstance(p, WordOption) and not p.hidden]


_SHARED_INTRO = """\
## Shared options

Several commands have these options. The section of a command names those it takes, with the default of this
command in brackets. Of two names with a slash between them, the first is the default.
"""


class _Shared:
    """The options that several commands describe in the same words."""

    def __init__(self, top: click.Context) -> None:
        self._uses: dict[tuple[str, str], list[WordOption]] = {}
        for _, option in _options(cli, top, ()):
            if not option.hidden:
                self._uses.setdefault(_meaning(option), []).append(option)

    def __contains__(self, option: WordOption) -> bool:
        return len(self._uses[_meaning(option)]) > 1

    def section(self, context: click.Context) -> str:
        """Return the list of these options with all ways to write their values."""
        rows = []
        for (_, text), uses in sorted(self._uses.items()):
            if len(uses) > 1:
                values = dict.fromkeys(option.metavar for option in uses if option.metavar)
                names = [*(name for name in uses[0].opts if name.startswith("-")), *uses[0].secondary_opts]
                between = " / " if uses[0].secondary_opts else ", "
                rows.append((f"{between.join(names)} {' or '.join(values)}".rstrip(), text))
        formatter = context.make_formatter()
        formatter.write_dl(rows)
        return f"{_SHARED_INTRO}\n{_block(formatter.getvalue())}"

    def named(self, option: WordOption, context: click.Context) -> str:
        """Return how the section of a command names one of them."""
        values = {
            other.metavar
            for (word, _), uses in self._uses.items()
            if word == word_of(option) and len(uses) > 1
            for other in uses
        }
        shown = [" / ".join(_names(option))]
        if option.metavar and len(values) > 1:
            shown.append(option.metavar)
        extra = {} if option.secondary_opts else option.get_help_extra(context)
        brackets = "; ".join(extra[key] for key in ("default", "range", "required") if key in extra)
        return f"`{' '.join(shown)}`" + (f" [{brackets}]" if brackets else "")


def _meaning(option: WordOption) -> tuple[str, str]:
    return word_of(option), option.help or ""


def _names(option: WordOption) -> list[str]:
    return [name for name in (*option.opts, *option.secondary_opts) if name.startswith("--")]


_OLD_INTRO = """\
## Old names

These earlier names of options are still accepted.

"""


def _old_names(top: click.Context) -> str:
    """Return the list of earlier names of options, the present ones, and the commands."""
    users: dict[tuple[str, str], list[str]] = {}
    for path, option in _options(cli, top, ()):
        if option.old:
            users.setdefault((_code(option.old), _code(_names(option))), []).append(path)
        elif option.now:
            users.setdefault((_code([word_of(option)]), _code([option.now])), []).append(path)
    lines = [f"- {old}: {now} ({', '.join(sorted(paths))})" for (old, now), paths in sorted(users.items())]
    return _OLD_INTRO + "\n".join(lines) + "\n"


def _options(
    command: click.Command, context: click.Context, path: tuple[str, ...]
) -> Iterator[tuple[str, WordOption]]:
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
    return ", ".join(f"`{name}`" for name in names)


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
