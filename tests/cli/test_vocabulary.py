"""Every option has one meaning in all commands, in whole phrases; earlier names still work."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from command_line import run, saved, shop

from mup.cli.main import cli
from mup.cli.vocabulary import WORDS, WordOption, option, word_of

BUILT_IN = {"--help", "--version"}
REMEDY = "take it from mup/cli/vocabulary.py: @option('--name'), with its meaning in WORDS"


def commands(
    group: click.Command = cli, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command of ``mup`` with its path."""
    yield path, group
    if isinstance(group, click.Group):
        with group.make_context("mup", [], resilient_parsing=True) as context:
            for name in group.list_commands(context):
                below = group.get_command(context, name)
                assert below is not None, name
                yield from commands(below, (*path, name))


def options(command: click.Command) -> list[click.Option]:
    """Return what a command takes, except what click adds."""
    found = [p for p in command.params if isinstance(p, click.Option) and word_of(p) not in BUILT_IN]
    return [p for p in found if not (isinstance(p, WordOption) and p.now)]


every_command = pytest.mark.parametrize(
    "command", [command for _, command in commands()], ids=[" ".join(path) or "mup" for path, _ in commands()]
)


@every_command
def test_options_come_from_the_vocabulary(command: click.Command) -> None:
    """No command has a word of its own, and all write its value in one of the ways the word has."""
    for parameter in options(command):
        name = word_of(parameter)
        assert isinstance(parameter, WordOption), f"{name}: {REMEDY}"
        word = WORDS[name]
        usual = parameter.is_flag == (not word.values) or (word.bare and parameter.is_flag)
        assert usual, f"a flag here, a value elsewhere: {name}"
        assert parameter.is_flag or parameter.metavar in word.values, name


@every_command
def test_help_is_a_whole_phrase(command: click.Command) -> None:
    """It starts with a capital, ends with a full stop, has at least three words and no dangling "Of ..."."""
    for parameter in options(command):
        text = parameter.help or ""
        assert re.match(r"[A-Z]|95 % ", text), text
        assert text.endswith("."), f"{word_of(parameter)}: {text!r}"
        assert len(text.split()) >= 3, text
        assert text.split()[0] not in {"Of", "Its", "As", "Where", "Who", "That"}, text
        assert not re.search(r"nobody|somebody|whoever", text.lower()), text


def test_every_word_is_used_and_means_one_thing() -> None:
    """A word without a command would be a promise; two words of equal meaning would be one too many."""
    used = {word_of(parameter) for _, command in commands() for parameter in options(command)}
    assert set(WORDS) - used == set()
    meanings = defaultdict(list)
    for name, word in WORDS.items():
        meanings[word.meaning].append(name)
    assert [names for names in meanings.values() if len(names) > 1] == []


def test_an_earlier_name_never_means_something_else_in_its_command() -> None:
    """What is accepted for the sake of the past is no present option of the same command."""
    for path, command in commands():
        present = {name for p in command.params for name in (*p.opts, *p.secondary_opts)}
        past = [name for p in command.params if isinstance(p, WordOption) for name in p.old]
        assert len(past) == len(set(past)), path
        for parameter in command.params:
            if isinstance(parameter, WordOption):
                own = {*parameter.opts, *parameter.secondary_opts}
                assert set(parameter.old) & (present - own) == set(), path


@pytest.mark.parametrize("name", ["--jobs", "--workers"])
def test_an_earlier_name_works_as_the_new_one(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Scripts written for it go on; what is wrong is said with the name of today."""
    status, _, err = run(capsys, "whatif", saved(tmp_path, shop()), "--clients", "2", name, "0")
    assert status == 2
    assert "--jobs: must be a whole number >= 1, got 0" in err


def test_help_shows_only_names_of_today() -> None:
    """An earlier name is in no help text."""
    for path, command in commands():
        with command.make_context("mup", [], resilient_parsing=True) as context:
            shown = command.get_help(context)
        present = {name for p in command.params for name in (*p.opts, *p.secondary_opts)}
        for parameter in command.params:
            for name in getattr(parameter, "old", ()):
                if name not in present:
                    assert not re.search(rf"(?<![\w-]){name}(?![\w-])", shown), (path, name)


def test_a_new_word_has_to_be_explained() -> None:
    """An option without a meaning in the table stops its command from being imported."""
    with pytest.raises(LookupError, match=r"--frobnicate has no meaning yet.*vocabulary\.py"):
        option("--frobnicate")


def test_listing_the_commands_imports_none_of_them() -> None:
    """``mup --help`` stays fast."""
    code = (
        "import sys\nfrom mup.cli.main import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit: pass\n"
        "print(*[m for m in sys.modules if m.startswith(('mup.cli', 'rich', 'numpy', 'numba'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    from mup.cli.main import COMMANDS

    assert loaded & {module for module, *_ in COMMANDS.values()} == set()
    assert loaded <= {name for name in loaded if name.startswith("mup.cli")}
    assert "mup.cli.vocabulary" not in loaded
